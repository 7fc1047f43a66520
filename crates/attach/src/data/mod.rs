//! A drive in files: its bytes in a sparse image, and the state of its FTL beside that.
//!
//! ```text
//!   drive.img                 each byte at its logical address; a raw image for whoever reads it while it is detached
//!   drive.img.ftl             what the drive was when it was detached last (docs/formats/drive-state.md)
//!   drive.img.ftl.attached    there while a drive is attached; left behind by one that was killed
//! ```
//!
//! The drive itself gets requests without bytes; they take the same time. Bytes go between client and image when the
//! drive has done a request, just before it is answered ([`crate::engine`]). So the image has what was answered, in the
//! order of the answers, and a request that the drive refuses changes nothing.
//!
//! A drive that compresses or deduplicates is another matter: what it stores depends on the bytes. It gets them too,
//! keeps them in memory as it stores them, and is given them again from the image when it goes on. Clients read the
//! image's.
//!
//! **Which state belongs to which image.** A state names the moment at which its image was changed last. Where the
//! image was changed since, or nobody has detached the drive, the state is older than the image. The drive then goes on
//! as it was when it was saved, and what the image holds in pages that are not mapped is written to it once, without
//! its bytes: the FTL knows every page that holds something, and no more than that of what happened in between. It is
//! said.
//!
//! Where the machine itself went down meanwhile (the mark names the boot, so a mere end of the process looks
//! different), the image has what its kernel had written back: what was flushed at least, where each flush syncs it
//! ([`DataFile::sync_at_flush`]), and anything else where none does. That is said too.
//!
//! Order of a detach: the image is synced; the state goes to a new file, which is synced and renamed; the mark is
//! removed. Whatever comes in between, there is a whole state, and the mark as long as it is the older one.

mod image;
mod versions;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flashwise_block::output::{self, Access, OutputFile, Published, Replaceable};
use flashwise_block::{BlockDevice, BlockError, ByteSize, IoBuffer, Request};
use flashwise_ssd::saved::{SavedDrive, StateError};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use serde::{Deserialize, Serialize};

use crate::AttachError;
use crate::error::os_message;
pub(crate) use image::Image;
pub(crate) use versions::Versions;

/// Requests under way while a drive is brought up to date with its image.
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
    /// What the mark said that was there already.
    unclean: Option<UncleanDetach>,
    /// The state beside the image, once it was read or written here: the only one that is ever replaced.
    known_state: Option<Replaceable>,
    /// The mark, while it is one that was made here.
    own_mark: Option<Published>,
    /// Files that were made here; where nothing was done with the drive, they go again.
    made: Vec<Published>,
    /// A flush of a client's brings what was written to the medium.
    pub(crate) syncs: bool,
    /// A client has asked for something, or the drive was detached: the files stay as they are then.
    is_used: bool,
}

/// What a state says of the image that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Binding {
    /// How often the drive was detached, with the time when this was saved.
    generation: u64,
    /// When the image was changed last: s and ns.
    image_changed: (i64, i64),
}

/// What the mark of a drive says that was not detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UncleanDetach {
    /// The machine has been started anew since.
    before_boot: bool,
    /// Each flush had synced the image.
    synced: bool,
}

/// What the mark says of an image that each flush syncs.
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
                    "the drive goes on where it was detached, after {} of its time",
                    flashwise_block::Nanos(*at_ns)
                )
            }
            Self::Approximate { reason, unknown_bytes } => {
                let unknown = ByteSize(*unknown_bytes);
                write!(f, "{reason}: all bytes are there, its FTL is as saved last, with {unknown} written on top")
            }
            Self::AfterCrash { synced, unknown_bytes } => {
                let unknown = ByteSize(*unknown_bytes);
                let bytes = if *synced {
                    "what was flushed is there, and what was not may be"
                } else {
                    "the image has what the machine had written back, flushed or not (--data-sync would have kept it)"
                };
                write!(
                    f,
                    "the machine went down while the drive was attached: {bytes}; check what is on it as after any crash; \
                     its FTL is as saved last, with {unknown} written on top"
                )
            }
        }
    }
}

fn refused(path: &Path, reason: impl Into<String>) -> AttachError {
    AttachError::Data { path: path.to_owned(), reason: reason.into() }
}

/// What the system says of a file.
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
                    let reason = "the drive's state is here and its image is not: nothing is changed; put the image back \
                                  where it was, correct its name, or move the state away for a new drive";
                    return Err(refused(&beside, reason));
                }
            }
        }
        let made = output::create_growing(path);
        let is_new = made.is_ok();
        let file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Looked at before it is opened: to open what is no file may wait for ever.
                if !path.metadata().map_err(fail)?.is_file() {
                    return Err(refused(path, "it is no file; the drive's bytes go to a file, which may be new"));
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

    fn of(path: &Path, file: File, capacity: ByteSize, made: Option<Published>) -> Result<Self, AttachError> {
        let fail = failed(path);
        let is_new = made.is_some();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refused(path, "another drive is attached to it; detach that one first"));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        if is_new {
            file.set_len(capacity.0).map_err(fail)?;
        }
        let length = ByteSize(file.metadata().map_err(fail)?.len());
        if length != capacity {
            let reason = format!(
                "it has {} bytes and the drive {}; give the drive that it belongs to, or a file that there is not yet",
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

    /// Has each flush of a client's bring what was written to the medium that the file is on: asked for before
    /// [`Self::drive`].
    pub fn sync_at_flush(&mut self) {
        self.syncs = true;
    }

    /// What is known of a drive that was not detached.
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
                return Err(refused(&self.mark, "it is no mark of an attached drive; move it away"));
            }
            Err(error) => return Err(failed(&self.mark)(error)),
        }
        let booted = text.lines().find_map(|line| line.strip_prefix(BOOT));
        Ok(Some(UncleanDetach {
            before_boot: booted.is_some_and(|booted| booted != boot()),
            synced: text.lines().any(|line| line == SYNCED),
        }))
    }

    /// Whether there was no such file before.
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

    /// The drive that belongs to the image. `new` makes one where there is no state of one; such a drive is saved at
    /// once, so that there is a state whatever happens to it. From here on the files are those of an attached drive.
    ///
    /// # Errors
    /// [`AttachError::Data`] for a state that is damaged or that of another drive; whatever `new` fails with.
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
            io::ErrorKind::AlreadyExists => refused(&state, "it is no file"),
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
            let reason = "the FTL of a new drive, as there is no state beside the image";
            let unknown_bytes = self.catch_up(&mut drive, &[])?;
            self.save(&mut drive)?;
            return Ok((drive, Continuation::Approximate { reason, unknown_bytes }));
        };
        let binding = Binding::deserialize(saved.note())
            .map_err(|error| refused(&state, format!("it does not say which image it belongs to: {error}")))?;
        self.generation = binding.generation;
        let changed = self.image.changed().map_err(failed(&self.path))?;
        let reason = match () {
            () if self.unclean.is_some() => Some("the drive was not detached"),
            () if changed != binding.image_changed => Some("the image was changed while it was detached"),
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

    /// What the image holds finds no room on the drive, beside what the state says that is there.
    fn no_room(&self) -> AttachError {
        let state = self.state();
        match state.exists() {
            true => refused(&state, format!("there is no room on the drive for what the image holds{MOVE_AWAY}")),
            false => refused(&self.path, "there is no room on the drive for what it holds"),
        }
    }

    /// Gives a drive that depends on its bytes those of its pages; gives the places of pages that it stores otherwise,
    /// ascending.
    fn bring_content(&self, drive: &mut SimulatedSsd) -> io::Result<Vec<ByteSize>> {
        // The range behind which nothing was looked for yet: most of an image may be a hole.
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
        // One page behind the other, as far as neither is known and a request may be long.
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

    /// Shuts a drive down and saves it, so that it can go on exactly where it is.
    ///
    /// # Errors
    /// [`AttachError::NotSaved`] where that cannot be: the state before is there then, and the mark.
    pub(crate) fn detach(&mut self, drive: &mut SimulatedSsd) -> Result<(), AttachError> {
        let state = self.state();
        let not_saved = |reason: String| AttachError::NotSaved { path: state.clone(), reason };
        let fail = |error: io::Error| not_saved(os_message(&error));
        if !self.image.is_at(&self.path) {
            let image = self.path.display();
            return Err(not_saved(format!("{image} is gone, or another file by now; the state stays as it was")));
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
            io::ErrorKind::AlreadyExists => not_saved("another file has its name by now, and stays".to_owned()),
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

/// What can be done about a state that does not fit.
const MOVE_AWAY: &str =
    " (move it away, and the drive begins with the FTL of a new one that knows what the image holds)";

/// What the line of a mark begins with that names the boot of the machine.
const BOOT: &str = "boot ";

/// Tells the time that the machine is up from all others.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A drive that could not be attached leaves its files as it found them.
impl Drop for DataFile {
    fn drop(&mut self) {
        if self.is_used {
            return;
        }
        // Where one cannot be removed, the next attach says that the drive was not detached.
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

/// Lets a drive work until no more than so many requests are under way. One that takes no more writes does not learn of
/// them.
fn settle(drive: &mut SimulatedSsd, depth: usize) -> Result<(), BlockError> {
    while drive.outstanding() > depth {
        match drive.wait()?.map(|completion| completion.result) {
            None | Some(Ok(()) | Err(BlockError::ReadOnly)) => {}
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(())
}
