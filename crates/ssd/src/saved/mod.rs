//! A drive at rest, saved as a document and read back: header, parts of the drive, checksum.
//!
//! [`state`](crate::state) says what each type keeps of itself; here stand the order of the drive's parts ([`parts`])
//! and the document around them ([`document`]). `docs/formats/drive-state.md` draws the bytes.

mod document;
mod parts;

pub use crate::state::StateError;
pub use document::SavedDrive;
