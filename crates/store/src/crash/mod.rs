//! Power cuts, failing requests, full drives, flipped bits and hostile bytes.
//!
//! A history of commits and upkeep runs once on a drive that records every change. A cut is possible after each of
//! them: the drive then has what was flushed, and of the rest any part, torn at 512 bytes or 4 KiB. The store must
//! open, be sound, and hold a state of the history: with every commit that was acknowledged as durable, no commit by
//! half, and nothing that was never committed. Then the history goes on from there, recovery included, and is cut
//! again.

mod bounds;
mod drive;
mod drops;
mod failures;
mod history;
mod model;
mod tables;
mod threads;

pub(crate) use self::drive::locked;
use self::drive::{Bytes, Kept, Random, Record};
use self::history::{Content, ENGINES, History, content, create, kill, open, options};
use crate::faults::{Planted, plant};
use crate::{Engine, Store, StoreOptions};

/// Cuts one after the other, each in the history that follows the one before.
const CUTS_IN_A_ROW: usize = 4;

/// A cut that went wrong.
type Failure = String;

/// Opens a store after a cut and finds its state in the history.
fn recover(
    bytes: Bytes,
    options: &StoreOptions,
    history: &History,
    cut: usize,
) -> Result<(Store, drive::SharedControl, Content), Failure> {
    let (store, control) = open(bytes, options);
    let store = store.map_err(|error| format!("does not open: {error}"))?;
    let found = content(&store).map_err(|error| format!("cannot be read: {error}"))?;
    let state = history.find(&found, cut)?;
    Ok((store, control, history.state(state)))
}

/// Cuts the power at a point of a record, and again in what follows.
fn cut_in_a_row(
    first: (&mut Record, &History, usize),
    options: &StoreOptions,
    random: &mut Random,
    cuts: &mut usize,
) -> Result<(), Failure> {
    let (record, history, cut) = first;
    let kept = Kept::choose(random);
    let image = record.image(cut, kept, random);
    *cuts += 1;
    let words = |failure| format!("cut at event {cut} of {}, {kept:?}: {failure}", record.len());
    let (mut store, mut control, mut state) = recover(image, options, history, cut).map_err(words)?;
    for _ in 1..CUTS_IN_A_ROW {
        let mut next = History::new(random.next(), state);
        let count = random.below(6) as usize;
        next.run(&store, &control, count).map_err(|error| format!("after a cut: {error}"))?;
        if random.below(8) == 0 {
            let check = store.check().map_err(|error| format!("check: {error}"))?;
            if !check.is_sound() {
                return Err(format!("unsound after a cut at event {cut}: {:?}", check.damage));
            }
        }
        if random.below(4) == 0 {
            kill_and_go_on((&mut store, &mut control), &mut next, options, random)?;
        }
        drop(store);
        let mut record = Record::new(&control);
        let cut = random.below(record.len() as u64 + 1) as usize;
        let kept = Kept::choose(random);
        let image = record.image(cut, kept, random);
        *cuts += 1;
        let words = |failure| format!("a later cut at event {cut} of {}, {kept:?}: {failure}", record.len());
        (store, control, state) = recover(image, options, &next, cut).map_err(words)?;
    }
    Ok(())
}

/// The process ends without closing the store, opens it again, and goes on with the history. The drive has its power
/// all the time, and what was not flushed is still in its cache.
fn kill_and_go_on(
    (store, control): (&mut Store, &mut drive::SharedControl),
    history: &mut History,
    options: &StoreOptions,
    random: &mut Random,
) -> Result<(), Failure> {
    let (opened, again) = kill(control, options);
    (*store, *control) = (opened.map_err(|error| format!("does not open after a kill: {error}"))?, again);
    let found = content(store).map_err(|error| format!("cannot be read after a kill: {error}"))?;
    let kept = history.find(&found, usize::MAX)?;
    history.commits.truncate(kept);
    let count = random.below(4) as usize;
    history.run(store, control, count).map_err(|error| format!("after a kill: {error}"))
}

/// The seed of one history that is to be run again, from `FLASHWISE_STORE_SEED`.
fn replayed() -> Option<u64> {
    let seed = std::env::var("FLASHWISE_STORE_SEED").ok()?;
    u64::from_str_radix(seed.trim_start_matches("0x"), 16).ok()
}

/// Runs histories until there were `wanted` cuts: at every event of each, and in rows behind.
fn cut_everywhere(engine: Engine, seed: u64, wanted: usize, step: u64) -> Result<usize, Failure> {
    let mut cuts = 0;
    let mut random = Random(seed);
    while cuts < wanted {
        let own_seed = replayed().unwrap_or_else(|| random.next());
        let mut own = Random(own_seed);
        let options = options(&mut own, engine);
        let (store, control) = create(&options);
        let store = store.map_err(|error| error.to_string())?;
        let created = locked(&control).events.len();
        let mut history = History::new(own.next(), Content::new());
        let commits = 20 + own.below(60) as usize;
        let words = |failure: String| format!("seed {own_seed:#x}, {options:?}: {failure}");
        history.run(&store, &control, commits).map_err(|error| words(error.to_string()))?;
        drop(store);
        let mut record = Record::new(&control);
        let mut cut = created;
        while cut <= record.len() && cuts < wanted {
            cut_in_a_row((&mut record, &history, cut), &options, &mut own, &mut cuts).map_err(words)?;
            cut += 1 + own.below(step) as usize;
        }
    }
    Ok(cuts)
}

fn must_survive(engine: Engine, seed: u64, wanted: usize, step: u64) {
    match cut_everywhere(engine, seed, wanted, step) {
        Ok(cuts) => println!("{engine}: {cuts} power cuts"),
        Err(failure) => panic!("{engine}: {failure}"),
    }
}

#[test]
fn a_power_cut_loses_no_durable_commit_and_none_by_half() {
    ENGINES.into_iter().for_each(|engine| must_survive(engine, 1, 1000, 9));
}

/// An empty drive as the parts of a store see it.
pub(crate) fn empty_disk() -> (crate::medium::Disk, drive::SharedControl) {
    let (drive, control) = drive::Drive::new(history::CAPACITY, Bytes::default());
    (crate::medium::Disk::new(Box::new(crate::medium::DeviceMedium::new(drive).unwrap())), control)
}

/// The log of a new store.
pub(crate) fn empty_log() -> crate::log::Log {
    let options = StoreOptions { log: flashwise_block::ByteSize::mib(1), ..StoreOptions::default() };
    let superblock = crate::superblock::Superblock::new(crate::superblock::Geometry::new(1, &options).unwrap());
    crate::log::Log::new(std::sync::Arc::new(empty_disk().0), &superblock, &crate::log::Scan::default())
}

/// What the opening after a kill finds may be in the drive's cache only, until the opening has flushed it.
#[test]
fn a_power_cut_during_the_opening_after_a_kill_leaves_a_store_that_opens() {
    for (engine, seed) in ENGINES.into_iter().flat_map(|engine| (1..=6).map(move |seed| (engine, seed))) {
        let mut random = Random(seed);
        let options = options(&mut random, engine);
        let (store, control) = create(&options);
        let (store, mut history) = (store.unwrap(), History::new(random.next(), Content::new()));
        history.run(&store, &control, 12).unwrap();
        let mut batch = crate::Batch::new();
        batch.put(&store.keyspace("c").unwrap(), "key", "value");
        store.commit(batch, crate::Durability::Flushed).unwrap();
        let killed = locked(&control).events.len();
        let (opened, control) = kill(&control, &options);
        assert_eq!(opened.unwrap().keyspace("c").unwrap().get("key").unwrap().as_deref(), Some(b"value".as_slice()));
        let mut record = Record::new(&control);
        for cut in (killed..=record.len()).flat_map(|cut| [cut; 4]) {
            let kept = Kept::choose(&mut random);
            let (store, _) = open(record.image(cut, kept, &mut random), &options);
            let found = store.and_then(|store| content(&store));
            let mut found = found.unwrap_or_else(|error| panic!("{engine}, seed {seed}, {cut}, {kept:?}: {error}"));
            found.remove(&("c".to_owned(), b"key".to_vec()));
            history.find(&found, cut).unwrap_or_else(|error| panic!("{engine}, seed {seed}, {cut}, {kept:?}: {error}"));
        }
    }
}

#[test]
#[ignore = "minutes: a hundred thousand cuts, at every event of each history"]
fn a_hundred_thousand_power_cuts_lose_no_durable_commit_and_none_by_half() {
    must_survive(Engine::BTree, 2, 100_000, 1);
}

#[test]
#[ignore = "minutes: the same for the hash"]
fn a_hundred_thousand_power_cuts_of_a_hash_lose_no_durable_commit_and_none_by_half() {
    must_survive(Engine::Hash, 2, 100_000, 1);
}

/// A test of power cuts that does not notice these would be worth nothing.
#[test]
fn each_planted_fault_is_noticed() {
    let faults =
        [Planted::FlushLeftOut, Planted::BaseIgnored, Planted::EpochKept, Planted::GivenBackEarly, Planted::OneDelta];
    let both = faults.into_iter().flat_map(|fault| ENGINES.map(|engine| (engine, fault)));
    for (engine, fault) in both.chain([(Engine::Hash, Planted::BucketsNotLogged)]) {
        plant(Some(fault));
        let noticed = std::panic::catch_unwind(|| cut_everywhere(engine, 3, 20_000, 3));
        plant(None);
        match noticed {
            Ok(Ok(cuts)) => panic!("{engine}: {fault:?} was not noticed in {cuts} power cuts"),
            Ok(Err(failure)) => println!("{engine}: {fault:?}: {failure}"),
            Err(_) => println!("{engine}: {fault:?}: a panic"),
        }
    }
}
