//! The techniques as the tests take them: none, each, and all together.
#![allow(dead_code, reason = "each test file uses its share")]

/// A way to run tests.
pub struct Configuration {
    pub name: &'static str,
    pub techniques: &'static str,
    /// Whether databases and logs are laid out.
    pub layout: bool,
    /// Whether writes are held back.
    pub holds_back: bool,
    /// Whether the space of freed pages is given back.
    pub discards: bool,
    /// Whether transactions are taken as atomic batches.
    pub batches: bool,
}

/// Techniques for a database with such pages, `None` for one that changes its page size: a database at hot locations
/// has pages of a chunk, and no chunk is shorter than 4 KiB.
pub fn techniques_for(techniques: &str, page: Option<u32>) -> String {
    let hot = page.filter(|&page| page >= 4096).map(|page| format!("use-hot-locations={page}+{}", page / 2));
    let chosen = techniques.split('&').filter_map(|technique| match technique.starts_with("use-hot-locations=") {
        true => hot.clone(),
        false => Some(technique.to_owned()),
    });
    chosen.collect::<Vec<_>>().join("&")
}

/// The pages that techniques lay out, or `other` where that is any.
pub fn page_for(techniques: &str, other: u32) -> u32 {
    match techniques {
        chunk if chunk.contains("use-hot-locations=64k") => 65536,
        chunk if chunk.contains("use-hot-locations=4k") => 4096,
        _ => other,
    }
}

/// The last one has all techniques.
pub const CONFIGURATIONS: [Configuration; 9] = [
    Configuration {
        name: "no technique",
        // As on ext4 and XFS, wherever the tests run.
        techniques: "log-sync=extend",
        layout: false,
        holds_back: false,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "use-hot-locations",
        // For pages of 4 KiB, SQLite's default; those of 64 KiB are tried with all techniques together.
        techniques: "use-hot-locations=4k+2k",
        layout: true,
        holds_back: true,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "write-aligned-stripes",
        techniques: "write-aligned-stripes=64k",
        layout: true,
        holds_back: true,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "contain-write-in-flash-page",
        techniques: "contain-write-in-flash-page=16k",
        layout: true,
        holds_back: true,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "sparse-log",
        techniques: "sparse-log=4k",
        layout: true,
        holds_back: true,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "concurrent-write-back and discard",
        techniques: "concurrent-write-back=8&discard=on",
        layout: false,
        holds_back: true,
        discards: true,
        batches: false,
    },
    Configuration {
        name: "atomic-batch",
        techniques: "atomic-batch=on",
        layout: true,
        holds_back: true,
        discards: false,
        batches: true,
    },
    Configuration {
        name: "concurrent-read-ahead",
        techniques: "concurrent-read-ahead=8",
        layout: false,
        holds_back: false,
        discards: false,
        batches: false,
    },
    Configuration {
        name: "all together",
        techniques: "use-hot-locations=64k+32k&write-aligned-stripes=64k&concurrent-write-back=8&concurrent-read-ahead=8\
                     &discard=on&atomic-batch=on",
        layout: true,
        holds_back: true,
        discards: true,
        batches: true,
    },
];
