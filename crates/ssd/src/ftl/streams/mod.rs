//! Streams: data that will probably be overwritten at the same time goes to the same open superblock.
//!
//! ```text
//!   host writes ──▶ class of a written page ──▶ Stream::host(class) ─┐
//!   collection  ──▶ class of a moved page   ──▶ Stream::gc(class)   ─┼─▶ one open superblock each, in every unit
//!   wear levelling ───────────────────────────▶ Stream::COLD        ─┘
//! ```
//!
//! When garbage collection takes a superblock whose pages die together, it has little to move. A policy names the class
//! of every page that the host writes and of every page that garbage collection moves; one type a policy, chosen by
//! `ftl.streams.policy`. How many classes it has is in the configuration
//! ([`StreamsConfig`](crate::config::StreamsConfig)), because the spare space has to hold their open superblocks.
//!
//! A class is a wish: where no superblock is free for a moved page's class, the page goes to the open superblock of
//! another one, so that collection needs no more free superblocks than with a single class.
//!
//! Source: Kang et al., "The Multi-streamed Solid-State Drive", HotStorage 2014, for open blocks by stream; what each
//! policy goes by is in its file.
//!
//! # Adding a policy
//!
//! 1. A file here with a type behind [`StreamPolicy`] and a table test; `one.rs` and `hint.rs` are the shortest. Its
//!    `new` takes `[ftl.streams]` and the [`Shape`], its `state!` says what of it is saved.
//! 2. Its `mod` below.
//! 3. Its line in `stream_policies!` (`config/streams.rs`): what it is, its name, its type, and its open superblocks.
//!    The rest follows from it, as the property tests do, which sample from `config::StreamPolicy::ALL`.
//! 4. `FLASHWISE_BLESS=1 cargo test -p flashwise-ssd --lib reference` writes its line in `docs/formats/device.md`.

mod bloom_filters;
mod death_time;
pub(crate) mod foresight;
mod hint;
mod one;
mod sep_bit;

use std::ops::{Index, IndexMut};

use zerocopy::FromZeros;

use super::geometry::Geometry;
use crate::config::{CLASSES_MAX, DeviceConfig, StreamPolicy as PolicyName, stream_policies};
use crate::state::{Carried, Carrier, Layout, State, StateError};
use foresight::Foresight;

/// Which open superblock of a unit data goes to: that of a class of the host's pages, that of a class of moved pages,
/// or that of what wear levelling moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
pub(crate) struct Stream(u8);

impl Stream {
    /// The only class, or the first one, of what the host writes; without a superblock of its own for what is moved,
    /// this takes it, too.
    pub(crate) const HOST: Self = Self(0);
    /// What wear levelling moves.
    pub(crate) const COLD: Self = Self(2 * CLASSES_MAX as u8);
    /// How many there can be.
    pub(crate) const COUNT: usize = 2 * CLASSES_MAX as usize + 1;

    /// What the host writes, of a class below [`CLASSES_MAX`].
    #[inline]
    pub(crate) const fn host(class: u8) -> Self {
        Self(2 * class)
    }

    /// What garbage collection moves, of a class below [`CLASSES_MAX`].
    #[inline]
    pub(crate) const fn gc(class: u8) -> Self {
        Self(2 * class + 1)
    }

    /// The stream that is at a place of [`ByStream`].
    pub(crate) const fn numbered(nth: u8) -> Self {
        Self(nth)
    }

    /// Whether the host writes to it.
    #[inline]
    pub(crate) fn is_host(self) -> bool {
        self.0.is_multiple_of(2) && self != Self::COLD
    }

    /// The class, among the host's or among the moved pages'; `None` of what wear levelling moves.
    pub(crate) fn class(self) -> Option<u8> {
        (self != Self::COLD).then_some(self.0 / 2)
    }
}

/// A set of streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamSet(u64);

impl StreamSet {
    /// None.
    pub(crate) const EMPTY: Self = Self(0);

    /// Adds one.
    #[inline]
    pub(crate) fn insert(&mut self, stream: Stream) {
        self.0 |= 1 << stream.0;
    }

    /// Takes one out.
    #[inline]
    pub(crate) fn remove(&mut self, stream: Stream) {
        self.0 &= !(1 << stream.0);
    }

    /// Whether a stream is in it.
    pub(crate) fn contains(self, stream: Stream) -> bool {
        self.0 >> stream.0 & 1 != 0
    }

    /// All that are in either.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl From<Stream> for StreamSet {
    fn from(stream: Stream) -> Self {
        Self(1 << stream.0)
    }
}

impl Iterator for StreamSet {
    type Item = Stream;

    #[inline]
    fn next(&mut self) -> Option<Stream> {
        let stream = Stream(self.0.checked_ilog2().map(|_| self.0.trailing_zeros() as u8)?);
        self.0 &= self.0 - 1;
        Some(stream)
    }
}

/// Something for each stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByStream<T>([T; Stream::COUNT]);

impl<T: Copy> ByStream<T> {
    /// The same for all.
    pub(crate) fn all(value: T) -> Self {
        Self([value; Stream::COUNT])
    }

    /// Every stream's.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Every stream's, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T: Copy + Default> Default for ByStream<T> {
    fn default() -> Self {
        Self::all(T::default())
    }
}

impl<T> Index<Stream> for ByStream<T> {
    type Output = T;

    #[inline]
    fn index(&self, stream: Stream) -> &T {
        &self.0[stream.0 as usize]
    }
}

impl<T> IndexMut<Stream> for ByStream<T> {
    #[inline]
    fn index_mut(&mut self, stream: Stream) -> &mut T {
        &mut self.0[stream.0 as usize]
    }
}

/// Tells pages apart. `clock` counts the logical pages that the host has written so far.
pub(crate) trait StreamPolicy {
    /// The class of a page that the host writes next; `hint` is the stream that the request names, 0 for none.
    fn class_of_written(&self, logical_page: u32, hint: u16, clock: u64) -> u8;

    /// The class of a page that garbage collection moves out of a superblock of `from`.
    fn class_of_moved(&self, logical_page: u32, from: Stream, clock: u64) -> u8;

    /// The host has written a page.
    #[inline]
    fn written(&mut self, _logical_page: u32, _clock: u64) {}

    /// The host has written a page whose version before was still in the open superpage, where it took its place.
    #[inline]
    fn overwritten(&mut self, _logical_page: u32) {}

    /// A superblock was opened.
    #[inline]
    fn opened(&mut self, _block: u32, _clock: u64) {}

    /// Garbage collection takes a superblock that was filled by `stream`.
    #[inline]
    fn collected(&mut self, _block: u32, _stream: Stream, _clock: u64) {}
}

impl AnyStreams {
    /// Tells a policy that goes by death times when pages die.
    pub(crate) fn foresee(&mut self, foresight: Foresight) {
        if let Self::DeathTime(policy) = self {
            policy.foresee(foresight);
        }
    }

    /// Whether deaths are foreseen: then pages that were never written are of several classes.
    pub(crate) fn foresees(&self) -> bool {
        matches!(self, Self::DeathTime(policy) if policy.foresees())
    }
}

/// What a policy may have to know of the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Logical pages, those of the page map included.
    logical_pages: u64,
    /// Superblocks of all units.
    superblocks: u32,
}

#[cfg(test)]
impl Shape {
    /// A drive of four superblocks.
    fn of(logical_pages: u64) -> Self {
        Self { logical_pages, superblocks: 4 }
    }
}

/// Makes one type of the list of policies: a variant each, chosen by the configuration.
macro_rules! dispatch {
    (
        $(#[$meta:meta])*
        pub enum $setting:ident {
            $($(#[$about:meta])* $name:ident = $text:literal [$policy:ty, $classes:expr]),* $(,)?
        }
    ) => {
        /// The policies, behind one type so that a written page needs no indirect call. Those that look something up do
        /// so out of line, so that a drive without streams pays for no more than a comparison.
        #[repr(u8)]
        pub(crate) enum AnyStreams {
            $(#[doc = concat!("See [`", stringify!($policy), "`].")] $name($policy),)*
        }

        impl AnyStreams {
            /// The policy that a configuration names.
            pub(crate) fn new(config: &DeviceConfig, geometry: &Geometry, logical_pages: u64) -> Self {
                let shape = Shape { logical_pages, superblocks: geometry.units * geometry.superblocks };
                let config = &config.ftl.streams;
                match config.policy {
                    $(PolicyName::$name => Self::$name(<$policy>::new(config, shape)),)*
                }
            }
        }

        impl StreamPolicy for AnyStreams {
            #[inline(always)]
            fn class_of_written(&self, logical_page: u32, hint: u16, clock: u64) -> u8 {
                match self { $(Self::$name(policy) => policy.class_of_written(logical_page, hint, clock),)* }
            }

            #[inline(always)]
            fn class_of_moved(&self, logical_page: u32, from: Stream, clock: u64) -> u8 {
                match self { $(Self::$name(policy) => policy.class_of_moved(logical_page, from, clock),)* }
            }

            #[inline(always)]
            fn written(&mut self, logical_page: u32, clock: u64) {
                match self { $(Self::$name(policy) => policy.written(logical_page, clock),)* }
            }

            #[inline(always)]
            fn overwritten(&mut self, logical_page: u32) {
                match self { $(Self::$name(policy) => policy.overwritten(logical_page),)* }
            }

            #[inline(always)]
            fn opened(&mut self, block: u32, clock: u64) {
                match self { $(Self::$name(policy) => policy.opened(block, clock),)* }
            }

            #[inline(always)]
            fn collected(&mut self, block: u32, stream: Stream, clock: u64) {
                match self { $(Self::$name(policy) => policy.collected(block, stream, clock),)* }
            }
        }

        crate::state::state_of_policy! { AnyStreams { $($name($policy)),* } }
    };
}

stream_policies!(dispatch);

impl State for Stream {
    fn layout(layout: &mut Layout) {
        layout.word("Stream");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let mut stream = u32::from(self.0);
        carrier.below(&mut stream, Self::COUNT as u32)?;
        self.0 = stream as u8;
        Ok(())
    }
}

impl State for StreamSet {
    fn layout(layout: &mut Layout) {
        layout.word("StreamSet");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)?;
        if self.0 >> Stream::COUNT == 0 { Ok(()) } else { Err(StateError::damaged("a stream that does not exist")) }
    }
}

impl<T: State> State for ByStream<T> {
    fn layout(layout: &mut Layout) {
        layout.word("ByStream");
        <[T; Stream::COUNT]>::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_host_and_of_moved_pages_is_a_stream_of_its_own() {
        let classes = || 0..CLASSES_MAX as u8;
        let streams: Vec<Stream> = classes().flat_map(|class| [Stream::host(class), Stream::gc(class)]).collect();
        let set = streams.iter().fold(StreamSet::from(Stream::COLD), |set, &stream| set.union(stream.into()));
        assert_eq!(set.count(), Stream::COUNT);
        assert!(classes().all(|class| Stream::host(class).is_host() && !Stream::gc(class).is_host()));
        assert!(classes().all(|class| Stream::gc(class).class() == Some(class)));
        assert_eq!((Stream::COLD.is_host(), Stream::COLD.class(), Stream::host(0)), (false, None, Stream::HOST));
    }

    #[test]
    fn a_set_of_streams_gives_each_once() {
        let mut set = StreamSet::EMPTY;
        [Stream::gc(3), Stream::COLD, Stream::gc(3), Stream::HOST].into_iter().for_each(|stream| set.insert(stream));
        assert_eq!(set.collect::<Vec<_>>(), [Stream::HOST, Stream::gc(3), Stream::COLD]);
    }
}
