//! Inputs that other programs refuse or read wrongly, each given to the program as a user would, with what is right.
//! They lie in `inputs/`; what tools print is tested in parts in `crates/trace/tests/it/tools.rs`.

mod attached;
mod device_files;
mod drives;
mod traces;

use std::path::{Path, PathBuf};

/// The path of an input.
fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/inputs").join(name)
}
