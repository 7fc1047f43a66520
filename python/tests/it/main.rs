//! The package as Python sees it: `scripts/python-tests` installs it into an environment of its own and runs
//! `tests/*.py`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_package_passes_its_tests_and_its_types_are_strict() {
    python_tests(&[]);
}

#[test]
#[ignore = "make test-full runs it: it installs pandas, polars, Jupyter and pyright"]
fn notebooks_run_and_a_second_type_checker_agrees() {
    python_tests(&["full"]);
}

/// Runs the script on the libraries that were built with this program.
fn python_tests(arguments: &[&str]) {
    let built = std::env::current_exe().unwrap();
    let folder = built.parent().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/python-tests");
    let status = Command::new(script)
        .args(arguments)
        .env("FLASHWISE_NATIVE", folder.join("libflashwise_python.so"))
        .env("FLASHWISE_EXTENSION", folder.join("libflashwise_sqlite.so"))
        .env("FLASHWISE_PROGRAM", folder.with_file_name("flashwise"))
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}
