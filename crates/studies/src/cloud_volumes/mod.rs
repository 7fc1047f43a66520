//! Cloud volumes: what is published of their limits, beside the simulated ones.
//!
//! - [`maps`]: latency over reads and writes a second of gp3;
//! - [`persistent_disk`]: the same of a Persistent Disk;
//! - [`limiter`]: Azure's local NVMe, whose limiter holds requests, and a bucket in the program;
//! - [`bursts`]: gp2's credits, i4i's spare blocks;
//! - [`disks`]: rotating disks.

mod bursts;
mod disks;
mod limiter;
mod load;
mod maps;
mod persistent_disk;

use crate::{Findings, Progress, StudyError, StudyOptions};

/// Runs the study.
pub(crate) fn run(options: &StudyOptions, progress: Progress<'_>) -> Result<Findings, StudyError> {
    let (map, map_section) = maps::gp3_map(options, progress)?;
    let (line, line_section) = persistent_disk::pd_line(options, progress)?;
    let (below, below_section) = persistent_disk::pd_map(options, progress)?;
    let ([held, kept], limiter_section) = limiter::measure(options, progress)?;
    let ([credits, spare], burst_section) = bursts::measure(options, progress)?;
    let (disk, disk_section) = disks::measure(options, progress)?;
    let limits = vec![
        "The volumes are simulated from rules and published figures; whether other volumes of a provider are like those \
         that were measured in public is not known."
            .to_owned(),
        "Latencies of writes are published for none of these volumes but m7gd's.".to_owned(),
        "Runs of a cell last seconds, those of the published maps 30 s: at a load just above a limit, latencies are \
         smaller here, and beyond 5 ms all the same."
            .to_owned(),
    ];
    Ok(Findings {
        claims: vec![map, line, below, held, kept, credits, spare, disk],
        sections: vec![map_section, line_section, below_section, limiter_section, burst_section, disk_section],
        limits,
    })
}
