//! The same calls on the model, over the simulated drive that `attach` serves.

use flashwise_block::{ByteSize, Nanos};
use flashwise_kernel::{
    Advice, Allocate, FileHandle, Kernel, KernelConfig, MapHandle, OpenOptions, QueueLimits, SyncRange,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use crate::workloads::{Calls, Hint, How};

pub(crate) type Machine = Kernel<SimulatedSsd>;

/// The machine that the recording was made on, with a simulated drive. Where the drive was slowed down by `scale`
/// (`attach --time-scale`) all else is faster by as much on the drive's clock, but for ext4's `commit=`, which `attach`
/// sets.
pub(crate) fn machine(preset: &str, setup: &crate::Setup) -> Machine {
    let &crate::Setup { file_system, fast_commit, scale, costs } = setup;
    let drive = SimulatedSsd::new(DeviceConfig::preset(preset).expect("a preset"), 1).expect("a drive");
    let usual = KernelConfig::default();
    let faster = |time: Nanos| Nanos(time.0 / scale);
    let config = KernelConfig {
        file_system,
        fast_commit,
        memory: ByteSize::gib(24),
        discard: true,
        queue: QueueLimits::loop_device(),
        tick: faster(usual.tick),
        dirty_writeback: faster(usual.dirty_writeback),
        dirty_expire: faster(usual.dirty_expire),
        log_interval: faster(usual.log_interval),
        costs: costs.scaled(1.0 / scale as f64),
        ..usual
    };
    Kernel::new(drive, config).expect("a file system")
}

/// The calls on a kernel.
pub(crate) struct Model {
    pub(crate) kernel: Machine,
    scale: u64,
    files: Vec<FileHandle>,
    maps: Vec<MapHandle>,
}

impl Model {
    pub(crate) fn new(kernel: Machine, scale: u64) -> Self {
        Self { kernel, scale, files: Vec::new(), maps: Vec::new() }
    }
}

fn number<T: Copy + PartialEq>(all: &mut Vec<T>, new: T) -> usize {
    match all.iter().position(|&other| other == new) {
        Some(at) => at,
        None => {
            all.push(new);
            all.len() - 1
        }
    }
}

impl Calls for Model {
    fn open(&mut self, name: &str, how: How) -> usize {
        let options = OpenOptions::read_write().create(true).truncate(how.truncate).direct(how.direct);
        let options = options.dsync(how.dsync).sync(how.sync);
        let file = self.kernel.open(name, options).expect("open");
        number(&mut self.files, file)
    }

    fn close(&mut self, file: usize) {
        self.kernel.close(self.files[file]).expect("close");
    }

    fn read(&mut self, file: usize, offset: u64, bytes: u64) {
        self.kernel.pread(self.files[file], ByteSize(offset), ByteSize(bytes)).expect("pread");
    }

    fn write(&mut self, file: usize, offset: u64, bytes: u64) {
        self.kernel.pwrite(self.files[file], ByteSize(offset), ByteSize(bytes)).expect("pwrite");
    }

    fn fsync(&mut self, file: usize) {
        self.kernel.fsync(self.files[file]).expect("fsync");
    }

    fn fdatasync(&mut self, file: usize) {
        self.kernel.fdatasync(self.files[file]).expect("fdatasync");
    }

    fn sync_range(&mut self, file: usize, offset: u64, bytes: u64, wait: bool) {
        let how = SyncRange { wait_before: wait, write: true, wait_after: wait };
        self.kernel.sync_file_range(self.files[file], ByteSize(offset), ByteSize(bytes), how).expect("sync_file_range");
    }

    fn allocate(&mut self, file: usize, offset: u64, bytes: u64) {
        let file = self.files[file];
        self.kernel.fallocate(file, ByteSize(offset), ByteSize(bytes), Allocate::Grow).expect("fallocate");
    }

    fn truncate(&mut self, file: usize, bytes: u64) {
        self.kernel.ftruncate(self.files[file], ByteSize(bytes)).expect("ftruncate");
    }

    fn unlink(&mut self, name: &str) {
        self.kernel.unlink(name).expect("unlink");
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.kernel.rename(from, to).expect("rename");
    }

    fn sync_directory(&mut self) {
        self.kernel.sync_directory().expect("fsync of a directory");
    }

    fn advise(&mut self, file: usize, offset: u64, bytes: u64, hint: Hint) {
        let advice = match hint {
            Hint::Random => Advice::Random,
            Hint::WillNeed => Advice::WillNeed,
            Hint::DontNeed => Advice::DontNeed,
        };
        self.kernel.fadvise(self.files[file], ByteSize(offset), ByteSize(bytes), advice).expect("fadvise");
    }

    fn map(&mut self, file: usize, bytes: u64) -> usize {
        let map = self.kernel.mmap(self.files[file], ByteSize(bytes)).expect("mmap");
        number(&mut self.maps, map)
    }

    fn unmap(&mut self, map: usize) {
        self.kernel.munmap(self.maps[map]).expect("munmap");
    }

    fn load(&mut self, map: usize, offset: u64) {
        self.kernel.map_read(self.maps[map], ByteSize(offset), ByteSize(1)).expect("a load");
    }

    fn store(&mut self, map: usize, offset: u64) {
        self.kernel.map_write(self.maps[map], ByteSize(offset), ByteSize(1)).expect("a store");
    }

    fn msync(&mut self, map: usize, offset: u64, bytes: u64) {
        self.kernel.msync(self.maps[map], ByteSize(offset), ByteSize(bytes)).expect("msync");
    }

    fn sync(&mut self) {
        self.kernel.sync().expect("sync");
    }

    fn quiet(&mut self) {
        self.kernel.sync().expect("sync");
        self.kernel.drop_caches().expect("drop_caches");
        self.kernel.pause(Nanos(300_000_000 / self.scale)).expect("a pause");
    }
}
