//! Page numbers as little-endian words of 4 bytes: how the traces of cache simulators are often packed.
//!
//! There is nothing else in them: every request is told as a read of one page, request n as at n ns, so that the order
//! is kept. What speaks for them is that all words of the start are small, read in this order of bytes, and most are
//! large in the other one. [`super::u32_be`] is the same in that other order.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::sized;
use super::source::{Failure, RecordSource};
use crate::error::Place;
use crate::input::{Input, records::Records};
use crate::record::TraceRecord;

/// Turns the bytes of a word into its number.
pub(super) type Order = fn([u8; WORD]) -> u32;

const WORD: usize = 4;
/// Pages of traces have smaller numbers: 2^28 of them are 1 TiB of 4 KiB each.
const SMALL: u32 = 1 << 28;
/// Words that have to be there before anything speaks for them.
const WORDS_MIN: usize = 32;

struct Words {
    records: Records,
    order: Order,
    page: u64,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    are_numbers(head, u32::from_le_bytes, u32::from_be_bytes).then_some(
        "words of 4 bytes, all of them small as little-endian numbers and most of them not as big-endian ones",
    )
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(words(input, units, u32::from_le_bytes))
}

/// Whether all words are small in one order and most are not in the other one.
pub(super) fn are_numbers(head: &Head<'_>, order: Order, other: Order) -> bool {
    let (words, rest) = head.bytes.as_chunks::<WORD>();
    let large = words.iter().filter(|&&word| other(word) >= SMALL).count();
    rest.is_empty()
        && words.len() >= WORDS_MIN
        && words.iter().all(|&word| order(word) < SMALL)
        && large * 2 > words.len()
}

/// Reads the words in an order of bytes.
pub(super) fn words(input: Input, units: &Units<'_>, order: Order) -> Box<dyn RecordSource> {
    Box::new(Words { records: Records::new(input.into_bytes()), order, page: units.page })
}

impl RecordSource for Words {
    #[inline]
    fn next(&mut self) -> Result<Option<TraceRecord>, Failure> {
        let Some(&word) = self.records.next::<WORD>()? else { return Ok(None) };
        let offset = sized("page", (self.order)(word).into(), self.page)
            .map_err(|reason| Failure::Bad { text: String::new(), reason })?;
        let at = Nanos(self.records.number() - 1);
        Ok(Some(TraceRecord::new(at, Operation::Read, offset, ByteSize(self.page))))
    }

    fn place(&self) -> Place {
        Place::Record(self.records.number())
    }

    fn remarks(&self) -> Vec<String> {
        vec!["the format has no operations: every request counts as a read".to_owned()]
    }
}
