//! The algorithms against each other, against the least possible, and against their proofs.

use proptest::prelude::*;

use super::adversary::play;
use super::*;
use flashwise_theory as theory;

/// A small drive and writes to it.
fn small() -> impl Strategy<Value = (Shape, Vec<u32>)> {
    (3_u32..5, 2_u32..4).prop_flat_map(|(blocks, slots)| {
        let most = (blocks - 1) * slots - 1;
        (1..=most.min(5)).prop_flat_map(move |pages| {
            let shape = Shape::new(blocks, slots, pages).unwrap();
            (Just(shape), prop::collection::vec(0..pages, 1..14))
        })
    })
}

/// A drive of some size and more writes than it has slots.
fn middling() -> impl Strategy<Value = (Shape, Vec<u32>)> {
    (3_u32..40, 2_u32..10, 0.05_f64..1.0).prop_flat_map(|(blocks, slots, fill)| {
        let most = (blocks - 1) * slots - 1;
        let pages = ((f64::from(most) * fill) as u32).max(1);
        let shape = Shape::new(blocks, slots, pages).unwrap();
        (Just(shape), prop::collection::vec(0..pages, 1..2000))
    })
}

fn rewrites(shape: Shape, mut algorithm: impl Algorithm, trace: &[u32]) -> u64 {
    run(shape, &mut algorithm, trace, 0).unwrap().all.rewrites
}

/// How a prediction can lie: about a page that is written at `time` and dies at `death`.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Never,
    Now,
    /// Long for short and short for long.
    Reversed,
    /// Anything, so that each block gets pages of all lives.
    Scattered,
}

const LIES: [Lie; 4] = [Lie::Never, Lie::Now, Lie::Reversed, Lie::Scattered];

impl Lie {
    fn tell(self, time: u32, page: u32, death: u32) -> u32 {
        match self {
            Self::Never => NEVER,
            Self::Now => time + 1,
            Self::Reversed if death == NEVER => time + 1,
            Self::Reversed => time + 1 + 100_000 / (death - time),
            Self::Scattered => {
                let mixed = (u64::from(time) << 32 | u64::from(page)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                time + 1 + (1 << (mixed >> 59 & 15))
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_algorithm_has_fewer_rewrites_than_the_least_possible((shape, trace) in small(), limit in 1_u32..10) {
        let least = least_rewrites(shape, &trace);
        let deaths = deaths(&trace);
        prop_assert!(rewrites(shape, Greedy::new(shape), &trace) >= least);
        prop_assert!(rewrites(shape, TwoR::new(shape), &trace) >= least);
        prop_assert!(rewrites(shape, NoDaP::new(shape, &deaths, &[limit]), &trace) >= least);
        prop_assert!(rewrites(shape, Online::new(shape, |t, _| deaths[t as usize]), &trace) >= least);
        prop_assert!(least <= shape.greedy_guarantee(trace.len() as u64));
    }

    #[test]
    fn greedy_keeps_its_guarantee((shape, trace) in middling()) {
        prop_assert!(rewrites(shape, Greedy::new(shape), &trace) <= shape.greedy_guarantee(trace.len() as u64));
    }

    #[test]
    fn online_keeps_greedys_guarantee_whatever_the_predictions_say(
        (shape, trace) in middling(), lie in prop::sample::select(&LIES), fan_out in 1_u32..6, epoch in 1_u32..200,
    ) {
        let deaths = deaths(&trace);
        let predict = |time: u32, page: u32| lie.tell(time, page, deaths[time as usize]);
        let bound = shape.online_guarantee(trace.len() as u64);
        prop_assert!(rewrites(shape, Online::new(shape, predict), &trace) <= bound);
        let wheel = Wheel { epoch, fan_out, levels: 2 };
        prop_assert!(rewrites(shape, Online::with_wheel(shape, wheel, predict), &trace) <= bound);
    }

    #[test]
    fn two_r_and_nodap_stay_within_the_model((shape, trace) in middling(), limits in prop::collection::btree_set(1_u32..500, 1..4)) {
        let limits: Vec<u32> = limits.into_iter().collect();
        let deaths = deaths(&trace);
        let writes = trace.len() as u64;
        for run in [
            run(shape, &mut TwoR::new(shape), &trace, 0).unwrap(),
            run(shape, &mut NoDaP::new(shape, &deaths, &limits), &trace, 0).unwrap(),
        ] {
            prop_assert_eq!(run.all.writes, writes);
            // What was programmed is on the drive or was erased.
            let programmed = run.all.writes + run.all.rewrites;
            prop_assert!(programmed <= u64::from(shape.slots_per_block()) * (run.all.erases + u64::from(shape.blocks())));
        }
    }

    #[test]
    fn offline_keeps_both_of_its_bounds(pages in 1_u32..200, seed in 0_u64..1000, slots in 2_u32..8, more in 0_u32..200) {
        let shape = Shape::new(24 + pages.div_ceil(slots) + more, slots, pages).unwrap();
        let zones = Workload::TwoZones { traffic: 0.9, size: 0.3 };
        let workload = if pages > 1 { zones } else { Workload::Uniform };
        let trace = workload.trace(shape, 5_000, seed);
        let deaths = deaths(&trace);
        let Ok(mut offline) = Offline::new(shape, &deaths) else { return Ok(()) };
        let (wheel, bound) = (offline.wheel(), offline.bound());
        let rewrites = run(shape, &mut offline, &trace, 0).unwrap().all.rewrites;
        prop_assert!(rewrites <= bound, "{rewrites} of {bound}");
        let worst = u64::from(pages) * trace.len() as u64 / u64::from((wheel.fan_out - 1) * wheel.epoch);
        prop_assert!(bound <= worst, "{bound} of {worst}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn offline_is_between_the_least_possible_and_its_bound(trace in prop::collection::vec(0_u32..3, 24)) {
        let shape = Shape::new(9, 2, 3).unwrap();
        let deaths = deaths(&trace);
        let offline = Offline::new(shape, &deaths).unwrap();
        let bound = offline.bound();
        let moved = rewrites(shape, offline, &trace);
        prop_assert!(least_rewrites(shape, &trace) <= moved && moved <= bound);
    }
}

/// The adversary keeps every block near the mean, so that greedy empties blocks of `v*` pages or nearly so. It comes to
/// within a page a block of the guarantee: v ≥ v* − 1 valid pages are moved for each B − v slots gained.
#[test]
fn the_adversary_drives_greedy_to_its_guarantee() {
    let shape = Shape::with_fill(65, 32, 0.80).unwrap();
    let (trace, drive) = play(shape, &mut Greedy::new(shape), 100_000);
    let (moved, n) = (drive.counts().rewrites, trace.len() as u64);
    assert!(moved <= shape.greedy_guarantee(n), "{moved} of {}", shape.greedy_guarantee(n));
    let (worst, slots) = (f64::from(shape.worst_victim()), f64::from(shape.slots_per_block()));
    let least = (worst - 1.0) / (slots - worst + 1.0);
    let random_writes = (n - u64::from(shape.slots())) as f64;
    assert!(moved as f64 / random_writes >= least, "{} of {least}", moved as f64 / random_writes);
}

#[test]
fn online_keeps_greedys_guarantee_against_the_adversary_with_every_lie() {
    for fill in [0.5, 0.8, 0.9] {
        let shape = Shape::with_fill(40, 16, fill).unwrap();
        for lie in [Lie::Never, Lie::Now, Lie::Scattered] {
            let mut online = Online::new(shape, |time, page| lie.tell(time, page, NEVER));
            let (trace, drive) = play(shape, &mut online, 50_000);
            let bound = shape.online_guarantee(trace.len() as u64);
            assert!(drive.counts().rewrites <= bound, "{lie:?} at {fill}: {} of {bound}", drive.counts().rewrites);
            drive.check().unwrap();
        }
    }
}

/// Pages of all lives in every block, few spare blocks and many open ones: predicted steps become dearer than greedy's
/// guarantee, the budget refuses thousands of them, and the rewrites end within a hundredth below the bound: nothing
/// else than the budget keeps it.
#[test]
fn lies_use_up_the_budget_and_no_more() {
    for fill in [0.7, 0.8, 0.9] {
        let shape = Shape::with_fill(24, 16, fill).unwrap();
        let wheel = Wheel { epoch: 8, fan_out: 4, levels: 3 };
        let lie = |time, page| Lie::Scattered.tell(time, page, NEVER);
        let mut online = Online::with_wheel(shape, wheel, lie);
        let (trace, drive) = play(shape, &mut online, 50_000);
        let bound = shape.online_guarantee(trace.len() as u64);
        let moved = drive.counts().rewrites;
        assert!(online.refused() > 1000 && moved <= bound && moved as f64 > 0.99 * bound as f64, "{moved} of {bound}");
    }
}

/// The mean field is the limit of infinitely many blocks, off by the order of 1 / blocks, here 0.1 %; measured are 1.4
/// million writes, 22,000 victims, whose mean is known to a fraction of a per cent. The open block is half full.
#[test]
fn greedy_under_uniform_writes_agrees_with_theory() {
    for (fill, slots) in [(0.7, 64), (0.875, 64), (0.875, 16)] {
        let shape = Shape::with_fill(1024, slots, fill).unwrap();
        let pages = shape.pages() as usize;
        let trace = Workload::Uniform.trace(shape, 12 * pages, 1);
        let measured = run(shape, &mut Greedy::new(shape), &trace, 6 * pages).unwrap().measured.write_amplification();
        let rho = theory::fill_of_sealed(u64::from(shape.pages()), 1024, u64::from(slots), 1.0, 1.0);
        let expected = theory::mean_field(rho, slots, theory::Policy::Greedy).unwrap().write_amplification;
        assert!((measured / expected - 1.0).abs() < 0.01, "{fill}, {slots}: {measured} and {expected}");
        // The closed form is that of large blocks, which greedy needs more rewrites with.
        assert!(measured < theory::write_amplification_greedy(rho));
    }
}

#[test]
fn one_seed_gives_one_result() {
    let shape = Shape::with_fill(128, 32, 0.8).unwrap();
    let once = || {
        let trace = Workload::Zipf { theta: 0.9 }.trace(shape, 20_000, 3);
        let deaths = deaths(&trace);
        let predicted = PredictionError { sigma: 1.0, swapped: 0.1 }.predictions(&deaths, 3);
        run(shape, &mut Online::new(shape, |t, _| predicted[t as usize]), &trace, 0).unwrap()
    };
    assert_eq!(once(), once());
}

#[test]
fn what_an_algorithm_knows_is_worth_rewrites() {
    let shape = Shape::with_fill(1024, 32, 0.8).unwrap();
    let trace = Workload::TwoZones { traffic: 0.9, size: 0.1 }.trace(shape, 10 * shape.pages() as usize, 3);
    let deaths = deaths(&trace);
    let pages = shape.pages();
    let greedy = rewrites(shape, Greedy::new(shape), &trace);
    let nodap = rewrites(shape, NoDaP::new(shape, &deaths, &[pages / 8, pages / 2, 2 * pages]), &trace);
    let offline = rewrites(shape, Offline::new(shape, &deaths).unwrap(), &trace);
    let online = rewrites(shape, Online::new(shape, |t, _| deaths[t as usize]), &trace);
    assert!(offline < nodap && nodap < greedy && online < nodap, "{greedy} {nodap} {online} {offline}");
}

/// Predicted deaths that are off by an eighth of a life put a page a few groups from where it belongs, not anywhere:
/// most of the way from true predictions to those that are off by a factor of e is beyond.
#[test]
fn the_smaller_the_error_of_the_predictions_the_fewer_rewrites() {
    let shape = Shape::with_fill(1024, 32, 0.875).unwrap();
    let trace = Workload::Uniform.trace(shape, 8 * shape.pages() as usize, 3);
    let deaths = deaths(&trace);
    let with_error = |sigma: f64| {
        let predicted = PredictionError { sigma, swapped: 0.0 }.predictions(&deaths, 3);
        rewrites(shape, Online::new(shape, |t, _| predicted[t as usize]), &trace)
    };
    let [none, small, middling, large] = [0.0, 0.125, 0.5, 1.0].map(with_error);
    assert!(none < small && small < middling && middling < large, "{none} {small} {middling} {large}");
    assert!(small - none < (large - none) / 2, "{none} {small} {middling} {large}");
}

#[test]
fn a_trace_that_does_not_fit_is_refused() {
    let shape = Shape::new(4, 4, 4).unwrap();
    let run = |trace: &[u32]| run(shape, &mut Greedy::new(shape), trace, 0);
    assert_eq!(run(&[0, 4]).unwrap_err(), DeathTimeError::Page { page: 4, pages: 4 });
    let deaths = deaths(&[0; 10_000]);
    assert!(matches!(Offline::new(shape, &deaths), Err(DeathTimeError::NoRoom { blocks: 4, .. })));
}
