//! Random cloud volumes: a plausible one for each seed, to hold whatever learns limits against volumes that nobody has
//! seen.
//!
//! | what | how often, or from where to where |
//! |---|---|
//! | kind | 30 % IOPS and bandwidth of reads and writes together, 14 % each of them alone, 20 % reads and writes apart, 16 % a joint cost, 12 % no limit, 8 % a rotating disk |
//! | rate | 400 to 300,000 requests, 16 MB to 4 GB a second, evenly in the logarithm; as many significant digits as a provider's table has |
//! | burst | 35 % of buckets that do not pace: 10 s to 40 min at 1.3 to 8 times the rate; the others 0 to 20 ms of the rate |
//! | at the limit | 64 % wait, 18 % are held for 1 to 10 ms, 18 % pace |
//! | unit | 40 % of limits of requests: 16 KiB to 1 MiB; half of them count adjacent requests together |
//! | instance | 22 %: 0.4 to 3 times the volume's rate, on half of them beside a load of up to half of it |
//! | network | 70 %: 0.1 to 1 ms with a log-normal tail; the others are local |
//! | medium | a latency of 40 to 150 µs; 15 % a drive's number of requests at once |
//!
//! Ranges and kinds are those of the presets (`devices/cloud/*.toml`); the shares are chosen so that 200 volumes have
//! each often enough to be counted.

use flashwise_ssd::SsdError;
use flashwise_volume::{
    AtLimit, CostConfig, Counts, DelayConfig, Direction, DiskConfig, DiskQueue, InstanceConfig, LimitConfig,
    LoadConfig, MediumConfig, NetworkConfig, PlainConfig, Volume, VolumeConfig,
};

use super::draw::Draws;

/// Requests a second of a limit, from and to.
const REQUESTS_PER_S: (u64, u64) = (400, 300_000);
/// Bytes a second of a limit, from and to.
const BYTES_PER_S: (u64, u64) = (16_000_000, 4_000_000_000);
/// How long a burst lasts at its peak, ms: from ten seconds to forty minutes, as gp2's half an hour.
const BURST_MS: (u64, u64) = (10_000, 2_400_000);
/// Longest of buckets that are no burst, µs of refill.
const SLACK_US: (u64, u64) = (100, 20_000);

/// What a volume is limited by.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Both,
    Requests,
    Bytes,
    Apart,
    Cost,
    Unlimited,
    Disk,
}

/// The random volume of a seed; the same for ever.
///
/// # Errors
/// When no configuration comes of the seed that [`Volume::check`] accepts, which its construction excludes.
///
/// # Example
/// ```
/// let volume = flashwise_truth::random::random_volume(7)?;
/// assert_eq!(volume, flashwise_truth::random::random_volume(7)?);
/// # Ok::<(), flashwise_ssd::SsdError>(())
/// ```
pub fn random_volume(seed: u64) -> Result<Volume, SsdError> {
    let draws = Draws::new(seed);
    let kind = draws.weighted(
        "cloud.kind",
        &[
            (Kind::Both, 30),
            (Kind::Requests, 7),
            (Kind::Bytes, 7),
            (Kind::Apart, 20),
            (Kind::Cost, 16),
            (Kind::Unlimited, 12),
            (Kind::Disk, 8),
        ],
    );
    let config = VolumeConfig {
        name: format!("random volume {seed}"),
        capacity_bytes: draws.weighted("cloud.capacity", &[(64, 3), (128, 3), (256, 2), (512, 2), (1024, 1)]) << 30,
        logical_block_bytes: draws.weighted("cloud.block", &[(512, 3), (4096, 1)]),
        max_transfer_bytes: draws.weighted("cloud.transfer", &[(1 << 18, 1), (1 << 20, 3), (1 << 21, 1)]),
        queue_depth: draws.weighted("cloud.depth", &[(128, 1), (1024, 4)]),
        limits: limits(&draws, kind),
        instance: InstanceConfig::default(),
        network: if kind == Kind::Disk { NetworkConfig::default() } else { network(&draws) },
        medium: medium(&draws, kind),
    };
    Volume::new(VolumeConfig { instance: instance(&draws, &config.limits), ..config })
}

/// The same as a file, which says its seed.
///
/// # Errors
/// As [`random_volume`].
pub fn random_volume_toml(seed: u64) -> Result<String, SsdError> {
    let Volume { config, .. } = random_volume(seed)?;
    let body =
        toml::to_string(&config).map_err(|e| SsdError::Syntax { path: config.name.clone(), reason: e.to_string() })?;
    Ok(format!("# A random volume: flashwise device random --cloud --seed {seed}\n\n{body}"))
}

fn limits(draws: &Draws, kind: Kind) -> Vec<LimitConfig> {
    let limit = |name, direction, counts| limit(draws, name, direction, counts);
    match kind {
        Kind::Unlimited | Kind::Disk => Vec::new(),
        Kind::Requests => vec![limit("IOPS", Direction::Joint, Counts::Requests)],
        Kind::Bytes => vec![limit("bandwidth", Direction::Joint, Counts::Bytes)],
        Kind::Both => {
            let requests = limit("IOPS", Direction::Joint, Counts::Requests);
            // As provisioned: requests of 4 to 64 KiB reach both.
            let together = draws.between("cloud.request", 4 << 10, 64 << 10);
            let mut bytes = limit("bandwidth", Direction::Joint, Counts::Bytes);
            resize(&mut bytes, (requests.rate_per_s * together).clamp(BYTES_PER_S.0, BYTES_PER_S.1));
            vec![requests, bytes]
        }
        Kind::Apart => vec![
            limit("read IOPS", Direction::Read, Counts::Requests),
            limit("write IOPS", Direction::Write, Counts::Requests),
            limit("read bandwidth", Direction::Read, Counts::Bytes),
            limit("write bandwidth", Direction::Write, Counts::Bytes),
        ],
        Kind::Cost => {
            let mut budget = limit("budget", Direction::Joint, Counts::Cost);
            let per_request = draws.share("cloud.cost.request", 0.0, 3.0);
            let per_byte = draws.share("cloud.cost.kib", 0.02, 0.8) / 1024.0;
            budget.read_cost = Some(CostConfig { per_request: 1.0, per_byte: 0.0 });
            budget.write_cost = Some(CostConfig { per_request, per_byte });
            vec![budget]
        }
    }
}

fn limit(draws: &Draws, name: &str, direction: Direction, counts: Counts) -> LimitConfig {
    let key = |what: &str| format!("cloud.{name}.{what}");
    let (least, most) = if counts == Counts::Bytes { BYTES_PER_S } else { REQUESTS_PER_S };
    let rate = draws.between(&key("rate"), least, most);
    let at_limit = draws.weighted("cloud.at_limit", &[(AtLimit::Queue, 64), (AtLimit::Hold, 18), (AtLimit::Pace, 18)]);
    let mut limit = LimitConfig { at_limit, ..LimitConfig::new(name, direction, counts, rate) };
    if at_limit == AtLimit::Hold {
        limit.hold_ns = draws.between("cloud.hold_ns", 1_000_000, 10_000_000);
    }
    if at_limit != AtLimit::Pace {
        if draws.chance(&key("burst"), 0.35) {
            let peak = (rate as f64 * draws.share(&key("peak"), 1.3, 8.0)) as u64;
            let lasts_ms = draws.between(&key("lasts"), BURST_MS.0, BURST_MS.1);
            limit.size = (peak - rate) / 1000 * lasts_ms;
            limit.peak_per_s = Some(peak);
            limit.filled_share = draws.weighted(&key("filled"), &[(1.0, 4), (0.5, 1)]);
        } else {
            limit.size = rate * draws.between(&key("slack"), SLACK_US.0, SLACK_US.1) / 1_000_000;
        }
    }
    if counts == Counts::Requests && draws.chance(&key("unit"), 0.4) {
        limit.unit_bytes = draws.any(&key("unit_bytes"), &[16 << 10, 64 << 10, 256 << 10, 1 << 20]);
        if draws.chance(&key("merges"), 0.5) {
            limit.merge_from_bytes = limit.unit_bytes / 8;
        }
    }
    limit
}

/// The same limit with another rate; what follows from the rate follows it.
fn resize(limit: &mut LimitConfig, rate_per_s: u64) {
    let factor = rate_per_s as f64 / limit.rate_per_s as f64;
    let scaled = |value: u64| (value as f64 * factor) as u64;
    limit.size = scaled(limit.size);
    limit.peak_per_s = limit.peak_per_s.map(|peak| scaled(peak).max(rate_per_s + 1));
    limit.rate_per_s = rate_per_s;
}

fn instance(draws: &Draws, own: &[LimitConfig]) -> InstanceConfig {
    let Some(first) = own.first().filter(|_| draws.chance("cloud.instance", 0.22)) else {
        return InstanceConfig::default();
    };
    let rate = (first.rate_per_s as f64 * draws.share("cloud.instance.rate", 0.4, 3.0)) as u64;
    let counts = if first.counts == Counts::Bytes { Counts::Bytes } else { Counts::Requests };
    let size = rate / 100;
    let limit = LimitConfig { size, ..LimitConfig::new("instance", Direction::Joint, counts, rate) };
    let others = if draws.chance("cloud.others", 0.5) {
        let request_bytes = draws.any("cloud.others.bytes", &[4096, 16_384, 65_536]);
        let each = if counts == Counts::Bytes { request_bytes } else { 1 };
        let requests_per_s = (rate as f64 * draws.share("cloud.others.share", 0.05, 0.5)) as u64 / each;
        vec![LoadConfig { writes: draws.chance("cloud.others.writes", 0.5), requests_per_s, request_bytes }]
    } else {
        Vec::new()
    };
    InstanceConfig { limits: vec![limit], others, volumes: Vec::new() }
}

fn network(draws: &Draws) -> NetworkConfig {
    let is_remote = draws.chance("cloud.network", 0.7);
    let delay = |name: &str| {
        let key = |what: &str| format!("cloud.network.{name}.{what}");
        let (least, most) = if is_remote { (100_000, 1_000_000) } else { (2_000, 20_000) };
        let fixed_ns = draws.between(&key("fixed"), least, most);
        let median_ns = (fixed_ns as f64 * draws.share(&key("median"), 0.1, 0.6)) as u64;
        let p99_ns = (median_ns as f64 * draws.share(&key("p99"), 2.0, 6.0)) as u64;
        DelayConfig { fixed_ns, median_ns, p99_ns, percentiles: Vec::new() }
    };
    NetworkConfig { read: delay("read"), write: delay("write") }
}

fn medium(draws: &Draws, kind: Kind) -> MediumConfig {
    if kind == Kind::Disk {
        return MediumConfig { disk: Some(disk(draws)), ..MediumConfig::default() };
    }
    let per_s = |name: &str| draws.between(&format!("cloud.medium.{name}"), 800_000_000, 4_000_000_000);
    let plain = PlainConfig {
        read_ns: draws.between("cloud.medium.read", 40_000, 150_000),
        write_ns: draws.between("cloud.medium.write", 10_000, 80_000),
        flush_ns: 0,
        read_bytes_per_s: per_s("read_rate"),
        write_bytes_per_s: per_s("write_rate"),
        parallel: if draws.chance("cloud.medium.parallel", 0.15) { 128 } else { 0 },
    };
    MediumConfig { plain: Some(plain), ..MediumConfig::default() }
}

fn disk(draws: &Draws) -> DiskConfig {
    let rpm = draws.weighted("cloud.disk.rpm", &[(5400, 2), (7200, 4), (10_000, 2), (15_000, 2)]);
    let outer = draws.between("cloud.disk.outer", 90_000_000, 260_000_000);
    // Faster disks are smaller, and their arms too.
    let average_seek_ns = 8_500_000 * 7200 / u64::from(rpm);
    DiskConfig {
        rpm,
        surfaces: draws.any("cloud.disk.surfaces", &[2, 4, 6, 8]),
        zones: draws.any("cloud.disk.zones", &[8, 16, 24]),
        outer_bytes_per_s: outer,
        inner_bytes_per_s: (outer as f64 * draws.share("cloud.disk.inner", 0.45, 0.75)) as u64,
        track_seek_ns: average_seek_ns / 12,
        average_seek_ns,
        full_seek_ns: average_seek_ns * 2,
        write_settle_ns: average_seek_ns / 9,
        command_ns: 30_000,
        interface_bytes_per_s: 600_000_000,
        queue: draws.weighted("cloud.disk.queue", &[(DiskQueue::Shortest, 3), (DiskQueue::Fifo, 1)]),
        queue_depth: 32,
        read_ahead_bytes: 4 << 20,
        write_cache_bytes: if draws.chance("cloud.disk.cache", 0.5) { 32 << 20 } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_seeds_are_possible_volumes_and_have_each_feature() {
        let volumes: Vec<Volume> = (0..200).map(|seed| random_volume(seed).unwrap()).collect();
        let count = |has: &dyn Fn(&VolumeConfig) -> bool| volumes.iter().filter(|volume| has(&volume.config)).count();
        let any = |has: fn(&LimitConfig) -> bool| move |config: &VolumeConfig| config.limits.iter().any(has);
        let counts = [
            count(&|config| config.limits.is_empty() && config.medium.disk.is_none()),
            count(&|config| config.medium.disk.is_some()),
            count(&any(|limit| limit.peak_per_s.is_some())),
            count(&any(|limit| limit.at_limit == AtLimit::Hold)),
            count(&any(|limit| limit.at_limit == AtLimit::Pace)),
            count(&any(|limit| limit.counts == Counts::Cost)),
            count(&any(|limit| limit.unit_bytes > 0)),
            count(&|config| !config.instance.limits.is_empty()),
            count(&|config| !config.instance.others.is_empty()),
        ];
        assert!(counts.iter().all(|&count| count >= 8), "{counts:?}");
    }

    #[test]
    fn a_volume_s_file_is_read_back_as_the_same_volume() {
        for seed in 0..50 {
            let text = random_volume_toml(seed).unwrap();
            assert!(text.starts_with(&format!("# A random volume: flashwise device random --cloud --seed {seed}\n")));
            assert_eq!(Volume::from_toml(&text, "random").unwrap(), random_volume(seed).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_seed_s_volume_never_changes() {
        let volume = random_volume(7).unwrap().config;
        let limit = &volume.limits[0];
        assert_eq!((limit.name.as_str(), limit.rate_per_s, limit.size), ("IOPS", 690, 60_000));
    }
}
