//! What is on a drive before it is measured.
//!
//! An empty drive serves reads without accessing its flash and never runs garbage collection; what is measured on it
//! says nothing about the drive in use. SNIA's Solid State Storage Performance Test Specification (version 2.0.2,
//! section 3) therefore purges a drive, writes it sequentially, and writes it at random until its figures no longer
//! change. The same is done here; what needs no simulating is laid out at once:
//!
//! | name | what is done | cost |
//! |---|---|---|
//! | `empty` | nothing | none |
//! | `fill` | every logical page once, in order, as one sequential write leaves it | one pass over the superblocks |
//! | `steady` | `fill`, then random overwrites of logical pages until write amplification becomes steady | several writes of the capacity; an eighth of it for most large drives |
//! | `analytic` | the steady state is computed and laid out at once | one pass over the map |
//!
//! To write a large drive several times takes minutes. Where theory covers it, `steady` starts there from the computed
//! state, and overwrites until that is seen to be right: over two short windows write amplification is what was
//! computed. Where it is not, the overwrites continue as on any drive.

use flashwise_block::{BlockDevice, BlockError, ByteSize, DeviceCounters, Nanos, Progress, Request};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::{SimulationError, enter_steady_state};
use flashwise_ssd::SimulatedSsd;
use flashwise_ssd::config::Mapping;

/// Requests in flight while the drive is prepared.
const DEPTH: usize = 32;
/// Largest request of the sequential fill, bytes.
const FILL_BYTES: u64 = 1 << 20;
/// Write amplification is steady when two successive windows differ by less than this share.
const SETTLED: f64 = 0.02;
/// Random overwrites stop here even if write amplification has not settled: so many windows of half a capacity.
const MOST_WINDOWS: u32 = 20;
/// Logical pages from which on a drive is large: 16 GiB of 4 KiB.
const LARGE_PAGES: u64 = 4 << 20;
/// On a drive that starts from the computed state the first windows have this part of the logical pages.
const SHORT_WINDOW: u64 = 16;
/// How many of them must agree with what was computed.
const SHORT_WINDOWS: u32 = 2;
/// Requests between two calls of the progress listener.
const PROGRESS_EVERY: u64 = 1 << 14;
/// Set apart from the seeds of the workload's flows.
const STREAM: u64 = 0x7072_6563_6f6e_6431;

/// What is on the drive before the workload starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precondition {
    /// Nothing: no logical page has ever been written.
    #[default]
    Empty,
    /// Every logical page, written once in order.
    Fill,
    /// Filled, and overwritten at random until write amplification no longer changes.
    Steady,
    /// The same steady state, computed instead of simulated.
    Analytic,
}

impl Precondition {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Fill => "fill",
            Self::Steady => "steady",
            Self::Analytic => "analytic",
        }
    }
}

/// What was done to a drive, or to all drives of an array, before the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preconditioned {
    /// What was asked for.
    pub state: Precondition,
    /// Bytes that were laid out on the empty drive at once, without being written.
    pub bytes_laid_out: u64,
    /// Bytes that were written for it, through the drive's front door.
    pub host_bytes_written: u64,
    /// How long that took the drive, ns of its own time.
    pub elapsed_ns: u64,
    /// Whether write amplification is steady; `null` where it was not waited for.
    pub is_settled: Option<bool>,
    /// Write amplification over each window of random overwrites; for a computed state, what theory promises. A window
    /// is half a capacity, the first two a sixteenth each where a large drive starts from the computed state. Of an
    /// array, the mean of the drives that had such a window.
    pub write_amplification: Vec<f64>,
}

impl Preconditioned {
    /// What was done to several drives side by side.
    pub(super) fn of_all(state: Precondition, each: &[Self]) -> Self {
        let windows = each.iter().map(|one| one.write_amplification.len()).max().unwrap_or(0);
        let mean = |window: usize| {
            let found = || each.iter().filter_map(|one| one.write_amplification.get(window));
            found().sum::<f64>() / found().count() as f64
        };
        Self {
            state,
            bytes_laid_out: each.iter().map(|one| one.bytes_laid_out).sum(),
            host_bytes_written: each.iter().map(|one| one.host_bytes_written).sum(),
            elapsed_ns: each.iter().map(|one| one.elapsed_ns).max().unwrap_or(0),
            is_settled: each.iter().filter_map(|one| one.is_settled).reduce(|all, one| all && one),
            write_amplification: (0..windows).map(mean).collect(),
        }
    }
}

/// Brings a drive into a state.
///
/// # Errors
/// When `progress` wants to stop, or the state cannot be had on this drive.
pub fn precondition(
    drive: &mut SimulatedSsd,
    state: Precondition,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Preconditioned, SimulationError> {
    let (start, before) = (drive.now(), drive.counters());
    let mut done = Preconditioned { state, ..Preconditioned::default() };
    match state {
        Precondition::Empty => return Ok(done),
        Precondition::Fill => fill(drive, &mut done, progress)?,
        Precondition::Steady if drive.config().logical_pages() >= LARGE_PAGES => {
            steady_from_computed(drive, seed, &mut done, progress)?
        }
        Precondition::Steady => steady(drive, seed, &mut done, progress)?,
        Precondition::Analytic => {
            done.write_amplification = vec![enter_steady_state(drive, seed)?];
            done.bytes_laid_out = drive.info().capacity.0;
        }
    }
    done.host_bytes_written = drive.counters().since(&before).host_bytes_written.0;
    done.elapsed_ns = drive.now().since(start).0;
    Ok(done)
}

/// Fills a drive and overwrites it until it is steady.
fn steady(
    drive: &mut SimulatedSsd,
    seed: u64,
    done: &mut Preconditioned,
    progress: &mut dyn Progress,
) -> Result<(), SimulationError> {
    fill(drive, done, progress)?;
    if drive.config().ftl.mapping != Mapping::InPlace {
        Overwriting::new(drive, seed).until_settled(drive, done, progress)?;
    }
    Ok(())
}

/// The same from the computed state, where there is one.
fn steady_from_computed(
    drive: &mut SimulatedSsd,
    seed: u64,
    done: &mut Preconditioned,
    progress: &mut dyn Progress,
) -> Result<(), SimulationError> {
    let Ok(promised) = enter_steady_state(drive, seed) else { return steady(drive, seed, done, progress) };
    done.bytes_laid_out = drive.info().capacity.0;
    let mut overwriting = Overwriting::new(drive, seed);
    let short = (overwriting.pages / SHORT_WINDOW).max(1);
    for n in 0..SHORT_WINDOWS {
        overwriting.window(drive, done, short, (n, SHORT_WINDOWS), progress)?;
    }
    let agrees = |found: &f64| (found - promised).abs() < SETTLED * promised;
    if done.write_amplification.iter().all(agrees) {
        done.is_settled = Some(true);
        return Ok(drain(drive)?);
    }
    Ok(overwriting.until_settled(drive, done, progress)?)
}

/// Fills a new drive at once; writes every logical page of one that has been used, in order.
fn fill(
    drive: &mut SimulatedSsd,
    done: &mut Preconditioned,
    progress: &mut dyn Progress,
) -> Result<(), SimulationError> {
    if drive.fill_at_once().is_ok() {
        done.bytes_laid_out = drive.info().capacity.0;
        return Ok(());
    }
    let (capacity, block) = (drive.info().capacity.0, drive.info().logical_block.0);
    let step = FILL_BYTES.min(drive.info().max_transfer.0);
    let requests = capacity.div_ceil(step);
    for n in 0..requests {
        let (offset, left) = (n * step, capacity - n * step);
        let length = step.min(left - left % block);
        submit(drive, offset, length)?;
        if n.is_multiple_of(PROGRESS_EVERY / 64) {
            progress.advance("filling the drive", n as f64 / requests as f64)?;
        }
    }
    Ok(drain(drive)?)
}

/// Random overwrites of logical pages.
struct Overwriting {
    page_bytes: u64,
    pages: u64,
    random: Pcg64Mcg,
}

impl Overwriting {
    fn new(drive: &SimulatedSsd, seed: u64) -> Self {
        let page_bytes = drive.config().ftl.logical_page_bytes;
        let pages = drive.info().capacity.0 / page_bytes;
        Self { page_bytes, pages, random: Pcg64Mcg::seed_from_u64(seed ^ STREAM) }
    }

    /// Overwrites half a capacity at a time until write amplification becomes steady.
    fn until_settled(
        &mut self,
        drive: &mut SimulatedSsd,
        done: &mut Preconditioned,
        progress: &mut dyn Progress,
    ) -> Result<(), BlockError> {
        let first = done.write_amplification.len();
        for n in 0..MOST_WINDOWS {
            self.window(drive, done, (self.pages / 2).max(1), (n, MOST_WINDOWS), progress)?;
            if is_settled(&done.write_amplification[first..]) {
                break;
            }
        }
        done.is_settled = Some(is_settled(&done.write_amplification[first..]));
        drain(drive)
    }

    /// Overwrites so many pages, as window `n` of `most`, and notes the write amplification.
    fn window(
        &mut self,
        drive: &mut SimulatedSsd,
        done: &mut Preconditioned,
        writes: u64,
        (n, most): (u32, u32),
        progress: &mut dyn Progress,
    ) -> Result<(), BlockError> {
        let before = drive.counters();
        for i in 0..writes {
            submit(drive, self.random.random_range(0..self.pages) * self.page_bytes, self.page_bytes)?;
            if i.is_multiple_of(PROGRESS_EVERY) {
                let part = (f64::from(n) + i as f64 / writes as f64) / f64::from(most);
                progress.advance("overwriting until steady", part)?;
            }
        }
        done.write_amplification.push(amplification(drive, &before));
        Ok(())
    }
}

fn amplification(drive: &SimulatedSsd, before: &DeviceCounters) -> f64 {
    drive.counters().since(before).write_amplification().unwrap_or(1.0)
}

/// Whether the last two windows agree.
fn is_settled(windows: &[f64]) -> bool {
    matches!(windows, [.., a, b] if (b - a).abs() < SETTLED * a)
}

fn submit(drive: &mut SimulatedSsd, offset: u64, length: u64) -> Result<(), BlockError> {
    drive.submit(Request::write(ByteSize(offset), ByteSize(length)))?;
    if drive.outstanding() >= DEPTH {
        drive.wait()?;
    }
    Ok(())
}

fn drain(drive: &mut SimulatedSsd) -> Result<(), BlockError> {
    while drive.wait()?.is_some() {}
    drive.pause(Nanos(0))
}

#[cfg(test)]
mod tests {
    use flashwise_block::Silent;

    use super::*;
    use crate::tests::small_drive;

    #[test]
    fn of_several_drives_the_slowest_and_the_least_settled_count() {
        let one = |elapsed_ns, settled, windows: &[f64]| Preconditioned {
            state: Precondition::Steady,
            bytes_laid_out: 10,
            host_bytes_written: 5,
            elapsed_ns,
            is_settled: Some(settled),
            write_amplification: windows.to_vec(),
        };
        let all = Preconditioned::of_all(Precondition::Steady, &[one(3, true, &[2.0]), one(7, false, &[4.0, 5.0])]);
        assert_eq!((all.bytes_laid_out, all.host_bytes_written, all.elapsed_ns), (20, 10, 7));
        assert_eq!((all.is_settled, all.write_amplification), (Some(false), vec![3.0, 5.0]));
        assert_eq!(Preconditioned::of_all(Precondition::Empty, &[]).is_settled, None);
    }

    #[test]
    fn an_empty_drive_stays_as_it_came() {
        let mut drive = small_drive();
        let done = precondition(&mut drive, Precondition::Empty, 1, &mut Silent).unwrap();
        assert_eq!((done.host_bytes_written, drive.counters().host_writes), (0, 0));
    }

    #[test]
    fn a_filled_drive_holds_every_logical_page_once() {
        let mut drive = small_drive();
        let done = precondition(&mut drive, Precondition::Fill, 1, &mut Silent).unwrap();
        let capacity = drive.info().capacity.0;
        assert_eq!((done.bytes_laid_out, done.host_bytes_written), (capacity, 0));
        assert_eq!(drive.mapped_and_valid_pages().0, capacity / 4096);
        assert_eq!((drive.outstanding(), done.is_settled), (0, None));
    }

    #[test]
    fn a_steady_drive_collects_garbage_at_a_pace_that_no_longer_changes() {
        let mut drive = small_drive();
        let done = precondition(&mut drive, Precondition::Steady, 1, &mut Silent).unwrap();
        assert_eq!(done.is_settled, Some(true), "{:?}", done.write_amplification);
        assert!(done.write_amplification.last().is_some_and(|&wa| wa > 1.2), "{:?}", done.write_amplification);
        drive.check_invariants().unwrap();
    }

    #[test]
    fn the_computed_steady_state_writes_nothing_and_promises_what_the_simulated_one_gives() {
        let analytic = precondition(&mut small_drive(), Precondition::Analytic, 1, &mut Silent).unwrap();
        let steady = precondition(&mut small_drive(), Precondition::Steady, 1, &mut Silent).unwrap();
        let (promised, found) = (analytic.write_amplification[0], *steady.write_amplification.last().unwrap());
        assert_eq!(analytic.host_bytes_written, 0);
        assert!((promised / found - 1.0).abs() < 0.25, "promised {promised}, found {found}");
    }

    #[test]
    fn from_the_computed_state_a_drive_comes_to_the_same_pace() {
        let mut config = small_drive().config().clone();
        (config.flash.blocks_per_plane, config.ftl.gc.free_superblocks) = (200, Some(3));
        config.capacity_bytes = (config.raw_bytes() as f64 * 0.8) as u64 / 65536 * 65536;
        let last = |done: &Preconditioned| *done.write_amplification.last().unwrap();
        let (mut written, mut computed) = (Preconditioned::default(), Preconditioned::default());
        let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
        steady(&mut drive, 1, &mut written, &mut Silent).unwrap();
        let mut drive = SimulatedSsd::new(config, 1).unwrap();
        steady_from_computed(&mut drive, 1, &mut computed, &mut Silent).unwrap();
        assert_eq!((written.is_settled, computed.is_settled), (Some(true), Some(true)), "{computed:?}");
        assert!((last(&computed) / last(&written) - 1.0).abs() < 0.04, "{written:?} {computed:?}");
        drive.check_invariants().unwrap();
    }

    #[test]
    fn where_no_theory_covers_a_drive_it_is_filled_and_overwritten() {
        let mut config = small_drive().config().clone();
        config.ftl.gc.policy = flashwise_ssd::config::GcPolicy::CostBenefit;
        let both = [steady, steady_from_computed].map(|bring| {
            let mut done = Preconditioned::default();
            let mut drive = SimulatedSsd::new(config.clone(), 1).unwrap();
            bring(&mut drive, 1, &mut done, &mut Silent).unwrap();
            (done, drive.counters())
        });
        assert_eq!(both[0], both[1]);
    }

    #[test]
    fn a_used_drive_is_filled_by_writing() {
        let mut drive = small_drive();
        flashwise_block::execute(&mut drive, Request::write(ByteSize(0), ByteSize::kib(4))).unwrap();
        let done = precondition(&mut drive, Precondition::Fill, 1, &mut Silent).unwrap();
        assert_eq!((done.bytes_laid_out, done.host_bytes_written), (0, drive.info().capacity.0));
        let error = precondition(&mut drive, Precondition::Analytic, 1, &mut Silent).unwrap_err();
        assert!(error.to_string().contains("already been written"), "{error}");
    }
}
