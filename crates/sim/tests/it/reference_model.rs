//! The reference model against theory, the order of the policies under skew, and its rules on a drive small enough to
//! follow by hand.

use crate::reference;

use flashwise_theory::{Policy as InTheory, Zone};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use reference::{Age, Policy, Reference, State, Stream, Ties, Victim, Wear};

const GREEDY: Policy = Policy::Greedy { ties: Ties::OldestSealed };
const PAGES: usize = 64;

/// So much of the traffic goes to so much of the drive.
#[derive(Clone, Copy, Debug)]
struct Skew {
    traffic: f64,
    size: f64,
}

const UNIFORM: Skew = Skew { traffic: 1.0, size: 1.0 };
const STRONG: Skew = Skew { traffic: 0.9, size: 0.1 };

fn zones(Skew { traffic, size }: Skew) -> [Zone; 2] {
    [Zone { size, traffic }, Zone { size: 1.0 - size, traffic: 1.0 - traffic }]
}

/// The long run of a drive.
struct Run {
    drive: Reference,
    amplification: f64,
    /// Fill of its sealed blocks.
    fill: f64,
}

/// Writes a drive once in order, overwrites it at random, and measures during the second half of that.
fn overwrite(mut drive: Reference, fill: f64, skew: Skew, rounds: usize) -> Run {
    // While the host writes. With two frontiers it took the second free block when garbage collection had ended.
    let (free, open) = if drive.has_single_frontier() { (2.0, 1.0) } else { (1.0, 2.0) };
    let logical = (fill * (drive.blocks.len() * PAGES) as f64) as usize;
    let hot = (skew.size * logical as f64).round() as usize;
    let mut random = Pcg64::seed_from_u64(1);
    (0..logical).for_each(|page| drive.write(page));
    let mut before = (0, 0);
    for round in 0..rounds {
        if round == rounds / 2 {
            before = (drive.host_pages, drive.moved_pages);
        }
        for _ in 0..logical {
            let is_hot = hot == logical || random.random_bool(skew.traffic);
            drive.write(if is_hot { random.random_range(0..hot) } else { random.random_range(hot..logical) });
        }
    }
    drive.check();
    let fill = flashwise_theory::fill_of_sealed(logical as u64, drive.blocks.len() as u64, PAGES as u64, free, open);
    Run { amplification: drive.write_amplification_since(before), drive, fill }
}

fn drive(blocks: usize, fill: f64, policy: Policy) -> Reference {
    Reference::new(blocks, PAGES, (fill * (blocks * PAGES) as f64) as usize, policy, 2, 7)
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a / b - 1.0).abs() < tolerance
}

#[test]
fn uniform_traffic_costs_what_theory_says() {
    let policies = [
        (GREEDY, InTheory::Greedy),
        (Policy::Fifo, InTheory::Fifo),
        (Policy::RandomGreedy { d: 1 }, InTheory::Random),
        (Policy::RandomGreedy { d: 10 }, InTheory::RandomGreedy { d: 10 }),
        (Policy::WindowedGreedy { share: 0.1 }, InTheory::WindowedGreedy { share: 0.1 }),
    ];
    for fill in [0.5, 0.7, 0.8, 0.875, 0.9] {
        for (policy, in_theory) in policies {
            // A scan for the age of every block makes these two slow; a smaller drive serves.
            let slow = matches!(policy, Policy::Fifo | Policy::WindowedGreedy { .. });
            let run = overwrite(drive(if slow { 500 } else { 2000 }, fill, policy), fill, UNIFORM, 6);
            let expected = flashwise_theory::mean_field(run.fill, PAGES as u32, in_theory).unwrap().write_amplification;
            assert!(near(run.amplification, expected, 0.02), "{fill} {policy:?}: {} for {expected}", run.amplification);
        }
    }
}

#[test]
fn one_frontier_or_two_is_the_same_under_uniform_traffic() {
    let single = overwrite(drive(1000, 0.875, GREEDY).with_single_frontier(), 0.875, UNIFORM, 6);
    let double = overwrite(drive(1000, 0.875, GREEDY), 0.875, UNIFORM, 6);
    assert!(near(single.amplification, double.amplification, 0.01));
}

#[test]
fn blocks_are_as_full_as_theory_says() {
    for (policy, in_theory) in
        [(GREEDY, InTheory::Greedy), (Policy::RandomGreedy { d: 3 }, InTheory::RandomGreedy { d: 3 })]
    {
        let run = overwrite(drive(2000, 0.8, policy), 0.8, UNIFORM, 6);
        let expected = flashwise_theory::mean_field(run.fill, PAGES as u32, in_theory).unwrap();
        let half = &run.drive.victims[run.drive.victims.len() / 2..];
        let victims: Vec<usize> = half.iter().map(|victim| victim.valid).collect();
        for (counts, expected) in
            [(&run.drive.valid_counts(), &expected.valid_counts), (&victims, &expected.victim_counts)]
        {
            let share = |i: usize| counts.iter().filter(|&&count| count == i).count() as f64 / counts.len() as f64;
            let apart: f64 = expected.iter().enumerate().map(|(i, p)| (share(i) - p).abs()).sum::<f64>() / 2.0;
            assert!(apart < 0.06, "{policy:?}: distributions are {apart} apart");
        }
    }
}

#[test]
fn greedy_with_one_frontier_gets_worse_with_skew_as_theory_says() {
    let mut last = 0.0;
    for (traffic, size) in [(0.7, 0.3), (0.8, 0.2), (0.9, 0.1), (0.95, 0.05)] {
        let skew = Skew { traffic, size };
        let run = overwrite(drive(1000, 0.875, GREEDY).with_single_frontier(), 0.875, skew, 14);
        let expected =
            flashwise_theory::mean_field_zones(run.fill, PAGES as u32, InTheory::Greedy, &zones(skew)).unwrap();
        let expected = expected.all.write_amplification;
        assert!(near(run.amplification, expected, 0.025), "{skew:?}: {} for {expected}", run.amplification);
        assert!(run.amplification > last, "{skew:?}");
        last = run.amplification;
    }
}

#[test]
fn fifo_and_random_are_as_theory_says_with_either_frontier() {
    for single in [true, false] {
        for (policy, in_theory) in [(Policy::Fifo, InTheory::Fifo), (Policy::RandomGreedy { d: 1 }, InTheory::Random)] {
            let empty = drive(1000, 0.875, policy);
            let run = overwrite(if single { empty.with_single_frontier() } else { empty }, 0.875, STRONG, 14);
            let expected =
                flashwise_theory::mean_field_zones(run.fill, PAGES as u32, in_theory, &zones(STRONG)).unwrap();
            let expected = expected.all.write_amplification;
            assert!(near(run.amplification, expected, 0.02), "{policy:?}: {} for {expected}", run.amplification);
        }
    }
}

#[test]
fn policies_that_tell_hot_from_cold_do_better_under_skew() {
    let amplification = |policy| overwrite(drive(500, 0.875, policy), 0.875, STRONG, 20).amplification;
    let single = overwrite(drive(500, 0.875, GREEDY).with_single_frontier(), 0.875, STRONG, 20).amplification;
    let greedy = amplification(GREEDY);
    let regions = amplification(Policy::TwoRegions);
    let sealed = amplification(Policy::CostBenefit { age: Age::Sealed });
    let invalidated = amplification(Policy::CostBenefit { age: Age::Invalidated });
    assert!(greedy < 0.95 * single && regions < 0.95 * single, "moved pages apart from the host's");
    assert!(regions < 1.02 * greedy, "two regions are not worse than greedy with two frontiers");
    assert!(sealed < 0.8 * greedy && invalidated < 0.8 * greedy, "cost-benefit");
}

#[test]
fn wear_levelling_evens_out_what_greedy_wears() {
    let cold = Skew { traffic: 0.999, size: 0.3 };
    let worn = |policy| {
        let erases = overwrite(drive(200, 0.8, policy), 0.8, cold, 30).drive.erases();
        f64::from(*erases.iter().max().unwrap()) / (f64::from(erases.iter().sum::<u32>()) / erases.len() as f64)
    };
    let (greedy, levelled) = (
        worn(Policy::Greedy { ties: Ties::LastIndex }),
        worn(Policy::WearAware(Wear { max_erases: 150, ..Wear::default() })),
    );
    assert!(levelled < 0.9 * greedy, "{levelled} against {greedy}");
}

/// Six blocks of two pages; after these writes the four sealed blocks 0 to 3 hold 0, 0, 0 and 1 valid pages, block 4
/// two, and the host needs a block.
const BY_HAND: [usize; 11] = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1];

fn by_hand(policy: Policy) -> Reference {
    let mut drive = Reference::new(6, 2, 3, policy, 2, 1);
    BY_HAND.into_iter().for_each(|page| drive.write(page));
    drive.check();
    drive
}

#[test]
fn a_victim_by_hand() {
    for (policy, block) in [
        (GREEDY, 0),
        (Policy::Greedy { ties: Ties::FirstAtCount }, 0),
        (Policy::Greedy { ties: Ties::LastIndex }, 2),
        (Policy::Fifo, 0),
        (Policy::WindowedGreedy { share: 0.01 }, 0),
        (Policy::CostBenefit { age: Age::Sealed }, 0),
        (Policy::WearAware(Wear::default()), 2),
        (Policy::TwoRegions, 0),
    ] {
        let drive = by_hand(policy);
        assert_eq!(drive.victims, [Victim { block, valid: 0 }], "{policy:?}");
        assert_eq!((drive.host_pages, drive.moved_pages, drive.free_blocks()), (11, 0, 1), "{policy:?}");
        assert_eq!(drive.locate(1), Some((5, 0)), "free blocks are used in the order of their erasure");
        assert_eq!(drive.locate(2), Some((4, 0)));
        assert_eq!(drive.blocks[5].state, State::Open);
    }
}

#[test]
fn moved_pages_have_blocks_of_their_own_unless_the_frontier_is_one() {
    let double = overwrite(drive(100, 0.8, GREEDY), 0.8, UNIFORM, 3).drive;
    let single = overwrite(drive(100, 0.8, GREEDY).with_single_frontier(), 0.8, UNIFORM, 3).drive;
    let by_gc = |drive: &Reference| drive.blocks.iter().filter(|block| block.stream == Stream::Gc).count();
    assert!(by_gc(&double) > 20);
    assert_eq!(by_gc(&single), 0);
}

#[test]
fn the_same_seed_gives_the_same_victims() {
    let victims = || overwrite(drive(100, 0.8, Policy::RandomGreedy { d: 3 }), 0.8, UNIFORM, 3).drive.victims;
    assert_eq!(victims(), victims());
}
