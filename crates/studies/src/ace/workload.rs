//! The text's four workloads, and the scale at which they are run.

use flashwise_bufferpool::{Access, Page};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::statistics::Repetition;

/// Pages of the file in the runs whose times are published: 1.3 GiB of 4 KiB pages.
const FILE_PAGES: u32 = 344_066;
/// Frames of the pool in those runs, 5.8 % of the file.
const POOL_FRAMES: u32 = 20_000;
/// Accesses of one of those runs.
const ACCESSES: u32 = 2_000_000;

/// How large a run is, and how often it is repeated with other seeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// File, pool and run are so many times smaller than the text's, all three alike.
    pub(super) divisor: u32,
    /// Half of an interval is to be within this share of the mean.
    pub(super) repetition: Repetition,
}

impl Conditions {
    pub(super) fn pages(&self) -> usize {
        (FILE_PAGES / self.divisor) as usize
    }

    pub(super) fn frames(&self) -> usize {
        (POOL_FRAMES / self.divisor) as usize
    }

    pub(super) fn accesses(&self) -> usize {
        (ACCESSES / self.divisor) as usize
    }

    /// In words, such as "344,066 pages".
    pub(super) fn words(&self) -> String {
        let grouped = |n: usize| flashwise_block::grouped(n as u64);
        let (pages, frames, accesses) = (grouped(self.pages()), grouped(self.frames()), grouped(self.accesses()));
        let scale = if self.divisor == 1 { "as in the text" } else { "as in the paper" };
        format!("{accesses} accesses to a file of {pages} 4 KiB pages, a pool of {frames} ({scale})")
    }
}

/// Which pages are asked for, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Share of the accesses that write.
    pub(super) writes: f64,
    /// Share of the accesses that go to the first pages of the file.
    pub(super) hot_accesses: f64,
    /// Share of the pages that these are.
    pub(super) hot_pages: f64,
    /// Pages that are asked for one after the other; the text's workloads have 1.
    pub(super) run_length: u32,
}

const fn skewed(name: &'static str, writes: f64) -> Workload {
    Workload { name, writes, hot_accesses: 0.9, hot_pages: 0.1, run_length: 1 }
}

/// Mixed, skewed.
pub(super) const MS: Workload = skewed("MS", 0.5);
/// Write-intensive, skewed.
pub(super) const WIS: Workload = skewed("WIS", 0.9);
/// Read-intensive, skewed.
pub(super) const RIS: Workload = skewed("RIS", 0.1);
/// Mixed, uniform.
pub(super) const MU: Workload = Workload { hot_accesses: 1.0, hot_pages: 1.0, ..skewed("MU", 0.5) };

/// In the order of the text.
pub(super) const WORKLOADS: [Workload; 4] = [MS, WIS, RIS, MU];

impl Workload {
    /// The accesses of one run.
    pub(super) fn accesses(&self, conditions: &Conditions, seed: u64) -> Vec<Access> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let pages = conditions.pages() as u32;
        let hot = ((f64::from(pages) * self.hot_pages) as u32).clamp(1, pages);
        let mut accesses = Vec::with_capacity(conditions.accesses());
        while accesses.len() < conditions.accesses() {
            let is_hot = hot == pages || random.random::<f64>() < self.hot_accesses;
            let first = if is_hot { random.random_range(0..hot) } else { random.random_range(hot..pages) };
            let is_write = random.random::<f64>() < self.writes;
            let run = (first..pages).take(self.run_length as usize);
            accesses.extend(run.map(|page| Access::new(Page(page), is_write)));
        }
        accesses.truncate(conditions.accesses());
        accesses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_has_the_shares_that_it_names() {
        let conditions =
            Conditions { divisor: 10, repetition: Repetition { runs_min: 1, runs_max: 1, error_max: 1.0 } };
        let hot = conditions.pages() / 10;
        for workload in WORKLOADS {
            let accesses = workload.accesses(&conditions, 7);
            let share = |is: &dyn Fn(&Access) -> bool| {
                accesses.iter().filter(|&access| is(access)).count() as f64 / accesses.len() as f64
            };
            let hot_share = if workload.hot_pages == 1.0 { 0.1 } else { 0.9 };
            assert!((share(&|access| access.is_write()) - workload.writes).abs() < 0.01, "{workload:?}");
            assert!((share(&|access| (access.page().0 as usize) < hot) - hot_share).abs() < 0.01, "{workload:?}");
        }
    }

    #[test]
    fn runs_of_pages_stay_in_the_file() {
        let repetition = Repetition { runs_min: 1, runs_max: 1, error_max: 1.0 };
        let conditions = Conditions { divisor: 1000, repetition };
        let accesses = Workload { run_length: 8, ..RIS }.accesses(&conditions, 1);
        assert_eq!(accesses.len(), conditions.accesses());
        assert!(accesses.iter().all(|access| (access.page().0 as usize) < conditions.pages()));
        let follows = accesses.windows(2).filter(|pair| pair[1].page().0 == pair[0].page().0 + 1).count();
        assert!(follows * 10 > accesses.len() * 8, "{follows} of {}", accesses.len());
    }
}
