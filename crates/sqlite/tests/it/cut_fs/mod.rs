//! A file system in memory whose power can be cut: a directory that is mounted through FUSE.
//!
//! ```text
//!   processes ─▶ kernel: page cache, POSIX locks, shared memory ─▶ FUSE ─▶ State: what is written, what is durable
//! ```
//!
//! The kernel hands every write down before the writer goes on (it does not hold writes back), so that a request here
//! is a request of some process. What a file system may forget is kept apart from what it may not:
//!
//! | request | durable |
//! |---|---|
//! | write, truncation, hole | with the next `fsync` or `fdatasync` of the file, by whomever |
//! | a name that comes or goes | with the next `fsync` of the directory |
//!
//! Each of these requests counts. The one that was chosen, and everything after it, fails with `EIO`: the power is
//! gone. Of what was not durable, that last request included, chance then decides what survives: each write whole, not
//! at all, or torn at sectors of 512 bytes; a write that is lost may leave a longer file, with zeros; each truncation
//! and hole or not; of each name the first few changes. Nothing follows from one surviving to another. What is not in
//! the file reads as zeros: no file system shows what another file left there.
//!
//! Shared memory (`-shm`) is the processes' own: it counts for nothing, and is there afterwards or not.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};

use crate::support::Random;

/// The kernel may believe what it was told: nobody changes anything but through it.
const BELIEVE: Duration = Duration::from_secs(3600);
const SECTOR: u64 = 512;

/// What is on the medium while nothing is mounted: files by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image(BTreeMap<OsString, Vec<u8>>);

impl Image {
    /// Writes its files into a directory.
    pub fn unpack(&self, directory: &Path) {
        for (name, content) in &self.0 {
            fs::write(directory.join(name), content).unwrap();
        }
    }

    /// Takes over the files of a directory.
    pub fn pack(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        Self(entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect())
    }
}

/// A change of a file that is not durable yet.
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Size(u64),
    Hole { offset: u64, length: u64 },
}

fn write_at(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    content.resize(content.len().max(end), 0);
    content[start..end].copy_from_slice(bytes);
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => write_at(content, *offset, bytes),
            Self::Size(size) => content.resize(*size as usize, 0),
            Self::Hole { offset, length } => {
                let end = content.len().min((offset + length) as usize);
                let start = end.min(*offset as usize);
                content[start..end].fill(0);
            }
        }
    }
}

/// A file, with a name or without.
#[derive(Default)]
struct Node {
    content: Vec<u8>,
    durable: Vec<u8>,
    changes: Vec<Change>,
    /// Shared memory.
    is_volatile: bool,
}

impl Node {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.content);
        if !self.is_volatile {
            self.changes.push(change);
        }
    }

    fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

/// How likely something survives a cut: a drive that loses all of one kind and nothing of another is met as often as
/// one that tosses a coin.
#[derive(Clone, Copy)]
enum Odds {
    Never,
    Even,
    Always,
}

impl Odds {
    fn draw(random: &mut Random) -> Self {
        match random.next() % 4 {
            0 => Self::Never,
            1 => Self::Always,
            _ => Self::Even,
        }
    }

    fn survives(self, random: &mut Random) -> bool {
        match self {
            Self::Never => false,
            Self::Even => random.next().is_multiple_of(2),
            Self::Always => true,
        }
    }
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<u64, Node>,
    names: BTreeMap<OsString, u64>,
    durable_names: BTreeMap<OsString, u64>,
    /// What became of names since the directory was synced.
    name_changes: Vec<(OsString, Option<u64>)>,
    requests: u64,
    /// Requests for a hole.
    holes: u64,
    /// Number of the request at which the power goes.
    cut_at: Option<u64>,
    is_off: bool,
}

impl State {
    fn of(image: &Image) -> Self {
        let mut state = Self::default();
        for (number, (name, content)) in (2..).zip(&image.0) {
            let is_volatile = is_shared_memory(name);
            let node = Node { content: content.clone(), durable: content.clone(), is_volatile, ..Node::default() };
            state.nodes.insert(number, node);
            state.names.insert(name.clone(), number);
        }
        state.durable_names = state.names.clone();
        state
    }

    /// Counts a request that changes the medium; `true` where the power goes with it.
    fn counts(&mut self) -> bool {
        self.requests += 1;
        self.is_off |= Some(self.requests) == self.cut_at;
        self.is_off
    }

    fn rename(&mut self, name: &OsStr, node: Option<u64>) {
        match node {
            Some(node) => self.names.insert(name.to_owned(), node),
            None => self.names.remove(name),
        };
        self.name_changes.push((name.to_owned(), node));
    }

    fn sync_names(&mut self) {
        self.durable_names = self.names.clone();
        self.name_changes.clear();
    }

    /// What is on the medium after the power went.
    fn survivors(mut self, random: &mut Random) -> Image {
        let odds = Odds::draw(random);
        let mut lost = Vec::new();
        for (name, node) in std::mem::take(&mut self.name_changes) {
            if lost.contains(&name) || !odds.survives(random) {
                lost.push(name);
            } else if let Some(node) = node {
                self.durable_names.insert(name, node);
            } else {
                self.durable_names.remove(&name);
            }
        }
        let [writes, sizes, holes] = [(); 3].map(|()| Odds::draw(random));
        let mut image = Image::default();
        for (name, number) in &self.durable_names {
            let Some(mut node) = self.nodes.remove(number) else { continue };
            if node.is_volatile {
                node.durable = node.content;
                if random.next().is_multiple_of(2) {
                    continue;
                }
            }
            for change in node.changes {
                match &change {
                    Change::Write { offset, bytes } => {
                        survivors_of_write(*offset, bytes, writes, &mut node.durable, random);
                    }
                    Change::Size(_) if sizes.survives(random) => change.apply(&mut node.durable),
                    Change::Hole { .. } if holes.survives(random) => change.apply(&mut node.durable),
                    Change::Size(_) | Change::Hole { .. } => {}
                }
            }
            image.0.insert(name.clone(), node.durable);
        }
        image
    }
}

fn survivors_of_write(offset: u64, bytes: &[u8], odds: Odds, durable: &mut Vec<u8>, random: &mut Random) {
    let end = offset + bytes.len() as u64;
    // Sectors are the drive's, wherever the write begins.
    let first = offset / SECTOR;
    let sectors = end.div_ceil(SECTOR) - first;
    let mut keep = |number: u64| {
        let start = offset.max((first + number) * SECTOR);
        let stop = end.min((first + number + 1) * SECTOR);
        write_at(durable, start, &bytes[(start - offset) as usize..(stop - offset) as usize]);
    };
    match (odds, random.next() % 4) {
        (Odds::Always, _) | (Odds::Even, 0) => (0..sectors).for_each(keep),
        (Odds::Even, 1) => (0..random.next() % (sectors + 1)).for_each(keep),
        (Odds::Even, 2) => {
            for number in 0..sectors {
                if random.next().is_multiple_of(2) {
                    keep(number);
                }
            }
        }
        // Lost; the file system may have noted the new size all the same.
        (Odds::Even | Odds::Never, _) => {
            if random.next().is_multiple_of(4) {
                durable.resize(durable.len().max(end as usize), 0);
            }
        }
    }
}

fn is_shared_memory(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b"-shm")
}

/// The state, and a bell that rings when the power goes.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    off: Condvar,
}

/// The mounted file system.
pub struct CutFs {
    directory: tempfile::TempDir,
    session: Option<BackgroundSession>,
    shared: Arc<Shared>,
}

impl CutFs {
    /// Mounts an image; the power goes with the given request, 1 being the first that changes anything.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub fn mount(image: &Image, cut_at: u64) -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        let state = Mutex::new(State { cut_at: Some(cut_at), ..State::of(image) });
        let shared = Arc::new(Shared { state, ..Shared::default() });
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("flashwise-test".to_owned())];
        let session = Session::new(Files(Arc::clone(&shared)), directory.path(), &config).and_then(Session::spawn);
        let session = session.map_err(|error| {
            format!("nothing can be mounted here: {error}; /dev/fuse and fusermount3 (package fuse3) are needed")
        })?;
        Ok(Self { directory, session: Some(session), shared })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until the power is gone, so long at most; tells whether it is.
    pub fn wait_for_cut(&self, at_most: Duration) -> bool {
        let state = self.shared.state.lock().unwrap();
        let (state, _) = self.shared.off.wait_timeout_while(state, at_most, |state| !state.is_off).unwrap();
        state.is_off
    }

    /// Holes that were asked for.
    pub fn holes(&self) -> u64 {
        self.shared.state.lock().unwrap().holes
    }

    /// Unmounts it, and tells what survived. Nobody may use it any more.
    pub fn cut(mut self, seed: u64) -> Image {
        self.unmount();
        std::mem::take(&mut *self.shared.state.lock().unwrap()).survivors(&mut Random(seed))
    }

    fn unmount(&mut self) {
        use rustix::mount::{UnmountFlags, unmount};
        let Some(session) = self.session.take() else { return };
        let directory = self.directory.path();
        // Without root that is fusermount's part.
        let by_program = || Command::new("fusermount3").args(["-u", "-z", "--"]).arg(directory).status();
        let is_done = unmount(directory, UnmountFlags::DETACH).is_ok() || by_program().is_ok_and(|code| code.success());
        if std::thread::panicking() {
            return;
        }
        assert!(is_done, "{} stays mounted", directory.display());
        match session.join() {
            // A kernel that takes the mount away while the next request is waited for says so in this way.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            ended => ended.unwrap(),
        }
    }
}

impl Drop for CutFs {
    fn drop(&mut self) {
        // Whoever is still there comes to an end.
        if let Ok(mut state) = self.shared.state.lock() {
            state.is_off = true;
        }
        self.unmount();
    }
}

/// What the kernel asks.
struct Files(Arc<Shared>);

const ROOT: INodeNo = INodeNo(1);

impl Files {
    /// The state while there is power.
    fn powered(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.0.state.lock().unwrap();
        if state.is_off { Err(Errno::EIO) } else { Ok(state) }
    }

    /// Changes a file's content.
    fn change(&self, node: INodeNo, change: Change) -> Result<FileAttr, Errno> {
        let mut state = self.powered()?;
        let file = state.nodes.get_mut(&node.0).ok_or(Errno::ENOENT)?;
        let (is_volatile, is_hole) = (file.is_volatile, matches!(change, Change::Hole { .. }));
        file.change(change);
        let attributes = attributes(node, Some(file));
        state.holes += u64::from(is_hole);
        self.counted(&mut state, !is_volatile).map(|()| attributes)
    }

    /// Counts a request that was carried out; the power may go with it.
    fn counted(&self, state: &mut State, counts: bool) -> Result<(), Errno> {
        if counts && state.counts() {
            self.0.off.notify_all();
            return Err(Errno::EIO);
        }
        Ok(())
    }

    /// Makes durable what there is to make durable, if the power stays.
    fn sync(&self, work: impl FnOnce(&mut State)) -> Result<(), Errno> {
        let mut state = self.powered()?;
        self.counted(&mut state, true)?;
        work(&mut state);
        Ok(())
    }

    fn look(&self, node: INodeNo) -> Result<FileAttr, Errno> {
        let state = self.powered()?;
        if node == ROOT {
            return Ok(attributes(node, None));
        }
        state.nodes.get(&node.0).map(|file| attributes(node, Some(file))).ok_or(Errno::ENOENT)
    }

    fn create(&self, name: &OsStr) -> Result<FileAttr, Errno> {
        let mut state = self.powered()?;
        let number = state.nodes.keys().next_back().map_or(2, |last| last + 1);
        let is_volatile = is_shared_memory(name);
        state.nodes.insert(number, Node { is_volatile, ..Node::default() });
        state.rename(name, Some(number));
        self.counted(&mut state, !is_volatile)?;
        Ok(attributes(INodeNo(number), state.nodes.get(&number)))
    }

    fn find(&self, name: &OsStr) -> Result<FileAttr, Errno> {
        let state = self.powered()?;
        let number = *state.names.get(name).ok_or(Errno::ENOENT)?;
        Ok(attributes(INodeNo(number), state.nodes.get(&number)))
    }

    fn remove(&self, name: &OsStr) -> Result<(), Errno> {
        let mut state = self.powered()?;
        state.names.get(name).ok_or(Errno::ENOENT)?;
        state.rename(name, None);
        self.counted(&mut state, !is_shared_memory(name))
    }
}

fn attributes(node: INodeNo, file: Option<&Node>) -> FileAttr {
    let size = file.map_or(0, |file| file.content.len() as u64);
    let began = SystemTime::UNIX_EPOCH;
    FileAttr {
        ino: node,
        size,
        blocks: size.div_ceil(SECTOR),
        atime: began,
        mtime: began,
        ctime: began,
        crtime: began,
        kind: if node == ROOT { FileType::Directory } else { FileType::RegularFile },
        perm: if node == ROOT { 0o700 } else { 0o644 },
        nlink: if node == ROOT { 2 } else { 1 },
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.find(name) {
            Ok(attributes) => reply.entry(&BELIEVE, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.look(node) {
            Ok(attributes) => reply.attr(&BELIEVE, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // Owner, mode and times are nobody's business here.
        let done = size.map_or_else(|| self.look(node), |size| self.change(node, Change::Size(size)));
        match done {
            Ok(attributes) => reply.attr(&BELIEVE, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(name));
    }

    fn create(&self, _: &Request, _: INodeNo, name: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.create(name) {
            Ok(attributes) => {
                reply.created(&BELIEVE, &attributes, Generation(0), FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, node: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.look(node) {
            // Otherwise each process that opens shared memory would have it written back and read again.
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = match self.powered() {
            Ok(state) => state,
            Err(error) => return reply.error(error),
        };
        let Some(file) = state.nodes.get(&node.0) else { return reply.error(Errno::ENOENT) };
        let end = file.content.len().min(offset as usize + size as usize);
        reply.data(&file.content[end.min(offset as usize)..end]);
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.change(node, Change::Write { offset, bytes: data.to_vec() }) {
            Ok(_) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // What `close` means; it makes nothing durable.
        reply.ok();
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.sync(|state| state.nodes.entry(node.0).or_default().sync()));
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.sync(State::sync_names));
    }

    fn access(&self, _: &Request, node: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        answer(reply, self.look(node).map(drop));
    }

    fn fallocate(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        /// `FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE` of `linux/falloc.h`.
        const HOLE: i32 = 1 | 2;
        if mode != HOLE {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answer(reply, self.change(node, Change::Hole { offset, length }).map(drop));
    }
}

/// Whether a directory can be mounted here at all; says what is missing otherwise.
pub fn is_possible() -> bool {
    match CutFs::mount(&Image::default(), 1) {
        Ok(_) => true,
        Err(why) => {
            println!("skipped: {why}");
            false
        }
    }
}
