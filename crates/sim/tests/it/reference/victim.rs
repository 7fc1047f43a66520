//! The rules by which a victim is chosen, each a scan over all blocks.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::{Age, Block, Policy, State, Stream, Ties, Wear};

/// The victim of the policies that look at one block after the other.
pub fn choose(blocks: &[Block], policy: Policy, now: u64, random: &mut Pcg64) -> usize {
    match policy {
        Policy::Greedy { ties: Ties::OldestSealed } => emptiest(blocks, sealed(blocks)),
        Policy::Greedy { ties: Ties::FirstAtCount } => {
            let key = |block: &usize| (blocks[*block].valid, blocks[*block].changed_at);
            sealed(blocks).min_by_key(key).expect("there are sealed blocks")
        }
        Policy::Greedy { ties: Ties::LastIndex } => running_minima(blocks)[0],
        Policy::Fifo => oldest_first(blocks)[0],
        Policy::RandomGreedy { d } => random_greedy(blocks, d, random),
        Policy::CostBenefit { age } => cost_benefit(blocks, age, now),
        Policy::WindowedGreedy { share } => {
            let oldest = oldest_first(blocks);
            let window = (share * oldest.len() as f64).ceil().max(1.0) as usize;
            emptiest(blocks, oldest.into_iter().take(window))
        }
        Policy::WearAware(_) | Policy::TwoRegions => unreachable!("chosen elsewhere"),
    }
}

fn sealed(blocks: &[Block]) -> impl Iterator<Item = usize> + '_ {
    (0..blocks.len()).filter(|&block| blocks[block].state == State::Sealed)
}

/// Sealed blocks, the one sealed first first.
fn oldest_first(blocks: &[Block]) -> Vec<usize> {
    let mut sealed: Vec<usize> = sealed(blocks).collect();
    sealed.sort_by_key(|&block| blocks[block].sealed_at);
    sealed
}

/// The one with the fewest valid pages, the one sealed first among equals.
fn emptiest(blocks: &[Block], candidates: impl Iterator<Item = usize>) -> usize {
    candidates.min_by_key(|&block| (blocks[block].valid, blocks[block].sealed_at)).expect("there are sealed blocks")
}

/// Draws block numbers; those that are not sealed are drawn again.
fn random_greedy(blocks: &[Block], d: u32, random: &mut Pcg64) -> usize {
    let mut draw = || {
        loop {
            let block = random.random_range(0..blocks.len());
            if blocks[block].state == State::Sealed {
                return block;
            }
        }
    };
    let drawn: Vec<usize> = (0..d).map(|_| draw()).collect();
    // Of equal ones, this gives the first.
    drawn.into_iter().min_by_key(|&block| blocks[block].valid).expect("at least one is drawn")
}

/// M. Rosenblum, J. Ousterhout, "The Design and Implementation of a Log-Structured File System", ACM TOCS 10(1), 1992;
/// with the cost of moving, `2 · u`, as in A. Kawaguchi et al., "A Flash-Memory Based File System", USENIX 1995. The
/// scores are compared as fractions of whole numbers, so exactly. An empty block has an infinite score.
fn cost_benefit(blocks: &[Block], age: Age, now: u64) -> usize {
    let score = |block: usize| {
        let block = &blocks[block];
        let since = match age {
            Age::Sealed => block.sealed_time,
            Age::Invalidated => block.invalidated_time,
        };
        let invalid = block.pages.len() - block.valid;
        (u128::from(now - since + 1) * invalid as u128, 2 * block.valid as u128)
    };
    let mut candidates = oldest_first(blocks).into_iter();
    let mut best = candidates.next().expect("there are sealed blocks");
    for block in candidates {
        let ((benefit, cost), (best_benefit, best_cost)) = (score(block), score(best));
        if benefit * best_cost > best_benefit * cost {
            best = block;
        }
    }
    best
}

/// The candidates of DiskSim's scan over all blocks, each not fuller than those before it, the last one first.
fn running_minima(blocks: &[Block]) -> Vec<usize> {
    let mut chain: Vec<usize> = Vec::new();
    for block in sealed(blocks) {
        if chain.last().is_none_or(|&last| blocks[block].valid <= blocks[last].valid) {
            chain.push(block);
        }
    }
    chain.reverse();
    chain
}

/// DiskSim's wear-aware cleaning: walks the candidates, emptiest first. One that is so worn that it shall get cold data
/// is taken; one that is worn less than that but below the other bound is skipped with a probability that rises with
/// its wear; the last one is taken whatever it is. With the bounds as published (0.85 and 0.80) none is ever skipped.
pub fn wear_aware(blocks: &[Block], wear: Wear, random: &mut Pcg64) -> usize {
    let chain = running_minima(blocks);
    let average = average_remaining_life(blocks, wear);
    for &block in &chain[..chain.len() - 1] {
        let life = remaining_life(&blocks[block], wear);
        let skipped = life >= wear.migrate_below * average
            && life < wear.skip_below * average
            && random.random_bool((1.0 - life / (wear.skip_below * average)).clamp(0.0, 1.0));
        if !skipped {
            return block;
        }
    }
    chain[chain.len() - 1]
}

/// P/E cycles that a block has left.
pub fn remaining_life(block: &Block, wear: Wear) -> f64 {
    f64::from(wear.max_erases.saturating_sub(block.erases))
}

/// P/E cycles that a block has left on average.
pub fn average_remaining_life(blocks: &[Block], wear: Wear) -> f64 {
    blocks.iter().map(|block| remaining_life(block, wear)).sum::<f64>() / blocks.len() as f64
}

/// The sealed block that was erased longest ago.
pub fn coldest(blocks: &[Block]) -> usize {
    sealed(blocks).min_by_key(|&block| blocks[block].erased_at).expect("there are sealed blocks")
}

/// SSD-iq's choice of a region: the host's unless it has less than a block of invalid pages to give, or the moved
/// pages' has as much and its emptiest block is as empty.
pub fn region(blocks: &[Block]) -> Stream {
    let in_region = |stream| move |block: &&Block| block.state == State::Sealed && block.stream == stream;
    let invalid =
        |stream| blocks.iter().filter(in_region(stream)).map(|block| block.pages.len() - block.valid).sum::<usize>();
    let least = |stream| blocks.iter().filter(in_region(stream)).map(|block| block.valid).min();
    let worth = blocks[0].pages.len();
    if invalid(Stream::Gc) < worth {
        Stream::Host
    } else if invalid(Stream::Host) < worth || least(Stream::Host) >= least(Stream::Gc) {
        Stream::Gc
    } else {
        Stream::Host
    }
}

/// The emptiest block of a region, the one sealed first among equals.
pub fn emptiest_of(blocks: &[Block], region: Stream) -> usize {
    emptiest(blocks, sealed(blocks).filter(|&block| blocks[block].stream == region))
}
