//! How long one generated request takes, for each kind of workload.
//!
//! ```console
//! $ cargo run --release -p flashwise-trace --example generate
//! ```

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use flashwise_block::ByteSize;
use flashwise_trace::workload::{
    Access, Arrivals, Flow, FlowSource, Pacing, Size, Synthetic, WeightedSize, WorkloadError, Zone,
};

const REQUESTS: u64 = 200_000;
const PASSES: u32 = 200;
const CLOSED: Pacing = Pacing::Closed { queue_depth: 32, think_ns: 0 };

fn main() -> Result<(), WorkloadError> {
    let fixed = || Size::fixed(4096);
    let writes = |access| Synthetic::new(access, fixed(), CLOSED);
    let sizes = |size| Synthetic::new(Access::Random, size, CLOSED);
    let open = |arrivals| Pacing::Open { interarrival_ns: 10_000, arrivals };
    let zones = vec![Zone { size: 0.1, traffic: 0.9 }, Zone { size: 0.9, traffic: 0.1 }];
    let weighted = [4096, 8192, 65_536].map(|bytes| WeightedSize { bytes, weight: 1.0 }).to_vec();
    let kinds = [
        ("sequential", writes(Access::Sequential)),
        ("random", writes(Access::Random)),
        ("random, 70 % reads", Synthetic { read_share: 0.7, ..writes(Access::Random) }),
        ("hot-cold 10/90", writes(Access::HotCold { zones, shuffled: false })),
        ("zipf 0.99", writes(Access::Zipf { theta: 0.99 })),
        ("zipf 1.2", writes(Access::Zipf { theta: 1.2 })),
        ("random, uniform sizes", sizes(Size::Uniform { min_bytes: 4096, max_bytes: 65_536 })),
        ("random, weighted sizes", sizes(Size::Weighted(weighted))),
        ("random, normal sizes", sizes(Size::Normal { mean_bytes: 65_536, deviation_bytes: 8192 })),
        ("random, constant arrivals", Synthetic::new(Access::Random, fixed(), open(Arrivals::Constant))),
        ("random, Poisson arrivals", Synthetic::new(Access::Random, fixed(), open(Arrivals::Poisson))),
    ];
    for (name, synthetic) in kinds {
        println!("{name:<28} {:5.1} ns a request", nanos_a_request(synthetic)?);
    }
    Ok(())
}

/// The best of many short passes: what the generator takes where nobody disturbs it.
fn nanos_a_request(synthetic: Synthetic) -> Result<f64, WorkloadError> {
    let flow = Flow::synthetic("measured", REQUESTS, synthetic);
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let source = FlowSource::open(&flow, 0, 1, ByteSize::gib(512), ByteSize(512), Path::new("."))?;
        let start = Instant::now();
        for request in source {
            black_box(request);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
    }
    Ok(best)
}
