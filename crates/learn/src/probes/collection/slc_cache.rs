//! The cache of cells that are written with one bit, read off the first fill of a drive that was trimmed and had time
//! to empty it.
//!
//! ```text
//!   speed ▔▔▔▔▔▔▔▔▔╲▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁   writes that go past the full cache: a lasting drop (PELT)
//!         ▔▔▔▔▔▔▔▔▔╲╱▔▔▔▔▔▔▔▔╲╱▔▔▔▔▔▔   writes that wait until it is emptied: the first of the stalls
//! ```
//!
//! A drive that collects garbage gets slower as well, and moves data for it. Where a drive tells what it programs, a
//! drop is that of a cache if nothing is moved before it: collection that takes what is valid does so ever more as the
//! drive fills, and a cache is full at once. One that has to be emptied before the host continues programs what it
//! takes twice from then on. Nor is it a cache of such cells whose end shows where the flash was no faster before it: a
//! drive that has programmed less than it took until then has filled its write buffer.
//!
//! What the write buffer takes is left aside.

use flashwise_block::ByteSize;
use flashwise_profile::{Figure, Verdict};

use crate::draft::{Because, ProfileDraft, key};
use crate::probes::buffer::WriteBuffer;
use crate::probes::windows::{Window, join};
use crate::stats::{median, pelt};
use crate::verdict::{Doubt, Wording, applying, doubt};

use super::onset::Onset;

/// Share of the speed by which a level must change to count; erases move windows of a fill by less.
const CHANGE_SHARE: f64 = 0.15;

/// Evidence of fills in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlcCache {
    pub(super) bytes: Figure<u64>,
    /// Whether a fill got slower where the drive started to erase.
    ends_with_first_erases: bool,
    /// Whether the drive counted that much of a fill was programmed twice, where no cache was found.
    is_moved: bool,
}

/// A fill whose speed fell.
struct SpeedDrop<'a> {
    /// Bytes a second of its windows, behind the write buffer.
    rates: &'a [f64],
    /// Windows before the drop.
    fast: usize,
    /// The window from which on it is slower, where that is a lasting change of level.
    cut: Option<usize>,
}

impl SpeedDrop<'_> {
    /// Why an SLC cache may be inconclusive, by the fill that shows it. [`SECOND_FILL_DOUBTS`] and [`ERASE_DOUBTS`]
    /// follow.
    const DROP_DOUBTS: [Doubt<Self>; 3] = [
        doubt("speed is uneven before the drop", Wording::Then(", but is uneven before"), |drop| {
            is_uneven(drop.before())
        }),
        doubt("garbage collection in bursts", Wording::Then(", but is often as fast later"), |drop| {
            drop.cut.is_some_and(|cut| is_often_as_fast(drop.rates, cut))
        }),
        doubt("speed recovers", Wording::Then(", but rises again"), |drop| comes_back(drop.rates, drop.before().len())),
    ];
}

impl SpeedDrop<'_> {
    fn before(&self) -> &[f64] {
        &self.rates[..self.fast.min(self.rates.len())]
    }
}

/// The same by a second fill, which rested when half of the cache was full.
const SECOND_FILL_DOUBTS: [Doubt<SecondFill>; 1] =
    [doubt("another fill drops elsewhere", Wording::Nothing, |second| !second.takes_as_much())];

/// The same when all is known: flash that is kept erased is no more than what the drive has beside what it offers.
const ERASE_DOUBTS: [Doubt<(SlcCache, Onset)>; 1] = [doubt(
    "first erases",
    Wording::Then("; the first erases of a drive that had some flash erased before could show the same"),
    |of| {
        let (cache, onset) = of;
        let room = onset.bytes.high.unwrap_or(u64::MAX);
        cache.ends_with_first_erases && cache.bytes.value.is_some_and(|cache| cache <= room)
    },
)];

/// Figures that a cache makes inconclusive: a superblock of the cache holds less than others, so that its erases say
/// less of the over-provisioning, and what was written in pieces is moved together when the cache is emptied, and
/// programmed again.
const HIDDEN_FIGURES: [&str; 5] =
    ["superblock_bytes", "stripe_bytes", "write_unit_bytes", "over_provisioning", "collection_onset_bytes"];

impl SlcCache {
    /// The first lasting drop of a fill's speed, which was made in writes of a length.
    pub(super) fn read_off(
        fill: (&[Window], ByteSize),
        buffer: WriteBuffer,
        curve: &str,
        draft: &mut ProfileDraft,
    ) -> Self {
        let (cache, reason) = Self::of(fill, buffer, draft.recorded(key!(slc_cache_bytes)));
        let recipe = "the drive is trimmed, rests, then is filled sequentially with large writes, 32 in flight";
        draft.settle(key!(slc_cache_bytes), cache.bytes, Because { recipe, reason, curve: Some(curve) });
        cache
    }

    /// With the rest of a second fill, which rested when half of what the cache was found to take was in it. One that
    /// has had time to be emptied takes all of that again from there on. What slows a fill for other reasons, as
    /// parallel units that are full before others are, comes where it came before.
    pub(super) fn read_off_again(
        self,
        fill: (&[Window], ByteSize),
        buffer: WriteBuffer,
        curve: &str,
        draft: &mut ProfileDraft,
    ) -> Self {
        let (second, _) = Self::of(fill, buffer, self.bytes);
        let to_end = fill.0.iter().map(|window| window.bytes).sum();
        let fills = SecondFill { first: self.bytes, second: second.bytes, to_end };
        let bytes = applying(&SECOND_FILL_DOUBTS, &fills).judge(self.bytes);
        let size = ByteSize(bytes.value.unwrap_or(0));
        let more = fills.more();
        let reason = format!(
            "speed drops after {size} beyond the write buffer; a second fill, which pauses after half of that, then \
             takes {more}"
        );
        let recipe = "the drive is trimmed, rests, then is filled sequentially with large writes, 32 in flight; \
                      twice, the second time with a pause";
        draft.settle(key!(slc_cache_bytes), bytes, Because { recipe, reason, curve: Some(curve) });
        Self {
            bytes,
            ends_with_first_erases: self.ends_with_first_erases || second.ends_with_first_erases,
            is_moved: self.is_moved || second.is_moved,
        }
    }

    /// What a fill shows, with the reason; `otherwise` where it does not show whether there is a cache.
    fn of((windows, length): (&[Window], ByteSize), buffer: WriteBuffer, otherwise: Figure<u64>) -> (Self, String) {
        let twice_buffer = 2 * buffer.bytes();
        let mut at = 0;
        let behind_buffer = windows.iter().take_while(|window| {
            at += window.bytes;
            at <= twice_buffer
        });
        let (before, windows) = windows.split_at(behind_buffer.count().min(windows.len() / 2));
        let before: u64 = before.iter().map(|window| window.bytes).sum();
        let rates: Vec<f64> = windows.iter().map(|window| window.rate * length.bytes() as f64).collect();
        // A write buffer that was emptied by the rest makes the first windows faster, too.
        let is_known = buffer.0.verdict != Verdict::Inconclusive;
        let step = windows.first().map_or(0, |window| window.bytes);
        let few = || {
            begins_above_all(windows, &rates)
                .filter(|&fast| is_known && before + step * fast as u64 >= twice_buffer + FAST_MIN * step)
        };
        let half = step / 2;
        let cut = lasting_fall(windows, &rates);
        let size = cut
            .map(|cut| where_speed_falls(windows, cut))
            .or_else(|| first_stall(windows).map(|cut| step * cut as u64 + half))
            .or_else(|| few().map(|cut| where_speed_falls(windows, cut)));
        let nothing = Self { bytes: otherwise, ends_with_first_erases: false, is_moved: false };
        match size {
            Some(size) => {
                let fast = (size / step.max(1)) as usize;
                // When the cache is full, what the drive has taken is in it but for what is in the buffer.
                let size = (before + size).saturating_sub(buffer.bytes());
                let doubts = applying(&SpeedDrop::DROP_DOUBTS, &SpeedDrop { rates: &rates, fast, cut });
                let bytes = doubts.judge(Figure::certain(size, size.saturating_sub(2 * step), size + 2 * step));
                let reason = doubts.reason(format!("speed drops after {} beyond the write buffer", ByteSize(size)));
                (Self { bytes, ends_with_first_erases: begins_to_erase(windows, fast), is_moved: false }, reason)
            }
            None if begins_faster(windows) => {
                let reason = "speed drops, but the drive is too small or the drop too early to locate it";
                (nothing, reason.to_owned())
            }
            None if is_twice(windows) => {
                let reason = "speed does not drop, but much of the sequential data is programmed twice";
                (Self { is_moved: true, ..nothing }, reason.to_owned())
            }
            None => (Self { bytes: Figure::absent(), ..nothing }, "speed does not drop".to_owned()),
        }
    }

    /// Figures that an SLC cache makes inconclusive, when all has been measured.
    pub(super) fn doubt_what_it_hides(self, onset: Onset, draft: &mut ProfileDraft) {
        if self.bytes.value.is_none() && !self.is_moved {
            return;
        }
        let doubts = applying(&ERASE_DOUBTS, &(self, onset));
        draft.set(key!(slc_cache_bytes), doubts.judge(self.bytes));
        draft.append_to_reason("slc_cache_bytes", &doubts.reason(""));
        for key in HIDDEN_FIGURES {
            draft.figures.parameters.doubt(key);
            draft.add_to_reason(key, "an SLC cache moves the data written");
        }
    }
}

/// Evidence of two fills.
struct SecondFill {
    first: Figure<u64>,
    second: Figure<u64>,
    /// Bytes from the rest to the end of the drive.
    to_end: u64,
}

impl SecondFill {
    /// Whether the drive may end before the cache does.
    fn may_end_before(&self) -> bool {
        self.second.value.is_none() && self.first.high >= Some(self.to_end)
    }

    fn is_alike(&self) -> bool {
        let (first, second) = (&self.first, &self.second);
        second.value.is_some() && first.low <= second.high && second.low <= first.high
    }

    fn takes_as_much(&self) -> bool {
        self.is_alike() || self.may_end_before()
    }

    /// Bytes that the second fill takes.
    fn more(&self) -> String {
        match self.second.value {
            _ if self.is_alike() => "as much again".to_owned(),
            _ if self.may_end_before() => "the rest of the drive at full speed".to_owned(),
            Some(other) => format!("another {}", ByteSize(other)),
            None => "the rest of the drive without a drop".to_owned(),
        }
    }
}

/// The first change of level to a lower one that is not that of collection.
fn lasting_fall(windows: &[Window], rates: &[f64]) -> Option<usize> {
    let cuts = pelt::confirmed(rates, CHANGE_SHARE);
    let level = |from: usize, to: usize| median(rates[from..to].to_vec());
    // Lower than the level before it, and than all until then: a rise in between is none, however slow most is that
    // follows.
    let falls = |before: usize, cut: usize, next: usize| {
        level(cut, next) < level(before, cut) && level(cut, rates.len()) < level(0, cut)
    };
    let is_of_cache = |cut: usize, next: usize| !collects(&windows[cut..]) || is_sudden(windows, cut, next);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().skip(1).chain([windows.len()]);
    let mut levels = starts.zip(cuts.iter().copied()).zip(ends);
    let is_end =
        |before, cut, next| falls(before, cut, next) && is_of_cache(cut, next) && programs_slower(windows, cut);
    levels.find(|&((before, cut), next)| is_end(before, cut, next)).map(|((_, cut), _)| cut)
}

/// Whether the flash programs more slowly behind a cut, as the drive tells.
fn programs_slower(windows: &[Window], cut: usize) -> bool {
    let pace = |windows: &[Window]| {
        let all = join(windows);
        all.amplification.map(|programmed| programmed * all.rate)
    };
    let paces = pace(&windows[..cut]).zip(pace(&windows[cut..]));
    paces.is_none_or(|(before, after)| before > (1.0 + CHANGE_SHARE) * after)
}

/// Whether a drive that counts erases starts with them at a cut: one that has used up what it had erased before gets
/// slower there as well.
fn begins_to_erase(windows: &[Window], cut: usize) -> bool {
    let a_byte = |windows: &[Window]| {
        let all = join(windows);
        all.erases.map(|erases| erases as f64 / all.bytes.max(1) as f64)
    };
    let cut = cut.min(windows.len());
    let rates = a_byte(&windows[..cut]).zip(a_byte(&windows[cut..]));
    rates.is_some_and(|(before, after)| before < FIRST_ERASES_SHARE * after)
}

/// Erases for each byte before a cut, as a share of those behind it, up to which the drive starts to erase there.
const FIRST_ERASES_SHARE: f64 = 0.5;

/// Whether speed was not one before it fell: then something else than a cache that fills set the pace in between, and
/// what went past the cache meanwhile is not known.
fn is_uneven(rates: &[f64]) -> bool {
    let usual = median(rates.to_vec());
    let is_odd = |rate: &f64| *rate > (1.0 + UNEVEN_SHARE) * usual || *rate < (1.0 - STALL_SHARE) * usual;
    // The first window may have started in the write buffer.
    rates.get(1..).unwrap_or_default().iter().any(is_odd)
}

/// Whether speed rises again for good after a lasting drop, by more than half of it: a cache that is full stays so as
/// long as the host writes on.
fn comes_back(rates: &[f64], fast: usize) -> bool {
    let (before, behind) = rates.split_at(fast);
    if before.is_empty() || behind.len() < 4 * STRETCH {
        return false;
    }
    let slow = behind.chunks_exact(STRETCH).map(|stretch| median(stretch.to_vec())).fold(f64::MAX, f64::min);
    let last = median(behind[behind.len() * 3 / 4..].to_vec());
    let fast = median(before.to_vec());
    slow < (1.0 - CHANGE_SHARE) * fast && last > f64::midpoint(fast, slow)
}

/// Whether many windows behind a lasting drop are as fast as those before it: a cache that is full slows all of them,
/// what comes in bursts, as collection does, some.
fn is_often_as_fast(rates: &[f64], cut: usize) -> bool {
    let (before, behind) = rates.split_at(cut);
    let fast = (1.0 - CHANGE_SHARE) * median(before.to_vec());
    behind.iter().filter(|&&rate| rate >= fast).count() as f64 >= OFTEN_SHARE * behind.len() as f64
}

/// Share of the windows behind a drop that are as fast as before it, from which on that is often: a cache that is full
/// leaves none.
const OFTEN_SHARE: f64 = 0.2;

/// Windows by which a speed is told.
const STRETCH: usize = 10;

/// Share of the usual speed by which a window is faster that something else than the cache set the pace of: a cache
/// takes what comes at one speed, but for erases.
const UNEVEN_SHARE: f64 = 0.5;

/// Whether a drive that moves data behind a cut moved none before it, and got slower there and then: either with
/// nothing to move on its new level, which ends at `next`, or with as much to move as ever after.
fn is_sudden(windows: &[Window], cut: usize, next: usize) -> bool {
    let near = (windows.len() / 40).max(3);
    let (from, to) = (cut.saturating_sub(near), (cut + near).min(windows.len()));
    let falls_by = |before: &[Window], after: &[Window]| join(before).rate - join(after).rate;
    let around = falls_by(&windows[from..cut], &windows[cut..to]);
    let is_at_once = around >= falls_by(&windows[..cut], &windows[cut..]) / 2.0;
    let is_even = !moves(&windows[cut..next]) || !goes_on_falling(&windows[cut..]);
    moved_none(&windows[..cut]) && is_at_once && is_even
}

/// Whether the drive moved nothing, as it tells: neither in the mean nor for a while.
fn moved_none(windows: &[Window]) -> bool {
    !moves(windows) && !windows.windows(A_WHILE).any(moves)
}

/// Whether the last third of some windows is slower than the first.
fn goes_on_falling(windows: &[Window]) -> bool {
    let level = |windows: &[Window]| median(windows.iter().map(|window| window.rate).collect());
    let third = windows.len() / 3;
    third > 0 && level(&windows[windows.len() - third..]) < (1.0 - CHANGE_SHARE) * level(&windows[..third])
}

/// The first window in which a drive stalls that programs everything twice from then on, as it tells, and nothing
/// before: slower than the windows until then, and with it all that follows is slower in the mean.
fn first_stall(windows: &[Window]) -> Option<usize> {
    let is_slow = |cut: &usize| {
        let usual = median(windows[..*cut].iter().map(|window| window.rate).collect());
        windows[*cut].rate <= (1.0 - STALL_SHARE) * usual
    };
    let cut = (FAST_MIN as usize..windows.len()).find(is_slow)?;
    let (before, after) = windows.split_at(cut);
    let soon = &after[..after.len().min(2 * cut)];
    let is_slower = join(after).rate <= (1.0 - STALL_SHARE) * join(before).rate;
    (is_slower && moved_none(before) && is_twice(soon) && is_twice(after) && !moves_more_and_more(after)).then_some(cut)
}

/// Whether the drive tells that it programs twice much of what is written.
fn is_twice(windows: &[Window]) -> bool {
    join(windows).amplification.is_some_and(|programmed| programmed >= TWICE_WA)
}

/// Whether the last third of some windows programs more than the first for what is written, as the drive tells:
/// collection does as a drive fills, a cache that is emptied again and again does not.
fn moves_more_and_more(windows: &[Window]) -> bool {
    let third = windows.len() / 3;
    let ends = [&windows[..third], &windows[windows.len() - third..]].map(|part| join(part).amplification);
    matches!(ends, [Some(first), Some(last)] if third > 0 && last > MORE_AND_MORE_FACTOR * first)
}

/// Factor between the write amplification of the first and the last third of a fill, from which on collection grows:
/// a cache that is emptied again and again moves the same each time.
const MORE_AND_MORE_FACTOR: f64 = 1.25;

/// Windows over which what is moved shows: collection that starts in bursts has moved data in some of them.
const A_WHILE: usize = 6;
/// Share of the usual speed by which a stall makes a window slower; less may be an erase.
const STALL_SHARE: f64 = 0.4;
/// Write amplification of a drive that programs most of it twice, at least: what is written over in the cache is
/// programmed once.
const TWICE_WA: f64 = 1.3;

/// Where the speed falls when the fast windows are too few for a change of level: so many at the start, each faster
/// than all that follow. With *n* windows, at least [`WINDOWS_MIN`], *k* of them come first by chance with a
/// probability of 1 ÷ (n over k); above [`FIRST_BY_CHANCE_PROBABILITY`] nothing is told.
fn begins_above_all(windows: &[Window], rates: &[f64]) -> Option<usize> {
    let level = median(rates.get(rates.len() / 8..)?.to_vec());
    let fast = rates.iter().take_while(|&&rate| rate > (1.0 + CHANGE_SHARE) * level).count();
    let slowest = rates[..fast].iter().copied().fold(f64::INFINITY, f64::min);
    let is_first = rates[fast..].iter().all(|&rate| rate < slowest);
    let by_chance: f64 = (0..fast).map(|n| (n + 1) as f64 / (rates.len() - n) as f64).product();
    let are_enough = fast > 0 && rates.len() >= WINDOWS_MIN;
    let is_of_cache = !collects(&windows[fast..]) && programs_slower(windows, fast);
    (are_enough && is_first && by_chance <= FIRST_BY_CHANCE_PROBABILITY && is_of_cache).then_some(fast)
}

/// Probability that the fast windows come first by chance, up to which they show a cache; see [`begins_above_all`].
const FIRST_BY_CHANCE_PROBABILITY: f64 = 0.01;

/// Fast windows behind what the write buffer may take without which no cache of the SLC cache is told from it.
const FAST_MIN: u64 = 2;

/// Windows of a fill without which a drop of speed need not show.
const WINDOWS_MIN: usize = 40;

/// Whether the first eighth of a pass was written faster than the rest.
fn begins_faster(windows: &[Window]) -> bool {
    let (first, rest) = windows.split_at((windows.len() / 8).max(1).min(windows.len()));
    join(first).rate > (1.0 + CHANGE_SHARE) * join(rest).rate
}

/// Whether the drive tells that it moves data meanwhile, which makes writes slower as well.
fn collects(windows: &[Window]) -> bool {
    join(windows).amplification.is_some_and(|amplification| amplification > COLLECTS_WA)
}

/// Write amplification of large writes in order from which on garbage collection runs: what windows do not share
/// evenly, and a map, come to less.
const COLLECTS_WA: f64 = 1.05;

/// Whether the drive tells that it moves any data.
fn moves(windows: &[Window]) -> bool {
    join(windows).amplification.is_some_and(|amplification| amplification > MOVES_WA)
}

/// Write amplification of a drive that moves nothing, at most: what windows do not share evenly, and a map.
const MOVES_WA: f64 = 1.02;

/// Bytes until the speed falls, from a cut between windows: so many at the speed before and the rest at that after take
/// as long as the windows next to the cut did.
fn where_speed_falls(windows: &[Window], cut: usize) -> u64 {
    let (from, to) = (cut.saturating_sub(2).max(1), (cut + 2).min(windows.len() - 1));
    let sum = |windows: &[Window]| windows.iter().map(|window| window.bytes).sum::<u64>() as f64;
    let seconds = |windows: &[Window]| windows.iter().map(|window| window.bytes as f64 / window.rate).sum::<f64>();
    let pace = |windows: &[Window]| seconds(windows) / sum(windows).max(1.0);
    let (before, around, after) = (&windows[..from], &windows[from..to], &windows[to..]);
    let (fast, slow) = (pace(before), pace(after));
    // What was in flight when the speed fell makes one window slower than all that follow.
    let around_s: f64 = around.iter().map(|window| (1.0 / window.rate).min(slow) * window.bytes as f64).sum();
    let at_fast = (slow * sum(around) - around_s) / (slow - fast);
    (sum(before) + at_fast.clamp(0.0, sum(around))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fill by the speed, in MiB a second, and the flash bytes for each host byte of its windows of 8 MiB.
    fn filled(windows: impl IntoIterator<Item = (f64, f64)>) -> Vec<Window> {
        let window = |(rate, amplification)| Window {
            bytes: 8 << 20,
            rate,
            amplification: Some(amplification),
            erases: Some(1),
        };
        windows.into_iter().map(window).collect()
    }

    fn told(windows: &[Window]) -> Figure<u64> {
        filled_once(windows).bytes
    }

    const BUFFER: u64 = 1 << 20;

    fn buffer() -> WriteBuffer {
        WriteBuffer(Figure::certain(BUFFER, BUFFER, BUFFER))
    }

    fn filled_once(windows: &[Window]) -> SlcCache {
        SlcCache::read_off((windows, ByteSize::mib(1)), buffer(), "fill", &mut ProfileDraft::default())
    }

    fn assert_told(windows: &[Window], mib: u64) {
        let figure = told(windows);
        let (low, high) = (figure.low.unwrap() >> 20, figure.high.unwrap() >> 20);
        assert!(figure.verdict == Verdict::Certain && (low..=high).contains(&mib), "{figure:?}");
    }

    #[test]
    fn a_cache_that_is_emptied_as_a_whole_ends_at_the_first_stall() {
        let windows = filled((0..190).map(|n| match n {
            _ if n < 17 => (680.0, 1.0),
            _ if n % 17 == 0 => (12.0, 3.0),
            _ => (680.0, 1.8),
        }));
        assert_told(&windows, 17 * 8);
    }

    #[test]
    fn a_cache_behind_which_the_drive_makes_room_is_found_and_collection_that_grows_is_none() {
        let behind = |n: u32| if n < 28 { (240.0, 1.0) } else { (54.0 - f64::from(n % 3), 1.4) };
        assert_told(&filled((0..200).map(behind)), 28 * 8);
        let grows = |n: u32| {
            let amplification = 1.0 + f64::from(n) / 100.0;
            (240.0 / amplification, amplification)
        };
        let figure = told(&filled((0..200).map(grows)));
        assert_ne!(figure.verdict, Verdict::Certain, "{figure:?}");
    }

    #[test]
    fn what_fills_a_buffer_while_the_flash_is_as_slow_as_later_is_no_cache() {
        let behind = |programmed: f64| filled((0..200).map(|n| if n < 9 { (286.0, programmed) } else { (223.0, 1.0) }));
        assert_ne!(told(&behind(0.78)).verdict, Verdict::Certain);
        assert_told(&behind(1.0), 9 * 8);
    }

    #[test]
    fn collection_that_begins_later_does_not_hide_where_a_cache_ended() {
        let late = |n: u32| match n {
            0..50 => (295.0, 1.0),
            50..165 => (121.0 + f64::from(n % 2), 1.0),
            _ => (if n.is_multiple_of(3) { 40.0 } else { 75.0 }, 1.6),
        };
        assert_told(&filled((0..200).map(late)), 50 * 8);
    }

    #[test]
    fn a_drive_that_gets_slower_and_slower_once_it_collects_has_no_cache_for_that() {
        let late = |n: u32| {
            let slower = 1.0 + 0.02 * f64::from(n.saturating_sub(160));
            (if n < 160 { 1700.0 } else { 1300.0 / slower }, if n < 160 { 1.0 } else { 1.3 })
        };
        assert_ne!(told(&filled((0..200).map(late))).verdict, Verdict::Certain);
    }

    #[test]
    fn speed_that_comes_back_for_good_leaves_open_whether_a_cache_was_full() {
        let dips = |n: u32| match n {
            0..130 => (305.0 + f64::from(n % 3), 1.0),
            130..165 => (162.0 + f64::from(n % 3), 1.0),
            _ => (272.0 + f64::from(n % 3), 1.0),
        };
        assert_ne!(told(&filled((0..200).map(dips))).verdict, Verdict::Certain);
        assert_told(&filled((0..200).map(|n| dips(n.min(160)))), 130 * 8);
    }

    #[test]
    fn a_rise_of_speed_is_no_end_of_a_cache_though_most_that_follows_is_slow() {
        let speed = |n: u32| match n {
            0..6 => 420.0,
            6..26 => 850.0 + f64::from(n % 2),
            _ => 311.0 + f64::from(n % 3),
        };
        let figure = told(&filled((0..200).map(|n| (speed(n), 1.0))));
        assert!((figure.low.unwrap()..=figure.high.unwrap()).contains(&((26 * 8) << 20)), "{figure:?}");
        assert_eq!(figure.verdict, Verdict::Inconclusive, "what went past the cache at first is not known");
    }

    #[test]
    fn data_that_was_moved_before_a_fall_makes_it_one_of_collection() {
        let late = |n: u32| match n {
            0..158 => (1580.0, 1.0),
            158..165 => (1540.0, 1.04),
            165..172 => (1590.0, 1.0),
            _ => (1100.0 + 40.0 * f64::from(n % 9), 1.2),
        };
        assert_ne!(told(&filled((0..190).map(late))).verdict, Verdict::Certain);
    }

    #[test]
    fn where_a_drive_begins_to_erase_what_it_had_not_erased_before_no_cache_is_certain() {
        let ends = |erases: (u64, u64), room: u64| {
            let mut windows = filled((0..200).map(|n| (if n < 12 { 900.0 } else { 500.0 }, 1.0)));
            windows.iter_mut().enumerate().for_each(|(n, w)| w.erases = Some(if n < 12 { erases.0 } else { erases.1 }));
            let mut draft = ProfileDraft::default();
            let onset = Onset { bytes: Figure::certain(room, room, room), share: Figure::unknown() };
            filled_once(&windows).doubt_what_it_hides(onset, &mut draft);
            draft.figures.parameters.slc_cache_bytes.verdict
        };
        assert_eq!(ends((0, 4), 200 << 20), Verdict::Inconclusive);
        assert_eq!(ends((4, 4), 200 << 20), Verdict::Certain, "it erased before as well");
        assert_eq!(ends((0, 4), 50 << 20), Verdict::Certain, "no drive keeps more erased than it has room for");
    }

    #[test]
    fn a_drive_that_programs_twice_what_is_written_in_order_is_not_said_to_have_no_cache() {
        // One fast window, then stalls as often as speed.
        let stalls = |n: usize| if n.is_multiple_of(3) { 40.0 } else { 700.0 };
        let filled_at = |programmed: f64| filled((0..200).map(|n| (stalls(n), if n < 4 { 1.0 } else { programmed })));
        assert_eq!(told(&filled_at(1.0)).verdict, Verdict::Absent);
        assert_eq!(told(&filled_at(1.9)), Figure::unknown());
    }

    #[test]
    fn a_fall_behind_which_speed_is_often_what_it_was_may_be_one_of_collection() {
        let behind = |n: usize, often: bool| if often && n.is_multiple_of(3) { 60.0 } else { 20.0 };
        let filled_at = |often: bool| filled((0..200).map(|n| (if n < 120 { 60.0 } else { behind(n, often) }, 1.0)));
        assert_eq!(told(&filled_at(false)).verdict, Verdict::Certain);
        assert_eq!(told(&filled_at(true)).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn stalls_of_a_drive_that_moves_more_and_more_are_those_of_collection() {
        let stalls = |n: usize| if n >= 60 && n.is_multiple_of(4) { 10.0 } else { 60.0 };
        let filled_at = |programmed: fn(usize) -> f64| filled((0..200).map(|n| (stalls(n), programmed(n))));
        assert!(told(&filled_at(|n| if n < 60 { 1.0 } else { 2.0 })).value.is_some());
        assert_eq!(told(&filled_at(|n| if n < 60 { 1.0 } else { 1.0 + (n - 60) as f64 / 50.0 })).value, None);
    }

    #[test]
    fn a_cache_takes_as_much_again_after_a_rest_and_what_comes_at_the_same_place_is_none() {
        let fill =
            |fast: usize, windows: usize| filled((0..windows).map(|n| (if n < fast { 500.0 } else { 200.0 }, 1.0)));
        let twice = |fast: usize, again: usize| {
            let first = filled_once(&fill(fast, 200));
            assert_eq!(first.bytes.verdict, Verdict::Certain);
            let rest = fill(again, 200 - fast / 2);
            let mut draft = ProfileDraft::default();
            let both = first.read_off_again((&rest, ByteSize::mib(1)), buffer(), "fill", &mut draft);
            assert!(both.bytes.value.is_some());
            both.bytes.verdict
        };
        assert_eq!(twice(60, 60), Verdict::Certain);
        assert_eq!(twice(60, 30), Verdict::Inconclusive, "at the same place");
        assert_eq!(twice(60, 170), Verdict::Inconclusive, "not at all");
        assert_eq!(twice(150, 125), Verdict::Certain, "the drive ends before");
        assert_eq!(twice(150, 75), Verdict::Inconclusive);
    }

    #[test]
    fn one_late_window_is_no_stall() {
        let late = |n: u32| (if n == 60 { 100.0 } else { 500.0 + f64::from(n % 3) }, 1.0);
        assert_eq!(told(&filled((0..200).map(late))).verdict, Verdict::Absent);
    }
}
