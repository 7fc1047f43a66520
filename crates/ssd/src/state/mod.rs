//! The state of a drive at rest: saved, it continues later exactly where it was.
//!
//! ```text
//!   shut_down ─▶ flush, and all that the flash has started is done ─▶ save ─▶ header │ parts of the drive, compressed │ checksum
//!                                                                              ▼
//!   a new drive of the same description ◀── each part becomes what was saved ── restore ─▶ invariants hold, or an error
//! ```
//!
//! Every type that is part of a drive says of each of its fields whether it is saved, follows from the description, or
//! is nothing while the drive is at rest ([`state!`](parts)). A new field does not compile before that is said; a new
//! policy does not before it can be saved. What is saved is carried into a new drive, so that all that the description
//! gives (lengths of tables, times, limits) comes from there and not from the file. Bytes that the drive holds for its
//! host are not part of its state.
//!
//! A state is read by the very layout that wrote it: types and names of fields, in their order, have a fingerprint in
//! the header ([`carrier::Layout`]). `docs/formats/drive-state.md` draws the bytes.
//!
//! # Adding a field to anything that a drive is made of
//!
//! It does not compile before the type's `state!` says whether the field is saved, is nothing at rest, or follows from
//! the description ([`parts`]). The test `saved_state` compares with a drive that was never saved.

mod carrier;
mod error;
mod parts;

pub(crate) use carrier::{AtRest, Carried, Carrier, Layout, State};
pub use error::StateError;
pub use parts::NONE;
pub(crate) use parts::{
    carry_members, carry_sparse, expect_rest, optional_values, parts_of_some_drives, rests, state, state_names,
    state_of_policy,
};
