//! Items at indexes that are used again: once it has grown, an item takes no memory.

/// The items, and the indexes that are free.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn with_capacity(items: usize) -> Self {
        Self { items: Vec::with_capacity(items), free: Vec::with_capacity(items) }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Keeps an item; its index.
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            self.items.len() as u32 - 1
        });
        self.items[index as usize] = Some(item);
        index
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.items.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let item = self.items.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(item)
    }

    /// The indexes of all items, ascending.
    pub(crate) fn indexes(&self) -> Vec<u32> {
        let indexes = self.items.iter().zip(0..).filter_map(|(item, index)| item.as_ref().map(|_| index));
        indexes.collect()
    }
}
