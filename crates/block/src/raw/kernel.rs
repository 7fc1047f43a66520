//! Facts available only by ioctl: the backing of a loop device, and the table of a mapped device.
//!
//! Source: Linux, `include/uapi/linux/loop.h`, `include/uapi/linux/dm-ioctl.h`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::footprint::Target;
use super::system::{DeviceNumber, LoopStatus, Named, Node};

const LOOP_GET_STATUS64: u64 = 0x4c05;
/// `struct loop_info64`, in words of 8 bytes.
const LOOP_WORDS: usize = 29;

/// The backing of a loop device, by device and inode, whether or not it has a name.
pub(super) fn loop_status(node: &Node) -> io::Result<LoopStatus> {
    let device = open(node)?;
    let mut info = [0_u64; LOOP_WORDS];
    // SAFETY: the kernel writes a loop_info64, which is as large as `info`.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let [device, inode, block_device, offset, limit, ..] = info;
    let backing = match block_device {
        0 => {
            let number = decoded(device);
            Named::File(rustix::fs::makedev(number.major, number.minor), inode)
        }
        number => Named::Device(decoded(number)),
    };
    Ok(LoopStatus { backing, offset, limit })
}

/// The node below `/dev` that the kernel's name has, if it is still that device.
fn open(node: &Node) -> io::Result<File> {
    let path = Path::new("/dev").join(&node.name);
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let is_it = metadata.file_type().is_block_device() && DeviceNumber::from_raw(metadata.rdev()) == node.number;
    if is_it {
        Ok(file)
    } else {
        Err(failed(io::Error::other("it is not the device that the kernel knows by that name")))
    }
}

/// A device's number as the kernel writes it into structures of 64 bits.
fn decoded(number: u64) -> DeviceNumber {
    let major = (number >> 8 & 0xfff) as u32;
    let minor = (number & 0xff | number >> 12 & 0xf_ff00) as u32;
    DeviceNumber { major, minor }
}

fn encoded(number: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(number.major), u64::from(number.minor));
    minor & 0xff | major << 8 | (minor & 0xf_ff00) << 12
}

/// `_IOWR(0xfd, 12, struct dm_ioctl)`.
const DM_TABLE_STATUS: u64 = 0xc138_fd0c;
/// Size of `struct dm_ioctl`, which is followed by the targets.
const DM_HEADER: usize = 312;
const DM_STATUS_TABLE: u32 = 1 << 4;
const DM_BUFFER_FULL: u32 = 1 << 8;
/// Without it, the status of a thin pool commits its metadata, and may wait for that.
const DM_NOFLUSH: u32 = 1 << 11;
/// The largest table that is read; a longer one counts as unknown.
const DM_BUFFER: usize = 1 << 18;
/// Size of `struct dm_target_spec`.
const DM_TARGET: usize = 40;

/// The table of a mapped device. Takes root. That of an encrypted one has its key, which is erased at once.
pub(super) fn table(node: &Node) -> io::Result<Vec<Target>> {
    let kinds = targets(node, 0)?;
    let is_known =
        |target: &Target| matches!(&*target.kind, "linear" | "striped" | "thin" | "error" | "zero" | "crypt");
    if !kinds.iter().all(is_known) {
        return Ok(kinds);
    }
    targets(node, DM_STATUS_TABLE)
}

fn targets(node: &Node, flags: u32) -> io::Result<Vec<Target>> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/mapper/control")?;
    // In words, so that it is aligned as the structure is.
    let mut words = vec![0_u64; DM_BUFFER / 8];
    let mut header = [0_u8; 56];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &4_u32.to_ne_bytes());
    put(12, &(DM_BUFFER as u32).to_ne_bytes());
    put(16, &(DM_HEADER as u32).to_ne_bytes());
    put(28, &(flags | DM_NOFLUSH).to_ne_bytes());
    put(40, &encoded(node.number).to_ne_bytes());
    for (word, bytes) in words.iter_mut().zip(header.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    // SAFETY: the kernel writes at most data_size bytes, the size of `words`.
    let done = unsafe { libc::ioctl(control.as_raw_fd(), DM_TABLE_STATUS as _, words.as_mut_ptr()) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let targets = parse(&bytes);
    // They may have held the key of an encrypted device.
    words.fill(0);
    bytes.fill(0);
    std::hint::black_box((&words, &bytes));
    targets.ok_or_else(|| io::Error::other(format!("the table of {} cannot be read", node.name)))
}

/// The parameters of a target, as the kernel writes them, without the key of an encrypted device.
fn parameters(kind: &str, bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let words = bytes[..end].split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    // Cipher, key, and the rest: the key itself is never copied.
    let is_key = |index: usize| kind == "crypt" && index == 1;
    let shown = words.enumerate().map(|(index, word)| if is_key(index) { b"-" } else { word });
    shown.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}

/// The targets in the kernel's reply.
fn parse(bytes: &[u8]) -> Option<Vec<Target>> {
    let word = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let long = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let (data, count) = (word(16)? as usize, word(20)?);
    if word(28)? & DM_BUFFER_FULL != 0 {
        return None;
    }
    let mut at = data;
    let mut targets = Vec::new();
    for _ in 0..count {
        let kind = text(bytes.get(at + 24..at + DM_TARGET)?);
        let parameters = parameters(&kind, bytes.get(at + DM_TARGET..)?);
        targets.push(Target { start: long(at)?, length: long(at + 8)?, kind, parameters });
        at = data + word(at + 20)? as usize;
    }
    Some(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_the_kernel_s_way_of_writing_it() {
        for (major, minor) in [(7, 0), (8, 17), (259, 300), (252, 0xf_ffff), (0, 45)] {
            let number = DeviceNumber { major, minor };
            assert_eq!(decoded(encoded(number)), number);
        }
    }

    #[test]
    fn a_table_is_read_as_the_kernel_writes_it_and_a_broken_one_is_none() {
        let mut bytes = vec![0_u8; 512];
        let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
        put(16, &312_u32.to_ne_bytes());
        put(20, &2_u32.to_ne_bytes());
        put(312, &0_u64.to_ne_bytes());
        put(320, &100_u64.to_ne_bytes());
        put(332, &64_u32.to_ne_bytes());
        put(336, b"linear\0");
        put(352, b"8:0 2048\0");
        put(376, &100_u64.to_ne_bytes());
        put(384, &28_u64.to_ne_bytes());
        put(400, b"striped\0");
        put(416, b"2 8 8:0 0 8:16 0\0");
        let target = |start, length, kind: &str, parameters: &str| Target {
            start,
            length,
            kind: kind.into(),
            parameters: parameters.into(),
        };
        let expected = [target(0, 100, "linear", "8:0 2048"), target(100, 28, "striped", "2 8 8:0 0 8:16 0")];
        assert_eq!(parse(&bytes).unwrap(), expected);
        assert_eq!(parse(&bytes[..380]), None);
        bytes[28..32].copy_from_slice(&DM_BUFFER_FULL.to_ne_bytes());
        assert_eq!(parse(&bytes), None);
    }

    #[test]
    fn the_key_of_an_encrypted_device_is_not_kept() {
        let table = b"aes-xts-plain64 0123456789abcdef 0 8:1 32768 1 allow_discards\0more";
        assert_eq!(parameters("crypt", table), "aes-xts-plain64 - 0 8:1 32768 1 allow_discards");
        assert_eq!(parameters("linear", b"8:1 2048\0"), "8:1 2048");
    }
}
