//! Logical pages: their length, and the pages and parts of pages that a request names.

use flashwise_block::Request;

/// The length of a logical page, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSize {
    shift: u32,
}

impl PageSize {
    /// `bytes` must be a power of two.
    pub(crate) fn new(bytes: u64) -> Self {
        debug_assert!(bytes.is_power_of_two());
        Self { shift: bytes.trailing_zeros() }
    }

    /// The logical page that a byte is on.
    #[inline]
    pub(crate) fn of_byte(self, byte: u64) -> u32 {
        (byte >> self.shift) as u32
    }

    pub(crate) fn bytes(self) -> u64 {
        1 << self.shift
    }
}

/// The bytes of a request, page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSpan {
    pub(crate) logical_page: u32,
    /// First byte inside the logical page.
    pub(crate) from: usize,
    /// First byte behind.
    pub(crate) to: usize,
    /// Where the span starts in the request's buffer.
    pub(crate) in_buffer: usize,
    page: PageSize,
}

impl PageSpan {
    /// Whether the whole logical page is meant.
    pub(crate) fn is_whole(&self) -> bool {
        self.from == 0 && self.to as u64 == self.page.bytes()
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }

    /// The bytes `from..to` of the same page.
    pub(crate) fn part(self, from: usize, to: usize) -> Self {
        Self { from, to, ..self }
    }
}

/// The range of bytes that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    page: PageSize,
}

impl ByteRange {
    pub(crate) fn of(request: &Request, page: PageSize) -> Self {
        let start = request.offset.bytes();
        Self { start, end: start + request.length.bytes(), page }
    }

    /// Whether every logical page touched is covered wholly.
    #[inline]
    pub(crate) fn is_whole_pages(self) -> bool {
        (self.start | self.end) & (self.page.bytes() - 1) == 0
    }

    /// Logical pages touched.
    pub(crate) fn pages(self) -> u32 {
        let shift = self.page.shift;
        (((self.end + self.page.bytes() - 1) >> shift) - (self.start >> shift)) as u32
    }

    /// The `n`th logical page touched.
    pub(crate) fn span(self, n: u32) -> PageSpan {
        let page = (self.start >> self.page.shift) + u64::from(n);
        let page_start = page << self.page.shift;
        let from = self.start.max(page_start);
        let to = self.end.min(page_start + self.page.bytes());
        PageSpan {
            logical_page: page as u32,
            from: (from - page_start) as usize,
            to: (to - page_start) as usize,
            in_buffer: (from - self.start) as usize,
            page: self.page,
        }
    }

    /// All logical pages touched.
    pub(crate) fn spans(self) -> impl Iterator<Item = PageSpan> {
        (0..self.pages()).map(move |n| self.span(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_split_at_logical_pages() {
        let page = PageSize::new(4096);
        let spans: Vec<_> = ByteRange { start: 3_584, end: 8_704, page }.spans().collect();
        let span = |logical_page, from, to, in_buffer| PageSpan { logical_page, from, to, in_buffer, page };
        assert_eq!(spans, [span(0, 3_584, 4_096, 0), span(1, 0, 4_096, 512), span(2, 0, 512, 4_608)]);
        assert!(spans[1].is_whole() && !spans[0].is_whole());
    }
}
