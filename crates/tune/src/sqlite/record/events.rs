//! The events that the recorder writes (`recorder.c`), in the machine's own byte order: where the recording ends, and
//! then each event as a head of fixed length and a text behind it.
//!
//! ```text
//!   0                                               8
//!   │ the place of the first lost event, 0 for none │ event …
//!
//!   0       4      8         12     16         24         32          40      48
//!   │ bytes │ kind │ process │ code │ time, ns │ database │ statement │ flags │ text …
//! ```
//!
//! The file comes from a foreign process that was running freely: it may end anywhere, and say anything.

/// Bytes before the first event.
pub(super) const MARK: usize = 8;
/// Bytes of a head.
const HEAD: usize = 48;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The recorder was loaded into a process.
    Loaded,
    /// A connection to the recorded database was opened.
    Opened,
    /// A connection to another database was opened.
    OpenedOther,
    /// A statement started; whether its values are missing.
    Started { is_incomplete: bool },
    /// It ended; whether a transaction is open then.
    Ended { in_transaction: bool },
    /// Its call of `sqlite3_step` failed; whether the transaction was rolled back with it.
    Failed { is_rolled_back: bool },
    /// The connection was closed.
    Closed,
    /// The program took the trace callback for itself.
    TraceLost,
    /// A step that had failed because of a lock went on, and succeeded; whether a transaction is open then.
    Resumed { in_transaction: bool },
    /// A connection was opened by a SQLite that cannot be traced.
    NotTraced,
    /// A text with a NUL was bound to a statement, whose text will end there.
    NulBound,
}

impl EventKind {
    fn of(kind: u32, flags: u64) -> Option<Self> {
        let flag = flags & 1 == 1;
        Some(match kind {
            1 => Self::Loaded,
            2 => Self::Opened,
            3 => Self::OpenedOther,
            4 => Self::Started { is_incomplete: flag },
            5 => Self::Ended { in_transaction: flag },
            6 => Self::Failed { is_rolled_back: flag },
            7 => Self::Closed,
            8 => Self::TraceLost,
            9 => Self::Resumed { in_transaction: flag },
            10 => Self::NotTraced,
            11 => Self::NulBound,
            _ => return None,
        })
    }
}

/// A connection, as long as it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    process: i32,
    address: u64,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) kind: EventKind,
    pub(super) connection: Connection,
    pub(super) statement: u64,
    pub(super) time_ns: u64,
    pub(super) text: &'a [u8],
}

/// The events of a file, up to the first one that is cut or unknown; what is left is not read.
pub(super) struct Events<'a>(pub(super) &'a [u8]);

impl<'a> Events<'a> {
    /// Those of a file, up to the first lost one; and whether one was lost.
    pub(super) fn of(file: &'a [u8]) -> (Self, bool) {
        let Some((mark, events)) = file.split_first_chunk::<MARK>() else { return (Self(&[]), false) };
        let lost = u64::from_ne_bytes(*mark);
        let kept = usize::try_from(lost).map_or(usize::MAX, |lost| lost.saturating_sub(MARK)).min(events.len());
        if lost == 0 { (Self(events), false) } else { (Self(&events[..kept]), true) }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let head = self.0.get(..HEAD)?;
        let u32_at = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default();
        let u64_at = |at: usize| head[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default();
        let text = self.0.get(HEAD..u32_at(0) as usize)?;
        let kind = EventKind::of(u32_at(4), u64_at(40))?;
        self.0 = &self.0[HEAD + text.len()..];
        Some(Event {
            kind,
            connection: Connection { process: u32_at(8).cast_signed(), address: u64_at(24) },
            statement: u64_at(32),
            time_ns: u64_at(16),
            text,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event as the recorder writes it.
    pub(in super::super) fn event(
        kind: u32,
        time_ns: u64,
        database: u64,
        statement: u64,
        flags: u64,
        text: &str,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [(HEAD + text.len()) as u32, kind, 7, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        for word in [time_ns, database, statement, flags] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn events_are_read_up_to_the_one_that_is_cut() {
        let file = [event(2, 5, 1, 0, 0, ""), event(4, 6, 1, 2, 1, "SELECT 1"), event(5, 7, 1, 2, 0, "")].concat();
        let whole: Vec<_> = Events(&file).collect();
        assert_eq!(whole.len(), 3);
        assert_eq!((whole[1].kind, whole[1].text), (EventKind::Started { is_incomplete: true }, &b"SELECT 1"[..]));
        for cut in 0..file.len() {
            assert!(Events(&file[..cut]).count() < 3);
        }
    }

    #[test]
    fn events_end_at_the_first_lost_one_whatever_was_written_behind_it() {
        let all = [event(2, 5, 1, 0, 0, ""), event(4, 6, 1, 2, 0, "SELECT 1")];
        let file = |lost: u64| [&lost.to_ne_bytes()[..], &all.concat()].concat();
        let told = |file: &[u8]| {
            let (events, is_lost) = Events::of(file);
            (events.count(), is_lost)
        };
        let second = (MARK + all[0].len()) as u64;
        assert_eq!(
            [0, second, u64::MAX, 3].map(|lost| told(&file(lost))),
            [(2, false), (1, true), (2, true), (0, true)]
        );
        assert_eq!((told(&[]), told(&[0; MARK])), ((0, false), (0, false)));
    }

    proptest! {
        #[test]
        fn whatever_is_in_the_file_it_has_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Events(&bytes).count() <= bytes.len() / HEAD);
        }
    }
}
