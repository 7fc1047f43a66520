//! Rule 2: reads are chunk-sized and start at hot locations.
//!
//! Fixed: the database has pages of one chunk and starts at the first hot location, as use-hot-locations lays it out.
//! If rows are small and read one by one, that is slower, and the cost is negative.

use flashwise_block::ByteSize;
use flashwise_profile::{DeviceProfile, HotLocation};
use flashwise_trace::TraceRecord;

use super::{Check, Each, PerRequest, SET_ALREADY, known_hot_location, known_size, location, with_vfs};
use crate::fix::place_at;
use crate::play::Step;
use crate::request::ObservedRequest;
use crate::system::{DatabaseSystem, Shown, Technique};

struct ReadChunksAtHotLocations {
    chunk: u64,
    hot: HotLocation,
    /// Length of the writes that a page is better written with.
    piece: u64,
}

pub(super) fn prepare(profile: &DeviceProfile) -> Result<Box<dyn Check>, String> {
    let chunk = known_size(&profile.parameters.chunk_bytes, "chunk")?;
    let hot = known_hot_location(profile)?;
    let unit = profile.parameters.write_unit_bytes.known().filter(|&unit| unit > 0 && unit < chunk);
    let piece = if hot.offset_bytes > 0 { unit.unwrap_or(chunk) } else { chunk };
    Ok(Box::new(Each(ReadChunksAtHotLocations { chunk, hot, piece })))
}

impl PerRequest for ReadChunksAtHotLocations {
    fn applies(&self, seen: &ObservedRequest) -> bool {
        seen.is_database_read()
    }

    fn obeys(&self, record: &TraceRecord) -> bool {
        record.length.0 == self.chunk && record.offset.0 % self.hot.period_bytes == self.hot.offset_bytes
    }

    fn statement(&self) -> String {
        let (chunk, at) = (ByteSize(self.chunk), location(self.hot));
        format!("database reads should be {chunk} long and start at {at}")
    }

    fn remedy(&self, shown: &Shown) -> String {
        let chunk = ByteSize(self.chunk);
        match self.hot.offset_bytes {
            0 if shown.has_pages_of(self.chunk) => SET_ALREADY.to_owned(),
            0 => {
                let settings = shown.settings([
                    (DatabaseSystem::Sqlite, "PRAGMA page_size and VACUUM"),
                    (DatabaseSystem::Postgres, "--with-blocksize"),
                    (DatabaseSystem::MariaDb, "innodb_page_size"),
                ]);
                format!("set {chunk} pages ({settings})")
            }
            _ => {
                let set = match shown.has_pages_of(self.chunk) {
                    true => "place each page".to_owned(),
                    false => format!("set {chunk} pages and place each one"),
                };
                let at = location(self.hot);
                let remedy = format!("{set} at {at} with the technique use-hot-locations (flashwise sqlite import)");
                with_vfs(shown, Technique::UseHotLocations, remedy)
            }
        }
    }

    fn can_change(&self, shown: &Shown) -> bool {
        match self.hot.offset_bytes {
            0 => !shown.has_pages_of(self.chunk),
            _ => shown.can_use(Technique::UseHotLocations),
        }
    }

    fn fix(&self, steps: &[Step]) -> Vec<Step> {
        place_at(steps, self.chunk, self.hot.offset_bytes, self.piece)
    }
}
