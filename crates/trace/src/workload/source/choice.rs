//! One entry of a weighted list, in constant time.

use std::hint::select_unpredictable;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// An alias table (Walker 1977; built as in Vose, "A Linear Algorithm for Generating Random Numbers with a Given
/// Distribution", IEEE TSE 17(9), 1991): each column is shared by at most two entries, so that one draw picks the
/// column with its high bits and the entry with its low bits.
#[derive(Debug)]
pub(super) struct Choice {
    columns: Box<[Column]>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// Draws below pick the column's own entry, the others its alias.
    own_below: u64,
    alias: u32,
}

impl Choice {
    /// A choice by `weights`: finite, none negative, with a sum above 0. Entries without weight are never chosen.
    pub(super) fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        let mut share: Vec<f64> = weights.iter().map(|w| w / sum * weights.len() as f64).collect();
        let heaviest = (0..weights.len()).fold(0, |best, i| if weights[i] > weights[best] { i } else { best });
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..share.len()).partition(|&i| share[i] < 1.0);
        let full = |i: usize| Column { own_below: u64::MAX, alias: i as u32 };
        let mut columns: Box<[Column]> = (0..share.len()).map(full).collect();
        while let Some(lesser) = small.pop() {
            // Without a larger one left only rounding errors remain: the column is full, or has no weight at all.
            let Some(&greater) = large.last() else {
                if weights[lesser] == 0.0 {
                    columns[lesser] = Column { own_below: 0, alias: heaviest as u32 };
                }
                continue;
            };
            columns[lesser] = Column { own_below: (share[lesser] * 2f64.powi(64)) as u64, alias: greater as u32 };
            share[greater] -= 1.0 - share[lesser];
            if share[greater] < 1.0 {
                large.pop();
                small.push(greater);
            }
        }
        Self { columns }
    }

    /// The index of an entry.
    #[inline]
    pub(super) fn draw(&self, random: &mut Pcg64Mcg) -> usize {
        let product = u128::from(random.next_u64()) * self.columns.len() as u128;
        let own = (product >> 64) as usize;
        let column = self.columns[own];
        select_unpredictable((product as u64) < column.own_below, own, column.alias as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::stream;
    use super::*;
    use proptest::prelude::*;

    fn counts(weights: &[f64], draws: u32) -> Vec<u32> {
        let (choice, mut random) = (Choice::new(weights), stream(3, 0));
        let mut counts = vec![0; weights.len()];
        (0..draws).for_each(|_| counts[choice.draw(&mut random)] += 1);
        counts
    }

    #[test]
    fn a_single_entry_is_always_chosen() {
        assert_eq!(counts(&[0.3], 100), [100]);
    }

    proptest! {
        #[test]
        fn entries_are_chosen_as_often_as_they_weigh(weights in prop::collection::vec(0_u32..1000, 1..20)) {
            prop_assume!(weights.iter().any(|&w| w > 0));
            let draws = 20_000;
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let sum: f64 = weights.iter().sum();
            for (count, weight) in counts(&weights, draws).into_iter().zip(&weights) {
                let p = weight / sum;
                let deviation = (f64::from(draws) * p * (1.0 - p)).sqrt();
                prop_assert!((f64::from(count) - f64::from(draws) * p).abs() <= 6.0 * deviation, "{count} of {p}");
            }
        }
    }
}
