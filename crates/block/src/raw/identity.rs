//! The strings that identify exactly one drive, for `--confirm-device`.
//!
//! | source | for |
//! |---|---|
//! | names of the links in `/dev/disk/by-id` that mean the device | everything that udev knows |
//! | `serial`, `device/serial`, `wwid`, `device/wwid` in sysfs | virtio, NVMe, MMC, SCSI |
//! | page 80h of the vital product data (SPC-6, 7.7.19), `device/vpd_pg80` | SCSI, SATA behind libata |
//! | `ID_SERIAL`, `ID_SERIAL_SHORT`, `ID_WWN` in udev's database | USB bridges and others that udev queries |
//! | `dm/uuid`, `dm/name`, `md/uuid` | device mapper, LVM, md |
//! | `loop/backing_file` | loop devices |
//!
//! A serial number identifies a disk. A partition is identified by its own link, or as in udev: the disk's name,
//! `-part`, and its number. A device with none of these cannot be confirmed, and so cannot be written to.

use std::fs;
use std::path::Path;

use super::system::{Named, Node, System};

/// The strings that name `node`, best known first, each once.
pub(crate) fn identities(system: &System, node: &Node) -> Vec<String> {
    let whole = node.disk();
    let mut found = match (&whole, node.partition()) {
        (Some(disk), Some(index)) => {
            own(system, disk).into_iter().map(|identity| format!("{identity}-part{index}")).collect()
        }
        _ => own(system, node),
    };
    found.extend(links(system, node));
    let mut known = Vec::new();
    for identity in found {
        if !known.contains(&identity) {
            known.push(identity);
        }
    }
    known
}

/// Whether `given` names the device: one of its identities, or the path of a link among them.
pub(crate) fn confirms(given: &str, identities: &[String]) -> bool {
    let name = given.strip_prefix("/dev/disk/by-id/").unwrap_or(given);
    !name.trim().is_empty() && identities.iter().any(|identity| identity == name)
}

/// Identities that a whole device reports.
fn own(system: &System, node: &Node) -> Vec<String> {
    const ATTRIBUTES: [&str; 8] =
        ["serial", "device/serial", "wwid", "device/wwid", "dm/name", "dm/uuid", "md/uuid", "loop/backing_file"];
    let told = ATTRIBUTES.iter().filter_map(|name| node.attribute(name));
    told.chain(product_data_serial(node)).chain(udev(system, node)).collect()
}

/// Unit serial number: a header of four bytes, the last two of which are the length, then ASCII.
fn product_data_serial(node: &Node) -> Option<String> {
    let page = fs::read(node.directory.join("device/vpd_pg80")).ok()?;
    let &[_, 0x80, high, low, ref rest @ ..] = page.as_slice() else { return None };
    let serial = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    let serial = String::from_utf8_lossy(serial).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    (!serial.is_empty()).then_some(serial)
}

fn udev(system: &System, node: &Node) -> Vec<String> {
    let database = fs::read_to_string(system.udev.join(format!("b{}", node.number))).unwrap_or_default();
    let value = |key: &str| {
        let value = database.lines().find_map(|line| line.strip_prefix("E:")?.strip_prefix(key)?.strip_prefix('='));
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    ["ID_SERIAL", "ID_SERIAL_SHORT", "ID_WWN"].into_iter().filter_map(value).collect()
}

/// Names of the links that mean this very device.
fn links(system: &System, node: &Node) -> Vec<String> {
    let means_it = |path: &Path| (system.named)(path) == Some(Named::Device(node.number));
    let entries = fs::read_dir(&system.by_id).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| means_it(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn of(machine: &Machine, number: &str) -> Vec<String> {
        identities(&machine.system(), &machine.node(number))
    }

    #[test]
    fn a_disk_is_named_by_serial_product_data_udev_and_links() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.write("sys/devices/sda/device/wwid", "naa.5000c500\n");
        machine.write("sys/devices/sda/device/vpd_pg80", "\0\u{0}\0\0");
        fs::write(machine.path("sys/devices/sda/device/vpd_pg80"), b"\0\x80\0\x08  S3RIAL\0\0").unwrap();
        machine.write("udev/b8:0", "S:disk/by-id/x\nE:ID_SERIAL=Maker_Model_S3RIAL\nE:ID_SERIAL_SHORT=S3RIAL\n");
        std::os::unix::fs::symlink(machine.path("dev/sda"), machine.path("by-id/ata-Maker_Model_S3RIAL")).unwrap();
        let expected = ["naa.5000c500", "S3RIAL", "Maker_Model_S3RIAL", "ata-Maker_Model_S3RIAL"];
        assert_eq!(of(&machine, "8:0"), expected);
    }

    #[test]
    fn the_serial_of_a_disk_does_not_name_its_partitions() {
        let machine = Machine::new();
        machine.disk("nvme0n1", "259:0");
        machine.partition("nvme0n1", 2, "nvme0n1p2", "259:2");
        machine.write("sys/devices/nvme0n1/device/serial", "S4EVNX0R  \n");
        machine.write("udev/b259:2", "E:ID_SERIAL_SHORT=S4EVNX0R\n");
        std::os::unix::fs::symlink(machine.path("dev/nvme0n1p2"), machine.path("by-id/nvme-X-part2")).unwrap();
        assert_eq!(of(&machine, "259:0"), ["S4EVNX0R"]);
        assert_eq!(of(&machine, "259:2"), ["S4EVNX0R-part2", "nvme-X-part2"]);
        assert!(!confirms("S4EVNX0R", &of(&machine, "259:2")));
    }

    #[test]
    fn a_loop_device_is_named_by_its_backing_file_and_a_volume_by_its_name() {
        let machine = Machine::new();
        machine.loop_over("loop0", "7:0", Path::new("/images/disk.img"));
        machine.disk("dm-0", "252:0");
        machine.write("sys/devices/dm-0/dm/name", "vg-scratch\n");
        machine.disk("ram0", "1:0");
        assert_eq!(of(&machine, "7:0"), ["/images/disk.img"]);
        assert_eq!(of(&machine, "252:0"), ["vg-scratch"]);
        assert!(of(&machine, "1:0").is_empty());
    }

    #[test]
    fn only_the_whole_string_confirms_and_nothing_confirms_a_device_without_identity() {
        let known = ["S3RIAL".to_owned(), "ata-Maker_S3RIAL".to_owned()];
        for right in ["S3RIAL", "ata-Maker_S3RIAL", "/dev/disk/by-id/ata-Maker_S3RIAL"] {
            assert!(confirms(right, &known), "{right}");
        }
        for wrong in ["", " ", "S3RIA", "s3rial", "S3RIAL ", "yes", "/dev/disk/by-id/"] {
            assert!(!confirms(wrong, &known), "{wrong}");
            assert!(!confirms(wrong, &[]), "{wrong}");
        }
    }

    #[test]
    fn product_data_with_a_wrong_length_is_no_serial() {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        fs::create_dir_all(machine.path("sys/devices/sda/device")).unwrap();
        for page in [&b""[..], b"\0\x80", b"\0\x80\xff\xffS", b"\0\x83\0\x01S", b"\0\x80\0\x02\0 "] {
            fs::write(machine.path("sys/devices/sda/device/vpd_pg80"), page).unwrap();
            assert!(of(&machine, "8:0").is_empty(), "{page:?}");
        }
    }
}
