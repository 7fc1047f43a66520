//! The workload with which stores are measured: keys are loaded in random order, then their values are replaced, drawn
//! uniformly or by Zipf's law.
//!
//! It is the same for every store, from its seed: same keys, same values, same commits. Benches, examples and the study
//! `stores` use it, also for other engines. Zipf's law is drawn as by YCSB (J. Gray et al., *Quickly Generating
//! Billion-Record Synthetic Databases*, SIGMOD 1994); ranks are spread over the keys.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Changes of a commit while keys are loaded.
pub const LOAD_COMMIT: u64 = 10_000;

/// A key with its new value.
pub type Change = ([u8; KEY_BYTES], Vec<u8>);

/// Which keys are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// All keys equally often.
    Uniform,
    /// By Zipf's law with an exponent of 0.99.
    Zipf,
}

/// Keys and values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Keys that are loaded.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// How many of these bytes are random; the rest are zeros at its end. Half of them compress to half.
    pub random_bytes: usize,
    /// Seed of all choices.
    pub seed: u64,
}

/// Splitmix64 (Sebastiano Vigna).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Ranks by Zipf's law.
#[derive(Clone, Copy, Debug)]
struct Zipf {
    keys: f64,
    alpha: f64,
    eta: f64,
    zeta: f64,
}

/// The law's exponent.
const THETA: f64 = 0.99;

impl Zipf {
    fn new(keys: u64) -> Self {
        let zeta: f64 = (1..=keys).map(|rank| libm::pow(rank as f64, -THETA)).sum();
        let two = 1.0 + libm::pow(0.5, THETA);
        let eta = (1.0 - libm::pow(2.0 / keys as f64, 1.0 - THETA)) / (1.0 - two / zeta);
        Self { keys: keys as f64, alpha: 1.0 / (1.0 - THETA), eta, zeta }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let u = random.unit();
        let uz = u * self.zeta;
        match () {
            () if uz < 1.0 => 0,
            () if uz < 1.0 + libm::pow(0.5, THETA) => 1,
            () => {
                let rank = self.keys * libm::pow(self.eta * u - self.eta + 1.0, self.alpha);
                (rank as u64).min(self.keys as u64 - 1)
            }
        }
    }
}

/// Which key is next.
#[derive(Clone, Debug)]
enum Next {
    /// Each once.
    Order(std::vec::IntoIter<u64>),
    Uniform,
    Zipf(Zipf),
}

/// The commits of a phase, each with its changes. A key may come twice in one.
#[derive(Clone, Debug)]
pub struct Commits {
    workload: Workload,
    next: Next,
    random: Random,
    left: u64,
    per_commit: u64,
}

impl Workload {
    /// The `n`-th key: keys are spread evenly, in no order.
    pub fn key(n: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&Random(n).next().to_be_bytes());
        key[8..].copy_from_slice(&n.to_be_bytes());
        key
    }

    /// Bytes of all keys and values.
    pub fn bytes(&self) -> u64 {
        self.keys * (KEY_BYTES + self.value_bytes) as u64
    }

    /// Each key once, in random order, [`LOAD_COMMIT`] a commit.
    pub fn load(&self) -> Commits {
        let mut random = Random(self.seed);
        let mut order: Vec<u64> = (0..self.keys).collect();
        (1..order.len()).rev().for_each(|n| order.swap(n, (random.next() % (n as u64 + 1)) as usize));
        Commits {
            workload: *self,
            next: Next::Order(order.into_iter()),
            random,
            left: self.keys,
            per_commit: LOAD_COMMIT,
        }
    }

    /// Updates of keys that were loaded, so many a commit.
    pub fn updates(&self, distribution: Distribution, updates: u64, per_commit: u64) -> Commits {
        let (next, phase) = match distribution {
            Distribution::Uniform => (Next::Uniform, 1),
            Distribution::Zipf => (Next::Zipf(Zipf::new(self.keys)), 2),
        };
        // A stream of its own for each phase.
        let random = Random(Random(self.seed ^ (phase << 32)).next());
        Commits { workload: *self, next, random, left: updates, per_commit }
    }

    /// Numbers of keys, uniformly drawn, for reads.
    pub fn reads(&self) -> impl Iterator<Item = u64> + use<> {
        let mut random = Random(Random(self.seed ^ (3 << 32)).next());
        let keys = self.keys;
        std::iter::repeat_with(move || random.next() % keys)
    }

    fn value(&self, random: &mut Random) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        let end = self.random_bytes.min(self.value_bytes);
        for word in value[..end].chunks_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
        }
        value
    }
}

impl Commits {
    fn change(&mut self) -> Option<Change> {
        let keys = self.workload.keys;
        let n = match &mut self.next {
            Next::Order(order) => order.next()?,
            Next::Uniform => self.random.next() % keys,
            Next::Zipf(zipf) => Random(zipf.rank(&mut self.random)).next() % keys,
        };
        Some((Workload::key(n), self.workload.value(&mut self.random)))
    }
}

impl Iterator for Commits {
    type Item = Vec<Change>;

    fn next(&mut self) -> Option<Vec<Change>> {
        let count = self.left.min(self.per_commit.max(1));
        self.left -= count;
        let changes: Vec<Change> = (0..count).map_while(|_| self.change()).collect();
        (!changes.is_empty()).then_some(changes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const WORKLOAD: Workload = Workload { keys: 25_000, value_bytes: 100, random_bytes: 50, seed: 7 };

    #[test]
    fn each_key_is_loaded_once_and_only_those_are_updated() {
        let mut keys: Vec<_> = WORKLOAD.load().flatten().map(|(key, _)| key).collect();
        assert_ne!(keys, {
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            sorted
        });
        keys.sort_unstable();
        let mut all: Vec<_> = (0..WORKLOAD.keys).map(Workload::key).collect();
        all.sort_unstable();
        assert_eq!(keys, all);
        assert_eq!(WORKLOAD.load().map(|commit| commit.len()).collect::<Vec<_>>(), [10_000, 10_000, 5_000]);
        for distribution in [Distribution::Uniform, Distribution::Zipf] {
            let commits: Vec<_> = WORKLOAD.updates(distribution, 2_500, 1_000).collect();
            assert_eq!(commits.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
            assert!(commits.iter().flatten().all(|(key, _)| all.binary_search(key).is_ok()));
            assert_eq!(commits, WORKLOAD.updates(distribution, 2_500, 1_000).collect::<Vec<_>>());
            let other = Workload { seed: 8, ..WORKLOAD };
            assert_ne!(commits, other.updates(distribution, 2_500, 1_000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_have_their_random_bytes_in_front_and_zeros_behind() {
        for (_, value) in WORKLOAD.updates(Distribution::Uniform, 100, 1).flatten() {
            assert!(value.len() == 100 && value[50..].iter().all(|&byte| byte == 0));
            assert!(value[..50].iter().filter(|&&byte| byte == 0).count() < 5);
        }
    }

    #[test]
    fn zipf_draws_the_first_rank_as_often_as_the_law_says() {
        let mut counts = BTreeMap::new();
        for (key, _) in WORKLOAD.updates(Distribution::Zipf, 100_000, 1_000).flatten() {
            *counts.entry(key).or_insert(0_u64) += 1;
        }
        let zeta: f64 = (1..=WORKLOAD.keys).map(|rank| (rank as f64).powf(-THETA)).sum();
        let most = *counts.values().max().unwrap() as f64 / 100_000.0;
        assert!((most * zeta - 1.0).abs() < 0.05, "{most}");
        assert!(counts.len() > 5_000, "{}", counts.len());
    }
}
