//! The letters RWBS, with which the kernel says what a request is: `R`, `WS`, `FWFS`, `ZA`.
//!
//! An `F` before the operation is a flush; then comes the operation; then letters that say more: `F` force unit access,
//! `S` synchronous, `A` read-ahead, `M` metadata, `U` atomic. Kernels keep adding letters, so behind a known operation
//! any letter is taken. Operations: `R` read, `W` write, `WZ` write of zeros, `D` discard, `DE` and `E` secure erase,
//! `N` none, and those of zoned drives, of which an append writes data: `ZA` append, `ZR` and `ZRA` reset, `ZO` open,
//! `ZC` close, `ZF` finish. An append is issued at the start of its zone and completes where its data landed. Source:
//! `blk_fill_rwbs` of the kernel.

use flashwise_block::{ByteSize, Nanos, Operation};

use super::fields::{Words, digits, number, quoted, sized};
use super::source::Event;
use crate::record::TraceRecord;

/// Sectors of the kernel.
pub(super) const SECTOR: u64 = 512;

/// What the letters say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rwbs {
    /// A request, with or without a flush before it.
    Request(Kind),
    /// Nothing that moves data; the name is for the count of what was left out.
    Other(&'static str),
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// `None` for a flush alone.
    operation: Option<Operation>,
    is_flush: bool,
    pub(super) fua: bool,
    /// An append to a zone.
    pub(super) is_append: bool,
}

impl Rwbs {
    /// What letters say.
    pub(super) fn of(letters: &[u8]) -> Result<Self, String> {
        if letters.is_empty() || !letters.iter().all(u8::is_ascii_uppercase) {
            return Err(format!("flags are {}; they are letters such as R, WS or FWFS", quoted(letters)));
        }
        let is_flush = letters[0] == b'F';
        let rest = if is_flush { &letters[1..] } else { letters };
        let operation = match rest {
            [b'R', ..] => Operation::Read,
            [b'W', b'Z', ..] => Operation::WriteZeroes,
            [b'W', ..] => Operation::Write,
            [b'D' | b'E', ..] => Operation::Trim,
            [b'Z', b'A', ..] => Operation::Write,
            [b'Z', b'R', b'A', ..] => return Ok(Self::Other("resets of all zones (ZRA)")),
            [b'Z', b'R', ..] => return Ok(Self::Other("zone resets (ZR)")),
            [b'Z', b'O', ..] => return Ok(Self::Other("zone opens (ZO)")),
            [b'Z', b'C', ..] => return Ok(Self::Other("zone closes (ZC)")),
            [b'Z', b'F', ..] => return Ok(Self::Other("zone finishes (ZF)")),
            _ if is_flush => {
                let kind = Kind { operation: None, is_flush, fua: false, is_append: false };
                return Ok(Self::Request(kind));
            }
            [b'N', ..] => return Ok(Self::Other("commands without data (N)")),
            _ => return Ok(Self::Other("requests of unknown operations")),
        };
        // The letters that name the operation are no flags.
        let named = if matches!(rest, [b'W', b'Z', ..] | [b'Z', b'A', ..] | [b'D', b'E', ..]) { 2 } else { 1 };
        let fua = operation == Operation::Write && rest[named..].contains(&b'F');
        let is_append = rest.starts_with(b"ZA");
        Ok(Self::Request(Kind { operation: Some(operation), is_flush, fua, is_append }))
    }
}

impl Kind {
    /// The request, once it is known whether it has bytes: a flush has none.
    pub(super) fn with(self, extent: Option<Extent>) -> Option<(Operation, Extent)> {
        match (self.operation, extent.filter(|extent| extent.length.0 > 0)) {
            (Some(operation), Some(extent)) => Some((operation, extent)),
            _ if self.is_flush => Some((Operation::Flush, Extent { offset: ByteSize(0), length: ByteSize(0) })),
            _ => None,
        }
    }
}

impl Kind {
    /// It was handed to the drive.
    pub(super) fn issue(self, record: TraceRecord) -> Event {
        if self.is_append { Event::Appended(record) } else { Event::Issued(record) }
    }
}

/// A stretch of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: ByteSize,
    pub(super) length: ByteSize,
}

impl Extent {
    /// The request here came back.
    pub(super) fn completion(self, kind: Kind, at: Nanos, device: u32) -> Event {
        let (offset, length) = (self.offset.0, self.length.0);
        match kind.is_append {
            true => Event::Landed { at, device, offset, length },
            false => Event::Completed { at, device, offset },
        }
    }

    /// The driver gave the request here back.
    pub(super) fn requeue(self, kind: Kind, at: Nanos, device: u32) -> Event {
        Event::Requeued { at, device, offset: self.offset.0, append: kind.is_append.then_some(self.length.0) }
    }

    /// `sector + sectors`, where that is what comes next.
    pub(super) fn behind(text: &[u8]) -> Result<Option<Self>, String> {
        let mut words = Words(text);
        let (Some(first), Some(b"+"), Some(count)) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        Self::of(first, count).map(Some)
    }

    /// Of a sector and a number of sectors.
    pub(super) fn of(first: &[u8], count: &[u8]) -> Result<Self, String> {
        let count: u64 = number("number of sectors", count)?;
        // A flush has the sector −1.
        if count == 0 && digits(first).is_some() {
            return Ok(Self { offset: ByteSize(0), length: ByteSize(0) });
        }
        let offset = sized("sector", number("sector", first)?, SECTOR)?;
        Ok(Self { offset, length: sized("number of sectors", count, SECTOR)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(letters: &str) -> String {
        let extent = Some(Extent { offset: ByteSize(0), length: ByteSize(512) });
        match Rwbs::of(letters.as_bytes()) {
            Ok(Rwbs::Request(kind)) => {
                let fua = if kind.fua { " fua" } else { "" };
                format!("{:?}{fua}", kind.with(extent).unwrap().0)
            }
            Ok(Rwbs::Other(what)) => what.to_owned(),
            Err(error) => error,
        }
    }

    #[test]
    fn letters_behind_a_known_operation_never_refuse() {
        let letters = ["R", "RAXQ", "WSU", "WFS", "FWFSM", "WZ", "WZF", "D", "DE", "F", "FF", "ZA", "ZAFS"];
        let expected = [
            "Read",
            "Read",
            "Write",
            "Write fua",
            "Write fua",
            "WriteZeroes",
            "WriteZeroes",
            "Trim",
            "Trim",
            "Flush",
            "Flush",
            "Write",
            "Write fua",
        ];
        assert_eq!(letters.map(told), expected);
        assert_eq!(told("ZR"), "zone resets (ZR)");
        assert_eq!(told("ZRA"), "resets of all zones (ZRA)");
        assert_eq!(["ZO", "ZC", "ZF"].map(told), ["zone opens (ZO)", "zone closes (ZC)", "zone finishes (ZF)"]);
        assert_eq!([told("N"), told("QX")], ["commands without data (N)", "requests of unknown operations"]);
        assert!(told("7").starts_with("flags are '7'") && told("[fio]").starts_with("flags are '[fio]'"));
    }
}
