//! `flashwise --version`: what a report of an error needs to name.

use std::sync::LazyLock;

/// Version, commit, machine and features, a line each; `-V` prints the first alone.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = match env!("FLASHWISE_COMMIT") {
        "" => "unknown (built outside its repository)",
        commit => commit,
    };
    format!(
        "{}\ncommit: {commit}\ntarget: {}\nSQLite: {}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        env!("FLASHWISE_TARGET"),
        flashwise_sqlite::sqlite_version(),
        features().join(", ")
    )
});

/// What this program was built with. Only the last two depend on how it was built.
fn features() -> Vec<&'static str> {
    let mut all = vec!["io_uring", "fuse", "nbd", "gzip", "bzip2", "xz", "zstd", "parquet"];
    if flashwise_sqlite::takes_atomic_batches() {
        all.push("sqlite-atomic-batch");
    }
    if cfg!(debug_assertions) {
        all.push("debug-assertions");
    }
    all
}
