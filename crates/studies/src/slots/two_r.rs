//! 2R: greedy in two regions, one of what the host wrote and one of what was moved.
//!
//! It knows nothing of the future: what was moved once is taken for long-lived. A region is worked on until a block's
//! worth of invalid pages has been gained there; then the region with the emptiest block is chosen, among those that
//! have so much to gain, the moved pages' at equal counts. It is the rule of
//! [`GcPolicy::TwoR`](flashwise_ssd::config::GcPolicy::TwoR) of the simulated drive.
//!
//! Source: Haas et al., "SSD-iq: Uncovering the Hidden Side of SSD Performance", PVLDB 18(11), 2025, in its greedy
//! form. The curve that they publish is that of a FIFO form.

use super::frontier::Frontier;
use super::{Algorithm, Drive, Shape};

/// Groups and lists: what the host wrote, and what was moved.
const HOST: usize = 0;
const MOVED: usize = 1;

/// The 2R algorithm.
pub struct TwoR {
    frontier: Frontier,
    region: usize,
    /// Invalid pages gained in the region since it was chosen.
    gained: u32,
    slots_per_block: u32,
}

impl TwoR {
    /// For a drive; it knows nothing of the writes to come.
    pub fn new(shape: Shape) -> Self {
        let slots_per_block = shape.slots_per_block();
        Self {
            frontier: Frontier::new(vec![HOST as u32, MOVED as u32]),
            region: HOST,
            gained: slots_per_block,
            slots_per_block,
        }
    }

    /// The region that is worked on next.
    fn choose_region(&self, drive: &mut Drive) -> usize {
        let [host, moved] = [HOST, MOVED].map(|region| {
            let emptiest = drive.emptiest(region as u32).map_or(self.slots_per_block, |(_, valid)| valid);
            (drive.invalid(region as u32) < u64::from(self.slots_per_block), emptiest)
        });
        if moved <= host { MOVED } else { HOST }
    }

    /// The next block to be emptied; none when no sealed block has an invalid page.
    fn victim(&mut self, drive: &mut Drive) -> Option<u32> {
        if self.gained >= self.slots_per_block || drive.invalid(self.region as u32) == 0 {
            (self.region, self.gained) = (self.choose_region(drive), 0);
        }
        let of = |drive: &mut Drive, region: usize| drive.emptiest(region as u32);
        let gains = |&(_, valid): &(u32, u32)| valid < self.slots_per_block;
        let found =
            of(drive, self.region).filter(gains).or_else(|| of(drive, MOVED + HOST - self.region).filter(gains));
        let (block, valid) = found?;
        self.gained += self.slots_per_block - valid;
        Some(block)
    }
}

impl Algorithm for TwoR {
    fn lists(&self) -> u32 {
        2
    }

    #[inline]
    fn write(&mut self, drive: &mut Drive, _: u32, page: u32) {
        let mut group = HOST;
        let block = loop {
            if let Some(block) = self.frontier.block(drive, group, 1) {
                break block;
            }
            match self.victim(drive) {
                Some(victim) => self.frontier.empty(drive, victim, |_| MOVED, |_, _, _| {}),
                None => group = MOVED,
            }
        };
        drive.write(page, block);
        self.frontier.seal_full(drive, group);
    }
}
