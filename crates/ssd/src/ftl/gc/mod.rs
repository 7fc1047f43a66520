//! Garbage collection: which superblock is emptied and erased next.
//!
//! ```text
//!   sealed ─▶ invalidated … ─▶ take_victim          by garbage collection
//!                          └─▶ removed              by wear levelling, or because it is retired
//! ```
//!
//! A policy sees superblocks being sealed, losing valid pages and being taken; it names the next victim of a unit
//! without a scan over superblocks. One type a policy, chosen by `ftl.gc.policy`. The collection itself, reading valid
//! pages, programming them elsewhere and erasing, is in `controller/collection.rs`.
//!
//! # Adding a policy
//!
//! 1. A file here with a type behind [`VictimPolicy`], which starts with its source, and below it a test that compares
//!    it with a scan over all sealed superblocks (`naive.rs`); `fifo.rs` is the shortest. Its `new` takes `[ftl.gc]`
//!    and the [`Shape`], its `state!` says what of it is saved.
//! 2. Its `mod` below.
//! 3. Its line in `gc_policies!` (`config/gc.rs`): what it is, its name, its type. Configuration, schema and dispatch
//!    follow from it, and the property tests, which sample from [`GcPolicy::ALL`]. A key of its own is a field of
//!    `GcConfig` there.
//! 4. `FLASHWISE_BLESS=1 cargo test -p flashwise-ssd --lib reference` writes its line in `docs/formats/device.md`.
//!
//! A policy need not be in this crate:
//! [`SimulatedSsd::with_victim_policy`](crate::SimulatedSsd::with_victim_policy) makes a drive with any type behind
//! [`VictimPolicy`]. `examples/own-policy` does so.

mod cost_benefit;
pub(crate) mod count_lists;
mod disksim_greedy;
mod fifo;
mod greedy;
#[cfg(test)]
mod naive;
mod order;
mod random;
mod random_greedy;
mod regions;
mod sealed_set;
mod two_r;
mod two_r_fifo;
mod wear_aware;
mod windowed_greedy;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::geometry::Geometry;
use super::superblock::{BlockState, Superblocks};
use super::wear::UnitWear;
use crate::config::{DeviceConfig, GcPolicy, gc_policies};

/// How many superblocks and pages a policy has to do with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Parallel units.
    pub units: u32,
    /// Superblocks of a unit; those of unit `u` are numbered from `u · superblocks` on.
    pub superblocks: u32,
    /// Logical pages of a superblock.
    pub pages: u32,
}

impl Shape {
    pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let pages = u64::from(geometry.slots_per_superblock()) * config.slot_bytes() / config.ftl.logical_page_bytes;
        Self { units: geometry.units, superblocks: geometry.superblocks, pages: pages as u32 }
    }
}

/// Whose data a superblock was sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written by the host, perhaps among others.
    Host,
    /// Moved, all of it.
    Moved,
}

/// What else a policy may look at for its choice.
pub struct Context<'a> {
    /// All superblocks, for their valid pages and P/E cycles.
    pub(crate) superblocks: &'a Superblocks,
    /// The wear of the unit.
    pub(crate) wear: &'a UnitWear,
    /// Logical pages that the host has written so far.
    pub(crate) clock: u64,
    /// The drive's own source of chance.
    pub(crate) random: &'a mut Pcg64Mcg,
}

impl Context<'_> {
    /// Valid logical pages of a superblock.
    pub fn valid_pages(&self, block: u32) -> u32 {
        self.superblocks[block].valid
    }

    /// P/E cycles of a superblock so far.
    pub fn erase_count(&self, block: u32) -> u32 {
        self.superblocks[block].erase_count
    }

    /// P/E cycles of the unit's superblocks, on average.
    pub fn mean_erase_count(&self) -> f64 {
        self.wear.mean_erasures()
    }

    /// Logical pages that the host has written so far: the clock of the other methods.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The drive's own source of chance: a policy that draws from it gives one result for one seed.
    pub fn random(&mut self) -> &mut impl Rng {
        &mut *self.random
    }
}

/// A choice: a superblock's number, [`into`](Into::into) a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub(crate) block: u32,
    /// The coldest data of the unit shall move to a worn superblock, as this one is.
    pub(crate) migrates: bool,
}

impl From<u32> for Choice {
    fn from(block: u32) -> Self {
        Self { block, migrates: false }
    }
}

/// A superblock that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub block: u32,
    /// Its valid pages, where the policy counts them: the drive's invariants compare them with the page map.
    pub valid: Option<u32>,
}

impl From<u32> for Candidate {
    fn from(block: u32) -> Self {
        Self { block, valid: None }
    }
}

/// Chooses victims. A superblock is named by its number, a parallel unit by its own.
pub trait VictimPolicy {
    /// All candidates, in no order, for checking them.
    fn candidates(&self) -> Vec<Candidate>;

    /// A superblock was fully written.
    fn sealed(&mut self, block: u32, valid: u32, origin: Origin, clock: u64);

    /// A sealed superblock lost one valid page and has `valid` left; `clock` counts the logical pages that the host
    /// has written so far.
    fn invalidated(&mut self, block: u32, valid: u32, clock: u64);

    /// A sealed superblock is no candidate any more, although the policy did not choose it.
    fn removed(&mut self, block: u32);

    /// The next victim of a unit; it is no longer a candidate. It is asked only while a sealed superblock of the unit
    /// has something to gain. A policy that does not go by valid pages may name one that has not. `None` where there is
    /// no candidate.
    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice>;
}

/// Why a drive with a policy of another crate cannot be saved.
pub(crate) const UNSAVED_POLICY: &str = "its garbage-collection policy is not built in";

/// A policy of another crate. It is called through a pointer, and what it names is checked.
pub(crate) struct Own(Box<dyn VictimPolicy + Send>);

impl Own {
    pub(crate) fn new(policy: Box<dyn VictimPolicy + Send>) -> Self {
        Self(policy)
    }

    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
        let choice = self.0.take_victim(unit, context)?;
        let state = context.superblocks.blocks.get(choice.block as usize).map(|superblock| superblock.state);
        assert_eq!(state, Some(BlockState::Sealed), "superblock {} is not a candidate: it is not sealed", choice.block);
        Some(choice)
    }
}

/// Makes one type of the list of policies: a variant each, chosen by the configuration.
macro_rules! dispatch {
    (
        $(#[$meta:meta])*
        pub enum $setting:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$policy:ty]),* $(,)?
        }
    ) => {
        /// The policies, behind one type so that the loss of a valid page needs no indirect call.
        pub(crate) enum AnyPolicy {
            $(#[doc = concat!("See [`", stringify!($policy), "`].")] $name($policy),)*
            /// One that is not in the list: see [`Own`].
            Own(Own),
        }

        impl AnyPolicy {
            /// The policy that a configuration names.
            pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
                let (gc, shape) = (&config.ftl.gc, Shape::new(config, geometry));
                match gc.policy {
                    $($setting::$name => Self::$name(<$policy>::new(gc, shape)),)*
                }
            }
        }

        crate::state::state_of_policy! {
            AnyPolicy { $($name($policy)),* }
            unsaved { Own: UNSAVED_POLICY }
        }

        impl VictimPolicy for AnyPolicy {
            fn candidates(&self) -> Vec<Candidate> {
                match self { $(Self::$name(policy) => policy.candidates(),)* Self::Own(own) => own.0.candidates() }
            }

            fn sealed(&mut self, block: u32, valid: u32, origin: Origin, clock: u64) {
                match self {
                    $(Self::$name(policy) => policy.sealed(block, valid, origin, clock),)*
                    Self::Own(own) => own.0.sealed(block, valid, origin, clock),
                }
            }

            #[inline]
            fn invalidated(&mut self, block: u32, valid: u32, clock: u64) {
                match self {
                    $(Self::$name(policy) => policy.invalidated(block, valid, clock),)*
                    Self::Own(own) => own.0.invalidated(block, valid, clock),
                }
            }

            fn removed(&mut self, block: u32) {
                match self { $(Self::$name(policy) => policy.removed(block),)* Self::Own(own) => own.0.removed(block) }
            }

            fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
                match self {
                    $(Self::$name(policy) => policy.take_victim(unit, context),)*
                    Self::Own(own) => own.take_victim(unit, context),
                }
            }
        }
    };
}

gc_policies!(dispatch);
