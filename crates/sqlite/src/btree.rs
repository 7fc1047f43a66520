//! The children of an interior page of a B-tree, in key order.
//!
//! ```text
//!   header (at byte 100 of page 1, else 0)          cell pointers          cells
//!   type +0 · cells +3 · right-most child +8 ──▶ +12: 2 bytes a cell ──▶ child page: 4 bytes, then the key
//! ```
//!
//! The bytes are not trusted: a page that is not in SQLite's format has no children here.
//!
//! Source: SQLite, "Database File Format", section 1.6.

/// Start of the header of page 1, after that of the file.
const FILE_HEADER: usize = 100;
/// How long the header of an interior page is.
const HEADER: usize = 12;
const INTERIOR_INDEX: u8 = 2;
const INTERIOR_TABLE: u8 = 5;

fn header_at(number: u32) -> usize {
    if number == 1 { FILE_HEADER } else { 0 }
}

fn be16(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..)?.first_chunk()?;
    Some(usize::from(u16::from_be_bytes(*bytes)))
}

fn be32(page: &[u8], at: usize) -> Option<u32> {
    let bytes = page.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// Whether the page is marked as an interior one.
pub(crate) fn is_interior(number: u32, page: &[u8]) -> bool {
    matches!(page.get(header_at(number)), Some(&(INTERIOR_INDEX | INTERIOR_TABLE)))
}

/// The children of interior page `number`; none where it is broken.
pub(crate) fn children(number: u32, page: &[u8]) -> Vec<u32> {
    if !is_interior(number, page) {
        return Vec::new();
    }
    let found = try_children(header_at(number), page).unwrap_or_default();
    match found.iter().any(|&child| child == 0 || child == number) {
        true => Vec::new(),
        false => found,
    }
}

fn try_children(header: usize, page: &[u8]) -> Option<Vec<u32>> {
    let (cells, right_most) = (be16(page, header + 3)?, be32(page, header + 8)?);
    let pointers = header + HEADER;
    let content = pointers + 2 * cells;
    // Checked before the memory for them is taken.
    page.get(..content)?;
    let mut found = Vec::with_capacity(cells + 1);
    for cell in 0..cells {
        let at = be16(page, pointers + 2 * cell).filter(|&at| at >= content)?;
        found.push(be32(page, at)?);
    }
    found.push(right_most);
    Some(found)
}

/// An interior page for tests, with cells of a child and one byte each.
#[cfg(test)]
pub(crate) fn interior(number: u32, bytes: usize, children: &[u32]) -> Vec<u8> {
    let (mut page, header) = (vec![0; bytes], header_at(number));
    let (right_most, cells) = children.split_last().expect("an interior page has a child");
    page[header] = INTERIOR_TABLE;
    page[header + 3..header + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    page[header + 8..header + 12].copy_from_slice(&right_most.to_be_bytes());
    for (n, child) in cells.iter().enumerate() {
        let at = bytes - 5 * (n + 1);
        page[at..at + 4].copy_from_slice(&child.to_be_bytes());
        page[header + HEADER + 2 * n..][..2].copy_from_slice(&(at as u16).to_be_bytes());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rusqlite::Connection;

    #[test]
    fn children_come_in_key_order_with_the_right_most_last() {
        let page = interior(7, 512, &[9, 3, 12, 4]);
        assert_eq!(children(7, &page), [9, 3, 12, 4]);
        assert_eq!(children(1, &interior(1, 1024, &[5, 2])), [5, 2], "page 1 begins with the header of the file");
        assert_eq!(children(7, &interior(7, 512, &[8])), [8]);
    }

    #[test]
    fn a_broken_page_has_no_children() {
        let good = interior(7, 512, &[9, 3, 12, 4]);
        let broken = |change: fn(&mut Vec<u8>)| {
            let mut page = good.clone();
            change(&mut page);
            children(7, &page)
        };
        for change in [
            |page: &mut Vec<u8>| page[0] = 13,
            |page: &mut Vec<u8>| page[3] = 255,
            |page: &mut Vec<u8>| page[12..14].copy_from_slice(&510_u16.to_be_bytes()),
            |page: &mut Vec<u8>| page[12..14].copy_from_slice(&4_u16.to_be_bytes()),
            |page: &mut Vec<u8>| page[8..12].fill(0),
            |page: &mut Vec<u8>| page[11] = 7,
            |page: &mut Vec<u8>| page.truncate(11),
            Vec::clear,
        ] {
            assert_eq!(broken(change), [0; 0]);
        }
    }

    /// SQLite's own view of its pages: those of a table and an index, the parents' children by the tree's paths.
    #[test]
    fn the_children_in_a_database_of_sqlite_are_those_that_it_tells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "PRAGMA page_size = 512;
             CREATE TABLE t (k INTEGER PRIMARY KEY, v); CREATE INDEX tv ON t (v);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO t SELECT i * 7919 % 3001, hex(randomblob(20)) FROM n;",
        )
        .unwrap();
        let tree =
            |name: &str| db.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0));
        let bytes = std::fs::read(&path).unwrap();
        let page = |number: u32| &bytes[(number as usize - 1) * 512..number as usize * 512];
        for name in ["t", "tv"] {
            let mut level: Vec<u32> = vec![tree(name).unwrap()];
            let mut parents = 0;
            while is_interior(level[0], page(level[0])) {
                parents += level.len();
                level = level.iter().flat_map(|&number| children(number, page(number))).collect();
            }
            // An index holds keys in its interior pages too: one between two children.
            let keys: usize = level.iter().map(|&number| be16(page(number), 3).unwrap()).sum();
            let between = if name == "tv" { level.len() - 1 } else { 0 };
            assert_eq!(keys + between, 3000, "{name}");
            assert!(parents > 3 && level.iter().all(|&number| !is_interior(number, page(number))), "{name}: {parents}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(number in 0_u32..4, bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let found = children(number, &bytes);
            prop_assert!(found.len() <= bytes.len() / 2 && found.iter().all(|&child| child != 0 && child != number));
        }

        #[test]
        fn a_changed_byte_leaves_a_page_that_is_parsed_or_refused(
            given in prop::collection::vec(8_u32.., 1..60),
            changes in prop::collection::vec((0_usize..512, any::<u8>()), 0..4),
        ) {
            let mut page = interior(7, 512, &given);
            prop_assert_eq!(children(7, &page), given);
            for (at, byte) in changes {
                page[at] = byte;
            }
            prop_assert!(children(7, &page).len() <= 251);
        }
    }
}
