//! concurrent-read-ahead: predicts the pages that SQLite will read, from the interior pages that it reads.
//!
//! SQLite reads one page and waits for it. A scan in key order visits the children of an interior page one after the
//! other; if rows were not inserted in key order, the children are anywhere in the file, and no read-ahead of a kernel
//! or a drive can predict them. But the parent lists them:
//!
//! ```text
//!   read  P: 40 7 93 12 58 …     interior: remembered
//!   read  40                     a child of P: may be a point SELECT, nothing is read ahead
//!   read  7                      the next one: a scan; read 93 12 ahead
//!   read  93                     continues: read ahead 58 …, 2, 4, … up to k_r pages
//! ```
//!
//! When the scan continues to the interior page beside P, its first children are read ahead at once.
//!
//! A prediction is a hint, and nothing depends on it: children may have moved since their parent was read, and in a
//! database with a log pages may come from there, which the reads of the database's file do not show.
//!
//! **Cost.** A read outside any scan is one lookup in a table. An interior page is copied; its children are parsed only
//! when needed, since the interior pages of point SELECTs may be as frequent as their leaves.

use crate::btree::{children, is_interior};

/// Interior pages that are remembered.
const NODES: usize = 32;
/// Places in the table of children: a power of two, 128 KiB in all.
const PLACES: usize = 1 << 15;
/// Reads of pages that no remembered parent is known of, until one of those that are not parsed yet is.
const PATIENCE: u32 = 32;
/// Reads for which a scan counts as running after its last step.
const SCAN_LASTS: u64 = 1024;
/// Interior pages to read ahead: few are needed, and each has many children.
const INTERIOR_DEPTH: isize = 2;

/// A possible place of a child's number. Another child may be there now: the node shows.
#[derive(Clone, Copy, Default)]
struct Place {
    node: u8,
    child: u16,
}

/// How a node's children are read.
#[derive(Clone, Copy, Default)]
struct Run {
    /// The child that was read last.
    at: Option<isize>,
    /// 1 towards greater keys, -1 towards lesser ones, 0 if unknown.
    direction: isize,
    /// Children that are read ahead; 0 before the first time.
    depth: isize,
    /// The last child that was read ahead.
    asked: isize,
}

impl Run {
    /// The direction, if the scan continues from this child to the one at `at`.
    fn direction_to(&self, at: isize) -> Option<isize> {
        let ahead = |from: isize| self.direction != 0 && (at - from) * self.direction > 0;
        let last = self.at?;
        // SQLite may have some of the pages in its own cache.
        let is_asked = ahead(last) && (self.asked - at) * self.direction >= 0;
        match at - last {
            step @ (1 | -1) => Some(step),
            _ => is_asked.then_some(self.direction),
        }
    }
}

/// An interior page that was read.
#[derive(Default)]
struct Node {
    number: u32,
    bytes: Vec<u8>,
    children: Vec<u32>,
    is_parsed: bool,
    /// Whether its children are interior pages as well.
    is_upper: bool,
    used: u64,
    run: Run,
}

/// Facts about one open database.
pub(crate) struct ReadAhead {
    /// Most pages that are read ahead.
    most: isize,
    page_bytes: usize,
    nodes: Vec<Node>,
    places: Box<[Place]>,
    /// Counts reads.
    clock: u64,
    /// The last page that was read that is no interior one, and the last that is.
    last: [u32; 2],
    /// Reads of pages without a known parent since a node was parsed, and since an interior page was read.
    strangers: [u32; 2],
    /// When a scan last advanced, and how far it read ahead.
    scanned: Option<(u64, isize)>,
    /// Whether the page that is being read has a known parent, and which way a scan came to it.
    is_known: bool,
    stepped: isize,
    wanted: Vec<u32>,
}

impl ReadAhead {
    /// For up to `most` pages ahead.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most: most as isize,
            page_bytes: 0,
            nodes: Vec::new(),
            places: Box::default(),
            clock: 0,
            last: [0; 2],
            strangers: [0; 2],
            scanned: None,
            is_known: false,
            stepped: 0,
            wanted: Vec::new(),
        }
    }

    /// The page of a read, where it is one of a page.
    pub(crate) fn page_of(&mut self, offset: u64, length: usize) -> Option<u32> {
        if !length.is_power_of_two() || !(512..=65536).contains(&length) || !offset.is_multiple_of(length as u64) {
            return None;
        }
        if length != self.page_bytes {
            *self = Self { page_bytes: length, ..Self::new(self.most as u32) };
        }
        u32::try_from(offset / length as u64 + 1).ok()
    }

    /// SQLite is about to read a page: returns pages to read ahead before waiting for it.
    pub(crate) fn before(&mut self, number: u32) -> &[u32] {
        self.wanted.clear();
        self.clock += 1;
        self.stepped = 0;
        self.step_to(number);
        &self.wanted
    }

    /// SQLite has read a page: returns further pages to read ahead, now that its bytes are known.
    pub(crate) fn after(&mut self, number: u32, page: &[u8]) -> &[u32] {
        self.wanted.clear();
        match is_interior(number, page) {
            true => self.after_interior(number, page),
            false => self.after_other(number),
        }
        &self.wanted
    }

    /// Hears of a page that was written.
    pub(crate) fn written(&mut self, number: u32, page: &[u8]) {
        if is_interior(number, page) {
            self.remember(number, page);
        }
    }

    fn after_other(&mut self, number: u32) {
        if !self.is_known {
            self.strangers = self.strangers.map(|count| count.saturating_add(1));
            // Two consecutive children of an interior page, a scan that has continued to one, or long enough without
            // knowing.
            if self.strangers[1] >= 2 || self.strangers[0] >= PATIENCE || self.is_scanning() {
                self.parse_newest();
                self.step_to(number);
            }
        }
        self.last[0] = number;
    }

    fn after_interior(&mut self, number: u32, page: &[u8]) {
        let node = self.remember(number, page);
        self.strangers[1] = 0;
        let is_new = !self.is_known && self.is_scanning();
        if is_new {
            self.parse_all();
        }
        if let Some((parent, _)) = self.find(number) {
            self.nodes[parent].is_upper = true;
        }
        if is_new {
            self.step_to(number);
        }
        if self.stepped != 0 && self.is_scanning() {
            self.go_on_in(node);
        }
        self.last[1] = number;
    }

    fn is_scanning(&self) -> bool {
        self.scanned.is_some_and(|(at, _)| self.clock - at < SCAN_LASTS)
    }

    /// The node and the place in it of a child.
    fn find(&self, number: u32) -> Option<(usize, isize)> {
        let place = *self.places.get(number as usize % PLACES)?;
        let node = self.nodes.get(usize::from(place.node))?;
        let found = node.children.get(usize::from(place.child)) == Some(&number);
        found.then_some((usize::from(place.node), place.child as isize))
    }

    /// The scan, if there is one, comes to a page.
    fn step_to(&mut self, number: u32) {
        let found = self.find(number);
        self.is_known = found.is_some();
        let Some((index, at)) = found else { return };
        let (clock, is_scanning) = (self.clock, self.is_scanning());
        let node = &mut self.nodes[index];
        node.used = clock;
        if node.run.at == Some(at) {
            return;
        }
        let mut direction = node.run.direction_to(at);
        if node.run.at.is_none() {
            // The one before it was read when this node was not parsed yet.
            let is_last = |at: isize| child(node, at).is_some_and(|child| self.last.contains(&child));
            direction = [1, -1].into_iter().find(|step| is_last(at - step));
        }
        // Two lookups often meet neighbours among the few interior pages.
        match direction.filter(|_| is_scanning || !node.is_upper) {
            Some(direction) if direction == node.run.direction => node.run.at = Some(at),
            Some(direction) => node.run = Run { at: Some(at), direction, depth: 0, asked: at },
            None => {
                node.run = Run { at: Some(at), ..Run::default() };
                return;
            }
        }
        self.stepped = node.run.direction;
        self.ask(index);
        self.note_scan(index);
    }

    fn note_scan(&mut self, index: usize) {
        let node = &self.nodes[index];
        if !node.is_upper {
            self.scanned = Some((self.clock, node.run.depth));
        }
    }

    /// A scan has continued to the interior page beside the last one: it starts at the edge.
    fn go_on_in(&mut self, index: usize) {
        let (direction, depth) = (self.stepped, self.scanned.map_or(0, |(_, depth)| depth));
        self.parse(index);
        let node = &mut self.nodes[index];
        let edge = if direction > 0 { -1 } else { node.children.len() as isize };
        // Half of it, since it doubles at the next read ahead.
        node.run = Run { at: Some(edge), direction, depth: depth / 2, asked: edge };
        self.ask(index);
    }

    /// Reads the next children of a run ahead when half of the earlier ones are read.
    fn ask(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        let Run { at: Some(at), direction, depth, asked } = node.run else { return };
        let ahead = (asked - at) * direction;
        if ahead > depth / 2 {
            return;
        }
        let most = if node.is_upper { INTERIOR_DEPTH.min(self.most) } else { self.most };
        let depth = (depth * 2).max(2).min(most);
        // A broken page has none.
        let last = (at + direction * depth).min(node.children.len() as isize - 1).max(0);
        let mut next = if ahead > 0 { asked } else { at };
        // One read may make a step in two pages, the one beside the last and its parent.
        while (last - next) * direction > 0 && self.wanted.len() < self.most as usize {
            next += direction;
            self.wanted.extend(child(node, next));
        }
        (node.run.depth, node.run.asked) = (depth, next);
    }

    /// Keeps a copy of an interior page in the place of the one that was not needed for longest.
    fn remember(&mut self, number: u32, page: &[u8]) -> usize {
        if self.places.is_empty() {
            self.places = vec![Place::default(); PLACES].into_boxed_slice();
        }
        let index = self.nodes.iter().position(|node| node.number == number).unwrap_or_else(|| {
            if self.nodes.len() < NODES {
                self.nodes.push(Node::default());
                return self.nodes.len() - 1;
            }
            self.nodes.iter().enumerate().min_by_key(|(_, node)| node.used).map_or(0, |(index, _)| index)
        });
        let node = &mut self.nodes[index];
        node.used = self.clock;
        if node.number == number && node.bytes == page {
            return index;
        }
        if node.number != number {
            *node = Node { bytes: std::mem::take(&mut node.bytes), used: node.used, ..Node::default() };
        }
        node.number = number;
        node.is_parsed = false;
        node.children.clear();
        node.run = Run::default();
        node.bytes.clear();
        node.bytes.extend_from_slice(page);
        index
    }

    fn parse(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.is_parsed {
            return;
        }
        node.is_parsed = true;
        node.children = children(node.number, &node.bytes);
        for (at, &child) in node.children.iter().enumerate() {
            // Both fit: there are 32 nodes, and fewer children than a page has bytes.
            self.places[child as usize % PLACES] = Place { node: index as u8, child: at as u16 };
        }
    }

    fn parse_newest(&mut self) {
        self.strangers[0] = 0;
        let unparsed = self.nodes.iter().enumerate().filter(|(_, node)| !node.is_parsed);
        if let Some((index, _)) = unparsed.max_by_key(|(_, node)| node.used) {
            self.parse(index);
        }
    }

    fn parse_all(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.parse(index));
    }
}

fn child(node: &Node, at: isize) -> Option<u32> {
    node.children.get(usize::try_from(at).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::interior;
    use proptest::prelude::*;

    const PAGE: usize = 4096;
    const LEAF: [u8; PAGE] = [13; PAGE];
    /// Two interior pages below a root, each with two hundred children anywhere in the file.
    const ROOT: u32 = 3;
    const PARENTS: [u32; 2] = [900, 20];

    fn leaves(parent: usize) -> Vec<u32> {
        (0..200).map(|n| 1000 + (n * 77) % 199 * 3 + n / 199 * 2 + 2000 * parent as u32).collect()
    }

    fn ahead(most: u32) -> ReadAhead {
        let mut ahead = ReadAhead::new(most);
        assert_eq!(ahead.page_of(0, PAGE), Some(1));
        ahead
    }

    /// Reads a page; returns the pages read ahead before and after it is known.
    fn read(ahead: &mut ReadAhead, number: u32) -> Vec<u32> {
        let page = match PARENTS.iter().position(|&parent| parent == number) {
            _ if number == ROOT => interior(ROOT, PAGE, &PARENTS),
            Some(parent) => interior(number, PAGE, &leaves(parent)),
            None => LEAF.to_vec(),
        };
        let mut asked = ahead.before(number).to_vec();
        asked.extend(ahead.after(number, &page));
        asked
    }

    fn read_all(ahead: &mut ReadAhead, numbers: &[u32]) -> Vec<u32> {
        numbers.iter().flat_map(|&number| read(ahead, number)).collect()
    }

    #[test]
    fn a_scan_asks_from_its_second_page_on_for_twice_as_many_each_time() {
        for descending in [false, true] {
            let (mut ahead, mut order) = (ahead(8), leaves(0));
            if descending {
                order.reverse();
            }
            assert_eq!(read_all(&mut ahead, &[ROOT, PARENTS[0], order[0]]), [0; 0], "it may be a point SELECT");
            assert_eq!(read(&mut ahead, order[1]), order[2..4]);
            assert_eq!(read(&mut ahead, order[2]), order[4..7], "four ahead");
            assert_eq!(read(&mut ahead, order[3]), [0; 0]);
            assert_eq!(read(&mut ahead, order[4]), order[7..13], "eight ahead, which is the most");
            let (mut asked, mut farthest) = (13, 0);
            for (at, &leaf) in order.iter().enumerate().skip(5) {
                asked += read(&mut ahead, leaf).len();
                farthest = farthest.max(asked - at - 1);
                assert!(asked > at && asked <= 200, "page {at} of the scan was not asked for");
            }
            assert_eq!((asked, farthest), (200, 8), "each page once, and never more than eight ahead");
        }
    }

    #[test]
    fn a_scan_goes_on_below_the_next_interior_page_as_deep_as_it_was() {
        for descending in [false, true] {
            let (mut ahead, mut order, mut parents) = (ahead(16), [leaves(0), leaves(1)], PARENTS);
            if descending {
                order.iter_mut().for_each(|order| order.reverse());
                order.reverse();
                parents.reverse();
            }
            read_all(&mut ahead, &[ROOT, parents[0]]);
            read_all(&mut ahead, &order[0]);
            assert_eq!(read(&mut ahead, parents[1]), order[1][..16]);
            assert_eq!(read_all(&mut ahead, &order[1]), order[1][16..]);
        }
    }

    #[test]
    fn point_lookups_ask_for_nothing() {
        let (mut ahead, order) = (ahead(32), leaves(0));
        read(&mut ahead, ROOT);
        // Never neighbours, with the interior page read each time and then from SQLite's own cache.
        for at in (0..200).step_by(7).chain((1..200).step_by(13)) {
            assert_eq!(read_all(&mut ahead, &[PARENTS[0], order[at]]), [0; 0]);
        }
        let lookups: Vec<u32> = (0..400).map(|n| order[n * 37 % 200]).collect();
        assert_eq!(read_all(&mut ahead, &lookups), [0; 0]);
        assert_eq!(read_all(&mut ahead, &[PARENTS[1], 5000, PARENTS[0], PARENTS[1]]), [0; 0], "nor at interior pages");
    }

    #[test]
    fn a_scan_that_turns_or_starts_elsewhere_begins_small_again() {
        let (mut ahead, order) = (ahead(32), leaves(0));
        read_all(&mut ahead, &[ROOT, PARENTS[0]]);
        read_all(&mut ahead, &order[..40]);
        assert_eq!(read_all(&mut ahead, &[order[120]]), [0; 0]);
        assert_eq!(read(&mut ahead, order[121]), order[122..124]);
        assert_eq!(read(&mut ahead, order[120]), [order[119], order[118]], "back");
    }

    #[test]
    fn pages_that_sqlite_has_already_leave_a_scan_running() {
        let (mut ahead, order) = (ahead(8), leaves(0));
        read_all(&mut ahead, &[ROOT, PARENTS[0]]);
        read_all(&mut ahead, &order[..10]);
        assert_eq!(read_all(&mut ahead, &order[13..17]), order[17..22]);
    }

    #[test]
    fn an_interior_page_that_was_read_long_ago_is_found_after_some_lookups() {
        let (mut ahead, order) = (ahead(8), leaves(0));
        read_all(&mut ahead, &[ROOT, PARENTS[0], 5000, PARENTS[1], 5001]);
        (0..200).for_each(|n| assert_eq!(read(&mut ahead, 6000 + n), [0; 0]));
        assert_eq!(read_all(&mut ahead, &order[..5]), order[2..13]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_an_interior_page_that_changed_is_parsed_again() {
        let mut ahead = ahead(8);
        for number in 1..5000 {
            let page = interior(number, PAGE, &[number + 10_000, number + 20_000, number + 30_000]);
            ahead.before(number);
            ahead.after(number, &page);
            ahead.before(number + 10_000);
            ahead.after(number + 10_000, &LEAF);
        }
        assert_eq!(ahead.nodes.len(), NODES);
        let order = [51, 62, 73, 84, 95];
        ahead.written(4999, &interior(4999, PAGE, &order));
        assert_eq!(read_all(&mut ahead, &order[..2]), order[2..4]);
    }

    #[test]
    fn only_whole_pages_are_looked_at() {
        let mut ahead = ahead(8);
        assert_eq!([ahead.page_of(24, 16), ahead.page_of(0, 100), ahead.page_of(512, 4096)], [None; 3]);
        assert_eq!([ahead.page_of(4096, 4096), ahead.page_of(65536 * 7, 65536)], [Some(2), Some(8)]);
        assert_eq!(ahead.page_of(1 << 62, 512), None, "no database has so many pages");
    }

    proptest! {
        #[test]
        fn no_pages_make_it_fall_over_or_ask_for_too_many(
            reads in prop::collection::vec((1_u32..40, prop::collection::vec(1_u32..40, 1..20), any::<bool>()), 0..300),
        ) {
            let mut ahead = ReadAhead::new(16);
            prop_assert_eq!(ahead.page_of(0, 512), Some(1));
            for (number, children, is_interior) in reads {
                let page = if is_interior { interior(number, 512, &children) } else { vec![13; 512] };
                let asked = ahead.before(number).len();
                prop_assert!(asked <= 16 && ahead.after(number, &page).len() <= 16);
            }
        }
    }
}
