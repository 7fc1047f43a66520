//! What was published, in numbers.
//!
//! Source: G. Haas et al., *SSD-iq: Uncovering the Hidden Side of SSD Performance*, PVLDB 18(11), 2025, the data of its
//! simulator in the authors' repository `gabriel-haas/ssdiq-pub`, `paper/plotzone.csv`. That the curves against skew
//! are of a fill of 0.875 is inferred from the uniform ones.

/// Write amplification with a share of the writes on the rest of the pages.
pub(super) struct Skew {
    pub(super) name: &'static str,
    /// Share of the writes that go to `1 − traffic` of the pages; `None` is uniform.
    pub(super) traffic: Option<f64>,
    pub(super) greedy: f64,
    pub(super) two_r_fifo: f64,
    pub(super) optimal: f64,
}

pub(super) const SKEWS: [Skew; 5] = [
    Skew { name: "uniform", traffic: None, greedy: 4.17, two_r_fifo: 4.19, optimal: 4.17 },
    Skew { name: "70/30", traffic: Some(0.7), greedy: 4.30, two_r_fifo: 4.18, optimal: 3.63 },
    Skew { name: "80/20", traffic: Some(0.8), greedy: 4.52, two_r_fifo: 4.12, optimal: 2.94 },
    Skew { name: "90/10", traffic: Some(0.9), greedy: 5.11, two_r_fifo: 2.51, optimal: 1.99 },
    Skew { name: "95/5", traffic: Some(0.95), greedy: 5.90, two_r_fifo: 2.06, optimal: 1.44 },
];

/// Fill, and greedy's write amplification under uniform writes.
pub(super) const FILLS: [(f64, f64); 7] =
    [(0.5, 1.25), (0.6, 1.48), (0.7, 1.87), (0.75, 2.20), (0.8, 2.69), (0.85, 3.51), (0.9, 5.17)];
