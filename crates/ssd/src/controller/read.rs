//! Reads: from the write buffer where the data still is, from flash otherwise.
//!
//! All pages of one row on one die are sensed by one command (a multi-plane read), and what is asked of them goes over
//! the channel in multiples of the transfer unit. The firmware issues the commands of one run, that is of successive
//! commands to one channel, together, and the next run `dispatch_ns` later.

use crate::controller::{ByteRange, PageSpan};
use crate::device::SimulatedSsd;
use crate::event::Event;
use crate::flash::{Finished, FlashAddress, FlashOp, FlashOpKind, Owner};
use crate::ftl::Location;

/// A flash command of the request that is being taken apart.
#[derive(Clone, Copy)]
pub(crate) struct RowRead {
    op: u32,
    at: FlashAddress,
}

impl SimulatedSsd {
    /// Takes a read apart and issues its first flash commands.
    pub(crate) fn start_read(&mut self, request: u32) {
        let Some(range) = self.range_of(request) else { return };
        let mut buffered_bytes = 0;
        self.row_reads.clear();
        for span in range.spans() {
            match self.locate(span.logical_page) {
                Location::Nowhere => {
                    self.flash_counters.unwritten_pages_read += 1;
                    buffered_bytes += span.len() as u64;
                }
                Location::Buffer(_) => buffered_bytes += span.len() as u64,
                Location::Flash(slot) => self.read_slot(request, slot, span),
            }
        }
        self.fill_buffer(request, range);
        let ops = self.row_reads.len() as u32;
        let finish_ns = if buffered_bytes > 0 { self.host.send(self.now_ns, 0, buffered_bytes) } else { self.now_ns };
        let active = &mut self.active[request];
        (active.pending, active.finish_ns) = (ops, finish_ns);
        for read in &self.row_reads {
            active.to_dispatch.push(self.flash.prepared(), read.op);
        }
        match ops {
            0 => self.events.schedule(finish_ns, Event::Completed { request }),
            _ => self.dispatch(request),
        }
    }

    /// Adds a slot to the command that senses its row, or prepares that command.
    fn read_slot(&mut self, request: u32, slot: u32, span: PageSpan) {
        let at = self.address_of(slot);
        let unit = self.config.flash.transfer_unit_bytes as usize;
        let bytes = (span.to.next_multiple_of(unit) - span.from / unit * unit) as u32;
        self.flash_counters.bytes_read.0 += u64::from(bytes);
        let recent = self.row_reads.iter().rev().take(2 * self.config.flash.channels as usize);
        if let Some(read) = recent.copied().find(|read| read.at == at) {
            self.flash.prepared()[read.op].transfer_bytes += bytes;
            return;
        }
        let op = self.flash.prepare(FlashOp::new(FlashOpKind::Read, Owner::Read { request }, at, bytes));
        self.row_reads.push(RowRead { op, at });
    }

    /// Copies the data of a read that carries a buffer.
    fn fill_buffer(&mut self, request: u32, range: ByteRange) {
        let Some(mut buffer) = self.active[request].request.as_mut().and_then(|r| r.buffer.take()) else { return };
        for span in range.spans() {
            let part = &mut buffer[span.in_buffer..span.in_buffer + span.len()];
            match self.slot_of(span.logical_page) {
                Some(slot) => self.payload.read(slot, span.from, part),
                None => part.fill(0),
            }
        }
        if let Some(r) = self.active[request].request.as_mut() {
            r.buffer = Some(buffer);
        }
    }

    /// Issues the next run of a read's flash commands.
    pub(crate) fn dispatch(&mut self, request: u32) {
        let mut run_channel = None;
        while let Some(op) = self.active[request].to_dispatch.peek() {
            let channel = self.flash.channel_of(op);
            if *run_channel.get_or_insert(channel) != channel {
                let next_ns = self.now_ns + self.config.controller.dispatch_ns;
                self.events.schedule(next_ns, Event::Dispatch { request });
                return;
            }
            self.active[request].to_dispatch.pop(self.flash.prepared());
            self.issue_host_read(op);
        }
    }

    /// One flash command of a read has ended: its data goes over the link.
    pub(crate) fn read_op_finished(&mut self, request: u32, finished: &Finished) {
        let bytes = u64::from(finished.op.transfer_bytes);
        let sent_ns = self.host.send(self.now_ns, finished.transfer_ns, bytes);
        let active = &mut self.active[request];
        active.finish_ns = active.finish_ns.max(sent_ns);
        active.pending -= 1;
        if active.pending == 0 {
            self.events.schedule(active.finish_ns, Event::Completed { request });
        }
    }
}
