//! How written data is told apart: the table `[ftl.streams]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DeviceConfig;
use super::check::Checker;
use super::choices::choices;
use super::ftl::Mapping;
use crate::error::SsdError;

/// Most classes that a policy tells apart, among written and among moved pages each.
pub(crate) const CLASSES_MAX: u32 = 16;

/// Every way to tell streams apart: what it is, its name, and in brackets the type in `ftl/streams/` that does it, with
/// the open superblocks of a unit for what the host writes and for what is moved.
macro_rules! stream_policies {
    ($then:ident) => {
        $then! {
            /// Which open superblock of its unit a page goes to.
            #[derive(Default)]
            pub enum StreamPolicy {
                /// One stream per unit for host writes and, with `separate_open_block`, one for moved data.
                #[default]
                One = "one" [one::One, |_| (1, 1)],
                /// By the stream that the request names, of `streams` (NVM Express Base Specification 2.0, section
                /// 8.7.3, the Streams directive); moved pages stay in their stream.
                Hint = "hint" [hint::Hint, |config| (config.streams, config.streams)],
                /// By how long the page's last version lived, and by its age when it is moved: two classes of written
                /// and four of moved pages (SepBIT; Wang et al., FAST 2022).
                SepBit = "sepbit" [sep_bit::SepBit, |_| (2, 4)],
                /// Hot pages, which were written often and recently, and cold ones, by four Bloom filters (Park and Du,
                /// MSST 2011).
                BloomFilters = "bloom-filters" [bloom_filters::BloomFilters, |_| (2, 2)],
                /// By how much longer a page will probably live, when each version is expected to live as long as the
                /// one before: three classes of written and of moved pages each (placement by predicted death; Lange et
                /// al., SIGMETRICS 2021).
                DeathTime = "death-time" [death_time::DeathTime, |_| (3, 3)],
            }
        }
    };
}

macro_rules! classes {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$policy:path, $classes:expr]),* $(,)?
        }
    ) => {
        impl StreamsConfig {
            /// Open superblocks of a unit for what the host writes, and for what garbage collection moves.
            fn classes(&self) -> (u32, u32) {
                let of: fn(&Self) -> (u32, u32) = match self.policy { $($type::$name => $classes,)* };
                of(self)
            }
        }
    };
}

stream_policies!(choices);
stream_policies!(classes);
pub(crate) use stream_policies;

impl StreamPolicy {
    /// Whether pages are told apart by when they were written, and not by what the host says of them.
    pub fn infers(self) -> bool {
        !matches!(self, Self::One | Self::Hint)
    }
}

/// Streams: data with different overwrite rates is written to different superblocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamsConfig {
    /// How data is assigned to streams.
    pub policy: StreamPolicy,
    /// For `policy = "hint"`: streams of the host, 2 to 16; writes without a stream belong to stream 0, larger
    /// identifiers are taken modulo this.
    pub streams: u32,
    /// For `policy = "bloom-filters"`: host writes after which the oldest of four filters is cleared, as a share of the
    /// logical pages.
    pub decay_share: f64,
    /// For `policy = "death-time"`: with a workload of one flow, the drive knows in advance when each page will be
    /// overwritten, with an error: it predicts a life of e^(z · error) times the true one, z drawn from the standard
    /// normal distribution. 0 for true predictions. By default the drive predicts the page's last life, as a real drive
    /// might.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foresight_error: Option<f64>,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self { policy: StreamPolicy::One, streams: 4, decay_share: 0.5, foresight_error: None }
    }
}

impl StreamsConfig {
    /// Open superblocks of a unit for what the host writes.
    pub fn host_classes(&self) -> u32 {
        self.classes().0
    }

    /// Open superblocks of a unit for what garbage collection moves.
    pub fn gc_classes(&self) -> u32 {
        self.classes().1
    }

    /// Open superblocks of a unit beyond the two that a drive has without streams.
    pub(super) fn more_open(&self) -> u64 {
        u64::from(self.host_classes()) + u64::from(self.gc_classes()) - 2
    }

    pub(super) fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let reason = format!("must be between 2 and {CLASSES_MAX}");
        let possible = (2..=CLASSES_MAX).contains(&self.streams);
        checker.require("ftl.streams.streams", self.streams, possible, reason)?;
        let reason = "must be a share above 0 and at most 16";
        let possible = self.decay_share > 0.0 && self.decay_share <= 16.0;
        checker.require("ftl.streams.decay_share", self.decay_share, possible, reason)?;
        self.check_foresight(config, checker)?;
        if self.policy == StreamPolicy::One {
            return Ok(());
        }
        let policy = self.policy.name();
        let by_page = config.ftl.mapping == Mapping::Page;
        checker.require("ftl.streams.policy", policy, by_page, "requires mapping = \"page\"")?;
        let reason = "requires ftl.gc.separate_open_block = true: otherwise moved data mixes the streams again";
        checker.require("ftl.streams.policy", policy, config.ftl.gc.separate_open_block, reason)
    }

    fn check_foresight(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let Some(error) = self.foresight_error else { return Ok(()) };
        let key = "ftl.streams.foresight_error";
        checker.require(key, error, (0.0..=10.0).contains(&error), "must be between 0 and 10")?;
        let by_death = self.policy == StreamPolicy::DeathTime;
        checker.require(key, error, by_death, "requires policy = \"death-time\"")?;
        // What is written must be what the host writes, page by page.
        let all_written =
            config.controller.write_cache.is_none() && config.ftl.mapping_cache.is_none() && config.reduction.is_none();
        let reason = "requires a drive without write cache, cached map and data reduction, whose FTL sees exactly the \
                      pages that the host writes";
        checker.require(key, error, all_written, reason)
    }

    /// Refuses more open superblocks than leave room for the host's data, where fewer would.
    pub(super) fn check_room(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (kept, more, blocks) =
            (config.superblocks_kept(), self.more_open(), u64::from(config.flash.blocks_per_plane));
        let data = config.capacity_bytes + u64::from(config.translation_pages()) * config.ftl.logical_page_bytes;
        let superblock = config.superpage_bytes() * u64::from(config.flash.pages_per_block);
        let fits = |kept: u64| kept < blocks && data <= config.units() * superblock * (blocks - kept);
        let (key, value) = match self.policy {
            StreamPolicy::Hint => ("ftl.streams.streams", self.streams.to_string()),
            _ => ("ftl.streams.policy", self.policy.name().to_owned()),
        };
        let (host, gc) = (self.host_classes(), self.gc_classes());
        let usable = config.units() * superblock * blocks.saturating_sub(kept);
        let reason = format!(
            "each unit has {host} open superblocks for written and {gc} for moved data, {more} more than without \
             streams: use fewer streams, lower capacity_bytes to {usable}, or raise flash.blocks_per_plane"
        );
        checker.require(key, value, fits(kept) || !fits(kept - more), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(change: impl FnOnce(&mut DeviceConfig)) -> String {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.ftl.streams.policy = StreamPolicy::Hint;
        change(&mut config);
        config.check("mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn streams_that_cannot_be_are_told_with_what_would_be_right() {
        assert!(broken(|c| c.ftl.streams.streams = 17).contains("streams = 17: must be between 2 and 16"));
        assert!(broken(|c| c.ftl.streams.decay_share = 0.0).contains("above 0"));
        assert!(
            broken(|c| c.ftl.gc.separate_open_block = false).contains("requires ftl.gc.separate_open_block = true")
        );
        let mut optane = DeviceConfig::preset("intel-optane-905p").unwrap();
        optane.ftl.streams.policy = StreamPolicy::SepBit;
        assert!(optane.check("mine.toml").unwrap_err().to_string().contains("requires mapping = \"page\""));
    }

    #[test]
    fn open_superblocks_that_leave_too_little_room_are_told_with_how_much_could_be_offered() {
        let most = |c: &DeviceConfig| {
            let superblock = c.superpage_bytes() * u64::from(c.flash.pages_per_block);
            c.units() * superblock * (u64::from(c.flash.blocks_per_plane) - c.superblocks_kept())
        };
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        config.controller.write_buffer_bytes = 1 << 30;
        config.capacity_bytes = most(&config);
        config.check("mine.toml").unwrap();
        config.ftl.streams = StreamsConfig { policy: StreamPolicy::Hint, streams: 5, ..StreamsConfig::default() };
        let error = config.check("mine.toml").unwrap_err().to_string();
        assert!(error.contains("ftl.streams.streams = 5: each unit has 5 open superblocks"), "{error}");
        assert!(error.contains(&format!("lower capacity_bytes to {},", most(&config))), "{error}");
        config.capacity_bytes = most(&config);
        config.check("mine.toml").unwrap();
    }

    #[test]
    fn the_write_buffer_holds_the_open_superpages_of_every_stream() {
        let error = broken(|c| (c.ftl.streams.streams, c.controller.write_buffer_bytes) = (16, 2 << 20));
        assert!(error.contains("controller.write_buffer_bytes") && error.contains("16 of each unit"), "{error}");
    }

    #[test]
    fn the_table_is_read_back_as_it_was_written() {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        for policy in StreamPolicy::ALL {
            config.ftl.streams = StreamsConfig { policy, streams: 2, ..StreamsConfig::default() };
            let text = toml::to_string(&config).unwrap();
            assert!(text.contains(&format!("policy = \"{}\"", policy.name())), "{text}");
            assert_eq!(toml::from_str::<DeviceConfig>(&text).unwrap(), config);
        }
    }
}
