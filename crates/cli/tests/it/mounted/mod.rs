//! Drives that are mounted by `flashwise attach --mount`, one at a time, and what is left of them.

#![allow(dead_code, reason = "each test file uses its share")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use flashwise_attach::FaultCommand;
use flashwise_attach::control::{self, control_path};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Ended, Place};

/// One at a time.
static TURN: Mutex<()> = Mutex::new(());
/// How long anything may take that should take a moment.
pub const MOMENT: Duration = Duration::from_secs(60);

/// A turn, where this machine has what it takes; says so where not.
pub fn turn(makers: &[&str]) -> Option<MutexGuard<'static, ()>> {
    let missing = ["losetup", "mount", "unshare"].iter().chain(makers).find(|tool| {
        !["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|place| Path::new(place).join(tool).exists())
    });
    if let Some(tool) = missing {
        eprintln!("{tool} is not installed: not tested");
        return None;
    }
    let has_loops = || Command::new("losetup").arg("--find").output().is_ok_and(|found| found.status.success());
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() || !has_loops() {
        eprintln!("it needs root, loop devices and /dev/fuse: not tested");
        return None;
    }
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A place with an empty directory `on`.
pub fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("on")).unwrap();
    place
}

pub const ATTACH: [&str; 4] = ["attach", "samsung-960-evo", "--mount", "on"];

/// A drive that runs; killed and cut off where a test fails.
pub struct Drive {
    child: Option<Child>,
    on: PathBuf,
    lines: mpsc::Receiver<String>,
    /// What it said when it was there.
    words: String,
}

impl Drive {
    pub fn start(place: &Place, more: &[&str]) -> Self {
        Self::of(place, &[&ATTACH[..], more].concat())
    }

    /// A drive with all of its arguments; it is mounted `on`.
    pub fn of(place: &Place, arguments: &[&str]) -> Self {
        Self::started(place, place.command(arguments))
    }

    /// The same, of a command that starts it.
    pub fn started(place: &Place, mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        let mut drive = Self { child: Some(child), on: place.path("on"), lines, words: String::new() };
        drive.words = drive.hears(" is at ");
        drive
    }

    /// Its loop device.
    pub fn device(&self) -> String {
        let behind = self.words.split(" on /dev/").nth(1).unwrap();
        format!("/dev/{}", behind.split([',', ')']).next().unwrap())
    }

    /// Waits for a line on stderr with these words.
    pub fn hears(&self, words: &str) -> String {
        let mut heard = Vec::new();
        let end = Instant::now() + MOMENT;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            heard.push(line);
        }
        panic!("nobody says {words}: {heard:?}");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    pub fn number(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// How it ended.
    pub fn ended(mut self) -> Ended {
        Ended::of(self.child.take().unwrap())
    }

    pub fn killed(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            let _ = Command::new("umount").arg("--lazy").arg(&self.on).status();
        }
    }
}

/// Ends the kernel's connection to a drive's file whatever happens to a test: a `sync` that hangs would hang the
/// machine.
pub struct Lifeline {
    abort: Option<File>,
    fusectl: PathBuf,
}

impl Lifeline {
    pub fn of(place: &Place, drive: &Drive) -> Self {
        let fusectl = place.path("fusectl");
        std::fs::create_dir(&fusectl).unwrap();
        let mounted = Command::new("mount").args(["-t", "fusectl", "none"]).arg(&fusectl).status().unwrap();
        assert!(mounted.success());
        let file = mounts(&format!("/run/flashwise/{}.", drive.number())).remove(0);
        let number = file.split(' ').nth(2).unwrap().split_once(':').unwrap().1.to_owned();
        let abort = std::fs::OpenOptions::new().write(true).open(fusectl.join(number).join("abort")).unwrap();
        Self { abort: Some(abort), fusectl }
    }
}

impl Lifeline {
    /// It is not needed: the drive goes on.
    pub fn spare(mut self) {
        self.abort = None;
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        let _ = self.abort.as_mut().map(|abort| abort.write_all(b"1"));
        let _ = Command::new("umount").arg("--lazy").arg(&self.fusectl).status();
    }
}

/// Lines of the kernel's table of mounts with these words.
pub fn mounts(words: &str) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.lines().filter(|line| line.contains(words)).map(str::to_owned).collect()
}

/// What is there of the drive of a process.
pub fn left(process: u32) -> Vec<String> {
    let home = format!("/run/flashwise/{process}.");
    let mut left = mounts(&home);
    for entry in std::fs::read_dir("/sys/block").unwrap() {
        let over = std::fs::read_to_string(entry.unwrap().path().join("loop/backing_file")).unwrap_or_default();
        left.extend(over.starts_with(&home).then_some(over));
    }
    let homes = std::fs::read_dir("/run/flashwise").into_iter().flatten().map(|entry| entry.unwrap().path());
    left.extend(homes.map(|home| home.display().to_string()).filter(|path| path.starts_with(&home)));
    left
}

pub fn assert_nothing_left(place: &Place, process: u32) {
    assert_eq!(left(process), Vec::<String>::new());
    assert_eq!(mounts(&place.path("on").display().to_string()), Vec::<String>::new());
    assert_eq!(place.path("on").read_dir().unwrap().count(), 0);
    assert!(!place.path("on.control").exists(), "the control socket is gone");
}

/// Leaves the next loop device that somebody gets as its last user may have: few and short requests, a throttle that
/// never acts, a long way read ahead.
pub fn spoil_a_loop_device() {
    let free = Command::new("losetup").arg("--find").output().unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    let name = free.trim().strip_prefix("/dev/").unwrap();
    let tell = |setting: &str, value: &str| std::fs::write(format!("/sys/block/{name}/queue/{setting}"), value);
    tell("nr_requests", "16").unwrap();
    tell("max_sectors_kb", "32").unwrap();
    tell("read_ahead_kb", "4096").unwrap();
    // A kernel may be built without.
    let _ = tell("wbt_lat_usec", "987654321");
}

/// The Samsung's structure with 400 MiB, so that it is full, and collects garbage, from the start.
pub fn small_drive(place: &Place) {
    let mut drive = place.run(&["device", "show", "samsung-960-evo"]).expect(0).stdout;
    for (key, value) in [
        ("capacity_bytes", "419_430_400"),
        ("free_superblocks", "3"),
        ("blocks_per_plane", "26"),
        ("pages_per_block", "48"),
    ] {
        let at = drive.find(&format!("\n{key} = ")).unwrap() + 1;
        let end = at + drive[at..].find('\n').unwrap();
        drive.replace_range(at..end, &format!("{key} = {value}"));
    }
    place.write("drive.toml", &drive);
}

/// Runs a program, which must end well.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Unmounts. A child that another test starts has copies of this process's open files until it runs its program: for a
/// moment a file system is busy that nobody uses.
fn unmount(on: &str) {
    let end = Instant::now() + MOMENT;
    loop {
        let output = Command::new("umount").arg(on).output().unwrap();
        if output.status.success() {
            return;
        }
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains("busy") && Instant::now() < end, "{words}, held by {:?}", holders(on));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes that have something below a directory open or work there.
fn holders(on: &str) -> Vec<String> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path())) {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().filter_map(|fd| Some(fd.ok()?.path()));
        for link in files.chain(["cwd", "root", "exe"].map(|name| process.join(name))) {
            if let Ok(held) = std::fs::read_link(&link)
                && held.starts_with(on)
            {
                let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
                found.push(format!("{} ({}): {}", process.display(), name.trim(), held.display()));
            }
        }
    }
    found
}

/// The power of drive and machine. A machine without power acknowledges nothing: a flush that comes when the drive is
/// up again finds nothing to write, though what it was to make durable is lost.
#[derive(Default)]
pub struct Power {
    is_off: AtomicBool,
}

impl Power {
    /// Whether what was acknowledged just now was so before the power failed.
    pub fn is_on(&self) -> bool {
        !self.is_off.load(Ordering::SeqCst)
    }
}

/// The power of a drive that is mounted `on` fails, and it is mounted again: nothing is acknowledged and no write is
/// taken any more, the power is cut, `ended` waits until nobody holds the file system, it is unmounted, and what could
/// not be written is forgotten. Gives how many requests the cut has lost, and what `ended` gives.
pub fn power_fails<T>(place: &Place, device: &str, power: &Power, ended: impl FnOnce() -> T) -> (u64, T) {
    power.is_off.store(true, Ordering::SeqCst);
    let on = place.path("on").display().to_string();
    let control = control_path(&place.path("on"));
    let fault = |command| control::fault(&control, command).unwrap();
    fault(FaultCommand { read_only: true, ..FaultCommand::default() });
    let cut = control::cut(&control).unwrap();
    let ended = ended();
    unmount(&on);
    // What could not be written is not to be read from memory.
    run("blockdev", &["--flushbufs", device]);
    fault(FaultCommand { clear: true, ..FaultCommand::default() });
    run("mount", &["-o", "noatime,discard", device, &on]);
    (cut.lost_requests, ended)
}
