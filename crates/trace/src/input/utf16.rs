//! Text of UTF-16 with a byte order mark, as PowerShell's `>` writes it, as UTF-8.

use std::io::{self, Read};

/// Bytes that are turned at a time.
const STRETCH: usize = 16 << 10;

/// Whether the bytes start with the mark and continue as text of ASCII characters.
pub(super) fn is_text(start: &[u8]) -> bool {
    let Some(is_big_endian) = order(start) else { return false };
    let (units, _) = start[2..].as_chunks::<2>();
    let is_ascii = |unit: &[u8; 2]| {
        let unit = if is_big_endian { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) };
        matches!(unit, 9 | 10 | 13 | 32..=126)
    };
    !units.is_empty() && units.iter().all(is_ascii)
}

fn order(start: &[u8]) -> Option<bool> {
    match start {
        [0xFF, 0xFE, ..] => Some(false),
        [0xFE, 0xFF, ..] => Some(true),
        _ => None,
    }
}

/// Gives UTF-8; what is no character becomes the replacement character.
pub(super) struct Utf8<R> {
    bytes: R,
    is_big_endian: Option<bool>,
    ready: Vec<u8>,
    given: usize,
}

impl<R: Read> Utf8<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { bytes, is_big_endian: None, ready: Vec::new(), given: 0 }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut stretch = Vec::new();
        self.bytes.by_ref().take(STRETCH as u64).read_to_end(&mut stretch)?;
        let mark = if self.is_big_endian.is_none() { 2 } else { 0 };
        let is_big_endian = *self.is_big_endian.get_or_insert(order(&stretch).unwrap_or(false));
        let (units, _) = stretch.get(mark..).unwrap_or_default().as_chunks::<2>();
        let units = units.iter().map(|unit| match is_big_endian {
            true => u16::from_be_bytes(*unit),
            false => u16::from_le_bytes(*unit),
        });
        let text: String = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        (self.ready, self.given) = (text.into_bytes(), 0);
        Ok(())
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.ready.len() {
            self.fill()?;
        }
        let most = buffer.len().min(self.ready.len() - self.given);
        buffer[..most].copy_from_slice(&self.ready[self.given..self.given + most]);
        self.given += most;
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_of_bytes_become_utf_8() {
        let text = "1,R,0,4096,5\r\n".repeat(3000) + "\u{20ac}";
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(order).collect();
            assert!(is_text(&bytes[..512]));
            let mut read = String::new();
            Utf8::new(&bytes[..]).read_to_string(&mut read).unwrap();
            assert_eq!(read, text);
        }
        assert!(!is_text(b"\xFF\xFE\x00\x00") && !is_text(b"\xFF\xFE"));
    }
}
