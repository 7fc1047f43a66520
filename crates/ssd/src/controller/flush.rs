//! Flushes and forced writes: what must be on flash before the answer.
//!
//! With power-loss protection the write buffer is as good as flash, and neither costs anything.

use crate::device::SimulatedSsd;

impl SimulatedSsd {
    /// A flush covers everything that is in the write buffer now.
    pub(crate) fn start_flush(&mut self, request: u32) {
        if !self.config.controller.power_loss_protection {
            let mut superpages = std::mem::take(&mut self.scratch_superpages);
            superpages.clear();
            superpages.extend_from_slice(self.ftl.host_superpages());
            superpages.retain(|&superpage| self.flush_waits_for(superpage));
            superpages.iter().for_each(|&superpage| self.wait_for_superpage(request, superpage));
            self.scratch_superpages = superpages;
        }
        if self.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// Notes which superpage a forced write's page is in.
    pub(crate) fn remember_for_fua(&mut self, request: u32, superpage: u32) {
        let is_forced = self.active[request].request.as_ref().is_some_and(|r| r.fua);
        if !is_forced || self.config.controller.power_loss_protection {
            return;
        }
        let entry = (superpage, self.ftl.superpages[superpage].generation);
        let touched = &mut self.active[request].touched;
        if touched.last() != Some(&entry) {
            touched.push(entry);
        }
    }

    /// All of a write is in the buffer and placed: it completes, or waits for the flash if it is forced.
    pub(crate) fn write_placed(&mut self, request: u32) {
        let mut touched = std::mem::take(&mut self.active[request].touched);
        for (superpage, generation) in touched.drain(..) {
            let record = &self.ftl.superpages[superpage];
            if record.live && record.generation == generation {
                self.wait_for_superpage(request, superpage);
            }
        }
        self.active[request].touched = touched;
        if self.active[request].pending == 0 {
            self.complete(request);
        }
    }

    /// Makes a request wait for a superpage, which is programmed now, full or not.
    fn wait_for_superpage(&mut self, request: u32, superpage: u32) {
        if !self.ftl.superpages[superpage].issued {
            self.program_superpage(superpage);
        }
        let waiters = &mut self.ftl.superpages[superpage].waiters;
        if !waiters.contains(&request) {
            waiters.push(request);
            self.active[request].pending += 1;
        }
    }
}
