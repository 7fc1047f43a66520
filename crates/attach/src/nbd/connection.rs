//! One client: from bytes to commands, and from completions to bytes.
//!
//! Input is read in large pieces, because many small requests come together; the bytes of a large write are read
//! directly into the drive's buffer. Replies wait in a queue until the socket accepts them, and are sent together.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashwise_block::{ByteSize, DeviceInfo, IoBuffer, Operation};

use super::handshake::{Handshake, Negotiated, Step, greeting};
use super::protocol::*;
use crate::buffer_pool::BufferPool;
use crate::{AttachError, HostCompletion, HostRequest};

/// Bytes that are read together.
const INPUT: usize = 256 << 10;
/// Most requests of a client in flight; further ones wait in the socket.
const MAX_IN_FLIGHT: usize = 1024;
/// Bytes of a client's requests and replies that are held before no more of its requests are taken.
const MAX_HELD: u64 = 64 << 20;
/// Pieces of replies that are handed to the socket together.
const SLICES: usize = 64;

/// Where a client stands.
#[derive(Debug)]
enum Phase {
    Negotiating(Handshake),
    /// Between requests.
    Ready,
    /// A write whose bytes have come up to `filled`.
    Receiving {
        request: NbdRequest,
        payload: IoBuffer,
        filled: usize,
    },
    /// It has disconnected, or sent invalid data; pending replies are sent.
    Closing,
}

/// Part of a reply.
#[derive(Debug)]
enum ReplyPart {
    Head([u8; REPLY_BYTES]),
    OsMessage(Vec<u8>),
    Data(IoBuffer),
}

impl ReplyPart {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Head(head) => head,
            Self::OsMessage(words) => words,
            Self::Data(data) => data,
        }
    }
}

/// The other side has closed the connection.
#[derive(Debug)]
pub(crate) struct Disconnected;

/// A client's query of a range: which parts of it have data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusRequest {
    cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// The first part alone.
    pub(crate) one: bool,
}

/// How long a client may take to come to an agreement.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u32,
    stream: UnixStream,
    process: Option<u32>,
    buffers: BufferPool,
    phase: Phase,
    negotiated: Negotiated,
    /// Until when the negotiation is to be over.
    deadline: Instant,
    /// Pending BLOCK_STATUS requests, in order.
    status_requests: VecDeque<StatusRequest>,
    /// Received and unused bytes are in `start..end`.
    input: Box<[u8]>,
    start: usize,
    end: usize,
    output: VecDeque<ReplyPart>,
    /// Bytes of the first piece that are sent.
    sent: usize,
    in_flight: usize,
    /// Bytes of the requests in flight and of the waiting replies.
    held_bytes: u64,
}

impl Connection {
    /// Greets a client.
    pub(crate) fn new(id: u32, stream: UnixStream, buffers: BufferPool) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let process = rustix::net::sockopt::socket_peercred(&stream).ok();
        let process = process.and_then(|who| u32::try_from(who.pid.as_raw_nonzero().get()).ok());
        let mut connection = Self {
            id,
            stream,
            process,
            buffers,
            phase: Phase::Negotiating(Handshake::Flags),
            negotiated: Negotiated::default(),
            deadline: Instant::now() + HANDSHAKE_TIMEOUT,
            status_requests: VecDeque::new(),
            input: vec![0; INPUT].into(),
            start: 0,
            end: 0,
            output: VecDeque::with_capacity(2 * MAX_IN_FLIGHT),
            sent: 0,
            in_flight: 0,
            held_bytes: 0,
        };
        connection.queue(ReplyPart::OsMessage(greeting()));
        Ok(connection)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Until when it is to have agreed on an export, where it has not yet.
    pub(crate) fn handshake_deadline(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Negotiating(_)).then_some(self.deadline)
    }

    /// Takes the oldest pending BLOCK_STATUS request.
    pub(crate) fn next_status_request(&mut self) -> Option<StatusRequest> {
        self.status_requests.pop_front()
    }

    /// Whether a BLOCK_STATUS request is pending.
    pub(crate) fn has_status_requests(&self) -> bool {
        !self.status_requests.is_empty()
    }

    /// Whether its requests are taken now.
    pub(crate) fn wants_input(&self) -> bool {
        !matches!(self.phase, Phase::Closing) && self.has_capacity()
    }

    fn has_capacity(&self) -> bool {
        self.in_flight < MAX_IN_FLIGHT && self.held_bytes < MAX_HELD
    }

    /// Whether requests are buffered that had to wait, and can now start.
    pub(crate) fn has_buffered_requests(&self) -> bool {
        matches!(self.phase, Phase::Ready) && self.has_capacity() && self.end - self.start >= REQUEST_BYTES
    }

    /// Whether something waits for the socket.
    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether nothing is left to be done for it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closing) && self.in_flight == 0 && self.output.is_empty()
    }

    /// No further requests of it are taken.
    pub(crate) fn close(&mut self) {
        self.phase = Phase::Closing;
    }

    /// The client has gone: no reply is sent, and the results of its requests in flight are dropped.
    pub(crate) fn abandon(&mut self) {
        self.phase = Phase::Closing;
        self.output.clear();
        self.status_requests.clear();
        self.in_flight = 0;
    }

    /// Reads received bytes and puts their commands into `commands`.
    pub(crate) fn receive(&mut self, info: &DeviceInfo, commands: &mut Vec<HostRequest>) -> Result<(), Disconnected> {
        loop {
            self.advance(info, commands);
            if !self.wants_input() {
                return Ok(());
            }
            let (read, wanted) = match &mut self.phase {
                Phase::Receiving { payload, filled, .. } if self.start == self.end => {
                    let rest = &mut payload[*filled..];
                    let wanted = rest.len();
                    let read = self.stream.read(rest);
                    *filled += read.as_ref().map_or(0, |bytes| *bytes);
                    (read, wanted)
                }
                _ => {
                    self.input.copy_within(self.start..self.end, 0);
                    (self.start, self.end) = (0, self.end - self.start);
                    let rest = &mut self.input[self.end..];
                    let wanted = rest.len();
                    let read = self.stream.read(rest);
                    self.end += read.as_ref().map_or(0, |bytes| *bytes);
                    (read, wanted)
                }
            };
            match read {
                Ok(0) => return Err(Disconnected),
                // The socket was empty; another read would only say so.
                Ok(bytes) if bytes < wanted => {
                    self.advance(info, commands);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Disconnected),
            }
        }
    }

    /// Parses the buffered bytes.
    fn advance(&mut self, info: &DeviceInfo, commands: &mut Vec<HostRequest>) {
        while self.step(info, commands) {}
    }

    /// Uses up one option or request; `false` where more bytes are needed.
    fn step(&mut self, info: &DeviceInfo, commands: &mut Vec<HostRequest>) -> bool {
        let has_room = self.has_capacity();
        match &mut self.phase {
            Phase::Closing => false,
            Phase::Negotiating(handshake) => {
                let (state, mut words) = (*handshake, Vec::new());
                let step = state.advance(&self.input[self.start..self.end], info, &mut words);
                let (used, phase) = match step {
                    Step::More => return false,
                    Step::Next(used, next) => (used, Phase::Negotiating(next)),
                    Step::Done(used, negotiated) => {
                        self.negotiated = negotiated;
                        (used, Phase::Ready)
                    }
                    Step::Close => (0, Phase::Closing),
                };
                self.start += used;
                self.phase = phase;
                if !words.is_empty() {
                    self.queue(ReplyPart::OsMessage(words));
                }
                true
            }
            Phase::Ready if !has_room => false,
            Phase::Ready => self.request(commands),
            Phase::Receiving { payload, filled, .. } => {
                let bytes = (self.end - self.start).min(payload.len() - *filled);
                payload[*filled..*filled + bytes].copy_from_slice(&self.input[self.start..self.start + bytes]);
                self.start += bytes;
                *filled += bytes;
                if *filled < payload.len() {
                    return false;
                }
                if let Phase::Receiving { request, payload, .. } = std::mem::replace(&mut self.phase, Phase::Ready) {
                    commands.push(self.command(request, Operation::Write, Some(payload)));
                }
                true
            }
        }
    }

    /// Takes a request's first bytes.
    fn request(&mut self, commands: &mut Vec<HostRequest>) -> bool {
        let Some(bytes) = self.input[self.start..self.end].first_chunk::<REQUEST_BYTES>() else { return false };
        let Some(request) = NbdRequest::parse(bytes) else {
            self.close();
            return false;
        };
        self.start += REQUEST_BYTES;
        match request.kind {
            Kind::Disconnect => self.close(),
            Kind::Unknown => self.refuse(request.cookie, EINVAL),
            Kind::BlockStatus { one } if self.negotiated.allocation && request.length > 0 => {
                let NbdRequest { cookie, offset, length, .. } = request;
                // Counted as in flight, so that a client that reads no replies cannot queue requests without bound.
                self.in_flight += 1;
                self.status_requests.push_back(StatusRequest { cookie, offset, length, one });
            }
            Kind::BlockStatus { .. } => self.refuse_structured(request.cookie, EINVAL),
            // Its bytes would have to be taken first, and no sensible client sends them.
            Kind::Do(Operation::Write) if request.payload_bytes() > MAX_TRANSFER => self.close(),
            Kind::Do(Operation::Write) => {
                let payload = self.buffers.take(ByteSize(request.length.into()));
                self.phase = Phase::Receiving { request, payload, filled: 0 };
            }
            Kind::Do(Operation::Read) if request.length > MAX_TRANSFER => {
                self.refuse_structured(request.cookie, EOVERFLOW);
            }
            Kind::Do(operation) => commands.push(self.command(request, operation, None)),
        }
        true
    }

    fn command(&mut self, request: NbdRequest, operation: Operation, payload: Option<IoBuffer>) -> HostRequest {
        let NbdRequest { cookie, offset, length, fua, .. } = request;
        let is_flush = operation == Operation::Flush;
        let place = |bytes: u64| ByteSize(if is_flush { 0 } else { bytes });
        let (offset, length) = (place(offset), place(u64::from(length)));
        self.in_flight += 1;
        self.held_bytes += held_by(operation, length);
        let (client, process) = (self.id, self.process);
        HostRequest { client, cookie, process, operation, offset, length, fua, payload }
    }

    fn refuse(&mut self, cookie: u64, error: u32) {
        self.queue(ReplyPart::Head(reply(cookie, error)));
    }

    /// The same for a request whose reply is structured where that was agreed on.
    fn refuse_structured(&mut self, cookie: u64, error: u32) {
        match self.negotiated.structured {
            true => self.queue(ReplyPart::OsMessage(error_chunk(cookie, error))),
            false => self.refuse(cookie, error),
        }
    }

    /// Queues the reply to a BLOCK_STATUS: its extents, `None` for a range that is not on the drive, or an error of the
    /// data file, which fails this request only.
    pub(crate) fn answer_status(
        &mut self,
        request: StatusRequest,
        ranges: Result<Option<Vec<(u32, bool)>>, AttachError>,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match ranges {
            Ok(Some(ranges)) => self.queue(ReplyPart::OsMessage(status_chunk(request.cookie, &ranges))),
            Ok(None) => self.refuse_structured(request.cookie, EINVAL),
            Err(_) => self.refuse_structured(request.cookie, EIO),
        }
    }

    fn queue(&mut self, piece: ReplyPart) {
        self.held_bytes += piece.bytes().len() as u64;
        self.output.push_back(piece);
    }

    /// Queues the reply to a command.
    pub(crate) fn answer(&mut self, answer: HostCompletion, capacity: ByteSize) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.held_bytes = self.held_bytes.saturating_sub(held_by(answer.operation, answer.length));
        let error = answer.result.as_ref().map_or_else(|error| error_number(error, capacity), |()| 0);
        let is_structured = self.negotiated.structured && answer.operation == Operation::Read;
        match (is_structured, error) {
            (false, _) => self.queue(ReplyPart::Head(reply(answer.cookie, error))),
            (true, 0) => {
                let length = answer.payload.as_ref().map_or(0, |data| data.len() as u32);
                self.queue(ReplyPart::OsMessage(data_chunk(answer.cookie, answer.offset.0, length)));
            }
            (true, _) => self.queue(ReplyPart::OsMessage(error_chunk(answer.cookie, error))),
        }
        match answer.payload {
            Some(data) if error == 0 => self.queue(ReplyPart::Data(data)),
            Some(data) => self.buffers.give(data),
            None => {}
        }
    }

    /// Sends as much as the socket takes.
    pub(crate) fn send(&mut self) -> Result<(), Disconnected> {
        while !self.output.is_empty() {
            let sent = {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = self.output.len().min(SLICES);
                for (n, (slice, piece)) in slices.iter_mut().zip(&self.output).enumerate() {
                    *slice = IoSlice::new(&piece.bytes()[if n == 0 { self.sent } else { 0 }..]);
                }
                self.stream.write_vectored(&slices[..count])
            };
            match sent {
                Ok(bytes) => self.sent_bytes(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Disconnected),
            }
        }
        Ok(())
    }

    /// Removes what the socket has accepted.
    fn sent_bytes(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes as u64);
        self.sent += bytes;
        while let Some(first) = self.output.front()
            && self.sent >= first.bytes().len()
        {
            self.sent -= first.bytes().len();
            if let Some(ReplyPart::Data(data)) = self.output.pop_front() {
                self.buffers.give(data);
            }
        }
    }
}

/// Bytes that a request occupies while it is in flight.
fn held_by(operation: Operation, length: ByteSize) -> u64 {
    if matches!(operation, Operation::Read | Operation::Write) { length.0 } else { 0 }
}
