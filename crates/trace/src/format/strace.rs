//! What `strace` prints of a program's file accesses: the fallback without root, at the level of files.
//!
//! ```text
//!   [pid 17] 1700000000.479703 pwrite64(3</data/a.db>, "..."..., 4096, 8192) = 4096 <0.000012>
//!   17 1700000000.479703 fdatasync(3</data/a.db> <unfinished ...>
//!   17 1700000000.480103 <... fdatasync resumed>) = 0 <0.000400>
//! ```
//!
//! Best recorded with `strace -f -ttt -T -y -o FILE -e trace=%desc`. Read are `pread64`, `pwrite64` and their vectors,
//! `read`, `write` and theirs where the file was seen being opened, `fsync`, `fdatasync`, `sync`, `syncfs`, `fallocate`
//! that frees or zeroes, the requests of `io_submit`, and what one call copies from file to file (`copy_file_range`,
//! `sendfile`, `splice`), which is a read and a write. **Offsets are those in files.** It does not see the page cache
//! (a read may never reach the drive, a write reaches it later), the file system's own writes, and what goes through
//! memory maps or io_uring: `msync`, `mmap` of shared files and the other calls whose bytes nobody tells are counted.
//! Times are those of `-ttt`, `-tt`, `-t` or `-r`; without any, request n is told as at n ns. Source: strace(1), and
//! the manual page of each call.

use std::collections::{HashMap, VecDeque};

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{DayTime, SECONDS, decimal_time, digits, number, quoted};
use super::source::{Chatter, Line, LineParser, Names, RecordSource, Sorted, TextSource};
use crate::FileRole;
use crate::input::Input;
use crate::record::TraceRecord;

/// Calls that were interrupted, and files that are open, are remembered up to this number.
const MOST: usize = 1 << 16;
/// Most bytes of unfinished calls: more than all processes of a machine have.
const MOST_UNFINISHED_BYTES: usize = 64 << 20;
/// Times below this many seconds are relative to the line before (`-r`).
const RELATIVE_BELOW: Nanos = Nanos(1_000_000 * 1_000_000_000);

#[derive(Default)]
struct Parser {
    /// Calls that were interrupted, by process: what was printed of them, and when.
    unfinished: HashMap<u32, (Vec<u8>, Nanos)>,
    unfinished_bytes: usize,
    /// Interrupted calls beyond what is kept.
    lost_calls: u64,
    /// Open files by process and descriptor.
    open: HashMap<(u32, u32), OpenFile>,
    files: Names,
    now: Nanos,
    /// Reads and writes whose offset is not known.
    unplaced: u64,
    /// Calls whose bytes strace does not tell.
    unseen: Chatter,
    /// Requests of the last line that were not given yet.
    further: VecDeque<TraceRecord>,
    day: DayTime,
    is_timed: bool,
}

#[derive(Clone, Copy, Default)]
struct OpenFile {
    file: Option<u32>,
    role: Option<FileRole>,
    /// `None` where it is not known: files opened for appending.
    position: Option<u64>,
}

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    let is_call = |line: &&&[u8]| Call::of(line).is_some_and(|(_, call)| call.is_known());
    head.lines
        .iter()
        .any(|line| is_call(&line))
        .then_some("lines such as pwrite64(3, …) = 4096: system calls; offsets are file offsets")
}

pub(super) fn open(input: Input, _: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::new(TextSource::new(input, Parser::default()))))
}

/// What is before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before<'a> {
    process: Option<u32>,
    /// The word that tells the time.
    at: Option<&'a [u8]>,
}

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call<'a> {
    /// `name(arguments) = result`, from the name on.
    Whole { name: &'a [u8], rest: &'a [u8] },
    /// The same without its end.
    Begun { text: &'a [u8] },
    /// What follows behind `resumed>`.
    Ended { rest: &'a [u8] },
    /// A signal or an exit.
    Other,
}

impl<'a> Call<'a> {
    /// `None` where the line is none of strace.
    fn of(line: &'a [u8]) -> Option<(Before<'a>, Self)> {
        let (before, text) = Before::of(line.trim_ascii());
        let others: [&[u8]; 4] = [b"+++", b"---", b"strace: ", b"<detached ..."];
        let call = if others.iter().any(|other| text.starts_with(other)) {
            Self::Other
        } else if let Some(rest) = text.strip_prefix(b"<... ") {
            let end = memchr::memmem::find(rest, b"resumed>")?;
            Self::Ended { rest: &rest[end + 8..] }
        } else {
            let open = text.iter().position(|&byte| byte == b'(')?;
            let name = &text[..open];
            if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                return None;
            }
            match text.strip_suffix(b"<unfinished ...>") {
                Some(text) => Self::Begun { text },
                None => Self::Whole { name, rest: &text[open + 1..] },
            }
        };
        Some((before, call))
    }

    fn is_known(self) -> bool {
        matches!(self, Self::Whole { name, rest } if Kind::of(name).is_some() && memchr::memmem::find(rest, b" = ").is_some())
    }
}

impl<'a> Before<'a> {
    fn of(line: &'a [u8]) -> (Self, &'a [u8]) {
        let mut before = Self { process: None, at: None };
        let mut text = line;
        if let Some(rest) = text.strip_prefix(b"[pid") {
            let end = rest.iter().position(|&byte| byte == b']').unwrap_or(0);
            before.process = digits(rest[..end].trim_ascii()).and_then(|pid| u32::try_from(pid).ok());
            text = rest.get(end + 1..).unwrap_or_default().trim_ascii_start();
        }
        for _ in 0..2 {
            let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
            let word = &text[..end];
            match digits(word) {
                Some(pid) if before.process.is_none() && before.at.is_none() => {
                    before.process = u32::try_from(pid).ok();
                }
                _ if before.at.is_none() && is_time(word) => before.at = Some(word),
                _ => break,
            }
            text = text[end..].trim_ascii_start();
        }
        (before, text)
    }
}

/// `1700000000.479703`, `12:34:56.479703` or `12:34:56`.
fn is_time(word: &[u8]) -> bool {
    let is_decimal = || word.contains(&b'.') && word[0].is_ascii_digit();
    DayTime::default().of(word).is_some() || is_decimal() && decimal_time("time", word, SECONDS).is_ok()
}

/// What calls do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    /// The file has another number too; where both are used, each is taken to have a position of its own.
    Dup,
    Seek,
    /// The same on machines of 32 bits: the position is what the third argument points to.
    FarSeek,
    /// A read or a write; the offset is so many arguments from the end.
    Placed(Operation, usize),
    /// A read or a write where the file's position is.
    Here(Operation),
    Close,
    Sync,
    Fallocate,
    /// From one file to another; whether the target is the first argument.
    Copy {
        is_target_first: bool,
    },
    /// Requests of Linux's asynchronous I/O.
    Submit,
    /// A memory map.
    Map,
    /// It reads or writes what strace does not tell; the name is for the count.
    Unseen(&'static str),
}

impl Kind {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"open" | b"openat" | b"openat2" | b"creat" => Self::Open,
            b"dup" | b"dup2" | b"dup3" => Self::Dup,
            b"lseek" => Self::Seek,
            b"_llseek" => Self::FarSeek,
            b"close" => Self::Close,
            b"pread64" | b"pread" | b"preadv" => Self::Placed(Operation::Read, 0),
            b"pwrite64" | b"pwrite" | b"pwritev" => Self::Placed(Operation::Write, 0),
            b"preadv2" => Self::Placed(Operation::Read, 1),
            b"pwritev2" => Self::Placed(Operation::Write, 1),
            b"read" | b"readv" => Self::Here(Operation::Read),
            b"write" | b"writev" => Self::Here(Operation::Write),
            b"fsync" | b"fdatasync" | b"sync" | b"syncfs" => Self::Sync,
            b"fallocate" => Self::Fallocate,
            b"copy_file_range" | b"splice" => Self::Copy { is_target_first: false },
            b"sendfile" | b"sendfile64" => Self::Copy { is_target_first: true },
            b"io_submit" => Self::Submit,
            b"mmap" | b"mmap2" => Self::Map,
            b"msync" => Self::Unseen("msync"),
            b"io_uring_enter" => Self::Unseen("io_uring_enter"),
            b"io_uring_enter2" => Self::Unseen("io_uring_enter2"),
            b"readahead" => Self::Unseen("readahead"),
            b"sync_file_range" | b"sync_file_range2" => Self::Unseen("sync_file_range"),
            b"vmsplice" => Self::Unseen("vmsplice"),
            _ => return None,
        })
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Line<TraceRecord>, String> {
        let Some((before, call)) = Call::of(line) else { return Ok(chatter(line)) };
        let process = before.process.unwrap_or(0);
        let at = self.time(before.at)?;
        match call {
            Call::Other => Ok(Line::Silent),
            Call::Begun { text } => {
                self.take_unfinished(process);
                self.keep_unfinished(process, text, at);
                Ok(Line::Silent)
            }
            Call::Ended { rest } => {
                // The start may are before the recording.
                let Some((mut text, at)) = self.take_unfinished(process) else { return Ok(Line::Silent) };
                text.extend_from_slice(rest);
                let open = text.iter().position(|&byte| byte == b'(').unwrap_or(0);
                self.call(&text[..open], &text[open + 1..], before.process, at)
            }
            Call::Whole { name, rest } => self.call(name, rest, before.process, at),
        }
    }

    fn further(&mut self) -> Option<TraceRecord> {
        self.further.pop_front()
    }

    fn files(&self) -> &[String] {
        self.files.list()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec!["offsets are file offsets, before page cache and file system".to_owned()];
        if self.unplaced > 0 {
            remarks.push(format!("{} reads and writes at an unknown file position were left out", self.unplaced));
        }
        remarks
            .extend(self.unseen.listed().map(|calls| format!("strace does not show the data of these calls: {calls}")));
        remarks.extend(self.files.remark());
        if self.lost_calls > 0 {
            remarks.push(format!("{} calls were left out: too many were unfinished at once", self.lost_calls));
        }
        if !self.is_timed {
            remarks.push("it has no times: record with -ttt".to_owned());
        }
        remarks
    }
}

/// What a line is that is no call: strace and the program that it runs may write to one terminal.
fn chatter(line: &[u8]) -> Line<TraceRecord> {
    match line.trim_ascii() {
        [] => Line::Silent,
        // With -k, the functions that led to the call.
        [b'>', b' ', ..] => Line::chatter("frames of call chains"),
        _ => Line::chatter("lines that are not system calls"),
    }
}

/// A call of which everything but its arguments is known.
#[derive(Clone, Copy)]
struct Made {
    process: Option<u32>,
    at: Nanos,
    latency: Option<Nanos>,
}

/// One end of a copy: a descriptor with its path, and where it starts.
#[derive(Clone, Copy)]
struct End<'a> {
    descriptor: Arguments<'a>,
    offset: Option<u64>,
}

impl Parser {
    /// Keeps the start of a call of which something will be known.
    fn keep_unfinished(&mut self, process: u32, text: &[u8], at: Nanos) {
        let name = text.split(|&byte| byte == b'(').next().unwrap_or_default();
        if Kind::of(name).is_none() {
            return;
        }
        if self.unfinished.len() >= MOST || self.unfinished_bytes + text.len() > MOST_UNFINISHED_BYTES {
            self.lost_calls += 1;
            return;
        }
        self.unfinished_bytes += text.len();
        self.unfinished.insert(process, (text.to_vec(), at));
    }

    fn take_unfinished(&mut self, process: u32) -> Option<(Vec<u8>, Nanos)> {
        let taken = self.unfinished.remove(&process)?;
        self.unfinished_bytes -= taken.0.len();
        Some(taken)
    }

    fn time(&mut self, told: Option<&[u8]>) -> Result<Nanos, String> {
        let later = |now: Nanos, step: u64| now.0.checked_add(step).map(Nanos).ok_or("its times exceed 584 years");
        let Some(word) = told else {
            self.now = later(self.now, 1)?;
            return Ok(self.now);
        };
        self.is_timed = true;
        self.now = match self.day.of(word) {
            Some(at) => at,
            None => match decimal_time("time", word, SECONDS)? {
                step if step < RELATIVE_BELOW => later(self.now, step.0)?,
                at => at,
            },
        };
        Ok(self.now)
    }

    fn call(&mut self, name: &[u8], rest: &[u8], process: Option<u32>, at: Nanos) -> Result<Line<TraceRecord>, String> {
        let Some(kind) = Kind::of(name) else { return Ok(Line::Silent) };
        let Some(result) = CallResult::of(rest)? else { return Ok(Line::Silent) };
        let arguments = Arguments { text: result.arguments };
        let owner = self.owner(process, arguments);
        let made = Made { process, at, latency: result.latency };
        let (operation, offset, length) = match kind {
            Kind::Unseen(name) => {
                self.unseen.note(name.into());
                return Ok(Line::Silent);
            }
            Kind::Map => {
                if arguments.maps_a_shared_file() {
                    self.unseen.note("mmap of shared files".into());
                }
                return Ok(Line::Silent);
            }
            Kind::Open => {
                self.opened(owner.0, result.value, arguments.text);
                return Ok(Line::Silent);
            }
            Kind::Close => {
                self.open.remove(&owner);
                return Ok(Line::Silent);
            }
            Kind::Dup => {
                self.duplicated(owner, result.value);
                return Ok(Line::Silent);
            }
            Kind::Seek => {
                self.open.entry(owner).and_modify(|file| file.position = Some(result.value));
                return Ok(Line::Silent);
            }
            Kind::FarSeek => {
                let parts = arguments.parts();
                let position = parts.get(2).and_then(|text| Arguments { text }.pointed()).and_then(digits);
                self.open.entry(owner).and_modify(|file| file.position = position);
                return Ok(Line::Silent);
            }
            Kind::Copy { is_target_first } => return self.copied(arguments, is_target_first, result.value, made),
            Kind::Submit => return self.submitted(arguments, made),
            Kind::Sync => (Operation::Flush, 0, 0),
            Kind::Fallocate => match arguments.freed()? {
                Some(extent) => extent,
                None => return Ok(Line::Silent),
            },
            Kind::Placed(..) | Kind::Here(_) if result.value == 0 => return Ok(Line::Silent),
            Kind::Placed(..) | Kind::Here(_) if arguments.is_stream() => return Ok(Line::chatter(STREAMS)),
            Kind::Placed(operation, nth_last) if arguments.nth_last(nth_last) != b"-1" => {
                (operation, number("offset", arguments.nth_last(nth_last))?, result.value)
            }
            Kind::Placed(operation, _) | Kind::Here(operation) => match self.advance(owner, result.value) {
                Some(position) => (operation, position, result.value),
                None => return Ok(Line::Silent),
            },
        };
        Ok(Line::Data(self.record(arguments, made, operation, offset, length)))
    }

    /// Process and descriptor.
    fn owner(&self, process: Option<u32>, arguments: Arguments<'_>) -> (u32, u32) {
        (process.unwrap_or(0), arguments.descriptor().map_or(u32::MAX, |(number, _)| number))
    }

    fn record(&mut self, of: Arguments<'_>, made: Made, operation: Operation, offset: u64, length: u64) -> TraceRecord {
        let known = self.open.get(&self.owner(made.process, of)).copied().unwrap_or_default();
        let path = of.descriptor().and_then(|(_, path)| path);
        let file = path.map_or(known.file, |path| self.files.number(path));
        let role = path.map(role_of).or(known.role).unwrap_or(FileRole::Unknown);
        let record = TraceRecord::new(made.at, operation, ByteSize(offset), ByteSize(length));
        TraceRecord { latency: made.latency, process: made.process, file, role, ..record }
    }

    /// A copy is a read of one file and a write of another.
    fn copied(
        &mut self,
        arguments: Arguments<'_>,
        is_target_first: bool,
        bytes: u64,
        made: Made,
    ) -> Result<Line<TraceRecord>, String> {
        if bytes == 0 {
            return Ok(Line::Silent);
        }
        let parts = arguments.parts();
        let part = |place: usize| Arguments { text: parts.get(place).copied().unwrap_or_default() };
        let end = |descriptor: usize, offset: Option<usize>| -> Result<End<'_>, String> {
            let offset = offset.and_then(|place| part(place).pointed());
            let offset = offset.map(|offset| number("offset", offset)).transpose()?;
            Ok(End { descriptor: part(descriptor), offset })
        };
        let (source, target) = match is_target_first {
            // sendfile(target, source, offset of the source, count)
            true => (end(1, Some(2))?, end(0, None)?),
            false => (end(0, Some(1))?, end(2, Some(3))?),
        };
        let mut records = VecDeque::new();
        for (end, operation) in [(source, Operation::Read), (target, Operation::Write)] {
            if end.descriptor.is_stream() {
                self.unseen.note("copies from or to sockets and pipes".into());
                continue;
            }
            let owner = self.owner(made.process, end.descriptor);
            let Some(offset) = end.offset.or_else(|| self.advance(owner, bytes)) else { continue };
            records.push_back(self.record(end.descriptor, made, operation, offset, bytes));
        }
        self.further = records;
        Ok(self.further.pop_front().map_or(Line::Silent, Line::Data))
    }

    /// The requests of `io_submit`, which complete later.
    fn submitted(&mut self, arguments: Arguments<'_>, made: Made) -> Result<Line<TraceRecord>, String> {
        let made = Made { latency: None, ..made };
        let mut records = VecDeque::new();
        for request in arguments.structures() {
            let field = |name: &[u8]| {
                let at = memchr::memmem::find(request, name)? + name.len();
                let rest = &request[at..];
                let end = rest.iter().position(|byte| matches!(byte, b',' | b'}')).unwrap_or(rest.len());
                Some(&rest[..end])
            };
            let operation = match field(b"aio_lio_opcode=").unwrap_or_default() {
                b"IOCB_CMD_PREAD" | b"IOCB_CMD_PREADV" => Some(Operation::Read),
                b"IOCB_CMD_PWRITE" | b"IOCB_CMD_PWRITEV" => Some(Operation::Write),
                b"IOCB_CMD_FSYNC" | b"IOCB_CMD_FDSYNC" => Some(Operation::Flush),
                _ => None,
            };
            let descriptor = memchr::memmem::find(request, b"aio_fildes=").map(|at| &request[at + 11..]);
            let number_of = |name: &[u8]| field(name).and_then(digits);
            let extent = match operation {
                Some(Operation::Flush) => Some((0, 0)),
                _ => number_of(b"aio_offset=").zip(number_of(b"aio_nbytes=")),
            };
            match (operation, descriptor, extent) {
                (Some(operation), Some(descriptor), Some((offset, length))) => {
                    let of = Arguments { text: descriptor };
                    records.push_back(self.record(of, made, operation, offset, length));
                }
                _ => self.unseen.note("requests of io_submit".into()),
            }
        }
        if records.is_empty() && arguments.structures().is_empty() {
            self.unseen.note("io_submit".into());
        }
        self.further = records;
        Ok(self.further.pop_front().map_or(Line::Silent, Line::Data))
    }

    fn opened(&mut self, process: u32, descriptor: u64, arguments: &[u8]) {
        let mut parts = arguments.split(|&byte| byte == b'"');
        let (Some(_), Some(path), Some(flags)) = (parts.next(), parts.next(), parts.next()) else { return };
        let position = memchr::memmem::find(flags, b"O_APPEND").is_none().then_some(0);
        let file = OpenFile { file: self.files.number(path), role: Some(role_of(path)), position };
        if let Ok(descriptor) = u32::try_from(descriptor)
            && self.open.len() < MOST
        {
            self.open.insert((process, descriptor), file);
        }
    }

    fn duplicated(&mut self, owner: (u32, u32), number: u64) {
        let file = self.open.get(&owner).copied();
        if let (Some(file), Ok(number)) = (file, u32::try_from(number))
            && self.open.len() < MOST
        {
            self.open.insert((owner.0, number), file);
        }
    }

    /// The position of a file, which moves on.
    fn advance(&mut self, owner: (u32, u32), bytes: u64) -> Option<u64> {
        let position = self.open.get_mut(&owner).map(|file| &mut file.position);
        let Some(position) = position.filter(|position| position.is_some()) else {
            self.unplaced += 1;
            return None;
        };
        let here = (*position)?;
        *position = here.checked_add(bytes);
        Some(here)
    }
}

/// What is behind the opening parenthesis.
struct CallResult<'a> {
    arguments: &'a [u8],
    value: u64,
    latency: Option<Nanos>,
}

impl<'a> CallResult<'a> {
    /// `None` where the call failed or never came back.
    fn of(rest: &'a [u8]) -> Result<Option<Self>, String> {
        let equals = memchr::memmem::rfind(rest, b" = ").ok_or("it has no result, such as = 4096")?;
        let arguments = rest[..equals].trim_ascii_end();
        let arguments = arguments.strip_suffix(b")").unwrap_or(arguments);
        let result = &rest[equals + 3..];
        let latency = result.strip_suffix(b">").and_then(|text| {
            let start = text.iter().rposition(|&byte| byte == b'<')?;
            decimal_time("duration", &text[start + 1..], SECONDS).ok()
        });
        let end = result.iter().position(|byte| matches!(byte, b' ' | b'<')).unwrap_or(result.len());
        let value = &result[..end];
        if value.starts_with(b"-") || value.starts_with(b"?") {
            return Ok(None);
        }
        let hexadecimal =
            || std::str::from_utf8(value.strip_prefix(b"0x")?).ok().and_then(|v| u64::from_str_radix(v, 16).ok());
        let told = || format!("result is {}; it must be a number", quoted(value));
        let value = digits(value).or_else(hexadecimal).ok_or_else(told)?;
        Ok(Some(Self { arguments, value, latency }))
    }
}

/// What reads and writes are called that are of no file.
const STREAMS: &str = "reads and writes of sockets, pipes and terminals";

/// Bytes of the string that a text starts with, with its quotes.
fn end_of_string(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The arguments of a call.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    text: &'a [u8],
}

impl<'a> Arguments<'a> {
    /// The descriptor, and with `-y` its path.
    fn descriptor(self) -> Option<(u32, Option<&'a [u8]>)> {
        let end = self.text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.text.len());
        let number = digits(&self.text[..end]).and_then(|number| u32::try_from(number).ok())?;
        let path = self.text[end..].strip_prefix(b"<").and_then(|rest| {
            let end = memchr::memmem::find(rest, b">, ").or_else(|| rest.iter().rposition(|&byte| byte == b'>'))?;
            Some(&rest[..end])
        });
        Some((number, path))
    }

    /// Whether the descriptor is known to be none of a file: `<pipe:[17]>`, `<TCP:[…]>`, `</dev/pts/1<char 136:1>>`.
    fn is_stream(self) -> bool {
        let path = self.descriptor().and_then(|(_, path)| path);
        path.is_some_and(|path| {
            !path.starts_with(b"/") || path.starts_with(b"/dev/pts/") || path.starts_with(b"/dev/tty")
        })
    }

    /// What stands between the commas that are in no brackets, quotes or paths.
    fn parts(self) -> Vec<&'a [u8]> {
        let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_u32);
        // Looked for once: a long line with many `<` and no `>` behind them would otherwise be read again at each.
        let last_end = self.text.iter().rposition(|&byte| byte == b'>').unwrap_or(0);
        let mut at = 0;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let step = match rest[0] {
                b'"' => end_of_string(rest),
                b'<' if last_end > at && at > start && self.text[at - 1].is_ascii_alphanumeric() => {
                    // A path ends where an argument does.
                    memchr::memmem::find(rest, b">, ").unwrap_or(last_end - at) + 1
                }
                b'[' | b'{' | b'(' => {
                    depth += 1;
                    1
                }
                b']' | b'}' | b')' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                b',' if depth == 0 => {
                    parts.push(self.text[start..at].trim_ascii());
                    start = at + 1;
                    1
                }
                _ => 1,
            };
            at += step;
        }
        parts.push(self.text.get(start..).unwrap_or_default().trim_ascii());
        parts
    }

    /// The number that a pointer points to: `[0]`, `[0] => [4096]`; `None` for `NULL`.
    fn pointed(self) -> Option<&'a [u8]> {
        let inside = self.text.strip_prefix(b"[")?;
        let end = inside.iter().position(|&byte| byte == b']')?;
        Some(inside[..end].trim_ascii())
    }

    /// Structures of a list: `[{…}, {…}]`.
    fn structures(self) -> Vec<&'a [u8]> {
        let list = self.parts().into_iter().find_map(|part| part.strip_prefix(b"[")?.strip_suffix(b"]"));
        let parts = list.map(|text| Arguments { text }.parts()).unwrap_or_default();
        parts.into_iter().filter(|part| part.starts_with(b"{")).collect()
    }

    /// Whether `mmap` maps a file so that what is written reaches it. Nearly every program maps system files, such as
    /// tables of character sets; they hold none of its data.
    fn maps_a_shared_file(self) -> bool {
        let parts = self.parts();
        let [_, _, protection, flags, descriptor, ..] = parts[..] else { return false };
        let has = |text: &[u8], flag: &[u8]| memchr::memmem::find(text, flag).is_some();
        has(flags, b"MAP_SHARED")
            && !has(protection, b"PROT_NONE")
            && Arguments { text: descriptor }.descriptor().is_some_and(|(_, path)| !path.is_some_and(is_of_the_system))
    }

    /// The argument that is `place` before the last.
    fn nth_last(self, place: usize) -> &'a [u8] {
        self.text.rsplit(|&byte| byte == b',').nth(place).unwrap_or_default().trim_ascii()
    }

    /// What `fallocate` frees or zeroes.
    fn freed(self) -> Result<Option<(Operation, u64, u64)>, String> {
        let mode = self.nth_last(2);
        let has = |flag: &[u8]| memchr::memmem::find(mode, flag).is_some();
        let operation = match () {
            () if has(b"PUNCH_HOLE") => Operation::Trim,
            () if has(b"ZERO_RANGE") => Operation::WriteZeroes,
            () => return Ok(None),
        };
        Ok(Some((operation, number("offset", self.nth_last(1))?, number("length", self.nth_last(0))?)))
    }
}

/// Whether a file came with the operating system: below `/usr` are also `/usr/local` and others for a machine's data.
fn is_of_the_system(path: &[u8]) -> bool {
    const FOLDERS: [&[u8]; 5] = [b"/usr/lib/", b"/usr/lib64/", b"/usr/share/", b"/lib/", b"/lib64/"];
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// What a file is to a database, as far as its name tells.
pub(super) fn role_of(path: &[u8]) -> FileRole {
    let has = |part: &[u8]| memchr::memmem::find(path, part).is_some();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    match () {
        () if path.ends_with(b"-journal") => FileRole::Journal,
        () if path.ends_with(b"-wal")
            || has(b"/pg_wal/")
            || file.starts_with(b"ib_logfile")
            || file.starts_with(b"#ib_redo") =>
        {
            FileRole::WriteAheadLog
        }
        () if has(b"/pgsql_tmp/") || file.starts_with(b"etilqs_") || file.starts_with(b"ibtmp") => FileRole::Temporary,
        () if [&b".db"[..], b".sqlite", b".sqlite3", b".ibd"].iter().any(|end| path.ends_with(end))
            || file.starts_with(b"ibdata")
            || has(b"/base/") =>
        {
            FileRole::Database
        }
        () => FileRole::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_calls_are_kept_within_bounds_and_those_beyond_are_counted() {
        let mut parser = Parser::default();
        let long = [&b"write(3, "[..], &vec![b'x'; MOST_UNFINISHED_BYTES / 4]].concat();
        for process in 0..5 {
            parser.keep_unfinished(process, &long, Nanos(0));
        }
        assert_eq!((parser.unfinished.len(), parser.lost_calls), (3, 2));
        parser.keep_unfinished(9, b"futex(0x7f", Nanos(0));
        assert_eq!((parser.unfinished.len(), parser.lost_calls), (3, 2), "nothing will be known of that call");
        assert!(parser.remarks().iter().any(|remark| remark.starts_with("2 calls were left out")));
        // One that has ended gives its space back.
        assert!(parser.take_unfinished(0).is_some() && parser.take_unfinished(0).is_none());
        parser.keep_unfinished(7, &long, Nanos(0));
        assert_eq!((parser.unfinished.len(), parser.lost_calls), (3, 2));
    }

    #[test]
    fn only_maps_of_system_files_hold_no_data() {
        let is_data = |path: &str| {
            let text = format!("NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3<{path}>, 0");
            Arguments { text: text.as_bytes() }.maps_a_shared_file()
        };
        for path in ["/usr/lib/x", "/usr/lib64/x", "/usr/share/locale/x", "/lib/x", "/lib64/x"] {
            assert!(!is_data(path), "{path}");
        }
        for path in ["/usr/local/pgsql/data/x", "/usr/db", "/usr/libexec/x", "/library/x", "/lib32.db", "/home/lib/x"] {
            assert!(is_data(path), "{path}");
        }
    }

    #[test]
    fn a_line_of_many_brackets_takes_a_moment() {
        let parts = |text: &[u8]| Arguments { text }.parts().iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(parts(b"3</a, b>, \"x, y\", 4<c>"), [8, 6, 4]);
        let began = std::time::Instant::now();
        let open = b"a<".repeat(1 << 20);
        for line in [open.clone(), [&b"3<x>, "[..], &open].concat(), [&open[..], b">"].concat()] {
            assert!(parts(&line).len() <= 2);
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
