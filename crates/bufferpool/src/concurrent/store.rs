//! Where the pages of a pool lie: a file of the program's own, or any block device.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use flashwise_block::{BlockDevice, BlockError, ByteSize, DirectFile, FileDevice, IoBuffer, Request};

use crate::directory::Page;

/// A page's image on its way to the store.
#[derive(Debug)]
pub struct PageImage {
    /// Which page.
    pub page: Page,
    /// What is in it.
    pub bytes: IoBuffer,
}

/// A frame that waits for its page.
#[derive(Debug)]
pub struct PageRead<'a> {
    /// Which page.
    pub page: Page,
    /// Where its bytes go.
    pub into: &'a mut [u8],
}

/// What came of writes and reads that were made together.
#[derive(Debug)]
pub struct Exchanged {
    /// The writes: all of them are done, or none counts as done.
    pub written: Result<(), BlockError>,
    /// The reads: the same.
    pub read: Result<(), BlockError>,
}

/// Pages of one size, shared by threads.
pub trait PageStore: Send + Sync {
    /// How many pages there are.
    fn pages(&self) -> u64;

    /// Bytes of one.
    fn page_bytes(&self) -> usize;

    /// Writes and reads pages, all at once; none of them twice.
    fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged;

    /// Makes everything durable that was written before.
    ///
    /// # Errors
    /// What the store says; nothing is known to be durable then.
    fn flush(&self) -> Result<(), BlockError>;
}

/// Carries out writes and reads on one device, all of them outstanding together.
fn exchange(
    device: &mut dyn BlockDevice,
    page_bytes: usize,
    writes: Vec<PageImage>,
    reads: &mut [PageRead<'_>],
) -> Exchanged {
    let offset = |page: Page| ByteSize(u64::from(page.0) * page_bytes as u64);
    let mut exchanged = Exchanged { written: Ok(()), read: Ok(()) };
    let first_read = writes.len();
    for (tag, PageImage { page, bytes }) in writes.into_iter().enumerate() {
        let write = Request::write(offset(page), ByteSize(0)).with_buffer(bytes).tagged(tag as u64);
        exchanged.written = exchanged.written.and(device.submit(write));
    }
    for (n, read) in reads.iter().enumerate() {
        let (buffer, tag) = (IoBuffer::zeroed(page_bytes), (first_read + n) as u64);
        let read = Request::read(offset(read.page), ByteSize(0)).with_buffer(buffer).tagged(tag);
        exchanged.read = exchanged.read.and(device.submit(read));
    }
    loop {
        match device.wait() {
            Ok(Some(done)) => match (done.tag as usize).checked_sub(first_read).and_then(|n| reads.get_mut(n)) {
                None => exchanged.written = exchanged.written.and(done.result),
                Some(read) => {
                    exchanged.read = exchanged.read.and(done.result);
                    let bytes = done.buffer.ok_or(BlockError::Protocol("a read lost its buffer"));
                    exchanged.read = exchanged.read.and(bytes.map(|bytes| read.into.copy_from_slice(&bytes)));
                }
            },
            Ok(None) => return exchanged,
            Err(lost) => return Exchanged { written: Err(lost.clone()), read: Err(lost) },
        }
    }
}

fn pages_of(capacity: ByteSize, page_bytes: usize) -> u64 {
    capacity.bytes() / (page_bytes as u64).max(1)
}

/// Pages on a block device, one exchange at a time: what is outstanding together is what one exchange asks for.
#[derive(Debug)]
pub struct DeviceStore<D> {
    device: Mutex<D>,
    pages: u64,
    page_bytes: usize,
}

impl<D: BlockDevice + Send> DeviceStore<D> {
    /// Pages of `page_bytes`, a multiple of the device's logical block.
    ///
    /// # Errors
    /// [`BlockError::Refused`] where it is none.
    pub fn new(device: D, page_bytes: usize) -> Result<Self, BlockError> {
        let (block, pages) = (device.info().logical_block, pages_of(device.info().capacity, page_bytes));
        if page_bytes == 0 || !ByteSize(page_bytes as u64).is_multiple_of(block) {
            let message = format!("pages of {page_bytes} bytes: must be a multiple of the device's block, {block}");
            return Err(BlockError::Refused(message));
        }
        Ok(Self { device: Mutex::new(device), pages, page_bytes })
    }

    /// The device, alone.
    pub fn lock(&self) -> MutexGuard<'_, D> {
        self.device.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// The device back.
    pub fn into_inner(self) -> D {
        self.device.into_inner().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl<D: BlockDevice + Send> PageStore for DeviceStore<D> {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
        exchange(&mut *self.lock(), self.page_bytes, writes, reads)
    }

    fn flush(&self) -> Result<(), BlockError> {
        let mut device = self.lock();
        device.submit(Request::flush())?;
        let done = device.wait()?.ok_or(BlockError::Protocol("the device lost a flush"))?;
        done.result
    }
}

/// Pages in a file of the program's own, with direct I/O: threads read beside each other, and what one of them asks for
/// together goes through an io_uring that it has for so long.
#[derive(Debug)]
pub struct FileStore {
    file: DirectFile,
    page_bytes: usize,
    rings: Mutex<Vec<FileDevice>>,
}

impl FileStore {
    /// Pages of `page_bytes` in a file, a multiple of 512 or of what its file system demands for direct I/O.
    ///
    /// # Errors
    /// [`BlockError::Refused`] where they are none, or an error of the system when no ring can be made.
    pub fn new(file: DirectFile, page_bytes: usize) -> Result<Self, BlockError> {
        let ring = FileDevice::on_direct_file(&file)?;
        let block = ring.info().logical_block;
        if page_bytes == 0 || !ByteSize(page_bytes as u64).is_multiple_of(block) {
            let message = format!("pages of {page_bytes} bytes: must be a multiple of {block} for direct I/O here");
            return Err(BlockError::Refused(message));
        }
        Ok(Self { file, page_bytes, rings: Mutex::new(vec![ring]) })
    }

    /// Pages in an existing file.
    ///
    /// # Errors
    /// As [`DirectFile::open`] and [`FileStore::new`].
    pub fn open(path: &Path, page_bytes: usize) -> Result<Self, BlockError> {
        Self::new(DirectFile::open(path)?, page_bytes)
    }

    /// Pages in a new file.
    ///
    /// # Errors
    /// As [`DirectFile::create`] and [`FileStore::new`].
    pub fn create(path: &Path, size: ByteSize, page_bytes: usize) -> Result<Self, BlockError> {
        Self::new(DirectFile::create(path, size)?, page_bytes)
    }

    fn rings(&self) -> MutexGuard<'_, Vec<FileDevice>> {
        self.rings.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn offset(&self, page: Page) -> ByteSize {
        ByteSize(u64::from(page.0) * self.page_bytes as u64)
    }

    fn exchange_on_ring(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
        let spare = self.rings().pop();
        let ring = spare.map_or_else(|| FileDevice::on_direct_file(&self.file), Ok);
        let mut ring = match ring {
            Ok(ring) => ring,
            Err(error) => return Exchanged { written: Err(error.clone()), read: Err(error) },
        };
        let exchanged = exchange(&mut ring, self.page_bytes, writes, reads);
        // A ring that still has something in progress is not used again.
        if ring.outstanding() == 0 {
            self.rings().push(ring);
        }
        exchanged
    }
}

impl PageStore for FileStore {
    fn pages(&self) -> u64 {
        pages_of(self.file.size(), self.page_bytes)
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
        let nothing = || Exchanged { written: Ok(()), read: Ok(()) };
        match (writes.as_slice(), reads) {
            ([], []) => nothing(),
            ([], [read]) => {
                let result = self.file.read_at(read.into, self.offset(read.page));
                Exchanged { read: result, ..nothing() }
            }
            ([image], []) => {
                let result = self.file.write_at(&image.bytes, self.offset(image.page));
                Exchanged { written: result, ..nothing() }
            }
            (_, reads) => self.exchange_on_ring(writes, reads),
        }
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.file.sync()
    }
}
