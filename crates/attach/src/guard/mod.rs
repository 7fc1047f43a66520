//! Protection of the machine against hanging because of a mounted drive.
//!
//! A process that waits for a file system's drive cannot be killed, and a `sync` anywhere on the machine waits with it.
//! Two things can keep the drive from ever responding: its process is stopped, or stuck; or it waits itself for memory
//! that the kernel would free by writing to the drive. Against the first there is a [watchdog]; against the second,
//! memory that is available before it is needed ([memory]).

pub(crate) mod memory;
pub(crate) mod watchdog;
