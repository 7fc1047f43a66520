//! What was published, in numbers.
//!
//! Sources: *slides*: M. Athanassoulis, *Asymmetry & Concurrency Aware Storage Management*, CS 561, Boston University;
//! *abstract*: that of the ICDE 2023 paper; *plots*: the data of figures 7 and 8 in the authors' repository
//! `BU-DiSC/parametric_io`, folder `Example_Plots`.

/// Run times of figure 7, s: classic and COW-X, for MS, WIS, RIS and MU.
pub(super) struct Times {
    /// The policy's name as in `POLICIES`.
    pub(super) policy: &'static str,
    pub(super) classic: [f64; 4],
    pub(super) ace: [f64; 4],
}

/// *Plots*, figure 7. Clock Sweep is not among them.
pub(super) const FIGURE_7: [Times; 3] = [
    Times { policy: "LRU", classic: [349.0, 475.0, 177.0, 396.0], ace: [245.0, 284.0, 147.0, 307.0] },
    Times { policy: "CFLRU", classic: [301.0, 449.0, 152.0, 441.0], ace: [203.0, 283.0, 112.0, 277.0] },
    Times { policy: "LRU-WSR", classic: [290.0, 383.0, 165.0, 401.0], ace: [185.0, 212.0, 138.0, 259.0] },
];

/// Time that COW-X saves in figure 7, per cent.
pub(super) fn saved(policy: &str, workload: usize) -> Option<f64> {
    let times = FIGURE_7.iter().find(|times| times.policy == policy)?;
    Some(100.0 * (1.0 - times.ace[workload] / times.classic[workload]))
}

/// *Plots*, figure 8/h: α, and the cost that is left of the classic one.
pub(super) const FIGURE_8H: [(u64, f64); 4] = [(1, 1.0), (2, 0.72), (4, 0.46), (8, 0.27)];

/// *Slides*: least time saved, per cent, for MS, WIS, RIS and MU with α = 3 and k_w = 8.
pub(super) const SAVED_LEAST: [f64; 4] = [20.0, 30.0, 5.0, 10.0];
/// *Slides*: most of RIS, "5-15 %".
pub(super) const RIS_MOST: f64 = 15.0;
/// *Slides*: most time saved with α = 1.5, per cent.
pub(super) const SATA_MOST: f64 = 20.0;
/// *Slides*: most time ÷ time with ACE, for write-heavy workloads.
pub(super) const SPEEDUP: f64 = 1.75;
/// *Slides*: most misses beyond those of the classic pool, per cent.
pub(super) const MISSES_MORE: f64 = 0.004;
/// *Abstract*: most time saved on mixed workloads, per cent.
pub(super) const MIXED_MOST: f64 = 32.1;
/// *Abstract*: most time saved on write-intensive transactions of TPC-C, per cent.
pub(super) const TPCC_MOST: f64 = 33.8;
