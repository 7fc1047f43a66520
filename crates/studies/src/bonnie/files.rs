//! Many files in one directory: created, looked up, deleted; in the order of their names, then at random.

use flashwise_block::{BlockDevice, BlockError, Nanos};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::file_system::{FileSystem, Made};

/// What the program and the kernel take for an operation, beside the drive, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    pub(crate) create_ns: u64,
    pub(crate) stat_ns: u64,
    pub(crate) delete_ns: u64,
}

impl Default for Processor {
    /// [fit] of the order that Bonnie++ shows on file systems that are all in memory.
    fn default() -> Self {
        Self { create_ns: 20_000, stat_ns: 4_000, delete_ns: 15_000 }
    }
}

/// Operations a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FileRates {
    pub(crate) create: f64,
    pub(crate) stat: f64,
    pub(crate) delete: f64,
}

/// In which order files are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Sequential,
    Random,
}

/// How the test is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) files: u64,
    pub(crate) order: Order,
    /// Each file is made durable by itself (Bonnie++'s `-b`); else each phase as a whole.
    pub(crate) sync_each: bool,
}

/// Creates, looks up and deletes files on a new file system.
///
/// # Errors
/// When the device fails.
pub(crate) fn files(
    device: &mut dyn BlockDevice,
    (made, processor): (Made, Processor),
    run: Run,
    seed: u64,
) -> Result<FileRates, BlockError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut system = FileSystem::new(device, made);
    let mut order: Vec<u64> = (0..run.files).collect();
    let mut phase = |system: &mut FileSystem<'_>, cpu_ns: u64, what: Operation| -> Result<f64, BlockError> {
        if run.order == Order::Random {
            order.shuffle(&mut random);
        }
        let start = system.now();
        for &file in &order {
            system.think(Nanos(cpu_ns))?;
            match what {
                Operation::Create => system.create(file)?,
                Operation::Stat => system.stat(file)?,
                Operation::Delete => system.delete(file)?,
            }
            if run.sync_each {
                system.commit()?;
            }
        }
        system.commit()?;
        Ok(run.files as f64 / system.now().since(start).as_secs_f64())
    };
    Ok(FileRates {
        create: phase(&mut system, processor.create_ns, Operation::Create)?,
        stat: phase(&mut system, processor.stat_ns, Operation::Stat)?,
        delete: phase(&mut system, processor.delete_ns, Operation::Delete)?,
    })
}

/// What is done to each file in turn.
#[derive(Clone, Copy)]
enum Operation {
    Create,
    Stat,
    Delete,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_block::DeviceCounters;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    fn run(made: Made, run: Run) -> (FileRates, DeviceCounters) {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("micron-m500").unwrap(), 1).unwrap();
        drive.fill_at_once().unwrap();
        let rates = files(&mut drive, (made, Processor::default()), run, 1).unwrap();
        (rates, drive.counters())
    }

    const FILES: Run = Run { files: 5_000, order: Order::Sequential, sync_each: false };

    #[test]
    fn a_phase_that_fits_memory_is_the_processors_and_is_journalled_once() {
        let (rates, counters) = run(Made::default(), FILES);
        let of = |cpu_ns: u64| 1e9 / cpu_ns as f64;
        // Nothing is read again, so a lookup is the processor's alone.
        assert!((rates.stat / of(4_000) - 1.0).abs() < 1e-9, "{}", rates.stat);
        // What is created has its inode in a block that is read once: those of inodes 0 to 5,000, their bitmap, their
        // group's descriptor. Leaves are new.
        assert_eq!(counters.host_reads, 313 + 2);
        assert!(rates.create < of(20_000) && rates.delete < of(15_000), "{rates:?}");
        // Two phases that change something, each far below 5 s: two commits.
        assert_eq!(counters.flushes, 2);
        // 5,000 inodes of 256 bytes are 313 blocks of tables; leaves and bitmaps come to them, twice over.
        let written = counters.host_bytes_written.0 / 4096;
        assert!((2 * 313..2 * 420).contains(&written), "{written} blocks");
    }

    #[test]
    fn a_file_that_is_made_durable_costs_a_commit() {
        let (rates, counters) = run(Made::default(), Run { sync_each: true, files: 200, ..FILES });
        assert_eq!(counters.flushes, 400, "lookups change nothing");
        assert!(rates.create < 2_000.0 && rates.stat > 100_000.0, "{rates:?}");
    }

    #[test]
    fn what_does_not_fit_memory_is_read_again_and_more_so_at_random() {
        let small = Made { memory_bytes: 16 * 4096, ..Made::default() };
        let reads = |order| run(small, Run { order, sync_each: true, files: 2_000 }).1.host_reads;
        let (sequential, random) = (reads(Order::Sequential), reads(Order::Random));
        assert!(
            sequential > 100 && random as f64 > 1.3 * sequential as f64,
            "{sequential} in order, {random} at random"
        );
    }

    #[test]
    fn data_is_written_before_the_transaction_that_names_it() {
        let made = Made { file_bytes: 16_384, ..Made::default() };
        let (_, counters) = run(made, Run { files: 100, ..FILES });
        let (_, without) = run(Made::default(), Run { files: 100, ..FILES });
        let data = counters.host_bytes_written.0 - without.host_bytes_written.0;
        // The data, and the bitmap of blocks in each of the two commits.
        assert_eq!(data, 100 * 16_384 + 2 * 4096);
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let at_random = Run { order: Order::Random, files: 500, sync_each: false };
        assert_eq!(run(Made::default(), at_random), run(Made::default(), at_random));
    }
}
