//! What must not grow: memory with use, the work of an opening with the store, space beyond the data.

use flashwise_block::{ByteSize, IoBuffer, Request};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use super::drive::{Bytes, Random, locked};
use super::history::{ENGINES, create, kill};
use crate::pages::{PageLayout, Valid};
use crate::{Batch, Durability, Engine, Keyspace, Store, StoreOptions};

fn key(n: u32) -> [u8; 16] {
    (u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).to_be_bytes()
}

#[test]
fn the_cache_is_within_its_bound_again_after_a_batch_of_more_pages() {
    for engine in ENGINES {
        let options = StoreOptions {
            engine,
            page: ByteSize::kib(4),
            log: ByteSize::mib(4),
            cache: ByteSize::kib(4 * 64),
            identity: Some(5),
            ..StoreOptions::default()
        };
        let (store, _) = create(&options);
        let store = store.unwrap();
        let keyspace = store.keyspace("k").unwrap();
        let mut batch = Batch::new();
        (0..2_000).for_each(|n| batch.put(&keyspace, key(n), [n as u8; 300]));
        store.commit(batch, Durability::Synced).unwrap();
        assert!(store.stats().cached_pages <= 64, "{engine}: {} pages are cached", store.stats().cached_pages);
        for n in 0..2_000 {
            assert_eq!(keyspace.get(key(n)).unwrap().unwrap(), [n as u8; 300]);
        }
        let cached = store.stats().cached_pages;
        assert!(cached <= 64, "{engine}: {cached} pages are cached");
    }
}

/// Commits until the log is half full, by batches of 40 keys out of `keys`.
fn update(store: &Store, keyspace: &Keyspace, keys: u32, batches: usize, random: &mut Random) {
    for _ in 0..batches {
        let mut batch = Batch::new();
        for _ in 0..40 {
            let mut value = vec![0; 128];
            value[..64].chunks_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
            batch.put(keyspace, key(random.below(u64::from(keys)) as u32), value);
        }
        store.commit(batch, Durability::Synced).unwrap();
    }
}

fn fill(store: &Store, keys: u32) -> Keyspace {
    let keyspace = store.keyspace("k").unwrap();
    for part in 0..keys / 100 {
        let mut batch = Batch::new();
        (0..100).for_each(|n| batch.put(&keyspace, key(part * 100 + n), [part as u8; 128]));
        store.commit(batch, Durability::Buffered).unwrap();
    }
    store.sync().unwrap();
    keyspace
}

/// The bound on the time of a restart, as bytes: the log, the superblocks, the reserve's ends, the maps, the catalog.
#[test]
fn an_opening_after_a_kill_reads_the_log_and_hardly_anything_else_whatever_the_store_holds() {
    for engine in ENGINES {
        let read = [1_000, 12_000].map(|keys| {
            let log = ByteSize::mib(1);
            let options = StoreOptions { engine, log, cache: ByteSize::kib(256), ..StoreOptions::default() };
            let (store, control) = create(&options);
            let store = store.unwrap();
            let keyspace = fill(&store, keys);
            update(&store, &keyspace, keys, 60, &mut Random(1));
            let pages = store.stats().pages;
            let (opened, _) = kill(&control, &options);
            let io = opened.unwrap().stats().io;
            println!("{engine}: {pages} pages, an opening reads {} in {} requests", io.read_bytes, io.reads);
            assert!(io.read_bytes <= log + ByteSize::kib(128), "{engine}, {pages} pages: {io:?}");
            io.read_bytes
        });
        assert!(read[1] <= read[0] + ByteSize::kib(64), "{engine}: {read:?}");
    }
}

/// Bytes that a drive with compression needs for blocks.
fn physical(blocks: impl Iterator<Item = (u64, Vec<u8>)>) -> u64 {
    let text = include_str!("../../../../examples/compressing.toml");
    let mut config = DeviceConfig::from_toml(text, "compressing.toml").unwrap();
    config.reduction.iter_mut().for_each(|reduction| reduction.deduplication = None);
    let mut drive = SimulatedSsd::new(config, 1).unwrap();
    for (offset, bytes) in blocks {
        let length = ByteSize(bytes.len() as u64);
        let request = Request::write(ByteSize(offset), length).with_buffer(IoBuffer::copy_of(&bytes));
        flashwise_block::execute(&mut drive, request).unwrap();
    }
    flashwise_block::execute(&mut drive, Request::flush()).unwrap();
    drive.space_use().unwrap().physical_bytes
}

/// The pages of a store as they would be written whole, and nothing besides.
fn live(bytes: &Bytes, layout: &PageLayout, pages: u64) -> Vec<(u64, Vec<u8>)> {
    let mut live = Vec::new();
    for page in 0..pages {
        let mut area = vec![0; layout.area_bytes() as usize];
        bytes.read(layout.area(page), &mut area);
        if let Some(state) = layout.load(page, &area, Valid::Unknown).state {
            let mut image = state.bytes.to_vec();
            layout.seal(page, state.lsn, &mut image);
            live.push((layout.area(page), image));
        }
    }
    live
}

/// Both deltas of a page are what it takes beyond its compressed image: the last one, and the one before.
#[test]
fn updates_leave_a_bounded_share_more_on_a_drive_that_compresses_than_the_pages_need() {
    for (engine, most) in [(Engine::BTree, 1.35), (Engine::Hash, 2.0)] {
        let defaults = if engine == Engine::Hash { StoreOptions::hash() } else { StoreOptions::default() };
        let options = StoreOptions { log: ByteSize::mib(1), cache: ByteSize::kib(512), identity: Some(3), ..defaults };
        let (store, control) = create(&options);
        let store = store.unwrap();
        const KEYS: u32 = 12_000;
        let keyspace = fill(&store, KEYS);
        update(&store, &keyspace, KEYS, 400, &mut Random(2));
        // Slots that wait are a bounded number of pages, whatever the store holds.
        store.checkpoint().unwrap();
        let layout = store.shared.pages.cache.layout;
        let bytes = locked(&control).bytes.clone();
        let is_page = |block: &u64| block * 4096 >= layout.area(0);
        let all = bytes.stored().into_iter().filter(is_page).map(|block| {
            let mut content = vec![0; 4096];
            bytes.read(block * 4096, &mut content);
            (block * 4096, content)
        });
        let pages = layout.pages_in(super::history::CAPACITY.0);
        let (all, live) = (physical(all), physical(live(&bytes, &layout, pages).into_iter()));
        let ratio = all as f64 / live as f64;
        let (all, live, threshold) = (ByteSize(all), ByteSize(live), store.stats().delta_threshold);
        println!("{engine}: pages take {all} on the drive, and need {live}: {ratio:.3}, T {threshold}");
        assert!(ratio <= most, "{engine}: {ratio}");
    }
}
