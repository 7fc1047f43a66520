//! RocksDB by its C interface: an LSM-tree. A commit is durable with `sync`.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::Duration;

use flashwise_store::workload::Change;

use crate::{Failure, MEMTABLE, Peer};

// `rocksdb/c.h`; every pointer is of a type that is not public.
unsafe extern "C" {
    fn rocksdb_options_create() -> *mut c_void;
    fn rocksdb_options_set_create_if_missing(options: *mut c_void, is_so: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: *mut c_void, bytes: usize);
    fn rocksdb_options_set_max_bytes_for_level_base(options: *mut c_void, bytes: u64);
    fn rocksdb_options_set_target_file_size_base(options: *mut c_void, bytes: u64);
    fn rocksdb_options_set_compression(options: *mut c_void, kind: c_int);
    fn rocksdb_options_set_block_based_table_factory(options: *mut c_void, table: *mut c_void);
    fn rocksdb_block_based_options_create() -> *mut c_void;
    fn rocksdb_block_based_options_set_block_cache(table: *mut c_void, cache: *mut c_void);
    fn rocksdb_cache_create_lru(bytes: usize) -> *mut c_void;
    fn rocksdb_open(options: *const c_void, path: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn rocksdb_close(db: *mut c_void);
    fn rocksdb_writeoptions_create() -> *mut c_void;
    fn rocksdb_writeoptions_set_sync(options: *mut c_void, is_so: c_uchar);
    fn rocksdb_readoptions_create() -> *mut c_void;
    fn rocksdb_writebatch_create() -> *mut c_void;
    fn rocksdb_writebatch_clear(batch: *mut c_void);
    fn rocksdb_writebatch_put(batch: *mut c_void, key: *const u8, key_len: usize, value: *const u8, value_len: usize);
    fn rocksdb_write(db: *mut c_void, options: *const c_void, batch: *mut c_void, error: *mut *mut c_char);
    fn rocksdb_get(
        db: *mut c_void,
        options: *const c_void,
        key: *const u8,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn rocksdb_property_int(db: *mut c_void, name: *const c_char, value: *mut u64) -> c_int;
    fn rocksdb_free(pointer: *mut c_void);
}

/// What says whether there is background work.
const WORK: [&CStr; 4] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
];

struct Rocks {
    db: *mut c_void,
    write: *mut c_void,
    read: *mut c_void,
    batch: *mut c_void,
}

fn checked(error: *mut c_char) -> Result<(), Failure> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB's errors are strings that the caller frees.
    let words = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    unsafe { rocksdb_free(error.cast()) };
    Err(words.into())
}

pub fn open(directory: &Path, cache: u64) -> Result<Box<dyn Peer>, Failure> {
    let path = CString::new(directory.join("rocksdb").as_os_str().as_bytes())?;
    let mut error = null_mut();
    // SAFETY: the calls take what the calls before made; the options live as long as the process.
    let rocks = unsafe {
        let (options, table) = (rocksdb_options_create(), rocksdb_block_based_options_create());
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_write_buffer_size(options, MEMTABLE as usize);
        rocksdb_options_set_max_bytes_for_level_base(options, 4 * MEMTABLE);
        rocksdb_options_set_target_file_size_base(options, MEMTABLE);
        rocksdb_options_set_compression(options, 0);
        rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(cache as usize));
        rocksdb_options_set_block_based_table_factory(options, table);
        let db = rocksdb_open(options, path.as_ptr(), &mut error);
        let write = rocksdb_writeoptions_create();
        rocksdb_writeoptions_set_sync(write, 1);
        Rocks { db, write, read: rocksdb_readoptions_create(), batch: rocksdb_writebatch_create() }
    };
    checked(error)?;
    Ok(Box::new(rocks))
}

impl Drop for Rocks {
    fn drop(&mut self) {
        if !self.db.is_null() {
            // SAFETY: it was opened, and nothing uses it any more.
            unsafe { rocksdb_close(self.db) };
        }
    }
}

impl Peer for Rocks {
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure> {
        let mut error = null_mut();
        // SAFETY: keys and values outlive the calls, which copy them.
        unsafe {
            rocksdb_writebatch_clear(self.batch);
            for (key, value) in changes {
                rocksdb_writebatch_put(self.batch, key.as_ptr(), key.len(), value.as_ptr(), value.len());
            }
            rocksdb_write(self.db, self.write, self.batch, &mut error);
        }
        checked(error)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        // Work may start between two looks: it has ended when several find none.
        let mut quiet = 0;
        while quiet < 10 {
            sleep(Duration::from_millis(50));
            let is_quiet = WORK.iter().all(|name| {
                let mut value = 0;
                // SAFETY: the name is a string, the value lives.
                unsafe { rocksdb_property_int(self.db, name.as_ptr(), &mut value) == 0 && value == 0 }
            });
            quiet = if is_quiet { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let (mut length, mut error) = (0, null_mut());
        // SAFETY: the key outlives the call; the value is the caller's to free.
        let value = unsafe {
            let found = rocksdb_get(self.db, self.read, key.as_ptr(), key.len(), &mut length, &mut error);
            (!found.is_null()).then(|| {
                let value = std::slice::from_raw_parts(found, length).to_vec();
                rocksdb_free(found.cast());
                value
            })
        };
        checked(error)?;
        Ok(value)
    }
}
