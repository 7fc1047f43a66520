//! Ranges of logical addresses that have a part of the flash to themselves, or share it with some of the others.
//!
//! ```text
//!   logical pages   0 ──────── domain 0 ──────── │ ──── domain 1 ──── │ …
//!                              ▼                        ▼
//!   flash            channels 0 to 3, all chips     channels 4 and 5, chip 1
//! ```
//!
//! Domains whose parts do not overlap are what NVMe calls NVM sets (NVM Express Base Specification 1.4, section 4.9):
//! what one of them writes, and the garbage that it makes, is no business of another. Domains that overlap share planes
//! and the collection in them; simulators of several tenants have those (MQSim's `Channel_IDs` of a flow and the like).

use flashwise_block::ByteSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::{DeviceConfig, Mapping, Placement, StaticUnits};
use crate::error::SsdError;

/// Most domains of a drive.
const DOMAINS_MAX: usize = 1024;

/// Some successive logical pages, and the part of the flash that they are on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainConfig {
    /// Bytes that the domain offers, a multiple of the superpage's. It starts where the one before it ends, and all
    /// together are the drive's `capacity_bytes`.
    pub capacity_bytes: u64,
    /// Its channels, from 0 on; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<u32>>,
    /// Its chips on each of these channels; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chips: Option<Vec<u32>>,
    /// Its dies of each of these chips; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dies: Option<Vec<u32>>,
    /// Its planes of each of these dies, which program by themselves (`superpage_planes = 1`); default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planes: Option<Vec<u32>>,
}

impl DomainConfig {
    /// The whole of a drive.
    pub(crate) fn whole(config: &DeviceConfig) -> Self {
        Self { capacity_bytes: config.capacity_bytes, ..Self::default() }
    }

    /// Its channels, chips, dies, and planes or groups of planes that program together.
    pub(crate) fn parts(&self, config: &DeviceConfig) -> [Vec<u32>; 4] {
        let flash = &config.flash;
        let groups = flash.planes_per_die / config.superpage_planes();
        let counts = [flash.channels, flash.chips_per_channel, flash.dies_per_chip, groups];
        let named = [&self.channels, &self.chips, &self.dies, &self.planes];
        std::array::from_fn(|n| named[n].clone().unwrap_or_else(|| (0..counts[n]).collect()))
    }

    fn check(&self, nth: usize, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let superpage = config.superpage_bytes();
        let reason =
            format!("domain {nth} (counted from 0): must be a multiple of the superpage's {}", ByteSize(superpage));
        let possible = self.capacity_bytes > 0 && self.capacity_bytes.is_multiple_of(superpage);
        checker.require("ftl.domains.capacity_bytes", self.capacity_bytes, possible, reason)?;
        let flash = &config.flash;
        for (key, numbers, count) in [
            ("ftl.domains.channels", &self.channels, flash.channels),
            ("ftl.domains.chips", &self.chips, flash.chips_per_channel),
            ("ftl.domains.dies", &self.dies, flash.dies_per_chip),
            ("ftl.domains.planes", &self.planes, flash.planes_per_die),
        ] {
            let Some(numbers) = numbers else { continue };
            let ascends = !numbers.is_empty() && numbers.windows(2).all(|pair| pair[0] < pair[1]);
            let possible = ascends && numbers.last().is_some_and(|&last| last < count);
            let last = count.saturating_sub(1);
            let reason = format!("domain {nth} (counted from 0): must be numbers from 0 to {last} in ascending order");
            checker.require(key, format!("{numbers:?}"), possible, reason)?;
        }
        let together = config.superpage_planes();
        let reason = "planes that program together cannot be in different domains: set superpage_planes = 1";
        checker.require("ftl.domains.planes", "present", self.planes.is_none() || together == 1, reason)
    }
}

impl DeviceConfig {
    /// The domains of the drive; one that is all of it where none are named.
    pub(crate) fn domains(&self) -> Vec<DomainConfig> {
        match &self.ftl.domains[..] {
            [] => vec![DomainConfig::whole(self)],
            named => named.to_vec(),
        }
    }

    /// Refuses domains that are not possible; whether their data has room is asked by [`Self::check_room_of_domains`].
    pub(super) fn check_domains(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let domains = &self.ftl.domains;
        if domains.is_empty() {
            return Ok(());
        }
        let count = domains.len();
        checker.require("ftl.domains", count, count <= DOMAINS_MAX, format!("must be at most {DOMAINS_MAX}"))?;
        let is_static = self.ftl.placement == Placement::Static && self.ftl.mapping == Mapping::Page;
        let reason = "domains require placement = \"static\" and mapping = \"page\"";
        checker.require("ftl.domains", "present", is_static, reason)?;
        let reason = "domains cannot be combined with data reduction";
        checker.require("ftl.domains", "present", self.reduction.is_none(), reason)?;
        domains.iter().enumerate().try_for_each(|(nth, domain)| domain.check(nth, self, checker))?;
        let sum = domains.iter().try_fold(0_u64, |sum, domain| sum.checked_add(domain.capacity_bytes));
        let reason = match sum {
            Some(sum) => format!("the domains have {sum} bytes in total"),
            None => "the domains have more than 2^64 bytes in total".to_owned(),
        };
        checker.require("capacity_bytes", self.capacity_bytes, sum == Some(self.capacity_bytes), reason)?;
        let Some(cache) = &self.ftl.mapping_cache else { return Ok(()) };
        let reason = format!("must be 1 (the whole map) or {count} (one per domain)");
        let possible = cache.partitions == 1 || cache.partitions as usize == count;
        checker.require("ftl.mapping_cache.partitions", cache.partitions, possible, reason)
    }

    /// Refuses domains that give a plane more data than it may hold.
    pub(super) fn check_room_of_domains(&self, usable_of_unit: u64, checker: &Checker<'_>) -> Result<(), SsdError> {
        if self.ftl.domains.is_empty() {
            return Ok(());
        }
        let (nth, most) = StaticUnits::fullest(self);
        let most = most.saturating_mul(self.ftl.logical_page_bytes);
        let reason = format!(
            "domain {nth} (counted from 0): a plane would have to hold {}, but garbage collection leaves it {}",
            ByteSize(most),
            ByteSize(usable_of_unit)
        );
        let capacity = self.ftl.domains.get(nth).map_or(0, |domain| domain.capacity_bytes);
        checker.require("ftl.domains.capacity_bytes", capacity, most <= usable_of_unit, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(domains: Vec<DomainConfig>) -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 2, 1);
        config.flash.blocks_per_plane = 64;
        (config.ftl.placement, config.ftl.superpage_planes) = (Placement::Static, Some(1));
        config.capacity_bytes = domains.iter().map(|domain| domain.capacity_bytes).sum();
        config.ftl.domains = domains;
        config
    }

    fn domain(megabytes: u64, channels: &[u32]) -> DomainConfig {
        let channels = (!channels.is_empty()).then(|| channels.to_vec());
        DomainConfig { capacity_bytes: megabytes << 20, channels, ..DomainConfig::default() }
    }

    fn refused(config: &DeviceConfig) -> String {
        config.check("mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn domains_are_read_back_as_they_were_written() {
        let config = drive(vec![domain(64, &[0, 1]), domain(32, &[])]);
        config.check("mine.toml").unwrap();
        let text = toml::to_string(&config).unwrap();
        assert_eq!(DeviceConfig::from_toml(&text, "mine.toml").unwrap(), config);
        assert!(text.contains("[[ftl.domains]]"), "{text}");
    }

    #[test]
    fn what_a_drive_does_not_have_is_refused_with_the_domain_that_names_it() {
        let beyond = refused(&drive(vec![domain(64, &[0]), domain(64, &[1, 4])]));
        assert_eq!(
            beyond,
            "mine.toml: ftl.domains.channels = [1, 4]: domain 1 (counted from 0): must be numbers from 0 to 3 in \
             ascending order"
        );
        assert!(refused(&drive(vec![domain(64, &[1, 1])])).contains("ascending"));
        let mut empty = drive(vec![domain(64, &[])]);
        empty.ftl.domains[0].chips = Some(Vec::new());
        assert!(refused(&empty).contains("ftl.domains.chips = []"));
    }

    #[test]
    fn domains_are_the_whole_capacity_and_each_ends_with_a_superpage() {
        let mut config = drive(vec![domain(64, &[0]), domain(64, &[1])]);
        config.capacity_bytes += 1 << 20;
        assert!(refused(&config).contains("the domains have 134217728 bytes in total"));
        config.capacity_bytes = (64 << 20) + 4096;
        config.ftl.domains = vec![DomainConfig { capacity_bytes: config.capacity_bytes, ..domain(0, &[]) }];
        assert!(refused(&config).contains("ftl.domains.capacity_bytes = 67112960: domain 0"));
    }

    #[test]
    fn a_domain_that_gives_its_planes_more_than_they_hold_is_refused_though_the_drive_has_room() {
        let config = drive(vec![domain(64, &[0]), domain(4, &[1])]);
        config.check("mine.toml").unwrap();
        let unit = config.raw_bytes() / config.units();
        let config = drive(vec![domain(4, &[0]), domain((4 * unit) >> 20, &[1]), domain(4, &[2])]);
        let message = refused(&config);
        assert!(message.contains("domain 1 (counted from 0): a plane would have to hold"));
        let shared = drive(vec![domain((3 * unit) >> 20, &[0]), domain((3 * unit) >> 20, &[0, 1])]);
        assert!(refused(&shared).contains("a plane would have to hold"), "what two domains bring is added up");
    }

    #[test]
    fn addresses_that_are_free_to_go_anywhere_have_no_domains() {
        let mut config = drive(vec![domain(64, &[0])]);
        config.ftl.placement = Placement::RoundRobin;
        assert!(refused(&config).contains("placement = \"static\""));
        let mut config = drive(vec![domain(64, &[0])]);
        config.ftl.superpage_planes = None;
        config.ftl.domains[0].planes = Some(vec![0]);
        assert!(refused(&config).contains("superpage_planes = 1"));
    }
}
