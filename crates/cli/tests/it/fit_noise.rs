//! `fit sqlite` in a directory that others write to, where no candidate can differ from the present settings.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::Place;

const FITS: usize = 50;
/// An interval at 99 % and a threshold of 1 % announce fewer than one of fifty; more than two are unlikely.
const ANNOUNCED_MAX: usize = 2;
/// Reads by key, which reading ahead in key order does not change, and every third time an update in a log.
const STATEMENTS: usize = 300;
const ROWS: usize = 100_000;

/// What does change something here is left alone.
const SKIPPED: [&str; 11] = [
    "page_size",
    "cache_size",
    "journal_mode",
    "log-sync",
    "use-hot-locations",
    "write-aligned-stripes",
    "contain-write-in-flash-page",
    "sparse-log",
    "atomic-batch",
    "concurrent-write-back",
    "discard",
];

fn place() -> Place {
    let place = Place::with_profile();
    let rows = format!(
        "PRAGMA journal_mode = wal; CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
         WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {ROWS})
         INSERT INTO t SELECT x, hex(zeroblob(50)) FROM n"
    );
    rusqlite::Connection::open(place.path("app.db")).unwrap().execute_batch(&rows).unwrap();
    let key = |n: usize| 1 + n * 7_919 % ROWS;
    let statement = |n: usize| {
        let update = format!("UPDATE t SET v = 'value {n}' WHERE k = {};\n", key(n + 1));
        format!("SELECT v FROM t WHERE k = {};\n{}", key(n), if n.is_multiple_of(3) { update } else { String::new() })
    };
    place.write("app.sql", &(0..STATEMENTS).map(statement).collect::<String>());
    std::fs::create_dir(place.path("on")).unwrap();
    place
}

/// Writes, syncs and computes until it is over.
fn disturb(file: &Path, is_over: &AtomicBool) {
    let block = vec![1; 1 << 20];
    let mut turn = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        std::fs::write(file, &block[..block.len() >> (turn % 5)]).unwrap();
        std::fs::File::open(file).unwrap().sync_all().unwrap();
        let sum = (0..turn % 7 * 1_000_000).fold(turn, |sum, n| sum.rotate_left(3) ^ n);
        turn += 1 + (sum & 1);
    }
}

/// Ends what disturbs, also when a fit fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "half an hour: make test-full runs it"]
fn of_fifty_fits_of_equal_candidates_on_a_noisy_directory_two_at_most_announce_a_gain() {
    let place = place();
    let is_over = AtomicBool::new(false);
    let announced: usize = thread::scope(|scope| {
        let _end = End(&is_over);
        for name in ["noise-1", "noise-2", "noise-3"] {
            let (file, is_over) = (place.path(name), &is_over);
            scope.spawn(move || disturb(&file, is_over));
        }
        let fit = |seed: usize| {
            let seed = seed.to_string();
            let words = ["fit", "sqlite", "app.db", "--sql", "app.sql", "--profile", "p.toml", "--on", "on"];
            let more = ["--time-budget", "30s", "--report", "r", "-o", "json", "--seed", &seed];
            let skipped = SKIPPED.into_iter().flat_map(|name| ["--skip", name]);
            let words: Vec<&str> = words.into_iter().chain(more).chain(skipped).collect();
            let document = place.run(&words).expect(0).document();
            assert!(!document["candidates"].as_array().unwrap().is_empty(), "something was tried");
            println!("seed {seed}: {}", document["gains"][0]);
            usize::from(!document["gain"].is_null())
        };
        (1..=FITS).map(fit).sum()
    });
    assert!(announced <= ANNOUNCED_MAX, "{announced} of {FITS}");
}
