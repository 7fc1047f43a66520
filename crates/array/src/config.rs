//! What an array is built of, as one TOML file; the form is in `docs/formats/array.md`.

use std::path::Path;

use flashwise_block::{ByteSize, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stripes::Stripes;
use flashwise_ssd::Preset;
use flashwise_ssd::SsdError;
use flashwise_ssd::config::Checker;
use flashwise_ssd::config::DeviceConfig;

/// How data is spread over the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Round the members, nothing twice.
    Raid0,
    /// The same on every member.
    Raid1,
    /// Round pairs of members, the same on both.
    Raid10,
    /// One parity a row, which goes round the members; one of them may fail.
    Raid5,
    /// Two parities a row, which go round the members; any two of them may fail.
    Raid6,
}

/// A whole array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// For people.
    pub name: String,
    /// How data is spread.
    pub level: Level,
    /// Drives of the array, spares apart.
    pub members: u32,
    /// The drive that each of them is: a preset's name, or a file beside this one.
    pub member: String,
    /// Bytes that are together on one member before the next one's turn comes.
    pub chunk_bytes: u64,
    /// Drives that stand by; one takes the place of a member that fails, at once. Default: 0.
    #[serde(default)]
    pub spares: u32,
    /// Bytes a second that rebuilding writes to a spare, at most; 0 (the default) is as fast as the drives are.
    #[serde(default)]
    pub rebuild_bytes_per_s: u64,
    /// The controller. Default: one that costs nothing.
    #[serde(default)]
    pub controller: ArrayControllerConfig,
    /// Drives that fail while a workload runs. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureConfig>,
}

/// A drive that fails while a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureConfig {
    /// Its place, from 0.
    pub member: u32,
    /// When, ns after the workload's start.
    pub at_ns: u64,
}

impl FailureConfig {
    /// When, after the workload's start.
    pub fn at(&self) -> Nanos {
        Nanos(self.at_ns)
    }
}

/// The controller before the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayControllerConfig {
    /// What each command takes longer, ns; many at once. Default: 0.
    #[serde(default)]
    pub command_latency_ns: u64,
    /// Commands a second that its processor handles, one after the other; 0 (the default) for no limit.
    #[serde(default)]
    pub iops_max: u64,
    /// Bytes a second between host and controller, both directions together; 0 (the default) for no limit.
    #[serde(default)]
    pub bandwidth_bytes_per_s: u64,
    /// Largest request. Default: the members'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_transfer_bytes: Option<u64>,
    /// Write-back cache. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<ArrayCacheConfig>,
}

/// A write-back cache in the controller, held by a battery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrayCacheConfig {
    /// Bytes of writes that it holds.
    pub bytes: u64,
    /// Bytes from which on rows that are not full leave too, the oldest first. Default: half of `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_from_bytes: Option<u64>,
}

/// Members that fit an array: failures are kept in the bits of a word.
const MEMBERS_MAX: u32 = 64;

/// Latest failure.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

impl ArrayConfig {
    /// An array without spares behind a controller that costs nothing.
    pub fn new(level: Level, members: u32, chunk_bytes: u64) -> Self {
        Self {
            name: format!("{level:?} of {members}"),
            level,
            members,
            member: String::new(),
            chunk_bytes,
            spares: 0,
            rebuild_bytes_per_s: 0,
            controller: ArrayControllerConfig::default(),
            failures: Vec::new(),
        }
    }

    /// Reads and checks an array and the drive that its members are; `path` is for messages, and its folder is where a
    /// file of the member is looked for.
    ///
    /// # Errors
    /// When a text does not parse or describes no possible array or drive.
    pub fn from_toml(text: &str, path: &str) -> Result<(Self, DeviceConfig), SsdError> {
        let config = Self::parse(text, path)?;
        let member = config.read_member(path)?;
        config.check(&member, path)?;
        Ok((config, member))
    }

    /// Reads an array that is not compared with its members yet.
    pub fn parse(text: &str, path: &str) -> Result<Self, SsdError> {
        toml::from_str(text).map_err(|e| flashwise_ssd::config::syntax_error(text, path, &e))
    }

    fn read_member(&self, path: &str) -> Result<DeviceConfig, SsdError> {
        if Preset::all().any(|preset| preset.name == self.member) {
            return DeviceConfig::preset(&self.member);
        }
        let file = Path::new(path).parent().unwrap_or(Path::new("")).join(&self.member);
        let text = flashwise_block::input::read_text(&file).map_err(|error| SsdError::Impossible {
            path: path.to_owned(),
            key: "member",
            value: format!("\"{}\"", self.member),
            reason: format!("neither a preset nor a readable file ({error})"),
        })?;
        DeviceConfig::from_toml(&text, &file.display().to_string())
    }

    /// Fewest members of the level.
    fn members_min(&self) -> u32 {
        match self.level {
            Level::Raid0 => 1,
            Level::Raid1 | Level::Raid10 => 2,
            Level::Raid5 => 3,
            Level::Raid6 => 4,
        }
    }

    /// Refuses what describes no possible array of such drives.
    ///
    /// # Errors
    /// With the first impossible key.
    pub fn check(&self, member: &DeviceConfig, path: &str) -> Result<(), SsdError> {
        let checker = Checker { path };
        let least = self.members_min();
        let possible = (least..=MEMBERS_MAX).contains(&self.members);
        let reason = format!("this level requires {least} to {MEMBERS_MAX} members");
        checker.require("members", self.members, possible, reason)?;
        let even = self.level != Level::Raid10 || self.members.is_multiple_of(2);
        checker.require("members", self.members, even, "RAID-10 requires an even number")?;
        checker.count("spares", self.spares + 1, MEMBERS_MAX, "must be at most 63")?;
        checker.multiple("chunk_bytes", self.chunk_bytes, member.host.logical_block_bytes)?;
        let fits = self.chunk_bytes <= member.capacity_bytes;
        let reason = format!("must be at most a member's capacity, {}", ByteSize(member.capacity_bytes));
        checker.require("chunk_bytes", self.chunk_bytes, fits, reason)?;
        if self.rebuild_bytes_per_s > 0 {
            let possible = (1 << 10..=1 << 40).contains(&self.rebuild_bytes_per_s);
            let reason = "must be 0 (no limit) or between 1 KiB/s and 1 TiB/s";
            checker.require("rebuild_bytes_per_s", self.rebuild_bytes_per_s, possible, reason)?;
        }
        for failure in &self.failures {
            let reason = format!("must be a member's number, 0 to {}", self.members - 1);
            checker.require("failures.member", failure.member, failure.member < self.members, reason)?;
            let reason = "must be at most one year";
            checker.require("failures.at_ns", failure.at_ns, failure.at_ns <= YEAR_NS, reason)?;
        }
        self.controller.check(member, &checker)
    }

    /// How many drives may fail, whichever they are, before data is lost.
    pub fn survives(&self) -> u32 {
        match self.level {
            Level::Raid0 => 0,
            Level::Raid1 => self.members - 1,
            Level::Raid10 | Level::Raid5 => 1,
            Level::Raid6 => 2,
        }
    }

    /// Bytes that the host can address on such members.
    pub fn capacity_bytes(&self, member: &DeviceConfig) -> u64 {
        Stripes::new(self.level, self.members as usize, self.chunk_bytes, member.capacity_bytes).capacity_bytes()
    }

    /// Bytes of data in a row.
    pub fn row_bytes(&self) -> u64 {
        Stripes::new(self.level, self.members as usize, self.chunk_bytes, self.chunk_bytes).row_bytes()
    }
}

impl ArrayControllerConfig {
    fn check(&self, member: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.time("controller.command_latency_ns", self.command_latency_ns)?;
        let possible = self.iops_max <= 1_000_000_000;
        checker.require("controller.iops_max", self.iops_max, possible, "must be at most 10^9 commands a second")?;
        if self.bandwidth_bytes_per_s > 0 {
            checker.rate("controller.bandwidth_bytes_per_s", self.bandwidth_bytes_per_s)?;
        }
        let block = member.host.logical_block_bytes;
        let transfer = self.max_transfer_bytes.unwrap_or(member.host.max_transfer_bytes);
        checker.multiple("controller.max_transfer_bytes", transfer, block)?;
        let possible = transfer <= 1 << 26;
        checker.require("controller.max_transfer_bytes", transfer, possible, "must be at most 64 MiB")?;
        let Some(cache) = &self.write_cache else { return Ok(()) };
        let holds = (transfer..=1 << 40).contains(&cache.bytes);
        let reason = format!("must hold at least the largest request, {transfer} bytes, and at most 1 TiB");
        checker.require("controller.write_cache.bytes", cache.bytes, holds, reason)?;
        let from = cache.destage_from_bytes.unwrap_or(0);
        let room = cache.bytes - transfer;
        let reason = format!("must leave space for the largest request: at most {room}");
        checker.require("controller.write_cache.destage_from_bytes", from, from <= room, reason)
    }
}

impl ArrayCacheConfig {
    /// From how many bytes on rows that are not full leave, for requests of at most `max_transfer_bytes`.
    pub(super) fn destage_from(&self, max_transfer_bytes: u64) -> u64 {
        self.destage_from_bytes.unwrap_or(self.bytes / 2).min(self.bytes.saturating_sub(max_transfer_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::config::is_of_array;

    const GOOD: &str = r#"
        name = "four drives"
        level = "raid5"
        members = 4
        member = "micron-m500"
        chunk_bytes = 65536
        [controller]
        iops_max = 45_000
        write_cache.bytes = 536_870_912
    "#;

    fn refused(from: &str, to: &str) -> String {
        ArrayConfig::from_toml(&GOOD.replace(from, to), "mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn an_array_of_a_preset_is_read() {
        let (config, member) = ArrayConfig::from_toml(GOOD, "mine.toml").unwrap();
        assert_eq!((config.level, config.members, config.controller.iops_max), (Level::Raid5, 4, 45_000));
        assert_eq!(member.name, "Micron M500 120GB");
        assert!(is_of_array(GOOD));
        assert!(Preset::all().all(|preset| !is_of_array(preset.toml)));
    }

    #[test]
    fn failures_are_of_members_that_there_are() {
        let with = |failure: &str| {
            ArrayConfig::from_toml(&format!("failures = [{failure}]\n{GOOD}"), "mine.toml").map(|(config, _)| config)
        };
        let config = with("{ member = 3, at_ns = 5 }").unwrap();
        assert_eq!(config.failures, [FailureConfig { member: 3, at_ns: 5 }]);
        let refused = with("{ member = 4, at_ns = 5 }").unwrap_err().to_string();
        assert_eq!(refused, "mine.toml: failures.member = 4: must be a member's number, 0 to 3");
        assert!(with("{ member = 0, at_ns = 100_000_000_000_000_000 }").is_err());
    }

    #[test]
    fn what_an_array_holds_and_survives_follows_from_its_level() {
        let (mut config, member) = ArrayConfig::from_toml(GOOD, "mine.toml").unwrap();
        assert_eq!((config.survives(), config.row_bytes()), (1, 3 * 65_536));
        let rows = member.capacity_bytes / 65_536;
        assert_eq!(config.capacity_bytes(&member), rows * 3 * 65_536);
        (config.level, config.members) = (Level::Raid6, 6);
        assert_eq!((config.survives(), config.row_bytes()), (2, 4 * 65_536));
    }

    #[test]
    fn an_impossible_value_is_told_with_file_key_value_and_reason() {
        assert_eq!(
            refused("members = 4", "members = 2"),
            "mine.toml: members = 2: this level requires 3 to 64 members"
        );
        assert!(refused("\"raid5\"\n        members = 4", "\"raid10\"\n        members = 5").contains("even number"));
        assert!(refused("65536", "1000").contains("chunk_bytes = 1000: must be a positive multiple of 512"));
        assert!(refused("micron-m500", "micron-m501").contains("member = \"micron-m501\": neither a preset"));
        assert!(refused("536_870_912", "4096").contains("at least the largest request"));
        assert!(refused("iops_max", "iops_most").contains("did you mean `iops_max`?"));
        let tight = "write_cache = { bytes = 4_194_304, destage_from_bytes = 4_194_304 }";
        assert!(refused("write_cache.bytes = 536_870_912", tight).contains("at most 2097152"));
    }
}
