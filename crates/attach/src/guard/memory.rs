//! Memory that is available before it is needed.
//!
//! When memory is short, the kernel frees some by writing dirty pages to their drive. A drive that allocates memory
//! while it serves such a write may then wait for itself. So its memory is locked ([`lock`]), its threads declare to
//! the kernel that they serve writes ([`serve_writes`], so that it frees memory elsewhere), and the memory for written
//! data is limited to the free memory ([`available`]).
//!
//! Source: `mlockall(2)`, `PR_SET_IO_FLUSHER` in `prctl(2)`, `proc_pid_oom_score_adj(5)`.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// OOM score of this process: as unlikely to be killed as possible without being exempt.
const SPARED: &str = "-900";

/// Locks all memory of this process, present and future; returns the number of bytes.
///
/// Tables of a sparsely used drive take much of the address space: if all of it is more than half of the machine's free
/// memory, pages are locked when they are first used.
pub(crate) fn lock() -> io::Result<Locked> {
    let all = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    let is_modest = status("VmData:").zip(available()).is_some_and(|(size, free)| size < free / 2);
    mlockall(if is_modest { all } else { all | MlockAllFlags::ONFAULT })?;
    Ok(Locked { bytes: status("VmLck:").unwrap_or_default(), is_whole: is_modest })
}

/// The locked memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Locked {
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Not only pages that have been touched.
    pub(crate) is_whole: bool,
}

/// Has this process ended late where memory is out.
#[allow(clippy::disallowed_methods, reason = "an attribute of the kernel's")]
pub(crate) fn spare_from_killing() -> io::Result<()> {
    std::fs::write("/proc/self/oom_score_adj", SPARED)
}

/// Marks this thread, and those that it starts, for the kernel as threads that serve writes.
pub(crate) fn serve_writes() -> io::Result<()> {
    Ok(rustix::process::configure_io_flusher_behavior(true)?)
}

/// Whether threads may declare it. Programs that this one starts would be taken for such threads: so it is tried and
/// undone.
pub(crate) fn may_serve_writes() -> io::Result<()> {
    serve_writes()?;
    Ok(rustix::process::configure_io_flusher_behavior(false)?)
}

/// Memory that programs can get, bytes, as the machine and this process's memory cgroup have it.
pub fn available() -> Option<u64> {
    let machine = field(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:");
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(of_group).chain(machine).min()
}

/// The free memory of the cgroup in a line of `/proc/self/cgroup`.
fn of_group(line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (base, limit, used) = match parts.next()? {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
        list if list.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    let group = format!("{base}{}", parts.next()?);
    let number = |name| std::fs::read_to_string(format!("{group}/{name}")).ok()?.trim().parse::<u64>().ok();
    Some(number(limit)?.saturating_sub(number(used)?))
}

fn status(name: &str) -> Option<u64> {
    field(&std::fs::read_to_string("/proc/self/status").ok()?, name)
}

/// `Name:   12 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_known() {
        let free = available().unwrap();
        assert!(free > 64 << 20, "{free}");
        assert_eq!(field("MemFree: 7 kB\nMemAvailable:    12 kB\n", "MemAvailable:"), Some(12 << 10));
        assert_eq!(field("MemFree: 7 kB\n", "MemAvailable:"), None);
    }
}
