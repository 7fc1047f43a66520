//! What README and book show is what happens: every console block is run, and the page of commands is what `--help`
//! prints.
//!
//! A block that starts with ```` ```console ```` is run by a shell, from an empty folder with the repository's
//! `examples/` in it and the program on the search path; the blocks of one page follow each other in one folder. A line
//! that starts with `$ ` is a command, a line that ends in a backslash goes on; the lines behind it are what it prints,
//! where `…` or `...` stands for any number of lines and `[..]` for any text within one. No lines: the output is not
//! compared. Exit codes 0, 3 (an audit found something) and 4 (inconclusive) are successes. Words behind a comma in the
//! block's first line:
//!
//! - `fails`: the last command ends with another code;
//! - `slow`: takes ten seconds of a core or more, and is run by `make test-full` alone;
//! - `ignore`: needs root, a real drive, a server or minutes, and is not run.
//!
//! `FLASHWISE_UPDATE=1 cargo test -p flashwise-cli --test it book::` writes outputs and the page of commands anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::support;
use support::Place;

/// Codes of a run that did what it was called for: done, violations found, inconclusive.
const SUCCESSES: [i32; 3] = [0, 3, 4];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn is_update() -> bool {
    std::env::var_os("FLASHWISE_UPDATE").is_some()
}

/// A command of a page, with where it and its output stand (numbers of lines, from 0).
#[derive(Debug)]
struct Shown {
    command: String,
    first_line: usize,
    output: std::ops::Range<usize>,
    fails: bool,
    is_slow: bool,
}

/// The commands of a page that are to be run, in their order.
fn shown(lines: &[&str]) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    let mut continues = false;
    for (at, line) in lines.iter().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            block = match block {
                None => Some(info.split(',').map(str::trim).collect()),
                Some(_) => None,
            };
            continues = false;
            continue;
        }
        let Some(words) = block.as_deref().filter(|words| words[0] == "console" && !words.contains(&"ignore")) else {
            continue;
        };
        let behind = at + 1..at + 1;
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => {
                let (fails, is_slow) = (words.contains(&"fails"), words.contains(&"slow"));
                commands.push(Shown { command: command.to_owned(), first_line: at, output: behind, fails, is_slow });
                continues = line.ends_with('\\');
            }
            (None, Some(last)) if continues => {
                write!(last.command, "\n{line}").unwrap();
                last.output = behind;
                continues = line.ends_with('\\');
            }
            (None, Some(last)) if last.output.end == at => last.output.end = at + 1,
            _ => panic!("line {}: output without a command: {line}", at + 1),
        }
    }
    commands
}

/// Whether a line is what is expected, `[..]` standing for any text.
fn is_line(expected: &str, line: &str) -> bool {
    let mut parts = expected.split("[..]");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether a line of a page stands for any number of lines.
fn is_cut(line: &str) -> bool {
    matches!(line, "..." | "…")
}

/// Whether an output is what is expected: the pieces between cuts follow each other, each as early as it can.
fn is_output(expected: &[&str], lines: &[&str]) -> bool {
    let is_here = |piece: &[&str], lines: &[&str]| piece.iter().zip(lines).all(|(shown, line)| is_line(shown, line));
    let pieces: Vec<&[&str]> = expected.split(|line| is_cut(line)).collect();
    let (first, rest) = pieces.split_first().expect("a split gives one piece at least");
    if first.len() > lines.len() || !is_here(first, lines) {
        return false;
    }
    let Some((last, middle)) = rest.split_last() else { return first.len() == lines.len() };
    let mut lines = &lines[first.len()..];
    for piece in middle {
        let Some(at) = (0..=lines.len().saturating_sub(piece.len()))
            .find(|&at| piece.len() <= lines.len() && is_here(piece, &lines[at..]))
        else {
            return false;
        };
        lines = &lines[at + piece.len()..];
    }
    last.len() <= lines.len() && is_here(last, &lines[lines.len() - last.len()..])
}

/// How many words two pieces of text have in common, line by line.
fn likeness(shown: &[&str], lines: &[&str]) -> usize {
    let common = |(shown, line): (&&str, &&str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        shown.split_whitespace().filter(|word| words.contains(word)).count()
    };
    shown.iter().zip(lines).map(common).sum()
}

/// The output written as a page shows it. Between two cuts stand the lines that are most like those of before.
fn as_shown(expected: &[&str], lines: &[&str]) -> Vec<String> {
    let pieces: Vec<&[&str]> = expected.split(|line| is_cut(line)).collect();
    let [first, middle @ .., last] = &pieces[..] else { return lines.iter().map(|&line| line.to_owned()).collect() };
    let cut = expected.iter().find(|line| is_cut(line)).copied().unwrap_or("…");
    let end = lines.len().saturating_sub(last.len());
    let mut from = first.len().min(end);
    let mut new = lines[..from].to_vec();
    for piece in middle {
        let like = |at: &usize| (likeness(piece, &lines[*at..]), std::cmp::Reverse(*at));
        let best = (from..=end.saturating_sub(piece.len()).max(from)).max_by_key(like).unwrap_or(from);
        let behind = (best + piece.len()).min(end);
        new.push(cut);
        new.extend(&lines[best..behind]);
        from = behind;
    }
    new.push(cut);
    new.extend(&lines[end..]);
    new.into_iter().map(str::to_owned).collect()
}

/// Runs a command as its reader would; what it printed, and its exit code.
fn run(place: &Place, command: &str) -> (String, i32) {
    let program = cargo_bin!("flashwise");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let ended = Command::new("bash")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(place.path(""))
        .env("PATH", path)
        .env("COLUMNS", "80")
        .env("TMPDIR", place.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8(ended.stdout).unwrap(), ended.status.code().unwrap_or(-1))
}

/// Runs the commands of a page; what differs, and the page with the outputs of now.
fn tried(page: &Path, with_slow: bool) -> (Vec<String>, String) {
    let text = fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let place = Place::new();
    let examples = root().join("examples");
    let copied = Command::new("cp").arg("-r").args([&examples, &place.path("examples")]).status().unwrap();
    assert!(copied.success());
    let mut differing = Vec::new();
    let mut new: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    for shown in shown(&lines).iter().filter(|shown| with_slow || !shown.is_slow) {
        let (output, code) = run(&place, &shown.command);
        let at = format!("{}:{}: $ {}", page.display(), shown.first_line + 1, shown.command);
        if SUCCESSES.contains(&code) == shown.fails {
            differing.push(format!("{at}\nends with code {code}:\n{output}"));
            continue;
        }
        let expected: Vec<&str> = lines[shown.output.clone()].iter().map(|line| line.trim_end()).collect();
        let printed: Vec<&str> = output.lines().map(str::trim_end).collect();
        if !expected.is_empty() && !is_output(&expected, &printed) {
            let now = as_shown(&expected, &printed);
            differing.push(format!("{at}\nprints:\n{output}"));
            new[shown.output.start] = now.join("\n");
            new[shown.output.start + 1..shown.output.end].fill("\0".to_owned());
        }
    }
    new.retain(|line| line != "\0");
    (differing, new.join("\n") + "\n")
}

/// Tries pages, on as many threads as there are cores.
fn try_pages(pages: &[PathBuf], with_slow: bool) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let differing = std::sync::Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(page) = pages.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let (found, new) = tried(page, with_slow);
                    if is_update() && !found.is_empty() {
                        fs::write(page, new).unwrap();
                    }
                    differing.lock().unwrap().extend(found);
                }
            });
        }
    });
    let differing = differing.into_inner().unwrap();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

fn pages_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => pages_below(&entry.path(), found),
            false if entry.path().extension().is_some_and(|ending| ending == "md") => found.push(entry.path()),
            false => {}
        }
    }
}

/// README and the book's pages, sorted.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    pages_below(&root().join("docs"), &mut pages);
    pages.sort();
    pages
}

#[test]
fn every_command_of_readme_and_book_runs_and_prints_what_the_page_shows() {
    let pages = pages();
    assert!(pages.len() > 20, "{pages:?}");
    try_pages(&pages, false);
}

#[test]
#[ignore = "takes minutes"]
fn slow_commands_of_readme_and_book_run_too() {
    let is_slow = |page: &PathBuf| fs::read_to_string(page).unwrap().contains("```console,slow");
    let pages: Vec<PathBuf> = pages().into_iter().filter(is_slow).collect();
    assert!(!pages.is_empty());
    try_pages(&pages, true);
}

#[test]
fn a_command_with_a_prompt_of_root_is_marked_as_not_run() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for shown in shown(&lines) {
            let is_root = shown.output.clone().any(|at| lines[at].starts_with("# "));
            assert!(!is_root, "{}:{}: a command of root's in a block that is run", page.display(), shown.first_line);
        }
    }
}

/// The names of the commands below a command, from its help.
fn below(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next()).filter(|&name| name != "help");
    names.map(str::to_owned).collect()
}

fn describe(place: &Place, command: &[String], page: &mut String) {
    let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let help = place.run(&arguments).expect(0).stdout;
    let name = [&["flashwise".to_owned()], command].concat().join(" ");
    let text: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(page, "\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(command.len().min(2) + 2), text.join("\n").trim_end())
        .unwrap();
    for verb in below(&help) {
        describe(place, &[command, &[verb]].concat(), page);
    }
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    let mut new =
        "# Commands\n\nEvery command with its options, as `--help` prints them. This page is generated.\n".to_owned();
    describe(&Place::new(), &[], &mut new);
    let path = root().join("docs/reference/commands.md");
    if is_update() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &new).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(new.contains("flashwise trace convert") && new.contains("flashwise fit sqlite"), "{new}");
    assert!(page == new, "docs/reference/commands.md differs from --help: FLASHWISE_UPDATE=1 writes it anew");
}

#[test]
fn wildcards_stand_for_lines_and_for_text() {
    assert!(is_output(&["a", "...", "z"], &["a", "b", "c", "z"]));
    assert!(is_output(&["..."], &[]));
    assert!(!is_output(&["a", "z"], &["a", "b", "z"]));
    assert!(is_line("took [..] s, [..] reads", "took 1.5 s, 20 reads"));
    assert!(!is_line("took [..] s", "took 1.5 ms"));
    assert!(!is_line("all", "all of it"));
    assert!(is_output(&["a", "…", "c", "…", "c", "e"], &["a", "b", "c", "d", "c", "c", "e"]));
    assert!(!is_output(&["a", "…", "c", "…", "c", "e"], &["a", "b", "c", "e"]));
    assert!(!is_output(&["a", "…", "a"], &["a"]));
    assert_eq!(as_shown(&["x", "...", "y"], &["a", "b", "c"]), ["a", "...", "c"]);
    assert_eq!(as_shown(&["…", "k 1", "…"], &["a", "j 2", "k 2", "z"]), ["…", "k 2", "…"]);
    let apply = ["because  b", "apply  set x = 1", "undo   set x = 0"];
    assert_eq!(as_shown(&["…", "do   set x = 1", "…"], &apply), ["…", "apply  set x = 1", "…"]);
}
