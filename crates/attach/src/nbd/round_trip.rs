//! The time of the way to a client and back on this machine: through the kernel's sockets, waking two threads, and the
//! work of client and server outside the times that the server sees.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashwise_block::{ByteSize, Request, execute};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use super::protocol::{EXPORT, OPT_EXPORT_NAME, REPLY_BYTES, REQUEST_MAGIC};
use crate::error::spawn;
use crate::pace::{Span, estimate_round_trip};
use crate::{AttachError, Engine, Pace, Server};

/// Reads that are timed.
const READS: u64 = 400;
/// Bytes of a read.
const LENGTH: u32 = 4096;
/// A thread that waits longer for a completion is not woken up any slower.
const LONG: Duration = Duration::from_millis(1);

/// How much longer than the server takes for a read of 4 KiB its client waits for it, without disturbance (the lower
/// quartile): measured with a client that reads one block after the other, through the same server and a socket, from a
/// drive of the same kind and at the same pace, so that both sleep as long as they will.
///
/// # Errors
/// When the machine provides no sockets or threads.
pub fn measure_round_trip(config: &DeviceConfig, pace: Pace) -> Result<Duration, AttachError> {
    use std::io::Error;
    let no_drive = |error| AttachError::system("a drive to measure the round trip with")(Error::other(error));
    let drive = SimulatedSsd::new(config.clone(), 1).map_err(no_drive)?;
    let pace = at_most(pace, config).map_err(no_drive)?;
    let mut engine = Engine::new(drive, pace, Duration::ZERO, None, Instant::now())?;
    engine.keep_service_times();
    let (client, served) = UnixStream::pair().map_err(AttachError::system("a pair of sockets"))?;
    let mut server = Server::new(engine)?;
    server.adopt(served);
    let stop = server.stop();
    let serving = spawn("round trip", move || server.run()).map_err(AttachError::system("a thread"))?;
    let measured = measure(client).map_err(AttachError::system("measuring the round trip"));
    stop.request();
    let panicked = |_| AttachError::system("the round trip's server")(Error::other("it panicked"));
    let engine = serving.join().map_err(panicked)??;
    let lost =
        || AttachError::system("requests of the round trip")(Error::other("the server did not receive all of them"));
    estimate_round_trip(&measured?, engine.service_times()).ok_or_else(lost)
}

/// A pace at which a read takes no longer than it must to be one that is waited for.
fn at_most(pace: Pace, config: &DeviceConfig) -> Result<Pace, flashwise_ssd::SsdError> {
    let Pace::Scaled(scale) = pace else { return Ok(pace) };
    let mut drive = SimulatedSsd::new(config.clone(), 1)?;
    let read = execute(&mut drive, Request::read(ByteSize(0), ByteSize(LENGTH.into())));
    let read_ns = read.map_or(1, |read| read.latency().0.max(1)) as f64;
    Ok(Pace::Scaled(scale.min((LONG.as_nanos() as f64 / read_ns).max(1.0))))
}

/// How long each of the reads takes, one after the other.
fn measure(mut client: UnixStream) -> std::io::Result<Vec<Span>> {
    negotiate(&mut client)?;
    let mut trips = Vec::with_capacity(READS as usize);
    let mut reply = vec![0; REPLY_BYTES + LENGTH as usize];
    for cookie in 0..READS {
        let mut request = REQUEST_MAGIC.to_be_bytes().to_vec();
        request.extend([0; 4]);
        request.extend(cookie.to_be_bytes());
        request.extend(ByteSize(0).0.to_be_bytes());
        request.extend(LENGTH.to_be_bytes());
        let began = Instant::now();
        client.write_all(&request)?;
        client.read_exact(&mut reply)?;
        trips.push(Span::since(began));
    }
    Ok(trips)
}

fn negotiate(client: &mut UnixStream) -> std::io::Result<()> {
    client.read_exact(&mut [0; 18])?;
    let mut words = 3_u32.to_be_bytes().to_vec();
    words.extend(b"IHAVEOPT");
    words.extend(OPT_EXPORT_NAME.to_be_bytes());
    words.extend((EXPORT.len() as u32).to_be_bytes());
    words.extend(EXPORT.as_bytes());
    client.write_all(&words)?;
    client.read_exact(&mut [0; 10])
}
