//! The negotiation before the first request: which export, and what it is like.
//!
//! A state machine over bytes: what has come is looked at, what is complete is taken and answered. Options are bounded;
//! one that is longer than any sensible one is passed over and answered with an error.

use flashwise_block::DeviceInfo;

use super::protocol::*;

/// Longest option that is looked at, bytes: a name of 4,096 bytes and a request for every piece of information there
/// is.
const MAX_OPTION: usize = 64 << 10;

/// Bytes of an option without its data.
const OPTION_BYTES: usize = 16;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Its flags are awaited.
    Flags,
    /// An option is awaited; whether zeros follow the answer to EXPORT_NAME.
    Option { zeroes: bool },
    /// So many bytes of an option that is too long are still to come.
    Skipping { zeroes: bool, option: u32, bytes: u64 },
}

/// What came of looking at the bytes that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes are used up, and the next thing is awaited.
    Next(usize, Handshake),
    /// More bytes are needed.
    More,
    /// So many bytes are used up, and requests follow.
    Done(usize),
    /// The client wants to go, or makes no sense.
    Close,
}

/// What the server says before the client does.
pub(super) fn greeting() -> Vec<u8> {
    let mut bytes: Vec<u8> = GREETING.iter().flat_map(|magic| magic.to_be_bytes()).collect();
    bytes.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    bytes
}

impl Handshake {
    /// Looks at what has come; puts what is to be sent behind `out`.
    pub(super) fn advance(self, input: &[u8], info: &DeviceInfo, out: &mut Vec<u8>) -> Step {
        match self {
            Self::Flags if input.len() < 4 => Step::More,
            Self::Flags => {
                let flags = be32(input, 0);
                if flags & u32::from(FIXED_NEWSTYLE) == 0 || flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
                    return Step::Close;
                }
                Step::Next(4, Self::Option { zeroes: flags & u32::from(NO_ZEROES) == 0 })
            }
            Self::Option { zeroes } => option(input, zeroes, info, out),
            Self::Skipping { zeroes, option, bytes } => {
                let here = bytes.min(input.len() as u64);
                if here == bytes {
                    out.extend(option_reply(option, REP_ERR_TOO_BIG, b"the option is too long"));
                    return Step::Next(here as usize, Self::Option { zeroes });
                }
                match here {
                    0 => Step::More,
                    _ => Step::Next(here as usize, Self::Skipping { zeroes, option, bytes: bytes - here }),
                }
            }
        }
    }
}

/// One option and its answer.
fn option(input: &[u8], zeroes: bool, info: &DeviceInfo, out: &mut Vec<u8>) -> Step {
    if input.len() < OPTION_BYTES {
        return Step::More;
    }
    let (magic, option, length) = (be64(input, 0), be32(input, 8), be32(input, 12) as usize);
    if magic != GREETING[1] {
        return Step::Close;
    }
    if length > MAX_OPTION {
        // EXPORT_NAME has no way to say no.
        let skipping = Handshake::Skipping { zeroes, option, bytes: length as u64 };
        return if option == OPT_EXPORT_NAME { Step::Close } else { Step::Next(OPTION_BYTES, skipping) };
    }
    let Some(data) = input.get(OPTION_BYTES..OPTION_BYTES + length) else { return Step::More };
    let used = OPTION_BYTES + length;
    let next = Step::Next(used, Handshake::Option { zeroes });
    match option {
        OPT_EXPORT_NAME if is_export(data) => {
            out.extend(&export(info.capacity)[2..]);
            out.extend(std::iter::repeat_n(0, if zeroes { 124 } else { 0 }));
            Step::Done(used)
        }
        OPT_EXPORT_NAME => Step::Close,
        OPT_ABORT => {
            out.extend(option_reply(option, REP_ACK, &[]));
            Step::Close
        }
        OPT_LIST if data.is_empty() => {
            let mut entry = (EXPORT.len() as u32).to_be_bytes().to_vec();
            entry.extend(EXPORT.as_bytes());
            entry.extend(info.name.as_bytes());
            out.extend(option_reply(option, REP_SERVER, &entry));
            out.extend(option_reply(option, REP_ACK, &[]));
            next
        }
        OPT_INFO | OPT_GO => match parse_information_request(data) {
            None => refuse(option, REP_ERR_INVALID, "the option does not parse", out, next),
            Some((name, _)) if !is_export(name) => {
                refuse(option, REP_ERR_UNKNOWN, "the only export is 'disk'", out, next)
            }
            Some((_, asked)) => {
                reply_information(option, asked, info, out);
                if option == OPT_GO { Step::Done(used) } else { next }
            }
        },
        OPT_LIST => refuse(option, REP_ERR_INVALID, "LIST has no data", out, next),
        _ => refuse(option, REP_ERR_UNSUP, "", out, next),
    }
}

fn refuse(option: u32, kind: u32, why: &str, out: &mut Vec<u8>, next: Step) -> Step {
    out.extend(option_reply(option, kind, why.as_bytes()));
    next
}

fn is_export(name: &[u8]) -> bool {
    name.is_empty() || name == EXPORT.as_bytes()
}

/// The name and the kinds of information, two bytes each, that INFO or GO ask for.
fn parse_information_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = be32(data.get(..4)?, 0) as usize;
    let (name, rest) = data[4..].split_at_checked(length)?;
    let count = usize::from(be16(rest.get(..2)?, 0));
    let kinds = &rest[2..];
    (kinds.len() == 2 * count).then_some((name, kinds))
}

/// The export, and of the rest what is asked for.
fn reply_information(option: u32, asked: &[u8], info: &DeviceInfo, out: &mut Vec<u8>) {
    out.extend(option_reply(option, REP_INFO, &export(info.capacity)));
    for kind in asked.chunks_exact(2).map(|kind| be16(kind, 0)) {
        let told: Vec<u8> = match kind {
            INFO_NAME => [&kind.to_be_bytes(), EXPORT.as_bytes()].concat(),
            INFO_DESCRIPTION => [&kind.to_be_bytes(), info.name.as_bytes()].concat(),
            INFO_BLOCK_SIZE => block_sizes(info).to_vec(),
            _ => continue,
        };
        out.extend(option_reply(option, REP_INFO, &told));
    }
    out.extend(option_reply(option, REP_ACK, &[]));
}

#[cfg(test)]
mod tests {
    use flashwise_block::{ByteSize, Clock};
    use proptest::prelude::*;

    use super::*;

    fn info() -> DeviceInfo {
        DeviceInfo {
            name: "a drive".to_owned(),
            capacity: ByteSize(1 << 30),
            logical_block: ByteSize(512),
            max_transfer: ByteSize(1 << 20),
            queue_depth: 32,
            clock: Clock::Virtual,
        }
    }

    fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    }

    fn go(name: &[u8], kinds: &[u16]) -> Vec<u8> {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name);
        data.extend((kinds.len() as u16).to_be_bytes());
        data.extend(kinds.iter().flat_map(|kind| kind.to_be_bytes()));
        data
    }

    const READY: Handshake = Handshake::Option { zeroes: false };

    fn answer(option: u32, data: &[u8]) -> (Step, Vec<u8>) {
        let mut out = Vec::new();
        let step = READY.advance(&option_bytes(option, data), &info(), &mut out);
        (step, out)
    }

    /// The kinds of the replies in an answer.
    fn replies(mut out: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let mut replies = Vec::new();
        while !out.is_empty() {
            assert_eq!(be64(out, 0), OPTION_REPLY_MAGIC);
            let length = be32(out, 16) as usize;
            replies.push((be32(out, 12), out[20..20 + length].to_vec()));
            out = &out[20 + length..];
        }
        replies
    }

    #[test]
    fn the_greeting_is_the_protocols() {
        assert_eq!(greeting(), b"NBDMAGICIHAVEOPT\0\x03");
    }

    #[test]
    fn a_client_that_is_not_fixed_newstyle_or_has_unknown_flags_is_sent_away() {
        let step = |flags: u32| Handshake::Flags.advance(&flags.to_be_bytes(), &info(), &mut Vec::new());
        assert_eq!(step(3), Step::Next(4, READY));
        assert_eq!(step(1), Step::Next(4, Handshake::Option { zeroes: true }));
        assert_eq!([step(0), step(2), step(5)], [Step::Close; 3]);
        assert_eq!(Handshake::Flags.advance(&[0; 3], &info(), &mut Vec::new()), Step::More);
    }

    #[test]
    fn go_tells_the_export_and_what_is_asked_for_and_lets_requests_follow() {
        let data = go(b"disk", &[INFO_BLOCK_SIZE, INFO_DESCRIPTION, 99]);
        let (step, out) = answer(OPT_GO, &data);
        assert_eq!(step, Step::Done(16 + data.len()));
        let replies = replies(&out);
        let kinds: Vec<_> = replies.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [REP_INFO, REP_INFO, REP_INFO, REP_ACK]);
        let export = &replies[0].1;
        assert_eq!((be16(export, 0), be64(export, 2), be16(export, 10)), (0, 1 << 30, 0b1_0110_1101));
        let blocks = &replies[1].1;
        assert_eq!([be32(blocks, 2), be32(blocks, 6), be32(blocks, 10)], [512, 4096, 32 << 20]);
        assert_eq!(&replies[2].1[2..], b"a drive");
    }

    #[test]
    fn info_tells_the_same_and_lets_options_follow() {
        let (step, out) = answer(OPT_INFO, &go(b"", &[]));
        assert!(matches!(step, Step::Next(_, READY)), "{step:?}");
        assert_eq!(replies(&out).len(), 2);
    }

    #[test]
    fn an_unknown_export_is_refused_in_words_where_there_is_a_way_to() {
        let (step, out) = answer(OPT_GO, &go(b"other", &[]));
        assert!(matches!(step, Step::Next(..)));
        assert_eq!(replies(&out)[0].0, REP_ERR_UNKNOWN);
        assert_eq!(answer(OPT_EXPORT_NAME, b"other").0, Step::Close);
    }

    #[test]
    fn export_name_is_answered_without_a_reply_s_head_and_with_zeros_for_old_clients() {
        let (step, out) = answer(OPT_EXPORT_NAME, b"");
        assert_eq!((step, out.len()), (Step::Done(16), 10));
        let mut out = Vec::new();
        Handshake::Option { zeroes: true }.advance(&option_bytes(OPT_EXPORT_NAME, b"disk"), &info(), &mut out);
        assert_eq!(out.len(), 134);
    }

    #[test]
    fn the_list_has_one_export() {
        let (_, out) = answer(OPT_LIST, &[]);
        let replies = replies(&out);
        assert_eq!(replies[0], (REP_SERVER, b"\0\0\0\x04diska drive".to_vec()));
        assert_eq!(replies[1].0, REP_ACK);
    }

    #[test]
    fn what_is_not_known_is_unsupported_and_what_is_too_long_is_passed_over() {
        assert_eq!(replies(&answer(8, &[]).1)[0].0, REP_ERR_UNSUP);
        let mut out = Vec::new();
        let mut head = option_bytes(OPT_LIST, &[]);
        head[12..].copy_from_slice(&100_000_u32.to_be_bytes());
        let Step::Next(16, mut state) = READY.advance(&head, &info(), &mut out) else { panic!() };
        for _ in 0..2 {
            let Step::Next(used, next) = state.advance(&[0; 60_000], &info(), &mut out) else { panic!() };
            assert!(used <= 60_000);
            state = next;
        }
        assert_eq!((state, replies(&out)[0].0), (READY, REP_ERR_TOO_BIG));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_use_up_more_than_there_is(
            bytes in prop::collection::vec(any::<u8>(), 0..200), option in 0_u32..12, length in 0_u32..220, is_option: bool
        ) {
            let mut input = if is_option { option_bytes(option, &bytes) } else { bytes };
            if is_option {
                input[12..16].copy_from_slice(&length.to_be_bytes());
            }
            for state in [Handshake::Flags, READY, Handshake::Skipping { zeroes: true, option, bytes: 70 }] {
                match state.advance(&input, &info(), &mut Vec::new()) {
                    Step::Next(used, next) => prop_assert!(used <= input.len() && (used > 0 || next != state)),
                    Step::Done(used) => prop_assert!(used <= input.len()),
                    Step::More | Step::Close => {}
                }
            }
        }
    }
}
