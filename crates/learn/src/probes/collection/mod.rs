//! Garbage collection: when it sets in, what it costs, and what it works on.
//!
//! ```text
//!   trim ▶ fill in order ▶ random overwrites … onset … steady ▶ 80/20 … steady ▶ trim half … steady ▶ passes in order
//!          SLC cache,       onset       cost, WA, α while      WA, skewed         gain by trim        superblock,
//!          sustained speed              collecting                                                   over-provisioning
//! ```
//!
//! The whole drive is written several times over, so this is for drives that are small, simulated, or bought for it;
//! what a write budget does not allow is not started.
//!
//! - **Cache of the SLC cache**: `slc_cache.rs`. **Onset and room**: `onset.rs` and `superblock.rs`.
//! - **Steady state.** Rounds of an eighth of what is written to, shorter where a drive programs as much as that is in
//!   less, until their later half has no trend and a known mean ([`steady`](crate::stats::steady)).
//!
//! Source: the protocol (fill, overwrite several times, WA from physical bytes) is SSD-iq's, PVLDB 18(11), 2025; the
//! steady state SNIA's; PELT Killick et al. 2012.

pub(crate) mod cliff;
pub(crate) mod onset;
mod overwrites;
mod passes;
mod slc_cache;
mod speed;
mod superblock;
mod trims;

use flashwise_block::{ByteSize, Progress};
use flashwise_profile::{ProbeCurve, ProbePoint};

use crate::LearnError;
use crate::draft::{ProfileDraft, key};
use crate::prober::{Prober, anywhere};
use crate::step::Step;

use super::buffer::WriteBuffer;
use super::latency::{self, Durability};
use super::small_writes::Padding;
use super::throughput::FreshWrites;
use super::units::Units;
use super::windows::{Mark, Window};
use onset::{Onset, keep_overwrites};
use overwrites::{
    A_PASS_ROUNDS, A_ROUND_WINDOWS, BLOCK, HOPELESS, Load, ONSET_WINDOWS, OVERWRITES, PROGRAMMED_MAX, ROUNDS_MIN,
    SKEWED, TURNOVERS_MAX, UNIFORM, eighty_twenty, report_amplification, until_steady,
};
pub(crate) use passes::trim_all;
use passes::{Pass, in_order, pass_in_order};
use slc_cache::SlcCache;

/// Windows of the fill.
const FILL_WINDOWS: u64 = 200;
/// Overwrites that all of this takes at most, for asking whether the budget allows it.
pub(crate) const PASSES: u64 = 11;
/// What is written at most without being asked to, on drives of this kind.
pub(crate) const UNASKED: ByteSize = ByteSize::gib(100);

const FIGURES: [&str; 13] = [
    "over_provisioning",
    "collection_onset_bytes",
    "collection_cost",
    "write_amplification_uniform",
    "write_amplification_skewed",
    "asymmetry_4k_collecting",
    "asymmetry_8k_collecting",
    "latency_asymmetry_4k_collecting",
    "latency_asymmetry_8k_collecting",
    "superblock_bytes",
    "slc_cache_bytes",
    "sustained_write_bytes_per_s",
    "trim_gain",
];

pub(crate) const COLLECTION: Step = Step { overwrites: PASSES, ..Step::new("collection", &FIGURES) };

/// Why the whole drive cannot be written `passes` times; `None` where it can.
pub(crate) fn obstacle(prober: &Prober<'_>, whole_drive: bool, asked: Option<ByteSize>, passes: u64) -> Option<String> {
    if !whole_drive {
        return Some(
            "the target is a file, not a whole drive: other data on the drive affects garbage collection".to_owned(),
        );
    }
    let needed = prober.capacity() * passes;
    let limit = asked.unwrap_or(prober.written() + UNASKED);
    (prober.written() + needed > limit)
        .then(|| format!("needs up to {needed} of writes ({passes} times the capacity); the limit is {limit}"))
}

/// What earlier probes have shown of the drive before its whole was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreshDrive {
    pub(crate) buffer: WriteBuffer,
    pub(crate) padding: Padding,
    pub(crate) writes: FreshWrites,
    pub(crate) units: Units,
    pub(crate) durability: Durability,
}

impl FreshDrive {
    fn for_superblock(self) -> superblock::Fresh {
        superblock::Fresh { buffer: self.buffer, padding: self.padding, units: self.units }
    }
}

/// Measures everything that needs the whole drive.
pub(crate) fn probe(
    prober: &mut Prober<'_>,
    fresh: FreshDrive,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<(), LearnError> {
    let began = Mark::now(prober);
    let cache = fill(prober, fresh.buffer, draft, progress)?;
    let capacity = prober.capacity();
    let wears = PROGRAMMED_MAX.max(capacity * TURNOVERS_MAX);
    let left = ByteSize(wears.bytes().saturating_sub(began.programmed(prober).bytes())).max(capacity);
    let mut everywhere = anywhere(capacity, BLOCK);
    let of = Load { bytes: capacity, windows: ONSET_WINDOWS, rounds_min: ROUNDS_MIN.0, wears: left };
    let uniform = until_steady(prober, of, OVERWRITES, &mut everywhere, progress)?;
    let (wears, hopeless) = if uniform.is_given_up { (left, HOPELESS) } else { (wears, 1) };
    let wears = ByteSize(wears.bytes() / hopeless);
    let pass_wears = ByteSize(capacity.bytes() * TURNOVERS_MAX / hopeless);
    let onset = Onset::read_off(capacity, &uniform, fresh.buffer, draft);
    report_amplification(key!(write_amplification_uniform), &uniform, UNIFORM, draft);
    let onset = speed::probe(prober, (fresh.buffer, fresh.writes), (&uniform, onset), draft, progress)?;
    let mut place = eighty_twenty(capacity);
    let windows = A_PASS_ROUNDS * A_ROUND_WINDOWS;
    let of = Load { bytes: capacity, windows, rounds_min: ROUNDS_MIN.1, wears };
    let skewed = until_steady(prober, of, "80/20 overwrites", &mut place, progress)?;
    report_amplification(key!(write_amplification_skewed), &skewed, SKEWED, draft);
    trims::probe(prober, &uniform, wears, draft, progress)?;
    let onset = superblock::probe(prober, (fresh.for_superblock(), onset), pass_wears, draft, progress)?;
    cache.doubt_what_it_hides(onset, draft);
    latency::probe_durability_everywhere(prober, fresh.durability, draft, progress)
}

/// One pass in order over the trimmed drive, which had time to empty its cache of the SLC cache. Where that shows one,
/// a second pass that rests when half of it is full.
fn fill(
    prober: &mut Prober<'_>,
    buffer: WriteBuffer,
    draft: &mut ProfileDraft,
    progress: &mut dyn Progress,
) -> Result<SlcCache, LearnError> {
    const NAME: &str = "fill in order";
    trim_all(prober)?;
    prober.come_to_rest()?;
    let windows = pass_in_order(prober, FILL_WINDOWS, "filling the drive", progress, &mut |_| true)?;
    let mib = |window: &Window| window.rate * prober.longest().bytes() as f64 / f64::from(1 << 20);
    let mut at = 0;
    let points = windows.iter().map(|window| {
        at += window.bytes;
        let y = mib(window);
        ProbePoint { x: at as f64 / f64::from(1 << 30), y, low: y, high: y }
    });
    draft.keep(ProbeCurve {
        name: NAME.to_owned(),
        x: "written, GiB".to_owned(),
        y: "MiB/s".to_owned(),
        points: points.collect(),
        fit: Vec::new(),
    });
    let first = SlcCache::read_off((&windows, prober.longest()), buffer, NAME, draft);
    let Some(cache) = first.bytes.known() else { return Ok(first) };
    trim_all(prober)?;
    prober.come_to_rest()?;
    let half = ByteSize(cache / 2) / prober.longest();
    let pass = Pass { stage: "filling the drive again", ..Pass::whole(prober, FILL_WINDOWS, "") };
    in_order(prober, Pass { writes: 0..half, ..pass.clone() }, progress, &mut |_| true)?;
    prober.come_to_rest()?;
    let windows = in_order(prober, Pass { writes: half..pass.writes.end, ..pass }, progress, &mut |_| true)?;
    Ok(first.read_off_again((&windows, prober.longest()), buffer, NAME, draft))
}

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;
    use flashwise_profile::{Figure, Verdict};
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    use super::*;
    use crate::LearnOptions;
    use crate::evidence::Evidence;

    /// A drive of 200 MiB.
    pub(super) fn small() -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.channels, config.flash.chips_per_channel, config.flash.dies_per_chip) = (4, 1, 1);
        (config.flash.blocks_per_plane, config.flash.pages_per_block) = (32, 64);
        config.ftl.gc.free_superblocks = Some(3);
        config.capacity_bytes = 200 << 20;
        config
    }

    #[test]
    fn a_pass_in_order_that_programs_too_much_ends_and_is_the_last() {
        let config = small();
        let capacity = ByteSize(config.capacity_bytes);
        let passes = |wears: ByteSize| {
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            let options = LearnOptions { region: capacity, ..LearnOptions::complete("small") };
            let mut prober = Prober::new(&mut drive, capacity, &options);
            let mut draft = ProfileDraft::default();
            let fresh = FreshDrive {
                buffer: WriteBuffer(Figure::unknown()),
                padding: Padding(None),
                writes: FreshWrites::recorded(&draft),
                units: Units::recorded(&draft),
                durability: Durability::recorded(&draft),
            };
            let onset = Onset::recorded(&draft);
            superblock::probe(&mut prober, (fresh.for_superblock(), onset), wears, &mut draft, &mut Silent).unwrap();
            (prober.counters().host_bytes_written, draft.figures.parameters.sustained_write_bytes_per_s)
        };
        let (whole, certain) = passes(capacity * 2);
        assert!(whole > ByteSize(capacity.bytes() / 10 * 29), "{whole} of three times {capacity}");
        assert_eq!(certain.verdict, Verdict::Certain);
        // Less than one of the sixteen windows of a pass is done then, and 32 writes are in flight.
        let (cut, open) = passes(ByteSize(capacity.bytes() / 40));
        assert!(cut < ByteSize(capacity.bytes() / 4), "{cut} of {capacity}");
        assert_eq!(open.verdict, Verdict::Inconclusive);
        let (told, expected) = (open.value.unwrap() as f64, certain.value.unwrap() as f64);
        assert!(told > expected / 4.0 && told < expected * 4.0, "{told} bytes a second and not {expected}");
    }
}
