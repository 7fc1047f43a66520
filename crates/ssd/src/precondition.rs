//! States that a drive can be put into at once, before anything is measured on it.

use flashwise_block::{BlockDevice, DeviceCounters};

use crate::SimulatedSsd;
use crate::config::{GcPolicy, Mapping};
use crate::error::SsdError;
use crate::theory::{self, Policy};

impl SimulatedSsd {
    /// Fills the drive as one sequential write of all logical pages would, in no time and without counting it. Pages
    /// carry no payload: they read as zeros.
    ///
    /// # Errors
    /// When something was written before.
    pub fn fill_at_once(&mut self) -> Result<(), SsdError> {
        self.require_empty("fill")?;
        let pages = self.config().logical_pages() as u32 + self.config().translation_pages();
        self.ftl.fill_in_order(pages);
        Ok(())
    }

    /// Puts the drive into the state that a long overwrite with uniformly random logical pages would leave, by the mean
    /// field of its garbage collection ([`theory::mean_field`]), in no time and without counting it. `seed` draws which
    /// logical pages are where. Gives the write amplification that the theory promises.
    ///
    /// # Errors
    /// When something was written before, when no theory covers the drive's garbage collection or how it tells streams
    /// apart, or when the drive leaves garbage collection no room.
    pub fn enter_steady_state(&mut self, seed: u64) -> Result<f64, SsdError> {
        self.require_empty("steady state")?;
        let policy = self.theory_policy()?;
        let pages = self.config().logical_pages() as u32 + self.config().translation_pages();
        let slots = self.ftl.pages.geometry.slots_per_superblock();
        let (mut amplification, mut weight) = (0.0, 0.0);
        let mut failure = None;
        let laid_out = self.ftl.pages.lay_out(pages, seed, &mut |sealed, valid| {
            let fill = valid as f64 / (f64::from(sealed) * f64::from(slots));
            match theory::valid_count_distribution(fill, slots, policy) {
                Ok(distribution) => {
                    amplification += distribution.write_amplification * valid as f64;
                    weight += valid as f64;
                    distribution.counts(sealed, valid)
                }
                Err(error) => {
                    failure = Some(error.to_string());
                    None
                }
            }
        });
        if !laid_out {
            let reason = failure.unwrap_or_else(|| "the sealed superblocks have no room for all logical pages".into());
            return Err(SsdError::Precondition { state: "steady state", reason });
        }
        if let Some(translator) = &mut self.ftl.translator {
            translator.all_stored();
        }
        Ok(amplification / weight)
    }

    fn theory_policy(&self) -> Result<Policy, SsdError> {
        let gc = &self.config().ftl.gc;
        match gc.policy {
            _ if self.config().ftl.mapping != Mapping::Page => {
                let reason = "it is known of page mapping alone; bring the drive there by writing".to_owned();
                Err(SsdError::Precondition { state: "steady state", reason })
            }
            _ if self.has_own_victim_policy() => {
                let reason = "no theory covers a policy of one's own; bring the drive there by writing".to_owned();
                Err(SsdError::Precondition { state: "steady state", reason })
            }
            // Streams that the host names are one and the same to an overwrite that names none.
            _ if self.config().ftl.streams.policy.infers() => {
                let reason = "no theory covers how ftl.streams.policy tells pages apart; bring the drive there by \
                              writing, or set it to \"one\" or \"hint\"";
                Err(SsdError::Precondition { state: "steady state", reason: reason.to_owned() })
            }
            GcPolicy::Greedy | GcPolicy::DisksimGreedy => Ok(Policy::Greedy),
            GcPolicy::RandomGreedy => Ok(Policy::RandomGreedy { d: gc.choices }),
            GcPolicy::Random => Ok(Policy::Random),
            GcPolicy::Fifo => Ok(Policy::Fifo),
            GcPolicy::WindowedGreedy => Ok(Policy::WindowedGreedy { share: gc.window_share }),
            _ => {
                let reason = "no theory covers this garbage collection; bring the drive there by writing".to_owned();
                Err(SsdError::Precondition { state: "steady state", reason })
            }
        }
    }

    fn require_empty(&self, state: &'static str) -> Result<(), SsdError> {
        if self.config().reduction.is_some() {
            let reason =
                "how much room pages take depends on their content; bring the drive there by writing".to_owned();
            return Err(SsdError::Precondition { state, reason });
        }
        let untouched = self.counters() == DeviceCounters { flash: self.counters().flash, ..DeviceCounters::default() };
        if untouched && self.outstanding() == 0 && self.ftl.is_empty() {
            return Ok(());
        }
        Err(SsdError::Precondition { state, reason: "the drive has been written already".into() })
    }
}
