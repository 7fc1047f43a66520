//! Power cuts, failing requests, full drives, flipped bits and hostile bytes.
//!
//! A history of commits and upkeep runs once on a drive that records every change. A cut is possible after each of
//! them: the drive then has what was flushed, and of the rest any part, torn at 512 bytes or 4 KiB. The store must
//! open, be sound, and hold a state of the history: with every commit that was acknowledged as durable, no commit by
//! half, and nothing that was never committed. Then the history goes on from there, recovery included, and is cut
//! again.

mod drive;
mod failures;
mod history;
mod model;
mod tables;
mod threads;

use self::drive::{Bytes, Kept, Random, Record, locked};
use self::history::{Content, ENGINES, History, content, create, open, options};
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
