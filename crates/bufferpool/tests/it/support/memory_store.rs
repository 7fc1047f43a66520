//! A store in memory that fails when it is told to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use flashwise_block::BlockError;
use flashwise_bufferpool::concurrent::store::{Exchanged, PageRead};
use flashwise_bufferpool::concurrent::{PageImage, PageStore};

/// Pages of one size in memory.
pub struct MemoryStore {
    pages: u64,
    page_bytes: usize,
    bytes: Mutex<Vec<u8>>,
    /// Exchanges that write, and flushes, until one fails; below 0 none does.
    pub writes_until_failure: AtomicI64,
    /// Exchanges that read, until one fails.
    pub reads_until_failure: AtomicI64,
    /// Flushes until one fails.
    pub flushes_until_failure: AtomicI64,
    /// Writes that were made together, by exchange.
    pub batches: Mutex<Vec<usize>>,
    pub flushes: AtomicU64,
}

fn fails(counter: &AtomicI64) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| (left >= 0).then(|| left - 1)) == Ok(0)
}

fn failure(what: &str) -> BlockError {
    BlockError::Os { context: what.to_owned(), message: "Input/output error".to_owned(), errno: 5 }
}

impl MemoryStore {
    pub fn new(pages: u64, page_bytes: usize) -> Self {
        Self {
            pages,
            page_bytes,
            bytes: Mutex::new(vec![0; pages as usize * page_bytes]),
            writes_until_failure: AtomicI64::new(-1),
            reads_until_failure: AtomicI64::new(-1),
            flushes_until_failure: AtomicI64::new(-1),
            batches: Mutex::default(),
            flushes: AtomicU64::new(0),
        }
    }

    /// What is in the store now.
    pub fn page(&self, page: u32) -> Vec<u8> {
        let at = page as usize * self.page_bytes;
        self.bytes.lock().unwrap()[at..at + self.page_bytes].to_vec()
    }
}

impl PageStore for MemoryStore {
    fn pages(&self) -> u64 {
        self.pages
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn exchange(&self, writes: Vec<PageImage>, reads: &mut [PageRead<'_>]) -> Exchanged {
        let (mut written, mut read) = (Ok(()), Ok(()));
        if !writes.is_empty() {
            self.batches.lock().unwrap().push(writes.len());
            if fails(&self.writes_until_failure) {
                written = Err(failure("write"));
            }
        }
        if !reads.is_empty() && fails(&self.reads_until_failure) {
            read = Err(failure("read"));
        }
        let mut bytes = self.bytes.lock().unwrap();
        let at = |page: u32| page as usize * self.page_bytes;
        for image in writes.iter().filter(|_| written.is_ok()) {
            bytes[at(image.page.0)..][..self.page_bytes].copy_from_slice(&image.bytes);
        }
        for wanted in reads.iter_mut().filter(|_| read.is_ok()) {
            wanted.into.copy_from_slice(&bytes[at(wanted.page.0)..][..self.page_bytes]);
        }
        drop(bytes);
        std::thread::yield_now();
        Exchanged { written, read }
    }

    fn flush(&self) -> Result<(), BlockError> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        if fails(&self.flushes_until_failure) { Err(failure("flush")) } else { Ok(()) }
    }
}
