//! Garbage collection: which superblock is emptied and erased next.
//!
//! ```text
//!   sealed ─▶ invalidated … ─▶ take_victim          by garbage collection
//!                          └─▶ removed              by wear levelling, or because it is retired
//! ```
//!
//! A policy sees superblocks being sealed, losing valid pages and being taken; it names the next victim of a unit
//! without a scan over superblocks. One type a policy, chosen by `ftl.gc.policy`. The collection itself, reading valid
//! pages, programming them elsewhere and erasing, is in [`crate::controller::collection`].

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

use rand_pcg::Pcg64Mcg;

use super::geometry::Geometry;
use super::superblock::Superblocks;
use super::wear::UnitWear;
use crate::config::{DeviceConfig, GcPolicy, gc_policies};

/// How many superblocks and pages a policy has to do with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Parallel units.
    pub(crate) units: u32,
    /// Superblocks of a unit; those of unit `u` are numbered from `u · superblocks` on.
    pub(crate) superblocks: u32,
    /// Logical pages of a superblock.
    pub(crate) pages: u32,
}

impl Shape {
    fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
        let pages = u64::from(geometry.slots_per_superblock()) * config.slot_bytes() / config.ftl.logical_page_bytes;
        Self { units: geometry.units, superblocks: geometry.superblocks, pages: pages as u32 }
    }
}

/// Whose data a superblock was sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Written by the host, perhaps among others.
    Host,
    /// Moved, all of it.
    Moved,
}

/// What else a policy may look at for its choice.
pub(crate) struct Context<'a> {
    /// All superblocks, for their valid pages and P/E cycles.
    pub(crate) superblocks: &'a Superblocks,
    /// The wear of the unit.
    pub(crate) wear: &'a UnitWear,
    /// Logical pages that the host has written so far.
    pub(crate) clock: u64,
    /// The drive's own source of chance.
    pub(crate) random: &'a mut Pcg64Mcg,
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
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
pub(crate) struct Candidate {
    pub(crate) block: u32,
    /// Its valid pages, where the policy counts them.
    pub(crate) valid: Option<u32>,
}

impl From<u32> for Candidate {
    fn from(block: u32) -> Self {
        Self { block, valid: None }
    }
}

/// Chooses victims.
pub(crate) trait VictimPolicy {
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
    /// has something to gain. A policy that does not go by valid pages may name one that has not.
    fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice>;
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

        crate::state::state_of_policy! { AnyPolicy { $($name($policy)),* } }

        impl VictimPolicy for AnyPolicy {
            fn candidates(&self) -> Vec<Candidate> {
                match self { $(Self::$name(policy) => policy.candidates(),)* }
            }

            fn sealed(&mut self, block: u32, valid: u32, origin: Origin, clock: u64) {
                match self { $(Self::$name(policy) => policy.sealed(block, valid, origin, clock),)* }
            }

            #[inline]
            fn invalidated(&mut self, block: u32, valid: u32, clock: u64) {
                match self { $(Self::$name(policy) => policy.invalidated(block, valid, clock),)* }
            }

            fn removed(&mut self, block: u32) {
                match self { $(Self::$name(policy) => policy.removed(block),)* }
            }

            fn take_victim(&mut self, unit: u32, context: &mut Context<'_>) -> Option<Choice> {
                match self { $(Self::$name(policy) => policy.take_victim(unit, context),)* }
            }
        }
    };
}

gc_policies!(dispatch);
