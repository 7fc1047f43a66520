//! What a workload can run on: a drive, an array of them, or a cloud volume.
//!
//! The driver is made again for each of the three, so that a single drive's path holds no question which of them it is.
//!
//! # Adding something that workloads run on
//!
//! A type behind [`Target`], and a variant of `Machine` (`machine.rs`), which reads it from a file.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Operation, Progress, Request};

use super::{Precondition, Preconditioned, SimulationError, precondition};
use crate::VolumeActivity;
use crate::life::{History, Life};
use flashwise_array::{ArrayActivity, SimulatedArray};
use flashwise_ssd::config::{DeviceConfig, QueuePriority};
use flashwise_ssd::flash::Statistics;
use flashwise_ssd::host::CompletionRecord;
use flashwise_ssd::reduction::{ContentModel, ReductionCounters, SpaceUse};
use flashwise_ssd::{SimulatedSsd, SsdError};
use flashwise_ssd::{SlcCacheCounters, SlcCacheUse};
use flashwise_volume::SimulatedVolume;

/// What a workload runs on.
pub(super) trait Target: BlockDevice {
    /// What the drive is built of, or each drive of the array; `None` where no drive stores the bytes.
    fn drive_config(&self) -> Option<&DeviceConfig>;
    fn set_queue_class(&mut self, queue: u16, class: QueuePriority);
    fn set_content_model(&mut self, model: ContentModel);
    /// As [`SimulatedSsd::set_future_writes`]; an array does not pass it on.
    fn set_future_writes(&mut self, writes: &[u32]) -> Result<(), SsdError>;
    /// Brings it into a state, before anything else is asked of it.
    fn precondition(
        &mut self,
        state: Precondition,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<Preconditioned, SimulationError>;
    /// The workload starts now.
    fn begin(&mut self);

    /// As [`SimulatedSsd::prefetch_hint`].
    fn prefetch_hint(&mut self, operation: Operation, offset: ByteSize);
    /// As [`SimulatedSsd::enter`].
    fn enter(&mut self, request: Request) -> Result<(), BlockError>;
    /// As [`SimulatedSsd::complete_until`].
    fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord>;
    /// As [`SimulatedSsd::next_completion`].
    fn next_completion(&mut self) -> Option<CompletionRecord>;
    /// Whether no request is outstanding.
    fn is_idle(&self) -> bool;
    /// Why it will never complete a request again.
    fn fault(&self) -> Option<BlockError>;

    fn flash_statistics(&self) -> Statistics;
    fn reduction_counters(&self) -> Option<ReductionCounters>;
    fn space_use(&self) -> Option<SpaceUse>;
    fn slc_cache_counters(&self) -> Option<SlcCacheCounters>;
    fn slc_cache_use(&self) -> Option<SlcCacheUse>;
    fn erase_histogram(&self) -> BTreeMap<u32, u64>;
    fn mapped_and_valid_pages(&self) -> (u64, u64);
    fn buffered_bytes(&self) -> u64;
    /// Bytes that drives were given to write since they are new.
    fn bytes_given_to_drives(&self) -> u64;

    /// Notes on wear, where they can be made.
    fn history(&self) -> Option<History>;
    fn advance(&self, history: &mut History);
    fn life(&self, history: Option<&History>) -> Option<Life>;
    /// What an array did since the workload started.
    fn array_activity(&self, elapsed_ns: u64) -> Option<ArrayActivity>;
    /// What the limits of a volume did since the workload started.
    fn volume_activity(&self) -> Option<VolumeActivity>;
}

/// What a drive and an array have by the same names.
macro_rules! called_alike {
    () => {
        fn set_queue_class(&mut self, queue: u16, class: QueuePriority) {
            self.set_queue_class(queue, class);
        }

        fn set_content_model(&mut self, model: ContentModel) {
            self.set_content_model(model);
        }

        fn flash_statistics(&self) -> Statistics {
            self.flash_statistics()
        }

        fn reduction_counters(&self) -> Option<ReductionCounters> {
            self.reduction_counters()
        }

        fn space_use(&self) -> Option<SpaceUse> {
            self.space_use()
        }

        fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
            self.slc_cache_counters()
        }

        fn slc_cache_use(&self) -> Option<SlcCacheUse> {
            self.slc_cache_use()
        }

        fn erase_histogram(&self) -> BTreeMap<u32, u64> {
            self.erase_histogram()
        }

        fn mapped_and_valid_pages(&self) -> (u64, u64) {
            self.mapped_and_valid_pages()
        }

        fn buffered_bytes(&self) -> u64 {
            self.buffered_bytes()
        }
    };
}

impl Target for SimulatedSsd {
    called_alike!();

    fn drive_config(&self) -> Option<&DeviceConfig> {
        Some(self.config())
    }

    fn set_future_writes(&mut self, writes: &[u32]) -> Result<(), SsdError> {
        self.set_future_writes(writes)
    }

    fn precondition(
        &mut self,
        state: Precondition,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<Preconditioned, SimulationError> {
        precondition(self, state, seed, progress)
    }

    fn begin(&mut self) {}

    #[inline(always)]
    fn prefetch_hint(&mut self, operation: Operation, offset: ByteSize) {
        self.prefetch_hint(operation, offset);
    }

    #[inline(always)]
    fn enter(&mut self, request: Request) -> Result<(), BlockError> {
        self.enter(request)
    }

    #[inline(always)]
    fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord> {
        self.complete_until(deadline_ns)
    }

    #[inline(always)]
    fn next_completion(&mut self) -> Option<CompletionRecord> {
        self.next_completion()
    }

    #[inline(always)]
    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    #[inline(always)]
    fn fault(&self) -> Option<BlockError> {
        None
    }

    fn bytes_given_to_drives(&self) -> u64 {
        self.counters().host_bytes_written.0
    }

    fn history(&self) -> Option<History> {
        History::of(self)
    }

    fn advance(&self, history: &mut History) {
        history.advance(self);
    }

    fn life(&self, history: Option<&History>) -> Option<Life> {
        Life::after(self, history)
    }

    fn array_activity(&self, _: u64) -> Option<ArrayActivity> {
        None
    }

    fn volume_activity(&self) -> Option<VolumeActivity> {
        None
    }
}

impl Target for SimulatedArray {
    called_alike!();

    fn drive_config(&self) -> Option<&DeviceConfig> {
        Some(self.member_config())
    }

    fn set_future_writes(&mut self, _: &[u32]) -> Result<(), SsdError> {
        let reason =
            "foresight is not available for arrays: a page of an array maps to pages of several drives".to_owned();
        Err(SsdError::Precondition { state: "foresight", reason })
    }

    fn precondition(
        &mut self,
        state: Precondition,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<Preconditioned, SimulationError> {
        if state != Precondition::Empty && !self.is_untouched() {
            let reason = "the array has already been used and cannot be reset: create a new one".to_owned();
            return Err(SsdError::Precondition { state: state.name(), reason }.into());
        }
        let mut each = Vec::new();
        self.prepare(|number, drive| -> Result<(), SimulationError> {
            each.push(precondition(drive, state, seed.wrapping_add(number as u64), progress)?);
            Ok(())
        })?;
        Ok(Preconditioned::of_all(state, &each))
    }

    fn begin(&mut self) {
        self.mark();
        let (now, failures) = (self.now(), self.config().failures.clone());
        failures.iter().for_each(|failure| self.fail_drive_at(failure.member as usize, now + failure.at()));
    }

    fn prefetch_hint(&mut self, _: Operation, _: ByteSize) {}

    fn enter(&mut self, request: Request) -> Result<(), BlockError> {
        self.submit(request)
    }

    fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord> {
        self.complete_until(deadline_ns)
    }

    fn next_completion(&mut self) -> Option<CompletionRecord> {
        self.complete_until(u64::MAX)
    }

    fn is_idle(&self) -> bool {
        self.outstanding() == 0
    }

    fn fault(&self) -> Option<BlockError> {
        self.fault()
    }

    fn bytes_given_to_drives(&self) -> u64 {
        self.member_bytes_written()
    }

    /// The life of an array's drives is not projected.
    fn history(&self) -> Option<History> {
        None
    }

    fn advance(&self, _: &mut History) {}

    fn life(&self, _: Option<&History>) -> Option<Life> {
        None
    }

    fn array_activity(&self, elapsed_ns: u64) -> Option<ArrayActivity> {
        Some(self.activity(elapsed_ns))
    }

    fn volume_activity(&self) -> Option<VolumeActivity> {
        None
    }
}

impl Target for SimulatedVolume {
    fn drive_config(&self) -> Option<&DeviceConfig> {
        self.drive().map(SimulatedSsd::config)
    }

    fn set_queue_class(&mut self, _: u16, _: QueuePriority) {}

    fn set_content_model(&mut self, model: ContentModel) {
        if let Some(drive) = self.drive_mut() {
            drive.set_content_model(model);
        }
    }

    fn set_future_writes(&mut self, _: &[u32]) -> Result<(), SsdError> {
        let reason = "foresight is not available for volumes: limits delay the writes that it foresees".to_owned();
        Err(SsdError::Precondition { state: "foresight", reason })
    }

    fn precondition(
        &mut self,
        state: Precondition,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<Preconditioned, SimulationError> {
        let Some(drive) = self.drive_mut() else {
            // No other medium has a state that shows in its latencies.
            return Ok(Preconditioned { state, ..Preconditioned::default() });
        };
        let done = precondition(drive, state, seed, progress)?;
        self.follow_drive();
        Ok(done)
    }

    fn begin(&mut self) {
        self.reset_limit_activity();
    }

    fn prefetch_hint(&mut self, _: Operation, _: ByteSize) {}

    fn enter(&mut self, request: Request) -> Result<(), BlockError> {
        self.submit(request)
    }

    fn complete_until(&mut self, deadline_ns: u64) -> Option<CompletionRecord> {
        let done = self.wait_until(Nanos(deadline_ns)).ok()??;
        Some(CompletionRecord {
            tag: done.tag,
            operation: done.operation,
            submitted_ns: done.submitted_at.0,
            taken_ns: done.started_at.0,
            completed_ns: done.completed_at.0,
            error: done.result.err().map(Box::new),
        })
    }

    fn next_completion(&mut self) -> Option<CompletionRecord> {
        self.complete_until(u64::MAX)
    }

    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    fn fault(&self) -> Option<BlockError> {
        None
    }

    fn flash_statistics(&self) -> Statistics {
        self.drive().map_or_else(Statistics::default, SimulatedSsd::flash_statistics)
    }

    fn reduction_counters(&self) -> Option<ReductionCounters> {
        self.drive()?.reduction_counters()
    }

    fn space_use(&self) -> Option<SpaceUse> {
        self.drive()?.space_use()
    }

    fn slc_cache_counters(&self) -> Option<SlcCacheCounters> {
        self.drive()?.slc_cache_counters()
    }

    fn slc_cache_use(&self) -> Option<SlcCacheUse> {
        self.drive()?.slc_cache_use()
    }

    fn erase_histogram(&self) -> BTreeMap<u32, u64> {
        self.drive().map_or_else(BTreeMap::new, SimulatedSsd::erase_histogram)
    }

    fn mapped_and_valid_pages(&self) -> (u64, u64) {
        self.drive().map_or((0, 0), SimulatedSsd::mapped_and_valid_pages)
    }

    fn buffered_bytes(&self) -> u64 {
        self.drive().map_or(0, SimulatedSsd::buffered_bytes)
    }

    fn bytes_given_to_drives(&self) -> u64 {
        self.drive().map_or(0, |drive| drive.counters().host_bytes_written.0)
    }

    /// The life of a volume's drive is not projected.
    fn history(&self) -> Option<History> {
        None
    }

    fn advance(&self, _: &mut History) {}

    fn life(&self, _: Option<&History>) -> Option<Life> {
        None
    }

    fn array_activity(&self, _: u64) -> Option<ArrayActivity> {
        None
    }

    fn volume_activity(&self) -> Option<VolumeActivity> {
        Some(VolumeActivity { config: self.config().clone(), limits: self.limit_activity() })
    }
}
