//! The figures of a profile in groups, so that forty of them can be read.
//!
//! A figure's name leaves out what its group's title says: `α, 4 KiB, collecting` is `α, 4 KiB` among those of garbage
//! collection.

/// Figures that belong together.
pub(crate) struct Group {
    /// Heading of the group.
    pub(crate) title: &'static str,
    /// Key of each in the profile's `parameters`, `limits`, `card` or `wear`, and its name below the title; 20
    /// letters, or a table of truth and learned figures does not fit into 80 columns.
    members: &'static [(&'static str, &'static str)],
}

/// Title of the figures at the usual sizes, behind which those at others come.
pub(crate) const ASYMMETRY: &str = "Asymmetry and concurrency";

/// Figures at further request sizes; their number depends on the profile.
pub(crate) const OTHER_SIZES: Group = Group { title: "Other request sizes", members: &[] };

/// Every figure of a profile is in one of these.
pub(crate) const GROUPS: [Group; 10] = [
    Group {
        title: "Layout",
        members: &[
            ("write_unit_bytes", "write unit"),
            ("stripe_bytes", "stripe"),
            ("chunk_bytes", "chunk"),
            ("hot_location", "hot locations"),
            ("hot_location_survives_writes", "hot after writes"),
            ("page_bytes", "flash page"),
            ("parallel_units", "parallel units"),
            ("internal_volumes", "internal volumes"),
            ("internal_volume_bits", "volume bits"),
            ("superblock_bytes", "superblock"),
        ],
    },
    Group {
        title: ASYMMETRY,
        members: &[
            ("asymmetry_4k", "α, 4 KiB"),
            ("read_concurrency_4k", "k_r, 4 KiB"),
            ("write_concurrency_4k", "k_w, 4 KiB"),
            ("asymmetry_8k", "α, 8 KiB"),
            ("read_concurrency_8k", "k_r, 8 KiB"),
            ("write_concurrency_8k", "k_w, 8 KiB"),
            ("latency_asymmetry_4k", "α by latency, 4 KiB"),
            ("latency_asymmetry_8k", "α by latency, 8 KiB"),
        ],
    },
    Group {
        title: "Buffers and caches",
        members: &[
            ("write_buffer_bytes", "write buffer"),
            ("read_cache_bytes", "read cache"),
            ("read_ahead_bytes", "read-ahead"),
            ("slc_cache_bytes", "SLC cache"),
            ("sustained_write_bytes_per_s", "sustained writes"),
        ],
    },
    Group {
        title: "Durability",
        members: &[
            ("flush_ns", "flush"),
            ("durable_write_ns", "durable write"),
            ("power_loss_protected", "power-loss safe"),
        ],
    },
    Group {
        title: "Garbage collection",
        members: &[
            ("over_provisioning", "over-provisioning"),
            ("collection_onset_bytes", "onset"),
            ("collection_cost", "cost in throughput"),
            ("write_amplification_uniform", "WA, uniform writes"),
            ("write_amplification_skewed", "WA, 80/20 writes"),
            ("trim_gain", "gain from trim"),
            ("asymmetry_4k_collecting", "α, 4 KiB"),
            ("asymmetry_8k_collecting", "α, 8 KiB"),
            ("latency_asymmetry_4k_collecting", "α by latency, 4 KiB"),
            ("latency_asymmetry_8k_collecting", "α by latency, 8 KiB"),
        ],
    },
    Group {
        title: "Data reduction",
        members: &[("compression_gain", "compression gain"), ("deduplication_gain", "deduplication gain")],
    },
    Group {
        title: "Memory card",
        members: &[
            ("allocation_unit_bytes", "allocation unit"),
            ("open_units_linear", "open, in order"),
            ("open_units_random", "open, random"),
            ("merge_ns", "merge"),
            ("special_first_unit", "special first unit"),
        ],
    },
    Group {
        title: "Limits",
        members: &[
            ("read_iops_limit", "read IOPS"),
            ("write_iops_limit", "write IOPS"),
            ("read_bandwidth_limit", "read bandwidth"),
            ("write_bandwidth_limit", "write bandwidth"),
            ("shared_budget", "shared budget"),
            ("shared_iops_limit", "shared IOPS"),
            ("shared_bandwidth_limit", "shared bandwidth"),
            ("shared_write_cost", "cost, 4-KiB write"),
            ("shared_write_cost_per_mib", "cost, written MiB"),
            ("request_unit_bytes", "request unit"),
            ("throttle_hold_ns", "hold"),
            ("network_latency_ns", "network latency"),
            ("limit_of_instance", "of the instance"),
        ],
    },
    Group {
        title: "Bursts",
        members: &[
            ("read_iops_burst", "read IOPS"),
            ("write_iops_burst", "write IOPS"),
            ("read_bandwidth_burst", "read bandwidth"),
            ("write_bandwidth_burst", "write bandwidth"),
            ("burst_operations", "I/O credits"),
            ("burst_operations_refill", "I/O credit refill"),
            ("write_burst_operations", "write credits"),
            ("write_burst_operations_refill", "write credit refill"),
            ("burst_bytes", "byte credits"),
            ("burst_bytes_refill", "byte credit refill"),
            ("write_burst_bytes", "written bytes"),
            ("write_burst_bytes_refill", "written byte refill"),
        ],
    },
    Group {
        title: "Counters",
        members: &[
            ("write_amplification_counted", "write amplification"),
            ("host_write_bytes_per_s", "host writes"),
            ("life_used", "life used"),
            ("years_left", "life left"),
            ("years_left_rated", "rating left"),
            ("over_volume_limit_ns", "over volume's limit"),
            ("over_instance_limit_ns", "over instance limit"),
        ],
    },
];

impl Group {
    /// The name of a figure in this group; `None` if it is in another one.
    pub(crate) fn name_of(&self, key: &str) -> Option<&'static str> {
        self.members.iter().find(|(member, _)| *member == key).map(|(_, name)| *name)
    }

    /// Those of `items` that are in this group, in its order.
    pub(crate) fn sort_out<'a, T>(&self, items: &'a [T], key: impl Fn(&T) -> &str) -> Vec<&'a T> {
        self.members.iter().flat_map(|(member, _)| items.iter().filter(|item| key(item) == *member)).collect()
    }
}

/// The name of a figure below the title of its group; its key, if it has no group.
pub(crate) fn short_name(key: &str) -> &str {
    GROUPS.iter().find_map(|group| group.name_of(key)).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use flashwise_profile::{Entry, Figures};

    use super::*;

    fn figures() -> Vec<Entry> {
        Figures::default().entries()
    }

    #[test]
    fn every_figure_is_in_one_group_and_has_a_short_name() {
        for entry in figures() {
            let names: Vec<_> = GROUPS.iter().filter_map(|group| group.name_of(entry.key)).collect();
            assert_eq!(names.len(), 1, "{}: put it into one of the groups", entry.key);
            assert!(names[0].chars().count() <= 20, "{}", names[0]);
        }
        let members: usize = GROUPS.iter().map(|group| group.members.len()).sum();
        assert_eq!(members, figures().len(), "a group names a figure that does not exist");
    }

    #[test]
    fn names_in_a_group_are_told_apart() {
        for group in &GROUPS {
            let mut names: Vec<_> = group.members.iter().map(|(_, name)| name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), group.members.len(), "{}", group.title);
        }
    }

    #[test]
    fn a_group_takes_its_own_in_its_order() {
        let keys = ["page_bytes", "trim_gain", "stripe_bytes"];
        assert_eq!(GROUPS[0].sort_out(&keys, |key| key), [&"stripe_bytes", &"page_bytes"]);
    }
}
