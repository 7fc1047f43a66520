//! The FTL of a drive, made from the list of kinds (`ftl_kinds!` in `config/ftl.rs`).

use super::element::Elements;
use super::geometry::Geometry;
use super::in_place::InPlace;
use super::{Ftl, StepFtl};
use crate::config::{DeviceConfig, Mapping, ftl_kinds};
use crate::state::{Carried, Carrier, Layout, State};

/// The FTL of a drive where that is not the page map, by its write path.
pub(crate) enum AnyFtl {
    /// The page map does it.
    Buffer,
    /// It hands out the flash work of each write.
    Steps(Box<dyn StepFtl>),
    /// Every page has its place.
    InPlace(InPlace),
    /// Elements do reads and writes by themselves, in a time that they know beforehand.
    Elements(Box<Elements>),
}

/// The FTL of one kind, for its write path.
macro_rules! of_path {
    (Buffer($type:ty), $($drive:tt)*) => {
        AnyFtl::Buffer
    };
    (Steps($type:ty), $config:expr, $geometry:expr, $seed:expr) => {
        AnyFtl::Steps(Box::new(<$type as Ftl>::build($config, $geometry, $seed)))
    };
    (InPlace($type:ty), $config:expr, $geometry:expr, $seed:expr) => {
        AnyFtl::InPlace(<$type as Ftl>::build($config, $geometry, $seed))
    };
    (Elements($type:ty), $config:expr, $geometry:expr, $seed:expr) => {
        AnyFtl::Elements(Box::new(<$type as Ftl>::build($config, $geometry, $seed)))
    };
}

macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $set:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$path:ident, $($type:tt)+]),* $(,)?
        }
    ) => {
        impl AnyFtl {
            /// The FTL of an empty drive beside its page map; `seed` drives what is left to chance.
            pub(crate) fn build(config: &DeviceConfig, geometry: &Geometry, seed: u64) -> Self {
                match config.ftl.mapping {
                    $($set::$name => of_path!($path(crate::ftl::$($type)+), config, geometry, seed),)*
                }
            }
        }

        /// Which one it is follows from the description.
        impl State for AnyFtl {
            fn layout(layout: &mut Layout) {
                $(<crate::ftl::$($type)+ as Ftl>::describe(layout);)*
            }

            fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
                match self {
                    Self::Buffer => Ok(()),
                    Self::Steps(ftl) => ftl.carry(carrier),
                    Self::InPlace(ftl) => ftl.carry(carrier),
                    Self::Elements(ftl) => ftl.carry(carrier),
                }
            }
        }
    };
}

ftl_kinds!(kinds);
