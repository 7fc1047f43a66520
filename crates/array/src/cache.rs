//! A write-back cache, held by a battery.
//!
//! ```text
//!   write ──▶ bytes of its rows ── answered ──▶ row is full, or too much is held ──▶ the row leaves: one job a range
//!   read  ──▶ what is held comes from here, the rest from the members
//! ```
//!
//! A write is completed when its bytes are here. A row that is full leaves at once, and is written without reading; of
//! those that are not, the oldest leave when more than a limit is held. While a row leaves, its bytes can be read here,
//! and newer ones gather in a new row. A write that finds no space waits for it, in the order of coming.
//!
//! A flush does not empty the cache, since a battery holds it; it makes durable what has left. A row that cannot be
//! written, because more drives have failed than the level survives, stays and can be read; writes that find no space
//! any more then fail.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::SimulatedArray;
use super::work::Parent;

/// Bytes of a row that are newer than what the members hold.
struct CachedRow {
    row: u64,
    /// Ranges of bytes of the row, none touching another, in order: first byte, and the one behind the last.
    ranges: BTreeMap<u64, u64>,
    /// The bytes of the whole row, of which those in the ranges count; none where no bytes travel.
    bytes: Option<Vec<u8>>,
}

impl CachedRow {
    fn held(&self) -> u64 {
        self.ranges.iter().map(|(from, to)| to - from).sum()
    }

    /// Adds a range; gives the bytes that are new.
    fn add(&mut self, mut from: u64, mut to: u64) -> u64 {
        let before = self.held();
        let touching: Vec<u64> =
            self.ranges.range(..=to).filter(|&(_, &end)| end >= from).map(|(&start, _)| start).collect();
        for start in touching {
            if let Some(end) = self.ranges.remove(&start) {
                (from, to) = (from.min(start), to.max(end));
            }
        }
        self.ranges.insert(from, to);
        self.held() - before
    }

    /// Takes a range out; gives the bytes that are gone.
    fn remove(&mut self, from: u64, to: u64) -> u64 {
        let before = self.held();
        let touching: Vec<(u64, u64)> =
            self.ranges.range(..to).filter(|&(_, &end)| end > from).map(|(&start, &end)| (start, end)).collect();
        for (start, end) in touching {
            self.ranges.remove(&start);
            if start < from {
                self.ranges.insert(start, from);
            }
            if end > to {
                self.ranges.insert(to, end);
            }
        }
        before - self.held()
    }
}

/// Rows, by a number that tells their age.
pub(super) struct WriteCache {
    capacity_bytes: u64,
    destage_from: u64,
    pub(super) used_bytes: u64,
    /// Rows that gather bytes, and those that leave.
    rows: BTreeMap<u64, CachedRow>,
    /// The number of the row that gathers bytes.
    gathering: BTreeMap<u64, u64>,
    /// The numbers of the rows that leave, and how many jobs each has.
    leaving: BTreeMap<u64, Leaving>,
    /// Rows that could not be written.
    stuck: BTreeSet<u64>,
    /// Writes of the host's that wait for room.
    waiting: VecDeque<u64>,
}

/// What is known of a row on its way to the members.
struct Leaving {
    jobs: u32,
    is_broken: bool,
}

impl WriteCache {
    pub(super) fn new(capacity_bytes: u64, destage_from: u64) -> Self {
        Self {
            capacity_bytes,
            destage_from,
            used_bytes: 0,
            rows: BTreeMap::new(),
            gathering: BTreeMap::new(),
            leaving: BTreeMap::new(),
            stuck: BTreeSet::new(),
            waiting: VecDeque::new(),
        }
    }

    /// The bytes of a row that leaves, and where on the array they start.
    pub(super) fn leaving_row(&self, number: u64) -> Option<(&[u8], u64)> {
        let row = self.rows.get(&number)?;
        Some((row.bytes.as_deref()?, row.row))
    }

    /// The rows of that place that hold bytes, the newest first.
    fn newest_first(&self, row: u64) -> impl Iterator<Item = &CachedRow> {
        let others = self.leaving.keys().chain(&self.stuck).rev().filter_map(|number| self.rows.get(number));
        let gathering = self.gathering.get(&row).and_then(|number| self.rows.get(number));
        gathering.into_iter().chain(others.filter(move |cached| cached.row == row))
    }
}

impl SimulatedArray {
    /// Reads what is in the cache from there, and the rest from the members.
    pub(super) fn read_through_cache(&mut self, id: u64, start: u64, end: u64) {
        let row_bytes = self.stripes.row_bytes();
        let mut elsewhere = Vec::new();
        for row in start / row_bytes..end.div_ceil(row_bytes) {
            let (from, to) = (start.max(row * row_bytes), end.min((row + 1) * row_bytes));
            let mut left = vec![(from - row * row_bytes, to - row * row_bytes)];
            let Some(cache) = &self.cache else { return };
            for cached in cache.newest_first(row) {
                let buffer = self.hosts.get_mut(&id).and_then(|host| host.request.buffer.as_deref_mut());
                left = take_from(cached, &left, buffer, (row * row_bytes).wrapping_sub(start));
            }
            elsewhere.extend(left.into_iter().map(|(from, to)| (row * row_bytes + from, row * row_bytes + to)));
        }
        for (from, to) in join(elsewhere) {
            self.split_read(Parent::Host(id), from, to, 0);
        }
    }

    /// Takes a write of the host's into the cache, or lets it wait for room.
    pub(super) fn write_to_cache(&mut self, id: u64) {
        let Some(cache) = &mut self.cache else { return };
        cache.waiting.push_back(id);
        self.admit_to_cache();
        let waits = self.cache.as_ref().is_some_and(|cache| cache.waiting.back() == Some(&id));
        self.tally.cache_waits += u64::from(waits);
        // Where it finds no space, rows that gather make it.
        self.destage();
    }

    /// Takes writes into the cache for as long as there is room.
    fn admit_to_cache(&mut self) {
        loop {
            let Some(cache) = &mut self.cache else { return };
            let Some(host) = cache.waiting.front().and_then(|id| self.hosts.get(id)) else { return };
            let length = host.request.length.bytes();
            let has_room = cache.used_bytes + length <= cache.capacity_bytes;
            // What is stuck never makes room: without anything else on its way out, none will come.
            let will_have = !(cache.leaving.is_empty() && cache.gathering.is_empty());
            if !has_room && will_have {
                return;
            }
            let Some(id) = cache.waiting.pop_front() else { return };
            if has_room {
                self.gather(id);
                self.destage();
            }
            self.part_done(id, !has_room);
        }
    }

    /// Puts the bytes of a write into its rows.
    fn gather(&mut self, id: u64) {
        let (row_bytes, has_bytes) = (self.stripes.row_bytes(), self.has_bytes);
        let (Some(cache), Some(host)) = (&mut self.cache, self.hosts.get(&id)) else { return };
        let (start, length) = (host.request.offset.bytes(), host.request.length.bytes());
        let end = start + length;
        for row in start / row_bytes..end.div_ceil(row_bytes) {
            let (from, to) = (start.max(row * row_bytes), end.min((row + 1) * row_bytes));
            let (in_row, behind) = (from - row * row_bytes, to - row * row_bytes);
            let number = *cache.gathering.entry(row).or_insert_with(|| {
                self.next_number += 1;
                let cached = CachedRow { row, ranges: BTreeMap::new(), bytes: None };
                cache.rows.insert(self.next_number, cached);
                self.next_number
            });
            let Some(cached) = cache.rows.get_mut(&number) else { continue };
            cache.used_bytes += cached.add(in_row, behind);
            if has_bytes {
                let bytes = cached.bytes.get_or_insert_with(|| vec![0; row_bytes as usize]);
                let into = &mut bytes[in_row as usize..behind as usize];
                match &host.request.buffer {
                    Some(buffer) => into.copy_from_slice(&buffer[(from - start) as usize..(to - start) as usize]),
                    None => into.fill(0),
                }
            }
        }
    }

    /// Lets rows leave: those that are full, and the oldest while too much is held.
    fn destage(&mut self) {
        let row_bytes = self.stripes.row_bytes();
        loop {
            let Some(cache) = &mut self.cache else { return };
            let waits = !cache.waiting.is_empty();
            let gathered: u64 =
                cache.gathering.values().filter_map(|number| cache.rows.get(number)).map(CachedRow::held).sum();
            let full = cache
                .gathering
                .values()
                .copied()
                .find(|number| cache.rows.get(number).is_some_and(|cached| cached.held() == row_bytes));
            let oldest = || cache.gathering.values().copied().min();
            let next = full.or_else(|| if gathered > cache.destage_from || waits { oldest() } else { None });
            let Some(number) = next else { return };
            self.leave(number);
        }
    }

    /// A row leaves for the members.
    fn leave(&mut self, number: u64) {
        let row_bytes = self.stripes.row_bytes();
        let Some(cache) = &mut self.cache else { return };
        let Some(cached) = cache.rows.get(&number) else { return };
        let (start, ranges) = (cached.row * row_bytes, cached.ranges.clone());
        cache.gathering.remove(&cached.row);
        // One more than there are jobs while they are made.
        cache.leaving.insert(number, Leaving { jobs: 1, is_broken: false });
        for (from, to) in ranges {
            if let Some(leaving) = self.cache.as_mut().and_then(|cache| cache.leaving.get_mut(&number)) {
                leaving.jobs += 1;
            }
            self.split_write(Parent::Destage(number), start + from, start + to);
        }
        self.destaged(number, false);
    }

    /// A range of a row has reached the members, or could not.
    pub(super) fn destaged(&mut self, number: u64, is_broken: bool) {
        let Some(cache) = &mut self.cache else { return };
        let Some(leaving) = cache.leaving.get_mut(&number) else { return };
        leaving.is_broken |= is_broken;
        leaving.jobs -= 1;
        if leaving.jobs > 0 {
            return;
        }
        let is_broken = leaving.is_broken;
        cache.leaving.remove(&number);
        if is_broken {
            cache.stuck.insert(number);
        } else if let Some(cached) = cache.rows.remove(&number) {
            cache.used_bytes -= cached.held();
        }
        self.admit_to_cache();
        self.destage();
    }

    /// Forgets what the cache gathers of a range that is trimmed or made zeros. What leaves already does so before it.
    pub(super) fn drop_from_cache(&mut self, start: u64, end: u64) {
        let row_bytes = self.stripes.row_bytes();
        let Some(cache) = &mut self.cache else { return };
        let concerned: Vec<u64> = cache
            .rows
            .iter()
            .filter_map(|(&number, cached)| {
                let first = cached.row * row_bytes;
                let is_leaving = cache.leaving.contains_key(&number);
                (!is_leaving && first < end && first + row_bytes > start).then_some(number)
            })
            .collect();
        for number in concerned {
            let Some(cached) = cache.rows.get_mut(&number) else { continue };
            let first = cached.row * row_bytes;
            cache.used_bytes -= cached.remove(start.saturating_sub(first), (end - first).min(row_bytes));
            if cached.ranges.is_empty() {
                cache.gathering.retain(|_, gathering| *gathering != number);
                cache.stuck.remove(&number);
                cache.rows.remove(&number);
            }
        }
    }
}

/// Takes from a row in the cache what it holds of some ranges; gives what is left of them.
fn take_from(cached: &CachedRow, wanted: &[(u64, u64)], mut buffer: Option<&mut [u8]>, shift: u64) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for &(from, to) in wanted {
        let mut at = from;
        for (&start, &end) in cached.ranges.range(..to).filter(|&(_, &end)| end > from) {
            let (a, b) = (start.max(from), end.min(to));
            if at < a {
                left.push((at, a));
            }
            if let (Some(buffer), Some(bytes)) = (&mut buffer, &cached.bytes) {
                let into = a.wrapping_add(shift) as usize;
                buffer[into..into + (b - a) as usize].copy_from_slice(&bytes[a as usize..b as usize]);
            }
            at = b;
        }
        if at < to {
            left.push((at, to));
        }
    }
    left
}

/// Ranges in order, with those that touch as one.
fn join(ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    joined
}
