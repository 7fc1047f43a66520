//! What a run tells of wear: its steady part, and how fast each superblock wears.
//!
//! Where the drive has a limit, its counters and the P/E cycles of its superblocks are noted whenever the host has
//! written [`STEP`] times as much as at the note before; the last [`KEPT`] notes stay. At the end, the note nearest to
//! half of what was written divides the run:
//!
//! ```text
//!   start ───────────────── first half ─────────────────┬──────────── steady part ────────────▶ end
//!   which superblocks wear most: bins of equal size     │  how fast each bin wears: its rates
//!                                                       │  write amplification; that of its halves must agree
//! ```
//!
//! Superblocks are put into bins by what they went through in the first part, and the rate of a bin is what it went
//! through in the second. So the blocks that were ahead by chance alone show the rate that they really have, and what
//! is left of differences inside a bin is chance, φ. The pages of a medium that is written in place are too many to
//! note; their writes are taken as independent (φ = 1, Poisson), and pages whose counts differ no more than that as
//! equals.
//!
//! **Steady** is a run in which write amplification over the two halves of the second part differs by less than
//! [`STEADY`], and in whose second part the mean superblock was erased at least [`ERASES_MIN`] times.

use std::collections::BTreeMap;

use flashwise_block::{BlockDevice, DeviceCounters};

use super::projection::{Evenness, Mortality, WornUnit, evenness};
use super::{DataReduction, Life, LifeFactors, Projection};
use crate::{WriteCauses, write_causes};
use flashwise_ssd::config::{DeviceConfig, Mapping, StaticWearLevelling};
use flashwise_ssd::reduction::ReductionCounters;
use flashwise_ssd::{BlockWear, SimulatedSsd, SlcCacheCounters};

/// The host has written so many times as much between two notes: 2^¼.
const STEP: f64 = 1.189_207_115_002_721;
/// Notes that are kept: they reach back to a quarter of what was written.
const KEPT: usize = 9;
/// Write amplification of the two halves of the steady part differs by less than this share.
const STEADY: f64 = 0.05;
/// P/E cycles of the mean superblock in the steady part, at least.
const ERASES_MIN: f64 = 2.0;
/// Counts of pages are taken as those of equals while their variance is at most so many times their mean.
const VARIANCE_MAX: f64 = 1.2;
/// Bins of superblocks by wear.
const BINS: usize = 16;
const NS_PER_YEAR: f64 = 365.0 * 86_400.0 * 1e9;

/// What was known at some moment.
#[derive(Clone)]
struct Note {
    at_ns: u64,
    counters: DeviceCounters,
    reduction: ReductionCounters,
    slc_cache: SlcCacheCounters,
    /// Writes to all pages of a medium that is written in place.
    page_writes: u64,
    /// What every superblock has gone through, in P/E cycles; empty for media without.
    cycles: Vec<f64>,
}

impl Note {
    fn of(drive: &SimulatedSsd) -> Self {
        let wear = drive.in_place_wear();
        let cycles_of = |blocks: Vec<BlockWear>| blocks.iter().map(|block| block.cycles).collect();
        let cycles = if wear.is_none() { cycles_of(drive.block_wear()) } else { Vec::new() };
        let (at_ns, counters) = (drive.now().0, drive.counters());
        let reduction = drive.reduction_counters().unwrap_or_default();
        let slc_cache = drive.slc_cache_counters().unwrap_or_default();
        Self { at_ns, counters, reduction, slc_cache, page_writes: wear.map_or(0, |wear| wear.writes()), cycles }
    }

    fn host_bytes(&self) -> u64 {
        self.counters.host_bytes_written.0
    }
}

/// The notes of a run.
pub(crate) struct History {
    start: Note,
    notes: Vec<Note>,
    /// The next note is due when the host has written so much.
    due_bytes: u64,
    /// Superblocks that were in use at the start, those left out that are only ever written in SLC mode: when they are
    /// worn out, the cache is gone, and not the drive.
    is_used: Vec<bool>,
}

impl History {
    /// Of a run that starts now; `None` on a drive without a limit.
    pub(crate) fn of(drive: &SimulatedSsd) -> Option<Self> {
        limit_of(drive.config())?;
        if drive.config().ftl.mapping == Mapping::Element {
            return None;
        }
        let start = Note::of(drive);
        let is_used = drive.block_wear().iter().map(|block| !block.is_bad && !block.is_slc).collect();
        let config = drive.config();
        // One page that is written may wear a block, and life passes so much faster than the host writes.
        let worn_at_once = if maps_blocks(config) { u64::from(config.flash.pages_per_block) } else { 1 };
        let due_bytes = start.host_bytes() + config.capacity_bytes / 64 / worn_at_once;
        Some(Self { start, notes: Vec::new(), due_bytes, is_used })
    }

    /// Notes the drive's state, if that is due.
    pub(crate) fn advance(&mut self, drive: &SimulatedSsd) {
        let (written, before) = (drive.counters().host_bytes_written.0, self.start.host_bytes());
        if written < self.due_bytes {
            return;
        }
        if self.notes.len() == KEPT {
            self.notes.remove(0);
        }
        self.notes.push(Note::of(drive));
        self.due_bytes = before + ((written - before) as f64 * STEP).ceil() as u64;
    }

    /// What the run promises.
    fn project(&self, drive: &SimulatedSsd) -> Result<Projection, String> {
        if drive.end_of_life().is_some() {
            return Err("the drive's life has ended".to_owned());
        }
        let end = Note::of(drive);
        let written = end.host_bytes() - self.start.host_bytes();
        if written == 0 {
            return Err("nothing was written".to_owned());
        }
        let nearest = |share: f64| {
            let wanted = self.start.host_bytes() as f64 + share * written as f64;
            self.notes.iter().min_by_key(|note| (note.host_bytes() as f64 - wanted).abs() as u64)
        };
        let too_short = "too little was written to find a steady part";
        let (Some(middle), Some(late)) = (nearest(0.5), nearest(0.75)) else { return Err(too_short.to_owned()) };
        if late.host_bytes() <= middle.host_bytes() || late.host_bytes() == end.host_bytes() {
            return Err(too_short.to_owned());
        }
        let (wear, units) = match drive.in_place_wear() {
            None => self.of_superblocks(drive, middle, &end)?,
            Some(_) => self.of_pages(drive, middle, &end)?,
        };
        let amplification =
            |from: &Note, to: &Note| worn_bytes(drive, from, to) / (to.host_bytes() - from.host_bytes()) as f64;
        let (early, last) = (amplification(middle, late), amplification(late, &end));
        if (early - last).abs() > STEADY * early {
            return Err(format!(
                "write amplification is not steady: it changes from {early:.2} to {last:.2} over the second half"
            ));
        }
        Ok(promise(drive, middle, &end, evenness(&units, wear)))
    }

    /// Rates of superblocks, unit by unit.
    fn of_superblocks(
        &self,
        drive: &SimulatedSsd,
        middle: &Note,
        end: &Note,
    ) -> Result<(Mortality, Vec<WornUnit>), String> {
        let used: Vec<usize> = (0..self.is_used.len()).filter(|&block| self.is_used[block]).collect();
        let between = |from: &Note, to: &Note, block: usize| to.cycles[block] - from.cycles[block];
        let second: Vec<f64> = used.iter().map(|&block| between(middle, end, block)).collect();
        let sum = second.iter().sum::<f64>();
        let mean = sum / used.len().max(1) as f64;
        // An FTL that maps blocks never moves cold data: the blocks that it rests in say nothing about the others.
        let counted = match maps_blocks(drive.config()) {
            true => second.iter().filter(|&&cycles| cycles > 0.0).count(),
            false => used.len(),
        };
        let erased = sum / counted.max(1) as f64;
        if erased < ERASES_MIN {
            return Err(format!(
                "superblocks were erased {erased:.1} times on average in the second half; {ERASES_MIN:.0} are needed"
            ));
        }
        let early = |n: usize| between(&self.start, middle, used[n]);
        // Those that nothing has worn are equals, however many they are.
        let (mut worn, unworn): (Vec<usize>, Vec<usize>) = (0..used.len()).partition(|&n| early(n) > 0.0);
        worn.sort_by(|&a, &b| early(a).total_cmp(&early(b)).then(a.cmp(&b)));
        let mut rates = vec![0.0; used.len()];
        let mut squares = 0.0;
        let bins = worn.chunks(worn.len().div_ceil(BINS).max(1));
        for bin in bins.chain(std::iter::once(&unworn[..]).filter(|unworn| !unworn.is_empty())) {
            let of_bin = bin.iter().map(|&n| second[n]).sum::<f64>() / bin.len() as f64;
            squares += bin.iter().map(|&n| (second[n] - of_bin).powi(2)).sum::<f64>();
            bin.iter().for_each(|&n| rates[n] = of_bin / mean);
        }
        let spares = u64::from(drive.spare_superblocks());
        let mut units = vec![WornUnit { spares, rates: Vec::new() }; drive.unit_of_superblock(0).1 as usize];
        used.iter().zip(&rates).for_each(|(&block, &rate)| {
            units[drive.unit_of_superblock(block as u32).0 as usize].rates.push((rate, 1));
        });
        let levelling = &drive.config().ftl.wear_levelling;
        let is_static = levelling.static_ == StaticWearLevelling::Threshold;
        let mortality = Mortality {
            chance: squares / sum,
            ahead_max: is_static.then(|| f64::from(levelling.threshold)),
            ..mortality(drive)
        };
        Ok((mortality, units))
    }

    /// Rates of the pages of a medium that is written in place.
    fn of_pages(&self, drive: &SimulatedSsd, middle: &Note, end: &Note) -> Result<(Mortality, Vec<WornUnit>), String> {
        let Some(wear) = drive.in_place_wear() else { return Err("this drive has no wear limit".to_owned()) };
        if wear.replaced() > 0 {
            return Err("worn-out pages have already been replaced".to_owned());
        }
        let pages = wear.places() as f64;
        if ((end.page_writes - middle.page_writes) as f64) < ERASES_MIN * pages {
            return Err(format!("pages were written fewer than {ERASES_MIN:.0} times on average in the second half"));
        }
        let per_mean = (pages + wear.spares_left() as f64) / end.page_writes as f64;
        let groups = groups_of_equals(&wear.histogram_of_places());
        let rates = groups.into_iter().map(|(mean, pages)| (mean * per_mean, pages)).collect();
        let units = vec![WornUnit { spares: wear.spares_left(), rates }];
        Ok((Mortality { chance: 1.0, is_replaced: true, ..mortality(drive) }, units))
    }
}

/// Puts pages that were written so or so often together as long as their counts differ no more than those of pages that
/// are written at one rate, whose variance is their mean; gives the mean of each group, and how many pages it has.
fn groups_of_equals(counts: &BTreeMap<u32, u64>) -> Vec<(f64, u64)> {
    let mut groups = Vec::new();
    let (mut pages, mut sum, mut squares) = (0, 0.0, 0.0);
    for (&writes, &more) in counts {
        let (x, n) = (f64::from(writes), more as f64);
        let (pages_with, sum_with, squares_with) = (pages + more, sum + x * n, squares + x * x * n);
        let mean = sum_with / pages_with as f64;
        let variance = squares_with / pages_with as f64 - mean * mean;
        if pages > 0 && variance > VARIANCE_MAX * mean {
            groups.push((sum / pages as f64, pages));
            (pages, sum, squares) = (more, x * n, x * x * n);
        } else {
            (pages, sum, squares) = (pages_with, sum_with, squares_with);
        }
    }
    groups.push((sum / pages.max(1) as f64, pages));
    groups
}

/// P/E cycles after which a mean superblock is not used any more, be it that it fails or that the FTL retires it.
fn limit_of(config: &DeviceConfig) -> Option<u32> {
    let retired = config.ftl.bad_blocks.erasures_max.filter(|_| config.ftl.mapping == Mapping::Page);
    config.pe_cycles_limit().into_iter().chain(retired).min()
}

fn mortality(drive: &SimulatedSsd) -> Mortality {
    let (limit, endurance) = (limit_of(drive.config()).unwrap_or(u32::MAX), drive.config().flash.endurance);
    let spread = endurance.map_or(0.0, |endurance| endurance.spread);
    Mortality { limit: f64::from(limit), spread, chance: 0.0, ahead_max: None, is_replaced: false }
}

/// Bytes programmed in SLC mode between two moments, less those that would have worn the superblocks that data rests in
/// as much: a byte there wears as many cells as `bits` do otherwise, and each of these less.
fn gentle_bytes(drive: &SimulatedSsd, from: &Note, to: &Note) -> f64 {
    let config = drive.config();
    let dedicated = to.slc_cache.dedicated_bytes - from.slc_cache.dedicated_bytes;
    let dynamic = to.slc_cache.dynamic_bytes - from.slc_cache.dynamic_bytes;
    let cells = drive.rows_per_slc_row();
    dedicated as f64 + dynamic as f64 * (1.0 - cells * config.wear_of_slc_cycle())
}

/// Whether the FTL merges blocks, and may erase one that is not full.
fn maps_blocks(config: &DeviceConfig) -> bool {
    matches!(config.ftl.mapping, Mapping::Block | Mapping::Fast)
}

/// Bytes of the medium that were worn once between two moments.
fn worn_bytes(drive: &SimulatedSsd, from: &Note, to: &Note) -> f64 {
    let config = drive.config();
    if maps_blocks(config) {
        let block = config.superpage_bytes() * u64::from(config.flash.pages_per_block);
        return (to.cycles.iter().sum::<f64>() - from.cycles.iter().sum::<f64>()) * block as f64;
    }
    let flash = to.counters.since(&from.counters).flash.unwrap_or_default();
    match drive.in_place_wear() {
        None => flash.bytes_programmed.0 as f64 - gentle_bytes(drive, from, to),
        Some(_) => ((to.page_writes - from.page_writes) * drive.config().ftl.logical_page_bytes) as f64,
    }
}

/// Write amplification by cause between two moments; a page that is written in place in part is worn as a whole.
fn causes(drive: &SimulatedSsd, from: &Note, to: &Note) -> WriteCauses {
    let counters = to.counters.since(&from.counters);
    match drive.in_place_wear() {
        None => write_causes(&counters, &counters.flash.unwrap_or_default()).unwrap_or_default(),
        Some(_) => {
            let all = worn_bytes(drive, from, to) / counters.host_bytes_written.0 as f64;
            WriteCauses { host: all.min(1.0), padding: (all - 1.0).max(0.0), ..WriteCauses::default() }
        }
    }
}

/// From rates and evenness to bytes, drive writes a day and years.
fn promise(drive: &SimulatedSsd, from: &Note, to: &Note, evenness: Evenness) -> Projection {
    let config = drive.config();
    let counters = to.counters.since(&from.counters);
    let host_bytes = counters.host_bytes_written.0;
    let (by, reduction) = (causes(drive, from, to), DataReduction::of(&from.reduction, &to.reduction));
    let parts = [by.host, by.padding, by.gc, by.wear_levelling, by.retirement, by.mapping, by.folding];
    let mut joined = 0.0;
    let [absorption, padding, garbage_collection, wear_levelling_moves, retirement, mapping, folding] =
        parts.map(|part| {
            let before = joined;
            joined += part;
            if before == 0.0 { 1.0 / joined } else { before / joined }
        });
    let unused = config.factory_bad_superblocks() + config.dedicated_superblocks();
    let bad = u64::from(unused) * u64::from(config.flash.pages_per_block);
    let worn = config.raw_bytes() - bad * config.superpage_bytes() * config.units();
    let as_programmed = joined * host_bytes as f64 / worn_bytes(drive, from, to);
    let (slc_mode, unfilled_blocks) = if maps_blocks(config) { (1.0, as_programmed) } else { (as_programmed, 1.0) };
    let factors = LifeFactors {
        capacity_bytes: config.capacity_bytes,
        pe_cycles: limit_of(config).map_or(0.0, f64::from),
        over_provisioning: worn as f64 / config.capacity_bytes as f64,
        wear_levelling: evenness.wear_levelling,
        endurance_spread: evenness.endurance_spread,
        spare_superblocks: evenness.spare_superblocks,
        deduplication: reduction.deduplication,
        compression: reduction.compression,
        absorption: absorption / (reduction.deduplication * reduction.compression),
        padding,
        garbage_collection,
        wear_levelling_moves,
        retirement,
        mapping,
        folding,
        slc_mode,
        unfilled_blocks,
    };
    let bytes = factors.product();
    let warranty_years = config.flash.endurance.map_or(5.0, |endurance| endurance.warranty_years);
    let years_a_byte = (to.at_ns - from.at_ns) as f64 / NS_PER_YEAR / host_bytes as f64;
    Projection {
        host_bytes: bytes,
        warranty_years,
        drive_writes_per_day: bytes / config.capacity_bytes as f64 / (365.0 * warranty_years),
        years: bytes * years_a_byte,
        steady_host_bytes: host_bytes,
        steady_write_amplification: joined,
        factors,
    }
}

impl Life {
    /// After a run; `None` where this drive has no wear limit and the drive takes writes.
    pub(crate) fn after(drive: &SimulatedSsd, history: Option<&History>) -> Option<Self> {
        let (limit, end_of_life) = (limit_of(drive.config()), drive.end_of_life());
        if limit.is_none() && end_of_life.is_none() {
            return None;
        }
        let projected = match history {
            Some(history) => history.project(drive),
            None => Err("this drive has no wear limit".to_owned()),
        };
        let (most, mean) = life_used(drive).unzip();
        let (projection, not_projected) = match projected {
            Ok(projection) => (Some(projection), None),
            Err(reason) => (None, Some(reason)),
        };
        Some(Self {
            pe_cycles_limit: limit,
            used_share_max: most,
            used_share_mean: mean,
            end_of_life,
            projection,
            not_projected,
        })
    }
}

/// P/E cycles of the most worn and of the mean superblock ÷ those that one endures, over the whole life of the drive;
/// `None` where it has no wear limit.
pub fn life_used(drive: &SimulatedSsd) -> Option<(f64, f64)> {
    let limit = limit_of(drive.config())?;
    let before = drive.config().flash.reliability.map_or(0, |reliability| reliability.initial_pe_cycles);
    let (most, mean) = wear(drive);
    let share = |cycles: f64| (cycles + f64::from(before)) / f64::from(limit);
    Some((share(most), share(mean)))
}

/// P/E cycles of the most worn and of the mean superblock that data rests in, or writes to pages.
fn wear(drive: &SimulatedSsd) -> (f64, f64) {
    if drive.slc_cache_counters().is_some() {
        let resting = drive.block_wear().into_iter().filter(|block| !block.is_slc);
        let cycles: Vec<f64> = resting.map(|block| block.cycles).collect();
        let mean = cycles.iter().sum::<f64>() / cycles.len().max(1) as f64;
        return (cycles.into_iter().fold(0.0, f64::max), mean);
    }
    let counts = drive.in_place_wear().map_or_else(|| drive.erase_histogram(), |wear| wear.histogram());
    let all: u64 = counts.values().sum();
    let sum: f64 = counts.iter().map(|(&cycles, &number)| f64::from(cycles) * number as f64).sum();
    (counts.keys().next_back().map_or(0.0, |&most| f64::from(most)), sum / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_whose_counts_differ_by_chance_are_equals_and_hot_ones_are_not() {
        // Poisson about 4, times 1,000, beside three pages that were written a hundred times as often.
        let cold = [18, 73, 147, 195, 195, 156, 104, 60, 30, 13, 5, 2, 1];
        let mut counts: BTreeMap<u32, u64> = cold.into_iter().enumerate().map(|(n, pages)| (n as u32, pages)).collect();
        counts.extend([(390, 1), (400, 1), (410, 1)]);
        let groups = groups_of_equals(&counts);
        assert_eq!(groups.iter().map(|&(_, pages)| pages).collect::<Vec<_>>(), [999, 3]);
        assert!((groups[0].0 - 4.0).abs() < 0.05 && groups[1].0 == 400.0, "{groups:?}");
    }
}
