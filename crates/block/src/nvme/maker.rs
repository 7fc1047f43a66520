//! Write counters of makers, of drives without OCP's page.
//!
//! | maker | page | counters |
//! |---|---|---|
//! | Intel, Solidigm | CAh: items of 12 bytes: an id, and 6 bytes from byte 5 on | F4h flash, F5h host, in 32 MiB |
//! | Samsung | CAh | bytes 0 to 15: bytes written to flash |
//! | Micron | D0h | bytes 176 to 183: bytes written to flash |
//!
//! Only the first is recognised by its content. The others come from a device, whose maker the kernel names, or from
//! JSON, which names the field.
//!
//! Source: data sheets of Intel's DC P3700 and P4510 ("Additional SMART Attributes": units of 32 MiB); the fields'
//! places and names in nvme-cli's plugins of the makers; Samsung's "PhysicallyWrittenBytes".

use serde::Serialize;

use super::{ByteCounter, number, short, wide};

/// Intel's unit.
pub(super) const INTEL_UNIT_BYTES: u64 = 32 << 20;
/// Bytes of an item of Intel's page.
const ITEM: usize = 12;
/// Id of the first item: counts of failed programs.
const FIRST_ID: u8 = 0xab;
const FLASH_ID: u8 = 0xf4;
const HOST_ID: u8 = 0xf5;

/// Identification of makers in PCI's configuration space.
const INTEL: u16 = 0x8086;
const SOLIDIGM: u16 = 0x025e;
const SAMSUNG: u16 = 0x144d;
const MICRON: u16 = 0x1344;

/// The counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MakerLog {
    /// Bytes of a unit of both.
    pub unit_bytes: u64,
    /// Units written to flash.
    #[serde(serialize_with = "or_null")]
    pub media_units_written: Option<u128>,
    /// Units written by the host.
    #[serde(serialize_with = "or_null")]
    pub host_units_written: Option<u128>,
}

fn or_null<S: serde::Serializer>(number: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => wide::serialize(number, serializer),
        None => serializer.serialize_none(),
    }
}

impl MakerLog {
    /// Written to flash.
    pub fn media_written(&self) -> Option<ByteCounter> {
        self.media_units_written.map(|units| ByteCounter { units, unit_bytes: self.unit_bytes })
    }

    /// Written by the host.
    pub fn host_written(&self) -> Option<ByteCounter> {
        self.host_units_written.map(|units| ByteCounter { units, unit_bytes: self.unit_bytes })
    }

    /// Reads Intel's page; `None` for another.
    pub(super) fn parse_intel(page: &[u8]) -> Option<Self> {
        if page.first() != Some(&FIRST_ID) {
            return None;
        }
        let items = page.as_chunks::<ITEM>().0;
        let raw = |id: u8| items.iter().find(|item| item[0] == id).and_then(|item| number::<6>(item, 5));
        let found =
            Self { unit_bytes: INTEL_UNIT_BYTES, media_units_written: raw(FLASH_ID), host_units_written: raw(HOST_ID) };
        (found.media_units_written.is_some() || found.host_units_written.is_some()).then_some(found)
    }

    fn of_flash_bytes(bytes: u128) -> Self {
        Self { unit_bytes: 1, media_units_written: Some(bytes), host_units_written: None }
    }

    /// The number of the page of a maker's counters, by the maker's number.
    pub(super) fn page_of(maker: u16) -> Option<u8> {
        match maker {
            INTEL | SOLIDIGM | SAMSUNG => Some(0xca),
            MICRON => Some(0xd0),
            _ => None,
        }
    }

    /// Reads the page of a maker.
    pub(super) fn parse_of(maker: u16, page: &[u8]) -> Option<Self> {
        match maker {
            INTEL | SOLIDIGM => Self::parse_intel(page),
            SAMSUNG => number::<16>(page, 0).map(Self::of_flash_bytes),
            MICRON => short::<8>(page, 176).map(|bytes| Self::of_flash_bytes(bytes.into())),
            _ => None,
        }
    }
}
