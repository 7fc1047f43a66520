//! What states are made of: numbers, tables, options; and the words that say of a type which of its fields are saved.

use flashwise_block::{ByteSize, DeviceCounters, FlashCounters, Nanos};
use rand_pcg::Pcg64Mcg;

use super::carrier::{AtRest, Carried, Carrier, Layout, State};
use super::error::StateError;

/// Stands where an index would be: there is none.
pub const NONE: u32 = u32::MAX;

/// Says what of a type is saved. Each field is named, or the type does not compile:
///
/// - `saved`: carried as it is;
/// - `lists`: carried with its length, which may differ from that in a new drive;
/// - `at_rest`, `empty`, `none`: there is nothing of it while the drive is at rest, and that is checked before it is
///   saved;
/// - `built`: it follows from the drive's description.
///
/// `checked` names a method that says what cannot be, of what was read.
macro_rules! state {
    (
        $type:ty {
            $(saved { $($saved:ident),* $(,)? })?
            $(lists { $($list:ident),* $(,)? })?
            $(at_rest { $($rest:ident),* $(,)? })?
            $(empty { $($empty:ident),* $(,)? })?
            $(none { $($none:ident),* $(,)? })?
            $(built { $($built:ident),* $(,)? })?
        }
        $(checked $check:ident)?
    ) => {
        impl crate::state::State for $type {
            fn layout(layout: &mut crate::state::Layout) {
                layout.word(stringify!($type));
                layout.word("{");
                $($(layout.field(stringify!($saved), |this: &mut Self| &mut this.$saved);)*)?
                $($(layout.list(stringify!($list), |this: &mut Self| &mut this.$list);)*)?
                layout.word("}");
            }

            #[allow(unused_variables, reason = "a type all of whose fields are built carries nothing")]
            fn carry(&mut self, carrier: &mut crate::state::Carrier<'_>) -> crate::state::Carried {
                // Without `..`: a new field has to be said something of.
                let Self { $($($saved,)*)? $($($list,)*)? $($($rest,)*)? $($($empty,)*)? $($($none,)*)?
                    $($($built: _,)*)? } = &mut *self;
                $($(
                    crate::state::rests($rest, stringify!($rest))?;
                )*)?
                $($(
                    crate::state::expect_rest($empty.is_empty(), stringify!($empty))?;
                )*)?
                $($(
                    crate::state::expect_rest(*$none == crate::state::NONE, stringify!($none))?;
                )*)?
                $($(
                    crate::state::State::carry($saved, carrier).map_err(|e| e.inside(stringify!($saved)))?;
                )*)?
                $($(
                    carrier.list($list).map_err(|e| e.inside(stringify!($list)))?;
                )*)?
                $(if carrier.is_restoring() {
                    self.$check().map_err(crate::state::StateError::damaged)?;
                })?
                Ok(())
            }
        }
    };
}

/// Says that a type is one of some names, which are saved by their place in the list.
macro_rules! state_names {
    ($type:ty { $($name:ident = $code:literal),* $(,)? }) => {
        impl crate::state::State for $type {
            fn layout(layout: &mut crate::state::Layout) {
                layout.word(stringify!($type));
                $(layout.word(stringify!($name));)*
            }

            fn carry(&mut self, carrier: &mut crate::state::Carrier<'_>) -> crate::state::Carried {
                let mut code = match self { $(Self::$name => $code,)* };
                carrier.byte(&mut code)?;
                *self = match code {
                    $($code => Self::$name,)*
                    other => {
                        let reason = format!("{other} is not a {}", stringify!($type));
                        return Err(crate::state::StateError::damaged(reason));
                    }
                };
                Ok(())
            }
        }
    };
}

/// Says of a type that is one of several policies that it is saved as the one that it is, which the description names;
/// one that is `unsaved` is refused with the reason.
macro_rules! state_of_policy {
    ($type:ty { $($name:ident($policy:ty)),* $(,)? } $(unsaved { $unsaved:ident: $reason:expr })?) => {
        impl crate::state::State for $type {
            fn layout(layout: &mut crate::state::Layout) {
                layout.word(stringify!($type));
                $(
                    layout.word(stringify!($name));
                    <$policy as crate::state::State>::layout(layout);
                )*
            }

            fn carry(&mut self, carrier: &mut crate::state::Carrier<'_>) -> crate::state::Carried {
                match self {
                    $(Self::$name(policy) => crate::state::State::carry(policy, carrier)
                        .map_err(|e| e.inside(stringify!($name))),)*
                    $(Self::$unsaved(_) => Err(crate::state::StateError::Unsupported { reason: $reason }),)?
                }
            }
        }
    };
}

pub(crate) use {state, state_names, state_of_policy};

/// Whether a part is at rest.
pub(crate) fn rests(part: &impl AtRest, name: &str) -> Carried {
    expect_rest(part.is_at_rest(), name)
}

/// Carries lists of superblocks as pairs of list and superblock, each list in its order: the links follow from that.
/// `append` puts a superblock, one of so many, at the end of a list, and gives `false` where there is no such list.
pub(crate) fn carry_members(
    carrier: &mut Carrier<'_>,
    members: Vec<(u32, u32)>,
    superblocks: usize,
    mut append: impl FnMut(u32, u32) -> bool,
) -> Carried {
    let mut count = members.len() as u64;
    carrier.number(&mut count)?;
    if !carrier.is_restoring() {
        return members.into_iter().try_for_each(|mut member| member.carry(carrier));
    }
    let mut is_member = vec![false; superblocks];
    for _ in 0..count {
        let mut member = (0_u32, 0_u32);
        member.carry(carrier)?;
        let (list, block) = member;
        let is_new = is_member.get_mut(block as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        if !is_new || !append(list, block) {
            return Err(StateError::damaged(format!("superblock {block} is in two lists, or in none")));
        }
    }
    Ok(())
}

/// Takes it as an error that a part is not at rest.
pub(crate) fn expect_rest(is_at_rest: bool, name: &str) -> Carried {
    if is_at_rest { Ok(()) } else { Err(StateError::busy(name)) }
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl State for $type {
            fn layout(layout: &mut Layout) {
                layout.word(stringify!($type));
            }

            #[inline]
            fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
                let mut number = *self as u64;
                carrier.number(&mut number)?;
                *self = <$type>::try_from(number).map_err(|_| {
                    StateError::damaged(format!("{number} exceeds a {}", stringify!($type)))
                })?;
                Ok(())
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, usize);

impl State for bool {
    fn layout(layout: &mut Layout) {
        layout.word("bool");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let mut byte = u8::from(*self);
        carrier.byte(&mut byte)?;
        *self = match byte {
            0 => false,
            1 => true,
            other => return Err(StateError::damaged(format!("{other} is not a boolean"))),
        };
        Ok(())
    }
}

impl State for f64 {
    fn layout(layout: &mut Layout) {
        layout.word("f64");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let mut bits = self.to_bits();
        carrier.number(&mut bits)?;
        *self = Self::from_bits(bits);
        if self.is_finite() { Ok(()) } else { Err(StateError::damaged("a number that is not finite")) }
    }
}

impl State for Pcg64Mcg {
    fn layout(layout: &mut Layout) {
        layout.word("Pcg64Mcg");
    }

    /// The generator tells its state to serde alone: a number of 128 bits.
    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        let state = serde_json::to_string(self).ok();
        let digits = state.iter().flat_map(|text| text.bytes()).filter(u8::is_ascii_digit);
        let state = digits.fold(0_u128, |state, digit| state.wrapping_mul(10).wrapping_add(u128::from(digit - b'0')));
        let (mut low, mut high) = (state as u64, (state >> 64) as u64);
        carrier.number(&mut low)?;
        carrier.number(&mut high)?;
        if low % 2 == 0 {
            return Err(StateError::damaged("an even state of a generator, which none can have"));
        }
        *self = Self::new(u128::from(high) << 64 | u128::from(low));
        Ok(())
    }
}

impl<A: State, B: State> State for (A, B) {
    fn layout(layout: &mut Layout) {
        A::layout(layout);
        B::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)?;
        self.1.carry(carrier)
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn layout(layout: &mut Layout) {
        layout.word(&format!("[{N}]"));
        T::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        carry_each(self.iter_mut(), carrier)
    }
}

fn carry_each<'a, T: State + 'a>(parts: impl Iterator<Item = &'a mut T>, carrier: &mut Carrier<'_>) -> Carried {
    for (nth, part) in parts.enumerate() {
        part.carry(carrier).map_err(|error| error.inside(format_args!("[{nth}]")))?;
    }
    Ok(())
}

macro_rules! tables {
    ($($table:ident),*) => {
        /// A table, whose length follows from the description.
        $(impl<T: State> State for $table<T> {
            fn layout(layout: &mut Layout) {
                layout.word("table");
                T::layout(layout);
            }

            fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
                carrier.known(self.len() as u64, "entries")?;
                carry_each(self.iter_mut(), carrier)
            }
        })*
    };
}

type Slice<T> = Box<[T]>;
tables!(Vec, Slice);

/// A table of numbers of which most may be zero.
pub(crate) fn carry_sparse(table: &mut [u32], carrier: &mut Carrier<'_>) -> Carried {
    let length = table.len() as u64;
    if carrier.is_restoring() {
        table.fill(0);
        return carrier.numbers(length, std::iter::empty(), |place, number| {
            table[place as usize] = number;
            Ok(())
        });
    }
    let numbers = (0..).zip(&*table).filter(|&(_, &number)| number != 0).map(|(place, &number)| (place, number));
    carrier.numbers(length, numbers, |_, _| Ok(()))
}

impl<T: State> State for Box<T> {
    fn layout(layout: &mut Layout) {
        T::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        (**self).carry(carrier)
    }
}

/// A part that the description says whether there is.
macro_rules! parts_of_some_drives {
    ($($type:ty),* $(,)?) => {
        $(impl crate::state::State for Option<$type> {
            fn layout(layout: &mut crate::state::Layout) {
                layout.word("if there");
                <$type as crate::state::State>::layout(layout);
            }

            fn carry(&mut self, carrier: &mut crate::state::Carrier<'_>) -> crate::state::Carried {
                self.as_mut().map_or(Ok(()), |part| crate::state::State::carry(part, carrier))
            }
        })*
    };
}

/// A value that may be there or not from one moment to the next.
macro_rules! optional_values {
    ($($type:ty),* $(,)?) => {
        $(impl crate::state::State for Option<$type> {
            fn layout(layout: &mut crate::state::Layout) {
                layout.word("optional");
                <$type as crate::state::State>::layout(layout);
            }

            fn carry(&mut self, carrier: &mut crate::state::Carrier<'_>) -> crate::state::Carried {
                let mut is_there = self.is_some();
                crate::state::State::carry(&mut is_there, carrier)?;
                if !is_there {
                    *self = None;
                    return Ok(());
                }
                crate::state::State::carry(self.get_or_insert_default(), carrier)
            }
        })*
    };
}

pub(crate) use {optional_values, parts_of_some_drives};

optional_values!(u32, u64, (u32, u32), FlashCounters);

impl<T: State> State for Option<Box<T>> {
    fn layout(layout: &mut Layout) {
        layout.word("if there");
        T::layout(layout);
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.as_mut().map_or(Ok(()), |part| part.carry(carrier))
    }
}

impl State for ByteSize {
    fn layout(layout: &mut Layout) {
        layout.word("ByteSize");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)
    }
}

impl State for Nanos {
    fn layout(layout: &mut Layout) {
        layout.word("Nanos");
    }

    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried {
        self.0.carry(carrier)
    }
}

state! {
    DeviceCounters {
        saved {
            host_reads, host_bytes_read, host_writes, host_bytes_written, flushes, trims, zero_writes, bytes_zeroed,
            flash,
        }
    }
}

state! {
    FlashCounters {
        saved {
            bytes_programmed, padding_bytes, gc_bytes_moved, gc_pages_moved, wear_levelling_bytes_moved,
            retirement_bytes_moved, folding_bytes_moved, slc_bytes_programmed, folding_runs, mapping_bytes,
            wear_levelling_runs, retired_superblocks, gc_runs, erases, bytes_read, absorbed_bytes,
            unwritten_pages_read,
        }
    }
}

impl AtRest for bool {
    fn is_at_rest(&self) -> bool {
        !self
    }
}

impl AtRest for u32 {
    fn is_at_rest(&self) -> bool {
        *self == 0
    }
}

impl AtRest for u64 {
    fn is_at_rest(&self) -> bool {
        *self == 0
    }
}

impl AtRest for usize {
    fn is_at_rest(&self) -> bool {
        *self == 0
    }
}

impl<T: AtRest> AtRest for Option<T> {
    fn is_at_rest(&self) -> bool {
        self.as_ref().is_none_or(AtRest::is_at_rest)
    }
}

/// A list of parts each of which is at rest, as an empty one is.
impl<T: AtRest> AtRest for Vec<T> {
    fn is_at_rest(&self) -> bool {
        self.iter().all(AtRest::is_at_rest)
    }
}

impl<T: AtRest, const N: usize> AtRest for [T; N] {
    fn is_at_rest(&self) -> bool {
        self.iter().all(AtRest::is_at_rest)
    }
}
