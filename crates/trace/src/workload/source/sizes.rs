//! How long the next request is.

use rand_pcg::Pcg64Mcg;

use super::Drive;
use super::choice::Choice;
use super::random::{below, unit};
use super::span::Lengths;
use crate::workload::check::FlowChecker;
use crate::workload::{Size, WeightedSize, WorkloadError};

/// Draws further from the mean are taken as so many deviations.
const MAX_DEVIATIONS: f64 = 4.0;

/// Draws lengths, bytes.
#[derive(Debug)]
pub(super) enum Sizes {
    Fixed(u64),
    /// From `shortest` in `steps` steps of one logical block.
    Uniform {
        shortest: u64,
        steps: u64,
        block: u64,
    },
    Normal(Normal),
    Weighted {
        choice: Choice,
        bytes: Box<[u64]>,
    },
}

impl Sizes {
    pub(super) fn new(
        place: &str,
        size: &Size,
        checker: &FlowChecker<'_>,
        drive: Drive,
    ) -> Result<Self, WorkloadError> {
        let block = drive.logical_block;
        let key = |name: &str| format!("{place}.{name}");
        match size {
            &Size::Fixed { bytes } => {
                drive.whole_blocks(checker, &key("fixed.bytes"), bytes)?;
                Ok(Self::Fixed(bytes))
            }
            &Size::Uniform { min_bytes, max_bytes } => {
                drive.whole_blocks(checker, &key("uniform.min_bytes"), min_bytes)?;
                drive.whole_blocks(checker, &key("uniform.max_bytes"), max_bytes)?;
                Ok(Self::Uniform { shortest: min_bytes, steps: (max_bytes - min_bytes) / block + 1, block })
            }
            &Size::Normal { mean_bytes, deviation_bytes } => {
                Ok(Self::Normal(Normal::new(mean_bytes, deviation_bytes, block)))
            }
            Size::Weighted(sizes) => Self::weighted(place, sizes, checker, drive),
        }
    }

    fn weighted(
        place: &str,
        sizes: &[WeightedSize],
        checker: &FlowChecker<'_>,
        drive: Drive,
    ) -> Result<Self, WorkloadError> {
        for (i, size) in sizes.iter().enumerate() {
            drive.whole_blocks(checker, &format!("{place}.weighted[{i}].bytes"), size.bytes)?;
        }
        let weights: Vec<f64> = sizes.iter().map(|size| size.weight).collect();
        Ok(Self::Weighted { choice: Choice::new(&weights), bytes: sizes.iter().map(|size| size.bytes).collect() })
    }

    /// What room the requests need.
    pub(super) fn lengths(&self) -> Lengths {
        Lengths { longest: self.longest(), varies: !matches!(self, Self::Fixed(_)) }
    }

    fn longest(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { shortest, steps, block } => shortest + (steps - 1) * block,
            Self::Normal(normal) => normal.longest.saturating_mul(normal.block),
            Self::Weighted { bytes, .. } => bytes.iter().copied().max().unwrap_or(0),
        }
    }

    #[inline]
    pub(super) fn draw(&mut self, random: &mut Pcg64Mcg) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform { shortest, steps, block } => *shortest + below(random, *steps) * *block,
            Self::Normal(normal) => normal.draw(random),
            Self::Weighted { choice, bytes } => bytes[choice.draw(random)],
        }
    }
}

/// Normally distributed lengths by the polar method (Marsaglia and Bray, "A Convenient Method for Generating Normal
/// Variables", SIAM Review 6(3), 1964), which gives two draws at a time.
#[derive(Debug)]
pub(super) struct Normal {
    /// Mean, in logical blocks.
    mean: f64,
    /// Standard deviation, in logical blocks.
    deviation: f64,
    /// Longest length, in logical blocks.
    longest: u64,
    /// Bytes of a logical block.
    block: u64,
    /// The second draw of the last two, not yet used.
    spare: Option<f64>,
}

impl Normal {
    fn new(mean_bytes: u64, deviation_bytes: u64, block: u64) -> Self {
        let (mean, deviation) = (mean_bytes as f64 / block as f64, deviation_bytes as f64 / block as f64);
        let longest = ((mean + MAX_DEVIATIONS * deviation + 0.5) as u64).max(1);
        Self { mean, deviation, longest, block, spare: None }
    }

    #[inline]
    fn draw(&mut self, random: &mut Pcg64Mcg) -> u64 {
        let deviations = self.standard(random).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS);
        let blocks = (self.mean + deviations * self.deviation + 0.5) as u64;
        blocks.clamp(1, self.longest) * self.block
    }

    #[inline]
    fn standard(&mut self, random: &mut Pcg64Mcg) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * unit(random) - 1.0, 2.0 * unit(random) - 1.0);
            let radius = x * x + y * y;
            if radius > 0.0 && radius < 1.0 {
                let factor = (-2.0 * libm::log(radius) / radius).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::stream;
    use super::*;

    fn drawn(size: &Size, draws: usize) -> Vec<u64> {
        let drive = Drive { capacity: 1 << 30, logical_block: 512 };
        let mut sizes = Sizes::new("size", size, &FlowChecker { flow: "f" }, drive).unwrap();
        let mut random = stream(5, 0);
        (0..draws).map(|_| sizes.draw(&mut random)).inspect(|&length| assert!(length <= sizes_longest(size))).collect()
    }

    fn sizes_longest(size: &Size) -> u64 {
        let drive = Drive { capacity: 1 << 30, logical_block: 512 };
        Sizes::new("size", size, &FlowChecker { flow: "f" }, drive).unwrap().longest()
    }

    #[test]
    fn uniform_lengths_reach_both_ends_evenly() {
        let lengths = drawn(&Size::Uniform { min_bytes: 512, max_bytes: 4096 }, 80_000);
        for blocks in 1..=8 {
            let count = lengths.iter().filter(|&&length| length == blocks * 512).count();
            assert!(count.abs_diff(10_000) < 500, "{blocks} blocks: {count}");
        }
    }

    #[test]
    fn normal_lengths_have_their_mean_and_deviation_in_whole_blocks() {
        let lengths = drawn(&Size::Normal { mean_bytes: 65_536, deviation_bytes: 8192 }, 100_000);
        assert!(lengths.iter().all(|length| length % 512 == 0));
        let mean = lengths.iter().sum::<u64>() as f64 / 1e5;
        let variance = lengths.iter().map(|&length| (length as f64 - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 65_536.0).abs() < 150.0, "{mean}");
        assert!((variance.sqrt() - 8192.0).abs() < 120.0, "{}", variance.sqrt());
    }

    #[test]
    fn a_normal_length_is_at_least_one_block_and_at_most_four_deviations_away() {
        let lengths = drawn(&Size::Normal { mean_bytes: 1000, deviation_bytes: 10_000 }, 50_000);
        assert_eq!(lengths.iter().min(), Some(&512));
        assert!(*lengths.iter().max().unwrap() <= 41_472);
        let constant = drawn(&Size::Normal { mean_bytes: 4096, deviation_bytes: 0 }, 10);
        assert_eq!(constant, [4096; 10]);
    }

    #[test]
    fn weighted_lengths_come_by_their_weights() {
        let of = |bytes, weight| WeightedSize { bytes, weight };
        let lengths = drawn(&Size::Weighted(vec![of(4096, 70.0), of(8192, 0.0), of(65_536, 30.0)]), 100_000);
        let count = |bytes| lengths.iter().filter(|&&length| length == bytes).count();
        assert!(count(4096).abs_diff(70_000) < 900 && count(8192) == 0, "{} {}", count(4096), count(8192));
        assert_eq!(count(4096) + count(65_536), 100_000);
    }
}
