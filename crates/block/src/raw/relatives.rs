//! Which devices are touched when one device is written: what lies on it, and what it lies on.
//!
//! ```text
//!   above   partitions ─ holders (dm, LVM, md, crypt, bcache) ─ loop devices over any of them ─ …
//!   itself
//!   below   its disk ─ slaves ─ the device below a loop device ─ …
//! ```
//!
//! What lies above is destroyed by a write. What lies below matters where it is used as a whole: a mounted disk with a
//! partition table that nobody reads. The other partitions of the same disk are no relatives: a write to one partition
//! does not reach another. Nor are other volumes on the same slaves.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::system::{DeviceNumber, Named, Node, System};

/// How a device is related to the one in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    Itself,
    Partition,
    Holder,
    LoopAbove,
    /// A loop device over the same file.
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
            Relation::LoopAbove => format!("the loop device {name}, which lies on it,"),
            Relation::Twin => format!("the loop device {name}, which has the same backing file,"),
            Relation::Disk => format!("the disk {name}, which it is a part of,"),
            Relation::Slave => format!("{name}, which it is made of,"),
            Relation::LoopBelow => format!("{name}, which it lies on,"),
        }
    }
}

/// A device with all its relatives.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) itself: Node,
    pub(crate) above: Vec<Relative>,
    pub(crate) below: Vec<Relative>,
    /// What holds the disk as a whole of which the device is a part.
    pub(crate) holders_of_the_disk: Vec<Relative>,
}

/// Loop devices and what each is over, read once.
struct Loops(Vec<(Node, String, Option<Named>)>);

impl Loops {
    fn read(system: &System) -> io::Result<Self> {
        let backed = |node: Node| {
            let path = node.loop_backing()?;
            let named = (system.named)(Path::new(&path));
            Some((node, path, named))
        };
        Ok(Self(system.disks()?.into_iter().filter_map(backed).collect()))
    }

    /// Loop devices over a device. A path that leads nowhere (another mount namespace, a node that is gone) counts when
    /// it ends in the device's name: better one refusal too many.
    fn over(&self, node: &Node) -> Vec<Node> {
        let is_over = |(_, path, named): &&(Node, String, Option<Named>)| match named {
            Some(Named::Device(number)) => *number == node.number,
            Some(_) => false,
            None => {
                let path = path.trim_end_matches(" (deleted)");
                path.starts_with("/dev/") && Path::new(path).file_name().is_some_and(|name| *name == *node.name)
            }
        };
        self.0.iter().filter(is_over).map(|(node, ..)| node.clone()).collect()
    }

    /// What a loop device is over.
    fn backing(&self, node: &Node) -> Option<Named> {
        self.0.iter().find(|(known, ..)| known.number == node.number)?.2
    }

    /// Other loop devices over the same file.
    fn twins(&self, node: &Node) -> Vec<Node> {
        let Some(file @ Named::File(..)) = self.backing(node) else { return Vec::new() };
        let is_twin =
            |(other, _, named): &&(Node, String, Option<Named>)| *named == Some(file) && other.number != node.number;
        self.0.iter().filter(is_twin).map(|(node, ..)| node.clone()).collect()
    }
}

impl Family {
    /// Everything related to `itself`.
    ///
    /// # Errors
    /// When sysfs cannot be read.
    pub(crate) fn of(system: &System, itself: Node) -> io::Result<Self> {
        let loops = Loops::read(system)?;
        let below = walk(&itself, |node| things_below(system, &loops, node));
        let mut above = walk(&itself, |node| things_above(&loops, node));
        let lies_on = below.iter().map(|relative| &relative.node).chain([&itself]);
        let twins: Vec<Node> = lies_on.flat_map(|node| loops.twins(node)).collect();
        above.extend(twins.into_iter().map(|node| Relative { node, relation: Relation::Twin }));
        let holders_of_the_disk = itself.disk().map(|disk| holders(&loops, &disk)).unwrap_or_default();
        Ok(Self { itself, above, below, holders_of_the_disk })
    }

    /// The device itself and all relatives.
    pub(crate) fn everybody(&self) -> Vec<Relative> {
        let itself = Relative { node: self.itself.clone(), relation: Relation::Itself };
        [itself].into_iter().chain(self.above.iter().cloned()).chain(self.below.iter().cloned()).collect()
    }

    /// What has to be taken apart before anything may be written.
    pub(crate) fn held_by(&self) -> impl Iterator<Item = &Relative> {
        let holds =
            |relative: &&Relative| matches!(relative.relation, Relation::Holder | Relation::LoopAbove | Relation::Twin);
        self.above.iter().filter(holds).chain(&self.holders_of_the_disk)
    }
}

/// Everything that `step` leads to, each device once, nearest first.
fn walk(start: &Node, step: impl Fn(&Node) -> Vec<Relative>) -> Vec<Relative> {
    let mut seen = BTreeSet::<DeviceNumber>::from([start.number]);
    let mut found = step(start);
    found.retain(|relative| seen.insert(relative.node.number));
    let mut next = 0;
    while let Some(relative) = found.get(next) {
        let more: Vec<_> =
            step(&relative.node).into_iter().filter(|relative| seen.insert(relative.node.number)).collect();
        found.extend(more);
        next += 1;
    }
    found
}

fn with(relation: Relation) -> impl Fn(Node) -> Relative {
    move |node| Relative { node, relation }
}

fn holders(loops: &Loops, node: &Node) -> Vec<Relative> {
    let holders = node.holders().into_iter().map(with(Relation::Holder));
    holders.chain(loops.over(node).into_iter().map(with(Relation::LoopAbove))).collect()
}

fn things_above(loops: &Loops, node: &Node) -> Vec<Relative> {
    let partitions = node.partitions().into_iter().map(with(Relation::Partition));
    partitions.chain(holders(loops, node)).collect()
}

fn things_below(system: &System, loops: &Loops, node: &Node) -> Vec<Relative> {
    let disk = node.disk().into_iter().map(with(Relation::Disk));
    let slaves = node.slaves().into_iter().map(with(Relation::Slave));
    let backing = match loops.backing(node) {
        Some(Named::Device(number)) => system.node(number).ok(),
        _ => None,
    };
    disk.chain(slaves).chain(backing.into_iter().map(with(Relation::LoopBelow))).collect()
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
    fn loop_devices_over_one_file_are_twins_even_under_another_name() {
        let machine = Machine::new();
        machine.write("image", "no number");
        std::fs::hard_link(machine.path("image"), machine.path("other")).unwrap();
        machine.loop_over("loop0", "7:0", &machine.path("image"));
        machine.loop_over("loop1", "7:1", &machine.path("other"));
        machine.loop_over("loop2", "7:2", &machine.path("third"));
        assert_eq!(names(family(&machine, "7:0").held_by()), ["loop1"]);
        assert!(family(&machine, "7:2").held_by().next().is_none());
    }

    #[test]
    fn a_loop_device_over_a_node_that_is_gone_is_recognised_by_the_name() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.loop_over("loop0", "7:0", Path::new("/dev/nowhere/sda (deleted)"));
        assert_eq!(names(family(&machine, "8:0").held_by()), ["loop0"]);
    }

    #[test]
    fn devices_that_are_made_of_each_other_do_not_hang_the_walk() {
        let machine = Machine::new();
        machine.disk("dm-0", "252:0");
        machine.disk("dm-1", "252:1");
        machine.holds("dm-0", "dm-1");
        machine.holds("dm-1", "dm-0");
        assert_eq!(names(&family(&machine, "252:0").above), ["dm-1"]);
    }
}
