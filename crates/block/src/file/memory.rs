//! Payloads for requests that carry none.

use crate::{ByteSize, IoBuffer};

/// Granularity at which a write starts inside the noise: keeps `O_DIRECT` happy on every drive.
const STEP: u64 = 4096;

/// Bytes of the noise beyond the largest write; writes start at `SPREAD / STEP` different places.
const SPREAD: ByteSize = ByteSize::mib(1);

/// How much memory a [`Pool`] keeps at most.
const KEPT: usize = 32 << 20;

/// Random bytes, the same in every run, that writes without a payload share: a drive that compresses gains nothing.
/// Written once and only read from then on.
pub struct Noise(IoBuffer);

impl Noise {
    /// Noise for writes of up to `largest`.
    pub fn new(largest: ByteSize) -> Self {
        let mut buffer = IoBuffer::zeroed((largest + SPREAD).0 as usize);
        for (index, word) in buffer.chunks_mut(8).enumerate() {
            word.copy_from_slice(&splitmix64(index as u64).to_le_bytes()[..word.len()]);
        }
        Self(buffer)
    }

    /// Where a write to `offset` starts: neighbours start at different places, so that a drive that removes duplicates
    /// gains little either.
    pub fn at(&self, offset: u64) -> *const u8 {
        let start = splitmix64(offset) % (SPREAD.0 / STEP) * STEP;
        self.0[start as usize..].as_ptr()
    }
}

/// Sebastiano Vigna's splitmix64, as a hash of `index`.
fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Buffers that reads without one of their own go to. Each read in flight has its own, because file systems that
/// verify checksums read the memory again after the transfer.
#[derive(Default)]
pub struct Pool {
    spare: Vec<IoBuffer>,
    spare_bytes: usize,
}

impl Pool {
    /// A buffer of at least `length` bytes with unspecified content.
    pub fn take(&mut self, length: usize) -> IoBuffer {
        if let Some(index) = self.spare.iter().rposition(|buffer| buffer.len() >= length) {
            let buffer = self.spare.swap_remove(index);
            self.spare_bytes -= buffer.len();
            return buffer;
        }
        let mut buffer = IoBuffer::zeroed(length.next_power_of_two());
        // Touched now, so that no latency contains the page faults.
        buffer.fill(0);
        buffer
    }

    /// Takes a buffer back for the next read.
    pub fn give_back(&mut self, buffer: IoBuffer) {
        if self.spare_bytes + buffer.len() <= KEPT {
            self.spare_bytes += buffer.len();
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_bits_of_a_fair_coin_and_a_largest_write_fits_anywhere() {
        let largest = ByteSize::mib(2);
        let noise = Noise::new(largest);
        let ones: u64 = noise.0.iter().map(|byte| u64::from(byte.count_ones())).sum();
        assert!((ones as f64 / (noise.0.len() as f64 * 8.0) - 0.5).abs() < 0.001, "{ones} ones");
        let first = noise.0.as_ptr() as usize;
        for offset in (0..1000).map(|n| n * 4096) {
            let start = noise.at(offset) as usize - first;
            assert_eq!(start % 4096, 0);
            assert!(start + largest.0 as usize <= noise.0.len());
        }
    }

    #[test]
    fn the_pool_hands_out_large_enough_buffers_again_and_keeps_no_more_than_its_limit() {
        let mut pool = Pool::default();
        let small = pool.take(4096);
        let address = small.as_ptr();
        pool.give_back(small);
        assert!(pool.take(8192).len() >= 8192);
        assert_eq!(pool.take(512).as_ptr(), address);
        (0..20).for_each(|_| pool.give_back(IoBuffer::zeroed(8 << 20)));
        assert!(pool.spare_bytes <= KEPT);
        assert_eq!(pool.spare.len(), 4);
    }
}
