//! Other stores under the workload of `flashwise study stores`, one run of one store in a directory.
//!
//! ```text
//! cargo build --release --manifest-path benches/stores-beside/Cargo.toml --features rocksdb
//! flashwise study stores --peers benches/stores-beside/target/release/stores-beside      # root: it attaches drives
//! ```
//!
//! `stores-beside names` prints the names. `stores-beside run NAME --directory DIR --keys N --value-bytes N
//! --random-bytes N --seed N --updates N --commit N --cache BYTES` loads the keys, prints `load BYTES COMMITS`, waits
//! for a line, updates them uniformly, and so on, and in the end looks whether the last values are there:
//! `crates/studies/src/stores/peers.rs` has the protocol. Commits are durable. A phase ends when background work has
//! ended.
//!
//! Caches are those of the stores: LMDB has none, and uses the kernel's. The LSM-trees have memtables of 256 KiB, so
//! that their levels are those of a store 256 times as large; no store compresses.

mod fjall;
mod lmdb;
mod ours;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::path::{Path, PathBuf};

use flashwise_store::workload::{Change, Commits, Distribution, KEY_BYTES, Workload};

/// An error of any store.
type Failure = Box<dyn Error>;

/// Memtable of an LSM-tree, bytes: the default of 64 MiB ÷ 256.
const MEMTABLE: u64 = 256 << 10;

/// A store.
trait Peer {
    /// Commits the changes together; they are durable when it returns.
    fn commit(&mut self, changes: &[Change]) -> Result<(), Failure>;

    /// Waits for the end of background work.
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure>;
}

/// Creates a store in a directory, with a cache of so many bytes.
type Open = fn(&Path, u64) -> Result<Box<dyn Peer>, Failure>;

/// All stores.
const PEERS: &[(&str, Open)] = &[
    #[cfg(feature = "rocksdb")]
    ("rocksdb", rocksdb::open),
    ("fjall", fjall::open),
    ("redb", redb::open),
    ("lmdb", lmdb::open),
    ("b-tree-on-ext4", ours::open_tree),
    ("hash-on-ext4", ours::open_hash),
];

/// Commits a phase, and prints what it was.
fn phase(peer: &mut dyn Peer, name: &str, commits: Commits) -> Result<(), Failure> {
    let (mut user, mut count) = (0, 0);
    for changes in commits {
        user += changes.iter().map(|(_, value)| KEY_BYTES + value.len()).sum::<usize>();
        count += 1;
        peer.commit(&changes)?;
    }
    peer.settle()?;
    println!("{name} {user} {count}");
    stdout().flush()?;
    stdin().read_line(&mut String::new())?;
    Ok(())
}

/// The last value of a key must be there, or what it cost says nothing. Every hundredth update is compared.
fn verify(peer: &mut dyn Peer, commits: Commits) -> Result<(), Failure> {
    let last: std::collections::BTreeMap<_, _> = commits.flatten().collect();
    for (key, value) in last.into_iter().step_by(100) {
        if peer.get(&key)?.as_deref() != Some(&value[..]) {
            return Err("a key has lost its last value".into());
        }
    }
    Ok(())
}

fn run(name: &str, options: &[String]) -> Result<(), Failure> {
    let option = |wanted: &str| {
        let found = options.chunks(2).find(|pair| pair[0] == wanted).and_then(|pair| pair.get(1));
        found.ok_or_else(|| format!("{wanted} is missing"))
    };
    let number = |wanted: &str| -> Result<u64, Failure> { Ok(option(wanted)?.parse()?) };
    let (_, open) = PEERS.iter().find(|(known, _)| *known == name).ok_or("no store of that name")?;
    let workload = Workload {
        keys: number("--keys")?,
        value_bytes: number("--value-bytes")? as usize,
        random_bytes: number("--random-bytes")? as usize,
        seed: number("--seed")?,
    };
    let (updates, commit) = (number("--updates")?, number("--commit")?);
    let directory = PathBuf::from(option("--directory")?);
    let mut peer = open(&directory, number("--cache")?)?;
    phase(peer.as_mut(), "load", workload.load())?;
    phase(peer.as_mut(), "uniform", workload.updates(Distribution::Uniform, updates, commit))?;
    phase(peer.as_mut(), "zipf", workload.updates(Distribution::Zipf, updates, commit))?;
    verify(peer.as_mut(), workload.updates(Distribution::Zipf, updates, commit))?;
    println!("verified");
    Ok(stdout().flush()?)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["names"] => PEERS.iter().for_each(|(name, _)| println!("{name}")),
        ["run", name, ..] => run(name, &words[2..])?,
        _ => return Err("usage: stores-beside names | run NAME --directory DIR --keys N …".into()),
    }
    Ok(())
}
