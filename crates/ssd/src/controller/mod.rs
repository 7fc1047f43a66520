//! The controller: what happens between a command's arrival and its completion, part to part.
//!
//! ```text
//!   read    locate every logical page → one flash command for each (die, row) → dispatched run by run → link
//!   write   link → (fill up partial pages) → (write cache) → write buffer → placed by the FTL → completes
//!                                                └─ full superpages are programmed behind the host's back
//!   flush   pads and programs what is open, completes when all of it is on flash
//!   trim    forgets whole logical pages
//! ```
//!
//! The parts of the drive are structs of their own ([`crate::host`], [`crate::cache`], [`crate::collector`],
//! [`crate::ftl`], [`crate::flash`]); here is what hands a request from one to the next, one file for each thing that a
//! drive does. [`requests`] has the life of a request and the loop that runs the events. Reads are in [`mod@read`]; the
//! write cache in [`write_cache`]; the
//! write buffer, writes and trims in [`mod@write`]; flushes and forced writes in [`flush`]; garbage collection in
//! [`collection`], with the host waiting for it in [`hold`], and what an SLC cache adds to it in [`folding`]; bad
//! superblocks in [`mod@retirement`]; media without erase in [`in_place`]; FTLs that hand out
//! [`steps`], of elements in [`element`]; pages that are compressed or shared in [`reduced`]; the look-up of a page map
//! that does not fit memory in [`translate`]; power cuts in [`power`].

mod collection;
mod element;
mod flush;
mod folding;
mod hold;
mod in_place;
mod power;
mod read;
mod reduced;
mod requests;
mod retirement;
mod steps;
mod translate;
mod write;
mod write_cache;
