//! libCacheSim's oracleGeneral, written.
//!
//! A record tells which request next asks for the same object, which is known at the end only. So records go to a
//! nameless file beside the system's temporary ones, which is then read backwards, a stretch at a time, with the last
//! place of each object in a table: the one thing here whose memory grows, by some 24 bytes a distinct address.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

use super::{RecordWriter, SECTOR};
use crate::format::oracle_general::RECORD;
use crate::format::vscsi::u64_at;
use crate::record::TraceRecord;

/// Records that are read back at a time.
const STRETCH: u64 = 1 << 16;
/// What stands for an object that nobody asks for again.
const NEVER: i64 = -1;

pub(super) struct OracleGeneral<W> {
    out: W,
    records: BufWriter<File>,
    count: u64,
}

impl<W: Write> OracleGeneral<W> {
    pub(super) fn new(out: W) -> Result<Self, String> {
        let file = tempfile::tempfile().map_err(|e| format!("cannot create a temporary file: {e}"))?;
        Ok(Self { out, records: BufWriter::with_capacity(1 << 20, file), count: 0 })
    }

    /// Fills in the next accesses from the end to the start.
    fn link(&mut self) -> std::io::Result<()> {
        self.records.flush()?;
        let file = self.records.get_ref();
        let mut next = HashMap::<u64, i64>::new();
        let mut bytes = Vec::new();
        for start in (0..self.count.div_ceil(STRETCH)).rev().map(|stretch| stretch * STRETCH) {
            let records = STRETCH.min(self.count - start);
            bytes.resize(records as usize * RECORD, 0);
            file.read_exact_at(&mut bytes, start * RECORD as u64)?;
            for (index, record) in bytes.chunks_exact_mut(RECORD).enumerate().rev() {
                // libCacheSim counts requests from 1.
                let number = (start + index as u64 + 1) as i64;
                let after = next.insert(u64_at(record, 4), number).unwrap_or(NEVER);
                record[16..].copy_from_slice(&after.to_le_bytes());
            }
            file.write_all_at(&bytes, start * RECORD as u64)?;
        }
        Ok(())
    }

    fn copy(&mut self) -> std::io::Result<()> {
        let mut bytes = vec![0; STRETCH as usize * RECORD];
        let length = self.count * RECORD as u64;
        let mut at = 0;
        while at < length {
            let part = &mut bytes[..(STRETCH * RECORD as u64).min(length - at) as usize];
            self.records.get_ref().read_exact_at(part, at)?;
            self.out.write_all(part)?;
            at += part.len() as u64;
        }
        self.out.flush()
    }
}

impl<W: Write> RecordWriter for OracleGeneral<W> {
    fn write(&mut self, record: &TraceRecord) -> Result<(), String> {
        let seconds = u32::try_from(record.at.0 / 1_000_000_000).map_err(|_| "its time exceeds 32 bits of seconds")?;
        let size = u32::try_from(record.length.0).map_err(|_| "its length exceeds 32 bits")?;
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&seconds.to_le_bytes());
        bytes[4..12].copy_from_slice(&(record.offset.0 / SECTOR).to_le_bytes());
        bytes[12..16].copy_from_slice(&size.to_le_bytes());
        self.count += 1;
        self.records.write_all(&bytes).map_err(|e| e.to_string())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.link().and_then(|()| self.copy()).map_err(|e| e.to_string())
    }
}
