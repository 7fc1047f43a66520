//! Get Log Page of an NVMe device.
//!
//! The only command is Get Log Page (02h), which reads, with the bit that keeps asynchronous events: nobody else misses
//! one. It needs root, or `CAP_SYS_ADMIN`.
//!
//! Source: Linux, `include/uapi/linux/nvme_ioctl.h`; NVM Express Base Specification 2.0, 5.16.

use std::fs::{File, OpenOptions, canonicalize, metadata, read_to_string};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{major, minor};

use super::{AwsLog, Counters, MakerLog, OcpLog, SmartLog, aws, smart};

/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const NVME_IOCTL_ADMIN_CMD: u64 = 0xc048_4e41;
const GET_LOG_PAGE: u8 = 0x02;
/// Bit of command dword 10 that keeps an asynchronous event which the page would acknowledge.
const RETAIN_EVENT: u32 = 1 << 15;
/// Every namespace: the page of the controller.
const ALL_NAMESPACES: u32 = u32::MAX;
/// AWS's page is of a namespace, and its volumes have one.
const FIRST_NAMESPACE: u32 = 1;

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// The directory of a device in sysfs, if its driver is NVMe's.
fn in_sysfs(path: &Path) -> Option<PathBuf> {
    let found = metadata(path).ok()?;
    let kind = match found.file_type() {
        kind if kind.is_char_device() => "char",
        kind if kind.is_block_device() => "block",
        _ => return None,
    };
    let (major, minor) = (major(found.rdev()), minor(found.rdev()));
    let listed = canonicalize(format!("/sys/dev/{kind}/{major}:{minor}")).ok()?;
    listed.components().any(|part| part.as_os_str() == "nvme" || part.as_os_str() == "nvme-subsystem").then_some(listed)
}

/// Whether a path is an NVMe controller or a namespace, by the kernel's word and not by its name.
pub fn is_nvme_device(path: &Path) -> bool {
    in_sysfs(path).is_some()
}

/// The maker's PCI number of the controller of a device: in its directory or one above.
fn maker(listed: &Path) -> Option<u16> {
    let text = listed.ancestors().find_map(|place| {
        let own = read_to_string(place.join("device/vendor"));
        own.or_else(|_| read_to_string(place.join("vendor"))).ok()
    })?;
    u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Reads every page that the device has.
pub(super) fn read(path: &Path) -> io::Result<Counters> {
    let listed = in_sysfs(path).ok_or_else(|| io::Error::other("it is no NVMe device"))?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let device = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let page = get_log_page(&device, ALL_NAMESPACES, SmartLog::ID, smart::BYTES)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    // What follows is not of every drive: one that does not know a page refuses it.
    let of_makers = |id: u8| get_log_page(&device, ALL_NAMESPACES, id, smart::BYTES).ok();
    let maker = maker(&listed);
    let counters = Counters {
        time_s: Some(now),
        smart: SmartLog::parse(&page),
        ocp: of_makers(OcpLog::ID).and_then(|page| OcpLog::parse(&page)),
        maker: maker.and_then(|maker| MakerLog::parse_of(maker, &of_makers(MakerLog::page_of(maker)?)?)),
        aws: get_log_page(&device, FIRST_NAMESPACE, AwsLog::ID, aws::BYTES).ok().and_then(|page| AwsLog::parse(&page)),
    };
    match counters.is_empty() {
        true => Err(io::Error::other("the device sent no log page that is known here")),
        false => Ok(counters),
    }
}

fn get_log_page(device: &File, namespace: u32, id: u8, length: usize) -> io::Result<Vec<u8>> {
    let mut page = vec![0_u8; length];
    // The page is counted in words of four bytes, from zero on.
    let words = (length / 4 - 1) as u32;
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace,
        address: page.as_mut_ptr().expose_provenance() as u64,
        data_length: length as u32,
        cdw10: u32::from(id) | RETAIN_EVENT | (words & 0xffff) << 16,
        cdw11: words >> 16,
        ..AdminCommand::default()
    };
    // SAFETY: `command` has the layout of struct nvme_admin_cmd, whose size is part of the ioctl's number. The kernel
    // reads it, writes its result into it, and at most `data_length` bytes to `address`, which is `page`. Both outlive
    // the call, and nothing else uses them meanwhile.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command) };
    match done {
        0 => Ok(page),
        error if error < 0 => Err(io::Error::last_os_error()),
        status => Err(io::Error::other(format!("the drive refused log page {id:02x}h with status {status:#x}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_size_that_the_number_of_the_ioctl_names() {
        assert_eq!(size_of::<AdminCommand>() as u64, NVME_IOCTL_ADMIN_CMD >> 16 & 0x3fff);
    }

    #[test]
    fn a_file_and_a_device_of_another_kind_are_not_asked() {
        for path in ["/dev/null", "/proc/self/status", "/nowhere"] {
            assert!(!is_nvme_device(Path::new(path)), "{path}");
            assert!(read(Path::new(path)).is_err(), "{path}");
        }
    }
}
