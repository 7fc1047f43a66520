//! Rule 4: no write of a chunk or more that starts off the chunk's alignment.
//!
//! Where hot locations lie off the chunk's alignment they come from how the drive laid the data out; a chunk-sized
//! write that starts off alignment lays it out again, and the hot locations that it covers are gone. On a drive whose
//! hot locations are at chunk starts nothing can be destroyed, and the rule is not checked. Fixed: such a write is
//! split into pieces.

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, known_hot_location, known_size, with_vfs};
use crate::fix::split;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::system::{Shown, Technique};

struct KeepHotLocations {
    chunk: u64,
    /// Length of the writes that a page is better written with.
    piece: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let chunk = known_size(&profile.parameters.chunk_bytes, "chunk")?;
    let hot = known_hot_location(profile)?;
    if hot.offset_bytes == 0 {
        return Err("the hot locations of this drive are at chunk starts, so writes cannot destroy them".to_owned());
    }
    let unit = profile.parameters.write_unit_bytes.known().filter(|&unit| unit > 0 && unit < chunk);
    let piece = unit.unwrap_or_else(|| chunk.div_ceil(2));
    Ok(Box::new(Each(KeepHotLocations { chunk, piece })))
}

impl PerRequest for KeepHotLocations {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.is_write() && seen.record.length.0 >= self.chunk
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.offset.0.is_multiple_of(self.chunk)
    }

    fn statement(&self) -> String {
        let chunk = ByteSize(self.chunk);
        format!("writes of {chunk} or more should start at a multiple of {chunk}: others destroy hot locations")
    }

    fn remedy(&self, shown: &Shown) -> String {
        let piece = ByteSize(self.piece);
        with_vfs(
            shown,
            Technique::UseHotLocations,
            format!("write a page at a hot location in pieces of {piece}, as the technique use-hot-locations does"),
        )
    }

    fn can_change(&self, shown: &Shown) -> bool {
        shown.can_use(Technique::UseHotLocations)
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        split(steps, self.piece)
    }
}
