//! `flashwise audit`: of traces, of commands as they run, and of SQL through the VFS.

use crate::loops;
use crate::support;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use loops::{LoopDevice, Mounted, run};
use rustix::io;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use support::{Ended, Place};

/// Eight short writes of a file that looks like a database, made durable.
const WRITES: [&str; 7] = ["dd", "if=/dev/zero", "of=a.db", "bs=512", "count=8", "conv=fsync", "status=none"];

fn has_strace() -> bool {
    let there =
        Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).status().is_ok_and(|ended| ended.success());
    if !there {
        eprintln!("strace is not installed or may not trace: not tested");
    }
    there
}

fn audit(place: &Place, more: &[&str]) -> Ended {
    place.run(&[&["audit", "--profile", "p.toml"][..], more].concat())
}

fn finding<'a>(document: &'a Value, rule: &str) -> &'a Value {
    document["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule).unwrap()
}

#[test]
fn a_command_is_audited_as_it_runs_without_root() {
    if !has_strace() {
        return;
    }
    let place = Place::with_profile();
    let ended = audit(&place, &[&["-o", "json", "--save-trace", "t.strace", "--"][..], &WRITES].concat()).expect(3);
    let document = ended.document();
    let short = finding(&document, "write-whole-units");
    assert_eq!((&short["violations"], &short["bytes"]), (&8.into(), &4096.into()));
    let name = short["examples"][0]["file"].as_str().unwrap();
    assert!(name.ends_with("/a.db"), "{name}");
    assert_eq!(short["places"][0]["place"]["file"], name);
    assert_eq!(short["processes"].as_array().unwrap().len(), 1);
    assert!(short["cost"]["time_ns"].is_i64(), "{document}");
    let remarks = document["remarks"].to_string();
    assert!(remarks.contains("before page cache and file system"), "{remarks}");
    let open = document["unjudged"].to_string();
    assert!(open.contains("above the page cache"), "{open}");
    // What was kept gives the same counts again.
    let again = audit(&place, &["-o", "json", "t.strace"]).document();
    assert!(finding(&again, "write-whole-units")["violations"].as_u64().unwrap() >= 8);
}

#[test]
fn how_a_command_ended_is_told_and_its_output_is_not_mixed_with_the_document() {
    if !has_strace() {
        return;
    }
    let place = Place::with_profile();
    let ended = audit(&place, &["-o", "json", "--", "sh", "-c", "echo hello; exit 7"]).expect(0);
    assert!(ended.document()["remarks"].to_string().contains("the command ended with exit status: 7"));
    assert!(ended.stderr.contains("hello"), "{}", ended.stderr);
    let missing = audit(&place, &["--", "no-such-command"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("strace could not trace no-such-command"), "{}", missing.stderr);
}

/// The kernel's block events for as long as a test needs them, one test at a time; mounted where they are not, and then
/// unmounted again.
struct Events {
    is_mounted_here: bool,
    _turn: MutexGuard<'static, ()>,
}

impl Events {
    const PLACE: &str = "/sys/kernel/tracing";

    fn get() -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let are_there = || Path::new(Self::PLACE).join("events/block/block_rq_issue").is_dir();
        let was_there = are_there();
        let mounted =
            if was_there { Ok(String::new()) } else { run("mount", &[&"-t", &"tracefs", &"tracefs", &Self::PLACE]) };
        match mounted {
            Ok(_) if are_there() => Some(Self { is_mounted_here: !was_there, _turn: turn }),
            Ok(_) => {
                let _ = run("umount", &[&Self::PLACE]);
                eprintln!("SKIPPED: the kernel has no block events");
                None
            }
            Err(why) => {
                eprintln!("SKIPPED, no tracefs here (it needs root and a kernel with it): {why}");
                None
            }
        }
    }

    /// Buffers that were made by flashwise and are still there.
    fn left() -> Vec<String> {
        let entries = std::fs::read_dir(Path::new(Self::PLACE).join("instances")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("flashwise-")).collect()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.is_mounted_here {
            let _ = run("umount", &[&Self::PLACE]);
        }
    }
}

/// A file system on a loop device, or `None`, said aloud.
fn file_system(place: &Place) -> Option<(LoopDevice, Mounted)> {
    let device = LoopDevice::new(&place.path("image"), 64)?;
    let made = run("mkfs.ext4", &[&"-q", &device.path()]).and_then(|_| Mounted::new(device.path(), &place.path("mnt")));
    match made {
        Ok(mounted) => Some((device, mounted)),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

#[test]
fn what_a_drive_gets_is_audited_with_root_where_the_kernel_tells_it() {
    let place = Place::with_profile();
    let Some(_events) = Events::get() else { return };
    let Some((device, _mounted)) = file_system(&place) else { return };
    let of = format!("of={}", place.path("mnt/d").display());
    let command = ["dd", "if=/dev/zero", &of, "bs=4096", "count=64", "oflag=direct", "status=none"];
    let options = ["--block", "mnt", "--save-trace", "t.events", "-o", "json", "--"];
    let document = audit(&place, &[&options[..], &command].concat()).expect(3).document();
    let short = finding(&document, "write-whole-units");
    assert!(short["violations"].as_u64().unwrap() >= 64, "{document}");
    let told = short["places"][0]["place"]["region"]["device"].as_u64().unwrap();
    let number: u64 = device.path().to_str().unwrap().trim_start_matches("/dev/loop").parse().unwrap();
    assert_eq!((told >> 20, told & 0xF_FFFF), (7, number), "the loop device and no other");
    assert!(short["processes"].as_array().is_some_and(|processes| !processes.is_empty()), "{document}");
    // Each of the 64 writes is in the kept trace, with its latency.
    let info = place.run(&["trace", "info", "t.events", "-o", "json"]).expect(0).document();
    assert_eq!(info["format"], "tracefs");
    assert!(info["summary"]["writes"].as_u64().unwrap() >= 64, "{info}");
    assert!(info["summary"]["bytes_written"].as_u64().unwrap() >= 64 * 4096, "{info}");
    assert!(info["summary"]["latency"]["p50_ns"].as_u64().unwrap() > 0, "{info}");
    assert!(Events::left().is_empty(), "its buffer is removed");
}

#[test]
fn without_block_events_the_way_out_is_told() {
    let place = Place::with_profile();
    let ended = audit(&place, &["--block", "/proc/self/status", "--", "true"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("neither a block device nor a file on one"), "{}", ended.stderr);
}

/// Waits until a command has made a file.
fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What ended with a signal, within a time in which nothing but a hanging child does not.
fn ended(mut child: Child) -> Ended {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ended::of(child)
}

/// Writes, says that it did, and sleeps for a time that nobody else sleeps for.
fn long_command(seconds: &str) -> [String; 3] {
    let script = "dd if=/dev/zero of=mnt/a.db bs=512 count=8 conv=fsync status=none; touch started; sleep ";
    ["sh".to_owned(), "-c".to_owned(), format!("{script}{seconds}")]
}

fn is_asleep(seconds: &str) -> bool {
    let lines =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.into_iter().any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
}

/// Starts an audit of a command that does not end, and ends it with SIGINT, alone or with its group, by what `kill` is.
fn interrupted(place: &Place, options: &[&str], seconds: &str, kill: fn(Pid, Signal) -> io::Result<()>) -> Ended {
    use std::os::unix::process::CommandExt;
    let command = long_command(seconds);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let arguments = [&["audit", "--profile", "p.toml"][..], options, &["--"], &command].concat();
    let child = place.command(&arguments).process_group(0).spawn().unwrap();
    wait_for(&place.path("started"));
    assert!(!place.has_no_temporary_files(), "it captures into a temporary file");
    kill(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = ended(child);
    assert!(place.has_no_temporary_files(), "{}", ended.stderr);
    assert!(!is_asleep(seconds), "the command goes on");
    std::fs::remove_file(place.path("started")).unwrap();
    ended
}

#[test]
fn ctrl_c_ends_the_command_and_what_was_captured_is_kept_where_that_was_asked_for() {
    if !has_strace() {
        return;
    }
    let place = Place::with_profile();
    std::fs::create_dir(place.path("mnt")).unwrap();
    // As a terminal does it, to the whole group.
    let kept = interrupted(&place, &["--save-trace", "t.strace"], "6113.7", kill_process_group).expect(130);
    assert_eq!(kept.stderr.trim(), "flashwise: interrupted; the trace captured so far is in t.strace");
    let info = place.run(&["trace", "info", "t.strace", "-o", "json"]).expect(0).document();
    assert!(info["summary"]["writes"].as_u64().unwrap() >= 8, "{info}");
    // To flashwise alone, which ends the command itself.
    let dropped = interrupted(&place, &["-o", "json"], "6114.3", kill_process).expect(130);
    let document = dropped.document();
    assert_eq!((&document["schema"], &document["error"]["exit_code"]), (&"flashwise.error".into(), &130.into()));
    assert!(document["error"]["message"].as_str().unwrap().contains("--save-trace FILE would keep it"), "{document}");
    assert_eq!(place.names(), ["mnt", "p.toml", "t.strace"]);
}

#[test]
fn ctrl_c_ends_a_capture_of_block_events_and_removes_their_buffer() {
    let place = Place::with_profile();
    let Some(_events) = Events::get() else { return };
    let Some((_device, _mounted)) = file_system(&place) else { return };
    let options = ["--block", "mnt", "--save-trace", "t.events"];
    let kept = interrupted(&place, &options, "6115.9", kill_process).expect(130);
    assert_eq!(kept.stderr.trim(), "flashwise: interrupted; the trace captured so far is in t.events");
    assert!(Events::left().is_empty());
    let info = place.run(&["trace", "info", "t.events", "-o", "json"]).expect(0).document();
    assert!(info["summary"]["bytes_written"].as_u64().unwrap() >= 4096, "{info}");
}

/// An image with partitions at these sectors, or `None`, said aloud.
fn image(place: &Place, name: &str, label: &str, starts: &[u64]) -> Option<()> {
    let file = std::fs::File::create_new(place.path(name)).unwrap();
    file.set_len(64 << 20).unwrap();
    let lines: String = starts.iter().map(|start| format!("start={start}, size=4096\n")).collect();
    place.write("script", &format!("label: {label}\n{lines}"));
    let script =
        format!("sfdisk --quiet --no-reread '{}' < '{}'", place.path(name).display(), place.path("script").display());
    run("sh", &[&"-c", &script]).map(drop).map_err(|why| eprintln!("SKIPPED: {why}")).ok()
}

#[test]
fn the_partitions_of_an_image_are_held_against_the_profile() {
    let place = Place::with_profile();
    let Some(()) = image(&place, "old.img", "dos", &[63, 8192]) else { return };
    let Some(()) = image(&place, "new.img", "gpt", &[2048, 8192]) else { return };
    let text = audit(&place, &["--target", "old.img"]).expect(3);
    insta::assert_snapshot!("audit_partitions", text.stdout);
    let document = audit(&place, &["--target", "old.img", "-o", "json"]).expect(3).document();
    let partitions = &document["partitions"];
    assert_eq!(
        (&partitions["table"], &partitions["partitions"][1]["misplaced"]),
        (&"mbr".into(), &Value::Array(vec![]))
    );
    assert_eq!(partitions["partitions"][0]["misplaced"][0]["remainder_bytes"], 63 * 512);
    assert!(audit(&place, &["--target", "new.img"]).expect(0).stdout.contains("0 of 2 partitions are misaligned"));
    // Beside a trace, whose rules are judged as ever.
    let header = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";
    place.write("t.csv", &format!("{header}0,write,database,0,65536,20000\n"));
    let both = audit(&place, &["t.csv", "--target", "old.img", "-o", "json"]).expect(3).document();
    assert_eq!(both["partitions"], document["partitions"]);
    assert!(both["findings"].as_array().is_some_and(|findings| !findings.is_empty()));
    assert_eq!(
        audit(&place, &["--target", "old.img", "--fail-on", "align-partition,1ms"]).code,
        4,
        "nobody knows its cost"
    );
    assert_eq!(audit(&place, &["--target", "old.img", "--fail-on", "write-once,1ms"]).code, 0);
    let line = place.fails(1, &["audit", "--profile", "p.toml", "--target", "t.csv"]);
    assert!(line.contains("t.csv: no partition table (GPT or MBR)"), "{line}");
    assert_eq!(std::fs::metadata(place.path("old.img")).unwrap().len(), 64 << 20);
}

#[test]
fn without_strace_the_way_out_is_told() {
    let place = Place::with_profile();
    let mut command = place.command(&["audit", "--profile", "p.toml", "--", "true"]);
    let ended = Ended::from(command.env("PATH", "").output().unwrap());
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("strace is not installed: install it (apt-get install strace)"), "{}", ended.stderr);
}

#[test]
fn sql_is_audited_through_the_vfs_while_it_runs_on_a_copy() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("q.sql", "UPDATE t SET v = v || 'x' WHERE k % 10 = 0;\nSELECT count(*) FROM t;\n");
    let before = std::fs::read(place.path("a.db")).unwrap();
    let ended = audit(&place, &["--db", "a.db", "--sql", "q.sql", "-o", "json", "--save-trace", "t.csv"]).expect(3);
    let document = ended.document();
    assert_eq!(document["trace"], "q.sql on a.db");
    assert!(finding(&document, "write-once")["violations"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(std::fs::read(place.path("a.db")).unwrap(), before, "the database is only read");
    let again = audit(&place, &["t.csv", "-o", "json"]).expect(3).document();
    // A trace does not show what is set already.
    let found = |document: &Value| {
        let mut findings = document["findings"].as_array().unwrap().clone();
        findings.iter_mut().for_each(|finding| _ = finding.as_object_mut().unwrap().remove("remedy"));
        findings
    };
    assert_eq!(found(&again), found(&document), "the kept trace gives the same findings");
    let sets_pages = |document: &Value| {
        let remedy = finding(document, "read-chunks-at-hot-locations")["remedy"].as_str().unwrap().to_owned();
        remedy.contains("set 64 KiB pages")
    };
    assert!(sets_pages(&again) && !sets_pages(&document), "the database has pages of that size");
}

#[test]
fn sql_in_a_directory_is_audited_as_calls_above_the_page_cache() {
    let place = Place::with_profile();
    place.database("a.db");
    place.write("q.sql", "UPDATE t SET v = v || 'x' WHERE k % 10 = 0;\nSELECT count(*) FROM t;\n");
    let arguments = ["--db", "a.db", "--sql", "q.sql", "--target", ".", "-o", "json"];
    let document = audit(&place, &arguments).document();
    let open = document["unjudged"].as_array().unwrap();
    let why = |rule: &str| open.iter().find(|open| open["rule"] == rule).map(|open| open["reason"].to_string());
    for rule in ["read-in-parallel", "write-back-in-parallel"] {
        assert!(why(rule).is_some_and(|why| why.contains("above the page cache")), "{rule}: {document}");
    }
    assert_eq!(document["simulated"]["machine"]["file_system"], "ext4");
}

#[test]
fn a_time_of_a_flush_that_the_profile_lacks_is_measured_on_its_drive() {
    let place = Place::new();
    place.run(&["learn", "sim:samsung-960-evo", "--quick", "--max-write", "3g", "--profile", "p.toml"]);
    let profile = place.read("p.toml");
    let (before, rest) = profile.split_once("[parameters.flush_ns]").unwrap();
    let (_, after) = rest.split_once("\n[").unwrap();
    place.write("p.toml", &format!("{before}[{after}").replace(", \"durability\"", ""));
    place.database("a.db");
    place.write("q.sql", "UPDATE t SET v = v || 'x' WHERE k = 1;\nUPDATE t SET v = v || 'y' WHERE k = 2;\n");
    let document = audit(&place, &["--db", "a.db", "--sql", "q.sql", "-o", "json"]).document();
    assert!(document["remarks"].to_string().contains("the profile had no time of a flush"), "{document}");
    assert!(finding(&document, "sync-less-often")["statement"].as_str().unwrap().starts_with("a flush (it takes "));
    // Without a target it is named as missing.
    place.write("t.csv", "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n0,write,database,0,65536,20000\n");
    let document = audit(&place, &["t.csv", "-o", "json"]).document();
    let unjudged = document["unjudged"].to_string();
    assert!(unjudged.contains("the profile has no time of a flush"), "{unjudged}");
}

#[test]
fn a_rule_that_is_better_left_broken_is_no_violation_and_no_exit_code() {
    let place = Place::with_profile();
    let header = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";
    // Point lookups of 4 KiB: pages of a chunk at hot locations would only make them longer.
    let lookups =
        (0..400_u64).map(|n| format!("{},read,database,{},4096,80000\n", n * 200_000, n * n * 7919 % 40_001 * 4096));
    place.write("t.csv", &(header.to_owned() + &lookups.collect::<String>()));
    let document = audit(&place, &["t.csv", "-o", "json"]).expect(0).document();
    let reads = finding(&document, "read-chunks-at-hot-locations");
    assert_eq!((reads["violations"].as_u64(), &reads["judgement"]), (Some(400), &"leave-it".into()), "{document}");
    let text = audit(&place, &["t.csv"]).expect(0).stdout;
    assert!(text.contains("Measured: leave it. In simulation"), "{text}");
    assert_eq!(audit(&place, &["t.csv", "--fail-on", "any,0"]).code, 0);
}

#[test]
fn an_audit_fails_only_from_the_cost_on_that_was_asked_for() {
    let place = Place::with_profile();
    let header = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";
    let commits = (0..50).map(|n| {
        let at = n * 2_000_000;
        format!("{at},write,database,{},4096,20000\n{},flush,database,0,0,800000\n", n * 4096, at + 100_000)
    });
    place.write("t.csv", &(header.to_owned() + &commits.collect::<String>()));
    let code = |fail_on: &[&str]| {
        let options: Vec<&str> = fail_on.iter().flat_map(|rule| ["--fail-on", *rule]).collect();
        audit(&place, &[&["t.csv"][..], &options].concat()).code
    };
    assert_eq!(code(&[]), 3);
    assert_eq!(code(&["sync-less-often,1ms"]), 3);
    assert_eq!(code(&["11,50%"]), 3);
    assert_eq!(code(&["sync-less-often,10s"]), 0);
    assert_eq!(code(&["read-in-parallel,0"]), 0, "a rule that nobody broke");
    assert_eq!(code(&["sync-less-often,10s", "any,1MiB"]), 3);
    let unknown = audit(&place, &["t.csv", "--window", "0", "--fail-on", "any,1ms"]);
    assert_eq!(unknown.code, 4, "a cost that nobody told is no pass");
    for mistake in ["nonsense,5ms", "any", "any,5parsec", "any,200%"] {
        assert_eq!(code(&[mistake]), 2, "{mistake}");
    }
}

#[test]
fn the_page_of_an_audit_is_written_beside_the_text() {
    let place = Place::with_profile();
    place.write(
        "t.csv",
        "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n0,write,database,4096,512,100\n9,flush,database,0,0,9\n",
    );
    let text = audit(&place, &["t.csv", "--html", "a.html"]).expect(3);
    assert!(text.stdout.contains("1  Writes should be a whole multiple of 32 KiB long."), "{}", text.stdout);
    assert!(place.read("a.html").contains("Written by flashwise"));
}

#[test]
fn a_trace_a_command_or_a_database_is_needed_and_only_one_of_them() {
    let place = Place::with_profile();
    for mistake in [&[][..], &["t.csv", "--", "true"], &["--db", "a.db"], &["t.csv", "--block", "/dev/null"]] {
        assert_eq!(audit(&place, mistake).code, 2, "{mistake:?}");
    }
}

#[test]
fn what_a_trace_needs_of_a_volume_is_what_to_buy() {
    let place = Place::new();
    // Two seconds of 4,000 reads a second.
    let reads = (0..8_000_u64).map(|n| format!("{},read,{},4096\n", n * 250_000, n * 4096));
    place.write("busy.csv", &format!("at_ns,operation,offset_bytes,length_bytes\n{}", reads.collect::<String>()));
    let document = place.run(&["audit", "busy.csv", "--provision", "gp3", "-o", "json"]).expect(0).document();
    assert_eq!(document["schema"], "flashwise.provision");
    let iops = document["needed"]["iops"].as_u64().unwrap();
    assert!((3_900..=4_100).contains(&iops) && document["bought"]["iops"] == 4_500, "{document}");
    let ended = place.run(&["audit", "busy.csv", "--provision", "gp3", "--within", "100us"]).expect(3);
    assert!(ended.stdout.contains("No gp3 meets 99 % of requests within 100 µs"), "{}", ended.stdout);
    let line = place.fails(2, &["audit", "busy.csv", "--provision", "gp4"]);
    assert!(line.contains("gp3"), "{line}");
}
