//! Memory management: one file a mechanism, named as in Linux's `mm/`.

pub(crate) mod fadvise;
pub(crate) mod filemap;
pub(crate) mod memory;
pub(crate) mod page_writeback;
pub(crate) mod readahead;
pub(crate) mod vmscan;
pub(crate) mod xarray;
