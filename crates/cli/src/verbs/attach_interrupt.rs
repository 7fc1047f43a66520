//! Ctrl-C while a drive is prepared, and while it is attached.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flashwise_attach::Stop;

use crate::interrupt;
use crate::output::note;

/// Handle that stops the server, and the drive's file.
type Attached = (Stop, Option<PathBuf>);

/// Ctrl-C, before the drive is attached and after; it is never lost between the two.
#[derive(Clone, Default)]
pub struct Listener {
    /// Set once Ctrl-C has come.
    interrupted: Arc<AtomicBool>,
    /// Set once the drive can be reached.
    serves: Arc<AtomicBool>,
    /// Held while `interrupted` is set, and while it is read when the drive is attached.
    attached: Arc<Mutex<Option<Attached>>>,
}

impl Listener {
    /// Starts to listen. Ctrl-C during preparation ends the program; later it lets the drive complete its requests and
    /// print its report.
    pub fn start() -> Self {
        let listener = Self::default();
        let (told, serves) = (listener.clone(), Arc::clone(&listener.serves));
        interrupt::handle_with(move || told.interrupt(), move || !serves.load(Ordering::Acquire));
        listener
    }

    /// The drive is about to be reached: from now on only the server ends the program.
    pub fn serves(&self) {
        self.serves.store(true, Ordering::Release);
    }

    fn interrupt(&self) {
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        self.interrupted.store(true, Ordering::Relaxed);
        let Some((stop, disk)) = &*attached else { return };
        if let Some(disk) = disk {
            let disk = disk.display();
            note(&format!("{disk} is served until no process has it open; press Ctrl-C again to end it at once"));
        }
        stop.request();
    }

    /// Called when the drive is attached; stops it at once if Ctrl-C came before.
    pub fn attached(&self, stop: Stop, disk: Option<PathBuf>) {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        if self.interrupted.load(Ordering::Relaxed) {
            stop.request();
        }
        *attached = Some((stop, disk));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use flashwise_attach::{Engine, Pace, Server};
    use flashwise_ssd::{DeviceConfig, SimulatedSsd};

    use super::*;

    /// Runs a server; the receiver gets a message when it has ended.
    fn served(server: Server) -> mpsc::Receiver<()> {
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            server.run().unwrap();
            ended.send(()).unwrap();
        });
        end
    }

    fn server() -> Server {
        let drive = SimulatedSsd::new(DeviceConfig::preset("samsung-960-evo").unwrap(), 1).unwrap();
        Server::new(Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap()).unwrap()
    }

    #[test]
    fn ctrl_c_that_came_before_the_drive_was_attached_ends_it() {
        let (listener, server) = (Listener::default(), server());
        listener.interrupt();
        listener.attached(server.stop(), None);
        served(server).recv_timeout(Duration::from_secs(60)).expect("it is not lost");
    }

    #[test]
    fn ctrl_c_after_that_ends_it_too_and_nothing_else_does() {
        let (listener, server) = (Listener::default(), server());
        listener.attached(server.stop(), None);
        let end = served(server);
        assert_eq!(end.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
        listener.interrupt();
        end.recv_timeout(Duration::from_secs(60)).expect("it is told");
    }
}
