//! The URI of a database for SQLite.

use flashwise_sqlite::{Layout, LogLayout, LogSyncs, VfsOptions};

use super::settings::{Journal, Settings};

/// The URI that opens the database as it was measured.
pub(super) fn uri(file: &str, settings: &Settings) -> Option<String> {
    if settings.techniques().is_empty() {
        return None;
    }
    // Layouts are recorded in the file itself, and only a log is extended.
    let log_syncs = match settings.journal {
        Journal::Log => settings.vfs.log_syncs,
        _ => LogSyncs::default(),
    };
    let (layout, log) = (Layout::Plain, LogLayout::Plain);
    let of_connections = VfsOptions { layout, log, atomic_batch: false, log_syncs, ..settings.vfs }.parameters();
    let words = std::iter::once(format!("file:{}?vfs=flashwise", escaped(file)));
    Some(words.chain(of_connections).collect::<Vec<_>>().join("&"))
}

/// A path within a URI (RFC 3986): reserved characters in hexadecimal.
fn escaped(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'%' | b'?' | b'#' | b' ' | b'"' | b'<' | b'>' | 0..0x20 | 0x7f.. => format!("%{byte:02X}"),
        _ => char::from(byte).to_string(),
    };
    path.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::settings::{DEFAULT_PAGE, DEFAULT_PAGE_CACHE};

    fn settings(journal: Journal, vfs: VfsOptions) -> Settings {
        Settings { journal, vfs, ..Settings::plain(DEFAULT_PAGE, DEFAULT_PAGE_CACHE) }
    }

    #[test]
    fn a_uri_names_what_the_file_does_not_hold() {
        let vfs = VfsOptions::from_text("write-aligned-stripes=64k&concurrent-write-back=8").unwrap();
        let laid_out = settings(Journal::Log, vfs);
        assert_eq!(uri("a b?.db", &laid_out).unwrap(), "file:a%20b%3F.db?vfs=flashwise&concurrent-write-back=8");
        let stock = settings(Journal::Log, VfsOptions::PLAIN);
        assert_eq!(uri("a.db", &stock), None, "unmodified SQLite needs no VFS");
    }

    #[test]
    fn a_log_that_was_not_extended_in_the_runs_is_not_extended_by_the_uri() {
        let alone = VfsOptions { write_back_depth: 8, ..VfsOptions::PLAIN };
        let [rollback, log] = [Journal::Delete, Journal::Log].map(|journal| uri("a.db", &settings(journal, alone)));
        assert_eq!(rollback.unwrap(), "file:a.db?vfs=flashwise&concurrent-write-back=8");
        assert_eq!(log.unwrap(), "file:a.db?vfs=flashwise&concurrent-write-back=8&log-sync=parent");
    }
}
