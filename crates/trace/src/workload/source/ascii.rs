//! MQSim's and DiskSim's text formats: five numbers a line.
//!
//! MQSim (`ASCII_Trace_Definition.h`): `time_ns device first_sector sectors op`, 0 a write, 1 a read. DiskSim
//! (`iotrace_ascii_get_ioreq_event`, `%lf %d %d %d %x`): `time_ms device first_sector sectors flags`, bit 0 set a read.
//! Both are separated by any white space; empty lines are skipped.

use std::io::BufRead;

use flashwise_block::Operation;

use super::replayed::Recorded;
use super::trace_file::TraceText;

/// Reads one of the two formats.
#[derive(Debug)]
pub(super) struct AsciiTrace {
    text: TraceText,
    dialect: Dialect,
    /// Bytes of a sector.
    sector: u64,
    /// The line that was read last.
    line: Vec<u8>,
    number: u64,
}

/// Which of the two.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dialect {
    Mqsim,
    Disksim,
}

impl AsciiTrace {
    pub(super) fn new(text: TraceText, dialect: Dialect, sector: u64) -> Self {
        Self { text, dialect, sector, line: Vec::new(), number: 0 }
    }

    /// Number of the line that was read last.
    pub(super) fn line(&self) -> u64 {
        self.number
    }

    /// The next request, or what is wrong with its line.
    pub(super) fn next(&mut self) -> Result<Option<Recorded>, String> {
        loop {
            self.line.clear();
            self.number += 1;
            if self.text.read_until(b'\n', &mut self.line).map_err(|e| e.to_string())? == 0 {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                return parse(&self.line, self.dialect, self.sector).map(Some);
            }
        }
    }
}

fn parse(line: &[u8], dialect: Dialect, sector: u64) -> Result<Recorded, String> {
    let [time, device, first, count, operation] = fields(line, dialect)?;
    let bytes = |what, field| {
        let sectors: u64 = number(what, field)?;
        sectors.checked_mul(sector).ok_or_else(|| format!("{what} {sectors} is beyond 2^64 bytes"))
    };
    Ok(Recorded {
        at_ns: match dialect {
            Dialect::Mqsim => number("time in ns", time)?,
            Dialect::Disksim => from_millis(time)?,
        },
        device: Some(number("device", device)?),
        operation: match dialect {
            Dialect::Mqsim => mqsim_operation(operation)?,
            Dialect::Disksim => disksim_operation(operation)?,
        },
        offset: bytes("first sector", first)?,
        length: bytes("number of sectors", count)?,
    })
}

fn fields(line: &[u8], dialect: Dialect) -> Result<[&[u8]; 5], String> {
    let mut found = [&line[..0]; 5];
    let mut count = 0;
    for field in line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()) {
        if let Some(place) = found.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    let expected = match dialect {
        Dialect::Mqsim => "time_ns device first_sector sectors op",
        Dialect::Disksim => "time_ms device first_sector sectors flags",
    };
    if count == 5 { Ok(found) } else { Err(format!("it has {count} of five fields: {expected}")) }
}

fn number<T: TryFrom<u64>>(what: &str, field: &[u8]) -> Result<T, String> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let parsed = field.iter().try_fold(0_u64, |number, &byte| number.checked_mul(10)?.checked_add(digit(byte)?));
    parsed.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let bits = 8 * size_of::<T>();
        format!("{what} is {}; it must be a whole number, 0 or above, of at most {bits} bits", shown(field))
    })
}

fn from_millis(field: &[u8]) -> Result<u64, String> {
    let millis = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    let nanos = millis.map(|millis| (millis * 1e6).round()).filter(|nanos| (0.0..2f64.powi(63)).contains(nanos));
    nanos
        .map(|nanos| nanos as u64)
        .ok_or_else(|| format!("time in ms is {}; it must be a number, 0 or above, of at most 292 years", shown(field)))
}

fn mqsim_operation(field: &[u8]) -> Result<Operation, String> {
    match field {
        b"0" => Ok(Operation::Write),
        b"1" => Ok(Operation::Read),
        _ => Err(format!("op is {}; MQSim writes 0 for a write, 1 for a read", shown(field))),
    }
}

fn disksim_operation(field: &[u8]) -> Result<Operation, String> {
    let text = std::str::from_utf8(field).unwrap_or_default();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    match u32::from_str_radix(digits, 16) {
        Ok(flags) if flags & 1 == 1 => Ok(Operation::Read),
        Ok(_) => Ok(Operation::Write),
        Err(_) => Err(format!("flags are {}; they must be a hexadecimal number, bit 0 set for a read", shown(field))),
    }
}

/// A field for a message: printable, and not too long.
fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(&field[..field.len().min(40)]).escape_debug().to_string();
    if field.len() > 40 { format!("'{text}…'") } else { format!("'{text}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, device: u32, operation: Operation, offset: u64, length: u64) -> Recorded {
        Recorded { at_ns, device: Some(device), operation, offset, length }
    }

    #[test]
    fn a_line_of_mqsim_is_nanoseconds_and_one_reads() {
        let read = parse(b"938513000 4 264719034 16 1\n", Dialect::Mqsim, 512).unwrap();
        assert_eq!(read, request(938_513_000, 4, Operation::Read, 264_719_034 * 512, 8192));
        let write = parse(b"  5\t0  8 1 0\r\n", Dialect::Mqsim, 4096).unwrap();
        assert_eq!(write, request(5, 0, Operation::Write, 32_768, 4096));
    }

    #[test]
    fn a_line_of_disksim_is_milliseconds_and_bit_0_reads() {
        let parse = |line: &[u8]| parse(line, Dialect::Disksim, 512).unwrap();
        assert_eq!(parse(b"0.000001 0 8 8 1"), request(1, 0, Operation::Read, 4096, 4096));
        assert_eq!(parse(b"12.5 3 0 1 0"), request(12_500_000, 3, Operation::Write, 0, 512));
        assert_eq!(parse(b"12.5 3 0 1 0x11").operation, Operation::Read);
        assert_eq!(parse(b"12.5 3 0 1 a").operation, Operation::Write);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told() {
        let of = |dialect, line: &[u8]| parse(line, dialect, 512).unwrap_err();
        let mqsim = |line: &[u8]| of(Dialect::Mqsim, line);
        let long = [b"1 0 ".as_slice(), &[b'7'; 60], b" 1 1"].concat();
        let told = [
            mqsim(b"1 2 3 4"),
            mqsim(b"1 2 3 4 1 6"),
            mqsim(b"-1 0 0 8 1"),
            mqsim(b"1.5 0 0 8 1"),
            mqsim(b"1 4294967296 0 8 1"),
            mqsim(b"1 0 18446744073709551615 8 1"),
            mqsim(&long),
            mqsim(b"1 0 \xff\x1b 8 1"),
            mqsim(b"1 0 0 8 2"),
            of(Dialect::Disksim, b"NaN 0 0 8 1"),
            of(Dialect::Disksim, b"1e300 0 0 8 1"),
            of(Dialect::Disksim, b"1.0 0 0 8 read"),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        it has 4 of five fields: time_ns device first_sector sectors op
        it has 6 of five fields: time_ns device first_sector sectors op
        time in ns is '-1'; it must be a whole number, 0 or above, of at most 64 bits
        time in ns is '1.5'; it must be a whole number, 0 or above, of at most 64 bits
        device is '4294967296'; it must be a whole number, 0 or above, of at most 32 bits
        first sector 18446744073709551615 is beyond 2^64 bytes
        first sector is '7777777777777777777777777777777777777777…'; it must be a whole number, 0 or above, of at most 64 bits
        first sector is '�\u{1b}'; it must be a whole number, 0 or above, of at most 64 bits
        op is '2'; MQSim writes 0 for a write, 1 for a read
        time in ms is 'NaN'; it must be a number, 0 or above, of at most 292 years
        time in ms is '1e300'; it must be a number, 0 or above, of at most 292 years
        flags are 'read'; they must be a hexadecimal number, bit 0 set for a read
    "#);
    }
}
