//! The medium of a device: a scratch file, a raw drive, or a file of the program's own.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::direct::DirectFile;
use super::scratch::ScratchFile;
use super::title::file_title;
use crate::raw::RawDrive;
use crate::{BlockError, ByteSize, ExtentMap, PlacementUnknown, Request};

/// The medium of the I/O of a [`super::FileDevice`].
#[derive(Debug)]
pub(super) enum Medium {
    Scratch(ScratchFile),
    Raw(RawDrive),
    Own(DirectFile),
}

impl Medium {
    pub(super) fn file(&self) -> Arc<OwnedFd> {
        match self {
            Self::Scratch(scratch) => scratch.file(),
            Self::Raw(drive) => drive.file(),
            Self::Own(file) => file.file(),
        }
    }

    /// The device's name for people; `note` describes the engine.
    pub(super) fn title(&self, note: Option<&str>) -> String {
        match self {
            Self::Scratch(scratch) => file_title(scratch.directory(), scratch.file_system(), note),
            Self::Raw(drive) => match note {
                Some(note) => format!("{}, {note}", drive.title()),
                None => drive.title(),
            },
            Self::Own(file) => file_title(file.path(), &file.file_system(), note),
        }
    }

    /// The drive, or a path that is on it.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Scratch(scratch) => scratch.directory(),
            Self::Raw(drive) => drive.path(),
            Self::Own(file) => file.path(),
        }
    }

    /// The device's name in errors.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Scratch(scratch) => format!("the scratch file in {}", scratch.directory().display()),
            Self::Raw(drive) => drive.path().display().to_string(),
            Self::Own(file) => file.path().display().to_string(),
        }
    }

    /// How large it was when it was opened.
    pub(super) fn capacity(&self) -> ByteSize {
        match self {
            Self::Scratch(scratch) => scratch.size(),
            Self::Raw(drive) => drive.capacity(),
            Self::Own(file) => file.size(),
        }
    }

    /// How large it is now.
    pub(super) fn size_now(&self) -> io::Result<ByteSize> {
        match self {
            Self::Scratch(scratch) => Ok(ByteSize(rustix::fs::fstat(scratch.file())?.st_size as u64)),
            Self::Raw(drive) => crate::raw::size(&*drive.file()),
            Self::Own(file) => Ok(ByteSize(rustix::fs::fstat(file.file())?.st_size as u64)),
        }
    }

    /// Smallest unit of direct I/O.
    pub(super) fn logical_block(&self) -> Result<ByteSize, BlockError> {
        match self {
            Self::Scratch(scratch) => scratch.logical_block(),
            Self::Raw(drive) => Ok(drive.logical_block()),
            Self::Own(file) => Ok(file.logical_block()),
        }
    }

    /// How many bytes from the start on may be written.
    pub(super) fn writable(&self) -> ByteSize {
        match self {
            Self::Scratch(scratch) => scratch.size(),
            Self::Raw(drive) => drive.writable(),
            Self::Own(file) => file.size(),
        }
    }

    /// Where its bytes are on the drive.
    pub(super) fn extents(&self) -> Result<ExtentMap, PlacementUnknown> {
        match self {
            Self::Scratch(scratch) => scratch.extents(),
            Self::Raw(drive) => drive.extents(),
            Self::Own(file) => file.extents(),
        }
    }

    /// Allows a valid request, or refuses it with the reason.
    pub(super) fn allow(&mut self, request: &Request) -> Result<(), BlockError> {
        match self {
            Self::Scratch(_) | Self::Own(_) => Ok(()),
            Self::Raw(drive) => drive.allow(request),
        }
    }
}
