//! The network block device: an attached drive behind a Unix socket, without root and without a kernel module.
//!
//! ```text
//!   socket ─ bytes ─▶ connection.rs ─ handshake.rs, then requests ─▶ HostRequest ─▶ engine
//!   socket ◀─ bytes ─ connection.rs ◀──────────── replies ────────── HostCompletion ◀─ engine
//! ```
//!
//! Source: "The NBD protocol" (doc/proto.md of the NetworkBlockDevice project), fixed newstyle negotiation, simple
//! replies, and structured ones of one chunk; options EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED_REPLY and the two
//! of META_CONTEXT with `base:allocation`; commands READ, WRITE with FUA, FLUSH, TRIM, WRITE_ZEROES, BLOCK_STATUS,
//! DISC. All other options get NBD_REP_ERR_UNSUP.

mod connection;
mod handshake;
mod protocol;
mod round_trip;

/// The server's first bytes.
pub(crate) const GREETING: &[u8] = b"NBDMAGIC";

pub(crate) use connection::Connection;
pub(crate) use connection::StatusRequest;
pub use round_trip::measure_round_trip;
