//! What the way to a client and back takes on this machine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashwise_block::{ByteSize, LatencySummary, Nanos};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};

use super::protocol::{EXPORT, OPT_EXPORT_NAME, REPLY_BYTES, REQUEST_MAGIC};
use crate::{AttachError, Engine, Pace, Server};

/// Reads that are timed, and those before them that are not.
const TIMED: u64 = 500;
const BEFORE: u64 = 100;
/// Bytes of a read.
const LENGTH: u32 = 4096;

/// The median time of a read of 4 KiB from a drive that answers at once, through the same server and a socket.
///
/// # Errors
/// Where the machine gives no sockets or threads.
pub fn measure_round_trip(config: &DeviceConfig) -> Result<Duration, AttachError> {
    let system = |context| move |error| AttachError::System { context, error };
    let drive = SimulatedSsd::new(config.clone(), 1).map_err(|error| AttachError::System {
        context: "a drive to measure the round trip with",
        error: std::io::Error::other(error),
    })?;
    let engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now())?;
    let (client, served) = UnixStream::pair().map_err(system("a pair of sockets"))?;
    let mut server = Server::new(engine)?;
    server.adopt(served);
    let stop = server.stop();
    let serve = move || server.run().map(drop);
    let serving = std::thread::Builder::new().name("round trip".to_owned()).spawn(serve);
    let serving = serving.map_err(system("a thread"))?;
    let measured = measure(client).map_err(system("measuring the round trip"));
    stop.request();
    let _ = serving.join();
    measured
}

fn measure(mut client: UnixStream) -> std::io::Result<Duration> {
    negotiate(&mut client)?;
    let mut trips = LatencySummary::new();
    let mut reply = vec![0; REPLY_BYTES + LENGTH as usize];
    for cookie in 0..BEFORE + TIMED {
        let mut request = REQUEST_MAGIC.to_be_bytes().to_vec();
        request.extend([0; 4]);
        request.extend(cookie.to_be_bytes());
        request.extend(ByteSize(0).0.to_be_bytes());
        request.extend(LENGTH.to_be_bytes());
        let began = Instant::now();
        client.write_all(&request)?;
        client.read_exact(&mut reply)?;
        if cookie >= BEFORE {
            trips.record(Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)));
        }
    }
    Ok(Duration::from_nanos(trips.percentile(50.0).0))
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
