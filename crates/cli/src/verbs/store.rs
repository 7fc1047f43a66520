//! `flashwise store`.

use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use flashwise_block::input::{check_regular, open_regular};
use flashwise_block::{ByteSize, shown};
use flashwise_report::Printed;
use flashwise_store::{Check, Engine, Keyspace, LogForm, Store, StoreInfo, StoreOptions};
use serde_json::json;

use crate::arguments::StoreAction;
use crate::failure::{ERROR, Failure};
use crate::files::{create_as, create_from};
use crate::output::Output;
use crate::verbs::with_schema;

/// The longest command line of `kv` that is read. It holds a value of 64 MiB, and input without line ends does not fill
/// the memory.
const LINE_MAX: ByteSize = ByteSize::mib(65);

/// Runs `info`, `check`, `dump`, `restore`, `compact` or `kv`.
pub fn run(action: &StoreAction, output: &Output) -> Result<ExitCode, Failure> {
    match action {
        StoreAction::Info { file } => {
            refuse_special_file(file)?;
            let info = StoreInfo::read(file)?;
            let document = serde_json::to_value(&info).map_err(Failure::error)?;
            output.print(&with_schema("flashwise.store-info", document), |_| lines(&info))?;
        }
        StoreAction::Check { file } => return check(file, output),
        StoreAction::Dump { file, dump } => self::dump(file, dump, output)?,
        StoreAction::Restore { dump, file, engine, page, bucket_fill, packed_log } => {
            let log_form = if *packed_log { LogForm::Packed } else { LogForm::Sparse };
            let defaults = new_store((*engine).into());
            let page = page.unwrap_or(defaults.page);
            restore(dump, file, &StoreOptions { page, bucket_fill: *bucket_fill, log_form, ..defaults }, output)?;
        }
        StoreAction::Compact { file } => {
            let store = open(file)?;
            store.compact()?;
            let pages = store.stats().pages;
            store.close()?;
            let document = with_schema("flashwise.store-compact", json!({ "pages": pages }));
            output.print(&document, |_| format!("{}: {pages} pages in use\n", file.display()))?;
        }
        StoreAction::Kv { file, engine } => shell(file, engine.map(Engine::from), output)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Options of a new store.
fn new_store(engine: Engine) -> StoreOptions {
    match engine {
        Engine::Hash => StoreOptions::hash(),
        Engine::BTree => StoreOptions::default(),
    }
}

/// An existing store.
fn open(file: &Path) -> Result<Store, Failure> {
    refuse_special_file(file)?;
    Ok(Store::open(file, &StoreOptions { create: false, ..StoreOptions::default() })?)
}

/// Refuses a pipe or a device; an absent file is reported by the code that opens it.
fn refuse_special_file(file: &Path) -> Result<(), Failure> {
    match check_regular(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(file, &error)),
        _ => Ok(()),
    }
}

fn check(file: &Path, output: &Output) -> Result<ExitCode, Failure> {
    let store = open(file)?;
    let check = store.check()?;
    let document = serde_json::to_value(&check).map_err(Failure::error)?;
    output.print(&with_schema("flashwise.store-check", document), |_| verdict(file, &check))?;
    Ok(if check.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(ERROR) })
}

fn verdict(file: &Path, check: &Check) -> String {
    let Check { keyspaces, keys, pages, damage, unlisted } = check;
    let counts = format!("keyspaces {keyspaces}, keys {keys}, pages in use {pages}");
    if check.is_sound() {
        return format!("{}: sound; {counts}\n", file.display());
    }
    let mut text = format!("{}: damaged in {} places; {counts}\n", file.display(), damage.len() as u64 + unlisted);
    damage.iter().for_each(|place| text += &format!("  {}\n", shown::line(place)));
    text
}

fn dump(file: &Path, dump: &Path, output: &Output) -> Result<(), Failure> {
    let store = open(file)?;
    let entries = create_as(file, dump, |new| Ok(store.backup(&mut BufWriter::new(new))?))?;
    let document = with_schema("flashwise.store-dump", json!({ "entries": entries }));
    output.print(&document, |_| format!("{}: {entries} entries of {}\n", dump.display(), file.display()))
}

fn restore(dump: &Path, file: &Path, options: &StoreOptions, output: &Output) -> Result<(), Failure> {
    let source = open_regular(dump).map_err(|error| Failure::file(dump, &error))?;
    // Under a temporary name until it is complete: a damaged dump or Ctrl-C leaves no store with a part of the entries.
    let entries = create_from(dump, file, |new| {
        let store = Store::open(new, options)?;
        let entries = store.restore(&mut BufReader::new(source))?;
        store.close()?;
        Ok(entries)
    })?;
    let document = with_schema("flashwise.store-restore", json!({ "entries": entries }));
    output.print(&document, |_| format!("{}: {entries} entries of {}\n", file.display(), dump.display()))
}

/// Properties, one per line.
fn lines(info: &StoreInfo) -> String {
    let fill = info.bucket_fill.map(|fill| ("fill of buckets", format!("{fill} %")));
    let rows = [
        ("engine", info.engine.to_string()),
        ("format version", info.version.to_string()),
        ("page size", info.page.to_string()),
        ("segment size", info.segment.to_string()),
        ("log", format!("{}, {}", info.log, if info.is_packed { "packed" } else { "sparse" })),
        ("openings", info.openings.to_string()),
        ("commits up to the last checkpoint", info.last_commit.to_string()),
        ("superblock", if info.damaged_copies == 0 { "both copies good" } else { "one copy damaged" }.to_owned()),
    ];
    rows.into_iter().chain(fill).map(|(key, value)| format!("{key:<34} {value}\n")).collect()
}

/// A shell's state.
struct Shell {
    store: Store,
    keyspace: Keyspace,
}

/// Reads commands until the input ends.
fn shell(file: &Path, engine: Option<Engine>, output: &Output) -> Result<(), Failure> {
    refuse_special_file(file)?;
    let store = Store::open(file, &new_store(engine.unwrap_or_default()))?;
    if let Some(wanted) = engine.filter(|wanted| *wanted != store.engine()) {
        let (file, found) = (file.display(), store.engine());
        return Err(Failure::refused(format!(
            "{file}: its engine is the {found}, not the {wanted}; `flashwise store dump` and `restore` make a store \
             with another one"
        )));
    }
    let mut shell = Shell { keyspace: store.keyspace("default")?, store };
    let mut input = std::io::stdin().lock();
    while let Some(line) = next_line(&mut input)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let command = std::str::from_utf8(&line).map_err(|_| Failure::usage("the command is not UTF-8 text"));
        let answer = command.and_then(|command| shell.execute(command.trim()));
        let (text, document) = match answer {
            // A name with a line end in it stays on its line.
            Ok(lines) => {
                let shown: Vec<_> = lines.iter().map(|line| shown::line(line)).collect();
                (shown.join("\n"), json!({ "lines": lines }))
            }
            Err(failure) => (format!("error: {}", shown::line(&failure.message)), json!({ "error": failure.message })),
        };
        let document = with_schema("flashwise.store-kv", document);
        if !output.print_look(&document, |_| Printed::from(text))? {
            break;
        }
    }
    let Shell { store, keyspace } = shell;
    drop(keyspace);
    Ok(store.close()?)
}

/// The next line of the input; `None` at its end.
fn next_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    let read = input.take(LINE_MAX.0 + 1).read_until(b'\n', &mut line);
    let read = read.map_err(|error| Failure::file("stdin".as_ref(), &error))?;
    if read as u64 > LINE_MAX.0 {
        return Err(Failure::error(format!(
            "stdin: a line is longer than {LINE_MAX}; the commands before it are done"
        )));
    }
    Ok((read > 0).then_some(line))
}

fn entry(key: &[u8], value: &[u8]) -> String {
    format!("{} {}", key.escape_ascii(), value.escape_ascii())
}

impl Shell {
    /// Runs one command; returns the lines of its result.
    fn execute(&mut self, line: &str) -> Result<Vec<String>, Failure> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let done = || Ok(vec!["ok".to_owned()]);
        match (command, rest) {
            ("put", rest) if rest.contains(char::is_whitespace) => {
                let (key, value) = rest.split_once(char::is_whitespace).unwrap_or_default();
                self.keyspace.put(key, value.trim())?;
                done()
            }
            ("get", key) if !key.is_empty() => Ok(vec![match self.keyspace.get(key)? {
                Some(value) => value.escape_ascii().to_string(),
                None => "no such key".to_owned(),
            }]),
            ("delete", key) if !key.is_empty() => {
                self.keyspace.delete(key)?;
                done()
            }
            ("scan", prefix) => {
                let entries =
                    if prefix.is_empty() { self.keyspace.entries()? } else { self.keyspace.prefix(prefix)? };
                entries.map(|found| found.map(|(key, value)| entry(&key, &value)).map_err(Failure::from)).collect()
            }
            ("use", name) if !name.is_empty() => {
                self.keyspace = self.store.keyspace(name)?;
                done()
            }
            ("keyspaces", "") => Ok(self.store.keyspaces()?),
            ("drop", name) if !name.is_empty() => {
                let existed = self.store.drop_keyspace(name)?;
                Ok(vec![if existed { "ok" } else { "no such keyspace" }.to_owned()])
            }
            ("stats", "") => Ok(self.statistics()),
            _ => Err(Failure::usage(
                "give put KEY VALUE, get KEY, delete KEY, scan [PREFIX], use KEYSPACE, keyspaces, drop KEYSPACE or stats",
            )),
        }
    }

    fn statistics(&self) -> Vec<String> {
        let stats = self.store.stats();
        let ratio = stats.host_write_amplification().map_or("-".to_owned(), |ratio| format!("{ratio:.1}"));
        vec![
            format!("user bytes {}", stats.user_bytes),
            format!("written per user byte {ratio}"),
            format!("log {}, images {}, deltas {}", stats.io.log_bytes, stats.io.image_bytes, stats.io.delta_bytes),
            format!("flushes {}", stats.io.flushes),
            format!("pages {} of {}", stats.pages, stats.page_bytes),
        ]
    }
}
