//! Flushes and forced writes: what must be on flash before the completion.
//!
//! A flush first drives out what is in the write cache, then programs what is in the write buffer. With power-loss
//! protection both are as good as flash, and neither a flush nor a forced write costs anything.

use crate::config::WritePolicy;
use crate::device::SimulatedSsd;

impl SimulatedSsd {
    /// A flush covers everything that is in the write cache and the write buffer now.
    pub(crate) fn start_flush(&mut self, request: u32) {
        if self.config.controller.power_loss_protection {
            return self.finish(request);
        }
        // One more, so that nothing continues before every page of the cache is counted.
        self.host.active[request].pending = 1;
        self.flush_cache(request);
        self.host.active[request].pending -= 1;
        if self.host.active[request].pending == 0 {
            self.flush_buffer(request);
        }
    }

    /// What was in the write cache is in the buffer; now what is in the buffer goes to flash.
    pub(crate) fn flush_buffer(&mut self, request: u32) {
        let mut superpages = std::mem::take(&mut self.cache.buffer.to_program);
        superpages.clear();
        superpages.extend_from_slice(self.ftl.pages.host_superpages());
        superpages.retain(|&superpage| self.ftl.pages.superpages[superpage].holds_host_data());
        superpages.iter().for_each(|&superpage| self.wait_for_superpage(request, superpage));
        self.cache.buffer.to_program = superpages;
        if self.host.active[request].pending == 0 {
            self.finish(request);
        }
    }

    /// Whether a write completes only when it is on flash.
    pub(crate) fn is_forced(&self, request: u32) -> bool {
        let controller = &self.config.controller;
        let asked = || self.host.active[request].request.as_ref().is_some_and(|r| r.fua);
        controller.write_policy == WritePolicy::Through || (!controller.power_loss_protection && asked())
    }

    /// Notes which superpage a forced write's page is in.
    #[inline(always)]
    pub(crate) fn remember_for_fua(&mut self, request: u32, superpage: u32) {
        if self.is_forced(request) {
            self.remember_superpage(request, superpage);
        }
    }

    fn remember_superpage(&mut self, request: u32, superpage: u32) {
        let entry = (superpage, self.ftl.pages.superpages[superpage].generation);
        let touched = &mut self.host.active[request].touched;
        if touched.last() != Some(&entry) {
            touched.push(entry);
        }
    }

    /// All of a write is in the buffer and placed: it completes, or waits for the flash if it is forced.
    pub(crate) fn write_placed(&mut self, request: u32) {
        if !self.host.active[request].touched.is_empty() {
            self.wait_for_touched(request);
        }
        if self.host.active[request].pending == 0 {
            self.finish(request);
        }
    }

    /// Makes a forced write wait for the superpages that its pages are in.
    fn wait_for_touched(&mut self, request: u32) {
        let mut n = 0;
        while let Some(&(superpage, generation)) = self.host.active[request].touched.get(n) {
            n += 1;
            let record = &self.ftl.pages.superpages[superpage];
            if record.live && record.generation == generation {
                self.wait_for_superpage(request, superpage);
            }
        }
        self.host.active[request].touched.clear();
    }

    /// Makes a request wait for a superpage, which is programmed now, full or not.
    fn wait_for_superpage(&mut self, request: u32, superpage: u32) {
        if !self.ftl.pages.superpages[superpage].issued {
            self.program_superpage(superpage);
        }
        let waiters = &mut self.ftl.pages.superpages[superpage].waiters;
        if !waiters.contains(&request) {
            waiters.push(request);
            self.host.active[request].pending += 1;
        }
    }
}
