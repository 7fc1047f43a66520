//! A drive in files: its bytes in a sparse image, and the state of its FTL beside that.
//!
//! ```text
//!   drive.img                 each byte at its logical address; a raw image, readable while the drive is detached
//!   drive.img.ftl             the drive's state when it was last detached (docs/formats/drive-state.md)
//!   drive.img.ftl.attached    exists while a drive is attached; a killed drive leaves it behind
//! ```
//!
//! The drive itself gets requests without bytes; their timing is the same. Bytes are moved between client and image
//! when the drive has done a request, just before its completion ([`crate::engine`]). So the image has the data of
//! completed writes, in the order of completion, and a request that the drive refuses changes nothing.
//!
//! A drive that compresses or deduplicates needs the bytes, because its storage depends on them. It gets them too,
//! keeps them in memory as it stores them, and reads them from the image when it continues. Clients read from the
//! image.
//!
//! **Which state belongs to which image.** A state names the time of the last change of its image. If the image was
//! changed since, or the drive was not detached, the state is older than the image. The drive then continues from its
//! last saved state, and the content of the image in unmapped pages is written to it once, without its bytes: the FTL
//! then maps every page in use, but misses everything else that happened meanwhile. The user gets a note.
//!
//! If the machine itself crashed meanwhile (the mark names the boot, so the end of the process alone looks different),
//! the image has the data that its kernel had written back: at least flushed data if each flush syncs the image
//! ([`DataFile::sync_at_flush`]), otherwise any part. The user gets a note of that too.
//!
//! Order of a detach: the image is synced; the state goes to a new file, which is synced and renamed; the mark is
//! removed. At any time there is a complete state, and the mark as long as it is the older one.

mod image;
mod versions;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flashwise_block::output::{self, Access, OutputFile, Published, Replaceable};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, LockedFile, Request};
use flashwise_ssd::saved::{SavedDrive, StateError};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use serde::{Deserialize, Serialize};

use crate::AttachError;
use crate::error::os_message;
pub(crate) use image::Image;
pub(crate) use versions::Versions;

/// Requests in flight while a drive is brought up to date with its image.
const DEPTH: usize = 32;

/// A drive's files, held by this process alone.
#[derive(Debug)]
pub struct DataFile {
    path: PathBuf,
    pub(crate) image: Image,
    /// How often the drive was detached.
    generation: u64,
    /// It was made for this drive.
    is_new: bool,
    mark: PathBuf,
    /// The content of an existing mark.
    unclean: Option<UncleanDetach>,
    /// The state beside the image, once it was read or written here: the only one that is ever replaced.
    known_state: Option<Replaceable>,
    /// The mark, while it is one that was made here.
    own_mark: Option<Published>,
    /// Files that were made here; where nothing was done with the drive, they go again.
    made: Vec<Published>,
    /// A client's flush syncs the image.
    pub(crate) syncs: bool,
    /// A client has sent a request, or the drive was detached: then the files are kept.
    is_used: bool,
}

/// The state's record of its image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Binding {
    /// How often the drive was detached, with the time when this was saved.
    generation: u64,
    /// When the image was changed last: s and ns.
    image_changed: (i64, i64),
}

/// The mark of a drive that was not detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UncleanDetach {
    /// The machine was restarted since.
    before_boot: bool,
    /// Each flush had synced the image.
    synced: bool,
}

/// Line of the mark of an image that each flush syncs.
const SYNCED: &str = "Each flush syncs the image.";

/// How a drive comes out of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// There were none: the drive is new.
    New,
    /// Exactly as it was when it was detached.
    Exact {
        /// Of its clock then, ns.
        at_ns: u64,
    },
    /// It was not detached, or the image was changed since.
    Approximate {
        /// Why.
        reason: &'static str,
        /// Bytes of the image that the FTL did not know of.
        unknown_bytes: u64,
    },
    /// The machine went down while the drive was attached.
    AfterCrash {
        /// Each flush had synced the image.
        synced: bool,
        /// Bytes of the image that the FTL did not know of.
        unknown_bytes: u64,
    },
}

impl std::fmt::Display for Continuation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New => f.write_str("a new drive"),
            Self::Exact { at_ns } => {
                write!(
                    f,
                    "the drive continues where it was detached, at {} on its clock",
                    flashwise_block::Nanos(*at_ns)
                )
            }
            Self::Approximate { reason, unknown_bytes } => {
                let unknown = ByteSize(*unknown_bytes);
                write!(
                    f,
                    "{reason}: no data is lost; the FTL starts from its last saved state, with {unknown} written \
                           since"
                )
            }
            Self::AfterCrash { synced, unknown_bytes } => {
                let unknown = ByteSize(*unknown_bytes);
                let bytes = if *synced {
                    "flushed data is present, other data may be lost"
                } else {
                    "the image has the data that the machine had written back; flushed data may be lost too \
                     (--data-sync would have kept it)"
                };
                write!(
                    f,
                    "the machine crashed while the drive was attached: {bytes}; check the content as after any crash; \
                     the FTL starts from its last saved state, with {unknown} written since"
                )
            }
        }
    }
}

fn refused(path: &Path, reason: impl Into<String>) -> AttachError {
    AttachError::Data { path: path.to_owned(), reason: reason.into() }
}

/// The system's error about a file.
fn failed(path: &Path) -> impl Fn(io::Error) -> AttachError + Copy {
    move |error| refused(path, os_message(&error))
}

impl DataFile {
    /// Opens the files of a drive of a capacity, or makes them.
    ///
    /// # Errors
    /// [`AttachError::Data`] where another drive has them, where the file is not one for such a drive, or cannot be
    /// opened.
    pub fn open(path: &Path, capacity: ByteSize) -> Result<Self, AttachError> {
        let fail = failed(path);
        if !exists(path) {
            for beside in ["ftl", "ftl.attached"].map(|extension| path.with_added_extension(extension)) {
                if exists(&beside) {
                    let reason = "the drive's state is here but its image is not; nothing was changed; put the image \
                                  back, correct its name, or move the state away for a new drive";
                    return Err(refused(&beside, reason));
                }
            }
        }
        let made = output::create_growing(path);
        let is_new = made.is_ok();
        let file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Examined before it is opened: opening a special file may block for ever.
                if !path.metadata().map_err(fail)?.is_file() {
                    return Err(refused(path, "it is not a regular file; give a file, which may be new"));
                }
                OpenOptions::new().read(true).write(true).open(path).map_err(fail)?
            }
            made => made.map_err(fail)?,
        };
        let made = is_new.then(|| Published::found(path)).transpose().map_err(fail)?;
        let data = Self::of(path, file, capacity, made.clone());
        if let (Err(_), Some(made)) = (&data, made) {
            let _ = made.remove();
        }
        data
    }

    #[allow(clippy::disallowed_methods, reason = "a file that was just made")]
    fn of(path: &Path, file: File, capacity: ByteSize, made: Option<Published>) -> Result<Self, AttachError> {
        let fail = failed(path);
        let is_new = made.is_some();
        let file = LockedFile::new(file).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => refused(path, "another drive is attached to it; detach that one first"),
            _ => fail(error),
        })?;
        if is_new {
            file.set_len(capacity.0).map_err(fail)?;
        }
        let length = ByteSize(file.metadata().map_err(fail)?.len());
        if length != capacity {
            let reason = format!(
                "it has {} bytes, but the drive has {}; give the drive that it belongs to, or a new file",
                length.0, capacity.0
            );
            return Err(refused(path, reason));
        }
        let mark = path.with_added_extension("ftl.attached");
        Ok(Self {
            path: path.to_owned(),
            image: Image::new(file, capacity),
            generation: 0,
            is_new,
            mark,
            unclean: None,
            known_state: None,
            own_mark: None,
            made: made.into_iter().collect(),
            syncs: false,
            is_used: false,
        })
    }

    /// Makes each flush of a client sync the file; to be called before [`Self::drive`].
    pub fn sync_at_flush(&mut self) {
        self.syncs = true;
    }

    /// Facts about a drive that was not detached.
    fn unclean_detach(&self) -> Result<Option<UncleanDetach>, AttachError> {
        let mut text = String::new();
        let known = Replaceable::recognise(&self.mark, |file| {
            text = read_mark(file)?;
            Ok(text.starts_with(MARK))
        });
        match known {
            Ok(None) => return Ok(None),
            Ok(Some(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(refused(&self.mark, "it is not flashwise's mark of an attached drive; move it away"));
            }
            Err(error) => return Err(failed(&self.mark)(error)),
        }
        let booted = text.lines().find_map(|line| line.strip_prefix(BOOT));
        Ok(Some(UncleanDetach {
            before_boot: booted.is_some_and(|booted| booted != boot()),
            synced: text.lines().any(|line| line == SYNCED),
        }))
    }

    /// Whether the file is new.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The image.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the image holds nothing.
    pub(crate) fn is_blank(&self) -> Result<bool, AttachError> {
        let data = self.image.next_data(0).map_err(failed(&self.path))?;
        Ok(data.is_none())
    }

    fn state(&self) -> PathBuf {
        self.path.with_added_extension("ftl")
    }

    /// The drive that belongs to the image. `new` creates one if there is no state; it is saved at once, so that there
    /// always is a state. From here on the files are those of an attached drive.
    ///
    /// # Errors
    /// [`AttachError::Data`] for a damaged state or the state of another drive; any error of `new`.
    pub fn drive<E: From<AttachError>>(
        &mut self,
        config: &DeviceConfig,
        new: impl FnOnce() -> Result<SimulatedSsd, E>,
    ) -> Result<(SimulatedSsd, Continuation), E> {
        let state = self.state();
        let mut saved = None;
        let known = Replaceable::recognise(&state, |file| {
            saved = Some(SavedDrive::open(BufReader::new(file)));
            Ok(true)
        });
        self.known_state = known.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => refused(&state, "it is not a regular file"),
            _ => failed(&state)(error),
        })?;
        let saved = saved.transpose().map_err(|error| self.no_state(&error))?;
        self.unclean = self.unclean_detach()?;
        let Some(saved) = saved else {
            let mut drive = new()?;
            if self.is_new {
                self.save(&mut drive)?;
                return Ok((drive, Continuation::New));
            }
            let reason = "the FTL is that of a new drive, since no state is beside the image";
            let unknown_bytes = self.catch_up(&mut drive, &[])?;
            self.save(&mut drive)?;
            return Ok((drive, Continuation::Approximate { reason, unknown_bytes }));
        };
        let binding = Binding::deserialize(saved.note())
            .map_err(|error| refused(&state, format!("it does not name the image that it belongs to: {error}")))?;
        self.generation = binding.generation;
        let changed = self.image.changed().map_err(failed(&self.path))?;
        let reason = match () {
            () if self.unclean.is_some() => Some("the drive was not detached"),
            () if changed != binding.image_changed => Some("the image was modified while the drive was detached"),
            () => None,
        };
        let at_ns = saved.at_ns();
        let mut drive = saved.restore(config.clone()).map_err(|error| self.no_state(&error))?;
        let changed = self.bring_content(&mut drive).map_err(failed(&self.path))?;
        let continuation = match (reason, self.unclean) {
            (None, _) => Continuation::Exact { at_ns },
            (_, Some(UncleanDetach { before_boot: true, synced })) => {
                Continuation::AfterCrash { synced, unknown_bytes: self.catch_up(&mut drive, &changed)? }
            }
            (Some(reason), _) => {
                Continuation::Approximate { reason, unknown_bytes: self.catch_up(&mut drive, &changed)? }
            }
        };
        self.set_mark(true).map_err(failed(&self.mark))?;
        Ok((drive, continuation))
    }

    fn no_state(&self, error: &StateError) -> AttachError {
        let help = match error {
            StateError::OtherDrive { .. } => " (attach the drive that it belongs to)",
            StateError::Io { .. } => "",
            _ => MOVE_AWAY,
        };
        refused(&self.state(), format!("{error}{help}"))
    }

    /// The drive has no space for the content of the image, besides the content in its state.
    fn no_room(&self) -> AttachError {
        let state = self.state();
        match state.exists() {
            true => refused(&state, format!("the drive has no space for the content of the image{MOVE_AWAY}")),
            false => refused(&self.path, "the drive has no space for its content"),
        }
    }

    /// Gives a drive that depends on its bytes those of its pages; gives the places of pages that it stores otherwise,
    /// ascending.
    fn bring_content(&self, drive: &mut SimulatedSsd) -> io::Result<Vec<ByteSize>> {
        // The start of the range not searched yet: most of an image may be a hole.
        let mut data = self.image.next_data(0)?;
        drive.bring_content(|at, page| {
            while let Some(range) = data.as_ref().filter(|range| range.end <= at.0) {
                data = self.image.next_data(range.end)?;
            }
            match &data {
                Some(range) if range.start < at.0 + page.len() as u64 => self.image.read(at.0, page),
                _ => {
                    page.fill(0);
                    Ok(())
                }
            }
        })
    }

    /// Writes every page that the image holds something of and the drive does not know to the drive, and those that
    /// were `changed`; without their bytes where the drive can do without. Gives how many bytes that were.
    fn catch_up(&self, drive: &mut SimulatedSsd, changed: &[ByteSize]) -> Result<u64, AttachError> {
        let (page, capacity) = (drive.config().ftl.logical_page_bytes, drive.info().capacity.0);
        let longest = (drive.info().max_transfer.0 / page).max(1) * page;
        let fail = |error: BlockError| match error {
            BlockError::NoSpace => self.no_room(),
            error => refused(&self.path, error.to_string()),
        };
        // One that compresses or deduplicates stores nothing of pages of zeros.
        let needs_nothing = |drive: &SimulatedSsd, at: u64| drive.depends_on_content() && self.is_zeros(at, page);
        let is_known = |drive: &SimulatedSsd, at: u64| {
            let is_there = drive.is_mapped(ByteSize(at)) && changed.binary_search(&ByteSize(at)).is_err();
            is_there || needs_nothing(drive, at)
        };
        let (mut at, mut unknown) = (0, 0);
        // Consecutive unmapped pages, up to the longest request.
        while let Some(data) = self.image.next_data(at).map_err(failed(&self.path))? {
            let (mut start, end) = (data.start / page * page, data.end.next_multiple_of(page).min(capacity));
            while start < end {
                let is_unknown = |at: &u64| *at - start < longest && !is_known(drive, *at);
                let pages = (start..end).step_by(page as usize).take_while(is_unknown).count() as u64;
                let length = (pages * page).min(end - start);
                if length > 0 {
                    self.write_run(drive, start, length).map_err(fail)?;
                }
                unknown += length;
                start += pages.max(1) * page;
            }
            at = end;
        }
        settle(drive, 0).map_err(fail)?;
        Ok(unknown)
    }

    /// Whether a page of the image is known to be zeros.
    fn is_zeros(&self, at: u64, length: u64) -> bool {
        let mut bytes = vec![0; length as usize];
        self.image.read(at, &mut bytes).is_ok() && bytes.iter().all(|&byte| byte == 0)
    }

    /// Writes a range that is not empty.
    fn write_run(&self, drive: &mut SimulatedSsd, start: u64, length: u64) -> Result<(), BlockError> {
        let mut request = Request::write(ByteSize(start), ByteSize(length));
        if drive.depends_on_content() {
            let mut bytes = IoBuffer::zeroed(length as usize);
            self.image.read(start, &mut bytes).map_err(|error| BlockError::os("the data file", &error))?;
            request = request.with_buffer(bytes);
        }
        drive.submit(request)?;
        settle(drive, DEPTH)
    }

    /// Saves a drive that was just made, and marks its files as those of an attached one.
    fn save(&mut self, drive: &mut SimulatedSsd) -> Result<(), AttachError> {
        self.detach(drive)?;
        self.set_mark(true).map_err(failed(&self.mark))
    }

    /// Shuts a drive down and saves it, so that it can continue exactly from there.
    ///
    /// # Errors
    /// [`AttachError::NotSaved`] on failure: the earlier state is kept then, and the mark.
    pub(crate) fn detach(&mut self, drive: &mut SimulatedSsd) -> Result<(), AttachError> {
        let state = self.state();
        let not_saved = |reason: String| AttachError::NotSaved { path: state.clone(), reason };
        let fail = |error: io::Error| not_saved(os_message(&error));
        if !self.image.is_at(&self.path) {
            let image = self.path.display();
            return Err(not_saved(format!(
                "{image} is gone or was replaced by another file; the state was not changed"
            )));
        }
        self.image.sync().map_err(fail)?;
        drive.shut_down().map_err(|error| not_saved(error.to_string()))?;
        let binding = Binding { generation: self.generation + 1, image_changed: self.image.changed().map_err(fail)? };
        let access = Access::of(if self.known_state.is_some() { &state } else { &self.path }).map_err(fail)?;
        let mut new = OutputFile::create(&state, access).map_err(fail)?;
        save_to(new.file(), drive, binding).map_err(|error| match error {
            StateError::Io { error, .. } => fail(error),
            error => not_saved(error.to_string()),
        })?;
        let placed = match self.known_state {
            Some(old) => new.replace(&old),
            None => new.publish(),
        };
        let placed = placed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => not_saved("another file has its name now, and is kept".to_owned()),
            _ => fail(error),
        })?;
        if self.known_state.is_none() {
            self.made.push(placed.clone());
        }
        self.known_state = Some(placed.replaceable());
        self.generation += 1;
        self.set_mark(false).map_err(fail)
    }

    /// From now on the files are not those that they were.
    pub(crate) fn is_used(&mut self) {
        self.is_used = true;
    }

    /// Notes that a drive is attached, or none any more.
    fn set_mark(&mut self, is_attached: bool) -> io::Result<()> {
        if is_attached {
            let old = Replaceable::recognise(&self.mark, |file| Ok(read_mark(file)?.starts_with(MARK)))?;
            let mut new = OutputFile::create(&self.mark, Access::of(&self.path)?)?;
            let mark = new.file();
            writeln!(mark, "{MARK}")?;
            writeln!(mark, "{BOOT}{}", boot())?;
            if self.syncs {
                writeln!(mark, "{SYNCED}")?;
            }
            self.own_mark = Some(match old {
                Some(old) => new.replace(&old)?,
                None => new.publish()?,
            });
            return Ok(());
        }
        if let Some(mark) = self.own_mark.take() {
            mark.remove()?;
        }
        output::sync_directory_of(&self.mark)
    }
}

/// First line of a mark.
const MARK: &str = "A flashwise drive is attached to this image, or was and was not detached.";

/// The text of a mark, which is short.
fn read_mark(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(1 << 16).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether something has a name, if only a link that leads nowhere.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// What to do about a state that does not fit.
const MOVE_AWAY: &str = " (move it away; the drive then starts with a new FTL for the content of the image)";

/// Prefix of the mark's line that names the boot of the machine.
const BOOT: &str = "boot ";

/// Identifies the current boot of the machine.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A drive that could not be attached leaves its files as it found them.
impl Drop for DataFile {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        // If one cannot be removed, the next attach reports that the drive was not detached.
        if self.is_new {
            self.made.iter().for_each(|file| _ = file.remove());
        }
        if let Some(mark) = self.own_mark.as_ref().filter(|_| self.unclean.is_none()) {
            let _ = mark.remove();
        }
    }
}

/// Writes a state to a file.
fn save_to(file: &mut File, drive: &mut SimulatedSsd, binding: Binding) -> Result<(), StateError> {
    let failed = |error: io::Error| StateError::Io { context: "the state cannot be written", error };
    let note = serde_json::to_value(binding).map_err(|error| failed(error.into()))?;
    let mut file = BufWriter::with_capacity(1 << 18, file);
    drive.save(note, &mut file)?;
    file.flush().map_err(failed)
}

/// Lets a drive work until at most `depth` requests are in flight. A read-only drive does not learn of them.
fn settle(drive: &mut SimulatedSsd, depth: usize) -> Result<(), BlockError> {
    while drive.outstanding() > depth {
        match drive.wait()?.map(|completion| completion.result) {
            None | Some(Ok(()) | Err(BlockError::ReadOnly)) => {}
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(())
}
