//! Whether requests for the file really arrive concurrently: tested before the drive is served.
//!
//! ```text
//!   32 direct reads at once ─▶ kernel ─▶ as many as it lets through are held here ─▶ counted, then completed with zeros
//! ```
//!
//! No read completes before all have arrived, or no more arrive: so they are counted, not timed. A kernel or a library
//! that lets few requests through at a time would silently limit every drive to that queue depth. The drive itself does
//! not see these reads. The time of the way through the kernel is measured in the same manner.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flashwise_block::{BlockDevice, BlockError, ByteSize, DirectFile, FileDevice, IoBuffer, Request};
use rustix::event::{PollFd, PollFlags};

use super::{FuseReply, FuseRequest, Mounted};
use crate::error::spawn;
use crate::pace::{Span, estimate_round_trip};
use crate::poll::poll;
use crate::server::SPIN;

/// Concurrent reads.
const READS: u64 = 32;
/// How many of them must arrive together: more than the 16 that a kernel queues by default.
const MIN_TOGETHER: usize = 17;
/// Bytes of each.
const LENGTH: ByteSize = ByteSize(4096);
/// When no more has come for so long, no more is coming.
const SILENCE: Duration = Duration::from_secs(2);
/// Reads whose way is timed.
const TIMED: usize = 400;
/// How long each of them is held: a drive takes time too, and the reader sleeps when the completion comes.
const HOLD_TIME: Duration = Duration::from_micros(50);
/// How often it is looked whether all is over.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Fails, in words, where too few requests for the file come together.
pub(super) fn check_depth(mounted: &Mounted) -> Result<(), String> {
    let path = mounted.file();
    check(mounted, "concurrent reads of the file", "FUSE", move || read_at_once(&path))
}

/// The same for requests for a block device over the file.
pub(super) fn check_depth_through(mounted: &Mounted, device: &Path) -> Result<(), String> {
    let path = device.to_owned();
    check(mounted, "concurrent reads of the loop device", "loop device", move || read_by_threads(&path))
}

fn check(
    mounted: &Mounted,
    what: &str,
    culprit: &str,
    read: impl FnOnce() -> Result<(), BlockError> + Send + 'static,
) -> Result<(), String> {
    let asking = spawn("self-test", read);
    let asking = asking.map_err(|error| format!("its queue depth cannot be tested: {error}"))?;
    let held = gather(mounted, &asking);
    let together = held.len();
    held.into_iter().for_each(answer);
    while !asking.is_finished() {
        wait(mounted, POLL_INTERVAL);
        mounted.requests().for_each(answer);
    }
    match asking.join() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("its queue depth cannot be tested: {error}")),
        Err(_) => return Err("its queue depth cannot be tested".to_owned()),
    }
    if together >= MIN_TOGETHER {
        return Ok(());
    }
    Err(format!(
        "of {READS} {what}, only {together} arrive together: this kernel's {culprit} would slow every drive down; \
         serve the drive with --nbd instead"
    ))
}

/// How much longer than a read is held here its reader waits for it, without disturbance (the lower quartile): reads
/// one after the other, of the file or of a block device over it. `None` if it cannot be measured.
pub(super) fn round_trip(mounted: &Mounted, path: &Path) -> Option<Duration> {
    let path = path.to_owned();
    let asking = spawn("round trip", move || read_one_by_one(&path)).ok()?;
    // As in the server: a timer that may come 50 µs late would be measured instead. Not for long, as programs that this
    // thread starts would have it too.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut kept = Vec::with_capacity(TIMED);
    while !asking.is_finished() {
        wait(mounted, POLL_INTERVAL);
        for request in mounted.requests() {
            let arrived = request.arrived;
            let rest = HOLD_TIME.saturating_sub(arrived.elapsed());
            // Sleeps, to the microsecond.
            let _ = poll(&mut [], Some(rest.saturating_sub(SPIN)));
            while arrived.elapsed() < HOLD_TIME {
                std::hint::spin_loop();
            }
            kept.push(Span::since(arrived));
            answer(request);
        }
    }
    let _ = rustix::thread::set_current_timer_slack(None);
    estimate_round_trip(&asking.join().ok()?.ok()?, &kept)
}

/// Reads one page after the other.
fn read_one_by_one(path: &Path) -> std::io::Result<Vec<Span>> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(direct).open(path)?;
    let mut page = IoBuffer::zeroed(LENGTH.0 as usize);
    let mut times = Vec::with_capacity(TIMED);
    for _ in 0..TIMED {
        let began = Instant::now();
        file.read_exact_at(&mut page, 0)?;
        times.push(Span::since(began));
    }
    Ok(times)
}

/// Holds arriving reads until all have arrived, or no more do.
fn gather(mounted: &Mounted, asking: &JoinHandle<Result<(), BlockError>>) -> Vec<FuseRequest> {
    let (mut held, mut last) = (Vec::new(), Instant::now());
    while held.len() < READS as usize && last.elapsed() < SILENCE && !asking.is_finished() {
        wait(mounted, POLL_INTERVAL);
        let before = held.len();
        held.extend(mounted.requests());
        if held.len() > before {
            last = Instant::now();
        }
    }
    held
}

/// Waits until something comes, at most so long.
fn wait(mounted: &Mounted, at_most: Duration) {
    // Where it fails it is looked all the same.
    let _ = poll(&mut [PollFd::from_borrowed_fd(mounted.fd(), PollFlags::IN)], Some(at_most));
}

fn answer(request: FuseRequest) {
    if let FuseReply::Read(reply) = request.reply {
        reply.data(&vec![0; request.command.length.0 as usize]);
    }
}

/// Reads all of it at once.
fn read_at_once(path: &Path) -> Result<(), BlockError> {
    let file = DirectFile::open(path)?;
    let pages = (file.size().0 / LENGTH.0).max(1);
    let mut device = FileDevice::on_direct_file(&file)?;
    for n in 0..READS {
        let buffer = IoBuffer::zeroed(LENGTH.0 as usize);
        device.submit(Request::read(LENGTH * (n % pages), LENGTH).with_buffer(buffer).tagged(n))?;
    }
    while let Some(done) = device.wait()? {
        done.result?;
    }
    Ok(())
}

/// Reads all of a block device at once, each read by a thread: [`FileDevice`] does not accept a whole device, to
/// protect users' data.
fn read_by_threads(path: &Path) -> Result<(), BlockError> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    let failed = |error: std::io::Error| BlockError::os(path.display().to_string(), &error);
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let device = std::fs::OpenOptions::new().read(true).custom_flags(direct).open(path).map_err(failed)?;
    let read = |n: u64| device.read_exact_at(&mut IoBuffer::zeroed(LENGTH.0 as usize), LENGTH.0 * n);
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..READS).map(|n| scope.spawn(move || read(n))).collect();
        let mut answers =
            asking.into_iter().map(|asked| asked.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())));
        answers.try_for_each(|answer| answer.map_err(failed))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    use super::super::{KernelClient, MAX_BACKGROUND, Mounted};
    use crate::{AttachError, Engine, Pace};

    fn kernel(engine: &Engine) -> KernelClient {
        KernelClient { client: 0, buffers: engine.buffers(), is_realtime: false }
    }

    fn mount(waiting: u16) -> Result<(), AttachError> {
        let directory = tempfile::tempdir().unwrap();
        let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
        let engine = Engine::new(drive, Pace::Free, std::time::Duration::ZERO, None, Instant::now()).unwrap();
        Mounted::with_queue(directory.path(), engine.info(), kernel(&engine), waiting).map(drop)
    }

    #[test]
    fn a_kernel_that_lets_sixteen_requests_through_at_a_time_is_refused() {
        if let Err(error) = mount(MAX_BACKGROUND) {
            assert!(error.to_string().contains("it cannot be mounted"), "{error}");
            return eprintln!("{error}: not tested");
        }
        let error = mount(16).unwrap_err().to_string();
        assert!(error.contains("of 32 concurrent reads of the file, only 16 arrive together"), "{error}");
    }

    /// A loop device over a mounted file, made by hand. It is detached with this value: nothing serves the file then,
    /// and the kernel, which flushes it, would wait.
    struct LoopDevice(std::path::PathBuf, std::fs::File);

    impl LoopDevice {
        /// The kernel flushes the file while it is made.
        fn over(mounted: &Mounted) -> Option<Self> {
            let mut losetup = std::process::Command::new("losetup");
            losetup.args(["--show", "--find", "--direct-io=on"]).arg(mounted.file());
            let making = std::thread::spawn(move || {
                let made = losetup.output().ok()?;
                let device = std::path::PathBuf::from(String::from_utf8(made.stdout.clone()).unwrap().trim());
                let size = std::path::Path::new("/sys/block").join(device.file_name()?).join("size");
                // As in `volume/loops.rs`.
                if std::fs::read_to_string(size).is_ok_and(|size| size.trim() == "0") {
                    let _ = std::process::Command::new("losetup").arg("--set-capacity").arg(&device).status();
                }
                Some(made)
            });
            while !making.is_finished() {
                super::wait(mounted, super::POLL_INTERVAL);
                for request in mounted.requests() {
                    match request.reply {
                        super::FuseReply::Done(reply) => reply.ok(),
                        _ => super::answer(request),
                    }
                }
            }
            let made = making.join().unwrap().filter(|made| made.status.success())?;
            Some(Self(String::from_utf8(made.stdout).unwrap().trim().into(), mounted.abort_file().unwrap()))
        }

        fn limit(&self, requests: &str) {
            let name = self.0.file_name().unwrap().to_str().unwrap();
            std::fs::write(format!("/sys/block/{name}/queue/nr_requests"), requests).unwrap();
        }
    }

    impl Drop for LoopDevice {
        fn drop(&mut self) {
            // The device keeps the setting for its next user.
            self.limit("128");
            let _ = std::io::Write::write_all(&mut self.1, b"1");
            let _ = std::process::Command::new("losetup").arg("--detach").arg(&self.0).status();
        }
    }

    #[test]
    fn a_loop_device_that_lets_sixteen_requests_through_at_a_time_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
        let engine = Engine::new(drive, Pace::Free, std::time::Duration::ZERO, None, Instant::now()).unwrap();
        let mounted = match Mounted::mount(directory.path(), engine.info(), kernel(&engine)) {
            Ok(mounted) => mounted,
            Err(error) => return eprintln!("{error}: not tested"),
        };
        let Some(device) = LoopDevice::over(&mounted) else { return eprintln!("no loop devices: not tested") };
        mounted.check_depth_through(&device.0).unwrap();
        device.limit("16");
        let error = mounted.check_depth_through(&device.0).unwrap_err();
        assert!(error.starts_with("of 32 concurrent reads of the loop device, only 16 arrive together"), "{error}");
    }
}
