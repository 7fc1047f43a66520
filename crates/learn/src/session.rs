//! One run of learning: which steps run, what becomes of their results, and what a spent budget or a failure leaves.
//!
//! ```text
//!   plan ── step, probe ──▶ requested? allowed? not done? ──▶ probe ──▶ profile so far ──▶ checkpoint
//!    ▲                              └ no: why it was left out ─┐            │
//!    └───────────────── evidence of the probe, or what the profile still says of it ◀┘
//! ```

use std::ops::ControlFlow;

use flashwise_block::{ByteSize, Clock, Nanos, Progress};
use flashwise_profile::{
    DeviceIdentity, DeviceProfile, Entry, Evidence as Noted, Figures, Recipe, SCHEMA, SCHEMA_VERSION,
};

use crate::draft::ProfileDraft;
use crate::evidence::Evidence;
use crate::prober::{Prober, RawSample};
use crate::probes::card::CARD;
use crate::probes::collection;
use crate::probes::collection::COLLECTION;
use crate::probes::collection::cliff::CLIFF;
use crate::probes::latency::DURABILITY;
use crate::probes::limits::LIMITS;
use crate::step::Step;
use crate::{LearnError, LearnOptions, Learned, Scope};

/// Reason for skipping the figures that need the whole drive written.
const THIN: &str = "the drive is thin-provisioned (its capacity exceeds its flash) and cannot be filled";

/// Learning ended before the last step; the session knows why.
#[derive(Debug)]
pub(crate) struct Ended;

/// What came of asking for a step.
enum Outcome<E> {
    /// The probe ran to its end.
    Ran(E),
    /// It was left out, or finished by an earlier run.
    LeftOut,
}

/// A profile in the making, with the drive that it is made of.
pub(crate) struct Session<'s, 'd> {
    identity: DeviceIdentity,
    options: &'s LearnOptions,
    prober: Prober<'d>,
    progress: &'s mut dyn Progress,
    checkpoint: &'s mut dyn FnMut(&DeviceProfile) -> ControlFlow<()>,
    draft: ProfileDraft,
    done: Vec<String>,
    /// What the runs before this one wrote, read and took.
    before: (u64, u64, u64),
    started: Nanos,
    /// Why it ended early.
    stopped: Option<LearnError>,
    /// The first budget that was spent.
    spent: Option<LearnError>,
    raw: Vec<RawSample>,
}

impl<'s, 'd> Session<'s, 'd> {
    /// Starts, or continues from the profile of an earlier run.
    ///
    /// # Errors
    /// When the earlier profile is of another drive.
    pub(crate) fn begin(
        identity: DeviceIdentity,
        prober: Prober<'d>,
        options: &'s LearnOptions,
        progress: &'s mut dyn Progress,
        checkpoint: &'s mut dyn FnMut(&DeviceProfile) -> ControlFlow<()>,
    ) -> Result<Self, LearnError> {
        let started = prober.now();
        let mut session = Self {
            identity,
            options,
            prober,
            progress,
            checkpoint,
            draft: ProfileDraft::default(),
            done: Vec::new(),
            before: (0, 0, 0),
            started,
            stopped: None,
            spent: None,
            raw: Vec::new(),
        };
        if let Some(earlier) = &options.resume {
            session.continue_from(earlier)?;
        }
        session.prober.may_wear = options.scope == Scope::Complete
            && session.prober.may_write
            && collection::obstacle(&session.prober, options.whole_drive, options.max_write, collection::PASSES)
                .is_none();
        Ok(session)
    }

    fn continue_from(&mut self, earlier: &DeviceProfile) -> Result<(), LearnError> {
        let (theirs, ours) = (&earlier.device, &self.identity);
        if (&theirs.name, theirs.capacity_bytes) != (&ours.name, ours.capacity_bytes) {
            let say = |device: &DeviceIdentity| format!("{} of {}", device.name, ByteSize(device.capacity_bytes));
            return Err(LearnError::OtherDrive { theirs: say(theirs), ours: say(ours) });
        }
        self.draft.figures = Figures {
            parameters: earlier.parameters.clone(),
            limits: earlier.limits.clone(),
            card: earlier.card.clone(),
            wear: earlier.wear.clone(),
        };
        self.draft.at_sizes.clone_from(&earlier.at_sizes);
        self.draft.evidence.clone_from(&earlier.evidence);
        self.draft.curves = earlier.curves.clone();
        self.done.clone_from(&earlier.recipe.probes);
        let recipe = &earlier.recipe;
        self.before = (recipe.bytes_written, recipe.bytes_read, recipe.device_time_ns);
        Ok(())
    }

    /// Runs the probe of a step, unless it is done, not requested or not allowed, and hands out what it shows or what
    /// the profile says of it; then a checkpoint.
    ///
    /// # Errors
    /// When learning ends here: the device failed, or `progress` or the checkpoint broke off.
    pub(crate) fn step<E: Evidence>(
        &mut self,
        step: &Step,
        probe: impl FnOnce(&mut Prober<'d>, &mut ProfileDraft, &mut dyn Progress) -> Result<E, LearnError>,
    ) -> Result<E, Ended> {
        let evidence = match self.attempt(step, probe) {
            Ok(Outcome::Ran(evidence)) => evidence,
            Ok(Outcome::LeftOut) => E::recorded(&self.draft),
            Err(why) if why.is_spent_budget() => {
                self.leave_out(step, &why.to_string(), false);
                self.spent.get_or_insert(why);
                E::recorded(&self.draft)
            }
            Err(why) => {
                self.stopped = Some(why);
                return Err(Ended);
            }
        };
        self.raw.extend(self.prober.take_raw());
        let so_far = self.profile();
        if (self.checkpoint)(&so_far).is_break() {
            return Err(Ended);
        }
        Ok(evidence)
    }

    fn attempt<E: Evidence>(
        &mut self,
        step: &Step,
        probe: impl FnOnce(&mut Prober<'d>, &mut ProfileDraft, &mut dyn Progress) -> Result<E, LearnError>,
    ) -> Result<Outcome<E>, LearnError> {
        let options = self.options;
        let has_sizes = !step.at_sizes || !self.sizes_to_measure().is_empty();
        let is_of_scope = match options.scope {
            Scope::Complete => {
                ![LIMITS.name, CARD.name].contains(&step.name) && (step.name != CLIFF.name || self.needs_cliff())
            }
            Scope::Layout => step.layout,
            Scope::Durability => step.name == DURABILITY.name,
            Scope::Limits => step.name == LIMITS.name,
            Scope::Card => step.name == CARD.name,
        };
        let is_requested = has_sizes && is_of_scope;
        let is_done = self.done.iter().any(|name| name == step.name);
        if !is_requested || (is_done && !step.at_sizes) {
            return Ok(Outcome::LeftOut);
        }
        if !self.prober.may_write && !step.reads_alone {
            self.leave_out(step, "writing to the drive is not allowed", true);
            return Ok(Outcome::LeftOut);
        }
        if step.overwrites > 0
            && let Some(why) =
                collection::obstacle(&self.prober, options.whole_drive, options.max_write, step.overwrites)
        {
            self.leave_out(step, &why, options.max_write.is_none());
            return Ok(Outcome::LeftOut);
        }
        if let Some(earlier) = step.after.filter(|earlier| !self.done.iter().any(|name| name == earlier)) {
            self.leave_out(step, &format!("needs the result of the {earlier} probe, which was skipped"), false);
            return Ok(Outcome::LeftOut);
        }
        self.prober.advance(self.progress, step.name, 0.0)?;
        let before = self.draft.clone();
        let evidence = match probe(&mut self.prober, &mut self.draft, self.progress) {
            Ok(evidence) => evidence,
            Err(why) => {
                self.prober.settle();
                if !why.is_spent_budget() {
                    // What a drive showed while it was failing, or half of a probe, is no knowledge.
                    self.draft = before;
                }
                if step.overwrites > 0 && why.is_out_of_space() {
                    collection::trim_all(&mut self.prober)?;
                    self.leave_out(step, THIN, true);
                    return Ok(Outcome::LeftOut);
                }
                return Err(why);
            }
        };
        if !is_done {
            self.done.push(step.name.to_owned());
        }
        if self.prober.may_write {
            return Ok(Outcome::Ran(evidence));
        }
        // What was never written may lie nowhere, and reading it shows nothing.
        self.draft.figures.parameters.remove_absent(step.figures);
        self.draft.figures.limits.remove_absent(step.figures);
        self.draft.figures.card.remove_absent(step.figures);
        Ok(Outcome::Ran(evidence.of_reads_alone()))
    }

    /// Whether the drive is a real one, which has been written before: no probe finds it new.
    pub(crate) fn is_on_real_drive(&self) -> bool {
        self.prober.clock() == Clock::Wall
    }

    /// Whether the cliff is all that the budget allows of garbage collection: where that was probed as a whole, or
    /// nobody gave a budget, it is not.
    fn needs_cliff(&self) -> bool {
        let is_probed = self.done.iter().any(|name| name == COLLECTION.name);
        !is_probed && self.options.max_write.is_some()
    }

    /// Sizes that were requested, and of which nothing is known yet.
    pub(crate) fn sizes_to_measure(&self) -> Vec<ByteSize> {
        let known = |size: &ByteSize| self.draft.at_sizes.iter().any(|at| at.request_bytes == size.bytes());
        let mut sizes: Vec<ByteSize> = self.options.request_sizes.iter().copied().filter(|size| !known(size)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Notes of the figures of a step that were not settled why that is so.
    fn leave_out(&mut self, step: &Step, why: &str, unasked: bool) {
        for key in step.figures {
            let is_noted = self.draft.evidence.iter().any(|evidence| evidence.figure == *key);
            if !is_noted {
                self.draft.leave_out(key, step.name, why, unasked);
            }
        }
    }

    /// The end of the last step, or of what could be done.
    pub(crate) fn finish(mut self) -> Learned {
        if !self.draft.figures.entries().iter().any(Entry::has_result) {
            // A budget that allows nothing is worth an error. Probes after the one that it stopped may have written
            // too.
            let written = self.prober.written();
            let spent = self.spent.take().map(|why| match why {
                LearnError::WriteLimit { is_quick, limit, next, .. } => {
                    LearnError::WriteLimit { is_quick, limit, written, next }
                }
                other => other,
            });
            self.stopped = self.stopped.take().or(spent);
        }
        self.draft.correct_for_many_tests();
        self.raw.extend(self.prober.take_raw());
        Learned { profile: self.profile(), stopped: self.stopped, raw: self.raw }
    }

    fn profile(&self) -> DeviceProfile {
        let (written, read, time) = self.before;
        let order = |evidence: &Noted| {
            let entries = self.draft.figures.entries();
            entries.iter().position(|entry| entry.key == evidence.figure)
        };
        let mut evidence = self.draft.evidence.clone();
        evidence.sort_by_key(order);
        DeviceProfile {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            device: self.identity.clone(),
            recipe: Recipe {
                seed: self.options.seed,
                region_bytes: self.prober.region().bytes(),
                bytes_written: written + self.prober.written().bytes(),
                bytes_read: read + self.prober.read_total().bytes(),
                device_time_ns: time + self.prober.now().since(self.started).0,
                probes: self.done.clone(),
            },
            parameters: self.draft.figures.parameters.clone(),
            limits: self.draft.figures.limits.clone(),
            card: self.draft.figures.card.clone(),
            wear: self.draft.figures.wear.clone(),
            at_sizes: self.draft.at_sizes.clone(),
            evidence,
            curves: self.draft.curves.clone(),
        }
    }
}
