//! The footprint of a device: which bytes of which drives and files back it. It shows whether two devices share bytes,
//! whatever their names.
//!
//! ```text
//!   partition ─▶ its disk, from a start on          loop device ─▶ the file or device below, from an offset on
//!   linear, striped ─▶ parts of slaves              any other device with slaves ─▶ all of each
//!   thin volume ─▶ itself, by pool and number       disks with one world-wide name (paths) ─▶ one of them
//! ```
//!
//! Two volumes of one group share a physical volume but no byte; two maps over one disk may share all. The table of the
//! device mapper, which only root may read, shows which. Without it, all slaves count: an unnecessary refusal is better
//! than a missing one.
//!
//! Source: Linux, `Documentation/admin-guide/device-mapper` (linear, striped, thin-provisioning),
//! `include/uapi/linux/loop.h`, `include/uapi/linux/dm-ioctl.h`.

use std::io;

use super::system::{DeviceNumber, LoopStatus, Named, Node, System};

/// The backing storage at the bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    Device(DeviceNumber),
    /// A file: device and inode.
    File(u64, u64),
    /// A thin volume: its pool, and its number there.
    Thin(DeviceNumber, u64),
}

/// A range of bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    ground: Ground,
    start: u64,
    end: u64,
}

/// All backing storage of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint(Vec<Piece>);

/// Devices on devices on devices: no machine has more.
pub(super) const DEEPEST: usize = 32;
const SECTOR: u64 = 512;

/// One line of a table of the device mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// In the mapped device, sectors.
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) kind: String,
    pub(crate) parameters: String,
}

impl Footprint {
    /// The footprint of a device.
    ///
    /// # Errors
    /// When its backing storage cannot be examined.
    pub(crate) fn of(system: &System, node: &Node) -> io::Result<Self> {
        let mut pieces = Self::default();
        pieces.add(system, node, 0, u64::MAX, DEEPEST)?;
        Ok(pieces)
    }

    /// Whether two devices have a byte in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let meet = |a: &Piece, b: &Piece| a.ground == b.ground && a.start < b.end && b.start < a.end;
        self.0.iter().any(|piece| other.0.iter().any(|theirs| meet(piece, theirs)))
    }

    /// The files that back it: device and inode.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().filter_map(|piece| match piece.ground {
            Ground::File(device, inode) => Some((device, inode)),
            _ => None,
        })
    }

    /// The bytes `start..end` of a device.
    fn add(&mut self, system: &System, node: &Node, start: u64, end: u64, depth: usize) -> io::Result<()> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(io::Error::other(format!("{} is made of too many devices, or of itself", node.name)));
        };
        if let Some(disk) = node.disk() {
            let at = node.number("start").map_or(0, |sectors| sectors.saturating_mul(SECTOR));
            let length = node.number("size").map_or(u64::MAX, |sectors| sectors.saturating_mul(SECTOR));
            let end = at.saturating_add(length.min(end));
            return self.add(system, &disk, at.saturating_add(start), end, depth);
        }
        if node.is_bound_loop() {
            let status = match (system.loop_status)(node) {
                // It was detached meanwhile, and has no backing.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(()),
                status => status?,
            };
            let LoopStatus { backing, offset, limit } = status;
            let length = if limit == 0 { u64::MAX } else { limit };
            let (start, end) = (offset.saturating_add(start), offset.saturating_add(length.min(end)));
            return match backing {
                Named::Device(number) => self.add(system, &system.node(number)?, start, end, depth),
                Named::File(device, inode) => {
                    self.0.push(Piece { ground: Ground::File(device, inode), start, end });
                    Ok(())
                }
                Named::Other => {
                    Err(io::Error::other(format!("{} is backed by neither a file nor a device", node.name)))
                }
            };
        }
        let slaves = node.slaves()?;
        // Only root may read a table; without it, all slaves count.
        let table = if node.attribute("dm/name").is_some() { (system.table)(node).ok() } else { None };
        if let Some(known) = table.as_deref().and_then(|table| parts(system, table)) {
            for (at, length, part) in known {
                let (from, until) = (start.max(at), end.min(at.saturating_add(length)));
                match part {
                    Part::Thin(pool, number) => {
                        self.0.push(Piece { ground: Ground::Thin(pool, number), start: from, end: until });
                    }
                    Part::Of(below, offset) if from < until => {
                        let shifted = |place: u64| offset.saturating_add(place - at);
                        self.add(system, &below, shifted(from), shifted(until), depth)?;
                    }
                    Part::Share(below, offset, share) if from < until => {
                        self.add(system, &below, offset, offset.saturating_add(share), depth)?;
                    }
                    Part::Of(..) | Part::Share(..) => {}
                }
            }
            return Ok(());
        }
        if slaves.is_empty() {
            let number = system.same_disk(node)?;
            self.0.push(Piece { ground: Ground::Device(number), start, end });
            return Ok(());
        }
        slaves.iter().try_for_each(|slave| self.add(system, slave, 0, u64::MAX, depth))
    }
}

/// The backing of one part of a mapped device.
enum Part {
    /// Bytes of another device, from an offset on.
    Of(Node, u64),
    /// Chunks that alternate with those of other devices: any of this many bytes of this device, from an offset on.
    Share(Node, u64, u64),
    Thin(DeviceNumber, u64),
}

/// The parts of a table, in bytes: start, length, backing; `None` if one of them is of a kind that spreads data.
fn parts(system: &System, table: &[Target]) -> Option<Vec<(u64, u64, Part)>> {
    let device = |word: &str| system.node(word.parse().ok()?).ok();
    let mut parts = Vec::new();
    for target in table {
        let words: Vec<&str> = target.parameters.split(' ').collect();
        let (start, length) = (target.start.checked_mul(SECTOR)?, target.length.checked_mul(SECTOR)?);
        let at = |word: &str| word.parse::<u64>().ok()?.checked_mul(SECTOR);
        match (&*target.kind, &*words) {
            ("linear", &[below, offset]) => parts.push((start, length, Part::Of(device(below)?, at(offset)?))),
            ("striped", &[stripes, _chunk, ref below @ ..]) => {
                let share = length.div_ceil(stripes.parse().ok().filter(|&stripes: &u64| stripes > 0)?);
                for pair in below.chunks(2) {
                    let &[below, offset] = pair else { return None };
                    parts.push((start, length, Part::Share(device(below)?, at(offset)?, share)));
                }
            }
            ("thin", &[pool, number]) => {
                parts.push((start, length, Part::Thin(pool.parse().ok()?, number.parse().ok()?)));
            }
            ("error" | "zero", _) => {}
            _ => return None,
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn share(machine: &Machine, one: &str, other: &str) -> bool {
        let of = |number| Footprint::of(&machine.system(), &machine.node(number)).unwrap();
        let meets = of(one).meets(&of(other));
        assert_eq!(of(other).meets(&of(one)), meets);
        meets
    }

    #[test]
    fn volumes_of_one_group_share_no_byte_and_maps_over_one_disk_may() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        for (index, table) in
            ["0 100 linear 8:0 2048", "0 100 linear 8:0 2148", "0 50 linear 8:0 2100"].iter().enumerate()
        {
            let name = format!("dm-{index}");
            machine.mapped(&name, &format!("252:{index}"), "sda", Some(table));
        }
        assert!(!share(&machine, "252:0", "252:1"));
        assert!(share(&machine, "252:0", "252:2") && share(&machine, "252:1", "252:2"));
        assert!(share(&machine, "252:0", "8:0"));
        // Without the right to read the table, it is unknown.
        machine.mapped("dm-3", "252:3", "sda", None);
        assert!(share(&machine, "252:0", "252:3"));
    }

    #[test]
    fn thin_volumes_are_told_apart_by_their_number_and_snapshots_share_their_origin() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.mapped("dm-0", "252:0", "sda", Some("0 1000 linear 8:0 0"));
        machine.mapped("dm-1", "252:1", "dm-0", Some("0 1000 thin 252:0 1"));
        machine.mapped("dm-2", "252:2", "dm-0", Some("0 1000 thin 252:0 2"));
        machine.mapped("dm-3", "252:3", "dm-0", Some("0 1000 snapshot 252:0 252:9 P 8"));
        assert!(!share(&machine, "252:1", "252:2"));
        assert!(share(&machine, "252:3", "252:0"));
    }

    #[test]
    fn every_part_of_a_striped_map_may_lie_on_every_stripe() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.disk("sdb", "8:16");
        machine.mapped("dm-0", "252:0", "sda", Some("0 1000 striped 2 8 8:0 0 8:16 4096"));
        machine.mapped("dm-1", "252:1", "dm-0", Some("0 100 linear 252:0 800"));
        for (name, number, table) in
            [("dm-2", "252:2", "0 100 linear 8:16 4196"), ("dm-3", "252:3", "0 9 linear 8:16 0")]
        {
            machine.mapped(name, number, "sdb", Some(table));
        }
        assert!(share(&machine, "252:1", "8:0") && share(&machine, "252:1", "252:2"));
        assert!(!share(&machine, "252:1", "252:3"), "before where the stripe starts");
    }

    #[test]
    fn partitions_that_overlap_share_bytes_and_neighbours_do_not() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        for (index, start, size) in [(1, 2048, 2048), (2, 4096, 2048), (3, 3000, 100)] {
            let name = format!("sda{index}");
            machine.partition("sda", index, &name, &format!("8:{index}"));
            machine.write(&format!("sys/devices/sda/{name}/start"), &start.to_string());
            machine.write(&format!("sys/devices/sda/{name}/size"), &size.to_string());
        }
        assert!(!share(&machine, "8:1", "8:2"));
        assert!(share(&machine, "8:1", "8:3") && !share(&machine, "8:2", "8:3"));
    }

    #[test]
    fn loop_devices_share_a_file_where_their_ranges_meet() {
        let machine = Machine::new();
        for (index, status) in
            ["file 1 77 0 0", "file 1 77 4096 4096", "file 1 77 8192 0", "file 2 77 0 0"].iter().enumerate()
        {
            machine.loop_with(&format!("loop{index}"), &format!("7:{index}"), status);
        }
        assert!(share(&machine, "7:0", "7:1") && share(&machine, "7:0", "7:2"));
        assert!(!share(&machine, "7:1", "7:2") && !share(&machine, "7:0", "7:3"));
    }

    #[test]
    fn two_paths_to_one_drive_are_one_drive() {
        let machine = Machine::new();
        for (name, number, wwid) in
            [("sda", "8:0", "naa.5000"), ("sdb", "8:16", "naa.5000"), ("sdc", "8:32", "naa.6000")]
        {
            machine.disk(name, number);
            machine.write(&format!("sys/devices/{name}/device/wwid"), wwid);
        }
        assert!(share(&machine, "8:0", "8:16") && !share(&machine, "8:0", "8:32"));
    }

    #[test]
    fn an_array_has_all_of_its_members() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.disk("sdb", "8:16");
        machine.disk("md0", "9:0");
        machine.holds("md0", "sda");
        machine.holds("md0", "sdb");
        assert!(share(&machine, "9:0", "8:0") && share(&machine, "9:0", "8:16"));
    }

    #[test]
    fn what_is_made_of_itself_or_cannot_be_examined_is_an_error() {
        let machine = Machine::new();
        machine.disk("dm-0", "252:0");
        machine.disk("dm-1", "252:1");
        machine.holds("dm-0", "dm-1");
        machine.holds("dm-1", "dm-0");
        assert!(Footprint::of(&machine.system(), &machine.node("252:0")).is_err());
        machine.loop_with("loop0", "7:0", "unknown");
        assert!(Footprint::of(&machine.system(), &machine.node("7:0")).is_err());
    }
}
