//! A database's accesses: 8 KiB at random places, by several threads, each of which waits for its own request.
//!
//! Requests go past the page cache (`O_DIRECT`), and no flush is made: what is measured is the drive and its
//! controller. Places are multiples of the access size, uniform over the device.
//!
//! What is measured is cut into *batches* of equally many accesses, one behind the other, so that one run tells how
//! sure its rate is. Drives collect garbage in bursts: a batch has to be longer than these.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Request, interrupt};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// What the threads do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Threads: requests on their way at once.
    pub(crate) threads: u32,
    /// Share of the accesses that read; 0 is write-only.
    pub(crate) read_share: f64,
    pub(crate) access_bytes: u64,
    /// Accesses before the measurement starts.
    pub(crate) warm_up: u64,
    /// Batches that are measured, at least 1, and accesses of each.
    pub(crate) batches: u64,
    pub(crate) batch: u64,
}

/// Runs the threads; gives the seconds that each batch took.
///
/// `random` continues where an earlier load on the same device has left it. The same places in the same order would be
/// anything but random to a drive: what was written together would be overwritten together, and collection cost little.
///
/// # Errors
/// When the device fails.
pub(crate) fn database(
    device: &mut dyn BlockDevice,
    load: &Load,
    random: &mut Pcg64Mcg,
) -> Result<Vec<f64>, BlockError> {
    let places = device.info().capacity.bytes() / load.access_bytes;
    let all = load.warm_up + load.batches * load.batch;
    let mut batches_s = Vec::new();
    let (mut submitted, mut answered) = (0, 0);
    let mut start = device.now();
    while answered < all {
        while submitted < all && device.outstanding() < load.threads as usize {
            let (at, length) =
                (ByteSize(random.random_range(0..places) * load.access_bytes), ByteSize(load.access_bytes));
            let reads = random.random::<f64>() < load.read_share;
            device.submit(if reads { Request::read(at, length) } else { Request::write(at, length) })?;
            submitted += 1;
        }
        interrupt::check()?;
        let done = device.wait()?.ok_or(BlockError::Protocol("the device lost a request"))?;
        done.result?;
        answered += 1;
        if answered >= load.warm_up && (answered - load.warm_up).is_multiple_of(load.batch) {
            if answered > load.warm_up {
                batches_s.push(device.now().since(start).as_secs_f64());
            }
            start = device.now();
        }
    }
    Ok(batches_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};
    use rand::SeedableRng;

    fn served(threads: u32, read_share: f64) -> (f64, flashwise_block::DeviceCounters) {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("micron-m500").unwrap(), 1).unwrap();
        drive.fill_at_once().unwrap();
        let load = Load { threads, read_share, access_bytes: 8192, warm_up: 200, batches: 3, batch: 1_000 };
        let batches_s = database(&mut drive, &load, &mut Pcg64Mcg::seed_from_u64(1)).unwrap();
        assert_eq!(batches_s.len(), 3);
        (3_000.0 / batches_s.iter().sum::<f64>(), drive.counters())
    }

    #[test]
    fn threads_overlap_and_the_mix_is_what_was_asked_for() {
        let (one, counters) = served(1, 1.0);
        assert_eq!((counters.host_reads, counters.host_writes), (3_200, 0));
        // Two threads at most double what one does, and on 16 dies they seldom meet.
        let two = served(2, 1.0).0 / one;
        assert!((1.6..=2.0).contains(&two), "{two}");
        // The firmware takes a command every 16 µs.
        assert!(served(32, 1.0).0 < 1e9 / 16_000.0);
        let (_, counters) = served(4, 0.7);
        // Five standard deviations of 3,200 draws.
        assert!(counters.host_reads.abs_diff(2_240) < 130, "{}", counters.host_reads);
        assert_eq!(served(4, 0.0).1.host_reads, 0);
    }

    #[test]
    fn a_load_does_not_go_to_the_places_of_the_one_before_it() {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("micron-m500").unwrap(), 1).unwrap();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for read_share in [0.0, 1.0] {
            let load = Load { threads: 4, read_share, access_bytes: 8192, warm_up: 0, batches: 1, batch: 1_000 };
            database(&mut drive, &load, &mut random).unwrap();
        }
        // Of so large a drive, hardly any place is named twice in 2,000.
        assert!(drive.counters().flash.unwrap().unwritten_pages_read >= 1_990, "{:?}", drive.counters());
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        assert_eq!(served(8, 0.5), served(8, 0.5));
    }
}
