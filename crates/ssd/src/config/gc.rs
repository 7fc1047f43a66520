//! How space is reclaimed: the tables `[ftl.gc]`, `[ftl.wear_levelling]` and `[ftl.bad_blocks]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeviceConfig;
use super::check::Checker;
use super::choices::{choices, is_default};
use super::ftl::Mapping;
use crate::error::SsdError;

/// Every garbage-collection policy: what it is, its name, and in brackets the type in `ftl/gc/` that chooses victims by
/// it.
macro_rules! gc_policies {
    ($then:ident) => {
        $then! {
            /// Which superblock garbage collection takes.
            #[derive(Default)]
            pub enum GcPolicy {
                /// The sealed superblock with the fewest valid pages; among equals, the one that reached that count
                /// first.
                #[default]
                Greedy = "greedy" [greedy::Greedy],
                /// Greedy as DiskSim's SSD model chooses: among equals, the one with the highest number.
                DisksimGreedy = "disksim-greedy" [disksim_greedy::DisksimGreedy],
                /// Greedy as in DiskSim's SSD model, which spares the superblocks that have less life left than the
                /// average; see `lifetime_erasures`, `skip_ratio` and `migration_ratio`.
                WearAware = "wear-aware" [wear_aware::WearAware],
                /// The one with the largest (1 − u) ÷ 2u × age, u being its share of valid pages and age the time since
                /// it last lost one (Kawaguchi et al., USENIX 1995).
                CostBenefit = "cost-benefit" [cost_benefit::CostBenefit],
                /// The emptiest of `choices` drawn at random (Van Houdt, SIGMETRICS 2013; MQSim's RGA).
                RandomGreedy = "random-greedy" [random_greedy::RandomGreedy],
                /// Any, with equal probability.
                Random = "random" [random::Random],
                /// The one that was sealed first.
                Fifo = "fifo" [fifo::OldestFirst],
                /// The emptiest among those of the unit that were sealed first, `window_share` of it (Hu et al., SYSTOR
                /// 2009).
                WindowedGreedy = "windowed-greedy" [windowed_greedy::WindowedGreedy],
                /// Greedy in two regions, of data that the host wrote and of data that was moved; one region is
                /// collected until a superblock is gained (2R of SSD-iq, PVLDB 18(11), 2025, in its greedy form).
                TwoR = "two-r" [two_r::TwoR],
                /// In the same two regions, the oldest superblock that is empty enough: each lap over the oldest 70 %
                /// allows 5 % more of a superblock to be valid (2R of SSD-iq, in its FIFO form).
                TwoRFifo = "two-r-fifo" [two_r_fifo::TwoRFifo],
            }
        }
    };
}

gc_policies!(choices);
pub(crate) use gc_policies;

choices! {
    /// When a unit that is low on free superblocks collects.
    #[derive(Default)]
    pub enum GcMode {
        /// As soon as it is low, while the host's commands continue.
        #[default]
        Background = "background",
        /// When the host's next command arrives at one of its dies; the command waits until no unit on these dies is
        /// low (DiskSim's SSD model with cleaning in the foreground).
        Foreground = "foreground",
    }
}

choices! {
    /// What makes a unit that is low on free superblocks take a victim.
    #[derive(Default)]
    pub enum GcTrigger {
        /// While it is low: it takes victims until those in progress will free enough.
        #[default]
        Low = "low",
        /// When one of its superblocks is filled while it is low, by the host or by GC, and a free one replaces it: one
        /// victim for each, however many are in progress. Each victim fills a part of a superblock, so victims come in
        /// bursts; this, and not the policy, is why MQSim's write amplification differs from theory.
        SuperblockFilled = "superblock-filled",
    }
}

choices! {
    /// What one flash command reads of a victim's row.
    #[derive(Default)]
    pub enum GcReads {
        /// All planes of a die that belong to the row, if one of them holds something valid.
        #[default]
        Die = "die",
        /// One flash page that holds something valid. The hypothesis for firmware that follows a list of valid pages,
        /// page by page; its cost grows with the share of flash pages that hold any, so that a victim that is nearly
        /// empty is read faster.
        Page = "page",
    }
}

/// Garbage collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GcConfig {
    /// Which superblock is the victim.
    pub policy: GcPolicy,
    /// GC starts in a parallel unit when it has fewer free superblocks than this; 4 if neither this nor `free_share` is
    /// given. MQSim's `GC_Exec_Threshold` t is `free_superblocks` = max(10, ⌊t × blocks of a plane⌋).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_superblocks: Option<u32>,
    /// The same as a share of the unit's superblocks: GC starts when ⌊`free_share` × blocks of a plane⌋ or fewer are
    /// free, DiskSim's rule for its minimum free blocks percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_share: Option<f64>,
    /// When a unit that is low on free superblocks runs GC.
    pub mode: GcMode,
    /// When a unit that is low starts on a victim; `superblock-filled` requires superpages of one logical page and no
    /// wear levelling that moves data.
    pub trigger: GcTrigger,
    /// Host writes to a unit wait while it has fewer free superblocks than this; by default, while it has no more than
    /// GC needs (MQSim: 10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_reserve_superblocks: Option<u32>,
    /// GC commands yield to the host's commands on their die, until `hard_free_superblocks` or fewer are free.
    pub preemptible: bool,
    /// Free superblocks of a unit at which preemptible GC is no longer preempted.
    pub hard_free_superblocks: u32,
    /// Maximum number of victims of a unit that are collected at the same time (MQSim: 10).
    pub concurrent_victims: u32,
    /// Maximum number of rows of a victim that are read at the same time; each is programmed when it has been read.
    pub reads_in_flight: u32,
    /// What one read of a victim's row covers.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "die"))]
    pub reads: GcReads,
    /// How fast GC goes while the host writes, relative to the speed that keeps the number of free superblocks: for
    /// each page that the host's writes take in a unit, so many times the victim's valid pages ÷ its invalid ones are
    /// moved.
    /// A unit that cannot take the host's writes, and one on a drive that has nothing else to do, goes on regardless.
    /// Must be 1 to 100. By default GC goes as fast as the flash allows, and the host's writes queue behind it.
    /// Hypothesis: no maker documents it; the steady rates of data-centre drives are even (SSD-iq, PVLDB 18(11), 2025).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<f64>,
    /// A moved page stays in its plane and does not cross the channel. It needs superpages of one logical page.
    pub copy_back: bool,
    /// Moved data goes to its own open superblock, not to the one that the host fills.
    pub separate_open_block: bool,
    /// For `policy = "random-greedy"`: superblocks drawn for a choice (MQSim: ⌊log₂ of the blocks of a plane⌋).
    pub choices: u32,
    /// For `policy = "windowed-greedy"`: share of the unit's superblocks that is considered, oldest first.
    pub window_share: f64,
    /// For `policy = "wear-aware"`: rated erasures of a superblock (DiskSim's SSD model: 50).
    pub lifetime_erasures: u32,
    /// For `policy = "wear-aware"`: a candidate with less life left than this share of the unit's average may be
    /// skipped (DiskSim's SSD model: 0.80).
    pub skip_ratio: f64,
    /// For `policy = "wear-aware"`: when a victim has less life left than this share of the unit's average, the coldest
    /// data of the unit moves to the most worn free superblock. By default never, as in DiskSim's SSD model, where it
    /// is a compile-time option with the value 0.85.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_ratio: Option<f64>,
}

impl Default for GcConfig {
    fn default() -> Self {
        Self {
            policy: GcPolicy::Greedy,
            free_superblocks: None,
            free_share: None,
            mode: GcMode::Background,
            trigger: GcTrigger::Low,
            host_reserve_superblocks: None,
            preemptible: false,
            hard_free_superblocks: 1,
            concurrent_victims: 1,
            reads_in_flight: 1,
            reads: GcReads::Die,
            pace: None,
            copy_back: false,
            separate_open_block: true,
            choices: 8,
            window_share: 0.25,
            lifetime_erasures: 50,
            skip_ratio: 0.80,
            migration_ratio: None,
        }
    }
}

choices! {
    /// Which free superblock is written next.
    #[derive(Default)]
    pub enum DynamicWearLevelling {
        /// The one that became free first.
        #[default]
        Fifo = "fifo",
        /// The one that was erased least often; among equals, the one that became free first.
        LeastErased = "least-erased",
    }
}

choices! {
    /// Whether data that never changes is moved so that its superblock wears as well.
    #[derive(Default)]
    pub enum StaticWearLevelling {
        /// No.
        #[default]
        None = "none",
        /// When the most and the least erased superblock of a unit are more than `threshold` erasures apart, the data
        /// in the latter moves to the most worn free superblock.
        Threshold = "threshold",
    }
}

/// Wear levelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WearLevellingConfig {
    /// Which free superblock is written next.
    pub dynamic: DynamicWearLevelling,
    /// Whether cold data is moved.
    #[serde(rename = "static")]
    pub static_: StaticWearLevelling,
    /// For `static = "threshold"`: erasures that the most and the least worn superblock of a unit may be apart
    /// (MQSim: 100).
    pub threshold: u32,
}

impl Default for WearLevellingConfig {
    fn default() -> Self {
        Self { dynamic: DynamicWearLevelling::Fifo, static_: StaticWearLevelling::None, threshold: 100 }
    }
}

/// Superblocks that cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BadBlocksConfig {
    /// Share of each unit's superblocks that is bad from the factory, rounded up to whole ones.
    pub initial_share: f64,
    /// A superblock is retired after this many P/E cycles; without it, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erasures_max: Option<u32>,
}

/// Superblocks that garbage collection of a unit has emptied and not yet erased, at most, because their last data is in
/// a superpage that is not full yet.
pub(crate) const EMPTIED_MAX: usize = 2;

/// `ftl.gc.pace`: below 1 the free superblocks run out whatever happens; beyond 100 a victim is one burst.
const PACE: std::ops::RangeInclusive<f64> = 1.0..=100.0;
const PACE_RANGE: &str = "must be between 1 and 100";

/// Superblocks of a unit, beside the free ones, that may hold nothing valid at a time: the one that the host fills, the
/// one that garbage collection fills, without streams, and emptied victims.
const NOT_HOLDING_DATA: u32 = 2 + EMPTIED_MAX as u32;

impl DeviceConfig {
    /// Collection starts in a unit that has fewer free superblocks than this.
    pub fn gc_threshold(&self) -> u32 {
        let blocks = self.flash.blocks_per_plane;
        match self.ftl.gc.free_share {
            Some(share) => ((share * f64::from(blocks)) as u32).saturating_add(1),
            None => self.ftl.gc.free_superblocks.unwrap_or(4),
        }
    }

    /// Superblocks of a unit that are bad from the factory.
    pub fn factory_bad_superblocks(&self) -> u32 {
        (self.ftl.bad_blocks.initial_share * f64::from(self.flash.blocks_per_plane)).ceil() as u32
    }

    /// Whether cold data is ever moved to worn superblocks.
    pub(crate) fn moves_cold_data(&self) -> bool {
        let gc = &self.ftl.gc;
        let migrates = gc.policy == GcPolicy::WearAware && gc.migration_ratio.is_some();
        migrates || self.ftl.wear_levelling.static_ != StaticWearLevelling::None
    }

    /// Superblocks of a unit that the host's data cannot have: free ones, open ones, victims in progress, bad ones,
    /// those of an SLC cache.
    pub fn superblocks_kept(&self) -> u64 {
        let open_for_cold_data = u64::from(self.moves_cold_data());
        let more_victims = u64::from(self.ftl.gc.concurrent_victims.saturating_sub(1));
        let (bad, keep) = (self.factory_bad_superblocks(), self.gc_threshold());
        let open = u64::from(NOT_HOLDING_DATA) + self.ftl.streams.more_open() + open_for_cold_data;
        u64::from(keep) + open + more_victims + u64::from(bad) + u64::from(self.dedicated_superblocks())
    }

    /// Free superblocks of a unit without which a host's write could never be followed by a collection.
    fn gc_threshold_min(&self) -> u32 {
        let one_page = self.superpage_bytes() == self.ftl.logical_page_bytes;
        let least = if self.ftl.gc.separate_open_block || one_page { 2 } else { 3 };
        // What is moved out of a full superblock may end in another row, and so in a second one.
        least + u32::from(self.compression().is_some())
    }

    pub(super) fn check_reclaiming(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (gc, bad) = (&self.ftl.gc, &self.ftl.bad_blocks);
        checker.share("ftl.bad_blocks.initial_share", bad.initial_share, 0.0, 0.9)?;
        let limit = bad.erasures_max.unwrap_or(u32::MAX);
        checker.require("ftl.bad_blocks.erasures_max", limit, limit >= 1, "must be at least 1")?;
        let (by_page, levelling) = (self.ftl.mapping == Mapping::Page, &self.ftl.wear_levelling);
        let reason = "requires mapping = \"page\"";
        let none = bad.initial_share == 0.0 && bad.erasures_max.is_none();
        checker.require("ftl.bad_blocks.initial_share", bad.initial_share, by_page || none, reason)?;
        let reason = "requires mapping = \"page\"";
        let none = levelling.static_ == StaticWearLevelling::None;
        checker.require("ftl.wear_levelling.static", "threshold", by_page || none, reason)?;
        checker.share("ftl.gc.free_share", gc.free_share.unwrap_or(0.0), 0.0, 0.95)?;
        let both = gc.free_share.is_some() && gc.free_superblocks.is_some();
        let reason = "conflicts with ftl.gc.free_share: give one of the two";
        checker.require("ftl.gc.free_superblocks", gc.free_superblocks.unwrap_or(0), !both, reason)?;
        checker.count("ftl.gc.concurrent_victims", gc.concurrent_victims, 64, "must be between 1 and 64")?;
        checker.count("ftl.gc.reads_in_flight", gc.reads_in_flight, 1 << 16, "must be between 1 and 65536")?;
        let reason = "not supported with compression, whose pages span flash pages";
        let by_die = gc.reads == GcReads::Die;
        checker.require("ftl.gc.reads", "page", by_die || self.compression().is_none(), reason)?;
        let background = gc.mode == GcMode::Background && gc.separate_open_block;
        let trigger = gc.trigger == GcTrigger::Low || background;
        let reason = "requires mode = \"background\" and separate_open_block = true";
        checker.require("ftl.gc.trigger", "superblock-filled", trigger, reason)?;
        // Padding and moves of cold data would fill superblocks, and so take victims, without end.
        let one_page = self.superpage_bytes() == self.ftl.logical_page_bytes;
        let ends = gc.trigger == GcTrigger::Low || (one_page && !self.moves_cold_data());
        let reason = "requires superpages of one logical page, and no wear levelling that moves data";
        checker.require("ftl.gc.trigger", "superblock-filled", ends, reason)?;
        checker.count("ftl.gc.choices", gc.choices, 1 << 10, "must be between 1 and 1024")?;
        checker.share("ftl.gc.window_share", gc.window_share, 0.0, 1.0)?;
        checker.count("ftl.gc.lifetime_erasures", gc.lifetime_erasures, 1 << 30, "must be between 1 and 2^30")?;
        checker.share("ftl.gc.skip_ratio", gc.skip_ratio, 0.0, 1.0)?;
        checker.require(
            "ftl.gc.pace",
            gc.pace.unwrap_or(1.0),
            gc.pace.is_none_or(|pace| PACE.contains(&pace)),
            PACE_RANGE,
        )?;
        checker.share("ftl.gc.migration_ratio", gc.migration_ratio.unwrap_or(0.0), 0.0, 1.0)
    }

    /// Checks what garbage collection needs so that it can always continue.
    pub(super) fn check_gc_room(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let gc = &self.ftl.gc;
        debug_assert_eq!(self.ftl.mapping, Mapping::Page);
        let blocks = u64::from(self.flash.blocks_per_plane);
        let (keep, least) = (self.gc_threshold(), self.gc_threshold_min());
        let (key, value) = match gc.free_share {
            Some(share) => ("ftl.gc.free_share", share.to_string()),
            None => ("ftl.gc.free_superblocks", keep.to_string()),
        };
        let reason = format!("must keep at least {least} superblocks free, and fewer than the {blocks} of a plane");
        let kept = self.superblocks_kept();
        checker.require(key, value, keep >= least && kept < blocks, reason)?;
        let one_page = self.superpage_bytes() == self.ftl.logical_page_bytes;
        let reason = "requires superpages of one logical page: superpage_channels = superpage_ways = superpage_planes = 1 \
                      and logical_page_bytes = flash.page_bytes";
        checker.require("ftl.gc.copy_back", gc.copy_back, one_page || !gc.copy_back, reason)?;
        let reserve = gc.host_reserve_superblocks.unwrap_or(0);
        let reason = format!("must be below the {keep} free superblocks at which garbage collection starts");
        checker.require("ftl.gc.host_reserve_superblocks", reserve, reserve < keep, reason)?;
        let hard = gc.hard_free_superblocks;
        let reason = format!("must be below the {keep} free superblocks at which garbage collection starts");
        checker.require("ftl.gc.hard_free_superblocks", hard, hard < keep || !gc.preemptible, reason)
    }
}
