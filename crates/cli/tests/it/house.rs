//! The crates' arrows go one way: a crate depends on those that stand above it in ARCHITECTURE's table.

use std::path::Path;

/// The crates in the order of the table: its rows begin with `crates/NAME`.
fn order(architecture: &str) -> Vec<&str> {
    let rows = architecture.lines().filter_map(|line| line.strip_prefix("| `crates/"));
    rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name).filter(|name| !name.contains('/')).collect()
}

/// The crates of the project that a manifest depends on, apart from those that only its tests need.
fn dependencies(manifest: &str) -> Vec<&str> {
    let (_, behind) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
    let section = behind.split("\n[").next().unwrap_or(behind);
    let names = section.lines().filter_map(|line| line.strip_prefix("flashwise-"));
    names.filter_map(|line| line.split(['.', ' ', '=']).next()).collect()
}

/// The files of this crate's program, with their text.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read_to_string(&path).unwrap(),
            ));
        }
    }
    found
}

/// What people are shown goes through `output.rs` and is escaped there. Nothing else writes to the two streams; traces
/// that go to standard output are data.
#[test]
fn only_one_file_writes_to_the_terminal() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(sources.len() > 30);
    let print = ["println!(", "print!(", "eprintln!(", "eprint!("];
    for (name, text) in &sources {
        for (number, line) in (1..).zip(text.lines()) {
            let writes = line.contains("write") && (line.contains("stderr()") || line.contains("stdout()"));
            let prints = print.iter().any(|name| line.contains(name));
            assert!(!(writes || prints) || name == "output.rs", "{name}:{number}: {line}: use crate::output");
        }
    }
}

/// Text that is printed without escaping control characters: JSON, which has escapes of its own, a script for a shell,
/// and the sequence that clears the screen.
#[test]
fn text_is_printed_unescaped_only_where_nothing_foreign_is_in_it() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let own = ["output.rs", "generate.rs", "device_stat.rs"];
    for (name, text) in &sources {
        assert!(!text.contains("Printed::own(") || own.contains(&name.as_str()), "{name}: use Printed::from");
    }
}

/// What the guide promises about users' data is kept by tests, which it names.
#[test]
fn each_promise_about_data_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/guide/your-data.md")).unwrap();
    let all: String = sources(&root.join("crates")).into_iter().map(|(_, text)| text).collect();
    let is_promise = |line: &&str| line.starts_with("| ") && !line.starts_with("| flashwise");
    let promises: Vec<&str> = page.lines().filter(is_promise).collect();
    assert!(promises.len() > 40, "{} promises", promises.len());
    for promise in promises {
        let tests = promise.trim_end_matches(" |").rsplit_once(" | ").unwrap().1;
        for test in tests.split(", ").map(|test| test.trim_matches('`')) {
            let stands = format!("fn {test}(");
            let (before, _) = all.split_once(&stands).unwrap_or_else(|| panic!("{promise}: there is no test {test}"));
            assert!(before.trim_end().ends_with("#[test]"), "{test} is no test");
        }
    }
}

#[test]
fn a_crate_depends_only_on_those_above_it_in_the_table_of_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let order = order(&architecture);
    let place = |name: &str| order.iter().position(|crate_| *crate_ == name);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for folder in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let Ok(manifest) = std::fs::read_to_string(folder.path().join("Cargo.toml")) else { continue };
        let own = place(&name).unwrap_or_else(|| panic!("ARCHITECTURE's table of crates lacks crates/{name}"));
        for dependency in dependencies(&manifest) {
            let at = place(dependency).unwrap_or_else(|| panic!("crates/{name}: no crate '{dependency}' in the table"));
            if at >= own {
                wrong.push(format!("crates/{name} depends on {dependency}, which stands below it"));
            }
        }
        seen += 1;
    }
    assert_eq!(seen, order.len(), "each row of the table is a crate");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A folder with a program `id` that reports this user, and nothing else.
#[test]
fn without_root_the_script_for_tools_says_what_is_missing() {
    use std::os::unix::fs::PermissionsExt;
    let programs = tempfile::tempdir().unwrap();
    let id = programs.path().join("id");
    std::fs::write(&id, "#!/bin/sh\necho 1000\n").unwrap();
    std::fs::set_permissions(&id, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/test-tools");
    let ended = std::process::Command::new("/bin/sh").arg(script).env("PATH", programs.path()).output().unwrap();
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success() && words.starts_with("test-tools: missing, and not installed without root"),
        "{words}"
    );
    assert!(words.contains(" fio ") && words.contains(" strace "), "{words}");
}
