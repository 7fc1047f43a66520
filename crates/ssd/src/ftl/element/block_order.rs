//! The order of blocks in which a drive is filled at once: the `n`th page of an element is in the `n`th data page of
//! its blocks.
//!
//! ```text
//!   interleaved    plane 0, row 0 ─▶ plane 1, row 0 ─▶ …        concatenated   plane 0, row 0 ─▶ plane 0, row 1 ─▶ …
//! ```

use super::Shape;
use crate::config::BlockOrder;
use crate::ftl::mapping::FillRule;
use crate::reciprocal::Divisor;

/// Where the pages of a filled drive are.
pub(super) struct BlocksInOrder {
    shape: Shape,
    order: BlockOrder,
    /// Logical pages that are filled.
    pages: u32,
    data_pages: Divisor,
    data_rows: Divisor,
}

impl BlocksInOrder {
    pub(super) fn new(shape: Shape, order: BlockOrder) -> Self {
        let Shape { elements, planes, data_rows, data_pages, .. } = shape;
        Self {
            shape,
            order,
            pages: elements * planes * data_rows * data_pages,
            data_pages: Divisor::new(data_pages),
            data_rows: Divisor::new(data_rows),
        }
    }

    /// Logical pages that are filled.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// The plane of an element's `n`th block, counted over the drive, and its row there.
    pub(super) fn block(&self, element: u32, n: u32) -> (u32, u32) {
        let (plane, row) = match self.order {
            BlockOrder::Interleaved => {
                let (row, plane) = self.shape.by.planes.divide(n);
                (plane, row)
            }
            BlockOrder::Concatenated => self.data_rows.divide(n),
        };
        (element * self.shape.planes + plane, row)
    }
}

impl FillRule for BlocksInOrder {
    fn slot_of(&self, logical_page: u32) -> Option<u32> {
        let Shape { blocks, pages, stride, by, .. } = self.shape;
        let (piece, in_piece) = by.stride.divide(logical_page);
        let (nth_piece, element) = by.elements.divide(piece);
        let (n, offset) = self.data_pages.divide(nth_piece * stride + in_piece);
        let (plane, row) = self.block(element, n);
        (logical_page < self.pages).then(|| (plane * blocks + row) * pages + offset)
    }

    fn page_in(&self, slot: u32) -> Option<u32> {
        let Shape { elements, planes, data_pages, stride, data_rows, by, .. } = self.shape;
        let (block, offset) = by.pages.divide(slot);
        let (plane, row) = self.shape.plane_and_row(block);
        if row >= data_rows || offset >= data_pages {
            return None;
        }
        let (element, plane) = by.planes.divide(plane);
        let n = match self.order {
            BlockOrder::Interleaved => row * planes + plane,
            BlockOrder::Concatenated => plane * data_rows + row,
        };
        let (piece, in_piece) = by.stride.divide(n * data_pages + offset);
        Some((piece * elements + element) * stride + in_piece)
    }

    /// To the end of the piece, or of the block.
    fn run_from(&self, logical_page: u32) -> u32 {
        let Shape { data_pages, stride, by, .. } = self.shape;
        let (piece, in_piece) = by.stride.divide(logical_page);
        let in_block = self.data_pages.divide(by.elements.quotient(piece) * stride + in_piece).1;
        (stride - in_piece).min(data_pages - in_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::element::Divisors;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nth_page_of_an_element_is_in_the_nth_data_page_of_its_blocks(
            (elements, planes, data_rows, spare_rows) in (1_u32..4, 1_u32..4, 1_u32..5, 0_u32..3),
            (data_pages, summary_pages, stride_divides) in (1_u32..7, 0_u32..2, 1_u32..4),
            interleaved: bool,
        ) {
            let of_element = planes * data_rows * data_pages;
            let stride = if of_element.is_multiple_of(stride_divides) { of_element / stride_divides } else { 1 };
            let (blocks, pages) = (data_rows + spare_rows, data_pages + summary_pages);
            let by = Divisors {
                elements: Divisor::new(elements),
                planes: Divisor::new(planes),
                blocks: Divisor::new(blocks),
                pages: Divisor::new(pages),
                stride: Divisor::new(stride),
            };
            let shape = Shape { elements, planes, blocks, pages, data_pages, stride, data_rows, by };
            let order = if interleaved { BlockOrder::Interleaved } else { BlockOrder::Concatenated };
            let rule = BlocksInOrder::new(shape, order);
            let mut page_in = vec![None; (elements * planes * blocks * pages) as usize];
            for (element, n) in (0..elements).flat_map(|element| (0..of_element).map(move |n| (element, n))) {
                let page = (n / stride * elements + element) * stride + n % stride;
                let (nth, offset) = (n / data_pages, n % data_pages);
                let (plane, row) = if interleaved { (nth % planes, nth / planes) } else { (nth / data_rows, nth % data_rows) };
                let slot = ((element * planes + plane) * blocks + row) * pages + offset;
                prop_assert_eq!(rule.slot_of(page), Some(slot));
                let run = rule.run_from(page);
                prop_assert!((1..run).all(|next| rule.slot_of(page + next) == Some(slot + next)), "a run of {}", run);
                page_in[slot as usize] = Some(page);
            }
            prop_assert_eq!(rule.slot_of(rule.pages()), None);
            prop_assert_eq!((0..).zip(&page_in).find(|&(slot, &page)| rule.page_in(slot) != page), None);
        }
    }
}
