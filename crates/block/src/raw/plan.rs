//! What writing to a raw device would do, and all objections to it.
//!
//! ```text
//!   number ─▶ family ─▶ mounted? swap? held? being written? ─▶ signatures ─▶ confirmed? ─▶ plan
//! ```
//!
//! The plan collects all objections instead of stopping at the first, so that `--dry-run` shows everything that has to
//! be done. Anything that cannot be examined is an objection.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::identity::{confirms, identities};
use super::in_use::{How, Used, mounts_and_swaps, writers};
use super::relatives::{Family, Relation, Relative};
use super::signature::{Signature, SignatureKind, View, signatures};
use super::system::{Node, System};
use crate::ByteSize;

/// The user's consent to writing to a device. There is no other way to give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConsent {
    /// Serial number or by-id name of the one device that is meant.
    pub confirmation: Option<String>,
    /// Signatures that may be overwritten.
    pub allowed_signatures: Vec<SignatureKind>,
    /// How many bytes from the device's start on may be overwritten; on a smaller device, all of it.
    pub region: ByteSize,
    /// How many bytes may be written in all.
    pub max_write: ByteSize,
}

/// An objection to writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Refusal {
    /// The device or a relative is mounted.
    Mounted {
        /// Which.
        device: String,
        /// Where.
        at: String,
    },
    /// The device or a relative is swapped to.
    Swap {
        /// Which.
        device: String,
    },
    /// Another device is made of it.
    Held {
        /// Which.
        device: String,
    },
    /// A process has it open for writing.
    Written {
        /// Which.
        device: String,
        /// The process.
        pid: u32,
        /// Its name.
        process: String,
    },
    /// It carries something.
    Signature {
        /// Which device.
        device: String,
        /// The signature and its place.
        #[serde(flatten)]
        signature: Signature,
    },
    /// The kernel has the device as read-only.
    ReadOnly,
    /// The user has not named it.
    Unconfirmed {
        /// The given confirmation.
        given: Option<String>,
        /// Whether it has a name at all.
        has_identity: bool,
    },
    /// Something could not be examined.
    Unknown {
        /// What, and why.
        what: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, at } => write!(f, "{device} is mounted at {at}; unmount it, or use another drive"),
            Self::Swap { device } => write!(f, "{device} is used as swap; run swapoff, or use another drive"),
            Self::Held { device } => write!(f, "{device} is in use; stop it first, or use another drive"),
            Self::Written { device, pid, process } => {
                write!(f, "{device} is open for writing in process {pid} ({process}); stop that process first")
            }
            Self::Signature { device, signature: Signature { kind, offset } } => write!(
                f,
                "{device} contains {kind} (its magic number is at byte {offset}); to overwrite it, add \
                 --allow-signature {kind}"
            ),
            Self::ReadOnly => f.write_str("the kernel has it as read-only; use another drive"),
            Self::Unconfirmed { has_identity: false, .. } => f.write_str(
                "it has neither a serial number nor a name in /dev/disk/by-id to confirm it by; use another drive",
            ),
            Self::Unconfirmed { given: Some(given), .. } => write!(
                f,
                "'{given}' is neither its serial number nor its name in /dev/disk/by-id; check both before you write \
                 to it (lsblk -o NAME,MODEL,SERIAL, or --dry-run)"
            ),
            Self::Unconfirmed { given: None, .. } => f.write_str(
                "writing to it needs --confirm-device with its serial number or its name in /dev/disk/by-id (lsblk -o \
                 NAME,MODEL,SERIAL, or --dry-run)",
            ),
            Self::Unknown { what } => write!(f, "{what}, so it may be in use; use another drive"),
        }
    }
}

/// A raw device, its content, what would be written, and the objections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RawPlan {
    /// As the user named it.
    #[serde(rename = "target")]
    pub path: PathBuf,
    /// The kernel's name.
    pub device: String,
    /// The model, if the device reports it.
    pub model: Option<String>,
    /// The values that `--confirm-device` accepts.
    pub identities: Vec<String>,
    /// Its size.
    #[serde(rename = "capacity_bytes")]
    pub capacity: ByteSize,
    /// Whether anything would be written.
    pub destructive: bool,
    /// Bytes from its start on that would be overwritten.
    #[serde(rename = "region_bytes")]
    pub region: ByteSize,
    /// Bytes that would be written at most, in all.
    #[serde(rename = "max_write_bytes")]
    pub max_write: ByteSize,
    /// Signatures on it and its partitions.
    pub signatures: Vec<Signature>,
    /// Objections to writing; empty if nothing is to be written.
    pub refusals: Vec<Refusal>,
}

impl RawPlan {
    /// The share of the device that the region is, 0 to 1.
    pub fn share(&self) -> f64 {
        self.region.0 as f64 / self.capacity.0.max(1) as f64
    }

    /// Why it must not be written, in one line; `None` if there is no objection.
    pub fn refusal(&self) -> Option<String> {
        let (first, rest) = self.refusals.split_first()?;
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" (and {more} more: --dry-run shows all)"),
        };
        Some(format!("{}: nothing is written: {first}{more}", self.path.display()))
    }
}

impl fmt::Display for RawPlan {
    /// Lines for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = self.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        writeln!(f, "target       {} ({}{model}, {})", self.path.display(), self.device, self.capacity)?;
        let none = |list: String| if list.is_empty() { "nothing".to_owned() } else { list };
        writeln!(f, "confirmed by {}", none(self.identities.join(", ")))?;
        let carried = self.signatures.iter().map(|found| format!("{} at byte {}", found.kind, found.offset));
        writeln!(f, "contains     {}", none(carried.collect::<Vec<_>>().join(", ")))?;
        if !self.destructive {
            return writeln!(f, "writes       nothing; it is opened read-only");
        }
        writeln!(
            f,
            "writes       at most {} in all, to its first {} ({:.2} % of it)",
            self.max_write,
            self.region,
            self.share() * 100.0
        )?;
        for refusal in &self.refusals {
            writeln!(f, "refused      {refusal}")?;
        }
        Ok(())
    }
}

/// Examines the device that `file` is open on, without writing.
///
/// # Errors
/// When the kernel does not report the kind of the device.
pub(crate) fn plan(
    system: &System,
    path: &Path,
    node: Node,
    file: &File,
    consent: Option<&WriteConsent>,
) -> io::Result<RawPlan> {
    let names = identities(system, &node);
    let model = node.attribute("device/model").or_else(|| node.disk()?.attribute("device/model"));
    let (capacity, found) = carried(file)?;
    let mut plan = RawPlan {
        path: path.to_owned(),
        device: node.name.clone(),
        model,
        identities: names,
        capacity,
        destructive: consent.is_some(),
        region: consent.map_or(ByteSize(0), |consent| consent.region.min(capacity)),
        max_write: consent.map_or(ByteSize(0), |consent| consent.max_write),
        signatures: found,
        refusals: Vec::new(),
    };
    if let Some(consent) = consent {
        plan.refusals = refusals_of(system, &node, &plan, consent);
    }
    Ok(plan)
}

/// All objections to writing, the gravest first.
fn refusals_of(system: &System, node: &Node, plan: &RawPlan, consent: &WriteConsent) -> Vec<Refusal> {
    let unknown = |what: &str, error: &io::Error| Refusal::Unknown { what: format!("{what}: {error}") };
    let mut refusals = Vec::new();
    match Family::of(system, node.clone()) {
        Ok(family) => {
            match in_use(system, &family) {
                Ok(found) => refusals.extend(found),
                Err(error) => refusals.push(unknown("the lists of mounts and swaps cannot be read", &error)),
            }
            refusals.extend(family.held_by().map(|holder| Refusal::Held { device: holder.subject() }));
            refusals.extend(written_elsewhere(system, &family));
            refusals.extend(carried_by_partitions(&family, consent));
        }
        Err(error) => refusals.push(unknown("its partitions and holders cannot be listed", &error)),
    }
    refusals.extend(unallowed("it", &plan.signatures, consent));
    if node.number("ro") == Some(1) {
        refusals.push(Refusal::ReadOnly);
    }
    let given = consent.confirmation.clone();
    if !given.as_deref().is_some_and(|given| confirms(given, &plan.identities)) {
        refusals.push(Refusal::Unconfirmed { given, has_identity: !plan.identities.is_empty() });
    }
    refusals
}

/// Mounts and swaps of the device and of all its relatives.
fn in_use(system: &System, family: &Family) -> io::Result<Vec<Refusal>> {
    let uses = mounts_and_swaps(system)?;
    let relatives = family.everybody().into_iter().chain(family.holders_of_the_disk.iter().cloned());
    Ok(relatives.flat_map(|relative| used(system, &relative, &uses)).collect())
}

fn used(system: &System, relative: &Relative, uses: &[super::in_use::Use]) -> Option<Refusal> {
    let is_loop = relative.node.is_bound_loop();
    let backing = is_loop.then(|| (system.loop_status)(&relative.node).ok()).flatten().map(|status| status.backing);
    let device = relative.subject();
    uses.iter().filter(|found| found.is_of(&relative.node, backing)).find_map(|found| match &found.how {
        How::Mounted(at) => Some(Refusal::Mounted { device: device.clone(), at: at.clone() }),
        How::Swap => Some(Refusal::Swap { device: device.clone() }),
        How::Written { .. } => None,
    })
}

/// Processes that write to the device, to a device above it, to the whole disk, or to the file below it.
fn written_elsewhere(system: &System, family: &Family) -> Vec<Refusal> {
    let of_interest = |relative: &Relative| !matches!(relative.relation, Relation::Slave | Relation::LoopBelow);
    let relatives: Vec<Relative> = family.everybody().into_iter().filter(of_interest).collect();
    let numbers = relatives.iter().map(|relative| relative.node.number).collect();
    let files = family.footprint.files().collect();
    let refusal = |found: super::in_use::Use| {
        let device = match &found.of {
            Used::File(..) => "the file that backs it".to_owned(),
            _ => relatives.iter().find(|relative| found.is_of(&relative.node, None))?.subject(),
        };
        let How::Written { pid, name } = found.how else { return None };
        Some(Refusal::Written { device, pid, process: name })
    };
    writers(system, &numbers, &files).into_iter().filter_map(refusal).collect()
}

/// Partitions may carry something although the device itself shows nothing but a table that may be overwritten.
fn carried_by_partitions(family: &Family, consent: &WriteConsent) -> Vec<Refusal> {
    let partitions = family.above.iter().filter(|relative| relative.relation == Relation::Partition);
    let look = |relative: &Relative| {
        let path = Path::new("/dev").join(&relative.node.name);
        match open_to_look(&path, &relative.node).and_then(|file| carried(&file)) {
            Ok((_, found)) => unallowed(&relative.subject(), &found, consent),
            Err(error) => vec![Refusal::Unknown { what: format!("{} cannot be read: {error}", path.display()) }],
        }
    };
    partitions.flat_map(look).collect()
}

fn open_to_look(path: &Path, node: &Node) -> io::Result<File> {
    let file = File::open(path)?;
    match super::number_of(&file)? {
        number if number == node.number => Ok(file),
        _ => Err(io::Error::other("it is not the device that the kernel knows by that name")),
    }
}

fn unallowed(device: &str, found: &[Signature], consent: &WriteConsent) -> Vec<Refusal> {
    let is_allowed = |signature: &&Signature| !consent.allowed_signatures.contains(&signature.kind);
    let refuse = |&signature: &Signature| Refusal::Signature { device: device.to_owned(), signature };
    found.iter().filter(is_allowed).map(refuse).collect()
}

/// Size and signatures of an open device.
fn carried(mut file: &File) -> io::Result<(ByteSize, Vec<Signature>)> {
    let size = file.seek(SeekFrom::End(0))?;
    let mut read = |from: u64, bytes: &mut [u8]| file.read_exact_at(bytes, from);
    let view = View::new(size, &mut read);
    let found = signatures(&view);
    view.failure()?;
    Ok((ByteSize(size), found))
}

#[cfg(test)]
mod tests {
    use super::super::system::fake::Machine;
    use super::*;

    fn consent() -> WriteConsent {
        WriteConsent {
            confirmation: Some("S3RIAL".into()),
            allowed_signatures: Vec::new(),
            region: ByteSize::mib(1),
            max_write: ByteSize::mib(8),
        }
    }

    /// A disk with a serial number, and a file in its place.
    fn machine() -> (Machine, File) {
        let machine = Machine::new();
        machine.disk("sda", "8:0");
        machine.write("sys/devices/sda/device/serial", "S3RIAL\n");
        (machine, file_of(2 << 20))
    }

    fn file_of(size: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        file
    }

    fn refusals_with(machine: &Machine, file: &File, number: &str, consent: &WriteConsent) -> Vec<Refusal> {
        let system = machine.system();
        plan(&system, Path::new("/dev/sda"), machine.node(number), file, Some(consent)).unwrap().refusals
    }

    fn refusals(machine: &Machine, file: &File) -> Vec<Refusal> {
        refusals_with(machine, file, "8:0", &consent())
    }

    #[test]
    fn nothing_speaks_against_an_empty_idle_drive_that_is_named() {
        let (machine, file) = machine();
        assert_eq!(refusals(&machine, &file), []);
    }

    #[test]
    fn a_drive_that_is_only_read_gets_no_refusals_and_no_bytes() {
        let (machine, file) = machine();
        machine.append("proc/self/mountinfo", "30 1 8:0 / /data rw - ext4 /dev/sda rw");
        let plan = plan(&machine.system(), Path::new("/dev/sda"), machine.node("8:0"), &file, None).unwrap();
        assert_eq!(
            (plan.destructive, plan.region, plan.max_write, plan.refusals.len()),
            (false, ByteSize(0), ByteSize(0), 0)
        );
        assert!(plan.to_string().contains("opened read-only"), "{plan}");
    }

    #[test]
    fn a_mounted_volume_on_crypt_on_a_partition_refuses_the_disk() {
        let (machine, file) = machine();
        machine.partition("sda", 1, "sda1", "8:1");
        machine.disk("dm-0", "252:0");
        machine.holds("dm-0", "sda/sda1");
        machine.append("proc/self/mountinfo", "30 1 252:0 / /home rw - xfs /dev/mapper/home rw");
        let found = refusals(&machine, &file);
        let subject = "dm-0, which is made of it,".to_owned();
        assert_eq!(found[0], Refusal::Mounted { device: subject.clone(), at: "/home".into() });
        assert!(found.contains(&Refusal::Held { device: subject }), "{found:?}");
    }

    #[test]
    fn a_mounted_disk_refuses_its_partition_and_a_mounted_sibling_does_not() {
        let (machine, file) = machine();
        machine.partition("sda", 1, "sda1", "8:1");
        machine.partition("sda", 2, "sda2", "8:2");
        let consent = WriteConsent { confirmation: Some("S3RIAL-part1".into()), ..consent() };
        machine.append("proc/self/mountinfo", "30 1 8:2 / /data rw - ext4 /dev/sda2 rw");
        assert_eq!(refusals_with(&machine, &file, "8:1", &consent), []);
        machine.append("proc/self/mountinfo", "31 1 8:0 / /other rw - ext4 /dev/sda rw");
        let found = refusals_with(&machine, &file, "8:1", &consent);
        assert!(matches!(&found[..], [Refusal::Mounted { at, .. }] if at == "/other"), "{found:?}");
    }

    #[test]
    fn swap_on_a_relative_or_on_the_file_below_refuses() {
        let (machine, file) = machine();
        machine.append("proc/swaps", &format!("{}\tpartition\t1\t0\t-2", machine.path("dev/sda").display()));
        assert_eq!(refusals(&machine, &file), [Refusal::Swap { device: "it".into() }]);

        machine.write("swapfile", "no number");
        machine.loop_over("loop0", "7:0", &machine.path("swapfile"));
        machine.append("proc/swaps", &format!("{}\tfile\t1\t0\t-2", machine.path("swapfile").display()));
        let named = machine.path("swapfile").display().to_string();
        let consent = WriteConsent { confirmation: Some(named), ..consent() };
        assert_eq!(refusals_with(&machine, &file, "7:0", &consent), [Refusal::Swap { device: "it".into() }]);
    }

    #[test]
    fn a_drive_that_the_kernel_has_as_read_only_is_refused() {
        let (machine, file) = machine();
        machine.write("sys/devices/sda/ro", "1\n");
        assert_eq!(refusals(&machine, &file), [Refusal::ReadOnly]);
    }

    #[test]
    fn no_more_than_the_drive_holds_is_planned_to_be_overwritten() {
        let (machine, _) = machine();
        let path = Path::new("/dev/sda");
        let plan = plan(&machine.system(), path, machine.node("8:0"), &file_of(4096), Some(&consent())).unwrap();
        assert_eq!((plan.region, plan.share()), (ByteSize(4096), 1.0));
    }

    #[test]
    fn a_signature_refuses_until_its_own_kind_is_allowed_and_allowing_it_allows_nothing_else() {
        let (machine, file) = machine();
        file.write_all_at(b"XFSB", 0).unwrap();
        let kinds = |consent: &WriteConsent| -> Vec<String> {
            let refusals = refusals_with(&machine, &file, "8:0", consent);
            refusals.iter().map(ToString::to_string).collect()
        };
        let allowing = |kind: &str| WriteConsent { allowed_signatures: vec![kind.parse().unwrap()], ..consent() };
        assert!(kinds(&consent())[0].ends_with("add --allow-signature xfs"), "{:?}", kinds(&consent()));
        assert_eq!(kinds(&allowing("ext4")).len(), 1);
        assert!(kinds(&allowing("xfs")).is_empty());
        machine.append("proc/self/mountinfo", "30 1 8:0 / /data rw - xfs /dev/sda rw");
        assert_eq!(kinds(&allowing("xfs")), ["it is mounted at /data; unmount it, or use another drive"]);
    }

    #[test]
    fn what_is_not_confirmed_word_for_word_is_refused() {
        let (machine, file) = machine();
        for given in [None, Some("S3RIA".to_owned()), Some(String::new())] {
            let consent = WriteConsent { confirmation: given.clone(), ..consent() };
            let refusal = Refusal::Unconfirmed { given, has_identity: true };
            assert_eq!(refusals_with(&machine, &file, "8:0", &consent), [refusal]);
        }
        machine.disk("ram0", "1:0");
        let found =
            refusals_with(&machine, &file, "1:0", &WriteConsent { confirmation: Some("ram0".into()), ..consent() });
        assert!(matches!(found[..], [Refusal::Unconfirmed { has_identity: false, .. }]), "{found:?}");
    }

    #[test]
    fn a_machine_that_does_not_tell_what_is_mounted_refuses_everything() {
        let (machine, file) = machine();
        std::fs::remove_file(machine.path("proc/self/mountinfo")).unwrap();
        assert!(matches!(refusals(&machine, &file)[..], [Refusal::Unknown { .. }]));
    }

    #[test]
    fn the_objection_is_one_line_with_the_gravest_first_and_the_plan_shows_all() {
        let (machine, file) = machine();
        machine.append("proc/self/mountinfo", "30 1 8:0 / /data rw - ext4 /dev/sda rw");
        let consent = WriteConsent { confirmation: None, ..consent() };
        let plan = plan(&machine.system(), Path::new("/dev/sda"), machine.node("8:0"), &file, Some(&consent)).unwrap();
        let line = plan.refusal().unwrap();
        assert!(line.starts_with("/dev/sda: nothing is written: it is mounted at /data; unmount it"), "{line}");
        assert!(line.ends_with("(and 1 more: --dry-run shows all)") && !line.contains('\n'), "{line}");
        let shown = plan.to_string();
        assert!(shown.contains("at most 8 MiB in all, to its first 1 MiB (50.00 % of it)"), "{shown}");
        assert_eq!(shown.matches("refused ").count(), 2, "{shown}");
    }
}
