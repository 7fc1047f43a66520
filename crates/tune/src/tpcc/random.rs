//! TPC-C's random numbers and strings (clauses 2.1.5, 2.1.6, 4.3.2), the same for every run of one seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Letters that strings are cut from.
const POOL: usize = 1 << 16;
/// Syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// How uneven a choice is: the constant `A` of `NURand`, which goes with the range that is chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uneven {
    /// Of 1,000 last names.
    LastName,
    /// Of 3,000 customers of a district.
    Customer,
    /// Of 100,000 items.
    Item,
}

impl Uneven {
    const fn a(self) -> u32 {
        match self {
            Self::LastName => 255,
            Self::Customer => 1023,
            Self::Item => 8191,
        }
    }
}

/// The source of every choice.
pub(crate) struct Source {
    random: Pcg64Mcg,
    pool: String,
    /// The constants `C`, one for each [`Uneven`].
    constants: [u32; 3],
}

impl Source {
    /// For the run, the constant `C` of last names differs from that of loading by a distance that clause 2.1.6.1
    /// allows.
    pub(crate) fn new(seed: u64) -> Self {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let letter = |_| char::from(LETTERS[random.random_range(0..LETTERS.len())]);
        let pool = (0..POOL).map(letter).collect();
        let constants = [Uneven::LastName, Uneven::Customer, Uneven::Item].map(|of| random.random_range(0..=of.a()));
        Self { random, pool, constants }
    }

    /// Chooses the constant of last names again, 65 to 119 away from that of loading, but neither 96 nor 112.
    pub(crate) fn begin_run(&mut self) {
        let distance = match self.uniform(65, 117) {
            96 => 118,
            112 => 119,
            distance => distance,
        };
        self.constants[0] = (self.constants[0] + distance) % (Uneven::LastName.a() + 1);
    }

    /// `first` to `last`, each alike.
    pub(crate) fn uniform(&mut self, first: u32, last: u32) -> u32 {
        self.random.random_range(first..=last)
    }

    /// Whether something happens that does so `percent` times of a hundred.
    pub(crate) fn happens(&mut self, percent: u32) -> bool {
        self.uniform(1, 100) <= percent
    }

    /// `NURand(A, first, last)`.
    pub(crate) fn uneven(&mut self, of: Uneven, first: u32, last: u32) -> u32 {
        let either = u64::from(self.uniform(0, of.a()) | self.uniform(first, last));
        let range = u64::from(last - first) + 1;
        ((either + u64::from(self.constants[of as usize])) % range) as u32 + first
    }

    /// A string of `shortest` to `longest` letters.
    pub(crate) fn text(&mut self, shortest: u32, longest: u32) -> &str {
        let length = self.uniform(shortest, longest) as usize;
        let start = self.random.random_range(0..=POOL - length);
        &self.pool[start..start + length]
    }

    /// A string that in one of ten cases holds the word ORIGINAL.
    pub(crate) fn data(&mut self) -> String {
        let mut text = self.text(26, 50).to_owned();
        if self.happens(10) {
            let place = self.uniform(0, text.len() as u32 - 8) as usize;
            text.replace_range(place..place + 8, "ORIGINAL");
        }
        text
    }

    /// The numbers below `count` in random order.
    pub(crate) fn permutation(&mut self, count: u32) -> Vec<u32> {
        use rand::seq::SliceRandom;
        let mut numbers: Vec<u32> = (1..=count).collect();
        numbers.shuffle(&mut self.random);
        numbers
    }

    /// Puts a deck of cards into random order.
    pub(crate) fn shuffle<T>(&mut self, cards: &mut [T]) {
        use rand::seq::SliceRandom;
        cards.shuffle(&mut self.random);
    }
}

/// The last name of a number below 1,000.
pub(crate) fn last_name(number: u32) -> String {
    [number / 100, number / 10, number].map(|digit| SYLLABLES[(digit % 10) as usize]).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!([last_name(0), last_name(371), last_name(999)], ["BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING"]);
    }

    #[test]
    fn uneven_choices_stay_in_their_range_and_prefer_some_items_by_far() {
        let mut source = Source::new(1);
        let mut million = || {
            let mut counts = vec![0_u32; 100_001];
            for _ in 0..1_000_000 {
                counts[source.uneven(Uneven::Item, 1, 100_000) as usize] += 1;
            }
            counts
        };
        // Which items are hot is decided by other draws than how hot they are: chance would count twice.
        let (ranks, counts) = (million(), million());
        assert_eq!((ranks[0], counts[0]), (0, 0));
        let mut items: Vec<usize> = (1..=100_000).collect();
        items.sort_unstable_by_key(|&item| std::cmp::Reverse(ranks[item]));
        let hottest: u32 = items[..20_000].iter().map(|&item| counts[item]).sum();
        // Leutenegger and Dias, SIGMOD 1993: 84 % of the accesses go to the hottest 20 % of the items.
        assert!((820_000..860_000).contains(&hottest), "{hottest}");
    }

    #[test]
    fn the_constant_of_last_names_moves_as_far_as_the_specification_allows() {
        for seed in 0..200 {
            let mut source = Source::new(seed);
            let before = source.constants[0];
            source.begin_run();
            let distance = (source.constants[0] + 256 - before) % 256;
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112, "{distance}");
        }
    }
}
