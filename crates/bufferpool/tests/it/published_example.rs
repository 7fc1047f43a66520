//! The worked example of the ACE authors, step by step.
use std::collections::BTreeSet;
use std::sync::Arc;

use flashwise_bufferpool::{
    Access, Ace, AnyPool, Directory, Found, Page, PolicySpec, PoolOptions, Prefetch, Shape, Storage,
};

/// What was asked of the drive.
#[derive(Default, Debug, PartialEq)]
struct Asked {
    written: Vec<u32>,
    evicted: Vec<u32>,
    read: Vec<u32>,
}

fn numbers(pages: &[Page]) -> Vec<u32> {
    pages.iter().map(|page| page.0).collect()
}

impl Storage for Asked {
    fn write(&mut self, pages: &[Page]) -> Result<(), String> {
        self.written = numbers(pages);
        Ok(())
    }

    fn read(&mut self, pages: &[Page]) -> Result<(), String> {
        self.read = numbers(pages);
        Ok(())
    }

    fn evicted(&mut self, page: Page) {
        self.evicted.push(page.0);
    }
}

/// Pages that the example names, and those that a stream behind page 1 continues with.
const PAGES: u32 = 16;

/// LRU with seven frames: 8 6 2 3 5 7 4 from the last used to the first, of which 2, 5 and 4 are dirty.
fn pool(ace: Ace, prefetch: Prefetch) -> Box<dyn AnyPool> {
    let shape = Shape { frames: 7, pages: PAGES as usize, blocks: [].into() };
    // What is behind page 1 are pages 9 and 10; nothing else has a neighbour.
    let next: Vec<u32> = (0..PAGES).map(|page| [u32::MAX, 9][usize::from(page == 1)]).collect();
    let mut next = next;
    (next[9], next[12]) = (10, 1);
    let options = PoolOptions { ace, prefetch, next_pages: Arc::from(next) };
    let mut pool = PolicySpec::parse("lru").unwrap().pool(&shape, &options).unwrap();
    if prefetch == Prefetch::Sequential {
        // Page 12 is before page 1, so that page 1 continues with a stream.
        pool.access_on(Access::new(Page(12), false), &mut ()).unwrap();
    }
    for (page, is_dirty) in [(4, true), (7, false), (5, true), (3, false), (2, true), (6, false), (8, false)] {
        pool.access_on(Access::new(Page(page), is_dirty), &mut ()).unwrap();
    }
    pool
}

/// The order in which pages are evicted, found by reading pages that nobody has seen.
fn fall_of(mut pool: Box<dyn AnyPool>) -> Vec<u32> {
    let resident = pool.directory().resident();
    let mut asked = Asked::default();
    let unseen =
        (0..PAGES).filter(|&page| matches!(pool.directory().find(Page(page)), flashwise_bufferpool::Found::Unknown));
    for page in unseen.collect::<Vec<_>>().into_iter().take(resident) {
        pool.access_on(Access::new(Page(page), false), &mut asked).unwrap();
    }
    asked.evicted
}

#[test]
fn the_classic_pool_writes_the_victim_and_evicts_it() {
    let (mut pool, mut asked) = (pool(Ace::CLASSIC, Prefetch::None), Asked::default());
    pool.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    assert_eq!(asked, Asked { written: vec![4], evicted: vec![4], read: vec![1] });
    assert_eq!(fall_of(pool), [7, 5, 3, 2, 6, 8, 1]);
}

#[test]
fn ace_writes_the_next_dirty_pages_with_it_and_evicts_the_victim_alone() {
    let (mut pool, mut asked) = (pool(Ace::of(3), Prefetch::None), Asked::default());
    pool.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    assert_eq!(asked, Asked { written: vec![4, 5, 2], evicted: vec![4], read: vec![1] });
    assert_eq!(pool.directory().dirty(), 1, "page 1, which was written now");
    assert_eq!(fall_of(pool), [7, 5, 3, 2, 6, 8, 1]);
}

#[test]
fn with_prefetching_it_evicts_as_many_pages_and_reads_as_many_which_fall_first() {
    let (mut pool, mut asked) = (pool(Ace::of(3), Prefetch::Sequential), Asked::default());
    pool.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    let Asked { written, mut evicted, read } = asked;
    evicted.sort_unstable();
    assert_eq!((written, evicted, read), (vec![4, 5, 2], vec![4, 5, 7], vec![1, 9, 10]));
    assert_eq!(fall_of(pool), [10, 9, 3, 2, 6, 8, 1]);
}

#[test]
fn cow_takes_dirty_pages_among_the_next_positions_only_and_e_evicts_all_of_them() {
    use flashwise_bufferpool::Reach;
    let near = Ace { reach: Reach::Positions, ..Ace::of(3) };
    let (mut cow, mut asked) = (pool(near, Prefetch::None), Asked::default());
    cow.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    assert_eq!(asked, Asked { written: vec![4, 5], evicted: vec![4], read: vec![1] }, "4, 7 and 5 are three positions");
    let several = Ace { evict: Some(3), ..Ace::of(3) };
    assert_eq!((near.name(), several.name()), ("COW(3)".to_owned(), "COW-X(3,E)".to_owned()));
    let (mut all, mut asked) = (pool(several, Prefetch::None), Asked::default());
    all.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    asked.evicted.sort_unstable();
    assert_eq!((asked.written, asked.evicted, asked.read), (vec![4, 5, 2], vec![4, 5, 7], vec![1]));
    assert_eq!(all.directory().resident(), 5);
}

#[test]
fn a_clean_victim_falls_alone() {
    let (mut pool, mut asked) = (pool(Ace::of(3), Prefetch::Sequential), Asked::default());
    pool.access_on(Access::new(Page(4), false), &mut asked).unwrap();
    pool.access_on(Access::new(Page(1), true), &mut asked).unwrap();
    assert_eq!(asked, Asked { written: vec![], evicted: vec![7], read: vec![1] });
}

fn dirty_pages(directory: &Directory) -> BTreeSet<u32> {
    let is_dirty = |page: &u32| match directory.find(Page(*page)) {
        Found::Resident(entry) => directory.is_dirty(entry),
        _ => false,
    };
    (0..40).filter(is_dirty).collect()
}

#[test]
fn a_failed_write_back_keeps_every_page_and_its_changes() {
    struct Broken;
    impl Storage for Broken {
        fn write(&mut self, _: &[Page]) -> Result<(), String> {
            Err("no space left".to_owned())
        }
    }
    let ways = [Ace::CLASSIC, Ace::of(3)];
    for (policy, ace) in flashwise_bufferpool::policies().iter().flat_map(|policy| ways.map(|ace| (policy, ace))) {
        let shape = Shape { frames: 4, pages: 40, blocks: [].into() };
        let options = PoolOptions { ace, ..PoolOptions::default() };
        let mut pool = PolicySpec::parse(policy.name).unwrap().pool(&shape, &options).unwrap();
        // Ghosts first, so that pages which a policy remembers are among those that fail.
        for page in (0..8).chain(20..24) {
            pool.access_on(Access::new(Page(page), page >= 20), &mut ()).unwrap();
        }
        let mut failures = 0;
        for page in 0..20 {
            if pool.directory().find(Page(page)) != Found::Unknown {
                continue;
            }
            let before = dirty_pages(pool.directory());
            let told = pool.access_on(Access::new(Page(page), true), &mut Broken);
            let after = dirty_pages(pool.directory());
            match told {
                Ok(()) => assert!(before.is_subset(&after), "{}: {before:?} {after:?}", policy.name),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("no space left; they stay dirty"), "{}: {error}", policy.name);
                    assert_eq!(before, after, "{}", policy.name);
                    failures += 1;
                }
            }
            assert_eq!(pool.directory().resident(), 4, "{}", policy.name);
        }
        assert!(failures > 0, "{}", policy.name);
        // The drive is back, and the pool works as before.
        (0..40).for_each(|page| pool.access_on(Access::new(Page(page), page % 2 == 0), &mut ()).unwrap());
        assert_eq!(pool.directory().resident(), 4, "{}", policy.name);
    }
}
