//! What all drives of an array have done together, those too that have failed: counts added up, channels and dies one
//! drive behind the other.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, BlockError, Nanos};

use super::SimulatedArray;
use super::controller::Timer;
use super::members::Member;
use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::QueuePriority;
use flashwise_ssd::flash::Statistics;
use flashwise_ssd::reduction::{ContentModel, ReductionCounters, SpaceUse};
use flashwise_ssd::{SlcCacheCounters, SlcCacheUse};

impl SimulatedArray {
    /// The drives that are there.
    fn drives(&self) -> impl Iterator<Item = &SimulatedSsd> {
        self.members.iter().filter_map(|member| member.drive.as_ref())
    }

    /// What the flash of all drives has done, place by place.
    pub fn flash_statistics(&self) -> Statistics {
        let mut all = Statistics::default();
        self.members.iter().for_each(|member| all.append(member.statistics()));
        all
    }

    /// What the drives did to store less than they were given; `None` where they store everything by default.
    pub fn reduction_counters(&self) -> Option<ReductionCounters> {
        self.members.iter().filter_map(Member::reduction_counters).reduce(|all, one| all.and(&one))
    }

    /// What is on the drives that are there; `None` where they store everything by default.
    pub fn space_use(&self) -> Option<SpaceUse> {
        self.drives().filter_map(SimulatedSsd::space_use).reduce(|all, one| SpaceUse {
            logical_bytes: all.logical_bytes + one.logical_bytes,
            physical_bytes: all.physical_bytes + one.physical_bytes,
            physical_capacity_bytes: all.physical_capacity_bytes + one.physical_capacity_bytes,
        })
    }

    /// What went through the drives' SLC caches; `None` where they have none.
    pub fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
        self.members.iter().filter_map(Member::slc_cache_counters).reduce(|all, one| all.and(&one))
    }

    /// What is in the SLC caches of the drives that are there.
    pub fn slc_cache_use(&self) -> Option<SlcCacheUse> {
        self.drives().filter_map(SimulatedSsd::slc_cache_use).reduce(|all, one| SlcCacheUse {
            superblocks: all.superblocks + one.superblocks,
            capacity_bytes: all.capacity_bytes + one.capacity_bytes,
            valid_bytes: all.valid_bytes + one.valid_bytes,
        })
    }

    /// Superblocks of the drives that are there by their P/E cycles.
    pub fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        for (cycles, superblocks) in self.drives().flat_map(SimulatedSsd::erase_histogram) {
            *all.entry(cycles).or_default() += superblocks;
        }
        all
    }

    /// As [`SimulatedSsd::mapped_and_valid_pages`], added up over the drives that are there.
    pub fn mapped_and_valid_pages(&self) -> (u64, u64) {
        self.drives().map(SimulatedSsd::mapped_and_valid_pages).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Bytes in the buffers of the drives, those included that were lost with drives that failed.
    pub fn buffered_bytes(&self) -> u64 {
        self.members.iter().map(Member::buffered_bytes).sum()
    }

    /// Bytes that were written to drives.
    pub fn member_bytes_written(&self) -> u64 {
        self.members.iter().map(|member| member.counters().host_bytes_written.bytes()).sum()
    }

    /// Whether nobody has asked anything of it, and every drive is there.
    pub fn is_untouched(&self) -> bool {
        self.next_number == 0 && self.drives().count() == self.members.len()
    }

    /// Brings every drive, told its number, into a state; then their clocks to the latest of them.
    pub fn prepare<E: From<BlockError>>(
        &mut self,
        mut bring: impl FnMut(usize, &mut SimulatedSsd) -> Result<(), E>,
    ) -> Result<(), E> {
        for number in 0..self.members.len() {
            if let Some(drive) = &mut self.members.get_mut(number).drive {
                bring(number, drive)?;
                self.now_ns = self.now_ns.max(drive.now().0);
            }
        }
        Ok(self.members.catch_all_up(self.now_ns)?)
    }

    /// Gives a submission queue of every drive, spares included, its class.
    pub fn set_queue_class(&mut self, queue: u16, class: QueuePriority) {
        self.queue_classes.push((queue, class));
        for member in 0..self.members.len() {
            if let Some(drive) = &mut self.members.get_mut(member).drive {
                drive.set_queue_class(queue, class);
            }
        }
    }

    /// Says what the pages of writes without bytes are like, on every drive, spares included.
    pub fn set_content_model(&mut self, model: ContentModel) {
        for member in 0..self.members.len() {
            if let Some(drive) = &mut self.members.get_mut(member).drive {
                drive.set_content_model(model);
            }
        }
        self.content = Some(model);
    }

    /// A drive to are in for one that has failed.
    pub(super) fn new_drive(&self, seed: u64) -> Result<SimulatedSsd, SsdError> {
        let mut drive = SimulatedSsd::new(self.member_config.clone(), seed)?;
        self.queue_classes.iter().for_each(|&(queue, class)| drive.set_queue_class(queue, class));
        if let Some(content) = self.content {
            drive.set_content_model(content);
        }
        Ok(drive)
    }

    /// A drive fails at that time of the array's clock, as with [`Self::fail_drive`]; at once where it has come.
    pub fn fail_drive_at(&mut self, member: usize, at: Nanos) {
        if at.0 <= self.now_ns {
            self.fail_drive(member);
        } else {
            self.controller.set(at.0, Timer::Fail(member));
        }
    }
}
