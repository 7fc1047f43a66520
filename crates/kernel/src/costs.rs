//! What the processor's part of a call takes.
//!
//! The defaults were measured on a virtual machine with two processors (Intel Xeon, Sapphire Rapids), Linux 6.18, ext4,
//! a file of 32 MiB in the page cache, each the best of 31 means of 32 to 20,000 calls, with the calls named here:
//!
//! | constant | ns | from |
//! |---|---|---|
//! | [`system_call`](ProcessorCosts::system_call) | 100 | `lseek`: 101 |
//! | [`read`](ProcessorCosts::read) | 120 | `pread` of 1 byte: 223, less a system call |
//! | [`read_page`](ProcessorCosts::read_page) | 174 | `pread` of 64 KiB: 3004, less `pread` of 1 byte, over 16 pages |
//! | [`write`](ProcessorCosts::write) | 790 | `pwrite` of 4 KiB: 1130 at most, less a system call and a page |
//! | [`write_page`](ProcessorCosts::write_page) | 238 | `pwrite` of 64 KiB: 4640, less `pwrite` of 4 KiB (1070), over 15 pages |
//! | [`new_page`](ProcessorCosts::new_page) | 1470 | `pwrite` of 4 KiB to a new file: 2542, less the same over cached pages |
//! | [`fault`](ProcessorCosts::fault) | 1330 | a read fault of a mapped, cached file that maps 16 pages: 1331 |
//! | [`wake_up`](ProcessorCosts::wake_up) | 980 | a byte through two pipes to a thread and back: half of a round |
//!
//! What the block layer and the driver take for a request is not in them: a drive's latency, as measured, has it.

use flashwise_block::Nanos;

/// Processor time of the kernel's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorCosts {
    /// Entering and leaving the kernel.
    pub system_call: Nanos,
    /// A read, beyond that.
    pub read: Nanos,
    /// Finding and copying a page of it.
    pub read_page: Nanos,
    /// A write, beyond the system call.
    pub write: Nanos,
    /// Finding and copying a page of it.
    pub write_page: Nanos,
    /// A page that was not cached: getting memory, entering it, reserving space.
    pub new_page: Nanos,
    /// A page fault that finds its page cached.
    pub fault: Nanos,
    /// From an event to the task that waits for it.
    pub wake_up: Nanos,
}

impl Default for ProcessorCosts {
    fn default() -> Self {
        Self {
            system_call: Nanos(100),
            read: Nanos(120),
            read_page: Nanos(174),
            write: Nanos(790),
            write_page: Nanos(238),
            new_page: Nanos(1470),
            fault: Nanos(1330),
            wake_up: Nanos(980),
        }
    }
}

impl ProcessorCosts {
    /// A processor that takes no time.
    pub fn none() -> Self {
        let none = Nanos(0);
        Self {
            system_call: none,
            read: none,
            read_page: none,
            write: none,
            write_page: none,
            new_page: none,
            fault: none,
            wake_up: none,
        }
    }
}
