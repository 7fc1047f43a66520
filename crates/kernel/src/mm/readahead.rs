//! Read-ahead: which pages are read beside those that were asked for.
//!
//! Linux 6.18, `mm/readahead.c` `page_cache_sync_ra`, `page_cache_async_ra`, `page_cache_ra_order`, `get_init_ra_size`,
//! `get_next_ra_size`, `force_page_cache_ra`. The state belongs to the open file (`struct file_ra_state`). A miss at
//! the file's start, behind the previous read or of more than the window opens a window of two or four times the
//! request; a miss elsewhere reads what was asked for, unless the pages before it are cached as a sequential stream
//! would leave them. In each window one folio is marked; reading it starts the next window, twice or four times as
//! large up to `read_ahead_kb`. Folios grow with the windows (by two orders each, within alignment), and a window ends
//! at a multiple of its folios: so a stream of 4 KiB reads is served in windows of 4, 8, 4, 8, 8, 16, 16, 32, 32, …
//! pages.

use crate::mm::xarray::XArray;

/// Larger folios change nothing but where markers are.
const MAX_ORDER: u8 = 6;

/// `struct file_ra_state`, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileReadAhead {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) async_size: u64,
    pub(crate) order: u8,
    /// `ra_pages`: the largest window.
    pub(crate) max_pages: u64,
    /// How many faults missed, less those that hit.
    pub(crate) mmap_miss: u64,
    /// The page that the previous read ended in front of, or in; `None` before the first one.
    pub(crate) previous: Option<u64>,
}

/// Pages that are to be read, as far as they are not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) pages: u64,
    /// Which page gets the marker: the folio that starts there once it is rounded down to the folio's size.
    pub(crate) marker: Option<u64>,
    /// Order of its folios.
    pub(crate) order: u8,
}

impl Window {
    /// Exactly these pages, without a marker.
    pub(crate) fn exact(start: u64, pages: u64) -> Self {
        Self { start, pages, marker: None, order: 0 }
    }
}

/// `get_init_ra_size`
fn initial_size(request: u64, max: u64) -> u64 {
    let size = request.checked_next_power_of_two().unwrap_or(u64::MAX);
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// `get_next_ra_size`
fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        4 * size
    } else if size <= max / 2 {
        2 * size
    } else {
        max
    }
}

impl FileReadAhead {
    pub(crate) fn new(max_pages: u64) -> Self {
        Self { start: 0, size: 0, async_size: 0, order: 0, max_pages, mmap_miss: 0, previous: None }
    }

    /// `ractl_max_pages`: a request that is larger than the window may be read as large as the drive takes requests.
    fn max_for(&self, request: u64, io_pages: u64) -> u64 {
        if request > self.max_pages && io_pages > self.max_pages { request.min(io_pages) } else { self.max_pages }
    }

    /// `page_cache_sync_ra`: `index` is missing, `request` pages from there on are asked for. `random` is
    /// `POSIX_FADV_RANDOM`, `io_pages` the drive's largest request.
    pub(crate) fn on_miss(
        &mut self,
        pages: Option<&XArray>,
        index: u64,
        request: u64,
        io_pages: u64,
        random: bool,
    ) -> Window {
        if self.max_pages == 0 {
            return Window::exact(index, 1);
        }
        if random {
            return Window::exact(index, request.min(io_pages.max(self.max_pages)));
        }
        let max = self.max_for(request, io_pages);
        let follows = self.previous.is_some_and(|previous| index == previous || index == previous + 1);
        if index == 0 || request > max || follows {
            self.start = index;
            self.size = initial_size(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size >> 1 };
            self.order = 0;
            return self.window();
        }
        let miss = pages.map_or(Some(index - 1), |pages| pages.prev_miss(index - 1, max));
        let cached = index - 1 - miss.unwrap_or(0) + u64::from(miss.is_none());
        if cached <= request {
            return Window::exact(index, request);
        }
        let cached = if miss.is_none() { cached * 2 } else { cached };
        self.start = index;
        self.size = (cached + request).min(max);
        self.async_size = 1;
        self.order = 0;
        self.window()
    }

    /// `page_cache_async_ra`: the marked folio, `folio_pages` long, was read at `index`.
    pub(crate) fn on_marker(
        &mut self,
        pages: Option<&XArray>,
        index: u64,
        folio_pages: u64,
        request: u64,
        io_pages: u64,
    ) -> Option<Window> {
        if self.max_pages == 0 {
            return None;
        }
        let max = self.max_for(request, io_pages);
        let expected = (self.start + self.size).saturating_sub(self.async_size) / folio_pages * folio_pages;
        if index == expected {
            self.start += self.size;
            self.size = self.size.max(next_size(self.size, max));
        } else {
            let start = pages.map_or(index + 1, |pages| pages.next_miss(index + 1, max));
            if start - index > max {
                return None;
            }
            self.start = start;
            self.size = next_size(start - index + request, max);
        }
        self.order = self.order.saturating_add(2);
        let align = 1u64 << u64::from(self.order).min(u64::from(max.trailing_zeros()));
        let end = self.start + self.size;
        let aligned = end / align * align;
        if aligned > self.start {
            self.size -= end - aligned;
        }
        self.async_size = self.size;
        Some(self.window())
    }

    /// `do_sync_mmap_readahead`: a fault missed. `None` for the faulting page alone.
    pub(crate) fn on_fault(&mut self, index: u64) -> Option<Window> {
        /// `MMAP_LOTSAMISS`
        const MANY: u64 = 100;
        if self.max_pages == 0 {
            return None;
        }
        self.mmap_miss = (self.mmap_miss + 1).min(10 * MANY);
        if self.mmap_miss > MANY {
            return None;
        }
        self.start = index.saturating_sub(self.max_pages / 2);
        self.size = self.max_pages;
        self.async_size = self.max_pages / 4;
        self.order = 0;
        Some(self.window())
    }

    fn window(&mut self) -> Window {
        let largest = self.size.checked_ilog2().unwrap_or(0) as u8;
        self.order = self.order.min(MAX_ORDER).min(largest);
        // The folio that holds it gets it (`ra_alloc_folio`), which may be smaller than the window's others.
        let marker = self.start + self.size - self.async_size;
        Window { start: self.start, pages: self.size, marker: Some(marker), order: self.order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mm::xarray::Entry;

    /// Reads `pages` pages one after another, `request` at a time, and gives the windows.
    fn stream(pages: u64, request: u64) -> Vec<u64> {
        let mut state = FileReadAhead::new(32);
        let mut cached = XArray::default();
        let mut markers = Vec::new();
        let mut windows = Vec::new();
        for first in (0..pages).step_by(request as usize) {
            for index in first..first + request {
                let window = if cached.folio(index).is_none() {
                    Some(state.on_miss(Some(&cached), index, first + request - index, 320, false))
                } else if let Some(at) = markers.iter().position(|&(marker, _)| marker == index) {
                    let (_, order): (u64, u8) = markers.swap_remove(at);
                    state.on_marker(Some(&cached), index, 1 << order, first + request - index, 320)
                } else {
                    None
                };
                if let Some(window) = window {
                    (window.start..window.start + window.pages).for_each(|page| cached.set(page, Entry::Folio(0)));
                    markers.extend(window.marker.map(|marker| (marker >> window.order << window.order, window.order)));
                    windows.push(window.pages);
                }
            }
            state.previous = Some(first + request);
        }
        windows
    }

    #[test]
    fn a_stream_of_single_pages_ramps_up_to_the_whole_window() {
        assert_eq!(stream(256, 1)[..10], [4, 8, 4, 8, 8, 16, 16, 32, 32, 32]);
    }

    #[test]
    fn a_stream_of_sixteen_pages_starts_with_the_whole_window() {
        assert_eq!(stream(256, 16)[..4], [32, 32, 32, 32]);
    }

    /// A window that begins within a larger folio's place has its marker in the small folio that it begins with.
    #[test]
    fn the_marker_of_a_window_is_in_it_wherever_it_begins() {
        for start in 100..120 {
            let mut state = FileReadAhead::new(32);
            state.previous = Some(start - 1);
            let first = state.on_miss(None, start, 1, 320, false);
            let next = state.on_marker(None, first.marker.unwrap(), 1, 1, 320).unwrap();
            assert_eq!((first.start, next.marker), (start, Some(next.start)), "{next:?}");
        }
    }

    #[test]
    fn a_random_read_reads_what_was_asked_for() {
        let mut state = FileReadAhead::new(32);
        state.previous = Some(5);
        assert_eq!(state.on_miss(None, 100, 4, 320, false), Window::exact(100, 4));
        assert_eq!(state.on_miss(None, 7000, 1, 320, false), Window::exact(7000, 1));
    }

    #[test]
    fn a_request_larger_than_the_window_is_read_whole() {
        let mut state = FileReadAhead::new(32);
        state.previous = Some(5);
        let window = state.on_miss(None, 1000, 256, 320, false);
        assert_eq!((window.start, window.pages), (1000, 256));
    }

    #[test]
    fn a_fault_reads_around_itself_until_too_many_missed() {
        let mut state = FileReadAhead::new(32);
        let window = state.on_fault(1000).unwrap();
        assert_eq!((window.start, window.pages, window.marker), (984, 32, Some(1008)));
        state.mmap_miss = 100;
        assert_eq!(state.on_fault(1000), None);
    }

    #[test]
    fn without_read_ahead_a_page_is_read_alone() {
        let mut state = FileReadAhead::new(0);
        assert_eq!(state.on_miss(None, 0, 16, 320, false), Window::exact(0, 1));
        assert_eq!(state.on_fault(9), None);
    }
}
