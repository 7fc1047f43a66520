//! The one thread: it waits for clients and for the engine's next deadline at once.
//!
//! The last stretch before a deadline is waited for awake, because sleeping is as coarse as the machine's timers;
//! longer than that would take the processor from the clients.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flashwise_block::ByteSize;
use rustix::event::{PollFd, PollFlags};

use crate::command_channel::CommandChannel;
use crate::engine::{ALLOCATION_STEPS, KERNEL_CLIENT};
use crate::error::{os_message, spawn};
use crate::event_fd::EventFd;
use crate::fuse::{FuseReply, KernelClient, Mounted};
use crate::guard::memory;
use crate::guard::watchdog::{HEARTBEAT, Watchdog};
use crate::kernel_times::KernelBaseline;
use crate::management::{self, Listener, Management};
use crate::nbd::{Connection, StatusRequest};
use crate::poll::poll;
use crate::realtime::RealtimePriority;
use crate::slab::Slab;
use crate::socket::Socket;
use crate::volume::{FileSystem, Messages, MountPlan, RuntimeDirectory, Volume};
use crate::{AttachError, Engine, HostCompletion, HostRequest, Wake};

/// Initial capacity for requests and completions of a turn.
const BATCH: usize = 1024;
/// Clients at most. Of more, the one that has taken longest to agree on an export is sent away.
const MAX_CLIENTS: usize = 32;
/// Most file descriptors polled: clients, the end, new clients, the kernel's requests, commands.
const SOURCES: usize = MAX_CLIENTS + 4;
/// The stretch before a deadline that is waited for awake.
pub(crate) const SPIN: Duration = Duration::from_micros(20);
/// How long clients have to receive their pending replies at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of written data for which memory is allocated in advance for a mounted drive.
const RESERVED_CONTENT: u64 = 256 << 20;
/// Bytes of requests of each usual size for which memory is taken at the start, of any drive.
const RESERVED_BUFFERS: usize = 2 << 20;
/// Most requests of a mounted drive in flight, and bytes of the largest, for which memory is allocated in advance.
const MAX_IN_FLIGHT: usize = 128;
const MAX_REQUEST: ByteSize = ByteSize(1 << 20);
/// Ending of a warning.
const HANGS: &str = "if a mounted drive is stopped or runs out of memory, every sync on this machine may hang";
/// How often it is checked at the end whether a process still has the file.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Where a drive is mounted.
#[derive(Clone, Debug)]
pub struct MountedAt {
    /// The block device that the file system is on.
    pub device: PathBuf,
    /// The file system: the existing one, or the requested one.
    pub kind: FileSystem,
    /// Bytes of memory that are locked; `None` where that is not allowed.
    pub locked_bytes: Option<u64>,
}

/// How a mounted drive is to be watched.
struct WatchdogConfig {
    command: Box<dyn FnOnce() -> std::process::Command + Send>,
    timeout: Duration,
}

/// Ends a server from elsewhere, such as from a signal's handler.
#[derive(Clone, Debug)]
pub struct Stop(Arc<EventFd>);

impl Stop {
    /// Lets the server complete requests in flight and end. A mounted file is served until no process has it open, a
    /// file system until no process uses it; a second request ends that too, and the file system is then written back
    /// to the drive.
    pub fn request(&self) {
        self.0.notify();
    }
}

/// A drive with its front ends.
pub struct Server {
    engine: Engine,
    socket: Option<Socket>,
    /// Dropped first: later requests for the file fail, and no process waits for it.
    mounted: Option<Mounted>,
    volume: Option<Volume>,
    /// The requests of mounting, which are not the user's.
    kernel_baseline: Option<KernelBaseline>,
    runtime: Option<RuntimeDirectory>,
    /// Ended where nothing is mounted any more.
    watchdog: Option<Watchdog>,
    watchdog_config: Option<WatchdogConfig>,
    messages: Messages,
    /// Another thread does something that waits for the drive.
    is_waited_for: bool,
    /// The time of the way through the kernel is measured.
    measures_round_trips: bool,
    /// Reply handles of the kernel's commands, by cookie.
    replies: Slab<FuseReply>,
    stop: Stop,
    /// Completions at their due time.
    priority: Option<RealtimePriority>,
    /// Dropped before the management thread, which may wait for it.
    command_channel: CommandChannel,
    management: Option<Management>,
    connections: Vec<Connection>,
    clients: u32,
    commands: Vec<HostRequest>,
    answers: Vec<HostCompletion>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Server {
    /// A drive that cannot be reached yet.
    ///
    /// # Errors
    /// When the system has no more file descriptors.
    pub fn new(engine: Engine) -> Result<Self, AttachError> {
        let command_channel = CommandChannel::new(&engine)?;
        engine.buffers().reserve_all(RESERVED_BUFFERS, 2 * MAX_IN_FLIGHT);
        Ok(Self {
            engine,
            socket: None,
            volume: None,
            kernel_baseline: None,
            mounted: None,
            runtime: None,
            watchdog: None,
            watchdog_config: None,
            messages: Messages(Arc::new(|_| ())),
            is_waited_for: false,
            measures_round_trips: false,
            replies: Slab::with_capacity(0),
            stop: Stop(Arc::new(EventFd::new()?)),
            priority: None,
            command_channel,
            management: None,
            connections: Vec::new(),
            clients: KERNEL_CLIENT,
            commands: Vec::with_capacity(BATCH),
            answers: Vec::with_capacity(BATCH),
        })
    }

    /// Serves the NBD protocol at the Unix socket `path`. A leftover socket of an ended server is replaced; nothing
    /// else is.
    ///
    /// # Errors
    /// [`AttachError::Place`] if another file is there, or the socket cannot be created.
    pub fn listen(&mut self, path: &Path) -> Result<(), AttachError> {
        self.socket = Some(Socket::bind(path)?);
        self.note(path);
        Ok(())
    }

    /// Puts the file `disk`, which is the drive, into an empty directory.
    ///
    /// # Errors
    /// [`AttachError::Place`] where the directory is not empty, or cannot be mounted.
    pub fn mount(&mut self, directory: &Path) -> Result<(), AttachError> {
        let (client, buffers) = (KERNEL_CLIENT, self.engine.buffers());
        let kernel = KernelClient { client, buffers, is_realtime: self.engine.is_paced() };
        let mounted = Mounted::mount(directory, self.engine.info(), kernel)?;
        let way = if self.measures_round_trips { mounted.round_trip(&mounted.file()) } else { None };
        self.mounted = Some(mounted);
        self.set_kernel_round_trip(way);
        Ok(())
    }

    /// Measures the time of the way through the kernel when there is one, to subtract it from latencies.
    pub fn measures_round_trips(&mut self) {
        self.measures_round_trips = true;
    }

    fn set_kernel_round_trip(&mut self, takes: Option<Duration>) {
        let has_sockets = self.socket.is_some();
        takes.into_iter().for_each(|takes| self.engine.set_kernel_round_trip(takes, has_sockets));
    }

    /// Sets the receiver of messages for the user, one line each. Without it, messages are dropped.
    pub fn on_message(&mut self, show: impl Fn(&str) + Send + Sync + 'static) {
        self.messages = Messages(Arc::new(show));
    }

    /// Has a drive that is mounted watched by another process, which runs [`crate::watch`] on its standard input and
    /// output: where the drive shows no sign of life for so long, everything that waits for it gets I/O errors.
    pub fn set_watchdog(
        &mut self,
        command: impl FnOnce() -> std::process::Command + Send + 'static,
        timeout: Duration,
    ) {
        self.watchdog_config = Some(WatchdogConfig { command: Box::new(command), timeout });
    }

    /// Creates a file system on an empty drive, and mounts it, or the existing one, at an empty directory. Serves
    /// meanwhile. It starts at `offset` bytes, as in a partition there. Leftovers of killed drives are removed first.
    /// The memory of the whole process is locked, if that is allowed.
    ///
    /// # Errors
    /// [`AttachError::Place`] on failure: nothing is left then.
    pub fn mount_as(&mut self, directory: &Path, kind: FileSystem, offset: ByteSize) -> Result<MountedAt, AttachError> {
        let refused = AttachError::place(directory);
        let info = self.engine.info();
        if !offset.is_multiple_of(info.logical_block) || offset >= info.capacity {
            let block = info.logical_block;
            return Err(refused(format!("an offset of {offset} is not a multiple of {block} within the drive")));
        }
        let (plan, home) = MountPlan::prepare(directory, kind, offset).map_err(refused)?;
        let place = home.fuse();
        self.socket.iter().for_each(|socket| home.note(socket.path()));
        self.runtime = Some(home);
        self.mount(&place)?;
        let Some(mounted) = &self.mounted else { return Err(refused("the drive's file is gone".to_owned())) };
        let (file, abort) = (mounted.file(), mounted.abort_file());
        let (sector, scale) = (self.engine.info().logical_block.0, self.engine.time_scale());
        let is_blank = self.engine.is_blank()?;
        let mut volume = self.serve_during(move || plan.attach(&file, sector, scale))?.map_err(refused)?;
        volume.abort = abort.as_ref().ok().and_then(|abort| abort.try_clone().ok());
        let volume = self.volume.insert(volume);
        self.runtime.iter().try_for_each(|home| volume.note_in(home)).map_err(refused)?;
        let (device, mounting) = (volume.device(), volume.mounting(is_blank));
        if let Some(mounted) = &self.mounted {
            mounted.check_depth_through(&device).map_err(refused)?;
            let way = if self.measures_round_trips { mounted.round_trip(&device) } else { None };
            self.set_kernel_round_trip(way);
        }
        let locked_bytes = self.protect(abort);
        let kind = self.serve_during(mounting)?.map_err(refused)?;
        let device_requests = self.volume.as_ref().and_then(Volume::requests);
        let drive = self.engine.kernel_requests();
        self.kernel_baseline = device_requests.map(|device| KernelBaseline { device, drive });
        Ok(MountedAt { device, kind, locked_bytes })
    }

    /// Protects the machine against hanging because of the drive; reports missing rights. Returns the bytes of locked
    /// memory.
    fn protect(&mut self, abort: io::Result<File>) -> Option<u64> {
        self.engine.reserve(ByteSize(RESERVED_CONTENT), MAX_IN_FLIGHT);
        let buffers = self.engine.buffers();
        let large = memory::available().map_or(0, |free| free / 16).min(MAX_IN_FLIGHT as u64 * MAX_REQUEST.0);
        buffers.reserve(MAX_REQUEST, (large / MAX_REQUEST.0) as usize);
        buffers.reserve_all(large as usize / 8, MAX_IN_FLIGHT);
        let locked = memory::lock();
        match &locked {
            Ok(locked) if locked.is_whole => {}
            Ok(_) => {
                self.messages.send("the drive is large for this machine: its memory is locked only when it is used")
            }
            Err(error) => {
                self.messages.send(&format!("the drive's memory is not locked ({}): {HANGS}", os_message(error)))
            }
        }
        let allowed = memory::spare_from_killing().and_then(|()| memory::may_serve_writes());
        if let Err(error) = allowed {
            let words = "the kernel may kill this process when memory runs out, since preventing that needs \
                         CAP_SYS_RESOURCE: leave memory free";
            self.messages.send(&format!("{words} ({})", os_message(&error)));
        }
        // Last: before it watches, the memory of a large drive may take seconds.
        let start = |guard: WatchdogConfig| Watchdog::start((guard.command)(), abort?, guard.timeout);
        match self.watchdog_config.take().map(start).transpose() {
            Ok(watchdog) => self.watchdog = watchdog,
            Err(error) => {
                self.messages.send(&format!("the watchdog could not start ({}): {HANGS}", os_message(&error)))
            }
        }
        locked.ok().map(|locked| locked.bytes)
    }

    /// Serves until another thread has done work that waits for the drive. A request to end meanwhile is handled
    /// afterwards.
    fn serve_during<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, AttachError> {
        let system = AttachError::system("a thread");
        let working = spawn("work", work).map_err(system)?;
        let (mut is_ending, looked) = (false, std::mem::replace(&mut self.is_waited_for, true));
        while !working.is_finished() {
            is_ending |= self.poll_once(true)?;
        }
        self.is_waited_for = looked;
        if is_ending {
            self.stop.request();
        }
        working.join().map_err(|_| system(io::Error::other("it panicked")))
    }

    /// Accepts commands at the Unix socket `path`, which only its owner can use.
    ///
    /// # Errors
    /// [`AttachError::Place`] if another file is there, or the socket cannot be created.
    pub fn control(&mut self, path: &Path) -> Result<(), AttachError> {
        self.manage(management::listen_for_control(path)?)?;
        self.note(path);
        Ok(())
    }

    fn manage(&mut self, listener: Listener) -> Result<(), AttachError> {
        let management = match &mut self.management {
            Some(management) => management,
            none => none.insert(Management::start(self.command_channel.sender())?),
        };
        management.add(listener);
        Ok(())
    }

    /// Records a socket, so that the next drive removes it if this one is killed.
    fn note(&self, socket: &Path) {
        self.runtime.iter().for_each(|home| home.note(socket));
    }

    /// Serves statistics over HTTP at an address, for example to Prometheus; returns the address, with a free port if
    /// that of `at` is 0. Only this machine may read them, unless `anywhere`.
    ///
    /// # Errors
    /// [`AttachError::NotLoopback`] for an address that other machines can reach; [`AttachError::Place`] if listening
    /// fails.
    pub fn metrics(&mut self, at: SocketAddr, anywhere: bool) -> Result<SocketAddr, AttachError> {
        if !at.ip().is_loopback() && !anywhere {
            return Err(AttachError::NotLoopback(at));
        }
        let (listener, at) = management::listen_for_metrics(at)?;
        self.manage(listener)?;
        Ok(at)
    }

    /// A handle that ends the server.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until it is [stopped](Self::stop), then completes requests in flight.
    ///
    /// # Errors
    /// When the drive is lost as a whole, or the capture cannot be written. A client that disconnects does not end it.
    pub fn run(mut self) -> Result<Engine, AttachError> {
        // A timer that may be 50 µs late, as by default, would spoil every completion.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        if self.volume.is_some() {
            let _ = memory::serve_writes();
        }
        if self.engine.is_paced() {
            self.priority = Some(RealtimePriority::of_this_thread(Instant::now()));
        }
        while !self.poll_once(true)? {}
        // Threads that are started from here on are not urgent.
        self.priority.take().iter_mut().for_each(RealtimePriority::give_up);
        self.drain_clients()?;
        Ok(self.engine)
    }

    /// One round: complete, wait, accept. `true` once the end is requested. At the end, new clients and their new
    /// requests are not accepted any more; the kernel's are.
    fn poll_once(&mut self, is_open: bool) -> Result<bool, AttachError> {
        self.check_mount(is_open)?;
        if let Some(held) = self.engine.take_memory_full() {
            let held = ByteSize(held);
            self.messages
                .send(&format!("the limit of --memory is reached with {held} of written data: further writes fail"));
        }
        if let Some(words) = self.engine.take_data_error() {
            self.messages.send(&words);
        }
        self.engine.poll(Instant::now(), &mut self.answers)?;
        self.send_completions();
        let waits = Instant::now();
        let ready = self.wait(is_open)?;
        let arrived = Instant::now();
        self.priority.iter_mut().for_each(|priority| priority.waited(waits, arrived));
        let is_ready = |source| ready.contains(&Some(source));
        for source in ready {
            let Some(Source::Client(n)) = source else { continue };
            let connection = &mut self.connections[n];
            if connection.receive(self.engine.info(), &mut self.commands).is_err() {
                connection.abandon();
            }
        }
        if is_ready(Source::Listener) {
            self.accept();
        }
        self.answer_status_requests();
        for connection in &mut self.connections {
            if connection.handshake_deadline().is_some_and(|deadline| deadline <= arrived) {
                connection.abandon();
            }
        }
        for command in self.commands.drain(..) {
            self.engine.submit(command, arrived)?;
        }
        if let Some(mounted) = self.mounted.as_ref().filter(|_| is_ready(Source::Kernel)) {
            for mut request in mounted.requests() {
                request.command.cookie = self.replies.insert(request.reply).into();
                self.engine.submit(request.command, request.arrived)?;
            }
        }
        if is_ready(Source::Commands) {
            // A power cut takes its time.
            self.watchdog.iter_mut().for_each(|watchdog| watchdog.allow_long_step(true));
            self.command_channel.execute(&mut self.engine, Instant::now())?;
            self.watchdog.iter_mut().for_each(|watchdog| watchdog.allow_long_step(false));
        }
        Ok(is_ready(Source::Stop) && self.stop.0.take() > 0)
    }

    /// Sends the watchdog a heartbeat, and checks whether the drive is still mounted.
    fn check_mount(&mut self, is_open: bool) -> Result<(), AttachError> {
        let Some(mounted) = &self.mounted else { return Ok(()) };
        if let Some(watchdog) = &mut self.watchdog
            && !watchdog.beat(mounted.busy())
        {
            self.messages.send(&format!("the watchdog has ended: {HANGS}"));
        }
        match &self.volume {
            Some(volume) if is_open && mounted.has_ended() => {
                Err(AttachError::TakenAway { path: volume.directory().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Distributes completions and sends what can be sent.
    fn send_completions(&mut self) {
        let (capacity, buffers) = (self.engine.info().capacity, self.engine.buffers());
        for answer in self.answers.drain(..) {
            if answer.client == KERNEL_CLIENT {
                let reply = u32::try_from(answer.cookie).ok().and_then(|index| self.replies.remove(index));
                if let Some(reply) = reply {
                    reply.send(&answer);
                }
                answer.payload.into_iter().for_each(|payload| buffers.give(payload));
            } else if let Some(connection) = self.connections.iter_mut().find(|client| client.id == answer.client) {
                connection.answer(answer, capacity);
            }
        }
        for connection in &mut self.connections {
            if connection.has_output() && connection.send().is_err() {
                connection.abandon();
            }
        }
        self.forget_finished();
    }

    /// Drops the clients for which nothing is left to be done.
    fn forget_finished(&mut self) {
        let engine = &mut self.engine;
        self.connections.retain(|connection| {
            let is_over = connection.is_over();
            if is_over {
                engine.forget_client(connection.id);
            }
            !is_over
        });
    }

    /// Waits for the next event; returns the ready sources.
    fn wait(&self, is_open: bool) -> Result<[Option<Source>; SOURCES], AttachError> {
        let mut fds: [_; SOURCES] = std::array::from_fn(|_| PollFd::new(&*self.stop.0, PollFlags::IN));
        let mut sources = [None; SOURCES];
        sources[0] = Some(Source::Stop);
        let mut count = 1;
        let mut wait_for = |source, fd, events| {
            (sources[count], fds[count]) = (Some(source), PollFd::from_borrowed_fd(fd, events));
            count += 1;
        };
        for (n, connection) in self.connections.iter().enumerate().take(MAX_CLIENTS) {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, is_open && connection.wants_input());
            events.set(PollFlags::OUT, connection.has_output());
            wait_for(Source::Client(n), connection.fd(), events);
        }
        if let Some(socket) = self.socket.as_ref().filter(|_| is_open) {
            wait_for(Source::Listener, socket.fd(), PollFlags::IN);
        }
        if let Some(mounted) = &self.mounted {
            wait_for(Source::Kernel, mounted.fd(), PollFlags::IN);
        }
        wait_for(Source::Commands, self.command_channel.fd(), PollFlags::IN);
        poll(&mut fds[..count], self.timeout(is_open)).map_err(AttachError::system("waiting for clients"))?;
        for (source, fd) in sources.iter_mut().zip(&fds) {
            let has_come = fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
            let is_ready = match *source {
                Some(Source::Client(n)) => {
                    let connection = &self.connections[n];
                    is_open && connection.wants_input() && (has_come || connection.has_buffered_requests())
                }
                _ => has_come,
            };
            *source = source.filter(|_| is_ready);
        }
        Ok(sources)
    }

    /// Replies to pending BLOCK_STATUS requests, one of each client at a time, until that many pages have been examined
    /// that other requests would wait; the rest stay pending.
    fn answer_status_requests(&mut self) {
        let mut steps = ALLOCATION_STEPS;
        while steps > 0 && self.connections.iter().any(Connection::has_status_requests) {
            for connection in &mut self.connections {
                let Some(request) = connection.next_status_request() else { continue };
                let StatusRequest { offset, length, one, .. } = request;
                let ranges = self.engine.allocation(offset, length, one, &mut steps);
                connection.answer_status(request, ranges);
            }
        }
    }

    /// The time until there is work; `None` if only a client can bring some.
    fn timeout(&self, is_open: bool) -> Option<Duration> {
        let is_pending = |client: &Connection| client.has_buffered_requests() || client.has_status_requests();
        if is_open && self.connections.iter().any(is_pending) {
            return Some(Duration::ZERO);
        }
        let limit = match () {
            () if self.is_waited_for || !is_open => Some(POLL_INTERVAL),
            () => self.watchdog.as_ref().map(|_| HEARTBEAT),
        };
        let due = match self.engine.next_wake() {
            Wake::Now => Some(Duration::ZERO),
            Wake::At(at) => Some(at.saturating_duration_since(Instant::now()).saturating_sub(SPIN)),
            Wake::Never => None,
        };
        let handshakes = self.connections.iter().filter_map(Connection::handshake_deadline).min();
        let handshakes = handshakes.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        due.into_iter().chain(limit).chain(handshakes).min()
    }

    fn accept(&mut self) {
        // Bounded, so that a process that connects again and again cannot hold the thread.
        for _ in 0..MAX_CLIENTS {
            let Some(stream) = self.socket.as_ref().and_then(|socket| socket.accept().ok()) else { return };
            if self.connections.len() == MAX_CLIENTS {
                // Pending input is read first: a client that has completed negotiation is not evicted.
                for connection in self.connections.iter_mut().filter(|client| client.handshake_deadline().is_some()) {
                    if connection.receive(self.engine.info(), &mut self.commands).is_err() {
                        connection.abandon();
                    }
                }
                let negotiating = self.connections.iter_mut().filter(|client| client.handshake_deadline().is_some());
                negotiating.min_by_key(|client| client.handshake_deadline()).into_iter().for_each(Connection::abandon);
                self.forget_finished();
            }
            // One too many is sent away at once: it would wait without a word else.
            if self.connections.len() < MAX_CLIENTS {
                self.adopt(stream);
            }
        }
    }

    /// Takes a connection on; one that is broken already is dropped.
    pub(crate) fn adopt(&mut self, stream: UnixStream) {
        self.clients += 1;
        if let Ok(connection) = Connection::new(self.clients, stream, self.engine.buffers()) {
            self.connections.push(connection);
        }
    }

    /// Completes requests of connections in flight, unmounts the file system as soon as no process uses it, and serves
    /// the file until no process has it.
    fn drain_clients(&mut self) -> Result<(), AttachError> {
        let end = Instant::now() + DRAIN_TIMEOUT;
        self.connections.iter_mut().for_each(Connection::close);
        if let (Some(baseline), Some(device)) = (&self.kernel_baseline, self.volume.as_ref().and_then(Volume::requests))
        {
            self.engine.compare_with_kernel(baseline, device);
        }
        let hurry = Arc::new(AtomicBool::new(false));
        let unmounting =
            self.volume.as_ref().map(|volume| volume.unmounting(Arc::clone(&hurry), self.messages.clone()));
        let unmounting = unmounting.map(std::thread::spawn);
        loop {
            let has_volume = unmounting.as_ref().is_some_and(|unmounting| !unmounting.is_finished());
            let hurries = hurry.load(Ordering::Relaxed);
            if let Some(mounted) = self.mounted.as_mut().filter(|_| !has_volume) {
                mounted.unmount();
            }
            let has_clients = !self.connections.is_empty() && Instant::now() < end;
            let is_held = !hurries && self.mounted.as_ref().is_some_and(|mounted| !mounted.has_ended());
            if !has_clients && !is_held && !has_volume {
                return Ok(());
            }
            // Requested again: whoever holds the file system loses it; a third request does not wait for that.
            if self.poll_once(false)? && (!has_volume || hurry.swap(true, Ordering::Relaxed)) {
                return Ok(());
            }
        }
    }
}

/// The sources of events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Stop,
    /// New clients.
    Listener,
    /// A client, by its place among the connections.
    Client(usize),
    /// Requests of the kernel's for the mounted file.
    Kernel,
    /// Commands of the management thread's.
    Commands,
}
