//! The flash of a drive: the array with its times, the bytes that are in it, and what is counted of it.

use flashwise_block::FlashCounters;

use super::{FlashAddress, FlashArray, FlashOp, FlashOpKind, Owner};
use crate::clock::Clock;
use crate::config::DeviceConfig;
use crate::payload::Payload;

/// A flash command of the request that is being taken apart.
#[derive(Clone, Copy)]
pub(crate) struct RowRead {
    pub(crate) op: u32,
    pub(crate) at: FlashAddress,
}

/// The flash of a drive.
pub(crate) struct Medium {
    pub(crate) array: FlashArray,
    pub(crate) payload: Payload,
    pub(crate) counters: FlashCounters,
    /// Scratch space: the commands of the read that is being taken apart.
    pub(crate) row_reads: Vec<RowRead>,
    /// So many of them are looked through for one that senses the same row.
    pub(crate) recent_reads: usize,
}

impl Medium {
    /// Issues a prepared command.
    #[inline(always)]
    pub(crate) fn issue(&mut self, op: u32, clock: &mut Clock) {
        self.array.issue(op, clock.now_ns, &mut clock.events);
    }

    /// Prepares the reading of so many bytes, which are counted.
    #[inline(always)]
    pub(crate) fn prepare_read(&mut self, owner: Owner, at: FlashAddress, bytes: u32) -> u32 {
        self.counters.bytes_read.0 += u64::from(bytes);
        self.array.prepare(FlashOp::new(FlashOpKind::Read, owner, at, bytes))
    }

    /// Reads so many bytes, now.
    pub(crate) fn read(&mut self, owner: Owner, at: FlashAddress, bytes: u32, clock: &mut Clock) {
        let op = self.prepare_read(owner, at, bytes);
        self.issue(op, clock);
    }

    /// Lets dies and chips take their next commands, now that all commands of the present event are issued.
    #[inline(always)]
    pub(crate) fn settle(&mut self, clock: &mut Clock) {
        self.array.settle(clock.now_ns, &mut clock.events);
    }

    /// An idle array without bytes; `seed` drives jitter and errors.
    pub(crate) fn new(config: &DeviceConfig, seed: u64) -> Self {
        Self {
            array: FlashArray::new(config, seed),
            payload: Payload::new(config.content_bytes()),
            counters: FlashCounters::default(),
            row_reads: Vec::new(),
            recent_reads: 2 * config.flash.channels as usize,
        }
    }

    /// Adds so many bytes to the command of a read that senses their row, or prepares that command.
    #[inline(always)]
    pub(crate) fn read_bytes_at(&mut self, request: u32, at: FlashAddress, bytes: u32) {
        let recent = self.row_reads.iter().rev().take(self.recent_reads);
        if !self.row_reads.is_empty()
            && let Some(read) = recent.copied().find(|read| read.at == at)
        {
            self.counters.bytes_read.0 += u64::from(bytes);
            self.array.prepared()[read.op].transfer_bytes += bytes;
            return;
        }
        let op = self.prepare_read(Owner::Read { request }, at, bytes);
        self.row_reads.push(RowRead { op, at });
    }
}
