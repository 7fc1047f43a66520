//! A thread that receives visitors one after the other, and keeps none for long.
//!
//! A visitor says a few words and gets an answer. Words that are too long, or take too long, end the visit; who comes
//! meanwhile waits in the listener's queue.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::AttachError;
use crate::event_fd::EventFd;
use crate::socket::Socket;

/// How long a visitor may take to say what it wants, and again to hear the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where visitors come to.
pub(crate) trait Door: Send + 'static {
    /// A visitor.
    type Visitor: Read + Write + AsFd;

    fn fd(&self) -> BorrowedFd<'_>;

    /// The next visitor that waits; reading from it and writing to it does not wait.
    fn accept(&self) -> Option<Self::Visitor>;
}

impl Door for Socket {
    type Visitor = UnixStream;

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }

    fn accept(&self) -> Option<UnixStream> {
        self.accept().filter(|stream| stream.set_nonblocking(true).is_ok())
    }
}

impl Door for TcpListener {
    type Visitor = TcpStream;

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn accept(&self) -> Option<TcpStream> {
        let (stream, _) = self.accept().ok()?;
        stream.set_nonblocking(true).ok().map(|()| stream)
    }
}

/// The thread; dropping it ends it, and closes the doors.
#[derive(Debug)]
pub(crate) struct Reception {
    stop: Arc<EventFd>,
    receiving: Option<JoinHandle<()>>,
}

impl Reception {
    /// Opens doors. `receive` is called for each visitor.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn open<D: Door>(
        name: &str,
        doors: Vec<D>,
        mut receive: impl FnMut(&mut D::Visitor) + Send + 'static,
    ) -> Result<Self, AttachError> {
        let stop = Arc::new(EventFd::new()?);
        let until = Arc::clone(&stop);
        let run = move || {
            while let Some(visitor) = next(&doors, &until) {
                visitor.into_iter().for_each(|mut visitor| receive(&mut visitor));
            }
        };
        let receiving = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let receiving = receiving.map_err(|error| AttachError::System { context: "a thread", error })?;
        Ok(Self { stop, receiving: Some(receiving) })
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.stop.notify();
        if let Some(receiving) = self.receiving.take() {
            // What made it panic was told where it did.
            let _ = receiving.join();
        }
    }
}

/// Waits for visitors: those that have come, at most one a door; `None` at the end.
fn next<D: Door>(doors: &[D], stop: &EventFd) -> Option<Vec<D::Visitor>> {
    let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
    fds.extend(doors.iter().map(|door| PollFd::from_borrowed_fd(door.fd(), PollFlags::IN)));
    match poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        // It cannot be waited for any more.
        Err(_) => return None,
    }
    if !fds[0].revents().is_empty() {
        return None;
    }
    let came = doors.iter().zip(&fds[1..]).filter(|(_, fd)| !fd.revents().is_empty());
    let visitors: Vec<_> = came.filter_map(|(door, _)| door.accept()).collect();
    if visitors.is_empty() && fds[1..].iter().any(|fd| !fd.revents().is_empty()) {
        // Out of file descriptors: trying again at once would only take the processor from the drive.
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(visitors)
}

/// Reads up to `end`, which is among the bytes then.
///
/// # Errors
/// Where there is no such end within `most` bytes ([`ErrorKind::InvalidData`]), or not in time
/// ([`ErrorKind::TimedOut`]), or the visitor goes.
pub(crate) fn hear(visitor: &mut (impl Read + AsFd), end: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let (mut heard, mut bytes) = (Vec::new(), [0; 512]);
    loop {
        let room = bytes.len().min(most - heard.len());
        match visitor.read(&mut bytes[..room]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let from = heard.len().saturating_sub(end.len() - 1);
                heard.extend(&bytes[..count]);
                if heard[from..].windows(end.len()).any(|part| part == end) {
                    return Ok(heard);
                }
                if heard.len() >= most {
                    return Err(ErrorKind::InvalidData.into());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(visitor, PollFlags::IN, until)?,
            Err(error) => return Err(error),
        }
        if Instant::now() >= until {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}

/// Sends all of it.
///
/// # Errors
/// Where the visitor does not take it in time, or goes.
pub(crate) fn say(visitor: &mut (impl Write + AsFd), mut words: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    while !words.is_empty() {
        match visitor.write(words) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => words = &words[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(visitor, PollFlags::OUT, until)?,
            Err(error) => return Err(error),
        }
        if !words.is_empty() && Instant::now() >= until {
            return Err(ErrorKind::TimedOut.into());
        }
    }
    Ok(())
}

/// Waits until something can be read or written.
fn wait(visitor: &impl AsFd, what: PollFlags, until: Instant) -> io::Result<()> {
    let rest = until.saturating_duration_since(Instant::now());
    let rest = Timespec { tv_sec: rest.as_secs().cast_signed(), tv_nsec: rest.subsec_nanos().into() };
    match poll(&mut [PollFd::new(visitor, what)], Some(&rest)) {
        Ok(0) => Err(ErrorKind::TimedOut.into()),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(words: &[u8], most: usize) -> io::Result<Vec<u8>> {
        let (mut visitor, mut here) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        visitor.write_all(words).unwrap();
        drop(visitor);
        hear(&mut here, b"\r\n\r\n", most)
    }

    #[test]
    fn an_end_is_heard_wherever_the_pieces_are_cut_that_it_comes_in() {
        for length in 505..516 {
            let words = [vec![b'a'; length], b"\r\n\r\n".to_vec()].concat();
            assert_eq!(heard(&words, 1000).unwrap(), words, "{length}");
        }
        assert_eq!(heard(&[b'a'; 1000], 1000).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(heard(b"a\r\n\r", 1000).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
