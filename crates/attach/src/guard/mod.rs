//! What keeps a mounted drive from hanging the machine that it is attached to.
//!
//! A file system waits for its drive in a state in which nobody can be killed, and a `sync` anywhere on the machine
//! waits with it. Two things can make the drive answer never: its process is stopped, or stuck; or it waits itself for
//! memory that the kernel would free by writing to the drive. Against the first there is a [watchdog]; against the
//! second, memory that is there before it is needed ([memory]).

pub(crate) mod memory;
pub(crate) mod watchdog;
