//! The binary log: where its transactions are in flash pages, and where they would lie with padding.
//!
//! ```text
//!   plain      │ … txn 7 │ txn 8    ┆   txn 8 │ txn 9 │ …         ┆: a flash page ends. Committing txn 8 writes two pages
//!   contained  │ … txn 7 │ padding  ┆ txn 8 │ txn 9 │ …            and txn 9 the second of them again
//! ```
//!
//! A transaction is a group of events: it starts with its GTID and ends where the next thing starts. Where each
//! transaction is synced by itself, the file system writes the pages that it touches, the last of them again with the
//! next one. A transaction that would are in more pages than it has to is put off to the next page's start.
//!
//! The server cannot pad. What it writes to is told by the drive's trace, what would be written with padding is worked
//! out from the positions in the log, and both are played on simulated drives.
//!
//! Sources: Kakaraparthy et al., PVLDB 13(4), 2019 (contain-write-in-flash-page). MariaDB's binary log, version 4:
//! events with a header of 19 bytes, <https://mariadb.com/kb/en/2-binlog-event-header/>.

use std::ops::Range;

use flashwise_block::{BlockDevice, ByteSize, ExtentMap, Operation, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use flashwise_trace::TraceRecord;

use crate::StudyError;

/// How a binary log starts.
const MAGIC: [u8; 4] = *b"\xfebin";
/// Bytes of an event's header: time 4, type 1, server 4, length 4, end 4, flags 2.
const HEADER: usize = 19;
/// The event that a transaction starts with.
const GTID: u8 = 162;
/// Events that belong to no transaction: the end of a server's or a file's, the file's head, what earlier files had,
/// and up to where a crash would read.
const BETWEEN: [u8; 5] = [3, 4, 15, 161, 163];

/// The transactions of a binary log, as ranges of its bytes.
///
/// # Errors
/// Where it is none, or is cut short within an event.
pub(super) fn transactions(log: &[u8]) -> Result<Vec<Range<u64>>, StudyError> {
    let damaged = |at: usize| StudyError::Damaged(format!("the binary log is invalid at byte {at}"));
    if !log.starts_with(&MAGIC) {
        return Err(damaged(0));
    }
    let (mut found, mut began) = (Vec::new(), None);
    let mut at = MAGIC.len();
    while at < log.len() {
        let header = log.get(at..at + HEADER).ok_or_else(|| damaged(at))?;
        let length = u32::from_le_bytes([header[9], header[10], header[11], header[12]]) as usize;
        if length < HEADER || at + length > log.len() {
            return Err(damaged(at));
        }
        if header[4] == GTID || BETWEEN.contains(&header[4]) {
            found.extend(began.take().map(|began| began..at as u64));
        }
        if header[4] == GTID {
            began = Some(at as u64);
        }
        at += length;
    }
    found.extend(began.map(|began| began..at as u64));
    Ok(found)
}

/// In how many pages something lies.
pub(super) fn pages(at: u64, length: u64, page: u64) -> u64 {
    (at % page + length).div_ceil(page)
}

/// Where something that would go to `at` goes so that it is in no more pages than it has to.
pub(super) fn contained(at: u64, length: u64, page: u64) -> u64 {
    match pages(at, length, page) > length.div_ceil(page) {
        true => at.next_multiple_of(page),
        false => at,
    }
}

/// The same transactions one behind the other from the same start, each contained.
pub(super) fn padded(transactions: &[Range<u64>], page: u64) -> Vec<Range<u64>> {
    let mut next = transactions.first().map_or(0, |first| first.start);
    let put = |transaction: &Range<u64>| {
        let length = transaction.end - transaction.start;
        let start = contained(next, length, page);
        next = start + length;
        start..next
    };
    transactions.iter().map(put).collect()
}

/// Pages that are written for transactions that are synced one by one.
pub(super) fn written_pages(transactions: &[Range<u64>], page: u64) -> u64 {
    transactions.iter().map(|one| pages(one.start, one.end - one.start, page)).sum()
}

/// One thing that reached the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write { at: u64, length: u64 },
    Flush,
}

/// A binary log on a drive, and the requests of the time in which it was written.
pub(super) struct Written<'a> {
    pub(super) transactions: &'a [Range<u64>],
    pub(super) place: &'a ExtentMap,
    /// From the first one on that is not the log before's.
    pub(super) trace: &'a [TraceRecord],
}

/// A drive's work for a binary log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wear {
    /// Bytes programmed where the log alone is on the drive, as it was and padded.
    pub(super) alone: [f64; 2],
    /// The same of all that was written at that time.
    pub(super) all: [f64; 2],
}

impl Written<'_> {
    /// The place in the log of a write, where it is one to the log.
    fn in_log(&self, request: &TraceRecord) -> Option<u64> {
        let writes = request.operation == Operation::Write;
        writes.then(|| self.place.to_device(request.offset)).flatten().map(|at| at.0)
    }

    /// Pages that the trace has written to the log.
    pub(super) fn traced_pages(&self, page: u64) -> u64 {
        let to_log = self.trace.iter().filter_map(|request| Some((self.in_log(request)?, request.length.0)));
        to_log.map(|(at, length)| pages(at, length, page)).sum()
    }

    /// All that was written, the log at a place of its own behind `base`: as it was, or with its transactions contained
    /// in pages.
    ///
    /// Each transaction is synced by itself, so that one write to the log is one transaction, in their order; what
    /// there is more of writes comes first, and is the file's head.
    fn steps(&self, base: u64, page: u64, is_padded: bool, is_alone: bool) -> Vec<Step> {
        let padded = padded(self.transactions, page);
        let of_head = self.trace.iter().filter(|request| self.in_log(request).is_some()).count();
        let mut of_head = of_head.saturating_sub(padded.len());
        let contained = |one: &Range<u64>| {
            let from = one.start / page * page;
            Step::Write { at: base + from, length: one.end.next_multiple_of(page) - from }
        };
        let mut left = padded.iter().map(contained);
        let (mut steps, mut of_log) = (Vec::new(), false);
        for request in self.trace {
            match (request.operation, self.in_log(request)) {
                (_, Some(at)) => {
                    of_log = true;
                    let as_it_was = Step::Write { at: base + at, length: request.length.0 };
                    let is_head = of_head > 0;
                    of_head = of_head.saturating_sub(1);
                    steps.push(if is_padded && !is_head { left.next().unwrap_or(as_it_was) } else { as_it_was });
                }
                (Operation::Write, None) if !is_alone => {
                    steps.push(Step::Write { at: request.offset.0, length: request.length.0 });
                }
                (Operation::Flush, _) if !is_alone || of_log => {
                    of_log = false;
                    steps.push(Step::Flush);
                }
                _ => {}
            }
        }
        // Transactions that were written together with others are not lost.
        steps.extend(left.filter(|_| is_padded));
        steps
    }

    /// Plays all of it on new drives.
    ///
    /// # Errors
    /// Where a drive refuses.
    pub(super) fn wear(&self, config: &DeviceConfig, seed: u64) -> Result<Wear, StudyError> {
        let page = config.flash.page_bytes;
        // Far behind what else is there: nothing else is written so late on the drive.
        let base = config.capacity_bytes / 4 * 3 / (1 << 20) * (1 << 20);
        let run = |is_padded, is_alone| programmed(config, seed, &self.steps(base, page, is_padded, is_alone));
        Ok(Wear { alone: [run(false, true)?, run(true, true)?], all: [run(false, false)?, run(true, false)?] })
    }
}

/// Bytes that a new drive programs.
fn programmed(config: &DeviceConfig, seed: u64, steps: &[Step]) -> Result<f64, StudyError> {
    let mut drive = SimulatedSsd::new(config.clone(), seed)?;
    for step in steps {
        let request = match *step {
            Step::Write { at, length } => Request::write(ByteSize(at), ByteSize(length)),
            Step::Flush => Request::flush(),
        };
        execute(&mut drive, request)?;
    }
    execute(&mut drive, Request::flush())?;
    Ok(drive.counters().flash.map_or(0.0, |flash| flash.bytes_programmed.0 as f64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flashwise_block::{Extent, Nanos};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    const PAGE: u64 = 4096;

    /// The pages of each byte.
    fn naive_pages(at: u64, length: u64, page: u64) -> u64 {
        (at..at + length).map(|byte| byte / page).collect::<BTreeSet<_>>().len() as u64
    }

    #[test]
    fn padding_is_what_byte_by_byte_arithmetic_says() {
        let mut random = Pcg64Mcg::seed_from_u64(11);
        for page in [512, 4096] {
            for _ in 0..300 {
                let (at, length) = (random.random_range(0..3 * page), random.random_range(1..3 * page));
                assert_eq!(pages(at, length, page), naive_pages(at, length, page), "{length} at {at}");
                // The first place from there on with as few pages as there can be, if only page starts count as other
                // places.
                let fewest = naive_pages(0, length, page);
                let places = std::iter::once(at).chain((at..at + 2 * page).filter(|at| at % page == 0));
                let best = places.into_iter().find(|&at| naive_pages(at, length, page) == fewest).unwrap();
                assert_eq!(contained(at, length, page), best, "{length} at {at}");
            }
        }
    }

    #[test]
    fn a_log_that_is_padded_writes_every_transaction_into_as_few_pages_as_it_can_and_none_over_another() {
        let mut random = Pcg64Mcg::seed_from_u64(12);
        for _ in 0..100 {
            let mut next = random.random_range(4..PAGE);
            let one = |_| {
                let start = next;
                next += random.random_range(1..2 * PAGE);
                start..next
            };
            let plain: Vec<Range<u64>> = (0..50).map(one).collect();
            let padded = padded(&plain, PAGE);
            assert!(padded.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let lengths = |of: &[Range<u64>]| of.iter().map(|one| one.end - one.start).collect::<Vec<_>>();
            assert_eq!(lengths(&plain), lengths(&padded));
            let fewest: u64 = lengths(&plain).iter().map(|length| length.div_ceil(PAGE)).sum();
            assert_eq!(written_pages(&padded, PAGE), fewest);
            assert!(written_pages(&plain, PAGE) >= fewest);
        }
    }

    #[test]
    fn short_transactions_save_what_their_length_says() {
        // One of 294 bytes lies across the end of a page of 4096 with a probability of 293 ÷ 4096.
        let plain: Vec<Range<u64>> = (0..40_960).map(|n| 294 * n..294 * (n + 1)).collect();
        let saved = 1.0 - written_pages(&padded(&plain, PAGE), PAGE) as f64 / written_pages(&plain, PAGE) as f64;
        assert!((saved - 0.0668).abs() < 0.0005, "{saved}");
    }

    fn event(kind: u8, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        bytes[4] = kind;
        bytes[9..13].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    #[test]
    fn transactions_begin_with_their_number_and_end_where_something_else_begins() {
        let events =
            [(15, 252), (163, 43), (161, 40), (162, 42), (19, 50), (23, 140), (16, 31), (162, 42), (2, 90), (4, 40)];
        let log: Vec<u8> =
            MAGIC.into_iter().chain(events.iter().flat_map(|&(kind, length)| event(kind, length))).collect();
        let start = 4 + 252 + 43 + 40;
        assert_eq!(transactions(&log).unwrap(), [start..start + 263, start + 263..start + 395]);
        // A server that was killed leaves no end.
        assert_eq!(transactions(&log[..log.len() - 40]).unwrap().len(), 2);
        assert!(transactions(&log[..log.len() - 1]).is_err() && transactions(b"\xfebix").is_err());
        let empty = [&MAGIC[..], &event(15, 19)[..]].concat();
        assert!(transactions(&empty).unwrap().is_empty());
    }

    /// A log of short transactions, synced one by one, whose file is at 1 MiB.
    fn trace(transactions: &[Range<u64>]) -> Vec<TraceRecord> {
        let base = 1 << 20;
        let mut trace = Vec::new();
        for one in transactions {
            let (from, end) = (one.start / PAGE * PAGE, one.end.next_multiple_of(PAGE));
            let record = |operation, at, length| TraceRecord::new(Nanos(0), operation, ByteSize(at), ByteSize(length));
            trace.push(record(Operation::Write, 8 * PAGE, PAGE));
            trace.push(record(Operation::Flush, 0, 0));
            trace.push(record(Operation::Write, base + from, end - from));
            trace.push(record(Operation::Flush, 0, 0));
        }
        trace
    }

    #[test]
    fn a_padded_log_wears_a_drive_less_that_programs_pages_and_not_one_that_fills_stripes() {
        let transactions: Vec<Range<u64>> = (0..400).map(|n| 4_000 + 600 * n..4_600 + 600 * n).collect();
        let extent = Extent { offset: ByteSize(0), drive_offset: ByteSize(1 << 20), length: ByteSize(1 << 20) };
        let place = ExtentMap::new("x", vec![extent], ByteSize(1 << 20)).unwrap();
        let trace = trace(&transactions);
        let written = Written { transactions: &transactions, place: &place, trace: &trace };
        let plain = written_pages(&transactions, PAGE);
        assert_eq!(written.traced_pages(PAGE), plain);
        let drives = super::super::drives::toshibas().unwrap();
        let wear = |name: &str| written.wear(&drives.iter().find(|drive| drive.0 == name).unwrap().1, 1).unwrap();
        let pages = wear("programs single pages");
        assert_eq!(pages.alone, [plain * PAGE, 400 * PAGE].map(|bytes| bytes as f64));
        assert_eq!(pages.all, [(plain + 400) * PAGE, 800 * PAGE].map(|bytes| bytes as f64));
        let stripes = wear("as it is");
        // A flush fills the stripe; a second one is started only by a write that lies across the end of one.
        let stripe = 65_536;
        let across = transactions.iter().filter(|one| one.start / stripe != (one.end - 1) / stripe).count() as u64;
        assert!(across > 0);
        assert_eq!(stripes.alone, [(400 + across) * stripe, 400 * stripe].map(|bytes| bytes as f64));
    }
}
