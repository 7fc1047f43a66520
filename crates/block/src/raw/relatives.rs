//! Which devices are affected when one device is written: those above it and those below it.
//!
//! ```text
//!   above   partitions ─ holders (dm, LVM, md, crypt, bcache) ─ loop devices over any of them ─ …
//!   itself
//!   below   its disk ─ slaves ─ the device below a loop device ─ …
//! ```
//!
//! A write destroys the content of devices above. Devices below matter if they are used as a whole, such as a mounted
//! disk with an unused partition table. Other devices may still share bytes with it: a second loop device over the same
//! file, a second map over the same disk, an overlapping partition, another path to the same drive. The other
//! partitions of the same disk and other volumes on the same slaves are relatives only if they share bytes
//! (`footprint.rs`). A device that cannot be examined is an error, since it may be anything.

use std::collections::BTreeSet;
use std::io;

use super::footprint::Footprint;
use super::system::{DeviceNumber, Named, Node, System};

/// How a device is related to the one in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    Itself,
    Partition,
    Holder,
    LoopAbove,
    /// Another device that has bytes in common with it, such as a loop device over the same file.
    Twin,
    Disk,
    Slave,
    LoopBelow,
}

/// A device and its relation.
#[derive(Clone, Debug)]
pub(crate) struct Relative {
    pub(crate) node: Node,
    pub(crate) relation: Relation,
}

impl Relative {
    /// As the subject of a sentence.
    pub(crate) fn subject(&self) -> String {
        let name = &self.node.name;
        match self.relation {
            Relation::Itself => "it".into(),
            Relation::Partition => format!("its partition {name}"),
            Relation::Holder => format!("{name}, which is made of it,"),
            Relation::LoopAbove => format!("the loop device {name}, which is backed by it,"),
            Relation::Twin => format!("{name}, which shares bytes with it,"),
            Relation::Disk => format!("the disk {name}, which it is a part of,"),
            Relation::Slave => format!("{name}, which it is made of,"),
            Relation::LoopBelow => format!("{name}, which backs it,"),
        }
    }
}

/// A device with all its relatives.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) itself: Node,
    /// The bytes that it is.
    pub(crate) footprint: Footprint,
    pub(crate) above: Vec<Relative>,
    pub(crate) below: Vec<Relative>,
    /// Holders of the whole disk that contains the device.
    pub(crate) holders_of_the_disk: Vec<Relative>,
}

/// Loop devices and their backing, read once.
struct Loops(Vec<(Node, Named)>);

impl Loops {
    /// # Errors
    /// When one of them cannot be examined: its backing is then unknown.
    fn read(system: &System) -> io::Result<Self> {
        let bound = system.disks()?.into_iter().filter(Node::is_bound_loop);
        let backed = bound.filter_map(|node| match (system.loop_status)(&node) {
            Ok(status) => Some(Ok((node, status.backing))),
            // It was detached meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => None,
            Err(error) => {
                let why = format!("reading the backing file of the loop device {}: {error}", node.name);
                Some(Err(io::Error::new(error.kind(), why)))
            }
        });
        backed.collect::<io::Result<_>>().map(Self)
    }

    /// Loop devices over a device.
    fn over(&self, node: &Node) -> Vec<Node> {
        let is_over = |(_, backing): &&(Node, Named)| *backing == Named::Device(node.number);
        self.0.iter().filter(is_over).map(|(node, _)| node.clone()).collect()
    }

    /// The backing of a loop device.
    fn backing(&self, node: &Node) -> Option<Named> {
        self.0.iter().find(|(known, _)| known.number == node.number).map(|&(_, backing)| backing)
    }
}

impl Family {
    /// Everything related to `itself`.
    ///
    /// # Errors
    /// When sysfs cannot be read.
    pub(crate) fn of(system: &System, itself: Node) -> io::Result<Self> {
        // Retried once: a device may appear or vanish during the scan.
        Self::now(system, itself.clone()).or_else(|_| Self::now(system, itself))
    }

    fn now(system: &System, itself: Node) -> io::Result<Self> {
        let loops = Loops::read(system)?;
        let below = walk(&itself, |node| things_below(system, &loops, node))?;
        let mut above = walk(&itself, |node| things_above(&loops, node))?;
        let footprint = Footprint::of(system, &itself)?;
        let holders_of_the_disk = itself.disk().map(|disk| holders(&loops, &disk)).transpose()?.unwrap_or_default();
        let known = above.iter().chain(&below).chain(&holders_of_the_disk);
        let known: BTreeSet<DeviceNumber> = known.map(|relative| relative.node.number).collect();
        for node in strangers(system, &itself, &known)? {
            if Footprint::of(system, &node)?.meets(&footprint) {
                above.push(Relative { node, relation: Relation::Twin });
            }
        }
        Ok(Self { itself, footprint, above, below, holders_of_the_disk })
    }

    /// The device itself and all relatives.
    pub(crate) fn everybody(&self) -> Vec<Relative> {
        let itself = Relative { node: self.itself.clone(), relation: Relation::Itself };
        [itself].into_iter().chain(self.above.iter().cloned()).chain(self.below.iter().cloned()).collect()
    }

    /// Devices that must be released before anything may be written.
    pub(crate) fn held_by(&self) -> impl Iterator<Item = &Relative> {
        let holds =
            |relative: &&Relative| matches!(relative.relation, Relation::Holder | Relation::LoopAbove | Relation::Twin);
        self.above.iter().filter(holds).chain(&self.holders_of_the_disk)
    }
}

/// All devices, whole and partitions, beside those that are known.
fn strangers(system: &System, itself: &Node, known: &BTreeSet<DeviceNumber>) -> io::Result<Vec<Node>> {
    let mut all = Vec::new();
    for disk in system.disks()? {
        all.extend(disk.partitions()?);
        all.push(disk);
    }
    all.retain(|node| node.number != itself.number && !known.contains(&node.number));
    Ok(all)
}

/// Everything that `step` leads to, each device once, nearest first.
fn walk(start: &Node, step: impl Fn(&Node) -> io::Result<Vec<Relative>>) -> io::Result<Vec<Relative>> {
    let mut seen = BTreeSet::<DeviceNumber>::from([start.number]);
    let mut found = step(start)?;
    found.retain(|relative| seen.insert(relative.node.number));
    let mut next = 0;
    while let Some(relative) = found.get(next) {
        let more: Vec<_> =
            step(&relative.node)?.into_iter().filter(|relative| seen.insert(relative.node.number)).collect();
        found.extend(more);
        next += 1;
    }
    Ok(found)
}

fn with(relation: Relation) -> impl Fn(Node) -> Relative {
    move |node| Relative { node, relation }
}

fn holders(loops: &Loops, node: &Node) -> io::Result<Vec<Relative>> {
    let holders = node.holders()?.into_iter().map(with(Relation::Holder));
    Ok(holders.chain(loops.over(node).into_iter().map(with(Relation::LoopAbove))).collect())
}

fn things_above(loops: &Loops, node: &Node) -> io::Result<Vec<Relative>> {
    let partitions = node.partitions()?.into_iter().map(with(Relation::Partition));
    Ok(partitions.chain(holders(loops, node)?).collect())
}

fn things_below(system: &System, loops: &Loops, node: &Node) -> io::Result<Vec<Relative>> {
    let disk = node.disk().into_iter().map(with(Relation::Disk));
    let slaves = node.slaves()?.into_iter().map(with(Relation::Slave));
    let backing = match loops.backing(node) {
        Some(Named::Device(number)) => Some(system.node(number)?),
        _ => None,
    };
    Ok(disk.chain(slaves).chain(backing.into_iter().map(with(Relation::LoopBelow))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn family(machine: &Machine, number: &str) -> Family {
        Family::of(&machine.system(), machine.node(number)).unwrap()
    }

    fn names<'a>(relatives: impl IntoIterator<Item = &'a Relative>) -> Vec<&'a str> {
        relatives.into_iter().map(|relative| &*relative.node.name).collect()
    }

    /// LUKS on a partition, LVM on that, a loop device over the volume.
    fn stack() -> Machine {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.partition("sda", 1, "sda1", "8:1");
        machine.partition("sda", 2, "sda2", "8:2");
        machine.disk("dm-0", "252:0");
        machine.disk("dm-1", "252:1");
        machine.holds("dm-0", "sda/sda2");
        machine.holds("dm-1", "dm-0");
        machine.loop_over("loop0", "7:0", &machine.path("dev/dm-1"));
        machine
    }

    #[test]
    fn a_disk_has_everything_above_it_through_partitions_crypt_lvm_and_loop() {
        let machine = stack();
        let family = family(&machine, "8:0");
        assert_eq!(names(&family.above), ["sda1", "sda2", "dm-0", "dm-1", "loop0"]);
        assert_eq!(names(family.held_by()), ["dm-0", "dm-1", "loop0"]);
        assert!(family.below.is_empty());
    }

    #[test]
    fn the_uppermost_device_has_everything_below_it_and_no_siblings() {
        let machine = stack();
        let top = family(&machine, "7:0");
        assert_eq!(names(&top.below), ["dm-1", "dm-0", "sda2", "sda"]);
        assert!(top.above.is_empty() && top.held_by().next().is_none());
        let volume = family(&machine, "252:1");
        assert_eq!((names(&volume.above), names(&volume.below)), (vec!["loop0"], vec!["dm-0", "sda2", "sda"]));
        let partition = family(&machine, "8:1");
        assert_eq!((names(&partition.above), names(&partition.below)), (vec![], vec!["sda"]));
    }

    #[test]
    fn who_holds_the_whole_disk_holds_its_partitions() {
        let machine = stack();
        machine.disk("dm-2", "252:2");
        machine.holds("dm-2", "sda");
        assert_eq!(names(family(&machine, "8:1").held_by()), ["dm-2"]);
    }

    #[test]
    fn loop_devices_over_one_file_are_twins_under_any_name_and_under_none() {
        let machine = Machine::new();
        machine.write("image", "no number");
        machine.write("third", "no number");
        std::fs::hard_link(machine.path("image"), machine.path("other")).unwrap();
        machine.loop_over("loop0", "7:0", &machine.path("image"));
        machine.loop_over("loop1", "7:1", &machine.path("other"));
        machine.loop_over("loop2", "7:2", &machine.path("third"));
        assert_eq!(names(family(&machine, "7:0").held_by()), ["loop1"]);
        assert!(family(&machine, "7:2").held_by().next().is_none());
        machine.loop_with("loop3", "7:3", "file 9 77 0 0");
        machine.loop_with("loop4", "7:4", "file 9 77 0 0");
        assert_eq!(names(family(&machine, "7:3").held_by()), ["loop4"]);
    }

    #[test]
    fn a_loop_device_that_cannot_be_examined_may_lie_on_anything() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.loop_with("loop0", "7:0", "unknown");
        let error = Family::of(&machine.system(), machine.node("8:0")).unwrap_err();
        assert!(error.to_string().starts_with("reading the backing file of the loop device loop0: "), "{error}");
    }

    #[test]
    fn a_holder_that_leads_nowhere_is_an_error() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        std::os::unix::fs::symlink(machine.path("nowhere"), machine.path("sys/devices/sda/holders/dm-9")).unwrap();
        assert!(Family::of(&machine.system(), machine.node("8:0")).is_err());
    }

    #[test]
    fn a_second_map_over_the_same_bytes_and_another_path_to_the_drive_are_twins() {
        let machine = stack();
        machine.mapped("dm-4", "252:4", "sda", Some("0 100 linear 8:0 0"));
        machine.mapped("dm-5", "252:5", "sda", Some("0 100 linear 8:0 50"));
        machine.mapped("dm-6", "252:6", "sda", Some("0 100 linear 8:0 500"));
        assert_eq!(names(family(&machine, "252:4").held_by()), ["dm-5"]);
        machine.write("sys/devices/sda/device/wwid", "naa.5000");
        machine.disk("sdb", "8:16");
        machine.write("sys/devices/sdb/device/wwid", "naa.5000");
        let found = family(&machine, "8:16");
        // One of its partitions may be mounted.
        let twins = names(found.held_by());
        assert!(["sda", "sda1", "sda2"].iter().all(|twin| twins.contains(twin)), "{found:?}");
    }

    #[test]
    fn devices_that_are_made_of_each_other_are_an_error_and_do_not_hang_the_walk() {
        let machine = Machine::new();
        machine.disk("dm-0", "252:0");
        machine.disk("dm-1", "252:1");
        machine.holds("dm-0", "dm-1");
        machine.holds("dm-1", "dm-0");
        assert!(Family::of(&machine.system(), machine.node("252:0")).is_err());
    }
}
