//! What `strace` prints of a program's file accesses: the fallback without root, at the level of files.
//!
//! ```text
//!   [pid 17] 1700000000.479703 pwrite64(3</data/a.db>, "..."..., 4096, 8192) = 4096 <0.000012>
//!   17 1700000000.479703 fdatasync(3</data/a.db> <unfinished ...>
//!   17 1700000000.480103 <... fdatasync resumed>) = 0 <0.000400>
//! ```
//!
//! Best recorded with `strace -f -ttt -T -y -o FILE -e trace=%desc`. Read are `pread64`, `pwrite64` and their vectors,
//! `read`, `write` and theirs where the file was seen being opened, `fsync`, `fdatasync`, `sync`, `syncfs`, and
//! `fallocate` that frees or zeroes. **Offsets are those in files.** It does not see the page cache (a read may never
//! reach the drive, a write reaches it later), the file system's own writes, memory maps, and what goes through
//! io_uring: those calls are counted. Times are those of `-ttt`, `-tt`, `-t` or `-r`; without any, request n is told as
//! at n ns. Source: strace(1).

use std::collections::HashMap;

use flashwise_block::{ByteSize, Nanos, Operation};

use super::Units;
use super::detect::Head;
use super::fields::{SECONDS, decimal_time, digits, number, quoted};
use super::source::{LineParser, Names, RecordSource, Sorted, TextSource};
use crate::FileRole;
use crate::input::{Input, lines::Lines};
use crate::record::TraceRecord;

/// Calls that were interrupted, and files that are open, are remembered up to this number.
const MOST: usize = 1 << 16;
/// Times below this many seconds are relative to the line before (`-r`).
const RELATIVE_BELOW: Nanos = Nanos(1_000_000 * 1_000_000_000);

#[derive(Default)]
struct Parser {
    /// Calls that were interrupted, by process: what was printed of them, and when.
    unfinished: HashMap<u32, (Vec<u8>, Nanos)>,
    /// Open files by process and descriptor.
    open: HashMap<(u32, u32), OpenFile>,
    files: Names,
    now: Nanos,
    /// Reads and writes whose offset is not known.
    unplaced: u64,
    io_urings: u64,
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
        .then_some("lines such as pwrite64(3, …) = 4096: system calls; offsets are those in files")
}

pub(super) fn open(input: Input, _: &Units) -> Result<Box<dyn RecordSource>, String> {
    Ok(Box::new(Sorted::new(TextSource::new(Lines::new(input.into_bytes()), Parser::default()))))
}

/// What stands before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    process: Option<u32>,
    at: Option<Nanos>,
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
    fn of(line: &'a [u8]) -> Option<(Before, Self)> {
        let (before, text) = Before::of(line.trim_ascii());
        let call = if text.starts_with(b"+++") || text.starts_with(b"---") || text.starts_with(b"strace: ") {
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

impl Before {
    fn of(line: &[u8]) -> (Self, &[u8]) {
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
            match (digits(word), time_of(word)) {
                (Some(pid), _) if before.process.is_none() && before.at.is_none() => {
                    before.process = u32::try_from(pid).ok()
                }
                (_, Some(at)) if before.at.is_none() => before.at = Some(at),
                _ => break,
            }
            text = text[end..].trim_ascii_start();
        }
        (before, text)
    }
}

/// `1700000000.479703`, `12:34:56.479703` or `12:34:56`.
fn time_of(word: &[u8]) -> Option<Nanos> {
    let parts: Vec<&[u8]> = word.split(|&byte| byte == b':').collect();
    match parts[..] {
        [hours, minutes, seconds] => {
            let whole = digits(hours)?.checked_mul(3600)?.checked_add(digits(minutes)?.checked_mul(60)?)?;
            let seconds = decimal_time("time", seconds, SECONDS).ok()?;
            whole.checked_mul(1_000_000_000)?.checked_add(seconds.0).map(Nanos)
        }
        [seconds] if seconds.contains(&b'.') && seconds[0].is_ascii_digit() => {
            decimal_time("time", seconds, SECONDS).ok()
        }
        _ => None,
    }
}

/// What calls do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    /// The file has another number too; where both are used, each is taken to have a position of its own.
    Dup,
    Seek,
    /// A read or a write; the offset is so many arguments from the end.
    Placed(Operation, usize),
    /// A read or a write where the file's position is.
    Here(Operation),
    Sync,
    Fallocate,
    IoUring,
}

impl Kind {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"open" | b"openat" | b"openat2" | b"creat" => Self::Open,
            b"dup" | b"dup2" | b"dup3" => Self::Dup,
            b"lseek" => Self::Seek,
            b"pread64" | b"pread" | b"preadv" => Self::Placed(Operation::Read, 0),
            b"pwrite64" | b"pwrite" | b"pwritev" => Self::Placed(Operation::Write, 0),
            b"preadv2" => Self::Placed(Operation::Read, 1),
            b"pwritev2" => Self::Placed(Operation::Write, 1),
            b"read" | b"readv" => Self::Here(Operation::Read),
            b"write" | b"writev" => Self::Here(Operation::Write),
            b"fsync" | b"fdatasync" | b"sync" | b"syncfs" => Self::Sync,
            b"fallocate" => Self::Fallocate,
            b"io_uring_enter" => Self::IoUring,
            _ => return None,
        })
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRecord>, String> {
        let (before, call) = Call::of(line).ok_or("it is no system call as strace prints them")?;
        let process = before.process.unwrap_or(0);
        let at = self.time(before.at);
        match call {
            Call::Other => Ok(None),
            Call::Begun { text } => {
                if self.unfinished.len() < MOST {
                    self.unfinished.insert(process, (text.to_vec(), at));
                }
                Ok(None)
            }
            Call::Ended { rest } => {
                // The start may lie before the recording.
                let Some((mut text, at)) = self.unfinished.remove(&process) else { return Ok(None) };
                text.extend_from_slice(rest);
                let open = text.iter().position(|&byte| byte == b'(').unwrap_or(0);
                self.call(&text[..open], &text[open + 1..], before.process, at)
            }
            Call::Whole { name, rest } => self.call(name, rest, before.process, at),
        }
    }

    fn files(&self) -> &[String] {
        self.files.list()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec!["offsets are those in files, before page cache and file system".to_owned()];
        if self.unplaced > 0 {
            remarks.push(format!("{} reads and writes at a position that is not known were left out", self.unplaced));
        }
        if self.io_urings > 0 {
            let calls = self.io_urings;
            remarks.push(format!("{calls} calls of io_uring_enter: what they asked for is not to be seen with strace"));
        }
        if !self.is_timed {
            remarks.push("it has no times; record with -ttt".to_owned());
        }
        remarks
    }
}

impl Parser {
    fn time(&mut self, told: Option<Nanos>) -> Nanos {
        self.is_timed |= told.is_some();
        self.now = match told {
            None => Nanos(self.now.0.saturating_add(1)),
            Some(step) if step < RELATIVE_BELOW && !self.is_clock(step) => Nanos(self.now.0.saturating_add(step.0)),
            Some(at) => at,
        };
        self.now
    }

    /// Times of day are below a million seconds too; they grow from line to line, as steps do not.
    fn is_clock(&self, told: Nanos) -> bool {
        told.0 >= 3600 * 1_000_000_000 && told >= self.now
    }

    fn call(
        &mut self,
        name: &[u8],
        rest: &[u8],
        process: Option<u32>,
        at: Nanos,
    ) -> Result<Option<TraceRecord>, String> {
        let Some(kind) = Kind::of(name) else { return Ok(None) };
        let Some(result) = CallResult::of(rest)? else { return Ok(None) };
        let arguments = Arguments { text: result.arguments };
        let descriptor = arguments.descriptor();
        let owner = (process.unwrap_or(0), descriptor.map_or(u32::MAX, |(number, _)| number));
        let (operation, offset, length) = match kind {
            Kind::IoUring => {
                self.io_urings += 1;
                return Ok(None);
            }
            Kind::Open => {
                self.opened(owner.0, result.value, arguments.text);
                return Ok(None);
            }
            Kind::Dup => {
                self.duplicated(owner, result.value);
                return Ok(None);
            }
            Kind::Seek => {
                self.open.entry(owner).and_modify(|file| file.position = Some(result.value));
                return Ok(None);
            }
            Kind::Sync => (Operation::Flush, 0, 0),
            Kind::Fallocate => match arguments.freed()? {
                Some(extent) => extent,
                None => return Ok(None),
            },
            Kind::Placed(..) | Kind::Here(_) if result.value == 0 => return Ok(None),
            Kind::Placed(operation, nth_last) => {
                (operation, number("offset", arguments.nth_last(nth_last))?, result.value)
            }
            Kind::Here(operation) => match self.advance(owner, result.value) {
                Some(position) => (operation, position, result.value),
                None => return Ok(None),
            },
        };
        let known = self.open.get(&owner).copied().unwrap_or_default();
        let path = descriptor.and_then(|(_, path)| path);
        let file = path.map_or(known.file, |path| self.files.number(path));
        let role = path.map(role_of).or(known.role).unwrap_or(FileRole::Unknown);
        let record = TraceRecord::new(at, operation, ByteSize(offset), ByteSize(length));
        Ok(Some(TraceRecord { latency: result.latency, process, file, role, ..record }))
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
        let position = self.open.get_mut(&owner).and_then(|file| file.position.as_mut());
        let Some(position) = position else {
            self.unplaced += 1;
            return None;
        };
        let here = *position;
        *position = here.saturating_add(bytes);
        Some(here)
    }
}

/// What stands behind the opening parenthesis.
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
