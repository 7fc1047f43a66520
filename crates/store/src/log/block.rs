//! One block of the log.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | checksum of bytes 8..4096, seeded with the store's identity |
//! | 8..16 | number of the block: its place in the ring is the number modulo the ring's length |
//! | 16..24 | epoch: which opening of the store wrote it |
//! | 24..32 | blocks below this number were durable when it was written |
//! | 32..34 | bytes of payload |
//! | 34..36 | where the first group starts in the payload; 65535: none does |
//! | 36..40 | zeros |
//! | 40..4096 | payload, then zeros |

use crate::bytes::{checksum, get_u16, get_u64, put};
use crate::medium::BLOCK;

const HEADER: usize = 40;
/// Bytes of payload in a full block.
pub(crate) const PAYLOAD: usize = BLOCK as usize - HEADER;
/// No group starts in the block.
pub(crate) const NO_START: u16 = u16::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<'a> {
    pub number: u64,
    pub epoch: u64,
    pub durable: u64,
    pub first: u16,
    pub payload: &'a [u8],
}

impl<'a> Block<'a> {
    /// Writes the block into 4 KiB of zeros.
    pub(crate) fn encode(&self, seed: u64, into: &mut [u8]) {
        put(into, 8, &self.number.to_le_bytes());
        put(into, 16, &self.epoch.to_le_bytes());
        put(into, 24, &self.durable.to_le_bytes());
        put(into, 32, &(self.payload.len() as u16).to_le_bytes());
        put(into, 34, &self.first.to_le_bytes());
        put(into, HEADER, self.payload);
        let sum = checksum(seed, &into[8..]);
        put(into, 0, &sum.to_le_bytes());
    }

    /// The block in 4 KiB, if it is one of this store.
    pub(crate) fn decode(seed: u64, bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() != BLOCK as usize || get_u64(bytes, 0) != checksum(seed, &bytes[8..]) {
            return None;
        }
        let (used, first) = (usize::from(get_u16(bytes, 32)), get_u16(bytes, 34));
        let payload = bytes.get(HEADER..HEADER + used)?;
        let is_start = first == NO_START || usize::from(first) < used;
        is_start.then_some(Self {
            number: get_u64(bytes, 8),
            epoch: get_u64(bytes, 16),
            durable: get_u64(bytes, 24),
            first,
            payload,
        })
    }
}
