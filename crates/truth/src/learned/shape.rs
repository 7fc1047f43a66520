//! What a drive is built of, from figures: counts and sizes, no times.

use flashwise_profile::{DeviceProfile, Figure, Parameters};

use super::LearnedError;
use flashwise_ssd::config::DeviceConfig;

/// Logical page of every drive that is made here.
const LOGICAL_PAGE: u64 = 4096;
/// Pages of a block where no superblock was learned. Only collection sees it.
const PAGES_PER_BLOCK: u64 = 64;
/// Spare flash where it was not learned: what client drives have, 2^30 against 10^9 bytes, about 7 %, and a little for
/// bad blocks.
const OVER_PROVISIONING: f64 = 0.09;
/// Most channels: as many as controllers of client and server drives have.
const CHANNELS_MAX: u64 = 8;
/// Dies where neither parallel units nor k_r are known.
const DIES: u64 = 16;
/// Most dies, more than any drive of the published tables has.
const DIES_MAX: u64 = 1024;
/// Longest request.
const TRANSFER_MAX: u64 = 2 << 20;
/// Superblocks of each unit that collection keeps free.
const FREE_SUPERBLOCKS: u64 = 4;

/// Which of the three shapes, with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) in_place: bool,
    pub(super) unit: u64,
    page: u64,
    planes: u64,
    together_channels: u64,
    together_ways: u64,
    channels: u64,
    ways: u64,
    stripe: u64,
    transfer_unit: u64,
}

impl Shape {
    pub(super) fn of(profile: &DeviceProfile) -> Result<Self, LearnedError> {
        let p = &profile.parameters;
        let is_protected = p.power_loss_protected.known() == Some(true);
        let unit = match (p.write_unit_bytes.known(), is_protected) {
            (Some(unit), _) => unit,
            // A protected buffer hides the unit, and with it that it matters.
            (None, true) => LOGICAL_PAGE,
            (None, false) => return Err(LearnedError::Open("the write unit")),
        };
        if unit == 0 || unit > 64 << 20 {
            return Err(LearnedError::Open("a write unit between 1 byte and 64 MiB"));
        }
        let chunk = p.chunk_bytes.known().unwrap_or(unit).clamp(LOGICAL_PAGE, 64 << 20).next_power_of_two();
        let dies = dies(p);
        let transfer_unit = p.page_bytes.known().unwrap_or(512).next_power_of_two().clamp(512, LOGICAL_PAGE);
        if is_protected && p.stripe_bytes.known().is_none() && unit <= LOGICAL_PAGE {
            return Ok(Self::in_place(unit, dies, transfer_unit));
        }
        let unit = unit.next_power_of_two().max(LOGICAL_PAGE);
        let shape = if chunk >= unit { Self::alone(unit, chunk, dies) } else { Self::together(unit, chunk, dies, p) };
        Ok(Self { transfer_unit, ..shape })
    }

    fn in_place(unit: u64, dies: u64, transfer_unit: u64) -> Self {
        let channels = dies.min(CHANNELS_MAX);
        Self {
            in_place: true,
            unit: unit.next_power_of_two().clamp(512, LOGICAL_PAGE),
            page: LOGICAL_PAGE,
            planes: 1,
            together_channels: 1,
            together_ways: 1,
            channels,
            ways: dies.div_ceil(channels),
            stripe: LOGICAL_PAGE,
            transfer_unit,
        }
    }

    /// A die programs by itself; a piece of a chunk is on one channel.
    fn alone(unit: u64, chunk: u64, dies: u64) -> Self {
        let planes = if unit >= 4 * LOGICAL_PAGE { 2 } else { 1 };
        // A chunk is cut over the dies of one channel, which must be enough to hold it at once.
        let ways = (chunk / unit).max(dies.div_ceil(CHANNELS_MAX)).next_power_of_two();
        let channels = (dies / ways).max(1).next_power_of_two();
        Self {
            in_place: false,
            unit,
            page: unit / planes,
            planes,
            together_channels: 1,
            together_ways: 1,
            channels,
            ways,
            stripe: chunk,
            transfer_unit: 512,
        }
    }

    /// All dies of a unit program together.
    fn together(unit: u64, chunk: u64, dies: u64, p: &Parameters) -> Self {
        let pages = unit / chunk;
        let channels = pages.min(CHANNELS_MAX);
        let together_ways = pages / channels;
        let ways = (dies / channels).max(together_ways).next_power_of_two();
        let stripe = p.stripe_bytes.known().unwrap_or(unit).clamp(unit, 64 << 20).next_power_of_two();
        Self {
            in_place: false,
            unit,
            page: chunk,
            planes: 1,
            together_channels: channels,
            together_ways,
            channels,
            ways,
            stripe,
            transfer_unit: 512,
        }
    }

    fn units(&self) -> u64 {
        (self.channels / self.together_channels) * (self.ways / self.together_ways)
    }

    /// Bytes of the drive on which times are calibrated.
    pub(super) fn smallest_capacity(&self) -> u64 {
        (self.units() * self.unit * PAGES_PER_BLOCK * 8).clamp(64 << 20, 4 << 30)
    }

    /// The drive with the times that go by their own names in the profile, and stand-ins for the others.
    pub(super) fn config(&self, profile: &DeviceProfile, capacity: u64) -> Result<DeviceConfig, LearnedError> {
        let capacity = capacity.div_ceil(LOGICAL_PAGE) * LOGICAL_PAGE;
        let mut config = DeviceConfig::from_toml(&self.toml(profile, capacity), "the drive of the profile")?;
        config.name.clone_from(&profile.device.name);
        Ok(config)
    }

    fn toml(&self, profile: &DeviceProfile, capacity: u64) -> String {
        let p = &profile.parameters;
        let spare = p.over_provisioning.known().filter(|share| (0.01..4.0).contains(share));
        let row = self.units() * self.unit * PAGES_PER_BLOCK;
        let raw = (capacity as f64 * (1.0 + spare.unwrap_or(OVER_PROVISIONING))) as u64;
        let (blocks, mapping) = match self.in_place {
            true => {
                let block = self.channels * self.ways * self.page * PAGES_PER_BLOCK;
                (capacity.div_ceil(block), "in-place")
            }
            false => (raw.div_ceil(row).max(capacity.div_ceil(row) + 2) + FREE_SUPERBLOCKS + 2, "page"),
        };
        let Self { page, planes, together_channels, together_ways, channels, ways, stripe, transfer_unit, .. } = self;
        let granule = if self.in_place { self.unit } else { LOGICAL_PAGE };
        let is_protected = p.power_loss_protected.known() == Some(true);
        let least = TRANSFER_MAX + 2 * self.units() * self.unit;
        let buffer = match self.in_place {
            true => 0,
            false => p.write_buffer_bytes.known().unwrap_or(0).clamp(least, 1 << 30),
        };
        format!(
            "name = \"\"\ncapacity_bytes = {capacity}\n\
             [host]\ninterface = \"nvme\"\nqueue_depth = 1024\nlink_bytes_per_s = 3200000000\n\
             command_latency_ns = 10000\ncommand_issue_ns = 2000\nlogical_block_bytes = 512\n\
             max_transfer_bytes = {TRANSFER_MAX}\n\
             [controller]\nwrite_buffer_bytes = {buffer}\npower_loss_protection = {is_protected}\ndispatch_ns = 500\n\
             [ftl]\nmapping = \"{mapping}\"\nstripe_bytes = {stripe}\n\
             superpage_channels = {together_channels}\nsuperpage_ways = {together_ways}\n\
             [ftl.gc]\npolicy = \"greedy\"\nfree_superblocks = {FREE_SUPERBLOCKS}\n\
             [flash]\nchannels = {channels}\nchips_per_channel = 1\ndies_per_chip = {ways}\nplanes_per_die = {planes}\n\
             blocks_per_plane = {blocks}\npages_per_block = {PAGES_PER_BLOCK}\npage_bytes = {page}\n\
             transfer_unit_bytes = {transfer_unit}\nwrite_granule_bytes = {granule}\n\
             channel_bytes_per_s = 800000000\nread_ns = 50000\nprogram_ns = 500000\nerase_ns = 4000000\n\
             array_time_jitter = 0.0\n"
        )
    }
}

/// How many places work side by side.
fn dies(p: &Parameters) -> u64 {
    let known = |figure: &Figure<u64>| figure.known().filter(|&count| count > 0);
    let dies = known(&p.parallel_units).or_else(|| known(&p.read_concurrency_4k)).unwrap_or(DIES);
    dies.min(DIES_MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use flashwise_block::{Clock, Operation};
    use flashwise_profile::{
        Curves, DeviceIdentity, DurableWritePoint, HotLocation, LocationCurve, MedianNs, Recipe, SCHEMA,
        SCHEMA_VERSION, ThroughputCurve, ThroughputPoint,
    };

    use super::*;

    const KIB: u64 = 1024;

    fn exactly<T: Copy>(value: T) -> Figure<T> {
        Figure::certain(value, value, value)
    }

    fn median(ns: u64) -> MedianNs {
        MedianNs { median: ns, low: ns, high: ns }
    }

    fn profile(
        parameters: Parameters,
        reads: &[(u64, u64)],
        durable: &[(u64, u64)],
        iops: (f64, f64),
    ) -> DeviceProfile {
        let location = |&(read_bytes, ns): &(u64, u64)| LocationCurve {
            read_bytes,
            step_bytes: 4 * KIB,
            latency_ns: vec![median(ns); 64],
        };
        let throughput = |operation, iops| ThroughputCurve {
            operation,
            request_bytes: 4 * KIB,
            points: vec![ThroughputPoint { in_flight: 1, iops, low: iops, high: iops }],
        };
        let device = DeviceIdentity {
            target: "sim:test".to_owned(),
            name: "test".to_owned(),
            capacity_bytes: 1 << 30,
            logical_block_bytes: 512,
            clock: Clock::Virtual,
            promised_atomic_write_bytes: None,
        };
        let recipe =
            Recipe { seed: 0, region_bytes: 0, bytes_written: 0, bytes_read: 0, device_time_ns: 0, probes: Vec::new() };
        let durable =
            durable.iter().map(|&(write_bytes, ns)| DurableWritePoint { write_bytes, latency_ns: median(ns) });
        DeviceProfile {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            flashwise_version: "0.1.0".to_owned(),
            device,
            recipe,
            parameters,
            limits: Default::default(),
            card: Default::default(),
            wear: Default::default(),
            at_sizes: Vec::new(),
            evidence: Vec::new(),
            curves: Curves {
                durable_write: durable.collect(),
                location: reads.iter().map(location).collect(),
                throughput: vec![throughput(Operation::Read, iops.0), throughput(Operation::Write, iops.1)],
                ..Curves::default()
            },
        }
    }

    /// What `learn` says of the preset, rounded.
    pub(in crate::learned) fn samsung() -> DeviceProfile {
        let parameters = Parameters {
            write_unit_bytes: exactly(32 * KIB),
            stripe_bytes: exactly(64 * KIB),
            chunk_bytes: exactly(64 * KIB),
            hot_location: exactly(HotLocation { period_bytes: 64 * KIB, offset_bytes: 32 * KIB }),
            page_bytes: Figure::absent(),
            parallel_units: exactly(16),
            write_buffer_bytes: exactly(4 << 20),
            power_loss_protected: exactly(false),
            ..Parameters::default()
        };
        let reads = [(4 * KIB, 68_400), (16 * KIB, 99_100), (32 * KIB, 140_200)];
        profile(parameters, &reads, &[(32 * KIB, 764_000), (256 * KIB, 931_000)], (14_592.0, 75_301.0))
    }

    pub(in crate::learned) fn toshiba() -> DeviceProfile {
        let parameters = Parameters {
            write_unit_bytes: exactly(64 * KIB),
            stripe_bytes: exactly(64 * KIB),
            chunk_bytes: exactly(4 * KIB),
            hot_location: exactly(HotLocation { period_bytes: 4 * KIB, offset_bytes: 0 }),
            page_bytes: exactly(4 * KIB),
            parallel_units: exactly(64),
            write_buffer_bytes: exactly(4 << 20),
            power_loss_protected: exactly(false),
            ..Parameters::default()
        };
        let reads = [(4 * KIB, 85_400), (64 * KIB, 102_200), (128 * KIB, 122_800)];
        profile(parameters, &reads, &[(64 * KIB, 304_900), (256 * KIB, 438_900)], (11_660.0, 64_445.0))
    }

    pub(in crate::learned) fn optane() -> DeviceProfile {
        let parameters = Parameters {
            write_unit_bytes: exactly(KIB),
            stripe_bytes: Figure::absent(),
            chunk_bytes: exactly(4 * KIB),
            hot_location: exactly(HotLocation { period_bytes: 4 * KIB, offset_bytes: 0 }),
            page_bytes: exactly(4 * KIB),
            parallel_units: exactly(7),
            power_loss_protected: exactly(true),
            ..Parameters::default()
        };
        let reads = [(4 * KIB, 10_690), (64 * KIB, 29_200), (128 * KIB, 54_400)];
        profile(parameters, &reads, &[(KIB, 6_187), (4 * KIB, 15_662), (256 * KIB, 161_000)], (93_500.0, 63_715.0))
    }

    #[test]
    fn the_three_shapes_are_told_apart_by_figures() {
        let shapes = [samsung(), toshiba(), optane()].map(|profile| Shape::of(&profile).unwrap());
        assert_eq!(shapes.map(|s| s.in_place), [false, false, true]);
        assert_eq!(shapes.map(|s| (s.together_channels * s.together_ways, s.planes)), [(1, 2), (16, 1), (1, 1)]);
        assert_eq!(shapes.map(|s| s.channels * s.ways), [16, 64, 7]);
    }
}
