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
    for (package, folder) in [("flashwise-ssd", "devices"), ("flashwise-volume", "devices/cloud")] {
        let packaged = list(package);
        for preset in fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap) {
            if preset.file_type().unwrap().is_file() {
                let file = format!("devices/{}", preset.file_name().to_str().unwrap());
                assert!(packaged.lines().any(|line| line == file), "{file} is not packaged:\n{packaged}");
            }
        }
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
    assert!(["run", "test", "docs", "dist", "dist-test"].iter().all(|target| seen.contains(*target)), "{seen:?}");
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

/// A script of `scripts/`, with arguments.
fn script(name: &str, arguments: &[&str]) -> std::process::Output {
    Command::new(root().join("scripts").join(name)).args(arguments).env("SOURCE_DATE_EPOCH", "1").output().unwrap()
}

#[test]
fn the_newest_glibc_that_a_file_needs_is_found_by_number_and_not_by_letters() {
    let place = Place::new();
    place.write("program", "\x7fELF\0GLIBC_2.9\0GLIBC_2.17\0GLIBC_PRIVATE\0GLIBC_2.2.5\0");
    place.write("text", "no program");
    let program = place.path("program").display().to_string();
    let needed = script("glibc-needed", &["2.17", &program]);
    assert!(needed.status.success());
    assert_eq!(String::from_utf8_lossy(&needed.stdout), "2.17\n");
    let newer = script("glibc-needed", &["2.16", &program]);
    assert!(!newer.status.success() && String::from_utf8_lossy(&newer.stderr).contains("need glibc 2.17"));
    assert!(!script("glibc-needed", &["2.17", &place.path("text").display().to_string()]).status.success());
}

#[test]
fn an_image_is_an_oci_layout_in_which_each_digest_and_size_is_right_and_the_same_each_time() {
    let place = Place::new();
    fs::create_dir_all(place.path("root/usr/bin")).unwrap();
    place.write("root/usr/bin/flashwise", "a program");
    let path = |name: &str| place.path(name).display().to_string();
    for image in ["one.tar", "two.tar"] {
        let packed = script("oci-image", &[&path("root"), &path(image), "flashwise:1.2.3", "/usr/bin/flashwise"]);
        assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    }
    assert_eq!(fs::read(place.path("one.tar")).unwrap(), fs::read(place.path("two.tar")).unwrap());
    fs::create_dir(place.path("layout")).unwrap();
    let unpack = |archive: &str, folder: &str| {
        assert!(Command::new("tar").args(["-xf", archive, "-C", folder]).status().unwrap().success());
    };
    unpack(&path("one.tar"), &path("layout"));
    let blobs = place.path("layout/blobs/sha256");
    let sum = |path: &Path| {
        let output = Command::new("sha256sum").arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
    };
    for blob in fs::read_dir(&blobs).unwrap().map(Result::unwrap) {
        assert_eq!(blob.file_name().to_str().unwrap(), sum(&blob.path()));
    }
    let json = |path: &Path| -> serde_json::Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    // The blob that a descriptor names, of the size that it gives.
    let named = |descriptor: &serde_json::Value| {
        let path = blobs.join(descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().len(), descriptor["size"], "{descriptor}");
        path
    };
    assert_eq!(json(&place.path("layout/oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(&place.path("layout/index.json"));
    assert_eq!(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
    let manifest = json(&named(&index["manifests"][0]));
    let (config, layer) = (json(&named(&manifest["config"])), named(&manifest["layers"][0]));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/flashwise");
    let whole = Command::new("gzip").arg("-dc").arg(&layer).output().unwrap().stdout;
    fs::write(place.path("layer.tar"), whole).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sum(&place.path("layer.tar"))));
    fs::create_dir(place.path("again")).unwrap();
    unpack(&path("layer.tar"), &path("again"));
    assert_eq!(place.read("again/usr/bin/flashwise"), "a program");
    // What docker read before it knew the layout names the same blobs.
    let docker = json(&place.path("layout/manifest.json"));
    assert_eq!(docker[0]["RepoTags"][0], "flashwise:1.2.3");
    assert!(place.path("layout").join(docker[0]["Layers"][0].as_str().unwrap()).exists());
    assert!(place.path("layout").join(docker[0]["Config"].as_str().unwrap()).exists());
}

#[test]
fn the_debian_package_takes_each_folder_of_the_archive() {
    let manifest = read("crates/cli/Cargo.toml");
    let script = read("scripts/dist") + &read("scripts/shared-files");
    let assets: Vec<&str> =
        manifest.lines().filter_map(|line| line.trim().strip_prefix("[\"../../target/dist-tree/flashwise/")).collect();
    for folder in [
        "bin/flashwise",
        "lib/flashwise/",
        "share/man/man1/",
        "share/bash-completion/completions/",
        "share/zsh/site-functions/",
        "share/fish/vendor_completions.d/",
        "share/doc/flashwise/",
    ] {
        assert!(assets.iter().any(|asset| asset.starts_with(folder)), "{folder} is not in {assets:?}");
        assert!(script.contains(folder.trim_end_matches('/')), "{folder}");
    }
    assert_eq!(assets.iter().filter(|asset| !asset.starts_with("share/doc")).count(), 6, "{assets:?}");
    let oldest = read("scripts/dist");
    let oldest = oldest.lines().find_map(|line| line.strip_prefix("oldest=")).unwrap();
    assert!(manifest.contains(&format!("depends = \"libc6 (>= {oldest})\"")), "{oldest}");
}

/// What the page of supported systems says is what the scripts test.
#[test]
fn the_supported_systems_are_those_that_the_scripts_test() {
    let page = read("docs/guide/supported-systems.md");
    let row = |name: &str| {
        let found = page.lines().find(|line| line.starts_with(&format!("| {name}")));
        found.unwrap_or_else(|| panic!("no row '{name}'")).to_owned()
    };
    let script = read("scripts/postgres-versions");
    let versions = script.lines().find_map(|line| line.strip_prefix("for version in ")?.split(';').next()).unwrap();
    let majors: Vec<&str> = versions.split_whitespace().map(|version| version.split('.').next().unwrap()).collect();
    assert!(row("PostgreSQL, for `fit`").contains(&format!("| {}: ", majors.join(", "))), "{majors:?}");
    let test = read("scripts/dist-test");
    for suite in test.lines().filter_map(|line| line.trim().strip_prefix("for suite in ")) {
        for suite in suite.split(';').next().unwrap().split_whitespace() {
            assert!(row("glibc").contains(&format!("`{suite}`")), "{suite}");
        }
    }
    let dist = read("scripts/dist");
    let oldest = dist.lines().find_map(|line| line.strip_prefix("oldest=")).unwrap();
    assert!(row("glibc").contains(&format!("| {oldest} or later")), "{oldest}");
    let rust = read("Cargo.toml");
    let rust = value(&rust, "rust-version").unwrap();
    assert!(row("Rust").contains(&format!("| {rust} or later")), "{rust}");
    let python = read("python/pyproject.toml");
    let python = value(&python, "requires-python").unwrap().trim_start_matches(">=").to_owned();
    assert!(row("CPython").contains(&format!("| {python} or later")), "{python}");
    let mariadb = read("crates/tune/src/mariadb/mod.rs");
    assert!(mariadb.contains("MariaDB 10.6 to 12.3, of which 10.11 is tested"));
    assert!(row("MariaDB").contains("10.6 to 12.3") && row("MariaDB").contains("10.11"));
}

#[test]
fn the_readme_is_short_and_the_page_of_installing_has_each_of_its_ways_with_its_removal() {
    let readme = read("README.md");
    let words = readme.split_whitespace().count();
    assert!(words <= 1000, "{words} words");
    let page = read("docs/guide/install.md");
    let (_, ways) = readme.split_once("## Install\n").unwrap();
    let ways: Vec<&str> = ways.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
    assert_eq!(ways.len(), 5, "{ways:?}");
    for way in ways {
        // The file or the target that the command names, without what only the page spells out.
        let command = way.split('`').nth(1).unwrap();
        let named = command.split_whitespace().find(|word| word.contains("flashwise") || *word == "install").unwrap();
        assert!(page.contains(named.trim_start_matches("./").split('*').next().unwrap()), "{command}");
    }
    for removal in
        ["apt purge flashwise", "rm -r flashwise-", "docker rmi flashwise", "pip uninstall flashwise", "make uninstall"]
    {
        assert!(page.contains(removal), "{removal}");
    }
}

/// The build script alone, as cargo calls it, for a crate in different places.
#[test]
fn the_commit_is_that_of_the_crates_own_repository_or_of_its_package_and_never_of_another_one() {
    let place = Place::new();
    let script = place.path("script");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc).args(["--edition", "2024", "-o"]).arg(&script).arg(&source).status().unwrap();
    assert!(built.success());
    let lines = |crate_folder: &str| -> Vec<String> {
        let folder = place.path(crate_folder);
        let output = Command::new(&script).env("CARGO_MANIFEST_DIR", folder).env("TARGET", "t").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let commit = |crate_folder: &str| {
        let lines = lines(crate_folder);
        let line = lines.iter().find_map(|line| line.strip_prefix("cargo::rustc-env=FLASHWISE_COMMIT="));
        line.unwrap_or_else(|| panic!("{lines:?}")).to_owned()
    };
    let git = |arguments: &[&str]| {
        let named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let output =
            Command::new("git").arg("-C").arg(place.path("ours")).args(named).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    for folder in ["ours/crates/cli", "ours/vendor/a/b/cli", "package/cli"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    if Command::new("git").arg("--version").output().is_err() {
        return eprintln!("git is not installed: not tested");
    }
    git(&["init", "--quiet"]);
    assert_eq!(commit("ours/crates/cli"), "", "no commit yet");
    for message in ["one", "two"] {
        git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        assert_eq!(commit("ours/crates/cli"), git(&["rev-parse", "HEAD"])[..12]);
    }
    // Cargo runs the script each time if it watches what does not exist.
    let watched = |lines: &[String]| -> Vec<PathBuf> {
        let named = lines.iter().filter_map(|line| line.strip_prefix("cargo::rerun-if-changed=").map(PathBuf::from));
        named.filter(|path| path.is_absolute()).collect()
    };
    let loose = watched(&lines("ours/crates/cli"));
    assert!(loose.iter().any(|path| path.ends_with("refs/heads/main")), "{loose:?}");
    git(&["pack-refs", "--all"]);
    let packed = watched(&lines("ours/crates/cli"));
    assert!(packed.iter().any(|path| path.ends_with("packed-refs")), "{packed:?}");
    assert!(loose.iter().chain(&packed).filter(|path| !path.ends_with("refs/heads/main")).all(|path| path.exists()));
    assert!(packed.iter().all(|path| path.exists()), "{packed:?}");
    assert_eq!(commit("ours/vendor/a/b/cli"), "", "another's repository");
    assert_eq!(commit("package/cli"), "");
    let info = "{\n  \"git\": {\n    \"sha1\": \"0123456789abcdef0123456789abcdef01234567\"\n  }\n}\n";
    place.write("ours/vendor/a/b/cli/.cargo_vcs_info.json", info);
    assert_eq!(commit("ours/vendor/a/b/cli"), "0123456789ab");
}

/// What is released is put where cargo builds nothing, and is what continuous integration keeps.
#[test]
fn the_folder_of_what_is_released_is_none_of_cargos() {
    let script = read("scripts/dist");
    let folder = script.lines().find_map(|line| line.strip_prefix("dist=")).unwrap();
    let name = folder.strip_prefix("target/").unwrap();
    assert!(!read("Cargo.toml").contains(&format!("[profile.{name}]")), "cargo's own folder: {folder}");
    assert!(!["debug", "release", "doc", "package", "tmp", "tools"].contains(&name), "{folder}");
    assert!(read(".github/workflows/release.yml").contains(&format!("path: {folder}/*\n")), "{folder}");
    assert!(read("scripts/dist-test").contains(&format!("dist=$here/{folder}\n")), "{folder}");
}
