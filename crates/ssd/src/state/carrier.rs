//! The two directions of a state, as one: what is written when a drive is saved is what is read when it continues.
//!
//! ```text
//!   State::carry(&mut self, carrier)
//!     saving:    self ─▶ carrier ─▶ bytes
//!     restoring: self ◀─ carrier ◀─ bytes      self is a part of a new drive of the same description
//! ```
//!
//! One function a type for both, so that they cannot disagree. Numbers are varints (LEB128), so that what is small
//! takes little; what is long and the same is left to the compression behind.
//!
//! **What is read is hostile.** Tables have the length that the description gives them, and nothing is allocated for a
//! number that was read; lists that grow share one bound for all of them ([`Carrier::restoring`]), and take memory only
//! as their elements come.

use std::collections::VecDeque;
use std::io::{Read, Write};

use super::error::StateError;

/// Bytes that are read or written at a time.
const CHUNK: usize = 64 << 10;

/// The way of a state, to bytes or from them.
pub(crate) struct Carrier<'a> {
    way: Way<'a>,
    buffer: Vec<u8>,
    /// The next byte of `buffer` that is read.
    at: usize,
    /// Elements that lists may still have together.
    room: u64,
}

enum Way<'a> {
    Save(&'a mut dyn Write),
    Restore(&'a mut dyn Read),
}

/// What comes of carrying something.
pub(crate) type Carried = Result<(), StateError>;

impl<'a> Carrier<'a> {
    /// Writes.
    pub(crate) fn saving(into: &'a mut dyn Write) -> Self {
        Self { way: Way::Save(into), buffer: Vec::with_capacity(CHUNK), at: 0, room: u64::MAX }
    }

    /// Reads; all lists together may have so many elements.
    pub(crate) fn restoring(from: &'a mut dyn Read, elements_max: u64) -> Self {
        Self { way: Way::Restore(from), buffer: Vec::new(), at: 0, room: elements_max }
    }

    /// Whether it reads.
    pub(crate) fn is_restoring(&self) -> bool {
        matches!(self.way, Way::Restore(_))
    }

    /// Carries a byte.
    #[inline]
    pub(crate) fn byte(&mut self, byte: &mut u8) -> Carried {
        if self.at == self.buffer.len() && self.is_restoring() {
            self.fill()?;
        }
        match self.way {
            Way::Save(_) => {
                self.buffer.push(*byte);
                if self.buffer.len() >= CHUNK {
                    return self.flush();
                }
            }
            Way::Restore(_) => {
                *byte = self.buffer[self.at];
                self.at += 1;
            }
        }
        Ok(())
    }

    /// Reads on; there is at least a byte then.
    #[cold]
    fn fill(&mut self) -> Carried {
        let Way::Restore(from) = &mut self.way else { return Ok(()) };
        self.buffer.resize(CHUNK, 0);
        self.at = 0;
        let read = loop {
            match from.read(&mut self.buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(StateError::damaged("it is truncated")),
            Ok(_) => Ok(()),
            Err(error) => Err(StateError::Io { context: "cannot read the state", error }),
        }
    }

    /// Hands on what was written.
    fn flush(&mut self) -> Carried {
        let Way::Save(into) = &mut self.way else { return Ok(()) };
        let written = into.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| StateError::Io { context: "cannot write the state", error })
    }

    /// All is carried.
    ///
    /// # Errors
    /// When the last of it cannot be written, or there is more to read.
    pub(crate) fn finish(mut self) -> Carried {
        if !self.is_restoring() {
            return self.flush();
        }
        if self.at == self.buffer.len() {
            return match self.fill() {
                Err(StateError::Damaged { .. }) => Ok(()),
                Err(error) => Err(error),
                Ok(()) => Err(StateError::damaged("it continues past its end")),
            };
        }
        Err(StateError::damaged("it continues past its end"))
    }

    /// Carries a number.
    #[inline]
    pub(crate) fn number(&mut self, number: &mut u64) -> Carried {
        if !self.is_restoring() {
            let mut left = *number;
            while left >= 0x80 {
                self.byte(&mut (left as u8 | 0x80))?;
                left >>= 7;
            }
            return self.byte(&mut (left as u8));
        }
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let mut byte = 0;
            self.byte(&mut byte)?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits {
                return Err(StateError::damaged("a number exceeds 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                *number = value;
                return Ok(());
            }
            shift += 7;
        }
    }

    /// Carries a number that is known: another one is an error that says `what` it is.
    pub(crate) fn known(&mut self, number: u64, what: &str) -> Carried {
        let mut carried = number;
        self.number(&mut carried)?;
        if carried == number {
            return Ok(());
        }
        Err(StateError::damaged(format!("it has {carried} {what}, but the drive {number}")))
    }

    /// Carries a number that must stay below a limit.
    pub(crate) fn below(&mut self, number: &mut u32, limit: u32) -> Carried {
        let mut carried = u64::from(*number);
        self.number(&mut carried)?;
        if carried >= u64::from(limit) {
            return Err(StateError::damaged(format!("{carried} must be below {limit}")));
        }
        *number = carried as u32;
        Ok(())
    }

    /// Carries the length of something that grows.
    pub(crate) fn length(&mut self, length: usize) -> Result<u64, StateError> {
        let mut carried = length as u64;
        self.number(&mut carried)?;
        self.room = self.room.checked_sub(carried).ok_or_else(|| {
            StateError::damaged(format!("a list of {carried} elements: more than such a drive can have"))
        })?;
        Ok(carried)
    }

    /// Carries a list that grows.
    pub(crate) fn list<L: List>(&mut self, list: &mut L) -> Carried
    where
        L::Element: State + Default,
    {
        let length = self.length(list.len())?;
        if self.is_restoring() {
            list.clear();
            for nth in 0..length {
                let mut element = L::Element::default();
                element.carry(self).map_err(|error| error.inside(format_args!("[{nth}]")))?;
                list.push(element);
            }
            return Ok(());
        }
        list.iter_mut().try_for_each(|element| element.carry(self))
    }

    /// Carries a table of numbers, most of which may be zero: `numbers` are the places and values of the others, in the
    /// order of places. Where it reads, `set` is told of them instead.
    pub(crate) fn numbers(
        &mut self,
        length: u64,
        numbers: impl Iterator<Item = (u64, u32)>,
        mut set: impl FnMut(u64, u32) -> Carried,
    ) -> Carried {
        if self.is_restoring() {
            return self.read_numbers(length, &mut set);
        }
        let (mut run, mut begin, mut end, mut last) = (Vec::with_capacity(RUN), 0, 0, 0);
        for (place, number) in numbers {
            if place != begin + run.len() as u64 || run.len() == RUN {
                end = self.write_run(&mut run, begin, end, &mut last)?;
                begin = place;
            }
            run.push(number);
        }
        end = self.write_run(&mut run, begin, end, &mut last)?;
        self.number(&mut (length - end))?;
        self.number(&mut 0)
    }

    /// Writes the numbers from a place on, behind the one at which the run before ended; gives where this one does.
    fn write_run(&mut self, run: &mut Vec<u32>, begin: u64, end: u64, last: &mut u32) -> Result<u64, StateError> {
        if run.is_empty() {
            return Ok(end);
        }
        let behind = begin + run.len() as u64;
        self.number(&mut (begin - end))?;
        self.number(&mut (run.len() as u64))?;
        for number in run.drain(..) {
            let step = number.wrapping_sub(std::mem::replace(last, number)) as i32;
            self.number(&mut u64::from((step << 1 ^ step >> 31) as u32))?;
        }
        Ok(behind)
    }

    fn read_numbers(&mut self, length: u64, set: &mut impl FnMut(u64, u32) -> Carried) -> Carried {
        let (mut place, mut last) = (0_u64, 0_u32);
        let behind = || StateError::damaged(format!("a table of {length} numbers has more"));
        loop {
            let (mut gap, mut count) = (0, 0);
            self.number(&mut gap)?;
            self.number(&mut count)?;
            place = place.checked_add(gap).filter(|&place| place <= length).ok_or_else(behind)?;
            if count == 0 {
                let is_whole = place == length;
                return if is_whole { Ok(()) } else { Err(StateError::damaged("a table is shorter than the drive's")) };
            }
            let end = place.checked_add(count).filter(|&end| end <= length).ok_or_else(behind)?;
            while place < end {
                let mut step = 0;
                self.number(&mut step)?;
                let step = u32::try_from(step).map_err(|_| StateError::damaged("a number exceeds 32 bits"))?;
                last = last.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg());
                set(place, last)?;
                place += 1;
            }
        }
    }
}

/// Numbers of a run at most.
const RUN: usize = 4096;

/// A list that grows.
pub(crate) trait List {
    /// What it is a list of.
    type Element;

    fn len(&self) -> usize;
    fn clear(&mut self);
    fn push(&mut self, element: Self::Element);
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Self::Element>;
}

impl<T> List for Vec<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.len()
    }
    fn clear(&mut self) {
        self.clear();
    }
    fn push(&mut self, element: T) {
        self.push(element);
    }
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.as_mut_slice().iter_mut()
    }
}

impl<T> List for VecDeque<T> {
    type Element = T;

    fn len(&self) -> usize {
        self.len()
    }
    fn clear(&mut self) {
        self.clear();
    }
    fn push(&mut self, element: T) {
        self.push_back(element);
    }
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.iter_mut()
    }
}

/// A part of a drive that is saved with it.
pub(crate) trait State {
    /// Adds what it is made of to a description that changes whenever that does.
    fn layout(layout: &mut Layout)
    where
        Self: Sized;

    /// Writes itself, or becomes what is read. What is read must be possible beside what was read before, or it is an
    /// error.
    fn carry(&mut self, carrier: &mut Carrier<'_>) -> Carried;
}

/// A part of a drive of which nothing is left while the drive has nothing to do, so that nothing of it is saved.
pub(crate) trait AtRest {
    /// Whether nothing is left of it.
    fn is_at_rest(&self) -> bool;
}

/// The description of what a state is made of: types and the names of their fields, in their order.
#[derive(Default)]
pub(crate) struct Layout(String);

impl Layout {
    /// Adds a word.
    pub(crate) fn word(&mut self, word: &str) {
        self.0.push_str(word);
        self.0.push(' ');
    }

    /// Adds a field. Its type is that of the place which `_place` points to, in a value that there need not be.
    pub(crate) fn field<S, T: State>(&mut self, name: &str, _place: impl Fn(&mut S) -> &mut T) {
        self.word(name);
        T::layout(self);
    }

    /// Adds a field that is a list that grows.
    pub(crate) fn list<S, L: List<Element: State>>(&mut self, name: &str, _place: impl Fn(&mut S) -> &mut L) {
        self.word(name);
        self.word("list");
        L::Element::layout(self);
    }

    /// The description.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}
