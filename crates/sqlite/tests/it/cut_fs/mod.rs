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
//! | a name that comes or goes, of a file or a directory | with the next `fsync` of the directory that it is in |
//! | a rename | with the next `fsync` of either directory, as a whole: before, one name of the two is found |
//!
//! Each of these requests counts. The one that was chosen, and everything after it, fails with `EIO`: the power is
//! gone. Of what was not durable, that last request included, chance then decides what survives: each write whole, not
//! at all, or torn at sectors of 512 bytes; a write that is lost may leave a longer file, with zeros; each truncation
//! and hole or not; of each name the first few changes. Nothing follows from one surviving to another: a name may
//! survive whose file lost its content. What is not in the file reads as zeros: no file system shows what another file
//! left there. What no directory leads to is gone.
//!
//! Shared memory (`-shm`) is the processes' own: it counts for nothing, and is there afterwards or not.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow, WriteFlags,
};

pub mod layouts;

/// The kernel may believe what it was told: nobody changes anything but through it.
const BELIEVE: Duration = Duration::from_secs(3600);
const SECTOR: u64 = 512;

/// A linear congruential generator, of its own: other crates' tests take this file without what is beside it.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// What is on the medium while nothing is mounted: files and directories by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    pub directories: BTreeSet<PathBuf>,
}

impl Image {
    /// Writes its files into a directory.
    pub fn unpack(&self, directory: &Path) {
        // A directory comes before what is in it.
        for path in &self.directories {
            fs::create_dir(directory.join(path)).unwrap();
        }
        for (path, content) in &self.files {
            fs::write(directory.join(path), content).unwrap();
        }
    }

    /// Takes over the files of a directory.
    pub fn pack(directory: &Path) -> Self {
        let mut image = Self::default();
        image.add(directory, Path::new(""));
        image
    }

    fn add(&mut self, directory: &Path, under: &Path) {
        for entry in fs::read_dir(directory.join(under)).unwrap().map(|entry| entry.unwrap()) {
            let path = under.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                self.directories.insert(path.clone());
                self.add(directory, &path);
            } else {
                self.files.insert(path.clone(), fs::read(directory.join(&path)).unwrap());
            }
        }
    }
}

/// A change of a file that is not durable yet.
pub enum Change {
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

/// A file or a directory, with a name or without.
#[derive(Default)]
struct Node {
    is_directory: bool,
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

/// A directory, and a name in it.
pub type Name = (u64, OsString);
/// What names mean afterwards; more than one of a rename.
type NameChange = Vec<(Name, Option<u64>)>;

fn change_names(names: &mut BTreeMap<Name, u64>, change: &NameChange) {
    for (name, node) in change {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

/// What is written, and what is durable.
#[derive(Default)]
pub struct State {
    nodes: BTreeMap<u64, Node>,
    names: BTreeMap<Name, u64>,
    durable_names: BTreeMap<Name, u64>,
    /// What became of names and is not durable, in order.
    name_changes: Vec<NameChange>,
    requests: u64,
    /// Requests for a hole.
    holes: u64,
    /// Number of the request at which the power goes.
    cut_at: Option<u64>,
    is_off: bool,
}

impl State {
    pub fn of(image: &Image) -> Self {
        let mut state = Self::default();
        state.nodes.insert(ROOT.0, Node { is_directory: true, ..Node::default() });
        let mut known = BTreeMap::from([(PathBuf::new(), ROOT.0)]);
        let directories = image.directories.iter().map(|path| (path, None));
        let files = image.files.iter().map(|(path, content)| (path, Some(content)));
        for (path, content) in directories.chain(files) {
            let name = path.file_name().unwrap();
            let mut node =
                Node { is_directory: content.is_none(), is_volatile: is_shared_memory(name), ..Node::default() };
            if let Some(content) = content {
                (node.content, node.durable) = (content.clone(), content.clone());
            }
            let number = state.add(node);
            state.names.insert((known[path.parent().unwrap()], name.to_owned()), number);
            known.insert(path.clone(), number);
        }
        state.durable_names = state.names.clone();
        state
    }

    fn add(&mut self, node: Node) -> u64 {
        let number = self.nodes.keys().next_back().map_or(ROOT.0, |last| last + 1);
        self.nodes.insert(number, node);
        number
    }

    /// Counts a request that changes the medium; `true` where the power goes with it.
    fn counts(&mut self) -> bool {
        self.requests += 1;
        self.is_off |= Some(self.requests) == self.cut_at;
        self.is_off
    }

    fn change_names(&mut self, change: NameChange) {
        change_names(&mut self.names, &change);
        self.name_changes.push(change);
    }

    /// What a name means.
    pub fn find(&self, name: &Name) -> Option<u64> {
        self.names.get(name).copied()
    }

    /// A new, empty file or directory.
    pub fn create(&mut self, name: Name, is_directory: bool) -> u64 {
        let is_volatile = is_shared_memory(&name.1);
        let number = self.add(Node { is_directory, is_volatile, ..Node::default() });
        self.change_names(vec![(name, Some(number))]);
        number
    }

    pub fn remove(&mut self, name: Name) {
        self.change_names(vec![(name, None)]);
    }

    /// In place of what had the new name.
    pub fn rename(&mut self, from: Name, to: Name, node: u64) {
        self.change_names(vec![(from, None), (to, Some(node))]);
    }

    pub fn change(&mut self, node: u64, change: Change) {
        if let Some(file) = self.nodes.get_mut(&node) {
            file.change(change);
        }
    }

    pub fn sync(&mut self, node: u64) {
        self.nodes.entry(node).or_default().sync();
    }

    /// Makes the names in a directory durable, and earlier changes of the same names elsewhere: those of a rename.
    pub fn sync_names(&mut self, directory: u64) {
        let mut needed = BTreeSet::new();
        let mut kept = Vec::new();
        let mut durable = Vec::new();
        for change in std::mem::take(&mut self.name_changes).into_iter().rev() {
            if change.iter().any(|(name, _)| name.0 == directory || needed.contains(name)) {
                needed.extend(change.iter().map(|(name, _)| name.clone()));
                durable.push(change);
            } else {
                kept.push(change);
            }
        }
        durable.iter().rev().for_each(|change| change_names(&mut self.durable_names, change));
        self.name_changes = kept.into_iter().rev().collect();
    }

    fn is_empty(&self, directory: u64) -> bool {
        self.entries(directory).next().is_none()
    }

    fn entries(&self, directory: u64) -> impl Iterator<Item = (&OsString, u64)> {
        let names = self.names.range((directory, OsString::new())..);
        names.take_while(move |((parent, _), _)| *parent == directory).map(|((_, name), &node)| (name, node))
    }

    /// What is on the medium after the power went.
    pub fn survivors(mut self, seed: u64) -> Image {
        let random = &mut Random(seed);
        let odds = Odds::draw(random);
        let mut lost = BTreeSet::new();
        for change in std::mem::take(&mut self.name_changes) {
            if change.iter().any(|(name, _)| lost.contains(name)) || !odds.survives(random) {
                lost.extend(change.into_iter().map(|(name, _)| name));
            } else {
                change_names(&mut self.durable_names, &change);
            }
        }
        let odds = [(); 3].map(|()| Odds::draw(random));
        let mut image = Image::default();
        let mut found = vec![(ROOT.0, PathBuf::new())];
        while let Some((directory, path)) = found.pop() {
            let names = self.durable_names.iter().filter(|((parent, _), _)| *parent == directory);
            for ((_, name), number) in names {
                let Some(node) = self.nodes.remove(number) else { continue };
                let path = path.join(name);
                if node.is_directory {
                    image.directories.insert(path.clone());
                    found.push((*number, path));
                } else if !node.is_volatile || random.next().is_multiple_of(2) {
                    image.files.insert(path, node.survives(odds, random));
                }
            }
        }
        image
    }
}

impl Node {
    /// Its content after the power went.
    fn survives(mut self, [writes, sizes, holes]: [Odds; 3], random: &mut Random) -> Vec<u8> {
        if self.is_volatile {
            return self.content;
        }
        for change in self.changes {
            match &change {
                Change::Write { offset, bytes } => {
                    survivors_of_write(*offset, bytes, writes, &mut self.durable, random);
                }
                Change::Size(_) if sizes.survives(random) => change.apply(&mut self.durable),
                Change::Hole { .. } if holes.survives(random) => change.apply(&mut self.durable),
                Change::Size(_) | Change::Hole { .. } => {}
            }
        }
        self.durable
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
        std::mem::take(&mut *self.shared.state.lock().unwrap()).survivors(seed)
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

pub const ROOT: INodeNo = INodeNo(1);

impl Files {
    /// The state while there is power.
    fn powered(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.0.state.lock().unwrap();
        if state.is_off { Err(Errno::EIO) } else { Ok(state) }
    }

    /// Changes a file's content.
    fn change(&self, node: INodeNo, change: Change) -> Result<FileAttr, Errno> {
        let mut state = self.powered()?;
        let is_volatile = state.nodes.get(&node.0).ok_or(Errno::ENOENT)?.is_volatile;
        state.holes += u64::from(matches!(change, Change::Hole { .. }));
        state.change(node.0, change);
        self.counted(&mut state, !is_volatile)?;
        attributes(&state, node.0)
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
        attributes(&state, node.0)
    }

    fn create(&self, name: Name, is_directory: bool) -> Result<FileAttr, Errno> {
        let mut state = self.powered()?;
        let counts = !is_shared_memory(&name.1);
        let number = state.create(name, is_directory);
        self.counted(&mut state, counts)?;
        attributes(&state, number)
    }

    fn find(&self, name: &Name) -> Result<FileAttr, Errno> {
        let state = self.powered()?;
        attributes(&state, state.find(name).ok_or(Errno::ENOENT)?)
    }

    fn remove(&self, name: Name) -> Result<(), Errno> {
        let mut state = self.powered()?;
        let node = state.find(&name).ok_or(Errno::ENOENT)?;
        if !state.is_empty(node) {
            return Err(Errno::ENOTEMPTY);
        }
        let counts = !is_shared_memory(&name.1);
        state.remove(name);
        self.counted(&mut state, counts)
    }

    fn rename(&self, from: Name, to: Name, flags: RenameFlags) -> Result<(), Errno> {
        let mut state = self.powered()?;
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        let node = state.find(&from).ok_or(Errno::ENOENT)?;
        if let Some(replaced) = state.find(&to) {
            if flags.contains(RenameFlags::RENAME_NOREPLACE) {
                return Err(Errno::EEXIST);
            }
            if !state.is_empty(replaced) {
                return Err(Errno::ENOTEMPTY);
            }
        }
        state.rename(from, to, node);
        self.counted(&mut state, true)
    }
}

fn attributes(state: &State, number: u64) -> Result<FileAttr, Errno> {
    let node = state.nodes.get(&number).ok_or(Errno::ENOENT)?;
    let size = node.content.len() as u64;
    let began = SystemTime::UNIX_EPOCH;
    let (kind, perm, nlink) = match node.is_directory {
        true => (FileType::Directory, 0o700, 2),
        false => (FileType::RegularFile, 0o644, 1),
    };
    Ok(FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(SECTOR),
        atime: began,
        mtime: began,
        ctime: began,
        crtime: began,
        kind,
        perm,
        nlink,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

fn name(directory: INodeNo, name: &OsStr) -> Name {
    (directory.0, name.to_owned())
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, last: &OsStr, reply: ReplyEntry) {
        match self.find(&name(parent, last)) {
            Ok(attributes) => reply.entry(&BELIEVE, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, last: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        match self.create(name(parent, last), true) {
            Ok(attributes) => reply.entry(&BELIEVE, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, last: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(name(parent, last)));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        last: &OsStr,
        new_parent: INodeNo,
        new_last: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        answer(reply, self.rename(name(parent, last), name(new_parent, new_last), flags));
    }

    fn readdir(&self, _: &Request, node: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let state = match self.powered() {
            Ok(state) => state,
            Err(error) => return reply.error(error),
        };
        let kind = |number: u64| match state.nodes.get(&number).is_some_and(|node| node.is_directory) {
            true => FileType::Directory,
            false => FileType::RegularFile,
        };
        let own = [".", ".."].map(|own| (OsString::from(own), node.0));
        let names = state.entries(node.0).map(|(name, number)| (name.clone(), number));
        for (next, (name, number)) in (1..).zip(own.into_iter().chain(names)).skip(offset as usize) {
            if reply.add(INodeNo(number), next, kind(number), name) {
                break;
            }
        }
        reply.ok();
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

    fn unlink(&self, _: &Request, parent: INodeNo, last: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(name(parent, last)));
    }

    fn create(&self, _: &Request, parent: INodeNo, last: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        match self.create(name(parent, last), false) {
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
        answer(reply, self.sync(|state| state.sync(node.0)));
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.sync(|state| state.sync_names(node.0)));
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
