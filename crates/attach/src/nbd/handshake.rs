//! The negotiation before the first request: the export and its properties.
//!
//! A state machine over bytes: complete options are taken from the received bytes and replied to. Options are limited
//! in length; a longer one is skipped and replied to with an error.

use flashwise_block::DeviceInfo;

use super::protocol::*;

/// Longest option that is parsed, bytes: a name of 4,096 bytes and a request for every piece of information.
const MAX_OPTION: usize = 64 << 10;

/// Bytes of an option without its data.
const OPTION_BYTES: usize = 16;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// Its flags are awaited.
    Flags,
    /// An option is awaited.
    Option(Negotiated),
    /// Remaining bytes of an option that is too long.
    Skipping { negotiated: Negotiated, option: u32, bytes: u64 },
}

/// The options agreed on by client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Negotiated {
    /// Zeros follow the reply to EXPORT_NAME.
    pub(super) zeroes: bool,
    /// Replies to reads are structured.
    pub(super) structured: bool,
    /// BLOCK_STATUS reports `base:allocation`.
    pub(super) allocation: bool,
}

/// Result of parsing the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Bytes used; more are needed.
    Next(usize, Handshake),
    /// More bytes are needed.
    More,
    /// Bytes used; requests follow.
    Done(usize, Negotiated),
    /// The client wants to go, or makes no sense.
    Close,
}

/// The server's first message.
pub(super) fn greeting() -> Vec<u8> {
    let mut bytes: Vec<u8> = GREETING.iter().flat_map(|magic| magic.to_be_bytes()).collect();
    bytes.extend((FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    bytes
}

impl Handshake {
    /// Parses received bytes; appends the reply to `out`.
    pub(super) fn advance(self, input: &[u8], info: &DeviceInfo, out: &mut Vec<u8>) -> Step {
        match self {
            Self::Flags if input.len() < 4 => Step::More,
            Self::Flags => {
                let flags = be32(input, 0);
                if flags & u32::from(FIXED_NEWSTYLE) == 0 || flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
                    return Step::Close;
                }
                let zeroes = flags & u32::from(NO_ZEROES) == 0;
                Step::Next(4, Self::Option(Negotiated { zeroes, ..Negotiated::default() }))
            }
            Self::Option(negotiated) => option(input, negotiated, info, out),
            Self::Skipping { negotiated, option, bytes } => {
                let here = bytes.min(input.len() as u64);
                if here == bytes {
                    out.extend(option_reply(option, REP_ERR_TOO_BIG, b"the option is too long"));
                    return Step::Next(here as usize, Self::Option(negotiated));
                }
                match here {
                    0 => Step::More,
                    _ => Step::Next(here as usize, Self::Skipping { negotiated, option, bytes: bytes - here }),
                }
            }
        }
    }
}

/// One option and its reply.
fn option(input: &[u8], negotiated: Negotiated, info: &DeviceInfo, out: &mut Vec<u8>) -> Step {
    if input.len() < OPTION_BYTES {
        return Step::More;
    }
    let (magic, option, length) = (be64(input, 0), be32(input, 8), be32(input, 12) as usize);
    if magic != GREETING[1] {
        return Step::Close;
    }
    if length > MAX_OPTION {
        // EXPORT_NAME has no way to say no.
        let skipping = Handshake::Skipping { negotiated, option, bytes: length as u64 };
        return if option == OPT_EXPORT_NAME { Step::Close } else { Step::Next(OPTION_BYTES, skipping) };
    }
    let Some(data) = input.get(OPTION_BYTES..OPTION_BYTES + length) else { return Step::More };
    let used = OPTION_BYTES + length;
    let next = Step::Next(used, Handshake::Option(negotiated));
    match option {
        OPT_EXPORT_NAME if is_export(data) => {
            out.extend(&export(info.capacity, negotiated.structured)[2..]);
            out.extend(std::iter::repeat_n(0, if negotiated.zeroes { 124 } else { 0 }));
            Step::Done(used, negotiated)
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
                reply_information(option, asked, info, negotiated.structured, out);
                if option == OPT_GO { Step::Done(used, negotiated) } else { next }
            }
        },
        OPT_STRUCTURED_REPLY if data.is_empty() => {
            out.extend(option_reply(option, REP_ACK, &[]));
            Step::Next(used, Handshake::Option(Negotiated { structured: true, ..negotiated }))
        }
        OPT_STRUCTURED_REPLY => refuse(option, REP_ERR_INVALID, "STRUCTURED_REPLY has no data", out, next),
        OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT => contexts(option, data, used, negotiated, out),
        OPT_LIST => refuse(option, REP_ERR_INVALID, "LIST has no data", out, next),
        _ => refuse(option, REP_ERR_UNSUP, "", out, next),
    }
}

/// Lists the metadata contexts, or selects them: `base:allocation` is the only one.
fn contexts(option: u32, data: &[u8], used: usize, negotiated: Negotiated, out: &mut Vec<u8>) -> Step {
    let is_setting = option == OPT_SET_META_CONTEXT;
    // In any case, the earlier settings are cleared.
    let negotiated = Negotiated { allocation: negotiated.allocation && !is_setting, ..negotiated };
    let next = |negotiated| Step::Next(used, Handshake::Option(negotiated));
    if is_setting && !negotiated.structured {
        return refuse(option, REP_ERR_INVALID, "STRUCTURED_REPLY comes first", out, next(negotiated));
    }
    let Some((name, queries)) = parse_context_request(data) else {
        return refuse(option, REP_ERR_INVALID, "the option does not parse", out, next(negotiated));
    };
    if !is_export(name) {
        return refuse(option, REP_ERR_UNKNOWN, "the only export is 'disk'", out, next(negotiated));
    }
    let asks_for = |query: &&[u8]| *query == ALLOCATION || !is_setting && *query == b"base:";
    let is_meant = queries.iter().any(asks_for) || !is_setting && queries.is_empty();
    if is_meant {
        let id = if is_setting { ALLOCATION_ID } else { 0 };
        out.extend(option_reply(option, REP_META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION].concat()));
    }
    out.extend(option_reply(option, REP_ACK, &[]));
    next(Negotiated { allocation: if is_setting { is_meant } else { negotiated.allocation }, ..negotiated })
}

/// The name and the queries of an option on contexts.
fn parse_context_request(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let text = |data: &'_ [u8]| -> Option<usize> { Some(be32(data.get(..4)?, 0) as usize) };
    let (name, rest) = data.get(4..)?.split_at_checked(text(data)?)?;
    let (count, mut rest) = (text(rest)?, rest.get(4..)?);
    let mut queries = Vec::new();
    while !rest.is_empty() {
        let (query, behind) = rest.get(4..)?.split_at_checked(text(rest)?)?;
        queries.push(query);
        rest = behind;
    }
    (queries.len() == count).then_some((name, queries))
}

fn refuse(option: u32, kind: u32, why: &str, out: &mut Vec<u8>, next: Step) -> Step {
    out.extend(option_reply(option, kind, why.as_bytes()));
    next
}

fn is_export(name: &[u8]) -> bool {
    name.is_empty() || name == EXPORT.as_bytes()
}

/// The name and the kinds of information, two bytes each, in INFO or GO.
fn parse_information_request(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = be32(data.get(..4)?, 0) as usize;
    let (name, rest) = data[4..].split_at_checked(length)?;
    let count = usize::from(be16(rest.get(..2)?, 0));
    let kinds = &rest[2..];
    (kinds.len() == 2 * count).then_some((name, kinds))
}

/// The export, and the requested information.
fn reply_information(option: u32, asked: &[u8], info: &DeviceInfo, structured: bool, out: &mut Vec<u8>) {
    out.extend(option_reply(option, REP_INFO, &export(info.capacity, structured)));
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
            atomic_write: None,
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

    const PLAIN: Negotiated = Negotiated { zeroes: false, structured: false, allocation: false };
    const READY: Handshake = Handshake::Option(PLAIN);
    const ZEROES: Negotiated = Negotiated { zeroes: true, ..PLAIN };

    fn answer(option: u32, data: &[u8]) -> (Step, Vec<u8>) {
        let mut out = Vec::new();
        let step = READY.advance(&option_bytes(option, data), &info(), &mut out);
        (step, out)
    }

    /// The kinds of the replies in a response.
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
        assert_eq!(step(1), Step::Next(4, Handshake::Option(ZEROES)));
        assert_eq!([step(0), step(2), step(5)], [Step::Close; 3]);
        assert_eq!(Handshake::Flags.advance(&[0; 3], &info(), &mut Vec::new()), Step::More);
    }

    #[test]
    fn go_tells_the_export_and_what_is_asked_for_and_lets_requests_follow() {
        let data = go(b"disk", &[INFO_BLOCK_SIZE, INFO_DESCRIPTION, 99]);
        let (step, out) = answer(OPT_GO, &data);
        assert_eq!(step, Step::Done(16 + data.len(), PLAIN));
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
        assert_eq!((step, out.len()), (Step::Done(16, PLAIN), 10));
        let mut out = Vec::new();
        Handshake::Option(ZEROES).advance(&option_bytes(OPT_EXPORT_NAME, b"disk"), &info(), &mut out);
        assert_eq!(out.len(), 134);
    }

    fn context_request(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
        let text = |text: &[u8]| [&(text.len() as u32).to_be_bytes(), text].concat();
        let queries_bytes: Vec<u8> = queries.iter().flat_map(|query| text(query)).collect();
        [text(name), (queries.len() as u32).to_be_bytes().to_vec(), queries_bytes].concat()
    }

    #[test]
    fn contexts_are_listed_and_set_once_replies_are_structured() {
        let structured = Negotiated { structured: true, ..PLAIN };
        let ask = |negotiated, option, data: &[u8]| {
            let mut out = Vec::new();
            let step = Handshake::Option(negotiated).advance(&option_bytes(option, data), &info(), &mut out);
            let Step::Next(_, Handshake::Option(after)) = step else { panic!("{step:?}") };
            (after, replies(&out))
        };
        let (after, told) = ask(PLAIN, OPT_STRUCTURED_REPLY, &[]);
        assert_eq!((after, told[0].0), (structured, REP_ACK));
        assert_eq!(ask(PLAIN, OPT_STRUCTURED_REPLY, b"x").1[0].0, REP_ERR_INVALID);
        let wanted = context_request(b"", &[b"qemu:dirty-bitmap", b"base:allocation"]);
        assert_eq!(ask(PLAIN, OPT_SET_META_CONTEXT, &wanted).1[0].0, REP_ERR_INVALID);
        let (after, told) = ask(structured, OPT_SET_META_CONTEXT, &wanted);
        assert!(after.allocation);
        assert_eq!(told[0], (REP_META_CONTEXT, b"\0\0\0\x01base:allocation".to_vec()));
        assert_eq!((told[1].0, told.len()), (REP_ACK, 2));
        // A request that cannot be met clears the settings.
        for other in [context_request(b"disk", &[b"base:other"]), context_request(b"disk", &[])] {
            let (taken_back, told) = ask(after, OPT_SET_META_CONTEXT, &other);
            assert_eq!((taken_back.allocation, told.len(), told[0].0), (false, 1, REP_ACK));
        }
        for all in [context_request(b"disk", &[]), context_request(b"disk", &[b"base:"])] {
            assert_eq!(ask(after, OPT_LIST_META_CONTEXT, &all).1[0].0, REP_META_CONTEXT);
        }
        let unknown = context_request(b"other", &[]);
        assert_eq!(ask(structured, OPT_LIST_META_CONTEXT, &unknown).1[0].0, REP_ERR_UNKNOWN);
        for cut in 0..wanted.len() {
            assert_eq!(ask(structured, OPT_SET_META_CONTEXT, &wanted[..cut]).1[0].0, REP_ERR_INVALID, "{cut}");
        }
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
        assert_eq!(replies(&answer(5, &[]).1)[0].0, REP_ERR_UNSUP);
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
            for state in [Handshake::Flags, READY, Handshake::Skipping { negotiated: ZEROES, option, bytes: 70 }] {
                match state.advance(&input, &info(), &mut Vec::new()) {
                    Step::Next(used, next) => prop_assert!(used <= input.len() && (used > 0 || next != state)),
                    Step::Done(used, _) => prop_assert!(used <= input.len()),
                    Step::More | Step::Close => {}
                }
            }
        }
    }
}
