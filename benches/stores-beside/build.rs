//! Links RocksDB where it is asked for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_ROCKSDB").is_some() {
        println!("cargo::rustc-link-lib=rocksdb");
    }
}
