//! Whether a chunk moves through one channel, and two of them through two.
//!
//! A period of places tells that something repeats, and not what. A chunk is a run of blocks on one channel: reads
//! within one take twice as long to move for twice the data, and a read that two channels share saves the time of its
//! second half. What repeats otherwise is a row of chunks, a stripe, a page. Times of the sweeps of `location.rs` tell
//! by how much.
//!
//! Source: the definition of the chunk is that of Kakaraparthy et al., PVLDB 13(4), 2019; these tests are our own.

use flashwise_block::ByteSize;

use crate::stats::{Samples, best_period, fold, median};

use super::sweep::{Swept, ends};

/// Whether reads of parts of what may be a chunk move their data through several channels: a channel takes twice as
/// long for twice as much, and what else longer reads wait for, senses and dies, is added to that. They do where twice
/// as much takes hardly more time, or where a second block takes none and two more do.
pub(super) fn lies_on_several(sweeps: &[Swept], chunk: ByteSize) -> bool {
    let Some(step) = sweeps.first().map(|swept| swept.sweep.step) else { return false };
    let of_length = |read: ByteSize| sweeps.iter().find(|swept| swept.sweep.step == step && swept.sweep.read == read);
    let lengths = std::iter::successors(Some(step), |&read| Some(read * 2)).take_while(|&read| read * 2 <= chunk);
    // Of all pages: the levels of longer reads are those of fast pages.
    let usual = |swept: &Swept| median(swept.points.iter().map(Samples::median).collect());
    let times: Vec<f64> = lengths.map_while(of_length).map(usual).collect();
    let more: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let says_something = |n: &usize| {
        let next = more.get(n + 1).map_or(0.0, |next| next / 2.0);
        more[*n] >= (TWICE_AS_LONG_SHARE * next).max(MORE_TIME_SHARE * times[0])
    };
    let Some(longer) = (0..more.len()).find(says_something) else { return false };
    if longer > 0 {
        let half_ns = times[longer] + more[longer] / 2.0;
        let pair = of_length(step * (1 << longer)).zip(of_length(step * (2 << longer)));
        return pair.is_some_and(|(alike, longer)| begins_to_take_longer(alike, longer, half_ns));
    }
    (1..more.len()).any(|n| more[n] < TWICE_AS_LONG_SHARE * more[0] * (1_u64 << n) as f64)
}

/// Whether reads take as long as those of a single block from nearly every start, and those twice as long take longer
/// from nearly every start. Of one channel that moves several blocks as a whole, as many as the first ask for and three
/// more, the others too would find a start from which all they ask for is in one of those.
fn begins_to_take_longer(alike: &Swept, longer: &Swept, half_ns: f64) -> bool {
    let share_longer = |swept: &Swept| {
        let is_longer = |at: &&Samples| at.median() >= half_ns;
        swept.points.iter().filter(is_longer).count() as f64 / swept.points.len() as f64
    };
    share_longer(alike) <= HARDLY_ANY_SHARE && share_longer(longer) >= 1.0 - HARDLY_ANY_SHARE / 2.0
}

/// Share of the time of the shortest read by which the next must be longer for that to say something.
const MORE_TIME_SHARE: f64 = 0.01;
/// Share of twice the time that twice the data take on one channel, at least; the rest is noise.
const TWICE_AS_LONG_SHARE: f64 = 0.6;

/// Share of the starts that are hardly any: where two blocks cross the border of what is moved whole from a fourth of
/// the starts or less, that is four blocks or more, and reads of four blocks cross none from one start of as many at
/// least.
const HARDLY_ANY_SHARE: f64 = 0.25;

/// Of the time that the second half of a read as long as a chunk takes, the share that the best place saves: all of it
/// where both halves are moved at once by two channels. `None` where such reads were not made.
pub(super) fn share_saved(sweeps: &[Swept], chunk: ByteSize) -> Option<f64> {
    let step = sweeps.first()?.sweep.step;
    let of_length = |read: ByteSize| sweeps.iter().find(|swept| swept.sweep.step == step && swept.sweep.read == read);
    let (half, whole) = (of_length(ByteSize(chunk.bytes() / 2))?, of_length(chunk)?);
    let (low, high) = ends(&fold(&whole.levels(), (chunk / step) as usize));
    Some((high - low) / (high - median(half.levels())).max(1.0))
}

/// Share of the time of its second half that a read of a chunk saves at the best place, below which the chunk is not
/// certain.
pub(super) const SAVES_LITTLE_SHARE: f64 = 0.2;
/// The same share from which on a rival may be the chunk.
pub(super) const SAVES_ENOUGH_SHARE: f64 = 0.35;

/// Whether what single blocks show is that two of them are moved one after the other, as by one channel: reads within a
/// block are the fastest, and others take longer by more than a link needs for a block.
pub(super) fn moves_one_by_one(swept: &Swept) -> bool {
    let levels = swept.levels();
    let folded = fold(&levels, best_period(&levels).0);
    let (low, _) = ends(&folded);
    low == folded[0] && median(folded) - low >= CHANNEL_NS
}

/// What a fast channel takes for 4 KiB, ns: 1.2 GB/s (ONFI 4.1, NV-DDR3).
const CHANNEL_NS: f64 = 3_413.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::sweep::Sweep;

    const BLOCK: ByteSize = ByteSize::kib(4);

    fn swept(read: ByteSize, step: ByteSize, latency: impl Fn(u64) -> u64) -> Swept {
        let window = ByteSize::mib(1);
        let sweep = Sweep { read, step, window, turn: window, reads_a_start: 9, smallest_effect: 0.005 };
        Swept::of_starts(sweep, (0..sweep.places() as u64).map(|n| vec![latency(n); 9]).collect(), None)
    }

    /// What a read of so many blocks takes whose chunks are so many blocks long, of a drive with so many channels, each
    /// of which moves a block in 5 µs.
    fn through_channels(chunk: u64, channels: u64) -> Vec<Swept> {
        let latency = |blocks: u64| {
            move |n: u64| {
                let mut moved = vec![0; channels as usize];
                (n..n + blocks).for_each(|block| moved[(block / chunk % channels) as usize] += 5_000);
                70_000 + moved.into_iter().max().unwrap()
            }
        };
        (0..7).map(|n| 1 << n).map(|blocks| swept(BLOCK * blocks, BLOCK, latency(blocks))).collect()
    }

    #[test]
    fn reads_within_a_chunk_take_twice_as_long_for_twice_as_much_and_those_within_a_row_of_chunks_do_not() {
        let sweeps = through_channels(32, 4);
        assert!(!lies_on_several(&sweeps, BLOCK * 32));
        assert!(lies_on_several(&sweeps, BLOCK * 128), "of four chunks");
        assert!(lies_on_several(&through_channels(2, 8), BLOCK * 16), "of eight chunks");
        assert!(!lies_on_several(&through_channels(2, 1), BLOCK * 16), "there is one channel");
    }

    #[test]
    fn a_second_block_that_takes_no_time_is_on_another_channel_unless_some_blocks_are_moved_as_one() {
        // Blocks by turns on two channels, sixteen in a stripe.
        let by_turns = |blocks: u64| {
            move |n: u64| {
                let mut moved = [0; 4];
                (n..n + blocks).for_each(|block| moved[(block / 16 % 2 * 2 + block % 2) as usize] += 24_000);
                70_000 + moved.into_iter().max().unwrap()
            }
        };
        let sweeps = |latency: &dyn Fn(u64) -> Box<dyn Fn(u64) -> u64>| -> Vec<Swept> {
            (0..6).map(|n| 1 << n).map(|blocks| swept(BLOCK * blocks, BLOCK, latency(blocks))).collect()
        };
        assert!(lies_on_several(&sweeps(&|blocks| Box::new(by_turns(blocks))), BLOCK * 16));
        // One channel, on which so many blocks are moved whole.
        let whole = |unit: u64| {
            move |blocks: u64| -> Box<dyn Fn(u64) -> u64> {
                Box::new(move |n| 70_000 + 5_000 * unit * ((n + blocks - 1) / unit - n / unit + 1))
            }
        };
        for unit in [2, 4, 8] {
            assert!(!lies_on_several(&sweeps(&whole(unit)), BLOCK * 16), "{unit} blocks at a time");
        }
    }

    #[test]
    fn two_channels_that_share_a_read_save_the_time_of_its_second_half() {
        let saved = share_saved(&through_channels(32, 4), BLOCK * 32).unwrap();
        assert!((0.95..=1.05).contains(&saved), "{saved}");
        // Something else makes a few starts a little faster.
        let little = |blocks: u64| move |n: u64| 70_000 + 5_000 * blocks - if n % 8 == 3 { 1_500 } else { 0 };
        let sweeps: Vec<Swept> = [1, 2, 4, 8].map(|blocks| swept(BLOCK * blocks, BLOCK, little(blocks))).into();
        assert!(share_saved(&sweeps, BLOCK * 8).unwrap() < SAVES_LITTLE_SHARE);
        assert_eq!(share_saved(&sweeps, BLOCK * 64), None, "no read was as long");
    }

    #[test]
    fn two_pages_on_one_channel_cost_more_than_a_link_needs() {
        let across = |ns: u64| swept(BLOCK, ByteSize(512), move |n| 70_000 + if n % 8 == 0 { 0 } else { ns });
        assert!(moves_one_by_one(&across(20_000)), "200 MB/s");
        assert!(!moves_one_by_one(&across(900)), "4.5 GB/s");
        let shared = swept(BLOCK, ByteSize(512), |n| 70_000 - [0, 5_000, 9_000, 5_000][(n % 8 / 2) as usize]);
        assert!(!moves_one_by_one(&shared), "what two channels share is faster");
    }
}
