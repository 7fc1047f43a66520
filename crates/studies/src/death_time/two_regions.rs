//! 2R in its FIFO form, on a simulated drive: the one whose curve SSD-iq's authors published.
//!
//! The drive has one plane, whose blocks are its superblocks, and a write starts when it is at rest. The trace is the
//! one of the model's runs, for longer: with much skew, cold pages that the fill left among the hot ones take dozens of
//! overwrites to come to rest in the region of what was moved, and what is measured depends on when.

use std::ops::Range;

use crate::slots::Shape;
use flashwise_block::{BlockDevice, ByteSize, Nanos, Request};
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_ssd::config::{GcPolicy, Placement, WritePolicy};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use super::published::SKEWS;
use super::{FILL, model};
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Overwrites of the drive that are measured, of those after it was filled.
pub(super) const WINDOWS: [Range<u64>; 3] = [3..6, 6..12, 24..36];
/// The one in which the drive is steady.
pub(super) const SETTLED: usize = 2;

const PAGE_BYTES: u64 = 4096;
const FREE_BLOCKS: u32 = 2;

pub(super) struct Measurement {
    /// By skew and window.
    pub(super) points: Vec<[Measured; WINDOWS.len()]>,
}

pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Measurement, StudyError> {
    // The authors' blocks have 2,048 pages; those of the model's runs are so small that each value would be lower by 4
    // %.
    let (blocks, pages_per_block, runs) = if options.quick { (200, 256, 2) } else { (1_000, 512, 3) };
    let shape = Shape::with_fill(blocks, pages_per_block, FILL)?;
    let seeds = |n| (0..runs).map(move |run| (n, options.seed.wrapping_add(run)));
    let inputs: Vec<(usize, u64)> = (0..SKEWS.len()).flat_map(seeds).collect();
    let measured =
        parallel::map("2R in its FIFO form, on a drive", &inputs, progress, |&(n, seed)| run(shape, n, seed))?;
    let point = |runs: &[[f64; WINDOWS.len()]]| {
        std::array::from_fn(|n| mean(&runs.iter().map(|run| run[n]).collect::<Vec<_>>()))
    };
    Ok(Measurement { points: measured.chunks(runs as usize).map(point).collect() })
}

/// A drive whose sealed blocks are as full as the model's.
fn drive(shape: Shape, seed: u64) -> Result<SimulatedSsd, StudyError> {
    let mut config = DeviceConfig::preset("samsung-960-evo")?;
    config.capacity_bytes = u64::from(shape.pages()) * PAGE_BYTES;
    config.controller.write_policy = WritePolicy::Through;
    let flash = &mut config.flash;
    (flash.channels, flash.chips_per_channel, flash.dies_per_chip, flash.planes_per_die) = (1, 1, 1, 1);
    // Beside those that hold data: free ones, and two that are being filled, one page in the mean half.
    (flash.blocks_per_plane, flash.pages_per_block) = (shape.blocks() + FREE_BLOCKS + 1, shape.slots_per_block());
    flash.page_bytes = PAGE_BYTES;
    config.ftl.placement = Placement::Static;
    (config.ftl.gc.policy, config.ftl.gc.free_superblocks) = (GcPolicy::TwoRFifo, Some(FREE_BLOCKS));
    let mut drive = SimulatedSsd::new(config, seed)?;
    drive.fill_at_once()?;
    Ok(drive)
}

fn run(shape: Shape, skew: usize, seed: u64) -> Result<[f64; WINDOWS.len()], StudyError> {
    let mut drive = drive(shape, seed)?;
    let pages = u64::from(shape.pages());
    let writes = WINDOWS[SETTLED].end * pages;
    let trace = model::workload(SKEWS[skew].traffic).trace(shape, writes as usize, seed);
    let mut overwrites = trace.iter().skip(pages as usize);
    let (mut written, mut measured) = (0, [f64::NAN; WINDOWS.len()]);
    for (window, amplification) in WINDOWS.iter().zip(&mut measured) {
        write(&mut drive, overwrites.by_ref().take(((window.start - written) * pages) as usize))?;
        let before = drive.counters();
        write(&mut drive, overwrites.by_ref().take(((window.end - window.start) * pages) as usize))?;
        written = window.end;
        *amplification = drive.counters().since(&before).write_amplification().unwrap_or(f64::NAN);
    }
    Ok(measured)
}

fn write<'a>(drive: &mut SimulatedSsd, pages: impl Iterator<Item = &'a u32>) -> Result<(), StudyError> {
    for &page in pages {
        drive.submit(Request::write(ByteSize(u64::from(page) * PAGE_BYTES), ByteSize(PAGE_BYTES)))?;
        drive.wait()?;
        // Collection comes to rest, so that as many blocks are free as is configured.
        drive.pause(Nanos::millis(1_000))?;
    }
    Ok(())
}

impl Measurement {
    pub(super) fn section(&self) -> StudySection {
        let windows = WINDOWS.map(|window| format!("overwrites {} to {}", window.start + 1, window.end));
        let columns = ["skew".to_owned(), "published".to_owned()].into_iter().chain(windows).collect();
        let rows = SKEWS.iter().zip(&self.points).map(|(skew, point)| {
            let head = [skew.name.to_owned(), format!("{:.2}", skew.two_r_fifo)].map(StudyCell::text);
            head.into_iter().chain(point.map(StudyCell::from)).collect()
        });
        StudySection {
            title: "2R in its FIFO form".to_owned(),
            text: vec![
                "On a simulated drive with ftl.gc.policy = \"two-r-fifo\", filled sequentially first. It scans the \
                 oldest 70 % of a region for blocks that are empty enough, and raises the limit by 5 % each lap: it \
                 skips old and nearly full blocks, which the greedy form takes as soon as they are the emptiest."
                    .to_owned(),
            ],
            tables: vec![StudyTable { caption: "Write amplification:".to_owned(), columns, rows: rows.collect() }],
            charts: Vec::new(),
        }
    }
}
