//! The numbers of the protocol, and its messages as bytes.

use flashwise_block::{BlockError, ByteSize, DeviceInfo, Operation};

/// The server's first bytes: "NBDMAGIC", "IHAVEOPT".
pub(super) const GREETING: [u64; 2] = [0x4e42_444d_4147_4943, 0x4948_4156_454f_5054];
/// Of an option's reply.
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Of a request, of a simple reply.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(super) const REPLY_MAGIC: u32 = 0x6744_6698;
/// Of a chunk of a structured reply.
pub(super) const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags, of both sides: fixed newstyle; no zeros after the reply to EXPORT_NAME.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
pub(super) const NO_ZEROES: u16 = 2;

/// Options.
pub(super) const OPT_EXPORT_NAME: u32 = 1;
pub(super) const OPT_ABORT: u32 = 2;
pub(super) const OPT_LIST: u32 = 3;
pub(super) const OPT_INFO: u32 = 6;
pub(super) const OPT_GO: u32 = 7;
pub(super) const OPT_STRUCTURED_REPLY: u32 = 8;
pub(super) const OPT_LIST_META_CONTEXT: u32 = 9;
pub(super) const OPT_SET_META_CONTEXT: u32 = 10;

/// Replies to options.
pub(super) const REP_ACK: u32 = 1;
pub(super) const REP_SERVER: u32 = 2;
pub(super) const REP_INFO: u32 = 3;
pub(super) const REP_META_CONTEXT: u32 = 4;
pub(super) const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
pub(super) const REP_ERR_INVALID: u32 = 1 << 31 | 3;
pub(super) const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;
pub(super) const REP_ERR_TOO_BIG: u32 = 1 << 31 | 9;

/// Kinds of information in INFO and GO.
pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_NAME: u16 = 1;
pub(super) const INFO_DESCRIPTION: u16 = 2;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

/// The only export; the empty name is the same.
pub(super) const EXPORT: &str = "disk";

/// Transmission flags: has flags, FLUSH, FUA, TRIM, WRITE_ZEROES, several connections are consistent.
pub(super) const TRANSMISSION_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8;
/// Where replies are structured, those to reads are not cut in pieces if a client wants that. They never are.
const SEND_DF: u16 = 1 << 7;

/// The context of BLOCK_STATUS, and the number that chunks name it by.
pub(super) const ALLOCATION: &[u8] = b"base:allocation";
pub(super) const ALLOCATION_ID: u32 = 1;
/// States of a range: nothing is allocated for it; it reads as zeros.
const HOLE: u32 = 1;
const ZERO: u32 = 2;

/// Commands.
const CMD_READ: u16 = 0;
const CMD_WRITE: u16 = 1;
const CMD_DISC: u16 = 2;
const CMD_FLUSH: u16 = 3;
const CMD_TRIM: u16 = 4;
const CMD_WRITE_ZEROES: u16 = 6;
const CMD_BLOCK_STATUS: u16 = 7;
/// The flag of a command that is durable when it completes.
const FLAG_FUA: u16 = 1;
/// BLOCK_STATUS flag: first extent only.
const FLAG_REQ_ONE: u16 = 1 << 3;

/// The only chunk of a reply.
const CHUNK_DONE: u16 = 1;
/// Kinds of chunks.
const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 1 << 15 | 1;

/// Error numbers.
const EPERM: u32 = 1;
pub(super) const EIO: u32 = 5;
pub(super) const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
pub(super) const EOVERFLOW: u32 = 75;

/// Longest read or write, the limit that the protocol suggests, bytes.
pub(super) const MAX_TRANSFER: u32 = 32 << 20;

/// Bytes of a request without its payload, and of a reply without its own.
pub(super) const REQUEST_BYTES: usize = 28;
pub(super) const REPLY_BYTES: usize = 16;

/// A request as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NbdRequest {
    pub(super) cookie: u64,
    pub(super) kind: Kind,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) fua: bool,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Do(Operation),
    /// The allocation of a range, or of its first piece.
    BlockStatus {
        one: bool,
    },
    Disconnect,
    Unknown,
}

impl NbdRequest {
    /// Reads a request; `None` where its first bytes are no request's.
    pub(super) fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        if be32(bytes, 0) != REQUEST_MAGIC {
            return None;
        }
        let (flags, command) = (be16(bytes, 4), be16(bytes, 6));
        let kind = match command {
            CMD_READ => Kind::Do(Operation::Read),
            CMD_WRITE => Kind::Do(Operation::Write),
            CMD_FLUSH => Kind::Do(Operation::Flush),
            CMD_TRIM => Kind::Do(Operation::Trim),
            CMD_WRITE_ZEROES => Kind::Do(Operation::WriteZeroes),
            CMD_BLOCK_STATUS => Kind::BlockStatus { one: flags & FLAG_REQ_ONE != 0 },
            CMD_DISC => Kind::Disconnect,
            _ => Kind::Unknown,
        };
        let fua = flags & FLAG_FUA != 0;
        Some(Self { cookie: be64(bytes, 8), kind, offset: be64(bytes, 16), length: be32(bytes, 24), fua })
    }

    /// Bytes that follow the request.
    pub(super) fn payload_bytes(&self) -> u32 {
        if self.kind == Kind::Do(Operation::Write) { self.length } else { 0 }
    }
}

/// The head of a reply; without an error, the bytes of a read follow.
pub(super) fn reply(cookie: u64, error: u32) -> [u8; REPLY_BYTES] {
    let mut bytes = [0; REPLY_BYTES];
    bytes[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// The head of a structured reply's only chunk, whose data follow.
fn chunk(cookie: u64, kind: u16, length: u32) -> Vec<u8> {
    let mut bytes = CHUNK_MAGIC.to_be_bytes().to_vec();
    bytes.extend(CHUNK_DONE.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The head of a read's reply; the bytes follow.
pub(super) fn data_chunk(cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = chunk(cookie, CHUNK_OFFSET_DATA, length + 8);
    bytes.extend(offset.to_be_bytes());
    bytes
}

/// An error as a structured reply.
pub(super) fn error_chunk(cookie: u64, error: u32) -> Vec<u8> {
    let mut bytes = chunk(cookie, CHUNK_ERROR, 6);
    bytes.extend(error.to_be_bytes());
    bytes.extend(0_u16.to_be_bytes());
    bytes
}

/// The allocation: consecutive ranges, each with whether it is a hole.
pub(super) fn status_chunk(cookie: u64, ranges: &[(u32, bool)]) -> Vec<u8> {
    let mut bytes = chunk(cookie, CHUNK_BLOCK_STATUS, 4 + 8 * ranges.len() as u32);
    bytes.extend(ALLOCATION_ID.to_be_bytes());
    for &(length, is_hole) in ranges {
        bytes.extend(length.to_be_bytes());
        bytes.extend(if is_hole { HOLE | ZERO } else { 0 }.to_be_bytes());
    }
    bytes
}

/// The reply to an option.
pub(super) fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    for number in [option, kind, data.len() as u32] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

/// Content of INFO_BLOCK_SIZE: the smallest, the preferred and the largest number of bytes of a request.
pub(super) fn block_sizes(info: &DeviceInfo) -> [u8; 14] {
    let least = info.logical_block.0 as u32;
    let best = least.max(4096);
    let mut bytes = [0; 14];
    bytes[..2].copy_from_slice(&INFO_BLOCK_SIZE.to_be_bytes());
    bytes[2..6].copy_from_slice(&least.to_be_bytes());
    bytes[6..10].copy_from_slice(&best.to_be_bytes());
    bytes[10..].copy_from_slice(&(MAX_TRANSFER - MAX_TRANSFER % least).to_be_bytes());
    bytes
}

/// Content of INFO_EXPORT: size and flags.
pub(super) fn export(capacity: ByteSize, structured: bool) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&INFO_EXPORT.to_be_bytes());
    bytes[2..10].copy_from_slice(&capacity.0.to_be_bytes());
    let flags = TRANSMISSION_FLAGS | if structured { SEND_DF } else { 0 };
    bytes[10..].copy_from_slice(&flags.to_be_bytes());
    bytes
}

/// The error number of a failure; a write beyond the end finds no space.
pub(super) fn error_number(error: &BlockError, capacity: ByteSize) -> u32 {
    match error {
        BlockError::InvalidRequest { operation, offset, length, .. } => {
            let is_behind = offset.0.checked_add(length.0).is_none_or(|end| end > capacity.0);
            if is_behind && operation.writes() { ENOSPC } else { EINVAL }
        }
        BlockError::ReadOnly | BlockError::Refused(_) => EPERM,
        BlockError::NoSpace => ENOSPC,
        _ => EIO,
    }
}

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// Bytes from `at` on; zeros beyond the end.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        array.copy_from_slice(found);
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        bytes[4..6].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&command.to_be_bytes());
        bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&offset.to_be_bytes());
        bytes[24..].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn requests_are_read_as_the_protocol_numbers_them() {
        let write = NbdRequest::parse(&request(1, 1, 77, 4096, 512)).unwrap();
        assert_eq!(
            write,
            NbdRequest { cookie: 77, kind: Kind::Do(Operation::Write), offset: 4096, length: 512, fua: true }
        );
        assert_eq!(write.payload_bytes(), 512);
        let kinds: Vec<_> = (0..9).map(|n| NbdRequest::parse(&request(0, n, 0, 0, 9)).unwrap()).collect();
        assert!(kinds.iter().filter(|asked| asked.payload_bytes() > 0).count() == 1, "only a write brings bytes");
        use Operation::{Flush, Read, Trim, Write, WriteZeroes};
        let expected = [
            Kind::Do(Read),
            Kind::Do(Write),
            Kind::Disconnect,
            Kind::Do(Flush),
            Kind::Do(Trim),
            Kind::Unknown,
            Kind::Do(WriteZeroes),
            Kind::BlockStatus { one: false },
            Kind::Unknown,
        ];
        assert_eq!(kinds.iter().map(|asked| asked.kind).collect::<Vec<_>>(), expected);
        let first = NbdRequest::parse(&request(1 << 3, 7, 0, 0, 9)).unwrap();
        assert_eq!(first.kind, Kind::BlockStatus { one: true });
        assert_eq!(NbdRequest::parse(&[0; REQUEST_BYTES]), None);
    }

    #[test]
    fn a_write_behind_the_end_finds_no_space_and_a_read_there_makes_no_sense() {
        let (offset, length) = (ByteSize(1 << 20), ByteSize(4096));
        let number = |operation| {
            let error = BlockError::InvalidRequest { operation, offset, length, reason: String::new() };
            error_number(&error, ByteSize(1 << 20))
        };
        assert_eq!([number(Operation::Write), number(Operation::Read)], [28, 22]);
        let lost = BlockError::Uncorrectable { operation: Operation::Read, offset, length };
        assert_eq!([error_number(&lost, length), error_number(&BlockError::ReadOnly, length)], [5, 1]);
    }
}
