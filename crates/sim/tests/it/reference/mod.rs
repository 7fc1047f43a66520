//! A page-mapped FTL without time, as short and slow as can be: what the fast one is compared with.
//!
//! Arrays of pages and blocks, and a scan over all blocks wherever one is looked for. Nothing is cached except the
//! number of valid pages of a block, and [`Reference::check`] recounts that. So each rule is in the code as it is
//! written in the source it is from.
//!
//! What is decided here and elsewhere often is not said:
//! - room is made first, then the page is written; until then its old copy is valid, and moved if it is in the victim;
//! - free blocks are used in the order of their erasure, the lowest number first on a new drive;
//! - a block becomes a candidate when its last page is written; a block that is being filled is never a victim;
//! - with two frontiers, a new host block is opened only when `free_threshold` blocks are free, and victims are
//!   collected until they are; with one, a block is opened, and if then fewer are free, one victim is moved into it
//!   before the host continues (Van Houdt 2013).

pub mod victim;

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// How the victim is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Fewest valid pages.
    Greedy {
        /// Among equals.
        ties: Ties,
    },
    /// Sealed first.
    Fifo,
    /// Fewest valid pages among `d` drawn with replacement; of equals, the one drawn first.
    RandomGreedy {
        /// How many are drawn.
        d: u32,
    },
    /// Most `age · (1 - u) / (2 · u)`, `u` being the valid share; of equals, the one sealed first.
    CostBenefit {
        /// Since when a block ages.
        age: Age,
    },
    /// Fewest valid pages among the oldest share of the sealed blocks; of equals, the one sealed first.
    WindowedGreedy {
        /// The share, rounded up to whole blocks.
        share: f64,
    },
    /// Greedy that spares worn blocks, as the SSD add-on of DiskSim does it.
    WearAware(Wear),
    /// Two regions, as SSD-iq's "2r-greedy": moved pages live apart, and victims come from one region at a time.
    TwoRegions,
}

/// Which of several emptiest blocks goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The one that was sealed first.
    OldestSealed,
    /// The one that has had so many valid pages for longest, as in a list for each count.
    FirstAtCount,
    /// The one with the greatest number, as in a scan that continues with `<=`.
    LastIndex,
}

/// Since when a block ages, in pages written by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Since its last page was written (Rosenblum & Ousterhout 1992).
    Sealed,
    /// Since one of its pages was last overwritten, or else it was sealed (Kawaguchi et al. 1995).
    Invalidated,
}

/// Wear levelling of DiskSim's add-on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// P/E cycles that a block lasts.
    pub max_erases: u32,
    /// A block with less than this share of the average remaining life is given the coldest data.
    pub migrate_below: f64,
    /// A block with less than this share of the average remaining life is sometimes skipped.
    pub skip_below: f64,
}

impl Default for Wear {
    fn default() -> Self {
        Self { max_erases: 50, migrate_below: 0.85, skip_below: 0.80 }
    }
}

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Erased.
    Free,
    /// Being filled.
    Open,
    /// Full, or filled up with migrated data; may be a victim.
    Sealed,
}

/// Whose pages a block was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Written by the host.
    Host,
    /// Moved by garbage collection.
    Gc,
}

/// A block.
#[derive(Clone, Debug)]
pub struct Block {
    /// What it is doing.
    pub state: State,
    /// The logical page in each page, if it is valid.
    pub pages: Vec<Option<usize>>,
    /// The next page to be written.
    pub next: usize,
    /// How many pages are valid.
    pub valid: usize,
    /// How often it was erased.
    pub erases: u32,
    /// The stream it was opened for.
    pub stream: Stream,
    /// The class of pages that it was opened for.
    pub class: usize,
    /// The number of the event by which it was sealed.
    pub sealed_at: u64,
    /// The number of the event by which it was sealed or, after that, lost its last page.
    pub changed_at: u64,
    /// The number of the event by which it was last erased.
    pub erased_at: u64,
    /// Host pages written before it was sealed.
    pub sealed_time: u64,
    /// Host pages written before one of its pages was last overwritten, or it was sealed.
    pub invalidated_time: u64,
}

/// A collected block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its number.
    pub block: usize,
    /// Valid pages it had.
    pub valid: usize,
}

/// A drive.
pub struct Reference {
    /// All blocks.
    pub blocks: Vec<Block>,
    /// Pages the host wrote.
    pub host_pages: u64,
    /// Pages that garbage collection moved.
    pub moved_pages: u64,
    /// Every block that was collected, in order.
    pub victims: Vec<Victim>,
    /// Where each logical page is: block and page.
    map: Vec<Option<(usize, usize)>>,
    /// Erased first, used first.
    free: std::collections::VecDeque<usize>,
    /// The open blocks, class by class.
    host_blocks: Vec<Option<usize>>,
    gc_blocks: Vec<Option<usize>>,
    policy: Policy,
    free_threshold: usize,
    single_frontier: bool,
    /// Counts seals, erasures and lost pages, to order them.
    event: u64,
    random: Pcg64,
}

impl Reference {
    /// An empty drive with a frontier for the host and one for garbage collection.
    pub fn new(
        blocks: usize,
        pages_per_block: usize,
        logical_pages: usize,
        policy: Policy,
        free_threshold: usize,
        seed: u64,
    ) -> Self {
        assert!(free_threshold >= 2, "moving a victim may take a block, and the host's block another");
        assert!(logical_pages < (blocks - free_threshold - 2) * pages_per_block, "no invalid page to collect");
        let block = Block {
            state: State::Free,
            pages: vec![None; pages_per_block],
            next: 0,
            valid: 0,
            erases: 0,
            stream: Stream::Host,
            class: 0,
            sealed_at: 0,
            changed_at: 0,
            erased_at: 0,
            sealed_time: 0,
            invalidated_time: 0,
        };
        Self {
            blocks: vec![block; blocks],
            host_pages: 0,
            moved_pages: 0,
            victims: Vec::new(),
            map: vec![None; logical_pages],
            free: (0..blocks).collect(),
            host_blocks: vec![None],
            gc_blocks: vec![None],
            policy,
            free_threshold,
            single_frontier: false,
            event: 0,
            random: Pcg64::seed_from_u64(seed),
        }
    }

    /// The same with one frontier, for the host and garbage collection.
    pub fn with_single_frontier(mut self) -> Self {
        assert_ne!(self.policy, Policy::TwoRegions, "the regions have a frontier each");
        self.single_frontier = true;
        self
    }

    /// The same with so many classes of pages, each with frontiers of its own; a moved page stays in its class.
    pub fn with_classes(mut self, classes: usize) -> Self {
        assert!(self.free_threshold > classes, "moving a victim may take a block for each class");
        (self.host_blocks, self.gc_blocks) = (vec![None; classes], vec![None; classes]);
        self
    }

    /// Whether the host and garbage collection write to the same block.
    pub fn has_single_frontier(&self) -> bool {
        self.single_frontier
    }

    /// The host writes a page.
    pub fn write(&mut self, logical_page: usize) {
        self.write_of(logical_page, 0);
    }

    /// The host writes a page of a class.
    pub fn write_of(&mut self, logical_page: usize, class: usize) {
        let block = self.host_frontier(class);
        self.host_pages += 1;
        self.append(block, logical_page);
    }

    /// Pages programmed ÷ pages the host wrote, since `host_pages` and `moved_pages` were as given.
    pub fn write_amplification_since(&self, (host_pages, moved_pages): (u64, u64)) -> f64 {
        1.0 + (self.moved_pages - moved_pages) as f64 / (self.host_pages - host_pages) as f64
    }

    /// Valid pages of every sealed block, by the number of the block.
    pub fn valid_counts(&self) -> Vec<usize> {
        self.sealed().map(|block| self.blocks[block].valid).collect()
    }

    /// How often each block was erased.
    pub fn erases(&self) -> Vec<u32> {
        self.blocks.iter().map(|block| block.erases).collect()
    }

    /// How many blocks are erased.
    pub fn free_blocks(&self) -> usize {
        self.free.len()
    }

    /// Where a logical page is: block and page.
    pub fn locate(&self, logical_page: usize) -> Option<(usize, usize)> {
        self.map[logical_page]
    }

    /// Panics if what is kept twice differs.
    pub fn check(&self) {
        for (number, block) in self.blocks.iter().enumerate() {
            assert_eq!(block.valid, block.pages.iter().flatten().count());
            assert_eq!(block.state == State::Free, self.free.contains(&number));
            for (page, logical) in block.pages.iter().enumerate() {
                assert!(logical.is_none_or(|logical| self.map[logical] == Some((number, page))));
            }
        }
        let valid: usize = self.blocks.iter().map(|block| block.valid).sum();
        assert_eq!(valid, self.map.iter().flatten().count());
    }

    fn sealed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.blocks.len()).filter(|&block| self.blocks[block].state == State::Sealed)
    }

    /// The block that the host writes to, with room for a page.
    fn host_frontier(&mut self, class: usize) -> usize {
        loop {
            if let Some(block) = self.host_blocks[class] {
                return block;
            }
            if self.single_frontier {
                self.open(Stream::Host, class);
                if self.free.len() < self.free_threshold {
                    self.collect();
                }
            } else {
                while self.free.len() < self.free_threshold {
                    self.collect();
                }
                self.open(Stream::Host, class);
            }
        }
    }

    /// The block that moved pages are written to, with room for a page.
    fn gc_frontier(&mut self, class: usize) -> usize {
        let stream = if self.single_frontier { Stream::Host } else { Stream::Gc };
        self.frontier(stream, class).unwrap_or_else(|| self.open(stream, class))
    }

    fn frontier(&mut self, stream: Stream, class: usize) -> &mut Option<usize> {
        match stream {
            Stream::Host => &mut self.host_blocks[class],
            Stream::Gc => &mut self.gc_blocks[class],
        }
    }

    fn open(&mut self, stream: Stream, class: usize) -> usize {
        let block = self.free.pop_front().expect("garbage collection keeps blocks free");
        (self.blocks[block].state, self.blocks[block].stream) = (State::Open, stream);
        self.blocks[block].class = class;
        *self.frontier(stream, class) = Some(block);
        block
    }

    /// Writes a logical page to the next page of an open block; its old copy, if any, becomes invalid.
    fn append(&mut self, number: usize, logical_page: usize) {
        if let Some((old, page)) = self.map[logical_page] {
            self.event += 1;
            let old = &mut self.blocks[old];
            old.changed_at = self.event;
            old.pages[page] = None;
            old.valid -= 1;
            old.invalidated_time = self.host_pages;
        }
        let block = &mut self.blocks[number];
        block.pages[block.next] = Some(logical_page);
        self.map[logical_page] = Some((number, block.next));
        block.valid += 1;
        block.next += 1;
        if block.next == block.pages.len() && block.state == State::Open {
            let (stream, class) = (block.stream, block.class);
            *self.frontier(stream, class) = None;
            self.seal(number);
        }
    }

    fn seal(&mut self, number: usize) {
        self.event += 1;
        let block = &mut self.blocks[number];
        block.state = State::Sealed;
        (block.sealed_at, block.changed_at) = (self.event, self.event);
        (block.sealed_time, block.invalidated_time) = (self.host_pages, self.host_pages);
    }

    /// Collects a victim; with two regions, as many as give a block's worth of invalid pages.
    fn collect(&mut self) {
        match self.policy {
            Policy::WearAware(wear) => self.collect_wear_aware(wear),
            Policy::TwoRegions => self.collect_region(),
            policy => {
                let victim = victim::choose(&self.blocks, policy, self.host_pages, &mut self.random);
                self.empty(victim);
            }
        }
    }

    /// SSD-iq, `sim/TwoR.hpp`: picks the region with the emptiest block, and cleans there until a block is gained.
    fn collect_region(&mut self) {
        let region = victim::region(&self.blocks);
        let mut gained = 0;
        while gained < self.blocks[0].pages.len() {
            let victim = victim::emptiest_of(&self.blocks, region);
            gained += self.blocks[victim].pages.len() - self.blocks[victim].valid;
            self.empty(victim);
        }
    }

    /// DiskSim: a worn candidate, once emptied, is filled with the data of the block that was erased longest ago, which
    /// is hardly ever overwritten; the other block goes into use instead.
    fn collect_wear_aware(&mut self, wear: Wear) {
        let victim = victim::wear_aware(&self.blocks, wear, &mut self.random);
        let coldest = victim::coldest(&self.blocks);
        let worn = victim::remaining_life(&self.blocks[victim], wear)
            < wear.migrate_below * victim::average_remaining_life(&self.blocks, wear);
        self.empty(victim);
        if worn && coldest != victim {
            self.free.retain(|&block| block != victim);
            self.fill_with(victim, coldest);
        }
    }

    /// Moves the valid pages of a block into an erased one and erases it; what is left of the other stays unused.
    fn fill_with(&mut self, erased: usize, from: usize) {
        let pages: Vec<usize> = self.blocks[from].pages.iter().flatten().copied().collect();
        for logical_page in pages {
            self.moved_pages += 1;
            self.append(erased, logical_page);
        }
        self.seal(erased);
        self.empty(from);
    }

    /// Moves the valid pages of a sealed block away and erases it.
    fn empty(&mut self, victim: usize) {
        assert_eq!(self.blocks[victim].state, State::Sealed);
        self.victims.push(Victim { block: victim, valid: self.blocks[victim].valid });
        let class = self.blocks[victim].class;
        let pages: Vec<usize> = self.blocks[victim].pages.iter().flatten().copied().collect();
        for logical_page in pages {
            let block = self.gc_frontier(class);
            self.moved_pages += 1;
            self.append(block, logical_page);
        }
        self.erase(victim);
    }

    fn erase(&mut self, number: usize) {
        self.event += 1;
        let block = &mut self.blocks[number];
        assert_eq!(block.valid, 0, "a valid page would be lost");
        (block.state, block.next, block.erased_at) = (State::Free, 0, self.event);
        block.erases += 1;
        self.free.push_back(number);
    }
}
