//! What a volume is made of, as one TOML file; the form is in `docs/formats/volume.md`.

use std::path::Path;

use flashwise_block::{ByteSize, Operation};
use flashwise_ssd::config::{Checker, syntax_error};
use flashwise_ssd::{DeviceConfig, PRESETS, SsdError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::medium::{DiskConfig, PlainConfig};

/// A whole volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeConfig {
    /// Its name in reports.
    pub name: String,
    /// Bytes that the host can address.
    pub capacity_bytes: u64,
    /// Smallest addressable unit.
    #[serde(default = "logical_block_bytes")]
    pub logical_block_bytes: u64,
    /// Largest request; the host splits longer ones.
    #[serde(default = "max_transfer_bytes")]
    pub max_transfer_bytes: u64,
    /// Requests that the volume takes at once; more wait in the host's queue.
    #[serde(default = "queue_depth")]
    pub queue_depth: u32,
    /// The volume's own limits, in the order in which a request passes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitConfig>,
    /// The instance that the volume is attached to.
    #[serde(default, skip_serializing_if = "InstanceConfig::is_default")]
    pub instance: InstanceConfig,
    /// What the network adds to the medium's latency.
    #[serde(default, skip_serializing_if = "NetworkConfig::is_default")]
    pub network: NetworkConfig,
    /// What stores the bytes.
    pub medium: MediumConfig,
}

/// A token bucket: it is refilled at a rate up to a size, and requests take tokens out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    /// Its name in reports.
    pub name: String,
    /// The requests that it counts.
    #[serde(default)]
    pub direction: Direction,
    /// What a token stands for.
    pub counts: Counts,
    /// Tokens a second that are refilled: the sustained rate.
    pub rate_per_s: u64,
    /// Tokens that a full bucket holds: the burst. With 0, requests leave one after the other at the rate.
    #[serde(default)]
    pub size: u64,
    /// How full the bucket is at the start.
    #[serde(default = "one")]
    pub filled_share: f64,
    /// Tokens a second that are spent at most while the bucket lasts; none for no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_s: Option<u64>,
    /// Bytes that one counted request holds: a longer request counts as several. 0: each request counts once.
    #[serde(default)]
    pub unit_bytes: u64,
    /// Requests of at least this size that continue the request before them are counted with it, up to `unit_bytes`.
    /// 0: each request is counted alone.
    #[serde(default)]
    pub merge_from_bytes: u64,
    /// With `counts = "cost"`: what a read takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cost: Option<CostConfig>,
    /// With `counts = "cost"`: what a write takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cost: Option<CostConfig>,
    /// What happens to a request that finds too few tokens.
    #[serde(default)]
    pub at_limit: AtLimit,
    /// With `at_limit = "hold"`: for how long, ns.
    #[serde(default)]
    pub hold_ns: u64,
}

/// The requests that a limit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes, also of zeros.
    Write,
    /// Both together.
    #[default]
    Joint,
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Counts {
    /// A request, or each `unit_bytes` of one.
    Requests,
    /// A byte.
    Bytes,
    /// What `read_cost` and `write_cost` say.
    Cost,
}

/// What a request takes out of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostConfig {
    /// Tokens for each request, or for each `unit_bytes` of one.
    #[serde(default)]
    pub per_request: f64,
    /// Tokens for each byte.
    #[serde(default)]
    pub per_byte: f64,
}

/// What happens to a request that finds too few tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtLimit {
    /// It waits, first come first served, until there are enough.
    #[default]
    Queue,
    /// It is put aside for `hold_ns`, and tries again then; requests that come later may be served before it.
    Hold,
    /// All requests leave one after the other at the rate (a leaky bucket), without any burst: `size` is 0.
    Pace,
}

/// The instance: limits that the volume shares with others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceConfig {
    /// The instance's limits, which a request passes after the volume's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitConfig>,
    /// What the instance's other volumes do all the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<LoadConfig>,
    /// Other volumes of the instance that are simulated too: presets' names, or files, relative to this one. Their
    /// addresses follow this volume's, in the order of the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
}

impl InstanceConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A steady load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadConfig {
    /// Whether the requests are writes rather than reads.
    #[serde(default)]
    pub writes: bool,
    /// Requests a second.
    pub requests_per_s: u64,
    /// Bytes of each.
    pub request_bytes: u64,
}

/// The network between the instance and the medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// Round trip of a read.
    #[serde(default, skip_serializing_if = "DelayConfig::is_default")]
    pub read: DelayConfig,
    /// Round trip of a write, a trim or a flush.
    #[serde(default, skip_serializing_if = "DelayConfig::is_default")]
    pub write: DelayConfig,
}

impl NetworkConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A random delay: a fixed part, and either a log-normal one or percentiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayConfig {
    /// The part that is always the same, ns.
    #[serde(default)]
    pub fixed_ns: u64,
    /// Median of the log-normal part, ns.
    #[serde(default)]
    pub median_ns: u64,
    /// 99th percentile of the log-normal part, ns.
    #[serde(default)]
    pub p99_ns: u64,
    /// Points of the distribution of the random part, in order; values between them are interpolated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<PercentileConfig>,
}

impl DelayConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PercentileConfig {
    /// Share of requests that are at most as slow.
    pub share: f64,
    /// Their largest delay, ns.
    pub delay_ns: u64,
}

/// What stores the bytes: exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediumConfig {
    /// A simulated drive: a preset's name, or a drive's file, relative to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// A latency without a mechanism behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainConfig>,
    /// A rotating disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskConfig>,
}

/// A volume, and the drive behind it where its medium is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// The volume.
    pub config: VolumeConfig,
    /// The drive of `medium.drive`.
    pub drive: Option<DeviceConfig>,
    /// The volumes of `instance.volumes`, without instances of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Volume>,
}

fn logical_block_bytes() -> u64 {
    512
}

fn max_transfer_bytes() -> u64 {
    1 << 20
}

fn queue_depth() -> u32 {
    1024
}

fn one() -> f64 {
    1.0
}

/// Highest rate of tokens: bytes a second of a bus.
const RATE_MAX: u64 = 1_000_000_000_000;

/// Largest bucket: with [`TOKEN`] parts of each token, levels stay far below 2¹²⁷.
const SIZE_MAX: u64 = 1 << 60;

/// Volumes of an instance beside the first: AWS attaches at most 128 to the instances that take most.
const OTHERS_MAX: usize = 127;

/// Highest cost of one request or byte, in tokens.
const COST_MAX: f64 = 1e9;

/// Parts of a token: refilling a whole number of tokens a second for a whole number of nanoseconds is exact.
pub(crate) const TOKEN: i128 = 1_000_000_000;

/// Whether a text describes a volume rather than a drive or an array.
pub fn is_of_volume(text: &str) -> bool {
    let keys = ["medium", "limits", "instance", "network"];
    toml::from_str::<toml::Table>(text).is_ok_and(|table| keys.iter().any(|key| table.contains_key(*key)))
}

impl Volume {
    /// Reads and checks a volume and the drive behind it; `path` is for messages, and its folder is where a file of the
    /// drive is looked for.
    ///
    /// # Errors
    /// When a text does not parse or describes no possible volume or drive.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, SsdError> {
        let mut volume = Self::alone(text, path)?;
        let names = &volume.config.instance.volumes;
        volume.others = names.iter().map(|name| read_other(name, path)).collect::<Result<_, _>>()?;
        volume.check(path)?;
        Ok(volume)
    }

    /// Reads a volume and its drive, but no other volumes of its instance.
    fn alone(text: &str, path: &str) -> Result<Self, SsdError> {
        let config: VolumeConfig = toml::from_str(text).map_err(|e| syntax_error(text, path, &e))?;
        let drive = config.medium.drive.as_deref().map(|name| read_drive(name, path)).transpose()?;
        Ok(Self { config, drive, others: Vec::new() })
    }

    /// A volume without a drive behind it.
    ///
    /// # Errors
    /// When the configuration describes no possible volume, or one with a drive.
    pub fn new(config: VolumeConfig) -> Result<Self, SsdError> {
        let volume = Self { config, drive: None, others: Vec::new() };
        volume.check(&volume.config.name)?;
        Ok(volume)
    }

    /// Bytes that the host can address, those of the other volumes included.
    pub fn capacity(&self) -> ByteSize {
        ByteSize(self.all().map(|volume| volume.config.capacity_bytes).sum())
    }

    /// This volume and the others of its instance, in the order of their addresses.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// Refuses what describes no possible volume.
    ///
    /// # Errors
    /// With the first impossible key.
    pub fn check(&self, path: &str) -> Result<(), SsdError> {
        let (config, checker) = (&self.config, Checker { path });
        let block = config.logical_block_bytes;
        let possible = block.is_power_of_two() && (512..=1 << 16).contains(&block);
        checker.require("logical_block_bytes", block, possible, "must be a power of two from 512 to 65536")?;
        checker.multiple("capacity_bytes", config.capacity_bytes, block)?;
        let possible = config.capacity_bytes <= 1 << 50;
        checker.require("capacity_bytes", config.capacity_bytes, possible, "must be at most 1 PiB")?;
        checker.multiple("max_transfer_bytes", config.max_transfer_bytes, block)?;
        let possible = config.max_transfer_bytes <= 1 << 26;
        checker.require("max_transfer_bytes", config.max_transfer_bytes, possible, "must be at most 64 MiB")?;
        checker.count("queue_depth", config.queue_depth, 1 << 20, "must be from 1 to 2^20")?;
        config.limits.iter().try_for_each(|limit| limit.check(&checker))?;
        config.instance.limits.iter().try_for_each(|limit| limit.check(&checker))?;
        config.instance.check(&checker)?;
        config.network.read.check(&checker)?;
        config.network.write.check(&checker)?;
        self.check_medium(&checker)?;
        self.check_others(path)
    }

    fn check_others(&self, path: &str) -> Result<(), SsdError> {
        let (config, checker) = (&self.config, Checker { path });
        let (named, read) = (config.instance.volumes.len(), self.others.len());
        let fits = named == read && named <= OTHERS_MAX;
        checker.require("instance.volumes", named, fits, format!("must be at most {OTHERS_MAX} volumes"))?;
        for (name, other) in config.instance.volumes.iter().zip(&self.others) {
            other.check(name)?;
            let block = other.config.logical_block_bytes;
            let same = block == config.logical_block_bytes;
            let reason = format!("has logical blocks of {block} bytes; all volumes of an instance need the same");
            checker.require("instance.volumes", format!("\"{name}\""), same, reason)?;
        }
        Ok(())
    }

    fn check_medium(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let (config, medium) = (&self.config, &self.config.medium);
        let kinds = [medium.drive.is_some(), medium.plain.is_some(), medium.disk.is_some()];
        let count = kinds.iter().filter(|&&is_present| is_present).count();
        let reason = "needs exactly one of drive, plain and disk";
        checker.require("medium", format!("{count} of them"), count == 1, reason)?;
        if let Some(name) = &medium.drive {
            let quoted = format!("\"{name}\"");
            let Some(drive) = &self.drive else {
                return checker.fail("medium.drive", quoted, "the drive's configuration is missing");
            };
            let reason = format!("the drive holds only {}", ByteSize(drive.capacity_bytes));
            let fits = config.capacity_bytes <= drive.capacity_bytes;
            checker.require("capacity_bytes", config.capacity_bytes, fits, reason)?;
            let fits = config.max_transfer_bytes <= drive.host.max_transfer_bytes;
            let reason = format!("must be at most the drive's, {}", drive.host.max_transfer_bytes);
            checker.require("max_transfer_bytes", config.max_transfer_bytes, fits, reason)?;
            let fits = config.logical_block_bytes.is_multiple_of(drive.host.logical_block_bytes);
            let reason = format!("must be a multiple of the drive's, {}", drive.host.logical_block_bytes);
            checker.require("logical_block_bytes", config.logical_block_bytes, fits, reason)?;
        }
        if let Some(plain) = &medium.plain {
            plain.check(checker)?;
        }
        medium.disk.as_ref().map_or(Ok(()), |disk| disk.check(config.capacity_bytes, checker))
    }
}

/// A volume beside another one; of two instances, that of the first counts.
fn read_other(name: &str, path: &str) -> Result<Volume, SsdError> {
    let preset = crate::preset::find(name).map(|preset| (preset.toml.to_owned(), format!("preset {name}")));
    let (text, file) = match preset {
        Some(preset) => preset,
        None => {
            let file = Path::new(path).parent().unwrap_or(Path::new("")).join(name);
            let text = flashwise_block::input::read_text(&file).map_err(|error| SsdError::Impossible {
                path: path.to_owned(),
                key: "instance.volumes",
                value: format!("\"{name}\""),
                reason: format!("neither a volume's preset nor a readable file ({error})"),
            })?;
            (text, file.display().to_string())
        }
    };
    let mut other = Volume::alone(&text, &file)?;
    other.config.instance = InstanceConfig::default();
    Ok(other)
}

fn read_drive(name: &str, path: &str) -> Result<DeviceConfig, SsdError> {
    if PRESETS.iter().any(|preset| preset.name == name) {
        return DeviceConfig::preset(name);
    }
    let file = Path::new(path).parent().unwrap_or(Path::new("")).join(name);
    let text = flashwise_block::input::read_text(&file).map_err(|error| SsdError::Impossible {
        path: path.to_owned(),
        key: "medium.drive",
        value: format!("\"{name}\""),
        reason: format!("neither a preset nor a readable file ({error})"),
    })?;
    DeviceConfig::from_toml(&text, &file.display().to_string())
}

impl LimitConfig {
    /// A limit without a burst, whose requests wait.
    pub fn new(name: &str, direction: Direction, counts: Counts, rate_per_s: u64) -> Self {
        Self {
            name: name.to_owned(),
            direction,
            counts,
            rate_per_s,
            size: 0,
            filled_share: 1.0,
            peak_per_s: None,
            unit_bytes: 0,
            merge_from_bytes: 0,
            read_cost: None,
            write_cost: None,
            at_limit: AtLimit::Queue,
            hold_ns: 0,
        }
    }

    /// Whether it counts requests of this kind. Flushes and trims pass every limit.
    pub fn covers(&self, operation: Operation) -> bool {
        match self.direction {
            Direction::Read => operation == Operation::Read,
            Direction::Write => operation.writes(),
            Direction::Joint => operation == Operation::Read || operation.writes(),
        }
    }

    /// What requests take out of the bucket: reads and writes.
    pub fn costs(&self) -> (CostConfig, CostConfig) {
        let same = match self.counts {
            Counts::Requests => CostConfig { per_request: 1.0, per_byte: 0.0 },
            Counts::Bytes => CostConfig { per_request: 0.0, per_byte: 1.0 },
            Counts::Cost => {
                return (self.read_cost.unwrap_or_default(), self.write_cost.unwrap_or_default());
            }
        };
        (same, same)
    }

    fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let of = |value: &dyn std::fmt::Display| format!("{value} of \"{}\"", self.name);
        let possible = (1..=RATE_MAX).contains(&self.rate_per_s);
        checker.require("limits.rate_per_s", of(&self.rate_per_s), possible, "must be from 1 to 10^12")?;
        checker.require("limits.size", of(&self.size), self.size <= SIZE_MAX, "must be at most 2^60")?;
        let possible = (0.0..=1.0).contains(&self.filled_share);
        checker.require("limits.filled_share", of(&self.filled_share), possible, "must be a share between 0 and 1")?;
        if let Some(peak) = self.peak_per_s {
            let reason = format!("must be above the sustained rate, {}, and at most 10^12", self.rate_per_s);
            let possible = peak > self.rate_per_s && peak <= RATE_MAX;
            checker.require("limits.peak_per_s", of(&peak), possible, reason)?;
        }
        let possible = self.unit_bytes == 0 || (512..=1 << 40).contains(&self.unit_bytes);
        checker.require("limits.unit_bytes", of(&self.unit_bytes), possible, "must be 0 or from 512 to 2^40")?;
        let possible = self.unit_bytes == 0 || self.counts != Counts::Bytes;
        let reason = "bytes are counted without units: use counts = \"requests\"";
        checker.require("limits.unit_bytes", of(&self.unit_bytes), possible, reason)?;
        let possible = self.merge_from_bytes == 0 || self.merge_from_bytes <= self.unit_bytes;
        let reason = "must be at most unit_bytes, up to which requests are counted together";
        checker.require("limits.merge_from_bytes", of(&self.merge_from_bytes), possible, reason)?;
        self.check_costs(checker)?;
        let possible = (self.at_limit == AtLimit::Hold) == (self.hold_ns > 0);
        let reason = "at_limit = \"hold\" and a time of at least 1 ns require each other";
        checker.require("limits.hold_ns", of(&self.hold_ns), possible, reason)?;
        checker.time("limits.hold_ns", self.hold_ns)?;
        let possible = self.at_limit != AtLimit::Pace || (self.size == 0 && self.peak_per_s.is_none());
        let reason = "at_limit = \"pace\" allows no burst: leave out size and peak_per_s";
        checker.require("limits.size", of(&self.size), possible, reason)
    }

    fn check_costs(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        let named = [("limits.read_cost", self.read_cost), ("limits.write_cost", self.write_cost)];
        for (key, cost) in named {
            let Some(CostConfig { per_request, per_byte }) = cost else { continue };
            let text = format!("{{ per_request = {per_request}, per_byte = {per_byte} }}");
            let reason = "requires counts = \"cost\"";
            checker.require(key, &text, self.counts == Counts::Cost, reason)?;
            let possible = [per_request, per_byte].iter().all(|cost| (0.0..=COST_MAX).contains(cost));
            checker.require(key, &text, possible, "must be from 0 to 10^9")?;
        }
        let has_cost = self.counts != Counts::Cost || self.read_cost.is_some() || self.write_cost.is_some();
        checker.require("limits.counts", "\"cost\"", has_cost, "requires read_cost, write_cost or both")
    }
}

impl InstanceConfig {
    fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        for load in &self.others {
            let possible = load.request_bytes > 0 && load.request_bytes <= 1 << 40;
            checker.require("instance.others.request_bytes", load.request_bytes, possible, "must be from 1 to 2^40")?;
        }
        for limit in &self.limits {
            let (used, rate) = (self.used_per_s(limit), limit.rate_per_s);
            let reason = format!("the other volumes leave nothing of \"{}\": they use {used:.0} a second", limit.name);
            checker.require("instance.limits.rate_per_s", rate, used < rate as f64, reason)?;
        }
        Ok(())
    }

    /// Tokens a second that the other volumes take out of one of the instance's buckets.
    pub fn used_per_s(&self, limit: &LimitConfig) -> f64 {
        let (read, write) = limit.costs();
        let one = |load: &LoadConfig| {
            let (operation, cost) = if load.writes { (Operation::Write, write) } else { (Operation::Read, read) };
            let units = if limit.unit_bytes > 0 { load.request_bytes.div_ceil(limit.unit_bytes) } else { 1 };
            let tokens = cost.per_request * units as f64 + cost.per_byte * load.request_bytes as f64;
            if limit.covers(operation) { tokens * load.requests_per_s as f64 } else { 0.0 }
        };
        self.others.iter().map(one).sum()
    }
}

impl DelayConfig {
    fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.time("network.fixed_ns", self.fixed_ns)?;
        checker.time("network.p99_ns", self.p99_ns)?;
        let possible = (self.median_ns == 0) == (self.p99_ns == 0) && self.median_ns <= self.p99_ns;
        let reason = "median_ns and p99_ns require each other, and the median is at most p99_ns";
        checker.require("network.median_ns", self.median_ns, possible, reason)?;
        let points = &self.percentiles;
        let possible = points.is_empty() || self.median_ns == 0;
        checker.require("network.percentiles", points.len(), possible, "excludes median_ns and p99_ns")?;
        let ends = points.first().zip(points.last());
        let possible = ends.is_none_or(|(first, last)| first.share == 0.0 && last.share == 1.0);
        checker.require("network.percentiles", points.len(), possible, "must begin with share = 0 and end with 1")?;
        let grows = |pair: &[PercentileConfig]| pair[0].share < pair[1].share && pair[0].delay_ns <= pair[1].delay_ns;
        let possible = points.windows(2).all(grows);
        checker.require("network.percentiles", points.len(), possible, "shares and delays must grow")?;
        points.iter().try_for_each(|point| checker.time("network.percentiles.delay_ns", point.delay_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key of a schema, tables resolved.
    fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(object) => {
                if let Some(properties) = object.get("properties").and_then(|properties| properties.as_object()) {
                    found.extend(properties.keys().cloned());
                }
                object.values().for_each(|value| keys(value, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_key_stands_in_the_page_of_the_book() {
        let page = include_str!("../../../docs/formats/volume.md");
        let mut found = Vec::new();
        keys(&schemars::schema_for!(VolumeConfig).to_value(), &mut found);
        assert!(found.len() > 40, "{found:?}");
        let lacking: Vec<_> = found.iter().filter(|key| !page.contains(key.as_str())).collect();
        assert!(lacking.is_empty(), "docs/formats/volume.md lacks {lacking:?}");
    }

    #[test]
    fn the_examples_of_the_page_are_possible_volumes() {
        let page = include_str!("../../../docs/formats/volume.md");
        let examples: Vec<&str> =
            page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert_eq!(Volume::from_toml(examples[0], "example").unwrap().config.limits[0].peak_per_s, Some(3_000));
        let beside = format!(
            "name = \"v\"\ncapacity_bytes = 1_073_741_824\n[medium]\nplain = {{ read_ns = 1, write_ns = 1 }}\n{}",
            examples[2]
        );
        let several = Volume::from_toml(&beside, "example").unwrap();
        assert_eq!((several.all().count(), several.capacity()), (3, ByteSize::gib(201)));
    }
}
