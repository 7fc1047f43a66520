//! What is packaged: the crates' manifests and archives, the files of continuous integration, what the program says of
//! itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The value of the first line `KEY = "VALUE"`.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let start = format!("{key} = \"");
    manifest.lines().find_map(|line| line.strip_prefix(&*start)?.split('"').next())
}

/// The names of the folders of `crates/`, sorted.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = folders.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every file with one of these endings below a folder that is not a link.
fn files_below(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path(), ending, found),
            false if entry.path().extension().is_some_and(|own| own == ending) => found.push(entry.path()),
            false => {}
        }
    }
}

#[test]
fn the_version_names_the_commit_and_the_features() {
    let place = Place::new();
    let long = place.run(&["--version"]).expect(0).stdout;
    let field = |name: &str| {
        long.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name} in {long}"))
    };
    let git = Command::new("git").arg("-C").arg(root()).args(["rev-parse", "HEAD"]).output();
    match git.ok().filter(|output| output.status.success() && root().join(".git").exists()) {
        Some(output) => assert_eq!(field("commit: "), &String::from_utf8_lossy(&output.stdout)[..12]),
        None => assert!(field("commit: ").starts_with("unknown"), "{long}"),
    }
    assert!(field("target: ").contains(std::env::consts::ARCH), "{long}");
    assert_eq!(field("SQLite: "), rusqlite::version());
    let features: Vec<&str> = field("features: ").split(", ").collect();
    for feature in ["io_uring", "fuse", "nbd", "sqlite-atomic-batch"] {
        assert!(features.contains(&feature), "{long}");
    }
    // Documents and man pages name the version alone.
    place.run(&["generate", "man", "man"]).expect(0);
    let page = place.read("man/flashwise.1");
    assert!(page.contains(env!("CARGO_PKG_VERSION")) && !page.contains("commit:"), "{page}");
}

/// The words of each command below one, from the page of commands, which a test compares with the help.
fn commands() -> Vec<Vec<String>> {
    let page = read("docs/reference/commands.md");
    let heads = page.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(" flashwise"));
    heads.map(|words| words.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn each_command_has_a_man_page_and_completions_in_every_shell() {
    let place = Place::new();
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    place.run(&["generate", "man", "man"]).expect(0);
    let pages: BTreeSet<String> = fs::read_dir(place.path("man"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected =
        commands.iter().map(|words| format!("{}.1", [&["flashwise".to_owned()], &words[..]].concat().join("-")));
    assert_eq!(pages, expected.collect::<BTreeSet<_>>());
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["generate", "completions", shell]).expect(0).stdout;
        for word in commands.iter().flatten() {
            assert!(script.contains(word.as_str()), "{shell}: {word}");
        }
    }
}

#[test]
fn each_crate_can_be_published_and_what_is_no_library_is_not() {
    let workspace = read("Cargo.toml");
    let version = value(&workspace, "version").unwrap();
    for name in crates() {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        assert!(!manifest.contains("publish = false"), "crates/{name}");
        assert!(value(&manifest, "description").is_some_and(|text| text.len() > 15), "crates/{name}");
        for key in ["version", "license", "readme", "keywords", "edition", "rust-version"] {
            assert!(manifest.contains(&format!("\n{key}.workspace = true\n")), "crates/{name} lacks {key}");
        }
        assert!(manifest.contains("\ncategories"), "crates/{name} lacks categories");
        let dependency = workspace.lines().find(|line| line.starts_with(&format!("flashwise-{name} = ")));
        // Nothing depends on the program.
        if name != "cli" {
            let dependency = dependency.unwrap_or_else(|| panic!("flashwise-{name} is no dependency of the workspace"));
            assert!(dependency.contains(&format!("version = \"{version}\"")), "{dependency}");
        }
    }
    for manifest in ["python/Cargo.toml", "benches/Cargo.toml"] {
        assert!(read(manifest).contains("\npublish = false\n"), "{manifest}");
    }
}

/// A path without its `..`, as it is written and not as links lead.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
        path
    })
}

/// Whether a source file is compiled for tests only: it is named so, or is below a module that is.
fn is_for_tests(crate_folder: &Path, source: &Path) -> bool {
    let library = fs::read_to_string(crate_folder.join("src/lib.rs")).unwrap_or_default();
    let inner = source.strip_prefix(crate_folder.join("src")).unwrap();
    let module = inner.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
    inner.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
        || library.contains(&format!("#[cfg(test)]\nmod {module};"))
}

/// A crate is built from its own package, which has its own folder alone.
#[test]
fn no_crate_includes_a_file_from_outside_its_folder() {
    let root = root();
    let mut seen = 0;
    for name in crates() {
        let folder = root.join("crates").join(&name);
        let mut sources = Vec::new();
        files_below(&folder.join("src"), "rs", &mut sources);
        for source in sources.iter().filter(|source| !is_for_tests(&folder, source)) {
            let text = fs::read_to_string(source).unwrap();
            let program = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            for (_, included) in ["include_str!(", "include_bytes!("]
                .iter()
                .flat_map(|it| program.match_indices(it))
                .map(|(at, it)| program[at + it.len()..].split_once('"').unwrap())
            {
                let path = included.split('"').next().unwrap();
                if path == "OUT_DIR" {
                    continue;
                }
                let whole = plain(&source.parent().unwrap().join(path));
                assert!(whole.starts_with(&folder), "{}: {path} is outside crates/{name}", source.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "{seen} included files");
}

#[test]
fn packages_contain_the_drives_the_licences_and_the_readme() {
    let list = |package: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["package", "--list", "--offline", "--allow-dirty", "--package", package])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let ssd = list("flashwise-ssd");
    for drive in fs::read_dir(root().join("devices")).unwrap() {
        let file = format!("devices/{}", drive.unwrap().file_name().to_str().unwrap());
        assert!(ssd.lines().any(|line| line == file), "{file} is not packaged:\n{ssd}");
    }
    let program = list("flashwise-cli");
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "Cargo.lock", "build.rs", "src/main.rs"] {
        assert!(program.lines().any(|line| line == file), "{file} is not packaged:\n{program}");
    }
    for name in crates() {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&format!("crates/{name}/{licence}")), read(licence), "crates/{name}");
        }
    }
}

/// The targets that the Makefile describes.
fn targets() -> BTreeSet<String> {
    let makefile = read("Makefile");
    let described = makefile.lines().filter(|line| line.contains(": ## ") && !line.starts_with('\t'));
    described.map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

#[test]
fn continuous_integration_runs_targets_of_make_and_nothing_else() {
    let targets = targets();
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(root().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().map(|line| line.trim().trim_start_matches("- ")) {
            if let Some(command) = line.strip_prefix("run:") {
                let target = command.trim().strip_prefix("make ").filter(|target| targets.contains(*target));
                seen.insert(target.unwrap_or_else(|| panic!("{}: {line}", path.display())).to_owned());
            }
            if let Some(action) = line.strip_prefix("uses:") {
                assert!(action.trim().starts_with("actions/"), "{}: {line}", path.display());
            }
        }
    }
    assert!(["run", "test", "docs"].iter().all(|target| seen.contains(*target)), "{seen:?}");
}

#[test]
fn each_target_of_make_is_phony() {
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap();
    assert_eq!(phony.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>(), targets());
}

#[test]
fn every_document_names_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("CITATION.cff").contains(&format!("\nversion: {version}\n")));
    assert!(read("CHANGELOG.md").contains(&format!(" {version}")));
    assert!(read("python/pyproject.toml").contains("dynamic = [\"version\"]"));
    for (page, text) in crate::documents::texts() {
        for (at, _) in text.match_indices("flashwise-0.").chain(text.match_indices("flashwise_0.")) {
            assert!(
                text[at + "flashwise-".len()..].starts_with(version),
                "{page}: {}",
                &text[at..].lines().next().unwrap()
            );
        }
    }
}
