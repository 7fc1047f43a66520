//! A text that `blkparse -f FORMAT` printed, read with the same format.
//!
//! A format is literal text with fields in it, each a `%`, a width that says nothing here, and a letter: `%D` device,
//! `%T` seconds and `%t` nanoseconds, `%a` action, `%d` RWBS, `%S` sector, `%n` sectors or `%N` bytes, `%p` process,
//! and others that are passed over. Blanks in the format stand for any white space. It must have `%a`, `%d`, a time,
//! `%S`, and `%n` or `%N`. Source: blkparse(1), *Output format*.

use flashwise_block::{ByteSize, Nanos};

use super::blkparse::{Action, drive_number};
use super::fields::{digits, number, quoted, sized};
use super::rwbs::{Extent, SECTOR};

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Any white space, or none.
    White,
    /// This byte.
    Literal(u8),
    /// A field of this letter.
    Field(u8),
}

/// A format that was understood.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    parts: Vec<Part>,
}

/// What a line gave, by letter.
#[derive(Default)]
struct Fields<'a> {
    device: &'a [u8],
    seconds: Option<&'a [u8]>,
    nanos: Option<&'a [u8]>,
    action: &'a [u8],
    flags: &'a [u8],
    sector: &'a [u8],
    sectors: Option<&'a [u8]>,
    bytes: Option<&'a [u8]>,
    process: Option<&'a [u8]>,
}

/// What a line of such a text is, once its fields are known.
pub(super) struct Event<'a> {
    pub(super) action: Action<'a>,
    pub(super) flags: &'a [u8],
    pub(super) extent: Result<Option<Extent>, String>,
}

impl Layout {
    pub(super) fn of(format: &str) -> Result<Self, String> {
        let (mut parts, mut bytes) = (Vec::new(), format.bytes().peekable());
        while let Some(byte) = bytes.next() {
            match byte {
                // A shell gives the two characters, blkparse makes one of them.
                b'\\' if matches!(bytes.peek(), Some(b'n' | b't' | b'r')) => {
                    bytes.next();
                    parts.push(Part::White);
                }
                byte if byte.is_ascii_whitespace() => parts.push(Part::White),
                b'%' if bytes.next_if_eq(&b'%').is_some() => parts.push(Part::Literal(b'%')),
                b'%' => {
                    while bytes.next_if(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.')).is_some() {}
                    let letter = bytes.next().filter(u8::is_ascii_alphabetic);
                    parts.push(Part::Field(letter.ok_or("a % in it is not followed by a letter")?));
                }
                byte => parts.push(Part::Literal(byte)),
            }
        }
        let has =
            |letters: &[u8]| parts.iter().any(|part| matches!(part, Part::Field(letter) if letters.contains(letter)));
        let needed: [(&[u8], &str); 5] = [
            (b"a", "%a, the action"),
            (b"d", "%d, the flags"),
            (b"Tt", "%T.%9t, the time"),
            (b"S", "%S, the sector"),
            (b"nN", "%n, the number of sectors"),
        ];
        match needed.iter().find(|(letters, _)| !has(letters)) {
            Some((_, what)) => Err(format!("it lacks {what}")),
            None => Ok(Self { parts }),
        }
    }

    fn fields<'a>(&self, line: &'a [u8]) -> Option<Fields<'a>> {
        let (mut fields, mut rest) = (Fields::default(), line);
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::White => rest = rest.trim_ascii_start(),
                Part::Literal(byte) => rest = rest.trim_ascii_start().strip_prefix(&[*byte])?,
                Part::Field(letter) => {
                    rest = rest.trim_ascii_start();
                    let field = &rest[..self.end(index, *letter, rest)];
                    rest = &rest[field.len()..];
                    let field = field.trim_ascii();
                    match letter {
                        b'D' => fields.device = field,
                        b'T' => fields.seconds = Some(field),
                        b't' => fields.nanos = Some(field),
                        b'a' => fields.action = field,
                        b'd' => fields.flags = field,
                        b'S' => fields.sector = field,
                        b'n' => fields.sectors = Some(field),
                        b'N' => fields.bytes = Some(field),
                        b'p' => fields.process = Some(field),
                        _ => {}
                    }
                }
            }
        }
        Some(fields)
    }

    /// Where a field ends: before what follows it in the format. The name of a process may have blanks.
    fn end(&self, index: usize, letter: u8, rest: &[u8]) -> usize {
        let white = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        match self.parts[index + 1..].iter().find(|part| letter != b'C' || **part != Part::White) {
            Some(Part::Literal(byte)) => rest.iter().position(|other| other == byte).unwrap_or(white),
            None if letter == b'C' => rest.len(),
            Some(Part::White | Part::Field(_)) | None => white,
        }
    }

    /// The event of a line.
    pub(super) fn event<'a>(&self, line: &'a [u8]) -> Result<Event<'a>, String> {
        let fields = self.fields(line).ok_or("it does not match the format of blkparse -f")?;
        let device = if fields.device.is_empty() { 0 } else { drive_number(fields.device)? };
        let part = |what: &str, field: Option<&[u8]>| field.map_or(Ok(0), |field| number::<u64>(what, field));
        let (seconds, nanos) = (part("seconds", fields.seconds)?, part("nanoseconds", fields.nanos)?);
        let at = seconds.checked_mul(1_000_000_000).and_then(|time| time.checked_add(nanos));
        let at = Nanos(at.ok_or("its time exceeds 584 years")?);
        let process = part("pid", fields.process)?;
        let process = u32::try_from(process).map_err(|_| format!("pid {process} has more than 32 bits"))?;
        let action = Action { letter: fields.action, device, at, process };
        Ok(Event { action, flags: fields.flags, extent: extent(&fields) })
    }
}

fn extent(fields: &Fields<'_>) -> Result<Option<Extent>, String> {
    match (fields.sectors, fields.bytes) {
        (Some(count), _) => Extent::of(fields.sector, count).map(Some),
        (None, Some(bytes)) => {
            let length: u64 = number("number of bytes", bytes)?;
            // A flush has the sector −1.
            if length == 0 && digits(fields.sector).is_some() {
                return Ok(None);
            }
            let offset = sized("sector", number("sector", fields.sector)?, SECTOR)?;
            Ok(Some(Extent { offset, length: ByteSize(length) }))
        }
        (None, None) => Err(format!("sector {} has no length", quoted(fields.sector))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_by_the_format_that_printed_it() {
        let layout = Layout::of("%T.%9t %D %a %d %S %n %C\\n").unwrap();
        let event = layout.event(b"0.000001000 259,0   D WS 2048 8 two words").unwrap();
        assert_eq!((event.action.at, event.action.device, event.action.letter), (Nanos(1000), 259 << 20, &b"D"[..]));
        assert_eq!(event.flags, b"WS");
        assert_eq!(event.extent, Ok(Some(Extent { offset: ByteSize(2048 * 512), length: ByteSize(4096) })));
        let default = Layout::of("%D %2c %8s %5T.%9t %5p %2a %3d %S + %n [%C]\\n").unwrap();
        let event = default.event(b"  8,16   1        1     1.427376394  5529  Q  WS 274432 + 8 [db writer]").unwrap();
        assert_eq!((event.action.at, event.action.process), (Nanos(1_427_376_394), 5529));
        assert_eq!(event.extent.unwrap().unwrap().offset, ByteSize(274_432 * 512));
    }

    #[test]
    fn a_format_that_lacks_something_is_told() {
        let refusal = |format: &str| Layout::of(format).unwrap_err();
        assert_eq!(refusal("%d %T %S %n"), "it lacks %a, the action");
        assert_eq!(refusal("%a %d %S %n"), "it lacks %T.%9t, the time");
        assert_eq!(refusal("%a %d %T %S"), "it lacks %n, the number of sectors");
        assert_eq!(refusal("%a %"), "a % in it is not followed by a letter");
    }
}
