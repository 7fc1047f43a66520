//! Objects of libCacheSim's traces as addresses.
//!
//! In a trace of a block device an object is a sector, and its number the address. Elsewhere (web caches, key-value
//! stores) it is a hash of 64 bits, which no sector has: then, and where a reader asks for the numbers themselves
//! ([`ReadOptions::object_ids`](crate::ReadOptions::object_ids)), an object's number is its byte.

use flashwise_block::ByteSize;

use super::Units;
use super::fields::sized;

/// How the numbers of a trace become addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Objects {
    /// Bytes of a number.
    unit: u64,
    /// Whether lengths are left out: where numbers are no addresses, what is behind one is another object.
    is_number: bool,
    are_hashes: bool,
}

impl Objects {
    /// Decides by the numbers at the start of a trace.
    pub(crate) fn new(units: &Units<'_>, mut ids: impl Iterator<Item = u64>) -> Self {
        let are_hashes = !units.object_ids && ids.any(|id| id.checked_mul(units.sector).is_none());
        let unit = if units.object_ids || are_hashes { 1 } else { units.sector };
        Self { unit, is_number: units.object_ids, are_hashes }
    }

    /// First byte and length of an object.
    pub(crate) fn place(&self, id: u64, size: u64) -> Result<(ByteSize, ByteSize), String> {
        let offset = sized("object", id, self.unit).map_err(|reason| {
            format!(
                "{reason}: it may be the hash of a name; with --sector-size 1 object numbers are taken as byte offsets"
            )
        })?;
        let length = match () {
            () if self.is_number => 0,
            // A hash may be near the end of all addresses.
            () if self.are_hashes => size.min(u64::MAX - offset.0),
            () => size,
        };
        Ok((offset, ByteSize(length)))
    }

    /// What is to be said of them.
    pub(crate) fn remark(&self) -> Option<String> {
        let told = "object numbers have 64 bits, as hashes do: each number is taken as a byte offset, not a sector";
        self.are_hashes.then(|| told.to_owned())
    }
}
