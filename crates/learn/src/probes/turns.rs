//! Places of a drive that repeat with an odd number of steps.
//!
//! Bases of sweeps are multiples of a mebibyte. What repeats with a power of two repeats in the window itself; a chunk
//! of 12 KiB starts behind each base in another phase, and the window shows the mean of them. So the same reads are
//! examined once more, by where they started on the drive, as if places a *turn* apart were the same:
//!
//! ```text
//!   on the drive   0 ........ 1 MiB ........ 2 MiB ........ 3 MiB
//!   window         |..........|0 1 2 3 4 ... |                       256 starts; 12 KiB do not divide them
//!   turn           |0 1 2 ... 191|0 1 2 ... 191|0 1 2 ...            192 places; 3 steps divide them, and 6, 12, 24 and 48
//! ```
//!
//! Only what repeats with an odd number of steps is taken from there. Rows of pages of several speeds make periods of
//! their own; and which neighbours are of one sort may repeat although single reads do not, so what is found by turns
//! among pages of several speeds is not certain.
//!
//! The odd factors are those that hardware has: cells of three bits make rows of three pages, four-bit cells and two
//! planes of three more of them, and parity leaves an odd number of members.

use rand_pcg::Pcg64Mcg;

use super::sweep::{Effect, OF_PAGES_SHARE, Swept, turn_of_period};
use crate::stats::{best_period, explained};

/// Odd factors of periods that are looked for.
const ODD: [u64; 3] = [3, 5, 7];

/// The sweeps by the first turn in which any of them repeats with an odd number of steps, with the effects of those
/// that do; the first sweep is that of single reads. What single reads repeat with as well is rows of pages of several
/// speeds, and no chunk.
pub(super) fn show_more(sweeps: &[Swept], random: &mut Pcg64Mcg) -> Option<(Vec<Swept>, Vec<Option<Effect>>)> {
    ODD.into_iter().map(|odd| by_turn(sweeps, odd, random)).find(|(_, effects)| effects.iter().any(Option::is_some))
}

fn by_turn(sweeps: &[Swept], odd: u64, random: &mut Pcg64Mcg) -> (Vec<Swept>, Vec<Option<Effect>>) {
    let turned = sweeps.iter().fold(Vec::<Swept>::with_capacity(sweeps.len()), |mut turned, swept| {
        let turn = turn_of_period(swept.sweep.step * odd, swept.sweep.window);
        turned.push(swept.turned(turn, turned.first()));
        turned
    });
    let effect = |swept: &Swept| {
        let (period, _) = best_period(&swept.levels());
        let is_of_pages = explained(&turned[0].levels(), period) >= OF_PAGES_SHARE;
        if !(period as u64).is_multiple_of(odd) || is_of_pages {
            return None;
        }
        // Each turn is one more chance to see what is not there.
        let Effect { share, p } = swept.effect(random)?;
        Some(Effect { share, p: (p * (1 + ODD.len()) as f64).min(1.0) })
    };
    let effects = std::iter::once(None).chain(turned[1..].iter().map(effect)).collect();
    (turned, effects)
}

#[cfg(test)]
mod tests {
    use super::super::sweep::Sweep;
    use super::*;
    use flashwise_block::ByteSize;
    use rand::{RngExt, SeedableRng};

    const STEP: ByteSize = ByteSize::kib(4);

    /// Reads that start anywhere in the first fifteen mebibytes of a drive on which a start takes so long.
    fn swept(read: u64, latency: impl Fn(u64) -> u64) -> Swept {
        let mut random = Pcg64Mcg::seed_from_u64(read);
        let window = ByteSize::mib(1);
        let sweep =
            Sweep { read: STEP * read, step: STEP, window, turn: window, reads_a_start: 40, smallest_effect: 0.02 };
        let mut samples = |at: u64| (0..3).map(|_| latency(at) + random.random_range(0..6_000)).collect();
        Swept::of_starts(sweep, (0..15 * 256).map(&mut samples).collect(), None)
    }

    fn periods(sweeps: &[Swept]) -> Option<Vec<Option<usize>>> {
        let (turned, effects) = show_more(sweeps, &mut Pcg64Mcg::seed_from_u64(1))?;
        let period = |(swept, effect): (&Swept, &Option<Effect>)| effect.map(|_| best_period(&swept.levels()).0);
        Some(turned.iter().zip(&effects).map(period).collect())
    }

    #[test]
    fn a_turn_is_the_longest_that_fits() {
        let turn = |kib| turn_of_period(ByteSize::kib(kib), ByteSize::mib(1));
        assert_eq!((turn(12), turn(20), turn(64)), (ByteSize::kib(768), ByteSize::kib(640), ByteSize::mib(1)));
        assert_eq!(turn(1536), ByteSize::kib(1536), "what is longer than the window is its own turn");
    }

    #[test]
    fn a_chunk_of_an_odd_number_of_blocks_shows_by_its_turn_and_not_in_the_window() {
        for blocks in [3, 5, 6, 14, 24] {
            let across = move |at: u64| if at % blocks == blocks - 1 { 60_000 } else { 70_000 };
            let sweeps = [swept(1, |_| 60_000), swept(2, across)];
            assert_ne!(best_period(&sweeps[1].levels()).0 as u64, blocks);
            assert_eq!(periods(&sweeps), Some(vec![None, Some(blocks as usize)]), "{blocks}");
        }
    }

    #[test]
    fn a_chunk_of_a_power_of_two_has_no_odd_turn() {
        for blocks in [2, 4, 16, 32, 64] {
            let across = move |at: u64| if at % blocks == blocks - 1 { 60_000 } else { 70_000 };
            assert_eq!(periods(&[swept(1, |_| 60_000), swept(2, across)]), None, "{blocks}");
            let shared = move |at: u64| 70_000 - 10_000 * (at % blocks).min(blocks - at % blocks) / blocks;
            assert_eq!(periods(&[swept(1, |_| 60_000), swept(blocks, shared)]), None, "{blocks}");
        }
    }

    #[test]
    fn rows_of_pages_of_several_speeds_are_no_chunk() {
        let row = |at: u64| if at / 2 % 3 == 2 { 90_000 } else { 60_000 };
        let sweeps = [swept(1, row), swept(2, |at| row(at).max(row(at + 1)))];
        assert_eq!(periods(&sweeps), None);
    }

    #[test]
    fn noise_has_no_turn() {
        assert_eq!(periods(&[swept(1, |_| 60_000), swept(2, |_| 70_000), swept(4, |_| 80_000)]), None);
    }
}
