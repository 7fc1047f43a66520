//! Every policy against its naive model: the same misses, victims and batches, with pins and dirty bits.
//!
//! Beside that, whatever the policy: a page that is pinned never is evicted, no change is lost, and a batch starts with
//! the victim. `FLASHWISE_POOL_HISTORIES` says how many histories of 160 accesses, in the mean, each policy is tried
//! with; without it `PROPTEST_CASES` does.
use crate::naive;
use std::collections::BTreeSet;

use flashwise_bufferpool::{
    Access, Ace, AnyPool, Directory, Found, Page, PolicySpec, PoolError, PoolOptions, Shape, Storage, policies,
};
use naive::*;
use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Page n of a pool is page 16 n of a model, so that there are several blocks of 64.
const SPREAD: u64 = 16;
const PAGES: u32 = 40;

#[derive(Clone, Copy, Debug)]
enum Step {
    Access(u32, bool),
    Pin(u32),
    Unpin(u32),
}

fn step() -> impl Strategy<Value = Step> {
    // Half of the accesses go to a fifth of the pages, and some pages are scanned in order.
    let page = prop_oneof![0..PAGES, 0..PAGES / 5];
    prop_oneof![
        12 => (page, any::<bool>()).prop_map(|(page, write)| Step::Access(page, write)),
        1 => (0..PAGES).prop_map(Step::Pin),
        2 => (0..PAGES).prop_map(Step::Unpin),
    ]
}

/// What the pool asked of the drive in one access.
#[derive(Default)]
struct Recorder {
    written: Vec<u64>,
    evicted: Vec<u64>,
}

fn numbers(pages: &[Page]) -> Vec<u64> {
    pages.iter().map(|page| u64::from(page.0) * SPREAD).collect()
}

impl Storage for Recorder {
    fn write(&mut self, pages: &[Page]) -> Result<(), String> {
        self.written = numbers(pages);
        Ok(())
    }

    fn evicted(&mut self, page: Page) {
        self.evicted.push(u64::from(page.0) * SPREAD);
    }
}

fn dirty_pages(directory: &Directory) -> BTreeSet<u64> {
    let is_dirty = |page: u32| match directory.find(Page(page)) {
        Found::Resident(entry) => directory.is_dirty(entry),
        _ => false,
    };
    (0..PAGES).filter(|&page| is_dirty(page)).map(|page| u64::from(page) * SPREAD).collect()
}

fn shape(frames: usize) -> Shape {
    Shape { frames, pages: PAGES as usize, blocks: (0..PAGES).map(|page| page * SPREAD as u32 / 64).collect() }
}

fn pool(policy: &str, frames: usize, batch: usize) -> Box<dyn AnyPool> {
    let options = PoolOptions { ace: Ace::of(batch), ..PoolOptions::default() };
    PolicySpec::parse(policy).unwrap().pool(&shape(frames), &options).unwrap()
}

/// Runs both, step by step.
fn compare<M: Model>(policy: &str, model: M, frames: usize, batch: usize, steps: &[Step]) {
    let (mut real, mut naive) = (pool(policy, frames, batch), NaivePool::new(model, frames, batch));
    let mut held: BTreeSet<u64> = BTreeSet::new();
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Pin(page) => {
                let number = u64::from(page) * SPREAD;
                if !held.contains(&number) && real.pin(Page(page)) {
                    held.insert(number);
                    naive.state.pinned.insert(number);
                }
            }
            Step::Unpin(page) => {
                let number = u64::from(page) * SPREAD;
                let was_held = held.remove(&number);
                naive.state.pinned.remove(&number);
                assert_eq!(real.unpin(Page(page)).is_ok(), was_held);
            }
            Step::Access(page, write) => {
                if held.len() == frames && !naive.state.resident.contains(&(u64::from(page) * SPREAD)) {
                    let refused = real.access_on(Access::new(Page(page), write), &mut Recorder::default());
                    assert!(matches!(refused, Err(PoolError::AllPinned { .. })));
                    continue;
                }
                let before = naive.state.dirty.clone();
                let mut asked = Recorder::default();
                real.access_on(Access::new(Page(page), write), &mut asked).unwrap();
                assert!(naive.access(u64::from(page) * SPREAD, write));
                let victim: Vec<_> = naive.last_victim.into_iter().collect();
                let context = format!("{policy}, {frames} frames, batches of {batch}, step {number}: {step:?}");
                assert_eq!(asked.evicted, victim, "{context}: victim");
                assert_eq!(asked.written, naive.last_batch, "{context}: batch");
                assert!(asked.evicted.iter().chain(&asked.written).all(|page| !held.contains(page)), "{context}: held");
                assert!(asked.written.iter().all(|page| before.contains(page)), "{context}: a clean page was written");
                assert!(asked.written.is_empty() || asked.written[0] == asked.evicted[0], "{context}");
                assert_eq!(dirty_pages(real.directory()), naive.state.dirty, "{context}: dirty pages");
                assert_eq!(real.directory().dirty(), naive.state.dirty.len());
                assert_eq!(real.directory().resident(), naive.state.resident.len());
            }
        }
    }
    let counts = real.counts();
    assert_eq!(
        (counts.misses, counts.write_back_operations, counts.pages_written),
        (naive.misses, naive.operations, naive.written)
    );
}

/// Runs both on many accesses with a thousand frames: as many as in the runs of ACE's authors, on their kind of trace,
/// in which nine of ten accesses go to a tenth of the pages and half are writes.
fn compare_large<M: Model>(policy: &str, model: M, batch: usize) {
    const PAGES: u32 = 20_480;
    const ACCESSES: u32 = 30_000;
    let blocks = (0..PAGES).map(|page| page * SPREAD as u32 / 64).collect();
    let shape = Shape { frames: LARGE, pages: PAGES as usize, blocks };
    let options = PoolOptions { ace: Ace::of(batch), ..PoolOptions::default() };
    let mut real = PolicySpec::parse(policy).unwrap().pool(&shape, &options).unwrap();
    let mut naive = NaivePool::new(model, LARGE, batch);
    let mut random = Pcg64::seed_from_u64(11);
    for number in 0..ACCESSES {
        let bits = random.next_u64();
        let pages = if bits % 10 < 9 { PAGES / 10 } else { PAGES };
        let (page, write) = ((bits >> 32) as u32 % pages, bits >> 16 & 1 == 1);
        let mut asked = Recorder::default();
        real.access_on(Access::new(Page(page), write), &mut asked).unwrap();
        assert!(naive.access(u64::from(page) * SPREAD, write));
        let context = format!("{policy}, batches of {batch}, access {number} to page {page}");
        assert_eq!(asked.evicted, naive.last_victim.into_iter().collect::<Vec<_>>(), "{context}: victim");
        assert_eq!(asked.written, naive.last_batch, "{context}: batch");
        assert_eq!(real.directory().dirty(), naive.state.dirty.len(), "{context}: dirty pages");
    }
    let counts = real.counts();
    assert_eq!((counts.misses, counts.write_back_operations), (naive.misses, naive.operations));
    // Most batches are full, and there were many.
    assert!(naive.operations > 500 && naive.written * 10 > naive.operations * batch as u64 * 9, "{policy}");
}

/// Frames of the comparison with many accesses.
const LARGE: usize = 1_000;

#[test]
fn lru_wsr_with_a_thousand_frames_is_its_model_access_by_access() {
    for batch in [1, 8] {
        compare_large("lru-wsr", LruWsr::new(false), batch);
        compare_large("lru-wsr:as-simulator=1", LruWsr::new(true), batch);
    }
}

#[test]
fn ranked_policies_with_a_thousand_frames_are_their_models_access_by_access() {
    for batch in [1, 8] {
        compare_large("cflru-c", Cflru::new(LARGE / 2, CflruKind::Count, false), batch);
        compare_large("cflru-e", Cflru::new(LARGE / 2, CflruKind::Erase, false), batch);
        compare_large("dl-cflru-e", DlCflru::new(LARGE / 2, false), batch);
    }
}

/// How many histories a policy is tried with.
fn histories() -> ProptestConfig {
    let wanted = std::env::var("FLASHWISE_POOL_HISTORIES");
    match wanted.map(|count| count.parse().unwrap_or_else(|_| panic!("FLASHWISE_POOL_HISTORIES={count}: no count"))) {
        Ok(cases) => ProptestConfig::with_cases(cases),
        Err(_) => ProptestConfig::default(),
    }
}

macro_rules! models {
    ($($test:ident $policy:literal $frames:ident => $model:expr;)*) => {
        /// Policies that are compared with a model.
        const MODELLED: &[&str] = &[$($policy),*];

        $(
        proptest! {
            #![proptest_config(histories())]
            #[test]
            fn $test(
                $frames in 1_usize..24,
                batch in prop_oneof![Just(1_usize), 2_usize..9],
                steps in prop::collection::vec(step(), 0..400),
            ) {
                compare($policy, $model, $frames, batch, &steps);
            }
        }
    )*
    };
}

with_models!(models);

#[test]
fn every_policy_has_a_model_and_a_row_in_the_guide() {
    let guide = include_str!("../../../../docs/guide/pool.md");
    for policy in policies() {
        let has_model = MODELLED.iter().any(|spec| spec.split(':').next() == Some(policy.name));
        assert!(has_model, "{} has no model in tests/it/naive/models.rs", policy.name);
        assert!(guide.contains(&format!("| `{}` |", policy.name)), "{} has no row in docs/guide/pool.md", policy.name);
    }
}
