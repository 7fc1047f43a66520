//! The URI of a database for SQLite.

use flashwise_sqlite::{Layout, LogLayout, VfsOptions};

/// The URI that opens the database with exactly the techniques that were measured.
pub(super) fn uri(file: &str, vfs: &VfsOptions) -> Option<String> {
    if vfs.parameters().is_empty() {
        return None;
    }
    let words = std::iter::once(format!("file:{}?vfs=flashwise", escaped(file)));
    // Layouts are recorded in the file itself.
    let of_connections =
        VfsOptions { layout: Layout::Plain, log: LogLayout::Plain, atomic_batch: false, ..*vfs }.parameters();
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

    #[test]
    fn a_uri_names_what_the_file_does_not_hold() {
        let vfs = VfsOptions::from_text("write-aligned-stripes=64k&concurrent-write-back=8").unwrap();
        assert_eq!(uri("a b?.db", &vfs).unwrap(), "file:a%20b%3F.db?vfs=flashwise&concurrent-write-back=8");
        assert_eq!(uri("a.db", &VfsOptions::PLAIN), None, "unmodified SQLite needs no VFS");
    }
}
