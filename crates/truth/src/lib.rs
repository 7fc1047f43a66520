//! The true hidden parameters of a simulated drive, from its configuration, with which learned profiles are compared.
//! Also the reverse, a drive made from a profile ([`learned`]), and randomly generated drives ([`random`]).
//!
//! ```text
//!   DeviceConfig ─┬─ read off the configuration and the map ─▶ layout, parallelism, buffers
//!                 └─ measured on a white box ────────────────▶ throughput, reclaiming
//! ```
//!
//! Each figure is a value (with itself as both ends), absent, or unknown if its definition does not apply to the drive;
//! [`Truth::reasons`] then has the reason. The doc comments of [`Parameters`](flashwise_profile::Parameters) define the
//! figures; the choices that they leave open are made in the file of each group:
//!
//! | file | figures |
//! |---|---|
//! | [`layout`] | write unit, stripe, chunk, page, hot locations |
//! | [`parallelism`] | parallel units, internal volumes and their bits, superblock |
//! | [`buffers`] | write buffer, caches, power-loss protection, times of flushes and durable writes |
//! | [`throughput`] | α and concurrency at 4 and 8 KiB, fresh and during GC, by throughput and by latency |
//! | [`reclaiming`] | over-provisioning, GC onset and cost, write amplification, sustained writes, trim |
//! | [`slc_cache`] | SLC cache |
//! | [`content`] | gain from compression and deduplication |
//!
//! Measurements use the configuration: states are set up directly or written until the counters are steady, and loops
//! are as long as needed for an error below 2 %. Requests carry no data, which a drive with data reduction treats as
//! incompressible; those of [`content`] do carry data. Figures during garbage collection are measured from two
//! histories, and are true if both agree within a twentieth.
//!
//! **Cost.** Some seconds for a drive of 1 to 2 GiB, proportional to the capacity; drives of more than 10 GiB, and
//! those of more than 1 GiB with a cached map, are simulated with fewer blocks ([`scale`]).
//!
//! **Limits.** Page mapping and media written in place. For block-mapping FTLs, elements, and thin-provisioned drives,
//! all figures are unknown.
//!
//! # Example
//! ```
//! use flashwise_ssd::DeviceConfig;
//!
//! let config = DeviceConfig::preset("samsung-960-evo")?;
//! let drive = flashwise_truth::random::random_device(1)?;
//! assert_ne!(config.capacity_bytes, drive.capacity_bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod bench;
mod buffers;
mod card;
mod content;
mod layout;
pub mod learned;
mod limits;
mod parallelism;
pub mod random;
mod reclaiming;
mod scale;
mod slc_cache;
mod throughput;

pub use card::card;
pub use limits::limits;

use std::collections::BTreeMap;

use flashwise_profile::{Figure, Parameters};

use flashwise_sim::SimulationError;
use flashwise_ssd::DeviceConfig;
use flashwise_ssd::config::Mapping;

/// What is true of a drive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// The figures; certain, absent or unknown.
    pub parameters: Parameters,
    /// For each unknown figure, by its key, why it has no truth.
    pub reasons: BTreeMap<&'static str, String>,
}

/// Why figures have no truth.
#[derive(Default)]
struct Reasons(BTreeMap<&'static str, String>);

impl Reasons {
    fn unknown<T: Copy>(&mut self, key: &'static str, why: &str) -> Figure<T> {
        self.0.insert(key, why.to_owned());
        Figure::unknown()
    }
}

/// A value that is known without error.
fn exactly<T: Copy>(value: T) -> Figure<T> {
    Figure::certain(value, value, value)
}

/// Everything that is true of a drive; takes seconds.
///
/// # Errors
/// When the configuration is impossible or the simulation fails.
pub fn truth(config: &DeviceConfig) -> Result<Truth, SimulationError> {
    config.check(&config.name)?;
    if let Some(why) = not_covered(config) {
        return Ok(nothing(why));
    }
    let (small, factor) = scale::scaled(config);
    let (mut parameters, mut reasons) = structure_of(config, &small)?;
    let of_region = scale::for_region(config);
    buffers::measure(&of_region, &mut parameters, &mut reasons)?;
    let fresh = throughput::fresh(&of_region, &mut parameters, &mut reasons)?;
    let untold = (factor != 1.0 && config.ftl.mapping_cache.is_some()).then_some(MAP_DECIDES);
    let overwritten = reclaiming::fill_in(&small, config, fresh, untold, &mut parameters, &mut reasons)?;
    throughput::collecting(&small, overwritten, &mut parameters, &mut reasons)?;
    slc_cache::measure(config, &mut parameters, &mut reasons)?;
    content::measure(&of_region, &mut parameters, &mut reasons)?;
    if config.ftl.slc_cache.is_some() {
        forget_what_the_cache_decides(&mut parameters, &mut reasons);
    }
    Ok(Truth { parameters, reasons: reasons.0 })
}

/// On a smaller drive with a smaller cache as many requests miss it, but the pages of its map are on other units and
/// are rewritten at another rate, so that what collection costs there says nothing of the large one.
const MAP_DECIDES: &str = "this drive caches its map, and is too large to simulate as a whole";

/// How fast small writes are on a drive with an SLC cache, and what they leave behind, depends on how much of it they
/// find empty, and so on all that was done before; and its superblocks hold less than others.
fn forget_what_the_cache_decides(p: &mut Parameters, reasons: &mut Reasons) {
    const WHY: &str = "it depends on the content of the SLC cache";
    p.stripe_bytes = reasons.unknown("stripe_bytes", WHY);
    p.hot_location_survives_writes = reasons.unknown("hot_location_survives_writes", WHY);
    p.asymmetry_4k = reasons.unknown("asymmetry_4k", WHY);
    p.write_concurrency_4k = reasons.unknown("write_concurrency_4k", WHY);
    p.asymmetry_8k = reasons.unknown("asymmetry_8k", WHY);
    p.write_concurrency_8k = reasons.unknown("write_concurrency_8k", WHY);
    p.latency_asymmetry_4k = reasons.unknown("latency_asymmetry_4k", WHY);
    p.latency_asymmetry_8k = reasons.unknown("latency_asymmetry_8k", WHY);
    p.asymmetry_4k_collecting = reasons.unknown("asymmetry_4k_collecting", WHY);
    p.asymmetry_8k_collecting = reasons.unknown("asymmetry_8k_collecting", WHY);
    p.latency_asymmetry_4k_collecting = reasons.unknown("latency_asymmetry_4k_collecting", WHY);
    p.latency_asymmetry_8k_collecting = reasons.unknown("latency_asymmetry_8k_collecting", WHY);
    p.flush_ns = reasons.unknown("flush_ns", WHY);
    p.durable_write_ns = reasons.unknown("durable_write_ns", WHY);
    p.superblock_bytes = reasons.unknown("superblock_bytes", WHY);
    p.collection_cost = reasons.unknown("collection_cost", WHY);
}

/// The part of the truth that follows from how the drive is built; takes some tens of milliseconds. The other figures
/// are unknown, without a reason.
///
/// # Errors
/// As [`truth`].
pub fn structure(config: &DeviceConfig) -> Result<Truth, SimulationError> {
    config.check(&config.name)?;
    if let Some(why) = not_covered(config) {
        return Ok(nothing(why));
    }
    let (parameters, reasons) = structure_of(config, &scale::scaled(config).0)?;
    Ok(Truth { parameters, reasons: reasons.0 })
}

fn structure_of(config: &DeviceConfig, small: &DeviceConfig) -> Result<(Parameters, Reasons), SimulationError> {
    let (mut parameters, mut reasons) = (Parameters::default(), Reasons::default());
    layout::fill_in(small, &mut parameters, &mut reasons)?;
    parallelism::fill_in(config, &mut parameters, &mut reasons);
    buffers::fill_in(config, &mut parameters);
    reclaiming::read_off(config, &mut parameters);
    slc_cache::read_off(config, &mut parameters);
    content::read_off(config, &mut parameters);
    Ok((parameters, reasons))
}

/// Why nothing is known of a drive; `None` where something is.
fn not_covered(config: &DeviceConfig) -> Option<&'static str> {
    if !matches!(config.ftl.mapping, Mapping::Page | Mapping::InPlace) {
        return Some("true values are known only for page mapping and media written in place");
    }
    (config.physical_bytes() < config.capacity_bytes)
        .then_some("the drive is thin-provisioned, and no figure describes it when its flash is full")
}

fn nothing(why: &str) -> Truth {
    let parameters = Parameters::default();
    let reasons = parameters.entries().iter().map(|entry| (entry.key, why.to_owned())).collect();
    Truth { parameters, reasons }
}

/// Whether a median over pages is no figure: page types of different times come in equal shares, and their number is
/// even.
fn has_two_medians(config: &DeviceConfig, times_ns: &[u64]) -> bool {
    config.ftl.mapping == Mapping::Page && !times_ns.is_empty() && times_ns.len().is_multiple_of(2)
}

/// Why there is none then.
const TWO_MEDIANS: &str = "page types take different times, and the median is between two of them";

/// Whether two speeds are the same for whoever scores a learner.
fn is_near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() <= NEAR
}

const NEAR: f64 = 0.05;

/// What a drive does that came to it from two pasts: in between, where they are near each other.
fn of_both(a: f64, b: f64) -> Option<f64> {
    is_near(a, b).then(|| 2.0 / (1.0 / a + 1.0 / b))
}

/// Why there is no truth where they are not.
const DEPENDS_ON_PAST: &str = "earlier writes decide which units collect at the same time, and so the speed";
