//! The life of a request, from submission to completion, and the loop that runs the events in between.
//!
//! ```text
//!   enter ──▶ queues ──▶ take_command ──▶ start ──▶ translated ──▶ … events … ──▶ finish ──▶ complete
//! ```

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};

use crate::device::SimulatedSsd;
use crate::event::{Event, Limit};
use crate::flash::Owner;
use crate::ftl::AnyFtl;
use crate::host::{CompletionRecord, Hint, LOST};

impl SimulatedSsd {
    /// A prefetch hint: a request for this address follows soon. Each step of the look-up, from logical page to block,
    /// needs the result of the step before, and is prefetched at a later hint.
    #[inline]
    pub fn prefetch_hint(&mut self, operation: Operation, offset: ByteSize) {
        self.host.hints.are_given = true;
        let hint = Hint { page: self.page.of_byte(offset.0), is_write: operation == Operation::Write };
        self.host.hints.push(hint);
        self.prefetch_places(hint.page);
        self.prefetch_entries(self.host.hints.before(2).page);
        let earlier = self.host.hints.before(5);
        self.ftl.prefetch_contents(earlier.page, earlier.is_write);
    }

    /// The places where the tables hold what they know of a page will be asked for.
    fn prefetch_places(&self, page: u32) {
        self.ftl.prefetch_places(page);
        if let Some(cache) = &self.cache.write {
            cache.prefetch_place(page);
        }
    }

    /// What the tables know of a page will be needed, its places being here by now.
    #[inline(always)]
    fn prefetch_entries(&self, page: u32) {
        self.ftl.prefetch_entries(page);
        if let Some(cache) = &self.cache.write {
            cache.prefetch_page(page);
        }
    }

    /// [`BlockDevice::submit`], where the caller has it among its own instructions.
    ///
    /// The request is taken apart and put together for each of its two ways: handed on as a whole, it would be written
    /// to memory in pieces and read from there in others, for which a processor waits.
    #[inline(always)]
    pub fn enter(&mut self, request: Request) -> Result<(), BlockError> {
        let is_plain = self.host.is_plain(&request);
        let Request { tag, operation, offset, length, fua, queue, stream, buffer } = request;
        if !is_plain {
            return self.enter_checked(Request { tag, operation, offset, length, fua, queue, stream, buffer });
        }
        self.accept(Request { tag, operation, offset, length, fua, queue, stream, buffer });
        Ok(())
    }

    /// Takes a request that is unusual, or wrong.
    #[cold]
    #[inline(never)]
    fn enter_checked(&mut self, request: Request) -> Result<(), BlockError> {
        self.host.info.check(&request)?;
        self.accept(request);
        Ok(())
    }

    /// Takes a request that is right.
    #[inline(always)]
    fn accept(&mut self, request: Request) {
        let index = self.host.active.take();
        let queue = request.queue;
        self.host.active[index].start(request, Nanos(self.clock.now_ns));
        self.host.outstanding += 1;
        if self.collector.idle_collections > 0 {
            self.collect_when_asked();
        }
        if self.host.in_drive < self.host.in_drive_max && self.host.queues.pass() {
            self.take_command(index);
        } else {
            self.host.queues.push(&mut self.host.active, index, queue);
            self.take_commands();
        }
    }

    /// Takes requests from the host's queue for as long as the drive's queue has a place.
    pub(crate) fn take_commands(&mut self) {
        while self.host.in_drive < self.host.in_drive_max {
            let Some(request) = self.host.queues.pop(&mut self.host.active) else { return };
            self.take_command(request);
        }
    }

    /// Takes a request that has left the host's queue.
    #[inline(always)]
    fn take_command(&mut self, request: u32) {
        self.host.in_drive += 1;
        let mut ready_ns = self.host.interface.take_command(self.clock.now_ns);
        let active = &mut self.host.active[request];
        active.taken_ns = self.clock.now_ns;
        if let AnyFtl::Elements(elements) = &self.ftl.kind {
            active.ready_ns = ready_ns;
            if let Some(Request { offset, .. }) = &active.request {
                elements.prefetch_page(self.page.of_byte(offset.0));
            }
            if ready_ns == self.clock.now_ns {
                return self.start(request);
            }
        } else if let Some(Request { operation: Operation::Write, length, .. }) = &active.request {
            ready_ns = self.host.interface.receive(ready_ns, length.bytes());
            self.host.write_is_taken(request);
        }
        if !self.host.hints.are_given {
            self.prefetch_taken(request);
        }
        self.clock.schedule(ready_ns, Event::Command { request });
    }

    /// The tables' entries for a request that the drive has just taken, and of the one before the last, will be needed.
    fn prefetch_taken(&mut self, request: u32) {
        let Some(Request { operation, offset, .. }) = self.host.active[request].request else { return };
        let taken = Hint { page: self.page.of_byte(offset.0), is_write: operation == Operation::Write };
        self.host.hints.push(taken);
        self.prefetch_entries(taken.page);
        let earlier = self.host.hints.before(2);
        self.ftl.prefetch_contents(earlier.page, earlier.is_write);
    }

    /// A command has its first effect.
    fn start(&mut self, request: u32) {
        let Some(operation) = self.host.active[request].request.as_ref().map(|r| r.operation) else { return };
        self.host.active[request].ready_ns = self.clock.now_ns;
        // A write to the cache needs the map only when its pages leave it.
        let is_cached = operation == Operation::Write && self.cache.write.is_some();
        let is_mapped = operation != Operation::Flush && !is_cached;
        if is_mapped && self.ftl.translator.is_some() {
            return self.look_up(request, operation);
        }
        self.start_translated(request, operation, true);
    }

    /// Starts a request when the entries of the page map that it needs are there.
    #[inline(never)]
    fn look_up(&mut self, request: u32, operation: Operation) {
        if self.translate(request) {
            self.start_translated(request, operation, true);
        }
    }

    /// All entries of the page map that a request needs are there.
    #[inline(never)]
    pub(crate) fn translated(&mut self, request: u32) {
        let Some(operation) = self.host.active[request].request.as_ref().map(|r| r.operation) else { return };
        self.start_translated(request, operation, false);
    }

    /// Starts a request whose entries of the page map are there; `is_alone` tells that nothing else happens in the
    /// event.
    #[inline(always)]
    fn start_translated(&mut self, request: u32, operation: Operation, is_alone: bool) {
        match (operation, &self.ftl.kind) {
            (Operation::Read | Operation::Write | Operation::WriteZeroes, AnyFtl::Elements(_)) => {
                self.element_command(request)
            }
            (Operation::Read, _) => self.start_read(request, is_alone),
            (Operation::Write | Operation::WriteZeroes, AnyFtl::Buffer | AnyFtl::Steps(_)) => self.start_write(request),
            (Operation::Write | Operation::WriteZeroes, AnyFtl::InPlace(_)) => self.start_write_in_place(request),
            (Operation::Trim, _) => self.trim(request),
            (Operation::Flush, AnyFtl::Buffer | AnyFtl::Steps(_)) => self.start_flush(request),
            (Operation::Flush, AnyFtl::InPlace(_) | AnyFtl::Elements(_)) => self.finish(request),
        }
    }

    /// All is done for a request that is no read: the host is told, once the DRAM and the link have done their part.
    #[inline(never)]
    pub(crate) fn finish(&mut self, request: u32) {
        if self.host.waits_for_dram(request, &mut self.clock) {
            return;
        }
        let posted_ns = self.host.interface.post_completion(self.clock.now_ns);
        if posted_ns > self.clock.now_ns {
            self.clock.schedule(posted_ns, Event::Completed { request });
        } else {
            self.complete(request);
        }
    }

    /// A request's part in DRAM has ended.
    fn in_memory(&mut self, request: u32) {
        match self.host.active[request].request.as_ref().map(|r| r.operation) {
            Some(Operation::Read) => self.host.send_read(request, &mut self.clock),
            _ => self.finish(request),
        }
    }

    /// Answers a request.
    #[inline(always)]
    pub(crate) fn complete(&mut self, request: u32) {
        let active = &mut self.host.active[request];
        let Some(Request { operation, length, .. }) = active.request else { return };
        active.completed_ns = self.clock.now_ns;
        match operation {
            Operation::Read => self.host.stage_times[0].add(active, self.clock.now_ns),
            operation if operation.writes() => self.host.stage_times[1].add(active, self.clock.now_ns),
            _ => {}
        }
        let (queue, is_refused) = (active.queue, active.is_refused);
        self.host.queues.answered(queue);
        if !is_refused {
            self.host.counters.count(operation, length);
        }
        self.host.completed.push(&mut self.host.active, request);
        self.host.completions += 1;
        self.host.in_drive -= 1;
        self.host.write_is_in(request);
        if self.host.queues.waiting() > 0 || self.ftl.reduction.is_some() || self.ftl.pages.has_slc_cache() {
            self.place_is_free(request);
        }
    }

    /// A request has left its place in the drive: others come in, and what depends on those in the drive is examined.
    #[inline(never)]
    fn place_is_free(&mut self, request: u32) {
        self.take_commands();
        if self.ftl.reduction.is_some() {
            self.request_left(request);
        }
        if self.ftl.pages.has_slc_cache() && self.host.is_resting() {
            self.collector.watch_rest(&mut self.clock);
        }
    }

    #[inline(always)]
    fn handle(&mut self, event: Event) {
        let finished = match event {
            Event::Command { request } => return self.start(request),
            Event::Dispatch { request } => return self.dispatch(request),
            Event::Completed { request } => return self.complete(request),
            Event::WriteBack { entry } => return self.cached_page_read(entry),
            Event::LinkFree { request } => return self.link_free(request),
            Event::ElementsDone { request } => return self.elements_done(request),
            Event::InMemory { request } => return self.in_memory(request),
            Event::Quiet { rest } => return self.drive_is_quiet(rest),
            Event::Idle { .. } => return self.look_at_rest(),
            Event::Programmed { die } | Event::ArrayDone { die } => {
                self.flash.array.array_done(die, self.clock.now_ns, &mut self.clock.events)
            }
            Event::Sensed { die } => self.flash.array.sensed(die, self.clock.now_ns, &mut self.clock.events),
            Event::DataSent { channel } => {
                self.flash.array.data_sent(channel, self.clock.now_ns, &mut self.clock.events)
            }
            Event::CommandSent { channel } => {
                self.flash.array.command_sent(channel, self.clock.now_ns, &mut self.clock.events)
            }
            Event::Decoded { op } => Some(op),
        };
        if let Some(op) = finished {
            self.flash_op_finished(op);
        }
    }

    /// A write whose partial pages are filled up goes to the part of the controller that its FTL needs.
    #[inline(always)]
    pub(crate) fn write_filled(&mut self, request: u32) {
        match &self.ftl.kind {
            AnyFtl::Buffer => self.enqueue_write(request),
            AnyFtl::Steps(_) if self.cache.write.is_some() => self.enqueue_write(request),
            AnyFtl::Steps(_) => self.write_by_steps(request),
            AnyFtl::InPlace(_) => self.program_in_place(request),
            AnyFtl::Elements(_) => {}
        }
    }

    #[inline(always)]
    fn flash_op_finished(&mut self, op: u32) {
        let finished = self.flash.array.take_ended(op, self.clock.now_ns);
        if let (true, Owner::Read { request } | Owner::Fill { request }) = (finished.failed, finished.owner) {
            self.host.active[request].failed = true;
        }
        match finished.owner {
            Owner::None => {}
            Owner::Read { request } => self.read_op_finished(request, &finished),
            Owner::Fill { request } => {
                self.host.active[request].pending -= 1;
                if self.host.active[request].pending == 0 {
                    self.write_filled(request);
                }
            }
            Owner::Compare { request } => self.page_compared(request),
            Owner::LookUp { stored } => self.stored_page_read(stored),
            Owner::CacheFill { entry } => self.cached_page_filled(entry),
            Owner::CachedPage { entry } => {
                self.cached_page_programmed(entry);
                self.end_life_if_worn_out();
            }
            Owner::ReadAhead { load } => self.load_finished(load, finished.transfer_ns),
            Owner::InPlace { request } => {
                self.one_less_pending(request);
                self.end_life_if_worn_out();
            }
            Owner::Superpage { superpage } => self.program_op_finished(superpage, finished.failed),
            owner @ (Owner::MapLoad { .. } | Owner::MapUpdate { .. }) => self.translation_page_read(owner),
            Owner::Gc { unit } => self.collection_read_finished(unit, finished.at),
            Owner::Erase { unit, block } => self.erase_finished(unit, block, finished.failed),
        }
    }

    /// Waits for the next completion, but not beyond `deadline`; `None` when the clock has come to the deadline first.
    ///
    /// What completes exactly at the deadline is given back before the clock stops there.
    ///
    /// # Errors
    /// Never; it has the form of [`BlockDevice::wait`].
    pub fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        let answered = self.next_answered(deadline.0);
        if answered.is_none() {
            self.clock.now_ns = self.clock.now_ns.max(deadline.0);
        }
        Ok(answered.and_then(|request| self.host.completion_of(request)))
    }

    /// The same, but where nothing completes the clock stays at the last event, so that what comes before the deadline
    /// can still be submitted at its time.
    pub fn wait_within(&mut self, deadline: Nanos) -> Option<Completion> {
        self.next_answered(deadline.0).and_then(|request| self.host.completion_of(request))
    }

    /// When something happens in the drive next; `None` where nothing is scheduled.
    pub fn next_event(&self) -> Option<Nanos> {
        self.clock.events.next_time().map(Nanos)
    }

    /// [`Self::wait_until`] for a caller that gives no buffers and needs only a [`CompletionRecord`].
    #[inline(always)]
    pub fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord> {
        match self.next_answered(deadline_ns) {
            Some(request) => self.host.answer_of(request),
            None => {
                self.clock.now_ns = self.clock.now_ns.max(deadline_ns);
                None
            }
        }
    }

    /// The next completion, however late; `None` when no event is left.
    #[inline(always)]
    pub fn next_completion(&mut self) -> Option<CompletionRecord> {
        self.next_answered(u64::MAX).and_then(|request| self.host.answer_of(request))
    }

    /// Lets events happen until a request is completed, and gives its record; `None` when none is left to happen before
    /// or at `deadline_ns`.
    #[inline(always)]
    fn next_answered(&mut self, deadline_ns: u64) -> Option<u32> {
        if self.host.completions == 0 && !self.run(deadline_ns, 0) {
            return None;
        }
        let request = self.host.completed.pop(&mut self.host.active)?;
        self.host.completions -= 1;
        self.host.outstanding -= 1;
        Some(request)
    }

    /// Whether a completion is available: several requests may complete at one time.
    pub fn has_completions(&self) -> bool {
        self.host.completions > 0
    }

    /// Lets everything happen that does not wait for the drive to have had nothing to do for a while.
    pub(crate) fn come_to_rest(&mut self) {
        while !self.clock.events.holds_timers_alone() || self.collects_unpaced_at_rest() || self.places_parked_at_rest()
        {
            let Some((time_ns, event)) = self.clock.events.pop_until(Limit::at(u64::MAX)) else { break };
            self.clock.now_ns = time_ns;
            self.handle(event);
            self.collect_where_opened();
            self.flash.settle(&mut self.clock);
        }
        self.collector.forget_paces();
        self.forget_ended_rests();
    }

    /// Whether no request is outstanding.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.host.outstanding == 0
    }

    /// Forgets every outstanding request: those that wait at once, those in progress when they end. None of them is
    /// counted or answered.
    pub(crate) fn drop_requests(&mut self) {
        let (counters, stage_times) = (self.host.counters, self.host.stage_times);
        self.host.queues.clear(&mut self.host.active);
        while self.host.in_drive > 0 && self.run(u64::MAX, self.host.completions) {}
        self.host.completions = 0;
        while let Some(request) = self.host.completed.pop(&mut self.host.active) {
            self.host.active[request].request = None;
            self.host.active.give_back(request);
        }
        self.host.outstanding = 0;
        (self.host.counters, self.host.stage_times) = (counters, stage_times);
    }

    /// Lets events happen until more than so many requests wait to be given back; `false` when none is left to happen
    /// before or at `deadline_ns`, nor anything to start.
    #[inline(never)]
    fn run(&mut self, deadline_ns: u64, completed: u32) -> bool {
        let limit = Limit::at(deadline_ns);
        loop {
            while let Some((time_ns, event)) = self.clock.events.pop_until(limit) {
                debug_assert!(time_ns >= self.clock.now_ns, "time never runs back");
                self.clock.now_ns = time_ns;
                self.handle(event);
                self.collect_where_opened();
                self.flash.settle(&mut self.clock);
                if self.host.completions > completed {
                    return true;
                }
            }
            if self.collects_unpaced_at_rest() {
                continue;
            }
            if !self.clock.events.is_empty() || !self.collect_at_rest(completed) {
                return false;
            }
            // What was let in at rest may have completed at once.
            if self.host.completions > completed {
                return true;
            }
        }
    }
}

impl BlockDevice for SimulatedSsd {
    fn info(&self) -> &DeviceInfo {
        &self.host.info
    }

    fn now(&self) -> Nanos {
        Nanos(self.clock.now_ns)
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.enter(request)
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        if self.host.outstanding == 0 {
            return Ok(None);
        }
        let answered = self.next_answered(u64::MAX).and_then(|request| self.host.completion_of(request));
        answered.map(Some).ok_or(LOST)
    }

    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        if self.host.outstanding == 0 {
            return Ok(None);
        }
        let now_ns = self.clock.now_ns;
        Ok(self.next_answered(now_ns).and_then(|request| self.host.completion_of(request)))
    }

    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        if self.host.outstanding > 0
            && let Some(request) = self.next_answered(deadline.0)
        {
            return Ok(self.host.completion_of(request));
        }
        self.pause(deadline.since(self.now()))?;
        Ok(None)
    }

    fn outstanding(&self) -> usize {
        self.host.outstanding as usize
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        let end_ns = self.clock.now_ns.saturating_add(duration.0);
        self.run(end_ns, u32::MAX);
        self.clock.now_ns = end_ns;
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters { flash: Some(self.flash.counters), ..self.host.counters }
    }
}
