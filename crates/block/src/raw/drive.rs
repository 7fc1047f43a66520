//! The drive below a file system or a device: walks down what lies between, and adds up where each of it starts.
//!
//! ```text
//!   file system's device ─▶ partition ─ start ─▶ disk         (sysfs)
//!                        ─▶ dm-linear, dm-crypt ─ offset ─▶   (table of the device mapper, which takes root)
//!                        ─▶ md RAID1, linear ─ offset ─▶      (sysfs, of each member)
//!                        ─▶ loop device over a device ─ offset ─▶
//! ```
//!
//! A place on a drive is known only where every step is one shift of all bytes. What spreads its bytes over several
//! devices, or moves them, ends the walk with the reason.
//!
//! Source: Linux, `Documentation/admin-guide/device-mapper` (linear, dm-crypt), `Documentation/admin-guide/md.rst`.

use std::os::fd::AsFd;
use std::path::Path;

use super::footprint::DEEPEST;
use super::system::{DeviceNumber, Named, Node, System};
use crate::{ByteSize, PlacementUnknown};

/// sysfs and the tables of the device mapper count sectors of 512 bytes on every drive.
const SECTOR: u64 = 512;

/// The drive below a file system or partition, which starts at `start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drive {
    /// The kernel's name of the whole drive; the members of a mirror are joined by `+`.
    pub(crate) name: String,
    /// First byte of the file system or device on it.
    pub(crate) start: ByteSize,
    /// What lies between, from the top, each with where it starts in the next one.
    pub(crate) layers: Vec<String>,
}

/// One step down.
struct Step {
    /// The device in words.
    layer: String,
    /// The devices that each have all of its bytes, from an offset on.
    copies: Vec<(Node, u64)>,
}

impl Drive {
    /// The drive below the file system that `file` is on.
    pub(crate) fn below(file: &impl AsFd) -> Result<Self, PlacementUnknown> {
        let status =
            rustix::fs::fstat(file).map_err(|error| PlacementUnknown(format!("examining the file: {error}")))?;
        let number = DeviceNumber::from_raw(status.st_dev);
        if number.major == 0 {
            return Err(PlacementUnknown("its file system is not on a block device of its own".into()));
        }
        let system = System::real();
        let node =
            system.node(number).map_err(|error| PlacementUnknown(format!("sysfs does not know {number}: {error}")))?;
        Self::of(&system, &node)
    }

    /// The drive that a block device is, or is a part of.
    pub(super) fn of(system: &System, node: &Node) -> Result<Self, PlacementUnknown> {
        walk(system, node, DEEPEST)
    }
}

fn walk(system: &System, node: &Node, depth: usize) -> Result<Drive, PlacementUnknown> {
    let name = &node.name;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PlacementUnknown(format!("{name} is made of too many devices, or of itself")));
    };
    let Some(step) = step(system, node)? else {
        return Ok(Drive { name: name.clone(), start: ByteSize(0), layers: Vec::new() });
    };
    let mut found: Option<Drive> = None;
    for (below, offset) in &step.copies {
        let mut drive = walk(system, below, depth)?;
        let start = drive.start.0.checked_add(*offset);
        drive.start = ByteSize(start.ok_or_else(|| PlacementUnknown(format!("{name} starts beyond any drive")))?);
        match &mut found {
            None => {
                drive.layers.insert(0, step.layer.clone());
                found = Some(drive);
            }
            Some(first) if first.start == drive.start => first.name = format!("{}+{}", first.name, drive.name),
            Some(_) => {
                return Err(PlacementUnknown(format!("the members of {name} have its bytes at different places")));
            }
        }
    }
    found.ok_or_else(|| PlacementUnknown(format!("the kernel reports no device below {name}")))
}

/// What a device is made of; `None` for a drive.
fn step(system: &System, node: &Node) -> Result<Option<Step>, PlacementUnknown> {
    let name = &node.name;
    if let Some(disk) = node.disk() {
        let start = node.number("start").and_then(|sectors| sectors.checked_mul(SECTOR));
        let start = start.ok_or_else(|| PlacementUnknown(format!("the kernel does not report where {name} starts")))?;
        return Ok(Some(Step { layer: from(&format!("partition {name}"), start), copies: vec![(disk, start)] }));
    }
    // A loop device over a file is a drive of its own: where its file lies is its file system's matter.
    let backing = node.loop_backing().and_then(|path| (system.named)(Path::new(&path)));
    if let Some(Named::Device(number)) = backing {
        return over_device(system, node, number).map(Some);
    }
    if node.attribute("dm/name").is_some() {
        return mapped(system, node).map(Some);
    }
    if let Some(level) = node.attribute("md/level") {
        return array(node, &level).map(Some);
    }
    match node.slaves() {
        Ok(slaves) if slaves.is_empty() => Ok(None),
        _ => Err(PlacementUnknown(format!("{name} is made of other devices in a way that the kernel does not report"))),
    }
}

/// A device that starts there in the one below.
fn from(device: &str, start: u64) -> String {
    format!("{device} from {} on", ByteSize(start))
}

fn over_device(system: &System, node: &Node, number: DeviceNumber) -> Result<Step, PlacementUnknown> {
    let name = &node.name;
    let failed = |error: std::io::Error| PlacementUnknown(format!("where the loop device {name} starts: {error}"));
    let offset = (system.loop_status)(node).map_err(failed)?.offset;
    let below = system.node(number).map_err(failed)?;
    Ok(Step { layer: from(&format!("loop device {name}"), offset), copies: vec![(below, offset)] })
}

/// A device of the device mapper: one part that is a shift.
fn mapped(system: &System, node: &Node) -> Result<Step, PlacementUnknown> {
    let name = mapped_name(node);
    let unknown = |why: &str| PlacementUnknown(format!("{name} {why}"));
    let table = (system.table)(node)
        .map_err(|error| unknown(&format!("starts where only its table says, which takes root to read: {error}")))?;
    let [target] = &*table else {
        return Err(unknown(&format!("consists of {} parts at different places", table.len())));
    };
    let words: Vec<&str> = target.parameters.split(' ').collect();
    let (below, offset) = match (&*target.kind, &*words) {
        ("linear", &[below, offset]) => (below, offset),
        // Cipher, key, offset of the initialisation vectors, device, offset, options.
        ("crypt", &[_, _, _, below, offset, ..]) => (below, offset),
        ("striped", &[stripes, ..]) => return Err(unknown(&format!("is striped over {stripes} devices"))),
        (kind, _) => {
            return Err(unknown(&format!("is of the kind '{kind}', which does not keep its bytes at one distance")));
        }
    };
    let unreadable = || unknown(&format!("has a table that cannot be read: '{below} {offset}'"));
    let start = offset.parse::<u64>().ok().and_then(|sectors| sectors.checked_mul(SECTOR)).ok_or_else(unreadable)?;
    let number = below.parse().map_err(|()| unreadable())?;
    let below = system.node(number).map_err(|_| unreadable())?;
    Ok(Step { layer: from(&name, start), copies: vec![(below, start)] })
}

/// The name of a mapped device, with what made it.
fn mapped_name(node: &Node) -> String {
    let name = node.attribute("dm/name").unwrap_or_else(|| node.name.clone());
    let made_by = node.attribute("dm/uuid").unwrap_or_default();
    let kind = match made_by.split('-').next() {
        Some("LVM") => "LVM volume",
        Some("CRYPT") => "encrypted volume",
        _ => "mapped device",
    };
    format!("{kind} {name}")
}

/// An md array whose members each have all bytes.
fn array(node: &Node, level: &str) -> Result<Step, PlacementUnknown> {
    let name = &node.name;
    let unknown = |why: String| PlacementUnknown(format!("{name} {why}"));
    let members = node.slaves().map_err(|error| unknown(format!("has unknown members: {error}")))?;
    match level {
        "raid1" => {}
        "linear" if members.len() == 1 => {}
        "linear" => return Err(unknown(format!("is {} drives, one after the other", members.len()))),
        level => {
            return Err(unknown(format!("is an array of level {level}, which spreads its bytes over its members")));
        }
    }
    let copies = members.into_iter().map(|member| {
        let sectors = node.number(&format!("md/dev-{}/offset", member.name));
        let offset = sectors.and_then(|sectors| sectors.checked_mul(SECTOR));
        let offset = offset.ok_or_else(|| unknown(format!("starts at an unknown place on {}", member.name)))?;
        Ok((member, offset))
    });
    let copies: Vec<(Node, u64)> = copies.collect::<Result<_, PlacementUnknown>>()?;
    let first = copies.first().map_or(0, |(_, offset)| *offset);
    Ok(Step { layer: from(&format!("{level} array {name}"), first), copies })
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn drive(machine: &Machine, number: &str) -> Result<Drive, PlacementUnknown> {
        Drive::of(&machine.system(), &machine.node(number))
    }

    fn place(machine: &Machine, number: &str) -> (String, u64) {
        let drive = drive(machine, number).unwrap();
        (drive.name, drive.start.0)
    }

    fn why(machine: &Machine, number: &str) -> String {
        drive(machine, number).unwrap_err().to_string()
    }

    /// An md array of disks, each with the array's offset in sectors.
    fn md(machine: &Machine, level: &str, members: &[(&str, &str, Option<u64>)]) {
        machine.disk("md0", "9:0");
        machine.write("sys/devices/md0/md/level", &format!("{level}\n"));
        for (name, number, offset) in members {
            machine.disk(name, number);
            machine.holds("md0", name);
            if let Some(sectors) = offset {
                machine.write(&format!("sys/devices/md0/md/dev-{name}/offset"), &format!("{sectors}\n"));
            }
        }
    }

    #[test]
    fn a_partition_begins_where_sysfs_says_in_sectors_of_512_bytes() {
        let machine = Machine::new();
        machine.disk("nvme0n1", "259:0");
        machine.partition("nvme0n1", 1, "nvme0n1p1", "259:1");
        machine.partition("nvme0n1", 2, "nvme0n1p2", "259:2");
        machine.write("sys/devices/nvme0n1/nvme0n1p1/start", "2048\n");
        std::fs::remove_file(machine.path("sys/devices/nvme0n1/nvme0n1p2/start")).unwrap();
        let layers = |layers: &[&str]| layers.iter().map(|&layer| layer.to_owned()).collect();
        let expected = |start, layers| Ok(Drive { name: "nvme0n1".into(), start: ByteSize(start), layers });
        assert_eq!(drive(&machine, "259:0"), expected(0, layers(&[])));
        assert_eq!(drive(&machine, "259:1"), expected(1 << 20, layers(&["partition nvme0n1p1 from 1 MiB on"])));
        assert!(why(&machine, "259:2").contains("where nvme0n1p2 starts"));
    }

    #[test]
    fn offsets_add_up_through_lvm_on_luks_on_a_partition() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.partition("sda", 1, "sda1", "8:1");
        machine.write("sys/devices/sda/sda1/start", "2048\n");
        let key = "aes-xts-plain64 :64:logon:cryptsetup:1 0 8:1 32768 1 allow_discards";
        machine.mapped("dm-0", "252:0", "sda/sda1", Some(&format!("0 100000 crypt {key}")));
        machine.write("sys/devices/dm-0/dm/uuid", "CRYPT-LUKS2-0123-home\n");
        machine.write("sys/devices/dm-0/dm/name", "home\n");
        machine.mapped("dm-1", "252:1", "dm-0", Some("0 50000 linear 252:0 384"));
        machine.write("sys/devices/dm-1/dm/uuid", "LVM-abcdef\n");
        machine.write("sys/devices/dm-1/dm/name", "vg-data\n");
        let found = drive(&machine, "252:1").unwrap();
        assert_eq!((&*found.name, found.start.0), ("sda", (2048 + 32768 + 384) * 512));
        let layers = [
            "LVM volume vg-data from 192 KiB on",
            "encrypted volume home from 16 MiB on",
            "partition sda1 from 1 MiB on",
        ];
        assert_eq!(found.layers, layers);
    }

    #[test]
    fn a_mirror_is_tied_where_all_members_have_it_at_one_place() {
        let machine = Machine::new();
        md(&machine, "raid1", &[("sda", "8:0", Some(264_192)), ("sdb", "8:16", Some(264_192))]);
        assert_eq!(place(&machine, "9:0"), ("sda+sdb".to_owned(), 264_192 * 512));
        machine.write("sys/devices/md0/md/dev-sdb/offset", "2048\n");
        assert_eq!(why(&machine, "9:0"), "the members of md0 have its bytes at different places");
        std::fs::remove_file(machine.path("sys/devices/md0/md/dev-sdb/offset")).unwrap();
        assert_eq!(why(&machine, "9:0"), "md0 starts at an unknown place on sdb");
    }

    #[test]
    fn an_array_of_one_drive_is_tied_and_one_that_spreads_its_bytes_is_not() {
        let machine = Machine::new();
        md(&machine, "linear", &[("sda", "8:0", Some(16))]);
        assert_eq!(place(&machine, "9:0"), ("sda".to_owned(), 8192));
        let machine = Machine::new();
        let two = [("sda", "8:0", Some(16)), ("sdb", "8:16", Some(16))];
        md(&machine, "linear", &two);
        assert_eq!(why(&machine, "9:0"), "md0 is 2 drives, one after the other");
        for level in ["raid0", "raid5", "raid10"] {
            machine.write("sys/devices/md0/md/level", level);
            assert!(why(&machine, "9:0").starts_with(&format!("md0 is an array of level {level}, which spreads")));
        }
    }

    #[test]
    fn a_mapped_device_that_is_no_single_shift_is_not_tied_and_the_reason_is_given() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        for (index, (table, words)) in [
            (Some("0 100 striped 2 8 8:0 0 8:16 0"), "mapped device dm-0 is striped over 2 devices"),
            (Some("0 100 thin 8:0 1"), "mapped device dm-1 is of the kind 'thin'"),
            (Some("0 100 linear 8:0 2048;100 100 linear 8:0 9"), "mapped device dm-2 consists of 2 parts"),
            (Some("0 100 linear 8:99 2048"), "mapped device dm-3 has a table that cannot be read"),
            (Some("0 100 linear 8:0 18446744073709551615"), "mapped device dm-4 has a table that cannot be read"),
            (None, "mapped device dm-5 starts where only its table says, which takes root to read"),
        ]
        .into_iter()
        .enumerate()
        {
            let (name, number) = (format!("dm-{index}"), format!("252:{index}"));
            machine.mapped(&name, &number, "sda", table);
            assert!(why(&machine, &number).starts_with(words), "{}", why(&machine, &number));
        }
        machine.disk("bcache0", "251:0");
        machine.holds("bcache0", "sda");
        assert!(why(&machine, "251:0").contains("in a way that the kernel does not report"));
    }

    #[test]
    fn a_loop_device_over_a_device_is_a_layer_and_one_over_a_file_a_drive() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.loop_over("loop0", "7:0", &machine.path("dev/sda"));
        assert_eq!(place(&machine, "7:0"), ("sda".to_owned(), 0));
        machine.write("image", "no number");
        machine.loop_over("loop1", "7:1", &machine.path("image"));
        assert_eq!(place(&machine, "7:1"), ("loop1".to_owned(), 0));
    }

    #[test]
    fn what_is_made_of_itself_ends_the_walk() {
        let machine = Machine::new();
        machine.disk("dm-1", "252:1");
        machine.mapped("dm-0", "252:0", "dm-1", Some("0 100 linear 252:1 0"));
        machine.write("sys/devices/dm-1/dm/name", "dm-1");
        machine.write("sys/devices/dm-1/table_of_test", "0 100 linear 252:0 0");
        assert!(why(&machine, "252:0").contains("too many devices, or of itself"));
    }
}
