//! Page numbers as big-endian words of 4 bytes; else as [`super::u32_le`].

use super::Units;
use super::detect::Head;
use super::source::RecordSource;
use super::u32_le::{are_numbers, words};
use crate::input::Input;

pub(super) fn recognise(head: &Head<'_>) -> Option<&'static str> {
    are_numbers(head, u32::from_be_bytes, u32::from_le_bytes).then_some(
        "words of 4 bytes, all of them small as big-endian numbers and most of them not as little-endian ones",
    )
}

pub(super) fn open(input: Input, units: &Units<'_>) -> Result<Box<dyn RecordSource>, String> {
    Ok(words(input, units, u32::from_be_bytes))
}
