//! Analytic models of the steady-state cost of garbage collection.
//!
//! Two uses: the simulator (`flashwise-sim`) is checked against them, and a drive can be put directly into the state
//! that a long random overwrite would lead to ([`ValidCountDistribution`]).
//!
//! # Words
//! - *fill* `rho`: logical pages ÷ physical pages. For a finite drive, take the sealed blocks alone
//!   ([`fill_of_sealed`]): free blocks give no space to invalid pages.
//! - *block size* `b`: pages of a block (of a superblock, where the drive collects superblocks).
//! - *write amplification*: pages programmed ÷ pages the host wrote.
//! - *frontier*: an open block that pages are appended to.
//!
//! # Which function
//!
//! | traffic | block | function |
//! |---|---|---|
//! | uniform | FIFO at any `b`, greedy at large `b` | [`write_amplification_fifo`], [`write_amplification_greedy`] |
//! | uniform | any policy at any `b` | [`mean_field`] |
//! | zones, blocks mixed | FIFO at any `b` | [`write_amplification_fifo_zones`] |
//! | zones, blocks mixed, one frontier | any policy at any `b` | [`mean_field_zones`] |
//! | zones, each in its own blocks | large `b` | [`write_amplification_separated`] |
//!
//! # Sources
//! - P. Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, and "Analytic Models of SSD Write
//!   Performance", ACM TOS 10(2), 2014: the LRU (FIFO) fixed point, greedy at finite block size, hot and cold data.
//! - B. Van Houdt, "A Mean Field Model for a Class of Garbage Collection Algorithms in Flash-based Solid State
//!   Drives", SIGMETRICS 2013: the mean field, `d`-choices (here [`Policy::RandomGreedy`]).
//! - B. Van Houdt, "On the Necessity of Hot and Cold Data Identification to Reduce the Write Amplification in
//!   Flash-based SSDs", Performance Evaluation 82, 2014: hot and cold data, single and double write frontier.
//! - Y. Li, P. Lee, J. Lui, "Stochastic Modeling of Large-Scale Solid-State Storage Systems", SIGMETRICS 2013:
//!   `d`-choices found independently.
//! - X.-Y. Hu et al., "Write Amplification Analysis in Flash-Based Solid State Drives", SYSTOR 2009: windowed greedy.
//! - W. Bux, I. Iliadis, "Performance of Greedy Garbage Collection in Flash-Based Solid-State Drives", Performance
//!   Evaluation 67(11), 2010: greedy tends to FIFO as blocks grow.
//! - J. Robinson, "Analysis of Steady-State Segment Storage Utilizations in a Log-Structured File System with
//!   Least-Utilized Segment Cleaning", ACM SIGOPS OSR 30(4), 1996: the same for segments.
//! - L. Xiang, B. Kurkoski, "An Improved Analytic Expression for Write Amplification in NAND Flash", ICNC 2012: the
//!   form with Lambert's W.
//! - Y. Yang, J. Zhu, "Algebraic Modeling of Write Amplification in Hotness-Aware SSD", SYSTOR 2015: a share of the
//!   reserve for each zone.
//!
//! The modules derive the equations independently; where a source gives numbers, a test compares them with ours.
//!
//! # Limits
//! The mean field is the limit of infinitely many blocks: with `N` blocks expect a relative error of the order of `1/N`
//! once the fill is that of the sealed blocks. Trimmed pages are outside the model; use the remaining fill.
//!
//! # Example
//! ```
//! use flashwise_theory::{Policy, mean_field, write_amplification_greedy};
//!
//! let finite = mean_field(0.8, 1024, Policy::Greedy)?.write_amplification;
//! assert!((finite / write_amplification_greedy(0.8) - 1.0).abs() < 0.05);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod closed_form;
mod distribution;
mod lambert;
mod mean_field;
mod numeric;
mod queue;
mod zones;

pub use closed_form::{
    fill_of_sealed, write_amplification_fifo, write_amplification_fifo_zones, write_amplification_greedy,
    write_amplification_random, write_amplification_separated,
};
pub use distribution::{ValidCountDistribution, valid_count_distribution};
pub use lambert::lambert_w0;
pub use mean_field::mean_field;
pub use queue::{waiting_md1, waiting_mg1, waiting_mm1};
pub use zones::{ZonedSteadyState, mean_field_zones};

/// How the block to be collected is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The block with the fewest valid pages.
    Greedy,
    /// The block with the fewest valid pages among `d` drawn at random; also called d-choices.
    RandomGreedy {
        /// How many are drawn.
        d: u32,
    },
    /// A block drawn at random.
    Random,
    /// The block sealed first; also called LRU.
    Fifo,
    /// The block with the fewest valid pages among the oldest.
    WindowedGreedy {
        /// Share of the sealed blocks that counts as the oldest, from 0 (FIFO) to 1 (greedy).
        share: f64,
    },
}

/// A part of the logical pages that is written uniformly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Its share of the logical pages.
    pub size: f64,
    /// Its share of the host's writes.
    pub traffic: f64,
}

/// The long run of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// Pages programmed ÷ pages the host wrote.
    pub write_amplification: f64,
    /// Share of the sealed blocks that hold `i` valid pages, for `i` from 0 to `b`.
    pub valid_counts: Vec<f64>,
    /// Share of the collected blocks that held `i` valid pages, for `i` from 0 to `b`.
    pub victim_counts: Vec<f64>,
}

impl SteadyState {
    /// Valid pages of a sealed block, on average.
    pub fn mean_valid(&self) -> f64 {
        numeric::mean(&self.valid_counts)
    }

    /// Valid pages of a collected block, on average.
    pub fn mean_victim(&self) -> f64 {
        numeric::mean(&self.victim_counts)
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TheoryError {
    /// The fill is not between 0 and 1.
    #[error("fill = {0}: must be above 0 and below 1")]
    Fill(f64),
    /// A block without pages.
    #[error("a block must have at least one page")]
    BlockSize,
    /// Nothing is drawn.
    #[error("random greedy must draw at least one block")]
    Choices,
    /// The window is not a share.
    #[error("window = {0}: must be a share from 0 to 1")]
    Window(f64),
    /// Not shares, or do not sum to one.
    #[error("zones must have positive sizes and positive traffic, each summing to 1")]
    Zones,
    /// The iteration did not settle.
    #[error("no steady state found to the requested accuracy")]
    NotConverged,
}

fn check(rho: f64, b: u32, policy: Policy) -> Result<(), TheoryError> {
    if !(rho > 0.0 && rho < 1.0) {
        return Err(TheoryError::Fill(rho));
    }
    if b == 0 {
        return Err(TheoryError::BlockSize);
    }
    match policy {
        Policy::RandomGreedy { d: 0 } => Err(TheoryError::Choices),
        Policy::WindowedGreedy { share } if !(0.0..=1.0).contains(&share) => Err(TheoryError::Window(share)),
        _ => Ok(()),
    }
}

fn check_zones(zones: &[Zone]) -> Result<(), TheoryError> {
    let positive = zones.iter().all(|zone| zone.size > 0.0 && zone.traffic > 0.0);
    let sum_to_one = |share: fn(&Zone) -> f64| (zones.iter().map(share).sum::<f64>() - 1.0).abs() < 1e-9;
    let whole = sum_to_one(|zone| zone.size) && sum_to_one(|zone| zone.traffic);
    if positive && whole { Ok(()) } else { Err(TheoryError::Zones) }
}
