//! The one trait that a drive, simulated or real, has to offer.

use serde::{Deserialize, Serialize};

use crate::{Alignment, BlockError, ByteSize, Completion, ExtentMap, Nanos, Operation, PlacementUnknown, Request};

/// Which clock a device's times are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Simulated: advances only while someone waits for it; exact from run to run.
    Virtual,
    /// The machine's monotonic clock.
    Wall,
}

/// Properties of a device, the same that an operating system knows of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Model or path, for people.
    pub name: String,
    /// Addressable bytes.
    pub capacity: ByteSize,
    /// Smallest addressable unit; offsets and lengths are multiples of it.
    pub logical_block: ByteSize,
    /// Largest request accepted.
    pub max_transfer: ByteSize,
    /// How many requests the device takes at once; more wait in the host's queue.
    pub queue_depth: u32,
    /// Whose time it is.
    pub clock: Clock,
    /// The longest aligned write that the drive promises to do whole, also when its power fails; `None` where it
    /// promises nothing beyond a logical block. It is reported, not measured; a file reports that of the drive below:
    /// see [`AtomicWrites`](crate::AtomicWrites).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write: Option<ByteSize>,
}

/// Counters of the host interface and, if the device reports them, of the flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Completed read requests.
    pub host_reads: u64,
    /// Bytes of completed reads.
    pub host_bytes_read: ByteSize,
    /// Completed write requests.
    pub host_writes: u64,
    /// Bytes of completed writes.
    pub host_bytes_written: ByteSize,
    /// Completed flushes.
    pub flushes: u64,
    /// Completed trims.
    pub trims: u64,
    /// Completed writes of zeros.
    #[serde(default)]
    pub zero_writes: u64,
    /// Bytes of completed writes of zeros; they are not among the bytes written, because none crossed the link.
    #[serde(default)]
    pub bytes_zeroed: ByteSize,
    /// The flash side; `None` if the device does not report it.
    pub flash: Option<FlashCounters>,
}

/// Counters of the flash, in the terms of a drive's own log page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashCounters {
    /// Bytes programmed into flash for any reason, padding included.
    pub bytes_programmed: ByteSize,
    /// Of those, bytes that hold no data because a flush closed a half-filled page.
    pub padding_bytes: ByteSize,
    /// Of those, bytes that garbage collection moved.
    pub gc_bytes_moved: ByteSize,
    /// Logical pages that garbage collection moved.
    #[serde(default)]
    pub gc_pages_moved: u64,
    /// Of the bytes programmed, those that wear levelling moved.
    #[serde(default)]
    pub wear_levelling_bytes_moved: ByteSize,
    /// Of the bytes programmed, those that were moved out of superblocks that are retired.
    #[serde(default)]
    pub retirement_bytes_moved: ByteSize,
    /// Of the bytes programmed, those that were moved out of an SLC cache.
    #[serde(default)]
    pub folding_bytes_moved: ByteSize,
    /// Of the bytes programmed, those that were programmed with one bit a cell into cells that can hold more.
    #[serde(default)]
    pub slc_bytes_programmed: ByteSize,
    /// Superblocks of an SLC cache that were emptied.
    #[serde(default)]
    pub folding_runs: u64,
    /// Of the bytes programmed, those that hold parts of the mapping.
    #[serde(default)]
    pub mapping_bytes: ByteSize,
    /// Superblocks that wear levelling emptied.
    #[serde(default)]
    pub wear_levelling_runs: u64,
    /// Superblocks that were retired because they failed or were worn out.
    #[serde(default)]
    pub retired_superblocks: u64,
    /// Garbage collections of one superblock each.
    pub gc_runs: u64,
    /// Erased superblocks.
    pub erases: u64,
    /// Bytes sensed from flash for host reads, fills of partial pages and garbage collection.
    pub bytes_read: ByteSize,
    /// Bytes of host writes that were replaced or trimmed while still in the write cache or the write buffer; the flash
    /// never saw them.
    pub absorbed_bytes: ByteSize,
    /// Logical pages that the host read although they had never been written.
    pub unwritten_pages_read: u64,
}

impl DeviceCounters {
    /// Counts a request that is done.
    #[inline(always)]
    pub fn count(&mut self, operation: Operation, length: ByteSize) {
        match operation {
            Operation::Read => {
                (self.host_reads, self.host_bytes_read) = (self.host_reads + 1, self.host_bytes_read + length)
            }
            Operation::Write => {
                (self.host_writes, self.host_bytes_written) = (self.host_writes + 1, self.host_bytes_written + length)
            }
            Operation::Trim => self.trims += 1,
            Operation::WriteZeroes => {
                (self.zero_writes, self.bytes_zeroed) = (self.zero_writes + 1, self.bytes_zeroed + length)
            }
            Operation::Flush => self.flushes += 1,
        }
    }

    /// The difference since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let flash = self.flash.map(|now| now.since(&earlier.flash.unwrap_or_default()));
        Self { flash, ..self.joined(earlier, |now, then| now - then) }
    }

    /// The sum of two devices' counters, or of one device's at two times; of the flash, the sum of those reported.
    pub fn and(&self, other: &Self) -> Self {
        let flash = self.flash.into_iter().chain(other.flash).reduce(|a, b| a.and(&b));
        Self { flash, ..self.joined(other, |a, b| a + b) }
    }

    /// Each count made of the two, the flash's left out.
    fn joined(&self, other: &Self, count: impl Fn(u64, u64) -> u64) -> Self {
        let bytes = |a: ByteSize, b: ByteSize| ByteSize(count(a.0, b.0));
        Self {
            host_reads: count(self.host_reads, other.host_reads),
            host_bytes_read: bytes(self.host_bytes_read, other.host_bytes_read),
            host_writes: count(self.host_writes, other.host_writes),
            host_bytes_written: bytes(self.host_bytes_written, other.host_bytes_written),
            flushes: count(self.flushes, other.flushes),
            trims: count(self.trims, other.trims),
            zero_writes: count(self.zero_writes, other.zero_writes),
            bytes_zeroed: bytes(self.bytes_zeroed, other.bytes_zeroed),
            flash: None,
        }
    }

    /// Write amplification: flash bytes programmed ÷ host bytes written; `None` if the device does not report it or
    /// nothing was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let flash = self.flash?;
        (self.host_bytes_written.0 > 0).then(|| flash.bytes_programmed.0 as f64 / self.host_bytes_written.0 as f64)
    }
}

impl FlashCounters {
    /// The difference since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        self.joined(earlier, |now, then| now - then)
    }

    /// The sum of two devices' counters, or of one device's at two times.
    pub fn and(&self, other: &Self) -> Self {
        self.joined(other, |a, b| a + b)
    }

    /// Each count made of the two.
    fn joined(&self, other: &Self, count: impl Fn(u64, u64) -> u64) -> Self {
        let bytes = |a: ByteSize, b: ByteSize| ByteSize(count(a.0, b.0));
        Self {
            bytes_programmed: bytes(self.bytes_programmed, other.bytes_programmed),
            padding_bytes: bytes(self.padding_bytes, other.padding_bytes),
            gc_bytes_moved: bytes(self.gc_bytes_moved, other.gc_bytes_moved),
            gc_pages_moved: count(self.gc_pages_moved, other.gc_pages_moved),
            wear_levelling_bytes_moved: bytes(self.wear_levelling_bytes_moved, other.wear_levelling_bytes_moved),
            retirement_bytes_moved: bytes(self.retirement_bytes_moved, other.retirement_bytes_moved),
            folding_bytes_moved: bytes(self.folding_bytes_moved, other.folding_bytes_moved),
            slc_bytes_programmed: bytes(self.slc_bytes_programmed, other.slc_bytes_programmed),
            folding_runs: count(self.folding_runs, other.folding_runs),
            mapping_bytes: bytes(self.mapping_bytes, other.mapping_bytes),
            wear_levelling_runs: count(self.wear_levelling_runs, other.wear_levelling_runs),
            retired_superblocks: count(self.retired_superblocks, other.retired_superblocks),
            gc_runs: count(self.gc_runs, other.gc_runs),
            erases: count(self.erases, other.erases),
            bytes_read: bytes(self.bytes_read, other.bytes_read),
            absorbed_bytes: bytes(self.absorbed_bytes, other.absorbed_bytes),
            unwritten_pages_read: count(self.unwritten_pages_read, other.unwritten_pages_read),
        }
    }
}

/// How often [`BlockDevice::wait_until`] looks for completions by default: about a tenth of a read of flash (90 µs), so
/// that a completion noticed half an interval late costs a closed loop some 5 % of one read.
pub const POLL_INTERVAL: Nanos = Nanos::micros(10);

/// A drive: requests in, completions out, a clock.
///
/// Completions come in the order in which the device finishes, not in the order of submission.
pub trait BlockDevice {
    /// Properties of the device.
    fn info(&self) -> &DeviceInfo;

    /// The device's clock.
    fn now(&self) -> Nanos;

    /// Submits one request to the device.
    ///
    /// # Errors
    /// A request that breaks the rules of [`Request`] or ends beyond the device is refused here; a later failure is in
    /// its [`Completion`].
    fn submit(&mut self, request: Request) -> Result<(), BlockError>;

    /// Waits for the next completion; `None` when nothing is outstanding. On a virtual clock, this advances time.
    ///
    /// # Errors
    /// When the device is lost as a whole; the failure of one request is in its [`Completion`].
    fn wait(&mut self) -> Result<Option<Completion>, BlockError>;

    /// A completion that has happened already; the clock does not move. `None` also where the device does not know,
    /// which is the default: then the completion comes with the next [`BlockDevice::wait`].
    ///
    /// # Errors
    /// As [`BlockDevice::wait`].
    fn poll(&mut self) -> Result<Option<Completion>, BlockError> {
        Ok(None)
    }

    /// The next completion, or `None` when the clock reaches `deadline` first; where nothing is outstanding, time
    /// passes until then. The default polls every [`POLL_INTERVAL`]; the completions of a device that cannot be polled
    /// come with a later [`BlockDevice::wait`].
    ///
    /// # Errors
    /// As [`BlockDevice::wait`].
    fn wait_until(&mut self, deadline: Nanos) -> Result<Option<Completion>, BlockError> {
        loop {
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            let left = deadline.since(self.now());
            if left == Nanos(0) {
                return Ok(None);
            }
            self.pause(if self.outstanding() == 0 { left } else { left.min(POLL_INTERVAL) })?;
        }
    }

    /// Requests submitted and not yet given back by [`BlockDevice::wait`].
    fn outstanding(&self) -> usize;

    /// Lets `duration` pass without waiting for a completion (think time; background work continues).
    ///
    /// # Errors
    /// When the device is lost.
    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError>;

    /// Everything since the device came up.
    fn counters(&self) -> DeviceCounters;

    /// Bytes from the start that may be written, trimmed and zeroed; 0 for a device that is only read. Requests beyond
    /// them are refused with [`BlockError::Refused`].
    fn writable(&self) -> ByteSize {
        self.info().capacity
    }

    /// Where the device's bytes are on the drive below it. A drive, simulated or raw, is mapped to itself.
    ///
    /// # Errors
    /// [`PlacementUnknown`] with the reason.
    fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        let info = self.info();
        Ok(ExtentMap::whole(info.name.clone(), ByteSize(0), info.capacity))
    }

    /// How positions on the device and those on the drive below are shifted against each other modulo `modulus`: a
    /// request at `x` meets the drive at `x` plus this, modulo `modulus`.
    fn alignment(&self, modulus: ByteSize) -> Alignment {
        match self.extents() {
            Ok(extents) => extents.alignment(modulus),
            Err(why) => Alignment::Unknown(why.to_string()),
        }
    }
}

impl DeviceInfo {
    /// Checks a request against the properties of the device.
    ///
    /// # Errors
    /// [`BlockError::InvalidRequest`] with the reason.
    #[inline]
    pub fn check(&self, request: &Request) -> Result<(), BlockError> {
        let fail = |reason: String| {
            let Request { operation, offset, length, .. } = request;
            Err(BlockError::InvalidRequest { operation: *operation, offset: *offset, length: *length, reason })
        };
        if request.operation == Operation::Flush {
            return Ok(());
        }
        if request.length.0 == 0 {
            return fail("its length is zero".into());
        }
        if !request.offset.is_multiple_of(self.logical_block) || !request.length.is_multiple_of(self.logical_block) {
            return fail(format!("offset and length must be multiples of {}", self.logical_block));
        }
        if request.operation != Operation::Trim && request.length > self.max_transfer {
            return fail(format!("the device accepts at most {} at once", self.max_transfer));
        }
        match request.end() {
            Some(end) if end <= self.capacity => {}
            _ => return fail(format!("it ends beyond the device's {}", self.capacity)),
        }
        match &request.buffer {
            Some(buffer) if buffer.len() as u64 != request.length.0 => {
                fail(format!("its buffer holds {} bytes", buffer.len()))
            }
            _ => Ok(()),
        }
    }
}

/// Submits one request and waits for it, at queue depth one.
///
/// # Errors
/// When the request is refused or fails.
///
/// # Panics
/// Never; a device that completes another request first is reported as [`BlockError::Protocol`].
pub fn execute(device: &mut dyn BlockDevice, request: Request) -> Result<Completion, BlockError> {
    if device.outstanding() != 0 {
        return Err(BlockError::Protocol("a request at depth one was made while others were outstanding"));
    }
    device.submit(request)?;
    let completion = device.wait()?.ok_or(BlockError::Protocol("the device lost a request"))?;
    completion.result.clone()?;
    Ok(completion)
}
