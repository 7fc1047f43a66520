//! Settings that are one of several names, each set declared once.
//!
//! ```text
//!   choices! { pub enum GcPolicy { Greedy = "greedy", … } }
//!        ├─▶ the type, its name in a file (serde) and in the schema
//!        ├─▶ ALL: what property tests sample from
//!        └─▶ name(): what messages print
//! ```
//!
//! A set whose members are implemented elsewhere is a list of its own that other macros read as well: `gc_policies!`,
//! `stream_policies!`, `placements!`, `ftl_kinds!`. What a line carries for them is in brackets, and is skipped here.
//! So a policy that is in the list is dispatched, documented and tested, and one that is not in the list cannot be
//! chosen.

/// Declares a setting that is one of several names; see the module's page.
macro_rules! choices {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$about:meta])* $name:ident = $text:literal $([$($elsewhere:tt)*])?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $type {
            $($(#[$about])* #[serde(rename = $text)] $name,)*
        }

        impl $type {
            /// All of them, in the order of the list.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];

            /// As it is written in a configuration.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

pub(crate) use choices;

/// Whether a key has its default, so that files of before it was there stay as they are.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use crate::config::*;
    use crate::reference::{device_reference, device_schema};

    macro_rules! listed {
        ($($type:ident),* $(,)?) => {
            BTreeMap::from([$((stringify!($type), $type::ALL.map($type::name).to_vec())),*])
        };
    }

    /// Every list of names that a configuration may choose from.
    fn lists() -> BTreeMap<&'static str, Vec<&'static str>> {
        listed! {
            AllocationPool, Arbitration, BlockOrder, CacheFlush, CachePolicy, CellType, CleaningMode, CleaningPolicy,
            Codec, CommandScope, DataTransfer, DynamicWearLevelling, EnduranceFigures, GcMode, GcPolicy, GcReads,
            GcTrigger, Interface, Mapping, PageOrder, PartialPages, Placement, QueuePriority, Scheduling, SlcCacheFull,
            StaticWearLevelling, StreamPolicy, Suspend, UnwrittenReads, WritePolicy,
        }
    }

    /// The names that a type of the schema may have, if it is one of several names.
    fn names(definition: &Value) -> Option<Vec<&str>> {
        definition["oneOf"].as_array()?.iter().map(|one| one["const"].as_str()).collect()
    }

    #[test]
    fn every_list_is_that_of_the_schema_and_every_one_of_the_schema_is_a_list() {
        let schema = device_schema();
        let of_schema: BTreeMap<_, _> = schema["$defs"]
            .as_object()
            .unwrap()
            .iter()
            .filter_map(|(name, definition)| Some((name.as_str(), names(definition)?)))
            .collect();
        assert_eq!(of_schema, lists());
    }

    #[test]
    fn every_name_of_a_list_stands_in_the_page_of_the_book() {
        let page = device_reference();
        // The classes of queues are in a list of words, whose words the page does not explain one by one.
        for (list, names) in lists().into_iter().filter(|&(list, _)| list != "QueuePriority") {
            for name in names {
                assert!(page.contains(&format!("`\"{name}\"`")), "{list}: {name}");
            }
        }
    }
}
