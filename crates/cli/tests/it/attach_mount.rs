//! `flashwise attach --mount`: a file system on the simulated drive, and nothing of it left afterwards, however it
//! ends.
//!
//! Each test that may leave something behind holds its [turn](mounted::turn): a drive that is attached takes away what
//! others have left.

use crate::mounted;
use crate::support;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mounted::{ATTACH, Drive, Lifeline, MOMENT, assert_nothing_left, left, mounts, place, spoil_a_loop_device, turn};
use rustix::process::{Pid, Signal, kill_process};
use support::{Ended, Place};

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + MOMENT;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a command does with a drive that it finds mounted; it tells the number of the drive's process.
const USE: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
echo $PPID > process
name=$(basename "$FLASHWISE_DEVICE")
test "$(cat "/sys/block/$name/loop/dio")" = 1
told() { cat "/sys/block/$name/queue/$1"; }
test "$(told nr_requests)" = 128
test "$(told max_sectors_kb)" = 1024
test "$(told read_ahead_kb)" = 128
test ! -e "/sys/block/$name/queue/wbt_lat_usec" || test "$(told wbt_lat_usec)" = "$THROTTLE_US"
cat "/sys/block/$name/queue/logical_block_size" > sector
grep " $FLASHWISE_MOUNT " /proc/self/mountinfo > options
dd if=in.img of="$FLASHWISE_MOUNT/copy.img" bs=64k conv=fsync status=none
umount "$FLASHWISE_MOUNT"
mount -o noatime "$FLASHWISE_DEVICE" "$FLASHWISE_MOUNT"
cmp in.img "$FLASHWISE_MOUNT/copy.img"
"#;

#[test]
fn a_command_finds_a_file_system_that_keeps_its_files_and_nothing_is_left() {
    let Some(_turn) = turn(&["mkfs.ext4", "mkfs.xfs"]) else { return };
    for kind in ["ext4", "xfs"] {
        let place = place();
        spoil_a_loop_device();
        let image: Vec<u8> = (0_u32..1 << 19).flat_map(|n| (n * 7).to_le_bytes()).collect();
        std::fs::write(place.path("in.img"), image).unwrap();
        // The kernel's 2 ms are of the drive's time.
        let (time, throttle_us) =
            if kind == "ext4" { (["--time", "none"], "2000") } else { (["--time-scale", "2"], "4000") };
        let more = [&time[..], &["--fs", kind, "-o", "json", "--", "sh", "-c", USE]].concat();
        let mut command = place.command(&[&ATTACH[..], &more].concat());
        let ended = Ended::from(command.env("THROTTLE_US", throttle_us).output().unwrap()).expect(0);
        let document = ended.document();
        let counters = &document["counters"];
        assert!(counters["host_bytes_written"].as_u64().unwrap() >= 2 << 20, "{document}");
        assert!(
            counters["host_bytes_read"].as_u64().unwrap() >= 2 << 20,
            "it is read anew after the unmount: {document}"
        );
        assert!(counters["flushes"].as_u64().unwrap() > 0, "{document}");
        assert!(counters["trims"].as_u64().unwrap() < 100, "what the drive is preconditioned with stays: {document}");
        assert_eq!(place.read("sector").trim(), "512", "as the drive's");
        let options = place.read("options");
        assert!(options.contains("noatime") && options.contains("discard") && options.contains(kind), "{options}");
        assert_nothing_left(&place, place.read("process").trim().parse().unwrap());
    }
}

/// Reads through the file system, past the page cache, one after the other.
const READ: &str = r#"
set -eu
dd if=/dev/urandom of="$FLASHWISE_MOUNT/file" bs=64k count=20 conv=fsync status=none
if [ "$STARVED" = yes ]; then
    # The server stands for the loop driver's threads: it is on the same way, behind the kernel's queue.
    (while kill -STOP $PPID; do sleep 0.08; kill -CONT $PPID; sleep 0.02; done) &
    starver=$!
fi
dd if="$FLASHWISE_MOUNT/file" of=/dev/null bs=4k iflag=direct status=none
if [ "$STARVED" = yes ]; then
    kill $starver
    wait $starver || true
    kill -CONT $PPID
fi
"#;

#[test]
fn what_programs_waited_beyond_the_drive_is_reported_with_a_warning() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    for (starved, scale) in [("no", "100"), ("yes", "20")] {
        let place = place();
        let words = ["--time-scale", scale, "-o", "json", "--", "sh", "-c", READ];
        let mut command = place.command(&[&ATTACH[..], &words].concat());
        let document = Ended::from(command.env("STARVED", starved).output().unwrap()).expect(0).document();
        let kernel = &document["kernel"];
        let figure = |name: &str| kernel[name].as_f64().unwrap();
        assert!(figure("requests") >= 320.0 && figure("drive_mean_ns") > 100_000.0, "{kernel}");
        assert_eq!(kernel["spoils_the_result"], starved == "yes", "{kernel}");
        if starved == "yes" {
            assert!(figure("mean_ns") > 2.0 * figure("drive_mean_ns"), "{kernel}");
            assert!(figure("enough_time_scale") > 20.0, "{kernel}");
        }
    }
}

#[test]
fn ctrl_c_waits_for_who_holds_it_and_says_who() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let drive = Drive::start(&place, &["--time", "none", "-o", "json"]);
    let process = drive.number();
    let held = File::create(place.path("on/held")).unwrap();
    drive.signal(Signal::INT);
    let words = drive.hears("is in use by");
    assert!(words.contains(&format!("(process {})", std::process::id())), "{words}");
    (&held).write_all(b"it is served on").unwrap();
    held.sync_all().unwrap();
    drop(held);
    let ended = drive.ended().expect(0);
    assert!(ended.document()["counters"]["flushes"].as_u64().unwrap() > 0);
    assert_nothing_left(&place, process);
}

#[test]
fn a_second_ctrl_c_takes_it_from_who_holds_it_once_it_is_written_back() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let drive = Drive::start(&place, &["--time", "none", "-o", "json"]);
    let process = drive.number();
    let held = File::create(place.path("on/held")).unwrap();
    (&held).write_all(&vec![7; 3 << 20]).unwrap();
    drive.signal(Signal::INT);
    drive.hears("is in use by");
    drive.signal(Signal::INT);
    let ended = drive.ended().expect(0);
    let written = ended.document()["counters"]["host_bytes_written"].as_u64().unwrap();
    assert!(written >= 3 << 20, "what was not written back yet: {written}");
    assert!(
        held.sync_all().is_err() || (&held).write_all(b"x").and_then(|()| held.sync_all()).is_err(),
        "the drive is gone"
    );
    drop(held);
    until("the loop device is given back", || left(process).is_empty());
    assert_nothing_left(&place, process);
}

#[test]
fn what_a_killed_drive_left_is_taken_away_by_the_next_one_wherever_that_is() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let (first, second) = (place(), place());
    let drive = Drive::start(&first, &["--time", "none", "--nbd", "unix:ssd.sock"]);
    let process = drive.number();
    std::fs::write(first.path("on/file"), "lost").unwrap();
    drive.killed();
    assert!(!left(process).is_empty() && first.path("on.control").exists() && first.path("ssd.sock").exists());
    let alive = Drive::start(&second, &["--time", "none"]);
    assert_nothing_left(&first, process);
    assert!(!first.path("ssd.sock").exists());
    // What is alive stays as it is, and the place of the killed one can be used again.
    first.run(&[&ATTACH[..], &["--time", "none", "--", "touch", "on/again"]].concat()).expect(0);
    std::fs::write(second.path("on/file"), "kept").unwrap();
    assert_eq!(left(alive.number()).len(), 3, "file, loop device, directory");
    alive.signal(Signal::INT);
    alive.ended().expect(0);
}

/// Runs the drive in a system that is not as it should be.
fn without(place: &Place, mend: &str, more: &[&str]) -> Ended {
    let arguments = [&ATTACH[..], &["--time", "none"], more].concat();
    let program = place.command(&[]).get_program().to_owned();
    let script = format!("set -e; PATH=$PATH:/usr/sbin:/sbin; {mend}; exec \"$@\"");
    let mut command = Command::new("unshare");
    command.current_dir(place.path("")).args(["--mount", "sh", "-c", &script, "sh"]).arg(program).args(arguments);
    command.output().unwrap().into()
}

#[test]
fn what_is_missing_is_named_on_one_line_and_nothing_is_left() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let homes = || std::fs::read_dir("/run/flashwise").into_iter().flatten().count();
    let before = homes().max(1);
    let refused = |ended: Ended, words: &str| {
        assert_eq!((ended.code, ended.stderr.lines().count()), (5, 1), "{}", ended.stderr);
        assert!(ended.stderr.starts_with("flashwise: on: ") && ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(mounts(&place.path("on").display().to_string()), Vec::<String>::new());
        assert_eq!(homes(), before, "{words}");
    };
    let mut nobody = place.command(&[&ATTACH[..], &["--time", "none"]].concat());
    std::fs::set_permissions(place.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    match nobody.uid(65_534).output() {
        Ok(output) => refused(output.into(), "mounting a file system needs root"),
        Err(error) => eprintln!("nobody cannot start the program ({error}): not tested"),
    }
    let hide = |program: &str| {
        format!(
            "for at in /usr/sbin /sbin /usr/bin /bin; do test ! -e $at/{program} || mount --bind /dev/null $at/{program}; done"
        )
    };
    refused(without(&place, &hide("mkfs.xfs"), &["--fs", "xfs"]), "mkfs.xfs is missing; install the package xfsprogs");
    refused(without(&place, &hide("losetup"), &[]), "losetup is missing; install the package util-linux");
    let no_loops = "mkdir dev; mknod dev/fuse c 10 229; mknod dev/null c 1 3; mount --bind dev /dev";
    refused(without(&place, no_loops, &[]), "no loop device");
    refused(without(&place, "mount -t tmpfs fast on", &[]), "fast (tmpfs) is mounted here already");
    place.write("on/mine", "mine");
    refused(place.run(&[&ATTACH[..], &["--time", "none"]].concat()), "it is not empty");
    assert_eq!(place.read("on/mine"), "mine");
    std::fs::remove_file(place.path("on/mine")).unwrap();
    std::fs::remove_dir(place.path("on")).unwrap();
    refused(place.run(&[&ATTACH[..], &["--time", "none"]].concat()), "give an empty directory");
}

#[test]
fn ext4_waits_with_its_journal_as_long_of_the_drive_s_time_as_it_would() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    for (scale, commit) in [("1", None), ("3", Some("commit=15"))] {
        let place = place();
        let script = "grep \" $FLASHWISE_MOUNT \" /proc/self/mountinfo > options";
        place.run(&[&ATTACH[..], &["--time-scale", scale, "--", "sh", "-c", script]].concat()).expect(0);
        let options = place.read("options");
        let found = options.trim().split(',').find(|option| option.starts_with("commit="));
        assert_eq!(found, commit, "{options}");
    }
}

/// The loop driver lets reads of the group that flushes wait for that.
#[test]
fn a_command_has_a_way_of_its_own_to_the_drive() {
    let blkio = Path::new("/sys/fs/cgroup/blkio/tasks");
    if !blkio.exists() {
        return eprintln!("there is no tree of blkio cgroups: not tested");
    }
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let script = "sed -n 's/.*blkio:.//p' /proc/self/cgroup; sh -c \"sed -n 's/.*blkio:.//p' /proc/self/cgroup\"";
    let ended = place.run(&[&ATTACH[..], &["--", "sh", "-c", &format!("({script}) > groups")]].concat()).expect(0);
    let groups = place.read("groups");
    let groups: Vec<&str> = groups.lines().collect();
    assert!(groups.len() == 2 && groups[0] == groups[1], "{groups:?}");
    let mine = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = mine.lines().find_map(|line| Some(line.split_once(":blkio:/")?.1)).unwrap();
    if !own.is_empty() {
        // It has one already, and gives it to what it starts.
        return assert_eq!(groups[0], own);
    }
    assert!(groups[0].starts_with("flashwise."), "{groups:?}");
    assert!(!blkio.with_file_name(groups[0]).exists(), "it is gone with the drive: {}", ended.stderr);
}

#[test]
fn requests_of_a_database_reach_the_drive_side_by_side() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    if !Command::new("fio").arg("--version").output().is_ok_and(|told| told.status.success()) {
        return eprintln!("fio is not installed: not tested");
    }
    let place = place();
    let job = "fio --name=j --directory=\"$FLASHWISE_MOUNT\" --rw=randread --bs=4k --size=16m --direct=1 --ioengine=libaio \
               --iodepth=32 --io_size=8m --minimal --output=fio.out";
    // A hundred times slower than real: what a read waits for is the drive, and not the machine.
    let more = ["--time-scale", "100", "-o", "json", "--", "sh", "-c", job];
    let document = place.run(&[&ATTACH[..], &more].concat()).expect(0).document();
    let reads = &document["latency"]["reads"];
    // Little's law over the reads alone is what fio tells: how many per second of its own, and how long each took.
    let told = place.read("fio.out");
    let told: Vec<_> = told.trim().split(';').collect();
    let (per_second, microseconds): (f64, f64) = (told[7].parse().unwrap(), told[39].parse().unwrap());
    let depth = per_second * microseconds / 1e6;
    assert!(depth > 17.0, "{depth} at once; on the drive's clock {reads}");
    // And the drive has them at once: one after the other they would take longer than all of its time, mkfs and all.
    let (count, median) = (reads["count"].as_f64().unwrap(), reads["p50_ns"].as_f64().unwrap());
    let together = count * median / document["simulated_ns"].as_f64().unwrap();
    assert!(together > 2.0, "{together} on the drive at once: {document}");
}

/// Writes and syncs on the drive without an end, until it is told an error; how long it took from the start on.
fn writer(place: &Place) -> std::thread::JoinHandle<Duration> {
    let file = place.path("on/written");
    std::thread::spawn(move || {
        let began = Instant::now();
        let mut file = File::create(file).unwrap();
        while file.write_all(&[7; 1 << 20]).and_then(|()| file.sync_all()).is_ok() {}
        began.elapsed()
    })
}

/// Lets something happen to a drive in the middle of work. Whoever waits for it is told an error within a time.
fn strike(signal: Signal, within: Duration) {
    let place = place();
    let drive = Drive::start(&place, &["--watchdog", "2s", "--runtime", "300s"]);
    let process = drive.number();
    let lifeline = Lifeline::of(&place, &drive);
    let directory = File::open(place.path("on")).unwrap();
    let writing = writer(&place);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!writing.is_finished(), "it writes");
    drive.signal(signal);
    let struck = Instant::now();
    let (synced, sync) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = synced.send(rustix::fs::syncfs(&directory));
    });
    let outcome = sync.recv_timeout(within + Duration::from_secs(20));
    let took = struck.elapsed();
    // From here on nothing depends on what is tested.
    drop(lifeline);
    until("the writer is told", || writing.is_finished());
    let outcome = outcome.expect("sync hung until the test ended the connection");
    assert!(took < within, "sync took {took:?}");
    eprintln!("{signal:?}: sync ended after {took:?} with {outcome:?}");
    assert!(outcome.is_err(), "a sync that did nothing says so");
    if signal == Signal::STOP {
        assert!(took > Duration::from_millis(1500), "a drive that stops for a moment is not taken away: {took:?}");
        drive.signal(Signal::CONT);
        drive.hears("the mounted drive was disconnected");
        assert_eq!(drive.ended().code, 1);
    } else {
        drive.killed();
        // The next drive takes away what it has left, here at the same place.
        place.run(&[&ATTACH[..], &["--time", "none", "--", "true"]].concat()).expect(0);
    }
    until("it is taken away", || left(process).is_empty());
    assert_nothing_left(&place, process);
}

#[test]
fn nobody_waits_for_a_drive_that_is_stopped() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    strike(Signal::STOP, Duration::from_secs(8));
}

#[test]
fn nobody_waits_for_a_drive_that_is_killed() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    strike(Signal::KILL, Duration::from_secs(4));
}

#[test]
fn a_drive_whose_watchdog_has_ended_says_so_and_goes_on() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let drive = Drive::start(&place, &["--time", "none"]);
    let watchdog = children(drive.number()).remove(0);
    kill_process(Pid::from_raw(watchdog as i32).unwrap(), Signal::INT).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(children(drive.number()), [watchdog], "Ctrl-C is not for it");
    kill_process(Pid::from_raw(watchdog as i32).unwrap(), Signal::KILL).unwrap();
    drive.hears("the watchdog has ended");
    std::fs::write(place.path("on/file"), "on").unwrap();
    let process = drive.number();
    drive.signal(Signal::TERM);
    drive.ended().expect(0);
    assert_nothing_left(&place, process);
}

/// Processes that a process has started and that run.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of = |task: PathBuf| std::fs::read_to_string(task.join("children")).unwrap_or_default();
    let all: String = tasks.map(|task| of(task.unwrap().path()) + " ").collect();
    all.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[test]
fn memory_holds_no_more_than_it_may_and_the_file_system_is_told() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let fill = "! dd if=/dev/urandom of=on/a bs=1M count=64 conv=fsync 2> words && grep -E 'error|space' words";
    let more = ["--time", "none", "--memory", "48m", "-o", "json", "--", "sh", "-c", fill];
    let ended = place.run(&[&ATTACH[..], &more].concat()).expect(0);
    assert!(ended.stderr.contains("of written data: further writes fail"), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("further writes fail").count(), 1, "it is reported once");
    let written = ended.document()["counters"]["host_bytes_written"].as_u64().unwrap();
    assert!((32 << 20..56 << 20).contains(&written), "{written}");
}

#[cfg(target_env = "gnu")]
#[test]
fn what_is_written_first_needs_no_memory_that_is_not_there() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let drive = Drive::start(&place, &["--time", "none"]);
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", drive.number())).unwrap();
        let kilobytes = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().replace("kB", "");
        (kilobytes("RssAnon:").trim().parse::<u64>().unwrap(), kilobytes("VmLck:").trim().parse::<u64>().unwrap())
    };
    let (before, locked) = resident();
    assert!(locked >= 256 << 10, "{locked} KiB are locked");
    let mut file = File::create(place.path("on/file")).unwrap();
    for n in 0..160_u8 {
        file.write_all(&vec![n; 1 << 20]).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    let (after, _) = resident();
    // What is under way takes memory of its own: 128 requests of 1 MiB at most. What is kept, 160 MiB, must be there
    // already.
    assert!(after < before + (128 << 10), "{before} KiB before 160 MiB were written, {after} after");
    drive.signal(Signal::INT);
    drive.ended().expect(0);
}

/// Updates of random rows of a table by Python's sqlite3, a transaction each, with a rollback journal and with a log:
/// how many a second, and how many requests and KiB of each reached the drive.
const UPDATES: &str = r#"
import os, random, sqlite3, subprocess, time

with open("/sys/block/%s/stat" % os.path.basename(os.environ["FLASHWISE_DEVICE"])) as stat:
    def written():
        stat.seek(0)
        fields = stat.read().split()
        return int(fields[4]), int(fields[6])

    for mode, updates in [("delete", 30), ("wal", 300)]:
        path = "%s/%s.db" % (os.environ["FLASHWISE_MOUNT"], mode)
        with sqlite3.connect(path, isolation_level=None) as db:
            db.execute("PRAGMA journal_mode = " + mode)
            db.execute("PRAGMA synchronous = OFF")
            db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, text BLOB)")
            db.execute("BEGIN")
            db.executemany("INSERT INTO item VALUES (?, ?)", ((n, bytes(100)) for n in range(2000)))
            db.execute("COMMIT")
            dice = random.Random(7)
            def update():
                db.execute("UPDATE item SET text = randomblob(100) WHERE id = ?", (dice.randrange(2000),))
            # A log that no longer grows.
            for _ in range(1200):
                update()
            db.execute("PRAGMA synchronous = FULL")
            # Of this file system alone: a sync of all waits for every other drive, however slow it is.
            subprocess.run(["sync", "-f", path], check=True)
            before, started = written(), time.monotonic()
            for _ in range(updates):
                update()
            seconds = time.monotonic() - started
            requests, sectors = (after - was for after, was in zip(written(), before))
            print(updates / seconds, requests / updates, sectors / 2 / updates)
"#;

/// While a log grows, each sync also writes the journal of the file system, and a log makes 1.3 to 1.9 times the
/// updates only; once it starts over in its own blocks, 4.1 to 6.3 times, in a tenth of the bytes.
#[test]
fn a_log_of_stock_sqlite_makes_three_times_the_updates_on_an_emmc_at_least_with_less_than_half_the_writes() {
    let Some(_turn) = turn(&["mkfs.ext4", "python3"]) else { return };
    let place = place();
    place.write("updates.py", UPDATES);
    let job = "exec python3 updates.py > rates";
    // With a log an update takes the drive 3 ms: so slow that it counts little what a machine busy with other tests
    // adds.
    let slow = ["--mount", "on", "--time-scale", "4", "--", "sh", "-c", job];
    place.run(&[&["attach", "emmc-phone-2012"], &slow[..]].concat()).expect(0);
    let numbers = |line: &str| -> Vec<f64> { line.split(' ').map(|number| number.parse().unwrap()).collect() };
    let rates: Vec<Vec<f64>> = place.read("rates").lines().map(numbers).collect();
    let times: Vec<f64> = (0..3).map(|n| rates[1][n] / rates[0][n]).collect();
    println!("{rates:.2?}, {times:.2?} times");
    assert!(times[0] >= 3.0 && times[1] <= 0.5 && times[2] <= 0.5, "{rates:?}");
}
