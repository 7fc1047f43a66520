//! What is claimed, beside what is measured.

use flashwise_block::grouped;
use flashwise_report::study::{Measured, StudyClaim};
use flashwise_store::{Engine, LogForm};

use super::case::{COMMIT, Case, Outcome, QUICK_COMMIT, Side};
use super::factors::{self, FILLS, THRESHOLDS};
use super::runs::Runs;
use crate::verdict::verdict;

const TREE: Side = Side::Ours(Engine::BTree);
const HASH: Side = Side::Ours(Engine::Hash);

/// The store that is the published comparison: an LSM-tree.
const LSM: &str = "rocksdb";

fn uniform(outcome: &Outcome) -> f64 {
    outcome.uniform.flash / outcome.uniform.user.max(1.0)
}

fn zipf(outcome: &Outcome) -> f64 {
    outcome.zipf.flash / outcome.zipf.user.max(1.0)
}

fn words(of: Option<Measured>) -> String {
    of.map_or_else(|| "not measured".to_owned(), |measured| measured.words())
}

fn commits(side: &Side, commit: u64) -> Case {
    Case { commit, ..Case::base(side.clone()) }
}

/// Claims on the runs.
pub(super) fn all(runs: &Runs, sides: &[Side], is_quick: bool) -> Vec<StudyClaim> {
    let several = if is_quick { QUICK_COMMIT } else { COMMIT };
    let mut all = vec![against_plain_tree(runs, several), hash(runs, several)];
    if !is_quick {
        all.extend([
            smaller_values(runs),
            sparse_log(runs),
            published_threshold(runs),
            published_fill(runs),
            compressible(runs),
        ]);
    }
    all.extend(sides.contains(&Side::Peer(LSM.to_owned())).then(|| against_lsm(runs, is_quick)));
    all
}

fn against_plain_tree(runs: &Runs, several: u64) -> StudyClaim {
    let parts = [several, 1].map(|commit| {
        let of = |side: Side| runs.median(&commits(&side, commit), uniform);
        (commit, of(Side::Sqlite), of(TREE))
    });
    let ratios: Vec<f64> = parts.iter().filter_map(|(_, plain, tree)| Some((*plain)?.value / (*tree)?.value)).collect();
    let measured = parts.map(|(commit, plain, tree)| {
        format!("commits of {}: SQLite {}, B⁻-tree {}", grouped(commit), words(plain), words(tree))
    });
    StudyClaim {
        claim: "A B⁻-tree writes less than a tenth of what a plain B+-tree writes to a drive that compresses."
            .to_owned(),
        measured: format!(
            "Flash bytes for each user byte, uniform: {}; that is {}.",
            measured.join("; "),
            ratios.iter().map(|ratio| format!("1 ÷ {ratio:.1}")).collect::<Vec<_>>().join(" and ")
        ),
        verdict: verdict(
            !ratios.is_empty() && ratios.iter().all(|ratio| *ratio > 10.0),
            ratios.iter().any(|ratio| *ratio > 2.0),
        ),
        because: "SQLite stands for the plain tree: it writes a page to its log and again to the database. The \
                  published comparison is with WiredTiger, whose log is packed."
            .to_owned(),
    }
}

fn smaller_values(runs: &Runs) -> StudyClaim {
    let of = |value_bytes| runs.median(&Case { value_bytes, ..Case::base(TREE) }, uniform);
    let (long, short) = (of(128), of(32));
    let ratio = long.zip(short).map(|(long, short)| short.value / long.value);
    StudyClaim {
        claim: "Shorter records cost more: 28 for each user byte with records of 32 bytes, 8 with 128.".to_owned(),
        measured: format!("Values of 128 bytes {}, of 32 bytes {}.", words(long), words(short)),
        verdict: verdict(
            ratio.is_some_and(|ratio| (2.5..5.0).contains(&ratio)),
            ratio.is_some_and(|ratio| ratio > 1.2),
        ),
        because: "An update writes at least the segments that it touches, however short it is. Here a key of 16 bytes \
                  is counted with each value; whether the published records include it is not known."
            .to_owned(),
    }
}

fn hash(runs: &Runs, several: u64) -> StudyClaim {
    let parts = [several, 1].map(|commit| {
        let of = |side: Side| runs.median(&commits(&side, commit), uniform);
        (grouped(commit), of(HASH), of(TREE))
    });
    let is_less = |(_, hash, tree): &(String, Option<Measured>, Option<Measured>)| {
        hash.zip(*tree).is_some_and(|(hash, tree)| hash.high < tree.low)
    };
    StudyClaim {
        claim: "A hash without a table writes less than a tree, with hardly any memory.".to_owned(),
        measured: parts
            .iter()
            .map(|(name, hash, tree)| format!("commits of {name}: hash {}, B⁻-tree {}", words(*hash), words(*tree)))
            .collect::<Vec<_>>()
            .join("; "),
        verdict: verdict(parts.iter().all(is_less), parts.iter().any(is_less)),
        because: "A bucket holds few records, so an update writes little beside the record. The abstract gives no \
                  figure."
            .to_owned(),
    }
}

fn sparse_log(runs: &Runs) -> StudyClaim {
    let of = |form, commit| runs.median(&factors::idea(commit, form, true), uniform);
    let gains = [1, 1_000].map(|commit| {
        let (packed, sparse) = (of(LogForm::Packed, commit), of(LogForm::Sparse, commit));
        (commit, packed, sparse)
    });
    let saves = |(_, packed, sparse): &(u64, Option<Measured>, Option<Measured>)| {
        packed.zip(*sparse).is_some_and(|(packed, sparse)| sparse.high < packed.low)
    };
    StudyClaim {
        claim: "A sparse log writes each record to flash once, a packed one as often as commits share its block."
            .to_owned(),
        measured: gains
            .iter()
            .map(|(commit, packed, sparse)| {
                format!("commits of {}: packed {}, sparse {}", grouped(*commit), words(*packed), words(*sparse))
            })
            .collect::<Vec<_>>()
            .join("; "),
        verdict: verdict(saves(&gains[0]), gains.iter().any(saves)),
        because: "With long commits blocks are full in either form, and the forms differ little.".to_owned(),
    }
}

fn published_threshold(runs: &Runs) -> StudyClaim {
    let of = |bytes| {
        let case = factors::threshold(bytes, Case::base(TREE));
        (runs.median(&case, uniform), runs.median(&case, zipf))
    };
    let all = THRESHOLDS.map(|bytes| (bytes, of(Some(bytes))));
    let published = of(Some(2_048));
    let least = all.iter().filter_map(|(bytes, (uniform, _))| Some((*bytes, (*uniform)?.value)));
    let best = least.min_by(|a, b| a.1.total_cmp(&b.1));
    let (uniform, zipf) = published;
    let adapted = of(None);
    StudyClaim {
        claim: "A threshold T of 2 KiB is the best between flash bytes and space.".to_owned(),
        measured: format!(
            "Uniform and Zipf: 2 KiB {} and {}; least at {} B, uniform: {:.2}; adapted by the store {} and {}.",
            words(uniform),
            words(zipf),
            best.map_or(0, |(bytes, _)| bytes),
            best.map_or(0.0, |(_, value)| value),
            words(adapted.0),
            words(adapted.1)
        ),
        verdict: verdict(best.is_some_and(|(bytes, _)| bytes == 2_048), false),
        because:
            "A delta grows by the segments of each update until it exceeds T, and is written again each time: the \
                  larger T, the larger the average delta, and the rarer whole pages. Where the sum is least depends on \
                  the records and on how they compress."
                .to_owned(),
    }
}

fn published_fill(runs: &Runs) -> StudyClaim {
    let of = |percent| runs.median(&factors::fill(percent, Case::base(HASH)), uniform);
    let all = FILLS.map(|percent| (percent, of(percent)));
    let [first, .., last] = all;
    let ratio = first.1.zip(last.1).map(|(empty, full)| full.value / empty.value);
    StudyClaim {
        claim: "Empty space in pages is free on such a drive, so that pages need no dense filling.".to_owned(),
        measured: all
            .iter()
            .map(|(percent, measured)| format!("buckets filled to {percent} %: {}", words(*measured)))
            .collect::<Vec<_>>()
            .join("; "),
        verdict: verdict(ratio.is_some_and(|ratio| ratio > 2.0), ratio.is_some_and(|ratio| ratio > 1.0)),
        because: "Less than free: an update writes what shares its bucket, so emptier buckets cost fewer flash bytes. \
                  The public code fills its pages until 8 % of the records do not fit."
            .to_owned(),
    }
}

fn compressible(runs: &Runs) -> StudyClaim {
    let of = |side: Side, tenths| runs.median(&factors::compressibility(tenths, Case::base(side)), uniform);
    let parts = [TREE, HASH].map(|side| (side.to_string(), of(side.clone(), 10), of(side, 80)));
    let falls = |(_, noise, words): &(String, Option<Measured>, Option<Measured>)| {
        noise.zip(*words).is_some_and(|(noise, words)| words.high < noise.low)
    };
    StudyClaim {
        claim: "The better data compress, the less is written.".to_owned(),
        measured: parts
            .iter()
            .map(|(name, noise, zeros)| format!("{name}: 1:1 {}, 8:1 {}", words(*noise), words(*zeros)))
            .collect::<Vec<_>>()
            .join("; "),
        verdict: verdict(parts.iter().all(falls), parts.iter().any(falls)),
        because: "Keys, checksums and page headers do not compress with the values.".to_owned(),
    }
}

fn against_lsm(runs: &Runs, is_quick: bool) -> StudyClaim {
    let lsm = Side::Peer(LSM.to_owned());
    let lengths: &[u64] = if is_quick { &[QUICK_COMMIT, 1] } else { &[COMMIT, 100, 1] };
    let of = |side: &Side, commit| runs.median(&commits(side, commit), uniform);
    let parts: Vec<_> = lengths.iter().map(|&commit| (commit, of(&lsm, commit), of(&TREE, commit))).collect();
    let is_below = |(_, lsm, tree): &(u64, Option<Measured>, Option<Measured>)| {
        lsm.zip(*tree).is_some_and(|(lsm, tree)| tree.value <= lsm.value)
    };
    StudyClaim {
        claim: "A B⁻-tree writes about as little as an LSM-tree, or less.".to_owned(),
        measured: parts
            .iter()
            .map(|(commit, lsm, tree)| {
                format!("commits of {}: RocksDB {}, B⁻-tree {}", grouped(*commit), words(*lsm), words(*tree))
            })
            .collect::<Vec<_>>()
            .join("; "),
        verdict: verdict(parts.iter().all(is_below), parts.iter().any(is_below)),
        because: "RocksDB's levels are those of a store 256 times as large, by its memtable of 256 KiB.".to_owned(),
    }
}
