//! Learns what a drive hides, from outside, through a [`BlockDevice`] alone.
//!
//! ```text
//!   probe ──▶ samples ──▶ medians with intervals ──▶ estimate ──▶ the same on resampled data ──▶ verdict
//! ```
//!
//! | figure | probe | estimate |
//! |---|---|---|
//! | write unit | durable writes of growing length, one at a time ([`request_size`]) | end of the first flat stretch of the staircase |
//! | stripe | reads of data written in pieces of growing length ([`request_size`]) | from where on longer pieces read back no faster |
//! | chunk, hot locations | reads of one length, start moved in small steps ([`location`]) | smallest period of the curve, and its minimum |
//! | page | reads of two blocks, start moved block by block ([`location`]) | period of the spikes where two pages are touched |
//! | α, k_r, k_w | random requests, more and more in flight ([`concurrency`]) | plateaus, and where they begin |
//!
//! Points are visited in random order, so that drift cannot look like a trend; medians, never means; every estimate is
//! repeated on resampled data, which gives its interval. A figure whose estimate does not come out the same nearly every
//! time is `inconclusive`. A curve that shows nothing is `absent` if it would have shown something, `inconclusive`
//! otherwise.
//!
//! Nothing here knows whether the drive is simulated, nor how it is built.
//!
//! Source: the request-size and location profiles of Kakaraparthy et al., PVLDB 13(4), 2019; α and k of Papon and
//! Athanassoulis, DaMoN 2021.
//!
//! # Limits
//! Periods up to 256 KiB, of pages up to 32 KiB; write units up to 256 KiB; stripes up to 512 KiB, powers of two;
//! concurrency up to 256. On a drive whose write buffer survives a power cut, durable writes show neither write unit nor
//! stripe, and what was written before can blur the chunk.

pub mod concurrency;
pub mod location;
mod prober;
pub mod request_size;
mod stats;

use flashwise_block::{BlockDevice, BlockError, ByteSize, Clock, Progress};
use flashwise_profile::{
    Curves, DeviceIdentity, DeviceProfile, Parameters, Recipe, SCHEMA, SCHEMA_VERSION, ThroughputCurve,
};

use concurrency::Asymmetry;
use prober::Prober;

/// How to learn.
#[derive(Clone, Debug)]
pub struct LearnOptions {
    /// The target as the user named it; goes into the profile.
    pub target: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Bytes of the device to use, from its start on; at most its capacity, at least [`REGION_BYTES_MIN`].
    pub region: ByteSize,
    /// Stop with an error before more than this is written.
    pub max_write: Option<ByteSize>,
    /// How many samples.
    pub effort: Effort,
}

/// How many samples are taken: intervals narrow with their number, and so does the drive's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Some 13 GiB written and 6 GiB read; for simulated drives.
    Thorough,
    /// Some 2 GiB written and 1.4 GiB read; for real drives.
    Quick,
}

impl Effort {
    /// What suits a clock: virtual time costs nothing, a real drive does.
    pub fn suiting(clock: Clock) -> Self {
        match clock {
            Clock::Virtual => Self::Thorough,
            Clock::Wall => Self::Quick,
        }
    }
}

/// The smallest region that the probes fit in.
pub const REGION_BYTES_MIN: ByteSize = ByteSize::mib(64);

impl LearnOptions {
    /// The usual: a region of 256 MiB, seed 1, no limit on writes, thorough.
    pub fn new(target: impl Into<String>) -> Self {
        Self { target: target.into(), seed: 1, region: ByteSize::mib(256), max_write: None, effort: Effort::Thorough }
    }
}

/// Why a drive could not be learned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// The device failed or refused a request.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// There is not enough room to probe in.
    #[error("{target}: {available} is too small to learn from; the probes need {REGION_BYTES_MIN}")]
    TooSmall {
        /// The target.
        target: String,
        /// Its size.
        available: ByteSize,
    },
    /// The next probe would write more than allowed.
    #[error("stopped before writing more than --max-write {limit}: {written} are written, the next probe needs {next}")]
    WriteLimit {
        /// The limit.
        limit: ByteSize,
        /// Written so far.
        written: ByteSize,
        /// What the next request needs.
        next: ByteSize,
    },
}

/// Learns a drive. Overwrites the region.
///
/// # Errors
/// When the device fails, is too small, the write limit is reached, or `progress` interrupts.
///
/// # Example
/// ```no_run
/// # fn drive() -> Box<dyn flashwise_block::BlockDevice> { unimplemented!() }
/// use flashwise_learn::{LearnOptions, learn};
/// let mut drive = drive();
/// let profile = learn(&mut *drive, &LearnOptions::new("my drive"), &mut flashwise_block::Silent)?;
/// println!("{:?}", profile.parameters.chunk_bytes);
/// # Ok::<(), flashwise_learn::LearnError>(())
/// ```
pub fn learn(
    device: &mut dyn BlockDevice,
    options: &LearnOptions,
    progress: &mut dyn Progress,
) -> Result<DeviceProfile, LearnError> {
    let info = device.info().clone();
    let region = ByteSize(options.region.min(info.capacity).bytes() >> 20 << 20);
    if region < REGION_BYTES_MIN {
        return Err(LearnError::TooSmall { target: options.target.clone(), available: info.capacity });
    }
    let started = device.now();
    let mut prober = Prober::new(device, region, options);
    prober.fill(ByteSize(0), region, progress)?;

    let durable = request_size::probe_durable_writes(&mut prober, progress)?;
    let read_back = request_size::probe_read_back(&mut prober, progress)?;
    prober.fill(ByteSize(0), region, progress)?;
    let location = location::probe_locations(&mut prober, progress)?;
    let page = location::probe_page(&mut prober, progress)?;
    let four = concurrency::probe(&mut prober, ByteSize::kib(4), progress)?;
    let eight = concurrency::probe(&mut prober, ByteSize::kib(8), progress)?;

    let (written, read) = (prober.written(), prober.read_total());
    let ended = device.now();
    Ok(DeviceProfile {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
        device: DeviceIdentity {
            target: options.target.clone(),
            name: info.name,
            capacity_bytes: info.capacity.bytes(),
            logical_block_bytes: info.logical_block.bytes(),
            clock: info.clock,
        },
        recipe: Recipe {
            seed: options.seed,
            region_bytes: region.bytes(),
            bytes_written: written.bytes(),
            bytes_read: read.bytes(),
            device_time_ns: ended.since(started).0,
        },
        parameters: parameters(durable.write_unit, read_back.stripe, &location, page.page, &four, &eight),
        evidence: Vec::new(),
        curves: Curves {
            probes: Vec::new(),
            durable_write: durable.curve,
            read_back: read_back.curve,
            location: location.curves.into_iter().chain([page.curve]).collect(),
            throughput: throughput_curves([four, eight]),
        },
    })
}

fn parameters(
    write_unit: flashwise_profile::Figure<u64>,
    stripe: flashwise_profile::Figure<u64>,
    location: &location::Locations,
    page: flashwise_profile::Figure<u64>,
    four: &Asymmetry,
    eight: &Asymmetry,
) -> Parameters {
    Parameters {
        write_unit_bytes: write_unit,
        stripe_bytes: stripe,
        chunk_bytes: location.chunk,
        page_bytes: page,
        hot_location: location.hot,
        asymmetry_4k: four.alpha,
        read_concurrency_4k: four.read.concurrency,
        write_concurrency_4k: four.write.concurrency,
        asymmetry_8k: eight.alpha,
        read_concurrency_8k: eight.read.concurrency,
        write_concurrency_8k: eight.write.concurrency,
        ..Parameters::default()
    }
}

fn throughput_curves(sizes: [Asymmetry; 2]) -> Vec<ThroughputCurve> {
    sizes.into_iter().flat_map(|size| [size.read.curve, size.write.curve]).collect()
}
