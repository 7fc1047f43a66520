//! Which words of a long row of bits have some: a search passes 4,096 bits of which none is set in a step.
//!
//! A bit for each word, told by whoever keeps the words: exactly, or on the safe side, where the bit of a word that has
//! lost its last one stays until a search comes by.

/// A bit by word.
#[derive(Clone, Debug)]
pub(crate) struct Summary(Vec<u64>);

impl Summary {
    /// Of so many words without a bit.
    pub(crate) fn new(words: usize) -> Self {
        Self(vec![0; words.div_ceil(64)])
    }

    /// No word has a bit any more.
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Whether a word has bits.
    #[inline]
    pub(crate) fn set(&mut self, word: usize, has_bits: bool) {
        let group = &mut self.0[word / 64];
        *group = *group & !(1 << (word % 64)) | u64::from(has_bits) << (word % 64);
    }

    /// A word has a bit more, if it is one.
    #[inline]
    pub(crate) fn add(&mut self, word: usize, is_bit: bool) {
        self.0[word / 64] |= u64::from(is_bit) << (word % 64);
    }

    /// The first word from this one on that has bits.
    #[inline]
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        let mut group = from / 64;
        let mut found = self.0.get(group)? & (u64::MAX << (from % 64));
        while found == 0 {
            group += 1;
            found = *self.0.get(group)?;
        }
        Some(group * 64 + found.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_bits_are_found_from_any_word_on() {
        let mut summary = Summary::new(200);
        assert_eq!(summary.next(0), None);
        for word in [3, 64, 199] {
            summary.add(word, true);
        }
        summary.add(5, false);
        let found = [0, 3, 4, 64, 65, 199, 200, 5000].map(|from| summary.next(from));
        assert_eq!(found, [Some(3), Some(3), Some(64), Some(64), Some(199), Some(199), None, None]);
        summary.set(64, false);
        summary.set(7, true);
        assert_eq!([4, 8].map(|from| summary.next(from)), [Some(7), Some(199)]);
        summary.clear();
        assert_eq!(summary.next(0), None);
    }
}
