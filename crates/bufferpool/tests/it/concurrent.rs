//! The pool that threads share: it decides as the simulator does, loses nothing, and never evicts a pinned page.
use crate::support;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::thread;

use flashwise_block::{ByteSize, IoBuffer, Request, execute};
use flashwise_bufferpool::concurrent::{DeviceStore, FileStore, PageStore};
use flashwise_bufferpool::{
    Access, Ace, BufferPool, BufferPoolOptions, Page, PolicySpec, PoolError, PoolOptions, Prefetch, Reach, Shape,
    policies,
};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use support::memory_store::MemoryStore;

const PAGES: u32 = 64;
const BYTES: usize = 512;

fn policy(name: &str) -> PolicySpec {
    PolicySpec::parse(name).unwrap()
}

fn pool_of(frames: usize, name: &str, ace: Ace) -> BufferPool<MemoryStore> {
    let options = BufferPoolOptions::new(frames).with_policy(policy(name)).with_ace(ace);
    BufferPool::new(MemoryStore::new(u64::from(PAGES), BYTES), options).unwrap()
}

/// Ways to write back and to prefetch.
fn ways() -> Vec<(Ace, Prefetch)> {
    let cow = Ace { reach: Reach::Positions, ..Ace::of(4) };
    let evicting = Ace { evict: Some(3), ..Ace::of(4) };
    vec![
        (Ace::CLASSIC, Prefetch::None),
        (Ace::of(4), Prefetch::None),
        (cow, Prefetch::None),
        (Ace::of(4), Prefetch::Sequential),
        (evicting, Prefetch::Both),
    ]
}

/// Serves the same accesses by the simulator's pool and by the one with bytes; the counts of both must be equal, and
/// the bytes those that were written last.
fn compare(name: &str, frames: usize, (ace, prefetch): (Ace, Prefetch), accesses: &[(u32, bool)]) {
    let next: Vec<u32> = (1..PAGES).chain([u32::MAX]).collect();
    let shape = Shape { frames, pages: PAGES as usize, blocks: [].into() };
    let options = PoolOptions { ace, prefetch, next_pages: next.into() };
    let mut simulated = policy(name).pool(&shape, &options).unwrap();
    let options = BufferPoolOptions::new(frames).with_policy(policy(name)).with_ace(ace).with_prefetch(prefetch);
    let pool = BufferPool::new(MemoryStore::new(u64::from(PAGES), BYTES), options).unwrap();
    let mut model = vec![0_u8; PAGES as usize];
    for (n, &(page, is_write)) in accesses.iter().enumerate() {
        simulated.access_on(Access::new(Page(page), is_write), &mut ()).unwrap();
        if is_write {
            let mut bytes = pool.write(Page(page)).unwrap();
            assert_eq!(bytes[0], model[page as usize], "{name}: page {page} before access {n}");
            model[page as usize] = (n % 251) as u8 + 1;
            bytes.fill(model[page as usize]);
        } else {
            let bytes = pool.read(Page(page)).unwrap();
            assert!(bytes.iter().all(|&b| b == model[page as usize]), "{name}: page {page} at access {n}");
        }
    }
    assert_eq!(&pool.counts(), simulated.counts(), "{name}, {ace:?}, {prefetch:?}, {frames} frames");
    pool.checkpoint().unwrap();
    let store = pool.into_store();
    for page in 0..PAGES {
        assert!(store.page(page).iter().all(|&b| b == model[page as usize]), "{name}: page {page} in the store");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_thread_sees_the_decisions_and_counts_of_the_simulator(
        frames in 4_usize..24,
        accesses in prop::collection::vec((0..PAGES, any::<bool>()), 1..400),
    ) {
        for policy in policies() {
            for way in ways() {
                compare(policy.name, frames, way, &accesses);
            }
        }
    }
}

/// Adds one to the counter in a page, as a program does that knows only the pool.
fn add_one(pool: &BufferPool<impl PageStore>, page: u32) -> Result<(), PoolError> {
    let mut bytes = pool.write(Page(page))?;
    let count = u64::from_le_bytes(bytes[..8].try_into().unwrap()) + 1;
    let end = bytes.len() - 8;
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    bytes[end..].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// The counter in a page, which must be the same at both ends.
fn count_in(bytes: &[u8]) -> u64 {
    let [first, last] = [&bytes[..8], &bytes[bytes.len() - 8..]];
    assert_eq!(first, last, "a page was read while it was written");
    u64::from_le_bytes(first.try_into().unwrap())
}

/// Threads that add to random pages and read others; how often each page was added to.
fn hammer(pool: &BufferPool<impl PageStore>, threads: u64, rounds: usize, reads_ahead: bool) -> Vec<u64> {
    let start = Barrier::new(threads as usize);
    let work = |seed: u64| {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut added = vec![0_u64; PAGES as usize];
        start.wait();
        for _ in 0..rounds {
            let bits = random.next_u64();
            // A few pages are everybody's.
            let page = if bits & 3 == 0 { (bits >> 8) % 4 } else { (bits >> 8) % u64::from(PAGES) } as u32;
            match bits & 0x70 {
                0 | 0x10 => match pool.read(Page(page)) {
                    Ok(bytes) => _ = count_in(&bytes),
                    Err(error) => assert!(matches!(error, PoolError::WriteFailed { .. }), "{error}"),
                },
                0x20 if bits & 0x700 == 0 => drop(pool.checkpoint()),
                0x30 if reads_ahead => {
                    let ahead: Vec<Page> = (page..PAGES.min(page + 3)).map(Page).collect();
                    match pool.read_ahead(&ahead).and_then(|()| pool.pin(Page(page))) {
                        Ok(pinned) => _ = count_in(&pinned.read()),
                        Err(error) => assert!(matches!(error, PoolError::WriteFailed { .. }), "{error}"),
                    }
                }
                _ => match add_one(pool, page) {
                    Ok(()) => added[page as usize] += 1,
                    Err(error) => assert!(matches!(error, PoolError::WriteFailed { .. }), "{error}"),
                },
            }
        }
        added
    };
    let work = &work;
    let counts: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (0..PAGES as usize).map(|page| counts.iter().map(|added| added[page]).sum()).collect()
}

#[test]
fn no_change_of_any_thread_is_lost_under_any_policy() {
    for policy in policies() {
        for ace in [Ace::CLASSIC, Ace::of(4)] {
            let pool = pool_of(12, policy.name, ace);
            let expected = hammer(&pool, 6, 3_000, false);
            pool.checkpoint().unwrap();
            let store = pool.into_store();
            let found: Vec<u64> = (0..PAGES).map(|page| count_in(&store.page(page))).collect();
            assert_eq!(found, expected, "{}", policy.name);
        }
    }
}

#[test]
fn no_change_is_lost_where_threads_read_ahead_and_pin() {
    for (prefetch, seed) in [(Prefetch::None, 0), (Prefetch::Both, 1)].repeat(4) {
        let options = BufferPoolOptions::new(32).with_ace(Ace::of(4)).with_prefetch(prefetch);
        let pool = BufferPool::new(MemoryStore::new(u64::from(PAGES), BYTES), options).unwrap();
        pool.store().writes_until_failure.store(50 + seed * 40, Ordering::SeqCst);
        let expected = hammer(&pool, 4, 3_000, true);
        pool.checkpoint().unwrap();
        let store = pool.into_store();
        let found: Vec<u64> = (0..PAGES).map(|page| count_in(&store.page(page))).collect();
        assert_eq!(found, expected, "{prefetch:?}");
    }
}

#[test]
fn nothing_is_lost_where_threads_meet_writes_that_fail() {
    for seed in 0..20 {
        let pool = pool_of(12, "clock-sweep", Ace::of(4));
        pool.store().writes_until_failure.store(20 + seed * 7, Ordering::SeqCst);
        let expected = hammer(&pool, 4, 1_500, false);
        assert_eq!(pool.statistics().failed_writes, 1);
        pool.checkpoint().unwrap();
        assert_eq!(pool.statistics().waiting_pages, 0);
        let store = pool.into_store();
        let found: Vec<u64> = (0..PAGES).map(|page| count_in(&store.page(page))).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_write_that_fails_is_told_to_the_caller_and_the_page_stays_dirty() {
    let pool = pool_of(4, "lru", Ace::CLASSIC);
    (0..4).for_each(|page| pool.write(Page(page)).unwrap().fill(page as u8 + 1));
    pool.store().writes_until_failure.store(0, Ordering::SeqCst);
    let error = pool.read(Page(9)).unwrap_err();
    assert_eq!(error.to_string(), "write-back of 1 pages failed: write: Input/output error; they stay dirty");
    assert_eq!(pool.store().page(0), vec![0; BYTES]);
    assert_eq!(pool.read(Page(0)).unwrap()[0], 1, "its bytes are still there");
    assert_eq!(pool.read(Page(9)).unwrap()[0], 0, "what was read beside it too");
    pool.checkpoint().unwrap();
    assert_eq!(pool.store().page(0), vec![1; BYTES]);
}

#[test]
fn every_write_and_read_may_fail_once_and_nothing_is_lost() {
    for kind in 0..2 {
        for nth in 0..60 {
            let pool = pool_of(6, "arc", Ace { evict: Some(2), ..Ace::of(3) });
            let store = pool.store();
            let counter = [&store.writes_until_failure, &store.reads_until_failure][kind];
            counter.store(nth, Ordering::SeqCst);
            let (mut random, mut expected, mut failures) =
                (Pcg64::seed_from_u64(nth as u64), vec![0; PAGES as usize], 0);
            for _ in 0..300 {
                let page = random.next_u64() as u32 % 24;
                match add_one(&pool, page) {
                    Ok(()) => expected[page as usize] += 1,
                    Err(PoolError::WriteFailed { .. } | PoolError::ReadFailed { .. }) => failures += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(failures, 1, "the failure was told once");
            pool.checkpoint().unwrap();
            let found: Vec<u64> = (0..PAGES).map(|page| count_in(&pool.store().page(page))).collect();
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn a_store_that_takes_no_writes_stops_the_pool_in_words_and_not_for_ever() {
    let options = BufferPoolOptions { spare_frames: Some(3), ..BufferPoolOptions::new(4) };
    let pool = BufferPool::new(MemoryStore::new(u64::from(PAGES), BYTES), options).unwrap();
    (0..4).for_each(|page| pool.write(Page(page)).unwrap().fill(7));
    for page in 4..40 {
        // Each attempt meets the next failure.
        pool.store().writes_until_failure.store(0, Ordering::SeqCst);
        let error = pool.write(Page(page)).map(drop).unwrap_err();
        assert!(matches!(error, PoolError::WriteFailed { .. }), "{error}");
    }
    assert_eq!(pool.read(Page(0)).unwrap()[0], 7);
    pool.checkpoint().unwrap();
    (0..4).for_each(|page| assert_eq!(pool.store().page(page), vec![7; BYTES]));
}

#[test]
fn a_checkpoint_whose_flush_failed_is_never_followed_by_one_that_says_all_is_well() {
    let pool = pool_of(8, "lru", Ace::of(4));
    pool.write(Page(1)).unwrap().fill(1);
    pool.store().flushes_until_failure.store(0, Ordering::SeqCst);
    let first = pool.checkpoint().unwrap_err().to_string();
    assert!(first.starts_with("a flush failed: flush: Input/output error; writes since"), "{first}");
    assert_eq!(pool.checkpoint().unwrap_err().to_string(), first);
    assert_eq!(pool.store().flushes.load(Ordering::SeqCst), 1);
}

#[test]
fn a_checkpoint_writes_each_dirty_page_once_in_batches() {
    let pool = pool_of(16, "lru", Ace::of(4));
    (0..10).for_each(|page| pool.write(Page(page)).unwrap().fill(3));
    pool.checkpoint().unwrap();
    assert_eq!(*pool.store().batches.lock().unwrap(), [4, 4, 2]);
    pool.checkpoint().unwrap();
    assert_eq!(pool.store().batches.lock().unwrap().len(), 3, "nothing is dirty any more");
    assert_eq!(pool.statistics().checkpoint_pages, 10);
}

#[test]
fn a_page_that_is_held_never_falls_and_a_pool_of_held_pages_refuses_others() {
    for policy in policies() {
        let pool = pool_of(4, policy.name, Ace::of(2));
        pool.write(Page(0)).unwrap().fill(9);
        let pinned = pool.pin(Page(0)).unwrap();
        (1..40).for_each(|page| pool.write(Page(page)).unwrap().fill(1));
        assert_eq!(pinned.read()[0], 9, "{}", policy.name);
        let others: Vec<_> = (50..53).map(|page| pool.pin(Page(page)).unwrap()).collect();
        let refused = pool.read(Page(60)).map(drop).unwrap_err();
        assert!(matches!(refused, PoolError::AllPinned { frames: 4 }), "{}: {refused}", policy.name);
        drop(others);
        assert_eq!(pool.read(Page(60)).unwrap()[0], 0);
        pinned.write().fill(10);
        drop(pinned);
        (1..40).for_each(|page| drop(pool.read(Page(page)).unwrap()));
        assert_eq!(pool.read(Page(0)).unwrap()[0], 10);
    }
}

#[test]
fn a_page_is_kept_back_until_its_log_is_durable() {
    let is_durable = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = Arc::clone(&is_durable);
    let options = BufferPoolOptions {
        before_write: Some(Box::new(move |images| match told.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(format!("the log of page {} is not durable", images[0].page.0)),
        })),
        ..BufferPoolOptions::new(4)
    };
    let pool = BufferPool::new(MemoryStore::new(u64::from(PAGES), BYTES), options).unwrap();
    pool.write(Page(5)).unwrap().fill(5);
    let error = pool.checkpoint().unwrap_err().to_string();
    assert!(error.contains("the log of page 5 is not durable"), "{error}");
    assert_eq!(pool.store().page(5), vec![0; BYTES]);
    is_durable.store(true, Ordering::SeqCst);
    pool.checkpoint().unwrap();
    assert_eq!(pool.store().page(5), vec![5; BYTES]);
}

#[test]
fn pages_that_are_read_ahead_are_read_together_and_are_there() {
    let pool = pool_of(32, "clock-sweep", Ace::CLASSIC);
    (0..20).for_each(|page| pool.write(Page(page)).unwrap().fill(page as u8));
    pool.checkpoint().unwrap();
    let pool = BufferPool::new(pool.into_store(), BufferPoolOptions::new(32)).unwrap();
    pool.read_ahead(&(0..20).map(Page).collect::<Vec<_>>()).unwrap();
    pool.store().reads_until_failure.store(0, Ordering::SeqCst);
    (0..20).for_each(|page| assert_eq!(pool.read(Page(page)).unwrap()[0], page as u8));
    let statistics = pool.statistics();
    assert_eq!((statistics.pages_prefetched, statistics.misses), (20, 0));
    assert!(pool.read_ahead(&[Page(PAGES)]).is_err());
}

#[test]
fn more_pages_than_frames_can_be_asked_for_ahead() {
    let pool = pool_of(6, "lru", Ace::of(3));
    (0..6).for_each(|page| pool.write(Page(page)).unwrap().fill(1));
    pool.read_ahead(&(0..PAGES).map(Page).collect::<Vec<_>>()).unwrap();
    pool.checkpoint().unwrap();
    (0..6).for_each(|page| assert_eq!(pool.store().page(page)[0], 1));
}

#[test]
fn a_new_page_is_zeros_and_not_read() {
    let pool = pool_of(4, "lru", Ace::CLASSIC);
    pool.write(Page(3)).unwrap().fill(8);
    pool.checkpoint().unwrap();
    let pool = BufferPool::new(pool.into_store(), BufferPoolOptions::new(4)).unwrap();
    pool.store().reads_until_failure.store(0, Ordering::SeqCst);
    assert_eq!(pool.write_new(Page(3)).unwrap()[..], [0; BYTES]);
    assert_eq!(pool.store().reads_until_failure.load(Ordering::SeqCst), 0);
}

#[test]
fn a_new_page_that_had_no_room_is_not_there_with_another_ones_bytes() {
    let pool = pool_of(4, "lru", Ace::CLASSIC);
    (0..4).for_each(|page| pool.write(Page(page)).unwrap().fill(page as u8 + 1));
    pool.store().writes_until_failure.store(0, Ordering::SeqCst);
    assert!(matches!(pool.write_new(Page(9)), Err(PoolError::WriteFailed { pages: 1, .. })));
    assert_eq!(pool.read(Page(9)).unwrap()[..], [0; BYTES], "as it is in the store");
    (0..4).for_each(|page| assert_eq!(pool.read(Page(page)).unwrap()[0], page as u8 + 1));
    pool.checkpoint().unwrap();
    assert_eq!((pool.statistics().waiting_pages, pool.statistics().failed_writes), (0, 1));
}

#[test]
fn what_cannot_be_made_or_asked_for_is_refused_in_words() {
    let store = |pages| MemoryStore::new(pages, BYTES);
    let made = |pages, frames| BufferPool::new(store(pages), BufferPoolOptions::new(frames)).map(drop);
    assert_eq!(made(8, 0).unwrap_err().to_string(), "a pool needs at least one frame");
    let too_large = made(8, usize::MAX).unwrap_err().to_string();
    assert!(too_large.ends_with("is too large: a pool has at most 268,435,456 frames, the spare ones included"));
    let pool = pool_of(4, "lru", Ace::CLASSIC);
    let no_such = pool.read(Page(PAGES)).map(drop).unwrap_err().to_string();
    assert_eq!(no_such, "page 64 does not exist: the pool has pages 0 to 63");
}

/// A drive of few blocks, so that it collects garbage.
fn small_drive() -> DeviceConfig {
    let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
    (config.flash.blocks_per_plane, config.flash.pages_per_block) = (13, 4);
    config.ftl.gc.free_superblocks = Some(2);
    config.host.max_transfer_bytes = ByteSize::kib(256).bytes();
    config.controller.write_buffer_bytes = ByteSize::mib(2).bytes();
    config.capacity_bytes = ByteSize::mib(7).bytes();
    config.check("small drive").unwrap();
    config
}

#[test]
fn a_checkpoint_survives_a_power_cut_of_the_drive() {
    for seed in 0..12 {
        let mut drive = SimulatedSsd::new(small_drive(), seed).unwrap();
        drive.allow_power_cuts().unwrap();
        let options = BufferPoolOptions::new(12).with_ace(Ace::of(4));
        let pool = BufferPool::new(DeviceStore::new(drive, 4096).unwrap(), options).unwrap();
        let mut random = Pcg64::seed_from_u64(seed);
        let (mut now, mut durable) = (vec![0_u64; PAGES as usize], vec![0_u64; PAGES as usize]);
        for n in 0..200 + seed * 31 {
            let page = random.next_u64() as u32 % PAGES;
            add_one(&pool, page).unwrap();
            now[page as usize] += 1;
            if n % 60 == 59 {
                pool.checkpoint().unwrap();
                durable.clone_from(&now);
            }
        }
        let mut drive = pool.into_store().into_inner();
        drive.power_cut().unwrap();
        for page in 0..PAGES {
            let buffer = IoBuffer::zeroed(4096);
            let read = Request::read(ByteSize(u64::from(page) * 4096), ByteSize(0)).with_buffer(buffer);
            let found = count_in(&execute(&mut drive, read).unwrap().buffer.unwrap());
            let (least, most) = (durable[page as usize], now[page as usize]);
            assert!((least..=most).contains(&found), "page {page}: {found} is not in {least} to {most}");
        }
    }
}

#[test]
fn a_pool_on_a_file_keeps_what_it_was_given_for_the_next_one() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("pages");
    for page_bytes in [512, 4096, 65_536] {
        let size = ByteSize(u64::from(PAGES) * page_bytes as u64);
        let Ok(store) = FileStore::create(&path, size, page_bytes) else {
            assert_eq!(page_bytes, 512, "some drives have larger blocks");
            std::fs::remove_file(&path).unwrap();
            continue;
        };
        let pool = BufferPool::new(store, BufferPoolOptions::new(12).with_ace(Ace::of(4))).unwrap();
        let expected = hammer(&pool, 4, 400, false);
        pool.checkpoint().unwrap();
        drop(pool);
        let store = FileStore::open(&path, page_bytes).unwrap();
        let pool = BufferPool::new(store, BufferPoolOptions::new(8)).unwrap();
        let found: Vec<u64> = (0..PAGES).map(|page| count_in(&pool.read(Page(page)).unwrap())).collect();
        assert_eq!(found, expected);
        std::fs::remove_file(&path).unwrap();
    }
}
