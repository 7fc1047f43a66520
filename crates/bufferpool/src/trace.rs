//! The pages of a trace, numbered once.
//!
//! Every request becomes accesses to the pages that it covers; pages get dense numbers in the order of their first
//! access, so that no policy ever hashes. In formats whose requests name objects (libCacheSim's) each request is one
//! access to its object, whatever its length. Flushes and trims are not accesses.

use std::path::Path;
use std::sync::Arc;

use flashwise_block::Operation;
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader, TraceRecord};
use rustc_hash::FxHashMap;

use crate::directory::Page;
use crate::error::PoolError;
use crate::policy::BLOCK_PAGES;
use crate::pool::Access;

/// What an access is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Objects in formats that name them, else pages.
    #[default]
    Auto,
    /// Each page that a request covers.
    Page,
    /// Each request, by its first byte.
    Request,
}

/// How a trace becomes accesses.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// How it is read; its page size is the pool's.
    pub reading: ReadOptions,
    /// What an access is.
    pub unit: Unit,
    /// Most accesses; the trace's rest is not read.
    pub accesses: Option<u64>,
}

/// Most accesses that are kept: 4 GiB of them.
const ACCESSES_MAX: u64 = 1 << 30;
/// Most different pages: each has an address, and while the trace is read a place in a hash map.
const PAGES_MAX: u64 = 1 << 28;
/// Most pages of one request: 4 GiB of 4 KiB each. No drive takes more at once; a damaged trace may ask for it.
const REQUEST_PAGES_MAX: u64 = 1 << 20;

/// Where a page is: in which file or on which disk, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Address {
    /// Files from 1 on, then devices; 0 where the trace tells of neither.
    volume: u64,
    number: u64,
}

/// The accesses of a trace.
#[derive(Clone, Debug)]
pub struct PageTrace {
    name: String,
    accesses: Vec<Access>,
    /// By page.
    addresses: Vec<Address>,
    page_bytes: u64,
    /// Requests that were read.
    requests: u64,
    writes: u64,
}

impl PageTrace {
    /// Reads a trace of any format.
    ///
    /// # Errors
    /// When it cannot be read, names no page, or more of them or more accesses than can be kept.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<(Self, TraceReader), PoolError> {
        // Objects are told apart by their numbers, which need not be addresses; pages are addresses.
        let reading = ReadOptions { object_ids: options.unit != Unit::Page, ..options.reading.clone() };
        let options = TraceOptions { reading, unit: options.unit, accesses: options.accesses };
        let mut reader = TraceReader::open(path, &options.reading)?;
        let trace = Self::read(&mut reader, &options)?;
        Ok((trace, reader))
    }

    /// Reads what a reader gives.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(reader: &mut TraceReader, options: &TraceOptions) -> Result<Self, PoolError> {
        let format = reader.detection().format;
        let names_objects = matches!(format, TraceFormat::OracleGeneral | TraceFormat::Lcs);
        let by_request = options.unit == Unit::Request || (options.unit == Unit::Auto && names_objects);
        let page_bytes =
            if by_request && names_objects { options.reading.sector_bytes } else { options.reading.page_bytes };
        let page_bytes = page_bytes.max(1);
        // An object's number is its byte, or was multiplied by the size of a sector.
        let unit = if names_objects && options.reading.object_ids { 1 } else { page_bytes };
        let mut numbering = Numbering::new(reader.name(), options.accesses.unwrap_or(u64::MAX));
        while !numbering.is_done()
            && let Some(record) = reader.next_record()?
        {
            numbering.add(&record, unit, by_request)?;
        }
        numbering.finish(page_bytes)
    }

    /// Made of page numbers; a page's number is its address.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_pages(name: &str, pages: impl IntoIterator<Item = (u64, bool)>) -> Result<Self, PoolError> {
        let mut numbering = Numbering::new(name, u64::MAX);
        for (number, is_write) in pages {
            numbering.access(Address { volume: 0, number }, is_write)?;
        }
        numbering.finish(4096)
    }

    /// The trace's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The accesses in their order.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// How many different pages there are, those that only [`with_neighbours`](Self::with_neighbours) added included.
    pub fn pages(&self) -> usize {
        self.addresses.len()
    }

    /// Accesses that write.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Requests of the trace that were read.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// By page: its block of 64 neighbours, numbered densely.
    pub fn blocks(&self) -> Arc<[u32]> {
        let mut numbers = FxHashMap::default();
        let block = |address: &Address| {
            let next = numbers.len() as u32;
            *numbers.entry((address.volume, address.number / BLOCK_PAGES)).or_insert(next)
        };
        self.addresses.iter().map(block).collect()
    }

    /// Adds the pages behind each page, so that a prefetcher can ask for what the trace never does; by page, the one
    /// behind it, or `u32::MAX` where nothing was added.
    ///
    /// # Errors
    /// When there are too many.
    pub fn with_neighbours(&mut self, behind: u64) -> Result<Arc<[u32]>, PoolError> {
        let mut numbers: FxHashMap<Address, u32> = self.addresses.iter().copied().zip(0..).collect();
        for page in 0..self.addresses.len() {
            let Address { volume, number } = self.addresses[page];
            for step in 1..=behind {
                let Some(number) = number.checked_add(step) else { break };
                let next = Address { volume, number };
                if numbers.contains_key(&next) {
                    break;
                }
                too_many(&self.name, "pages", self.addresses.len() as u64, PAGES_MAX)?;
                numbers.insert(next, self.addresses.len() as u32);
                self.addresses.push(next);
            }
        }
        let next = |address: &Address| {
            let next = address.number.checked_add(1).map(|number| Address { number, ..*address });
            next.and_then(|next| numbers.get(&next).copied()).unwrap_or(u32::MAX)
        };
        Ok(self.addresses.iter().map(next).collect())
    }

    /// By page: its place among all of them in the order of their addresses.
    pub fn places(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.addresses.len() as u32).collect();
        order.sort_unstable_by_key(|&page| self.addresses[page as usize]);
        let mut places = vec![0; order.len()];
        (0..).zip(order).for_each(|(place, page)| places[page as usize] = place);
        places
    }
}

fn too_many(trace: &str, what: &'static str, count: u64, most: u64) -> Result<(), PoolError> {
    if count < most { Ok(()) } else { Err(PoolError::TooLarge { trace: trace.to_owned(), what, most }) }
}

/// Gives pages their numbers.
struct Numbering {
    trace: String,
    accesses: Vec<Access>,
    numbers: FxHashMap<Address, u32>,
    addresses: Vec<Address>,
    most: u64,
    requests: u64,
    writes: u64,
}

impl Numbering {
    fn new(trace: &str, most: u64) -> Self {
        Self {
            trace: trace.to_owned(),
            accesses: Vec::new(),
            numbers: FxHashMap::default(),
            addresses: Vec::new(),
            most,
            requests: 0,
            writes: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.accesses.len() as u64 >= self.most
    }

    fn add(&mut self, record: &TraceRecord, unit: u64, by_request: bool) -> Result<(), PoolError> {
        self.requests += 1;
        let is_write = record.operation.writes();
        if !is_write && record.operation != Operation::Read {
            return Ok(());
        }
        let volume = match (record.file, record.device) {
            (Some(file), _) => u64::from(file) + 1,
            (None, Some(device)) => (u64::from(device) + 1) << 32,
            (None, None) => 0,
        };
        let first = record.offset.0 / unit;
        // A length of 0 asks for the page all the same.
        let last_byte = record.offset.0.saturating_add(record.length.0.saturating_sub(1));
        let last = if by_request { first } else { last_byte / unit };
        too_many(&self.trace, "pages in one request", last - first, REQUEST_PAGES_MAX)?;
        for number in first..=last {
            if self.is_done() {
                break;
            }
            self.access(Address { volume, number }, is_write)?;
        }
        Ok(())
    }

    fn access(&mut self, address: Address, is_write: bool) -> Result<(), PoolError> {
        too_many(&self.trace, "accesses", self.accesses.len() as u64, ACCESSES_MAX)?;
        let next = self.addresses.len() as u32;
        let page = *self.numbers.entry(address).or_insert(next);
        if page == next {
            too_many(&self.trace, "pages", u64::from(next), PAGES_MAX)?;
            self.addresses.push(address);
        }
        self.writes += u64::from(is_write);
        self.accesses.push(Access::new(Page(page), is_write));
        Ok(())
    }

    fn finish(self, page_bytes: u64) -> Result<PageTrace, PoolError> {
        let Self { trace: name, accesses, addresses, requests, writes, .. } = self;
        if accesses.is_empty() {
            return Err(PoolError::Empty { trace: name });
        }
        Ok(PageTrace { name, accesses, addresses, page_bytes, requests, writes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &'static str, unit: Unit) -> Vec<(u32, bool)> {
        let options = TraceOptions { unit, ..TraceOptions::default() };
        let mut reader = TraceReader::read(text.as_bytes(), "test", &options.reading).unwrap();
        let trace = PageTrace::read(&mut reader, &options).unwrap();
        trace.accesses().iter().map(|access| (access.page().0, access.is_write())).collect()
    }

    #[test]
    fn a_request_is_an_access_to_each_page_that_it_covers_or_to_its_first_byte() {
        // 8 KiB at 6 KiB are pages 1, 2 and 3; 512 bytes at 4 KiB are in page 1.
        let text = "128166372003061629,web,0,Read,6144,8192,1331\n128166372003061630,web,0,Write,4096,512,1331\n";
        assert_eq!(pages(text, Unit::Auto), [(0, false), (1, false), (2, false), (0, true)]);
        assert_eq!(pages(text, Unit::Request), [(0, false), (0, true)]);
    }

    #[test]
    fn page_lists_say_what_is_written() {
        assert_eq!(pages("R 17\nW 5\nR 17\n", Unit::Auto), [(0, false), (1, true), (0, false)]);
        assert_eq!(pages("9\n8\n*\n9\n", Unit::Auto), [(0, false), (1, false), (0, false)]);
    }

    #[test]
    fn objects_are_told_apart_by_their_numbers_of_which_any_64_bits_are_one() {
        let record = |id: u64| {
            [&0_u32.to_le_bytes()[..], &id.to_le_bytes(), &100_u32.to_le_bytes(), &(-1_i64).to_le_bytes()].concat()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.oracleGeneral");
        let ids = [u64::MAX, 5, u64::MAX, u64::MAX - 1, 5];
        std::fs::write(&path, ids.into_iter().flat_map(record).collect::<Vec<u8>>()).unwrap();
        let (trace, _) = PageTrace::open(&path, &TraceOptions::default()).unwrap();
        let pages: Vec<u32> = trace.accesses().iter().map(|access| access.page().0).collect();
        assert_eq!((pages, trace.page_bytes()), (vec![0, 1, 0, 2, 1], 512));
    }

    #[test]
    fn blocks_and_neighbours_go_by_addresses_and_not_by_numbers() {
        let mut trace = PageTrace::of_pages("test", [(100, false), (3, true), (101, false), (63, false)]).unwrap();
        assert_eq!(trace.blocks().to_vec(), [0, 1, 0, 1]);
        assert_eq!(trace.places(), [2, 0, 3, 1]);
        let next = trace.with_neighbours(2).unwrap();
        // 100 → 101; 3 → 4 → 5; 101 → 102 → 103; 63 → 64 → 65.
        assert_eq!(next.to_vec(), [2, 4, 6, 8, 5, u32::MAX, 7, u32::MAX, 9, u32::MAX]);
        assert_eq!((trace.pages(), trace.writes()), (10, 1));
    }

    #[test]
    fn a_trace_is_cut_where_it_was_asked_to_be_and_one_without_accesses_is_an_error() {
        let options = TraceOptions { accesses: Some(2), ..TraceOptions::default() };
        let mut reader = TraceReader::read(&b"1\n2\n3\n"[..], "test", &options.reading).unwrap();
        assert_eq!(PageTrace::read(&mut reader, &options).unwrap().accesses().len(), 2);
        let none = PageTrace::of_pages("nothing", []).unwrap_err().to_string();
        assert_eq!(none, "nothing: contains no reads or writes");
    }
}
