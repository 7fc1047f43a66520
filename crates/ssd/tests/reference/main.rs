//! The reference model against theory and published numbers, and the order of the policies.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should panic where it fails")]

#[path = "mod.rs"]
mod reference;

use flashwise_ssd::theory::{self, Frontier, Zone};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use reference::{Age, Policy, Reference, State, Ties, Wear};

const GREEDY: Policy = Policy::Greedy { ties: Ties::OldestSealed };
const BLOCKS: usize = 1000;
const PAGES: usize = 64;
const UNIFORM: (f64, f64) = (1.0, 1.0);

/// A long overwrite, `(traffic, size)` of it to a hot zone; gives the drive, and write amplification after the start.
fn overwrite(mut drive: Reference, logical: usize, (traffic, size): (f64, f64), rounds: usize) -> (Reference, f64) {
    let mut random = Pcg64::seed_from_u64(1);
    let hot = ((size * logical as f64).round() as usize).clamp(1, logical);
    let mut before = (0, 0);
    (0..logical).for_each(|page| drive.write(page));
    for round in 0..rounds {
        if round == rounds / 2 {
            before = (drive.host_pages, drive.moved_pages);
        }
        for _ in 0..logical {
            let is_hot = traffic >= 1.0 || random.random_bool(traffic);
            drive.write(if is_hot { random.random_range(0..hot) } else { random.random_range(hot..logical) });
        }
    }
    drive.check();
    let amplification = drive.write_amplification_since(before);
    (drive, amplification)
}

/// Fill of the sealed blocks of a drive that keeps two blocks free, or one while a victim is collected.
fn fill(logical: usize, blocks: usize, open: f64) -> f64 {
    theory::fill_of_sealed(logical as u64, blocks as u64, PAGES as u64, 1.5, open)
}

fn simulate(policy: Policy, rho: f64, skew: (f64, f64), frontier: Frontier, rounds: usize) -> (Reference, f64, f64) {
    let logical = (rho * (BLOCKS * PAGES) as f64) as usize;
    let drive = Reference::new(BLOCKS, PAGES, logical, policy, 2, 7);
    let (drive, open) = match frontier {
        Frontier::Single => (drive.with_single_frontier(), 1.0),
        Frontier::Double => (drive, 2.0),
    };
    let (drive, amplification) = overwrite(drive, logical, skew, rounds);
    (drive, amplification, fill(logical, BLOCKS, open))
}

fn zones((traffic, size): (f64, f64)) -> [Zone; 2] {
    [Zone { size, traffic }, Zone { size: 1.0 - size, traffic: 1.0 - traffic }]
}

#[test]
fn dump() {
    return;
    for rho in [0.5, 0.7, 0.8, 0.875, 0.9, 0.93] {
        for (p, t) in [
            (GREEDY, theory::Policy::Greedy),
            (Policy::Fifo, theory::Policy::Fifo),
            (Policy::RandomGreedy { d: 1 }, theory::Policy::Random),
            (Policy::RandomGreedy { d: 3 }, theory::Policy::RandomGreedy { d: 3 }),
            (Policy::RandomGreedy { d: 10 }, theory::Policy::RandomGreedy { d: 10 }),
            (Policy::WindowedGreedy { share: 0.2 }, theory::Policy::WindowedGreedy { share: 0.2 }),
        ] {
            for f in [Frontier::Single, Frontier::Double] {
                let (_, wa, rho_s) = simulate(p, rho, UNIFORM, f, 10);
                let th = theory::mean_field(rho_s, 64, t).unwrap().write_amplification;
                println!("{rho} {p:?} {f:?} {wa:.3} {th:.3} {:+.2}%", (wa / th - 1.0) * 100.0);
            }
        }
    }
}
#[test]
fn dumpz() {
    let rho = 0.875;
    for skew in [(0.7, 0.3), (0.8, 0.2), (0.9, 0.1), (0.95, 0.05)] {
        for (p, t) in [
            (GREEDY, theory::Policy::Greedy),
            (Policy::Greedy { ties: Ties::LastIndex }, theory::Policy::Greedy),
            (Policy::Fifo, theory::Policy::Fifo),
            (Policy::RandomGreedy { d: 1 }, theory::Policy::Random),
            (Policy::RandomGreedy { d: 3 }, theory::Policy::RandomGreedy { d: 3 }),
            (Policy::RandomGreedy { d: 10 }, theory::Policy::RandomGreedy { d: 10 }),
            (Policy::WindowedGreedy { share: 0.2 }, theory::Policy::WindowedGreedy { share: 0.2 }),
            (Policy::CostBenefit { age: Age::Sealed }, theory::Policy::Fifo),
            (Policy::CostBenefit { age: Age::Invalidated }, theory::Policy::Fifo),
            (Policy::TwoRegions, theory::Policy::Greedy),
            (Policy::WearAware(Wear { max_erases: 1000000, ..Wear::default() }), theory::Policy::Greedy),
        ] {
            for f in [Frontier::Single, Frontier::Double] {
                if p == Policy::TwoRegions && f == Frontier::Single {
                    continue;
                }
                let (_, wa, rho_s) = simulate(p, rho, skew, f, 20);
                let th = theory::mean_field_zones(rho_s, 64, t, &zones(skew), f).unwrap().all.write_amplification;
                println!("{skew:?} {p:?} {f:?} {wa:.3} {th:.3} {:+.2}%", (wa / th - 1.0) * 100.0);
            }
        }
    }
}
