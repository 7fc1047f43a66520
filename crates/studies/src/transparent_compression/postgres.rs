//! Pages of a real PostgreSQL, where one is installed: heaps loaded `WITH (fillfactor = N)`.
//!
//! ```text
//!   initdb ─▶ postgres --single: CREATE TABLE … WITH (fillfactor = N), COPY, CHECKPOINT ─▶ the heap's file
//! ```
//!
//! Single-user mode opens no port and no socket, and ends with its input. All is in a directory for temporary files and
//! goes with it. PostgreSQL refuses to run as root; there it is run as `nobody`.

use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::place::Place;
use super::rows::{Content, DISTRICTS, Row, Rows};

/// `nobody`, and its group.
const NOBODY: u32 = 65_534;

/// A cluster of tables.
pub(super) struct Postgres {
    /// What it says of its version.
    pub(super) version: String,
    programs: PathBuf,
    place: Place,
    is_root: bool,
}

impl Postgres {
    /// Makes a cluster; why there is none, if there is none.
    pub(super) fn new() -> Result<Self, String> {
        let programs = find().ok_or("no PostgreSQL is installed")?;
        let place = Place::new().map_err(|error| error.to_string())?;
        let mut this = Self { version: String::new(), programs, place, is_root: false };
        this.set_up().map_err(|error| error.to_string())?;
        Ok(this)
    }

    fn set_up(&mut self) -> io::Result<()> {
        self.is_root = std::fs::metadata("/proc/self")?.uid() == 0;
        if self.is_root {
            chown(self.place.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let mut ask = self.program("postgres");
        self.version = String::from_utf8_lossy(&output(ask.arg("--version"), "")?).trim().to_owned();
        let mut initdb = self.program("initdb");
        initdb.arg("-D").arg(self.data()).args("-A trust -U postgres --no-sync -E UTF8 --locale=C".split(' '));
        output(&mut initdb, "").map(|_| ())
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.place.path()).env("LC_ALL", "C").env("TZ", "UTC");
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// The heaps of one table by fill factor, as they are on disk behind a checkpoint.
    #[allow(clippy::disallowed_methods, reason = "a file of a directory of the study's own")]
    pub(super) fn images(&self, content: Content, rows: u32, fills: &[u32], seed: u64) -> io::Result<Vec<Vec<u8>>> {
        let source = self.place.path().join("rows");
        let lines: String = Rows::new(content, seed).take(rows as usize).map(|row| line(&row)).collect();
        std::fs::write(&source, lines)?;
        let mut sql = String::new();
        for fill in fills {
            sql += &format!("CREATE TABLE s{fill} ({COLUMNS}, {}, {COUNTS}) WITH (fillfactor = {fill})\n", districts());
            sql += &format!("COPY s{fill} FROM '{}'\nSELECT pg_relation_filepath('s{fill}')\n", source.display());
        }
        sql += "CHECKPOINT\n";
        let told = self.single(&sql)?;
        let paths = told.lines().filter_map(|line| line.split_once("pg_relation_filepath = \"")?.1.split_once('"'));
        let images = paths.map(|(path, _)| std::fs::read(self.data().join(path))).collect::<io::Result<Vec<_>>>()?;
        self.single(&fills.iter().map(|fill| format!("DROP TABLE s{fill}\n")).collect::<String>())?;
        match images.len() == fills.len() && images.iter().all(|image| !image.is_empty()) {
            true => Ok(images),
            false => Err(io::Error::other(format!("PostgreSQL loaded {} of {} tables", images.len(), fills.len()))),
        }
    }

    /// Commands, one a line.
    fn single(&self, sql: &str) -> io::Result<String> {
        let mut command = self.program("postgres");
        command.arg("--single").arg("-D").arg(self.data()).args("-c fsync=off -c autovacuum=off postgres".split(' '));
        Ok(String::from_utf8_lossy(&output(&mut command, sql)?).into_owned())
    }
}

const COLUMNS: &str = "i integer, w integer, q integer";
const COUNTS: &str = "y integer, o integer, r integer, data varchar(50)";

fn districts() -> String {
    (1..=DISTRICTS).map(|n| format!("d{n} char(24)")).collect::<Vec<_>>().join(", ")
}

/// A row in the format of `COPY`.
fn line(row: &Row) -> String {
    let Row { item, warehouse, quantity, year_to_date, orders, remote, data, .. } = row;
    let districts = row.districts.join("\t");
    format!("{item}\t{warehouse}\t{quantity}\t{districts}\t{year_to_date}\t{orders}\t{remote}\t{data}\n")
}

/// Runs a program to its end; what it says, or its complaint.
fn output(command: &mut Command, input: &str) -> io::Result<Vec<u8>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early has told why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let failed = complaint.lines().find(|line| line.contains("ERROR:") || line.contains("FATAL:"));
    match (output.status.success(), failed) {
        (true, None) => Ok(output.stdout),
        (_, Some(line)) => Err(io::Error::other(line.to_owned())),
        (false, None) => {
            Err(io::Error::other(complaint.lines().last().unwrap_or("it failed without an error message").to_owned()))
        }
    }
}

/// The folder of the newest installed version's programs.
fn find() -> Option<PathBuf> {
    let has_programs = |path: &Path| path.join("initdb").is_file() && path.join("postgres").is_file();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut packaged: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    packaged.sort_by_key(|path| std::cmp::Reverse(version(path)));
    let in_path = std::env::var_os("PATH").into_iter().flat_map(|all| std::env::split_paths(&all).collect::<Vec<_>>());
    packaged.into_iter().map(|path| path.join("bin")).chain(in_path).find(|path| has_programs(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_with_a_fill_factor_has_the_same_rows_on_more_pages() {
        let postgres = match Postgres::new() {
            Ok(postgres) => postgres,
            // Where it is installed it must run.
            Err(_) if find().is_none() => return,
            Err(why) => panic!("{why}"),
        };
        let images = postgres.images(Content::Words, 1_000, &[100, 50], 1).unwrap();
        let pages: Vec<usize> = images.iter().map(|image| image.len() / 8192).collect();
        // A row needs about 330 bytes: 24 to a page, or 12.
        assert!((40..=46).contains(&pages[0]) && (80..=92).contains(&pages[1]), "{pages:?}");
        for row in Rows::new(Content::Words, 1).take(1_000) {
            let text = &row.data;
            assert!(images.iter().all(|image| image.windows(text.len()).any(|bytes| bytes == text.as_bytes())));
        }
        let place = postgres.place.path().to_owned();
        drop(postgres);
        assert!(!place.exists());
    }
}
