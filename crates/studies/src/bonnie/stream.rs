//! A file that is larger than memory, from its first byte to its last: written, rewritten, read.
//!
//! The page cache between program and drive is reduced to what such a file leaves of it. Nothing is found there again.
//! Reads go ahead of the program by a window, in requests of one size; writes gather in memory and leave in requests of
//! one size, and the program waits when more than a limit is on its way. Rewriting reads a piece, changes it, and gives
//! it to write-back. What the program and the kernel do for each 8 KiB, that is a system call and a copy, takes
//! processor time during which the drive continues. Writing ends with a flush, whose time counts, as Bonnie++'s `fsync`
//! does.

use flashwise_block::{BlockDevice, BlockError, ByteSize, Nanos, Request, interrupt};

/// What is done to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Write,
    /// Each piece is read, changed and written back.
    Rewrite,
    Read,
}

/// The host's part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// Processor time of 8 KiB, ns: a system call and a copy.
    pub(crate) ns_per_8k: u64,
    /// Length of a request that read-ahead or write-back makes.
    pub(crate) request_bytes: u64,
    /// How far read-ahead is before the program, at most.
    pub(crate) read_ahead_bytes: u64,
    /// Bytes on their way to the drive from which on the program waits.
    pub(crate) dirty_bytes: u64,
}

impl Default for Host {
    /// A host of 2010: 1.5 GB a second through one processor [fit], requests of 512 KiB (the kernel's `max_sectors_kb`
    /// of that time), 4 MiB of read-ahead as is set on arrays [fit], 64 MiB of write-back in progress [fit].
    fn default() -> Self {
        Self { ns_per_8k: 5_500, request_bytes: 512 << 10, read_ahead_bytes: 4 << 20, dirty_bytes: 64 << 20 }
    }
}

const READ: u64 = 0;
const WRITE: u64 = 1;

/// Goes once over the first `bytes` of the device; gives bytes a second.
///
/// # Errors
/// When the device fails.
pub(crate) fn stream(device: &mut dyn BlockDevice, host: &Host, pass: Pass, bytes: u64) -> Result<f64, BlockError> {
    let start = device.now();
    let step = host.request_bytes.min(device.info().max_transfer.bytes());
    let pieces = bytes / step;
    let window = (host.read_ahead_bytes / step).max(1);
    let writes_max = (host.dirty_bytes / step).max(1);
    let mut way = Way { arrived: vec![false; pieces as usize], writes: 0 };
    let mut asked = 0;
    for piece in 0..pieces {
        if pass != Pass::Write {
            while asked < pieces.min(piece + window) {
                device.submit(Request::read(ByteSize(asked * step), ByteSize(step)).tagged(asked << 1 | READ))?;
                asked += 1;
            }
            while !way.arrived[piece as usize] {
                way.wait(device)?;
            }
        }
        device.pause(Nanos(host.ns_per_8k * step.div_ceil(8192)))?;
        if pass != Pass::Read {
            device.submit(Request::write(ByteSize(piece * step), ByteSize(step)).tagged(piece << 1 | WRITE))?;
            way.writes += 1;
            while way.writes >= writes_max {
                way.wait(device)?;
            }
        }
    }
    while device.outstanding() > 0 {
        way.wait(device)?;
    }
    if pass != Pass::Read {
        device.submit(Request::flush())?;
        way.wait(device)?;
    }
    Ok((pieces * step) as f64 / device.now().since(start).as_secs_f64())
}

/// What has come back.
struct Way {
    /// Pieces that were read.
    arrived: Vec<bool>,
    /// Writes on their way.
    writes: u64,
}

impl Way {
    fn wait(&mut self, device: &mut dyn BlockDevice) -> Result<(), BlockError> {
        interrupt::check()?;
        let done = device.wait()?.ok_or(BlockError::Protocol("the device lost a request"))?;
        done.result?;
        match done.operation {
            flashwise_block::Operation::Read => self.arrived[(done.tag >> 1) as usize] = true,
            flashwise_block::Operation::Write => self.writes -= 1,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    const BYTES: u64 = 64 << 20;

    fn rate(host: &Host, pass: Pass) -> (f64, flashwise_block::DeviceCounters) {
        let mut drive = SimulatedSsd::new(DeviceConfig::preset("micron-m500").unwrap(), 1).unwrap();
        drive.fill_at_once().unwrap();
        let rate = stream(&mut drive, host, pass, BYTES).unwrap();
        (rate, drive.counters())
    }

    #[test]
    fn a_pass_asks_for_every_byte_once_and_no_faster_than_the_link() {
        let link = DeviceConfig::preset("micron-m500").unwrap().host.link_bytes_per_s.unwrap() as f64;
        for (pass, reads, writes) in [(Pass::Write, 0, 1), (Pass::Rewrite, 1, 1), (Pass::Read, 1, 0)] {
            let (rate, counters) = rate(&Host::default(), pass);
            assert_eq!(counters.host_bytes_read.0, reads * BYTES);
            assert_eq!(counters.host_bytes_written.0, writes * BYTES);
            assert_eq!(counters.flushes, writes);
            assert!(rate < link / (reads + writes) as f64, "{pass:?}: {rate}");
        }
    }

    #[test]
    fn a_slow_processor_is_the_limit() {
        let host = Host { ns_per_8k: 1_000_000, ..Host::default() };
        let (rate, _) = rate(&host, Pass::Read);
        // What is left is the first request, before which nothing has arrived.
        let limit = 8192.0 / 1e-3;
        assert!((0.99 * limit..=limit).contains(&rate), "{rate}");
    }

    #[test]
    fn read_ahead_brings_more_than_one_request_at_a_time() {
        let alone = Host { read_ahead_bytes: 0, ns_per_8k: 0, request_bytes: 64 << 10, ..Host::default() };
        let ahead = Host { read_ahead_bytes: 1 << 20, ..alone };
        assert!(rate(&ahead, Pass::Read).0 > 1.5 * rate(&alone, Pass::Read).0);
    }
}
