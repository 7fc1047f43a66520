//! Placement: which parallel unit the host's next page goes to.
//!
//! One type a policy, chosen by `ftl.placement`. A policy names the unit that is due and, where the address does not
//! bind it, the ones to try when that unit has no space, or more than its share of the valid data. Without the latter
//! the shares drift apart: a unit that is a little fuller collects more for the same room, and nothing drives it back.
//!
//! # Adding a policy
//!
//! 1. A file here with a type behind [`PlacementPolicy`] and a table test; `round_robin.rs` is the shortest. Its `new`
//!    takes the configuration and the geometry, its `state!` says what of it is saved.
//! 2. Its `mod` below.
//! 3. Its line in `placements!` (`config/ftl.rs`): what it is, its name, its type, and what it binds an address to.
//!    The rest follows from it, as the property tests do, which sample from [`Placement::ALL`].
//! 4. `FLASHWISE_BLESS=1 cargo test -p flashwise-ssd --lib reference` writes its line in `docs/formats/device.md`.

mod least_loaded;
mod round;
mod round_robin;
mod static_order;
mod stripe;

use super::geometry::Geometry;
use crate::config::{BoundTo, DeviceConfig, Placement, placements};

/// What the choices from a logical page on depend on when pages are written in order and no die has work, beside the
/// space of the units: where two of these are the same, so are the choices that follow, one by one, until one of them
/// comes to its `until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// The policy's own state, and the place of the address in what repeats itself.
    pub(crate) state: [u32; 3],
    /// A logical page, from which on another rule is in force.
    pub(crate) until: u32,
}

impl Phase {
    /// One of a rule for all logical pages.
    fn of(state: [u32; 3]) -> Self {
        Self { state, until: u32::MAX }
    }
}

/// Names the unit for the host's next page.
pub(crate) trait PlacementPolicy {
    /// The `attempt`th choice for a logical page; `None` when there are no more choices. `commands_of_die` counts the
    /// commands that wait or run on each die.
    fn unit(&self, logical_page: u32, attempt: u32, commands_of_die: &[u32]) -> Option<u32>;

    /// The first of a logical page's choices that is `fit`; `None` where none is.
    #[inline(always)]
    fn first_fit(&self, logical_page: u32, commands_of_die: &[u32], mut fit: impl FnMut(u32) -> bool) -> Option<u32> {
        let choice = |attempt| self.unit(logical_page, attempt, commands_of_die);
        (0..).map_while(choice).find(|&unit| fit(unit))
    }

    /// An attempt such that successive `turn`s spread pages evenly over the units that may take them.
    fn attempt(&self, turn: u32) -> u32;

    /// The `n`th page of a write of `pages` pages was placed in `unit`.
    fn placed(&mut self, unit: u32, n: u32, pages: u32);

    /// The `n`th page of a write of `pages` pages took the place of one that was still in an open superpage.
    fn overwritten(&mut self, n: u32, pages: u32) {
        let _ = (n, pages);
    }

    /// The phase in which a logical page is written.
    fn phase(&self, logical_page: u32) -> Phase;

    /// The one unit that a logical page is bound to; `None` where any unit may take it.
    fn bound_unit(&self, logical_page: u32) -> Option<u32> {
        let _ = logical_page;
        None
    }

    /// The set of units that a page may go to, as a number below that of units: one that finds room in none says the
    /// same of all others of its set.
    fn set_of_units(&self, logical_page: u32) -> u32;
}

/// Makes one type of the list of placements: a variant each, chosen by the configuration.
macro_rules! dispatch {
    (
        $(#[$meta:meta])*
        pub enum $setting:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$policy:ty, $binds:ident]),* $(,)?
        }
    ) => {
        /// The policies, behind one type so that placing a page needs no indirect call.
        pub(crate) enum AnyPlacement {
            $(#[doc = concat!("See [`", stringify!($policy), "`].")] $name($policy),)*
        }

        impl AnyPlacement {
            /// The policy that a configuration names.
            pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry) -> Self {
                match config.ftl.placement {
                    $(Placement::$name => Self::$name(<$policy>::new(config, geometry)),)*
                }
            }

            /// Whether any page may go to any unit.
            #[inline]
            pub(crate) fn may_take_any(&self) -> bool {
                match self { $(Self::$name(_) => matches!(BoundTo::$binds, BoundTo::Nothing),)* }
            }
        }

        impl PlacementPolicy for AnyPlacement {
            #[inline]
            fn unit(&self, logical_page: u32, attempt: u32, commands_of_die: &[u32]) -> Option<u32> {
                match self { $(Self::$name(policy) => policy.unit(logical_page, attempt, commands_of_die),)* }
            }

            #[inline(always)]
            fn first_fit(&self, logical_page: u32, commands_of_die: &[u32], fit: impl FnMut(u32) -> bool) -> Option<u32> {
                match self { $(Self::$name(policy) => policy.first_fit(logical_page, commands_of_die, fit),)* }
            }

            fn attempt(&self, turn: u32) -> u32 {
                match self { $(Self::$name(policy) => policy.attempt(turn),)* }
            }

            #[inline]
            fn placed(&mut self, unit: u32, n: u32, pages: u32) {
                match self { $(Self::$name(policy) => policy.placed(unit, n, pages),)* }
            }

            #[inline]
            fn overwritten(&mut self, n: u32, pages: u32) {
                match self { $(Self::$name(policy) => policy.overwritten(n, pages),)* }
            }

            fn phase(&self, logical_page: u32) -> Phase {
                match self { $(Self::$name(policy) => policy.phase(logical_page),)* }
            }

            fn bound_unit(&self, logical_page: u32) -> Option<u32> {
                match self { $(Self::$name(policy) => policy.bound_unit(logical_page),)* }
            }

            fn set_of_units(&self, logical_page: u32) -> u32 {
                match self { $(Self::$name(policy) => policy.set_of_units(logical_page),)* }
            }
        }

        crate::state::state_of_policy! { AnyPlacement { $($name($policy)),* } }
    };
}

placements!(dispatch);

/// Whether each address belongs to one unit, so that no page can go to another one when that is full.
pub(super) fn binds_addresses(config: &DeviceConfig, geometry: &Geometry) -> bool {
    match config.ftl.placement.binds_to() {
        BoundTo::Unit => true,
        BoundTo::UnitInGroup => geometry.groups() == 1,
        BoundTo::Nothing => geometry.units == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fit_is_the_first_choice_that_is_fit_under_every_policy() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        for placement in Placement::ALL {
            config.ftl.placement = placement;
            let geometry = Geometry::new(&config);
            let mut policy = AnyPlacement::new(&config, &geometry);
            let dies = geometry.units * geometry.dies_per_unit;
            for page in 0..500 {
                let loads: Vec<u32> = (0..dies).map(|die| (die * 7 + page) % 5).collect();
                // None is fit, or one in three, or all.
                let is_fit = |unit: u32| page % 4 != 0 && (page % 4 == 1 || (unit + page).is_multiple_of(3));
                let choices = (0..).map_while(|attempt| policy.unit(page, attempt, &loads));
                let first = choices.into_iter().find(|&unit| is_fit(unit));
                assert_eq!(policy.first_fit(page, &loads, is_fit), first, "{placement:?}, page {page}");
                let due = policy.unit(page, 0, &loads).unwrap();
                policy.placed(first.unwrap_or(due), page % 3, 3);
            }
        }
    }
}
