//! Placement by time of death: a pure model of a drive's slots and blocks, and algorithms for it.
//!
//! # The model
//! A drive has *M* blocks of *B* slots, and *U* logical pages are on it. A slot is *clean*, *valid* (it holds the
//! newest version of a page) or *invalid*. Writing a page takes a clean slot of any block and makes the page's older
//! slot invalid. A block is erased as a whole, and only when it holds no valid page: those are moved to clean slots
//! first. Each move is a *rewrite*. The aim is few rewrites in *n* writes; write amplification is (*n* + rewrites) ÷
//! *n*. There is no other memory: a page that is moved needs a slot to go to. Time is counted in writes, and nothing
//! takes time.
//!
//! The *death* of what a write writes is the next write of the same page. Pages that die together should are together.
//!
//! ```text
//!   Workload ──▶ trace of pages ──▶ deaths ──▶ PredictionError ──▶ predictions
//!                     │               │                               │
//!                     ▼               ▼                               ▼
//!                  Greedy, TwoR    NoDaP, Offline                  Online          what each is told
//!                     └───────────────┴──── steps of Drive ───────────┴──▶ Counts
//! ```
//!
//! | algorithm | knows | rewrites |
//! |---|---|---|
//! | [`Greedy`] | nothing | at most `v*·(1 + ⌊n ÷ (B − v*)⌋)`, `v* = ⌊U ÷ (M − 1)⌋` |
//! | [`TwoR`] | what was moved | no bound is known here |
//! | [`NoDaP`] | all deaths | no bound; groups tried out |
//! | [`Offline`] | all deaths | at most Σ level, below `U·n ÷ ((f − 1)·L)`: little against *n* when *M* is large |
//! | [`Online`] | predictions | at most greedy's bound + *B*, whatever the predictions |
//!
//! Each bound is proved in its algorithm's module and tested against [`least_rewrites`], which tries everything.
//!
//! # Source
//! T. Lange, J. Naor, G. Yadgar: "Offline and Online Algorithms for SSD Management", Proc. ACM Meas. Anal. Comput.
//! Syst. 5(3) (SIGMETRICS), 2021; CACM 66(7), 2023. The model and what is claimed are from the abstracts; the full text
//! was not at hand, so algorithms, bounds and proofs are derived here and say so.
//!
//! # Adding an algorithm
//!
//! A file here with a type behind [`Algorithm`], its bound proved in its head and tried in `tests.rs`; a line below; a
//! column in the table of the study `death-time`.

mod adversary;
mod drive;
mod error;
mod frontier;
mod future;
mod greedy;
mod nodap;
mod offline;
mod online;
mod optimum;
mod run;
mod shape;
#[cfg(test)]
mod tests;
mod two_r;
mod wheel;
mod workload;

pub use adversary::play as play_adversary;
pub use drive::{Counts, Drive};
pub use error::DeathTimeError;
pub use future::{NEVER, PredictionError, deaths};
pub use greedy::Greedy;
pub use nodap::{NoDaP, search as search_nodap};
pub use offline::Offline;
pub use online::Online;
pub use optimum::least_rewrites;
pub use run::{Algorithm, Run, run, run_part};
pub use shape::Shape;
pub use two_r::TwoR;
pub use wheel::Wheel;
pub use workload::Workload;
