//! Every policy against its naive model: the same misses, victims and batches, with pins and dirty bits.
//!
//! Beside that, whatever the policy: a page that is held never falls, no change is lost, and a batch begins with the victim.
//! `FLASHWISE_POOL_HISTORIES` says how many histories of 160 accesses, in the mean, each policy is tried with; without it
//! `PROPTEST_CASES` does.
use crate::naive;
use std::collections::BTreeSet;

use flashwise_bufferpool::{
    Access, Ace, AnyPool, Directory, Found, Page, PolicySpec, PoolError, PoolOptions, Shape, Storage,
};
use naive::{Arc, ArcOrder, Ccflru, Cflru, CflruKind, DlCflru, Fifo, Lfu, Lru, LruK, LruWsr, Model, NaivePool, Nru};
use naive::{S3Fifo, SecondChance, Sieve, TinyLfu, TwoQ};
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

/// Runs both on many accesses with a thousand frames: as many as in the runs of ACE's authors, on their kind of trace, in
/// which nine of ten accesses go to a tenth of the pages and half are writes.
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
    ($($test:ident $policy:literal $frames:ident => $model:expr;)*) => {$(
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
    )*};
}

models! {
    lru_is_its_model "lru" frames => { let _ = frames; Lru::default() };
    fifo_is_its_model "fifo" frames => { let _ = frames; Fifo::default() };
    nru_is_its_model "nru" frames => Nru::new(frames);
    second_chance_is_its_model "second-chance" frames => { let _ = frames; SecondChance::new(0, 1) };
    second_chance_of_the_textbooks_is_its_model "second-chance:bit=1" frames => { let _ = frames; SecondChance::new(1, 1) };
    clock_is_a_queue_with_second_chances "clock" frames => { let _ = frames; SecondChance::new(0, 1) };
    clock_of_the_textbooks_is_its_model "clock:bit=1" frames => { let _ = frames; SecondChance::new(1, 1) };
    clock_sweep_is_its_model "clock-sweep" frames => { let _ = frames; SecondChance::new(1, 5) };
    lfu_is_its_model "lfu" frames => { let _ = frames; Lfu::new(false) };
    lfu_by_counts_is_its_model "lfu:order=counts" frames => { let _ = frames; Lfu::new(true) };
    two_q_is_its_model "2q" frames => TwoQ::new(frames, false, false);
    two_q_of_the_paper_is_its_model "2q:ghost=late" frames => TwoQ::new(frames, true, false);
    two_q_by_its_lists_is_its_model "2q:order=lists" frames => TwoQ::new(frames, false, true);
    arc_is_its_model "arc" frames => { let _ = frames; Arc::new(ArcOrder::NextList) };
    arc_by_the_fall_is_its_model "arc:order=miss" frames => { let _ = frames; Arc::new(ArcOrder::Miss) };
    arc_by_its_lists_is_its_model "arc:order=lists" frames => { let _ = frames; Arc::new(ArcOrder::Lists) };
    cflru_is_its_model "cflru" frames => Cflru::new(frames / 2, CflruKind::Plain, true);
    cflru_c_is_its_model "cflru-c" frames => Cflru::new(frames / 2, CflruKind::Count, false);
    cflru_c_by_rank_is_its_model "cflru-c:order=rank" frames => Cflru::new(frames / 2, CflruKind::Count, true);
    cflru_e_is_its_model "cflru-e" frames => Cflru::new(frames / 2, CflruKind::Erase, false);
    cflru_e_by_rank_is_its_model "cflru-e:order=rank" frames => Cflru::new(frames / 2, CflruKind::Erase, true);
    dl_cflru_e_is_its_model "dl-cflru-e" frames => DlCflru::new(frames / 2, false);
    dl_cflru_e_by_rank_is_its_model "dl-cflru-e:order=rank" frames => DlCflru::new(frames / 2, true);
    lru_wsr_is_its_model "lru-wsr" frames => { let _ = frames; LruWsr::new(false) };
    lru_wsr_as_the_simulator_is_its_model "lru-wsr:as-simulator=1" frames => { let _ = frames; LruWsr::new(true) };
    ccf_lru_is_its_model "ccf-lru" frames => { let _ = frames; Ccflru::default() };
    s3_fifo_is_its_model "s3-fifo" frames => S3Fifo::new(frames, false);
    s3_fifo_that_fills_main_is_its_model "s3-fifo:fill=main" frames => S3Fifo::new(frames, true);
    sieve_is_its_model "sieve" frames => { let _ = frames; Sieve::default() };
    w_tinylfu_is_its_model "w-tinylfu" frames => TinyLfu::new(frames);
    lru_k_is_its_model "lru-k" frames => { let _ = frames; LruK::new(2) };
    lru_3_is_its_model "lru-k:k=3" frames => { let _ = frames; LruK::new(3) };
}
