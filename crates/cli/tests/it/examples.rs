//! What `examples/` holds does what its README says.

use crate::support;
use std::path::PathBuf;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use support::{Ended, Place};

/// All of them: what is new here belongs into a test below.
const EXAMPLES: [&str; 16] = [
    "README.md",
    "caching.toml",
    "compressing.toml",
    "depths.toml",
    "fit-a-database.sh",
    "mix.toml",
    "my-drive.toml",
    // Run by the Python package's tests.
    "notebooks",
    "own-policy",
    "queries.sql",
    "raid.toml",
    "shop-on-gp3.toml",
    "shop-statements.sql",
    "shop.sql",
    "trace.csv",
    "two-volumes.toml",
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().unwrap()
}

fn example(name: &str) -> String {
    directory().join(name).into_os_string().into_string().unwrap()
}

#[test]
fn no_file_is_there_that_these_tests_do_not_know() {
    let entries = std::fs::read_dir(directory()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, EXAMPLES);
}

#[test]
fn each_drive_is_one() {
    for name in ["my-drive.toml", "compressing.toml", "caching.toml", "raid.toml", "two-volumes.toml"] {
        Place::new().run(&["device", "check", &example(name)]).expect(0);
    }
}

#[test]
fn what_its_readme_shows_of_a_drive_of_one_s_own_is_what_is_learned() {
    let readme = std::fs::read_to_string(example("README.md")).unwrap();
    let shown = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(shown.lines().count() >= 5, "{shown}");
    let told = Place::new().run(&["learn", &format!("sim:{}", example("my-drive.toml"))]).expect(0).stdout;
    for line in shown.lines() {
        assert!(told.lines().any(|one| one.trim_end() == line.trim_end()), "{line}\n{told}");
    }
    // What it says of a drive whose buffer survives.
    let place = Place::new();
    let text = std::fs::read_to_string(example("my-drive.toml")).unwrap();
    let hiding = text.replace("power_loss_protection = false", "power_loss_protection = true");
    assert_ne!(hiding, text, "the key is there to be changed");
    place.write("hiding.toml", &hiding);
    let told = place.run(&["learn", "sim:hiding.toml"]).expect(4).stdout;
    let of = |name: &str| told.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(of("write unit").contains(" 4 KiB "), "{told}");
    assert!(of("stripe").ends_with("inconclusive"), "{told}");
}

#[test]
fn an_array_goes_on_when_a_member_fails() {
    let work = ["--rw", "randwrite", "--bs", "4k", "--iodepth", "32", "--requests", "20000", "--precondition", "fill"];
    let array = example("raid.toml");
    let run = [&["simulate", &array][..], &work, &["--fail", "3@250ms", "-o", "json"]].concat();
    let document = Place::new().run(&run).expect(0).document();
    assert_eq!(document["total"]["requests"], 20_000);
}

#[test]
fn two_volumes_together_get_what_their_instance_allows() {
    let work = ["--rw", "randread", "--bs", "16k", "--iodepth", "64", "--requests", "30000", "-o", "json"];
    let document =
        Place::new().run(&[&["simulate", &example("two-volumes.toml")][..], &work].concat()).expect(0).document();
    let per_s = document["total"]["iops"].as_f64().unwrap();
    assert!((3_550.0..3_650.0).contains(&per_s), "{per_s}");
}

#[test]
fn a_trace_with_violations_is_audited() {
    let place = Place::with_profile();
    place.run(&["audit", &example("trace.csv"), "--profile", "p.toml"]).expect(3);
}

#[test]
fn a_workload_is_simulated_and_a_grid_over_it() {
    let place = Place::new();
    let simulated =
        place.run(&["simulate", "samsung-960-evo", &example("mix.toml"), "-o", "json"]).expect(0).document();
    assert_eq!(simulated["total"]["requests"], 202_000);
    // A quarter of the grid: each of its cells fills a drive of 500 GB.
    let text = std::fs::read_to_string(example("depths.toml")).unwrap();
    let short = text.replace("[1, 4, 16, 64]", "[4]");
    assert_ne!(short, text);
    place.write("depths.toml", &short);
    std::fs::copy(example("mix.toml"), place.path("mix.toml")).unwrap();
    let grid = place.run(&["sweep", "depths.toml", "-o", "json"]).expect(0).document();
    assert_eq!(grid["cells"].as_array().map(Vec::len), Some(2));
}

#[test]
#[ignore = "half a minute: make test-full runs it"]
fn the_whole_grid_is_simulated() {
    let grid = Place::new().run(&["sweep", &example("depths.toml"), "-o", "json"]).expect(0).document();
    assert_eq!(grid["cells"].as_array().map(Vec::len), Some(8));
}

#[test]
fn a_database_is_made_and_fitted() {
    let place = Place::new();
    let mut script = Command::new(example("fit-a-database.sh"));
    script.arg(place.path("fit")).env("FLASHWISE", cargo_bin!("flashwise")).env("COLUMNS", "80");
    let ended = Ended::from(script.output().unwrap()).expect(0);
    assert!(ended.stdout.ends_with("kv.db, report/report.html\n"), "{}", ended.stdout);
    let page = std::fs::read_to_string(place.path("fit/report/report.html")).unwrap();
    assert!(page.contains("</html>"));
}

/// The workspace's profiles, so that the dependencies that both have are built once. The workspace's own crates are
/// dependencies here, and not optimised, like most.
fn profiles(place: &Place) -> PathBuf {
    let workspace = std::fs::read_to_string(directory().join("../Cargo.toml")).unwrap();
    let tables = workspace.split_inclusive('\n').skip_while(|line| !line.starts_with("[profile."));
    place.write("profiles.toml", &tables.filter(|line| !line.starts_with("flashwise-")).collect::<String>());
    place.path("profiles.toml")
}

#[test]
fn policies_of_a_crate_outside_the_workspace_run_beside_the_built_in_ones() {
    let place = Place::new();
    let target = cargo_bin("flashwise").ancestors().nth(2).unwrap().to_owned();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--locked", "--offline", "--manifest-path", &example("own-policy/Cargo.toml")]);
    cargo.arg("--target-dir").arg(target).arg("--config").arg(profiles(&place));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(output.stdout).unwrap();
    let rows = |name: &str| told.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(["greedy ", "least-worn (own) ", "lru ", "clean-first (own) "].map(rows), [1, 1, 2, 2], "{told}");
}
