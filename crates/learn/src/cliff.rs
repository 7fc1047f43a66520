//! Raw capacity from the cliff of random writes after a fill: without counters, and in minutes.
//!
//! ```text
//!   rate
//!     │▔▔▔▔▔▔▔▔▔▔▏                         full speed while spare blocks last
//!     │          ▏                    ▁▁▁▁  steady
//!     │          ▏▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁      dip: the drive slows the host until garbage collection has caught up
//!     └──────────┴──────────────────────▶ written since the fill
//! ```
//!
//! On a drive that was filled in order, every random write takes a spare place until there is none. So what is
//! addressable and what was written by the cliff are together the raw capacity, but for what the drive keeps free. Here
//! are the rates of any such run; `probes/collection/cliff.rs` makes one.
//!
//! Where the rate drops twice, each time to a lower level, the first drop is taken for the end of an SLC cache, and
//! nothing is certain.
//!
//! Source: the runs of SSD-iq (PVLDB 18(11), 2025), in which user and written add up to 1,070 to 1,080 GiB on a Micron
//! 7450 MAX at four fill levels.

use flashwise_block::ByteSize;
use flashwise_profile::Figure;

use crate::stats::graded::INTERVAL_SHARE_MAX;
use crate::stats::median;

/// Writes of some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Bytes written.
    pub bytes: f64,
    /// Seconds that took.
    pub seconds: f64,
}

impl Bin {
    fn rate(&self) -> f64 {
        self.bytes / self.seconds.max(1e-9)
    }
}

/// What the rates show.
#[derive(Clone, Debug, PartialEq)]
pub struct Cliff {
    /// Bytes written until the cliff.
    pub written: Figure<u64>,
    /// The same and what is addressable.
    pub raw: Figure<u64>,
    /// Written until the cliff ÷ addressable.
    pub over_provisioning: Figure<f64>,
    /// What was read off.
    pub reason: String,
}

/// Share of the plateau's rate by which a cliff drops, at least. On six data-centre drives the least is 25 %, at half
/// fill; bins of a plateau vary by 2 %, those in which a pause drops by 6 %.
const DROP_SHARE: f64 = 0.1;
/// Share of the plateau's rate above which a bin is all of the plateau.
const PLATEAU_SHARE: f64 = 0.97;
/// Bins behind a drop that are looked at: collection may come in bursts, with a fast bin between.
const BEHIND: usize = 10;
/// Bins of them that are slow, at least: single ones are pauses.
const SLOW_MIN: usize = 3;
/// Factor of the rate at which the drive was filled, from which on a plateau is that of an SLC cache.
const CACHED_FACTOR: f64 = 1.1;
/// Share by which the cliff of one drive moved between campaigns of measurement: 324, 327 and 337 GiB.
const REPEAT_SHARE: f64 = 0.02;

/// Reads the raw capacity off random writes after a fill in order of `user` bytes. A write buffer takes the first
/// `buffered` of them at a speed of its own. `filled_at` is the speed at which the fill ended, bytes a second.
pub fn raw_capacity(user: ByteSize, bins: &[Bin], buffered: ByteSize, filled_at: Option<f64>) -> Cliff {
    let start = behind(bins, buffered);
    let Some(first) = first_drop(bins, start) else {
        let written = bins.iter().map(|bin| bin.bytes).sum::<f64>();
        let reason = match bins.len() {
            n if n <= start + SLOW_MIN => "too few rates".to_owned(),
            _ => format!("no lasting drop of the rate within {} of random writes", ByteSize(written as u64)),
        };
        return Cliff::at_least(user, written, reason);
    };
    if let Some(second) = new_low(bins, first) {
        let mut cliff = Cliff::at(user, bins, second, first + BEHIND);
        cliff.doubt(", and earlier to another level: the first drop may be the end of an SLC cache");
        return cliff;
    }
    let mut cliff = Cliff::at(user, bins, first, start);
    if filled_at.is_some_and(|rate| is_cached(bins, start, first, rate)) {
        cliff.doubt("; before, random writes were faster than the fill: the drop may be the end of an SLC cache");
    }
    cliff
}

/// Whether the cliff is behind: what follows a drop is known, and the drop is not the end of an SLC cache.
pub(crate) fn is_passed(bins: &[Bin], buffered: ByteSize, filled_at: f64) -> bool {
    let start = behind(bins, buffered);
    let Some(first) = first_drop(bins, start) else { return false };
    let last = if is_cached(bins, start, first, filled_at) { new_low(bins, first) } else { Some(first) };
    last.is_some_and(|last| bins.len() > last + BEHIND)
}

/// The first bin that a write buffer has no part in.
fn behind(bins: &[Bin], buffered: ByteSize) -> usize {
    let mut written = 0.0;
    bins.iter().take_while(|bin| (written < buffered.0 as f64, written += bin.bytes).0).count()
}

/// Whether the plateau is faster than the fill.
fn is_cached(bins: &[Bin], start: usize, cut: usize, filled_at: f64) -> bool {
    usual(&bins[start..cut]) > CACHED_FACTOR * filled_at
}

fn usual(bins: &[Bin]) -> f64 {
    median(bins.iter().map(Bin::rate).collect())
}

/// The first bin from `start` on at which the rate drops lastingly below the usual one since then.
fn first_drop(bins: &[Bin], start: usize) -> Option<usize> {
    (start + 1..bins.len()).find(|&cut| drops_below(&bins[cut..], usual(&bins[start..cut])))
}

/// The first bin some way behind a cliff at which the rate drops lastingly below all since then: rates rise again after
/// a cliff, and drop to the steady one, so only a new low is a second cliff.
fn new_low(bins: &[Bin], first: usize) -> Option<usize> {
    let lowest = |cut: usize| bins[first..cut].iter().map(Bin::rate).fold(f64::INFINITY, f64::min);
    (first + BEHIND..bins.len()).find(|&cut| drops_below(&bins[cut..], lowest(cut)))
}

/// Whether rates are below a level from the first bin on: most of the time, and in several bins.
fn drops_below(bins: &[Bin], level: f64) -> bool {
    let after = &bins[..bins.len().min(BEHIND)];
    let is_slow = |bin: &Bin| bin.rate() < (1.0 - DROP_SHARE) * level;
    let (bytes, seconds) = after.iter().fold((0.0, 0.0), |(b, s), bin| (b + bin.bytes, s + bin.seconds));
    is_slow(&bins[0]) && after.iter().filter(|bin| is_slow(bin)).count() >= SLOW_MIN && is_slow(&Bin { bytes, seconds })
}

impl Cliff {
    fn at_least(user: ByteSize, written: f64, reason: String) -> Self {
        let low = Figure { low: Some(written as u64), ..Figure::unknown() };
        let raw = low.map(|written| written.saturating_add(user.0));
        Self { written: low, raw, over_provisioning: low.map(|written| written as f64 / user.0 as f64), reason }
    }

    /// A cliff in bin `cut`, whose plateau starts at bin `start`.
    fn at(user: ByteSize, bins: &[Bin], cut: usize, start: usize) -> Self {
        let plateau = usual(&bins[start..cut]);
        let below = bins.get(cut + 1).unwrap_or(&bins[cut]).rate().min(plateau);
        let before: f64 = bins[..cut].iter().map(|bin| bin.bytes).sum();
        let partial = &bins[cut];
        // The bin in which it happens is partly of the plateau: as much as its mean shows.
        let share = ((partial.rate() - below) / (plateau - below).max(1e-9)).clamp(0.0, 1.0);
        let written = before + share * partial.seconds * plateau;
        let whole = bins[cut - 1].rate() >= PLATEAU_SHARE * plateau;
        let low = if whole { before } else { before - bins[cut - 1].bytes };
        let high = before + partial.bytes;
        let (low, high) = (low.min(written) * (1.0 - REPEAT_SHARE), high.max(written) * (1.0 + REPEAT_SHARE));
        let is_narrow = high - written <= INTERVAL_SHARE_MAX * written && written - low <= INTERVAL_SHARE_MAX * written;
        let figure =
            if is_narrow { Figure::certain(written, low, high) } else { Figure::inconclusive(written, low, high) };
        let bytes = figure.map(|bytes| bytes.max(0.0).round() as u64);
        let after = bins[cut..].iter().map(Bin::rate).fold(f64::INFINITY, f64::min);
        let reason =
            format!("the rate drops lastingly after {}, to {:.0} %", ByteSize(written as u64), 100.0 * after / plateau);
        Self {
            written: bytes,
            raw: bytes.map(|written| written.saturating_add(user.0)),
            over_provisioning: figure.map(|written| written / user.0 as f64),
            reason,
        }
    }

    fn doubt(&mut self, why: &str) {
        self.reason += why;
        self.written.doubt();
        self.raw.doubt();
        self.over_provisioning.doubt();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flashwise_profile::Verdict;

    use super::*;

    const GIB: f64 = (1_u64 << 30) as f64;
    /// No write buffer.
    const NONE: ByteSize = ByteSize(0);

    /// A recorded series: bytes that are addressable, and rates by time.
    struct Recorded {
        user: f64,
        bins: Vec<Bin>,
    }

    /// Random writes of 4 KiB after a fill, from `cliff-series.csv`, whose head says where they are from.
    fn recorded() -> BTreeMap<&'static str, Recorded> {
        let mut all: BTreeMap<&str, Recorded> = BTreeMap::new();
        for line in include_str!("cliff-series.csv").lines().filter(|line| !line.starts_with('#')).skip(1) {
            let [series, user, seconds, rate] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let [user, seconds, rate] = [user, seconds, rate].map(|text| text.parse::<f64>().unwrap());
            let series = all.entry(series).or_insert(Recorded { user: user * GIB, bins: Vec::new() });
            series.bins.push(Bin { bytes: rate * 1e6 * seconds, seconds });
        }
        all
    }

    /// Raw capacity, GiB, with its verdict.
    fn of(recorded: &Recorded) -> (f64, f64, f64, Verdict) {
        let raw = raw_capacity(ByteSize(recorded.user as u64), &recorded.bins, ByteSize(0), None).raw;
        let [value, low, high] = [raw.value, raw.low, raw.high].map(|bytes| bytes.unwrap() as f64 / GIB);
        (value, low, high, raw.verdict)
    }

    #[test]
    fn the_raw_capacity_of_a_7450_max_is_within_a_hundredth_at_two_fill_levels() {
        let all = recorded();
        for series in ["7450max-745GiB", "7450max-372GiB"] {
            let (value, low, high, verdict) = of(&all[series]);
            // 1,074 GiB: the raw capacity with which its write amplification is met.
            assert!((value / 1074.0 - 1.0).abs() < 0.01, "{series}: {value}");
            assert!(low < 1074.0 && 1074.0 < high, "{series}: {low} {high}");
            assert_eq!(verdict, Verdict::Certain, "{series}");
        }
    }

    #[test]
    fn cliffs_of_other_drives_are_where_a_finer_look_has_them() {
        // User and written at the cliff, GiB, from the same runs in the finest resolution that there is.
        let all = recorded();
        for (series, truth) in [
            ("p5520-seqfilled", 2108.0),
            ("p5520-randomfilled", 2094.0),
            ("pe8110", 1011.0),
            ("cm7r", 4225.0),
            ("wd-dc", 1017.0),
            ("i4i-run1", 4195.0),
        ] {
            let (value, low, high, _) = of(&all[series]);
            assert!((value / truth - 1.0).abs() < 0.01, "{series}: {value}");
            assert!(low <= truth && truth <= high, "{series}: {low} {high}");
        }
    }

    #[test]
    fn the_guides_table_has_what_is_read_off() {
        let guide = include_str!("../../../docs/guide/drive-counters.md");
        let rows = guide.lines().skip_while(|line| !line.contains("GiB raw by the cliff")).skip(2);
        let printed: Vec<&str> = rows.map_while(|row| row.split('|').nth(2)).map(str::trim).collect();
        let all = recorded();
        let series = ["7450max-745GiB", "7450max-372GiB", "p5520-seqfilled", "cm7r", "i4i-run1"];
        let read_off = series.map(|series| of(&all[series]).0.round());
        assert_eq!(printed.iter().map(|cell| cell.replace(',', "").parse().unwrap()).collect::<Vec<f64>>(), read_off);
    }

    fn bins(rates: &[f64]) -> Vec<Bin> {
        rates.iter().map(|&rate| Bin { bytes: rate, seconds: 1.0 }).collect()
    }

    #[test]
    fn without_a_cliff_only_a_lower_bound_is_known() {
        let user = ByteSize(1000);
        let flat = raw_capacity(user, &bins(&[100.0; 50]), NONE, None);
        assert_eq!((flat.raw.value, flat.raw.low, flat.raw.verdict), (None, Some(6000), Verdict::Inconclusive));
        // A pause is no cliff, and neither is a slow decline of a few per cent.
        let mut paused = vec![100.0; 50];
        (paused[20], paused[21]) = (5.0, 60.0);
        assert_eq!(raw_capacity(user, &bins(&paused), NONE, None).raw.value, None);
        let declining: Vec<f64> = (0..50).map(|n| 100.0 - f64::from(n) / 10.0).collect();
        assert_eq!(raw_capacity(user, &bins(&declining), NONE, None).raw.value, None);
        for few in 0..4 {
            assert_eq!(raw_capacity(user, &bins(&vec![100.0; few]), NONE, None).reason, "too few rates");
        }
    }

    #[test]
    fn a_second_drop_to_a_new_low_differs_from_the_dip_behind_a_cliff() {
        let level = |rate: f64, n: usize| vec![rate; n];
        let dip: Vec<f64> = [level(100.0, 20), level(40.0, 10), level(70.0, 10), level(50.0, 20)].concat();
        let cliff = raw_capacity(ByteSize(1000), &bins(&dip), NONE, None);
        assert_eq!((cliff.written.value, cliff.written.verdict), (Some(2000), Verdict::Certain));
        let cached: Vec<f64> = [level(100.0, 20), level(60.0, 30), level(30.0, 20)].concat();
        let cliff = raw_capacity(ByteSize(1000), &bins(&cached), NONE, None);
        assert_eq!((cliff.written.value, cliff.written.verdict), (Some(3800), Verdict::Inconclusive));
        assert!(cliff.reason.contains("SLC cache"), "{}", cliff.reason);
    }

    #[test]
    fn a_plateau_that_is_faster_than_the_fill_is_an_slc_cache_and_no_certainty() {
        let rates = bins(&[vec![100.0; 20], vec![60.0; 20]].concat());
        let cliff = raw_capacity(ByteSize(1000), &rates, NONE, Some(60.0));
        assert_eq!((cliff.written.value, cliff.written.verdict), (Some(2000), Verdict::Inconclusive));
        assert!(!is_passed(&rates, NONE, 60.0), "the cliff is still to come");
    }

    #[test]
    fn collection_in_bursts_is_a_cliff_although_bins_between_are_fast() {
        let rates = [vec![32.0; 50], vec![4.0, 193.0, 50.0, 27.0, 4.0, 175.0, 4.0, 72.0, 19.0, 4.0, 26.0]].concat();
        let equal_bytes: Vec<Bin> = rates.iter().map(|&rate| Bin { bytes: 32.0, seconds: 32.0 / rate }).collect();
        let cliff = raw_capacity(ByteSize(10_000), &equal_bytes, NONE, Some(32.0));
        assert_eq!((cliff.written.value, cliff.written.verdict), (Some(1600), Verdict::Certain));
    }

    #[test]
    fn what_a_write_buffer_takes_is_counted_and_is_no_plateau() {
        let rates = [vec![300.0; 3], vec![100.0; 20], vec![30.0; 11]].concat();
        let cliff = raw_capacity(ByteSize(1000), &bins(&rates), ByteSize(900), Some(100.0));
        assert_eq!((cliff.written.value, cliff.written.verdict), (Some(2900), Verdict::Certain));
        assert!(
            !is_passed(&bins(&rates[..20]), ByteSize(900), 100.0) && is_passed(&bins(&rates), ByteSize(900), 100.0)
        );
    }

    #[test]
    fn a_cliff_in_a_long_bin_is_found_within_it_and_the_interval_is_the_bin() {
        // Three quarters of the bin at 100, the rest at 20.
        let rates = [vec![100.0; 10], vec![80.0], vec![20.0; 11]].concat();
        let cliff = raw_capacity(ByteSize(1000), &bins(&rates), NONE, None);
        assert_eq!(cliff.written.value, Some(1075));
        assert_eq!((cliff.written.low, cliff.written.high), (Some(980), Some(1102)));
        let coarse = raw_capacity(ByteSize(1000), &bins(&[100.0, 60.0, 20.0, 20.0, 20.0]), NONE, None);
        assert_eq!(coarse.written.verdict, Verdict::Inconclusive);
        assert!(is_passed(&bins(&rates), NONE, 100.0) && !is_passed(&bins(&rates[..20]), NONE, 100.0));
    }
}
