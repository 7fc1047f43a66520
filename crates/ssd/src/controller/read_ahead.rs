//! Reading ahead of the streams that [`crate::cache::ReadAhead`] has found.

use crate::device::SimulatedSsd;
use crate::flash::{FlashOp, FlashOpKind, Owner};
use crate::ftl::Location;
use crate::pages::ByteRange;

impl SimulatedSsd {
    /// A host read has come: reads ahead of the stream that it belongs to.
    pub(crate) fn read_ahead(&mut self, range: ByteRange) {
        let Some(ahead) = &mut self.cache.ahead else { return };
        let behind = range.span(range.pages() - 1).logical_page + 1;
        let pages = ahead.note(range.start, range.end, behind);
        let last = self.config.logical_pages() as u32;
        for logical_page in pages.start..pages.end.min(last) {
            self.load_ahead(logical_page);
        }
        let Some(ahead) = &mut self.cache.ahead else { return };
        let mut commands = std::mem::take(&mut ahead.commands);
        for (_, op, _) in commands.drain(..) {
            self.flash.issue(op, &mut self.clock);
        }
        if let Some(ahead) = &mut self.cache.ahead {
            ahead.commands = commands;
        }
    }

    /// Prepares the reading of one page, if it is on flash only.
    fn load_ahead(&mut self, logical_page: u32) {
        let Location::Flash(slot) = self.ftl.locate(logical_page) else { return };
        if !self.is_on_flash(logical_page) {
            return;
        }
        let at = self.ftl.address_of(slot);
        let bytes = self.page.bytes() as u32;
        let covered = self.ftl.sectors.all();
        let (Some(ahead), Some(cache)) = (&mut self.cache.ahead, &mut self.cache.read) else { return };
        if cache.knows(logical_page) {
            return;
        }
        let known = ahead.commands.iter().rev().find(|&&(other, _, _)| other == at).copied();
        let load = known.map_or_else(|| ahead.loads.take(), |(_, _, load)| load);
        let Some(entry) = cache.load(logical_page, covered, load) else {
            if known.is_none() {
                ahead.loads.give_back(load);
            }
            return;
        };
        ahead.loads[load].entries.push(entry);
        self.flash.counters.bytes_read.0 += u64::from(bytes);
        match known {
            Some((_, op, _)) => self.flash.array.prepared()[op].transfer_bytes += bytes,
            None => {
                let owner = Owner::ReadAhead { load };
                let op = self.flash.array.prepare(FlashOp::new(FlashOpKind::Read, owner, at, bytes));
                ahead.commands.push((at, op, load));
            }
        }
    }

    /// A host read waits for a page that is on its way.
    pub(crate) fn wait_for_load(&mut self, request: u32, load: u32, bytes: u64) {
        if let Some(ahead) = &mut self.cache.ahead {
            ahead.loads[load].waiting.push((request, bytes));
            self.host.active[request].pending += 1;
        }
    }

    /// A command that read ahead has ended.
    pub(crate) fn load_finished(&mut self, load: u32, transfer_ns: u64) {
        let (Some(ahead), Some(cache)) = (&mut self.cache.ahead, &mut self.cache.read) else { return };
        ahead.loads[load].entries.drain(..).for_each(|entry| cache.loaded(entry));
        let mut waiting = std::mem::take(&mut ahead.loads[load].waiting);
        waiting.drain(..).for_each(|(request, bytes)| self.read_part_arrived(request, transfer_ns, bytes));
        if let Some(ahead) = &mut self.cache.ahead {
            ahead.loads[load].waiting = waiting;
            ahead.loads.give_back(load);
        }
    }
}
