//! Compiles the recorder of `fit sqlite --record` (`src/sqlite/record/recorder.c`) into a shared object, which the
//! library contains as bytes: flashwise is installed as one file.

use std::path::PathBuf;

const SOURCE: &str = "src/sqlite/record/recorder.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={SOURCE}");
    let object = PathBuf::from(std::env::var("OUT_DIR")?).join("flashwise_recorder.so");
    let mut compiler = cc::Build::new().opt_level(2).debug(false).warnings(true).try_get_compiler()?.to_command();
    let built = compiler
        .args(["-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-s", "-o"])
        .arg(&object)
        .args([SOURCE, "-ldl"])
        .status()?;
    if built.success() { Ok(()) } else { Err(format!("{SOURCE}: the C compiler ended with {built}").into()) }
}
