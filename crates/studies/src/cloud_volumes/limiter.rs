//! Azure's limiter, which holds requests, and what keeps a program below it.

use flashwise_block::{BlockDevice, Budget, Governor, RateLimits};
use flashwise_report::study::{StudyCell, StudyClaim, StudySection, StudyTable};
use flashwise_volume::{SimulatedVolume, Volume};

use super::load::{Reads, at_depth};
use crate::verdict::verdict;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Published: at the ceiling, 99.9 % of reads are below, µs; with fewer in flight or a bucket of the program's,
/// between.
const HELD_US: f64 = 3_252.0;
const BELOW_US: (f64, f64) = (413.0, 419.0);
/// The ceiling, reads a second.
const CEILING: f64 = 275_000.0;
/// Reads in flight: the published ones, and many.
const DEPTHS: [usize; 5] = [16, 24, 32, 35, 256];

fn volume(seed: u64) -> Result<SimulatedVolume, StudyError> {
    Ok(SimulatedVolume::new(Volume::preset("azure-local-nvme")?, seed)?)
}

fn governed(seed: u64) -> Result<impl BlockDevice, StudyError> {
    Ok(Governor::new(volume(seed)?, &RateLimits::new(vec![Budget::read_iops(CEILING)])))
}

/// Depths without a governor, and with one.
pub(super) fn measure(
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<([StudyClaim; 2], StudySection), StudyError> {
    let count = if options.quick { 100_000 } else { 1_000_000 };
    let seed = options.seed;
    let inputs: Vec<(usize, bool)> = DEPTHS.iter().flat_map(|&depth| [(depth, false), (depth, true)]).collect();
    let found: Vec<Reads> = parallel::map("Azure's limiter", &inputs, progress, |&(depth, is_governed)| {
        Ok::<_, StudyError>(match is_governed {
            false => at_depth(&mut volume(seed)?, (depth, 4096), count, seed)?,
            true => at_depth(&mut governed(seed)?, (depth, 4096), count, seed)?,
        })
    })?;
    let us = |reads: &Reads, percent: f64| 1000.0 * reads.percentile_ms(percent);
    let at = |depth: usize, is_governed: bool| {
        let place = inputs.iter().position(|&input| input == (depth, is_governed)).unwrap_or(0);
        &found[place]
    };
    let (alone, calm) = (at(35, false), at(35, true));
    let tail = us(alone, 99.9);
    let held = StudyClaim {
        claim:
            "Azure's local NVMe at its ceiling of 275,000 reads a second: median 90 µs, 99.9 % below 3,252 µs; 24 in \
                flight give 8 % less and no tail."
                .to_owned(),
        measured: format!(
            "35 in flight: {:.0} reads a second, median {:.0} µs, 99.9 % below {tail:.0} µs. 24 in flight: {:.0} reads a \
             second, 99.9 % below {:.0} µs.",
            alone.per_s,
            us(alone, 50.0),
            at(24, false).per_s,
            us(at(24, false), 99.9)
        ),
        verdict: verdict((tail / HELD_US - 1.0).abs() < 0.1, tail > 3_000.0),
        because: "A request that finds the bucket empty is held for 3 ms. In flight are then, beside what the medium \
                  serves, the held ones: so their share follows from the depth, and depth alone is a knife edge."
            .to_owned(),
    };
    let lost = 100.0 * (1.0 - calm.per_s / alone.per_s);
    let calm_us = us(calm, 99.9);
    let kept = StudyClaim {
        claim: "A token bucket of the program's at 95 %: 99.9 % of reads below 413 to 419 µs, for 0 to 8 % of the \
                throughput; the goal here is at most 500 µs."
            .to_owned(),
        measured: format!(
            "35 in flight behind such a bucket: {:.0} reads a second ({lost:.1} % less), 99.9 % below {calm_us:.0} µs.",
            calm.per_s
        ),
        verdict: verdict(calm_us <= 500.0 && lost <= 8.0, calm_us <= 500.0),
        because: format!(
            "Nothing is held any more. What remains is the waiting in the program and the medium's own tail, which is \
             published as 200 µs without a load of writes; {:.0} to {:.0} µs were measured with one.",
            BELOW_US.0, BELOW_US.1
        ),
    };
    let row = |&(depth, is_governed): &(usize, bool)| {
        let reads = at(depth, is_governed);
        let cells = [
            depth.to_string(),
            if is_governed { "bucket at 95 %" } else { "none" }.to_owned(),
            format!("{:.0}", reads.per_s),
            format!("{:.0}", us(reads, 50.0)),
            format!("{:.0}", us(reads, 99.0)),
            format!("{:.0}", us(reads, 99.9)),
        ];
        cells.map(StudyCell::text).to_vec()
    };
    let section = StudySection {
        title: "Azure's limiter".to_owned(),
        text: vec!["Random reads of 4 KiB, so many in flight, alone and behind a bucket in the program.".to_owned()],
        tables: vec![StudyTable {
            caption: "Reads a second, and latencies, µs:".to_owned(),
            columns: ["in flight", "governor", "reads/s", "p50", "p99", "p99.9"].map(str::to_owned).to_vec(),
            rows: inputs.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    };
    Ok(([held, kept], section))
}
