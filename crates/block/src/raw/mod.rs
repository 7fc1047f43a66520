//! Raw block devices: read-only by default, written only with consent and if there is no objection.
//!
//! ```text
//!   path ─ open read-only ─ number ─▶ plan: family, use, signatures, identity ─▶ refusals, or
//!          open exclusively, the same number? ─▶ plan again ─▶ a drive with a region and a budget
//! ```
//!
//! | file | content |
//! |---|---|
//! | `system.rs` | block devices as sysfs lists them, by number |
//! | `kernel.rs` | facts available only by ioctl: loop devices, tables of the device mapper |
//! | `footprint.rs` | which bytes of which drives and files back a device |
//! | `drive.rs` | where a file system or device starts on its drive, through partitions, LVM, LUKS, md |
//! | `relatives.rs` | devices above and below a device |
//! | `in_use.rs` | mounts, swap, other writers |
//! | `signature/` | known formats on a device |
//! | `identity.rs` | the names by which a user can confirm it |
//! | `plan.rs` | all of that together, and every objection |
//!
//! # Rules
//!
//! - Without [`WriteConsent`] a device is opened `O_RDONLY`, so that the kernel itself refuses a write.
//! - With it, the plan is made twice: before the device is opened, to report objections, and again after it was opened
//!   `O_EXCL`. From then until it is closed, it can be neither mounted nor made part of a volume.
//! - The region and the budget are checked here for every request.
//! - An objection because of a mount, swap, a holder or another writer cannot be overridden.

mod drive;
mod footprint;
mod identity;
mod in_use;
mod kernel;
mod plan;
mod relatives;
mod signature;
mod system;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags};

pub(crate) use self::drive::Drive;
pub use self::plan::{RawPlan, Refusal, WriteConsent};
pub use self::signature::{Signature, SignatureKind};
use self::system::{DeviceNumber, Node, System};
use crate::{BlockError, ByteSize, ExtentMap, Operation, PlacementUnknown, Request};

/// An open raw device, and the limits of writing to it.
#[derive(Debug)]
pub(crate) struct RawDrive {
    file: Arc<OwnedFd>,
    path: PathBuf,
    node: Node,
    capacity: ByteSize,
    permission: Permission,
}

/// Whether and where it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Nothing,
    /// `region` bytes from the start, `budget` bytes in all, of which `spent` are written.
    Region {
        region: ByteSize,
        budget: ByteSize,
        spent: ByteSize,
    },
}

impl RawPlan {
    /// Examines a block device without writing; with `consent`, also whether it may be written.
    ///
    /// # Errors
    /// [`BlockError::Refused`] when `path` is not a block device; [`BlockError::Os`] when it cannot be read.
    pub fn of(path: &Path, consent: Option<&WriteConsent>) -> Result<Self, BlockError> {
        let system = System::real();
        let (file, node) = open(&system, path, OFlags::RDONLY)?;
        make_plan(&system, path, &node, &file, consent)
    }
}

impl RawDrive {
    /// Opens a device that nothing will be written to.
    pub(crate) fn read_only(path: &Path) -> Result<Self, BlockError> {
        let (file, node) = open(&System::real(), path, OFlags::RDONLY | OFlags::DIRECT)?;
        Self::new(path, file, node, Permission::Nothing)
    }

    /// Opens a device to write to its first bytes, if there is no objection.
    pub(crate) fn destructive(path: &Path, consent: &WriteConsent) -> Result<Self, BlockError> {
        let system = System::real();
        let look = |file: &File, node: &Node| make_plan(&system, path, node, file, Some(consent));
        let accept = |plan: &RawPlan| plan.refusal().map_or(Ok(()), |objection| Err(BlockError::Refused(objection)));
        let (looked_at, before) = open(&system, path, OFlags::RDONLY)?;
        accept(&look(&looked_at, &before)?)?;
        let (file, node) = open(&system, path, OFlags::RDWR | OFlags::EXCL | OFlags::DIRECT)?;
        if node != before {
            let changed = format!("{}: it was replaced by another device meanwhile; try again", path.display());
            return Err(BlockError::Refused(changed));
        }
        // Checked again, now that it cannot be mounted any more. Other writers were checked before: now this process is
        // one, and for a moment each child that another thread is starting.
        let mut again = look(&looked_at, &node)?;
        again.refusals.retain(|refusal| !matches!(refusal, Refusal::Written { .. }));
        accept(&again)?;
        let WriteConsent { region, max_write: budget, .. } = *consent;
        let mut drive = Self::new(path, file, node, Permission::Nothing)?;
        let region = region.min(drive.capacity);
        drive.permission = Permission::Region { region, budget, spent: ByteSize(0) };
        Ok(drive)
    }

    fn new(path: &Path, file: File, node: Node, permission: Permission) -> Result<Self, BlockError> {
        let capacity = size(&file).map_err(|error| BlockError::os(format!("{}: size", path.display()), &error))?;
        Ok(Self { file: Arc::new(file.into()), path: path.to_owned(), node, capacity, permission })
    }

    pub(crate) fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn capacity(&self) -> ByteSize {
        self.capacity
    }

    /// Where its bytes are on the whole drive.
    pub(crate) fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        let drive = Drive::of(&System::real(), &self.node)?;
        Ok(ExtentMap::whole(drive.name, drive.start, self.capacity))
    }

    /// Smallest unit of direct I/O.
    pub(crate) fn logical_block(&self) -> ByteSize {
        let disk = self.node.disk();
        let told = disk.as_ref().unwrap_or(&self.node).number("queue/logical_block_size");
        ByteSize(told.filter(|size| size.is_power_of_two() && (512..=65_536).contains(size)).unwrap_or(4096))
    }

    /// Its name for people.
    pub(crate) fn title(&self) -> String {
        let model = self.node.attribute("device/model").or_else(|| self.node.disk()?.attribute("device/model"));
        let access = if self.permission == Permission::Nothing { "read-only" } else { "raw" };
        match model {
            Some(model) => format!("{} ({model}, {access})", self.path.display()),
            None => format!("{} ({access})", self.path.display()),
        }
    }

    /// How many bytes from the start on may be written.
    pub(crate) fn writable(&self) -> ByteSize {
        match self.permission {
            Permission::Nothing => ByteSize(0),
            Permission::Region { region, .. } => region,
        }
    }

    /// Allows a request, or refuses it with the reason; allowed writes count against the budget.
    pub(crate) fn allow(&mut self, request: &Request) -> Result<(), BlockError> {
        let refuse = |why: String| Err(BlockError::Refused(format!("{}: {why}", self.path.display())));
        let what = match request.operation {
            Operation::Read | Operation::Flush => return Ok(()),
            Operation::Trim => "trim",
            Operation::Write | Operation::WriteZeroes => "write",
        };
        let Permission::Region { region, budget, spent } = &mut self.permission else {
            return refuse(format!(
                "a {what} is refused: the device is opened read-only; writing needs --destructive and --confirm-device"
            ));
        };
        if request.end().is_none_or(|end| end > *region) {
            let (offset, length) = (request.offset.0, request.length);
            return refuse(format!(
                "a {what} of {length} at byte {offset} is refused: it ends beyond the first {region}, which may be \
                 overwritten"
            ));
        }
        if request.operation == Operation::Trim {
            return Ok(());
        }
        match spent.0.checked_add(request.length.0).filter(|&after| after <= budget.0) {
            Some(after) => {
                *spent = ByteSize(after);
                Ok(())
            }
            None => {
                let (spent, budget) = (*spent, *budget);
                refuse(format!(
                    "{spent} are written; another write of {} is refused, since it would exceed --max-write {budget}",
                    request.length
                ))
            }
        }
    }
}

fn make_plan(
    system: &System,
    path: &Path,
    node: &Node,
    file: &File,
    consent: Option<&WriteConsent>,
) -> Result<RawPlan, BlockError> {
    plan::plan(system, path, node.clone(), file, consent)
        .map_err(|error| BlockError::os(format!("{}: reading its signatures", path.display()), &error))
}

/// Opens a block device and finds it in sysfs.
fn open(system: &System, path: &Path, flags: OFlags) -> Result<(File, Node), BlockError> {
    let failed = |what: &str, error: &io::Error| BlockError::os(format!("{}: {what}", path.display()), error);
    let kind = rustix::fs::stat(path).map_err(|error| failed("examining it", &error.into()))?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::BlockDevice {
        return Err(BlockError::Refused(format!("{}: it is not a block device", path.display())));
    }
    // O_NONBLOCK: a drive without a medium can be opened, and is recognised by its size.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refused_by_the_kernel(path, error))?;
    let file = File::from(opened);
    let number = number_of(&file).map_err(|error| failed("examining it", &error))?;
    let node = system.node(number).map_err(|error| failed("sysfs does not know it", &error))?;
    Ok((file, node))
}

fn refused_by_the_kernel(path: &Path, error: rustix::io::Errno) -> BlockError {
    let path = path.display();
    match error {
        rustix::io::Errno::BUSY => BlockError::Refused(format!(
            "{path}: nothing is written: it is in use (mounted in another namespace, or part of a volume); release it \
             first, or use another drive"
        )),
        rustix::io::Errno::ROFS | rustix::io::Errno::PERM => BlockError::Refused(format!(
            "{path}: nothing is written: the kernel has it as read-only; use another drive"
        )),
        rustix::io::Errno::ACCESS => BlockError::os(
            format!("{path}: opening it needs root, or membership in its group (usually disk)"),
            &error.into(),
        ),
        _ => BlockError::os(format!("{path}: opening"), &error.into()),
    }
}

/// The number of the block device that `file` is open on.
pub(crate) fn number_of(file: &impl AsFd) -> io::Result<DeviceNumber> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => Ok(DeviceNumber::from_raw(stat.st_rdev)),
        _ => Err(io::Error::other("it is not a block device")),
    }
}

/// How large an open block device is now.
pub(crate) fn size(file: &impl AsFd) -> io::Result<ByteSize> {
    Ok(ByteSize(rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?))
}
