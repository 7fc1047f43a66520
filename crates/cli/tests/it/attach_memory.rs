//! A mounted drive where memory is short: what is written back to it waits for it, and it must wait for nobody.
//!
//! Drive and writers are in memory cgroups of their own, and that of the writers holds a fraction of what they write:
//! nearly every page that they touch has to be written to the drive first.

use crate::mounted;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mounted::{Drive, Lifeline, assert_nothing_left, place, small_drive, turn};
use rustix::process::Signal;

/// What the writers' cgroup may hold, and what each of four of them writes.
const WRITERS_MIB: u64 = 64;
const EACH_MIB: u64 = 48;
/// What the drive's may hold: its tables, 300 MiB of content, what is under way.
const DRIVE_MIB: u64 = 900;
/// How long all of it may take on a machine that others use too.
const WITHIN: Duration = Duration::from_secs(300);

/// A memory cgroup; gone with this.
struct Group(PathBuf);

impl Group {
    /// Below this process's own, or why not.
    fn new(name: &str, mib: u64) -> Result<Self, String> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let of = |line: &str| -> Option<(PathBuf, &'static str)> {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let (base, limit) = match controllers {
                // Processes and children with controllers do not go together there, but at the root.
                "" => return Some(("/sys/fs/cgroup".into(), "memory.max")),
                list if list.split(',').any(|name| name == "memory") => {
                    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
                }
                _ => return None,
            };
            Some((format!("{base}{path}").into(), limit))
        };
        let mut reason = "no memory cgroups".to_owned();
        for (parent, limit) in groups.lines().filter_map(of) {
            let group = Self(parent.join(format!("flashwise-{}-{name}", std::process::id())));
            let made = std::fs::create_dir(&group.0).and_then(|()| {
                if limit == "memory.max" {
                    std::fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
                }
                std::fs::write(group.0.join(limit), (mib << 20).to_string())
            });
            match made {
                Ok(()) => return Ok(group),
                Err(error) => reason = format!("{}: {error}", group.0.display()),
            }
        }
        Err(reason)
    }

    /// A command that is in it from its first moment on.
    fn inside(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs")).arg(program);
        command
    }

    fn told(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// How often it was full.
    fn times_full(&self) -> u64 {
        let events = self.told("memory.events");
        let field = events.lines().find_map(|line| line.strip_prefix("max ")).map(str::to_owned);
        field.unwrap_or_else(|| self.told("memory.failcnt")).trim().parse().unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Four programs write through the page cache at once, sync, and read what they have written.
const WRITE: &str = r#"
set -e
for n in 1 2 3 4; do dd if=in.img of=on/$n bs=1M conv=fsync status=none & writers="$writers $!"; done
for writer in $writers; do wait $writer; done
sync -f on
for n in 1 2 3 4; do cmp in.img on/$n; done
for n in 1 2 3 4; do dd if=in.img of=on/$n bs=64k conv=notrunc,fsync status=none & last="$last $!"; done
for writer in $last; do wait $writer; done
for n in 1 2 3 4; do cmp in.img on/$n; done
"#;

#[test]
fn writers_that_have_no_memory_left_end_and_find_what_they_have_written() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let groups = Group::new("drive", DRIVE_MIB).and_then(|drive| Ok((drive, Group::new("writers", WRITERS_MIB)?)));
    let (of_drive, of_writers) = match groups {
        Ok(groups) => groups,
        Err(reason) => return eprintln!("no memory cgroup can be made ({reason}): not tested"),
    };
    let place = place();
    small_drive(&place);
    let mut random = 1_u64;
    let noise = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.to_be_bytes()
    });
    std::fs::write(place.path("in.img"), noise.take((EACH_MIB as usize) << 17).flatten().collect::<Vec<_>>()).unwrap();
    let plain = place.command(&["attach", "drive.toml", "--mount", "on", "--memory", "300m", "-o", "json"]);
    let mut command = of_drive.inside(Path::new(plain.get_program()));
    command.args(plain.get_args()).current_dir(place.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let drive = Drive::started(&place, command);
    let process = drive.number();
    let procs = of_drive.told("cgroup.procs");
    assert!(procs.lines().any(|line| line == process.to_string()), "the drive is in its cgroup: {procs}");
    let lifeline = Lifeline::of(&place, &drive);

    let mut writers = of_writers.inside(Path::new("sh"));
    let mut writers = writers.args(["-c", WRITE]).current_dir(place.path("")).spawn().unwrap();
    let began = Instant::now();
    let ended = loop {
        match writers.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if began.elapsed() > WITHIN => break None,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let took = began.elapsed();
    // From here on nothing hangs: what waits is told an error.
    if ended.is_none() {
        drop(lifeline);
        let _ = writers.wait();
        panic!("the writers waited for {took:?}");
    }
    eprintln!("{took:?}, their cgroup was full {} times", of_writers.times_full());
    assert!(ended.unwrap().success(), "what was written is there");
    assert!(of_writers.times_full() > 100, "memory was short");
    lifeline.spare();
    drive.signal(Signal::INT);
    let document = drive.ended().expect(0).document();
    let written = document["counters"]["host_bytes_written"].as_u64().unwrap();
    assert!(written >= (2 * 4 * EACH_MIB) << 20, "all of it reached the drive: {written}");
    assert_eq!(document["failed"], 0);
    assert_nothing_left(&place, process);
}
