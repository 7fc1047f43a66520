//! `flashwise attach --data FILE`: the drive goes on where it was, for other people's programs, and says where it
//! cannot.

use crate::mounted;
use crate::support;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use flashwise_attach::{AttachError, DataFile, Engine, HostRequest as Asked, Pace, Wake};
use flashwise_block::{ByteSize, IoBuffer, Operation};
use flashwise_ssd::{DeviceConfig, SimulatedSsd};
use mounted::{Drive, Power, assert_nothing_left, place, power_fails, small_drive, turn};
use rustix::process::Signal;
use support::Place;

const ATTACH: [&str; 8] =
    ["attach", "samsung-960-evo", "--nbd", "unix:ssd.sock", "--data", "drive.img", "--time", "none"];

fn has_nbdcopy() -> bool {
    let there = Command::new("nbdcopy").arg("--version").output().is_ok();
    if !there {
        eprintln!("nbdcopy is not installed: not tested");
    }
    there
}

fn script(place: &Place, script: &str) -> support::Ended {
    place.run(&[&ATTACH[..], &["-o", "json", "--", "sh", "-c", script]].concat())
}

/// 12 MiB that are alike nowhere.
fn bytes(factor: u32) -> Vec<u8> {
    (0_u32..3 << 20).flat_map(|n| (n / 5 * factor).to_le_bytes()).collect()
}

#[test]
fn an_image_that_is_copied_in_is_there_for_the_next_drive_and_in_the_file() {
    if !has_nbdcopy() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.path("in.img"), bytes(7)).unwrap();
    let first = script(&place, "nbdcopy --flush in.img \"$FLASHWISE_NBD\"").expect(0);
    assert_eq!(first.stderr, "", "a new drive needs no words");
    assert_eq!(place.names(), ["drive.img", "drive.img.ftl", "in.img"]);
    let in_file =
        Command::new("cmp").args(["-n", "12582912", "in.img", "drive.img"]).current_dir(place.path(".")).status();
    assert!(in_file.unwrap().success(), "a raw image");
    let second = script(&place, "nbdcopy \"$FLASHWISE_NBD\" - | head -c 12582912 | cmp - in.img").expect(0);
    let words = "flashwise: drive.img: the drive continues where it was detached, at ";
    assert!(second.stderr.starts_with(words), "{}", second.stderr);
    let counters = &second.document()["counters"];
    assert_eq!(counters["host_bytes_written"], 0, "the report is of this time alone");
    assert_eq!(counters["flash"]["unwritten_pages_read"], 0, "what nobody wrote is not asked for");
}

#[test]
fn a_drive_that_was_killed_has_all_bytes_and_says_what_its_ftl_does_not_know() {
    if !has_nbdcopy() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.path("in.img"), bytes(11)).unwrap();
    script(&place, "true").expect(0);
    let drive = Drive::of(&place, &ATTACH);
    let uri = format!("nbd+unix:///disk?socket={}", place.path("ssd.sock").display());
    let copied = Command::new("nbdcopy").arg(place.path("in.img")).arg(uri).status().unwrap();
    assert!(copied.success());
    let second = place.fails(5, &ATTACH);
    assert!(second.contains("drive.img: another drive is attached to it"), "{second}");
    drive.killed();
    assert!(place.path("drive.img.ftl.attached").exists());
    let next = script(&place, "nbdcopy \"$FLASHWISE_NBD\" - | head -c 12582912 | cmp - in.img").expect(0);
    let words = "flashwise: drive.img: the drive was not detached: no data is lost; the FTL starts from its last saved \
                 state, with 12 MiB written since\n";
    assert_eq!(next.stderr, words);
    let exact = script(&place, "true").expect(0);
    assert!(exact.stderr.contains("continues where it was detached"), "{}", exact.stderr);
}

#[test]
fn what_would_not_be_the_same_drive_is_refused_in_words() {
    let place = Place::new();
    script(&place, "true").expect(0);
    let with = |drive: &'static str, more: &[&'static str]| {
        [&["attach", drive, "--nbd", "unix:ssd.sock", "--data", "drive.img"], more].concat()
    };
    let words = place.fails(2, &with("samsung-960-evo", &["--precondition", "fill"]));
    assert!(
        words.ends_with("the file has a drive, which continues from its state; --precondition is for a new drive"),
        "{words}"
    );
    let words = place.fails(2, &with("samsung-960-evo", &["--memory", "1g"]));
    assert!(words.contains("--memory limits --data memory"), "{words}");
    let words = place.fails(2, &["attach", "samsung-960-evo", "--nbd", "unix:ssd.sock", "--data-sync"]);
    assert!(words.contains("give one with --data FILE"), "{words}");
    let words = place.fails(5, &with("intel-p4510", &[]));
    assert!(words.contains("drive.img: it has ") && words.contains("give the drive that it belongs to"), "{words}");
    let toml = flashwise_ssd::Preset::find("samsung-960-evo").unwrap().toml;
    place.write("other.toml", &toml.replacen("program_ns = 660_000", "program_ns = 660_001", 1));
    let words = place.fails(5, &with("other.toml", &[]));
    assert!(words.contains("drive.img.ftl: the state is of a different drive: flash.program_ns = "), "{words}");
    std::fs::write(place.path("drive.img.ftl"), "flashwise.drive\n and something else").unwrap();
    let words = place.fails(5, &with("samsung-960-evo", &[]));
    assert!(words.contains("drive.img.ftl: the state was saved"), "{words}");
}

#[test]
fn a_drive_that_compresses_and_deduplicates_goes_on_with_what_its_pages_take() {
    if !has_nbdcopy() {
        return;
    }
    let place = Place::new();
    std::fs::write(place.path("in.img"), bytes(7)).unwrap();
    let compressing = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/compressing.toml");
    let device = compressing.to_str().unwrap();
    let attach = ["attach", device, "--nbd", "unix:ssd.sock", "--data", "drive.img", "--time", "none", "-o", "json"];
    let run = |more: &[&str], script: &str| place.run(&[&attach, more, &["--", "sh", "-c", script]].concat()).expect(0);
    let space = run(&[], "nbdcopy --flush in.img \"$FLASHWISE_NBD\"").document()["space"].clone();
    let of = |key: &str| space[key].as_u64().unwrap();
    assert!(of("physical_bytes") > 0 && of("physical_bytes") < of("logical_bytes") / 2, "{space}");
    let check = "nbdcopy \"$FLASHWISE_NBD\" - | head -c 12582912 | cmp - in.img";
    let second = run(&["--memory", "1g"], check);
    assert!(second.stderr.contains("continues where it was detached"), "{}", second.stderr);
    assert_eq!(second.document()["space"], space);
}

/// A file system of a few MiB.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "small"]).arg(&at).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(at));
        }
        eprintln!("no tmpfs can be mounted: not tested");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_file_system_that_is_full_is_the_client_s_error_and_is_told() {
    if !has_nbdcopy() {
        return;
    }
    let place = Place::new();
    let Some(_small) = Small::mount(place.path("small"), "8m") else { return };
    std::fs::write(place.path("in.img"), bytes(13)).unwrap();
    let attach = ["attach", "samsung-960-evo", "--nbd", "unix:ssd.sock", "--data", "small/drive.img", "--time", "none"];
    let copy = "nbdcopy in.img \"$FLASHWISE_NBD\" 2> words";
    let full = place.run(&[&attach[..], &["--", "sh", "-c", copy]].concat()).expect(1);
    assert!(place.read("words").contains("No space left on device"), "{}", place.read("words"));
    let told = "flashwise: small/drive.img: No space left on device: requests fail\n";
    assert_eq!(full.stderr.matches(told).count(), 1, "{}", full.stderr);
    let not_saved = "small/drive.img.ftl: the drive's state was not saved: No space left on device; the next attach \
                     continues from the earlier state, with a note";
    assert!(full.stderr.contains(not_saved), "{}", full.stderr);
    let names: Vec<_> = std::fs::read_dir(place.path("small")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{names:?}");
    let resize = Command::new("mount").args(["-o", "remount,size=64m"]).arg(place.path("small")).status().unwrap();
    assert!(resize.success());
    let again = place.run(&[&attach[..], &["--", "sh", "-c", copy]].concat()).expect(0);
    assert!(again.stderr.contains("the drive was not detached: no data is lost"), "{}", again.stderr);
}

/// Mounts the drive in its file, runs a script there, and detaches it.
fn mounted(place: &Place, kind: &str, script: &str) -> support::Ended {
    let attach = ["attach", "samsung-960-evo", "--mount", "on", "--fs", kind, "--data", "drive.img", "--time", "none"];
    let ended = place.run(&[&attach[..], &["-o", "json", "--", "sh", "-euc", script]].concat()).expect(0);
    assert!(Path::new(&place.path("on")).read_dir().unwrap().next().is_none(), "it is unmounted");
    ended
}

#[test]
fn a_file_system_is_made_once_and_is_there_with_its_files_the_next_time() {
    let Some(_turn) = turn(&["mkfs.ext4", "mkfs.xfs"]) else { return };
    for kind in ["ext4", "xfs"] {
        let place = place();
        let other = if kind == "ext4" { "xfs" } else { "ext4" };
        std::fs::write(place.path("in.img"), bytes(17)).unwrap();
        mounted(&place, kind, "cp in.img \"$FLASHWISE_MOUNT/kept\"");
        mounted(&place, kind, "cmp in.img \"$FLASHWISE_MOUNT/kept\"; echo more > \"$FLASHWISE_MOUNT/more\"");
        // Asked for another one, the one that is there is mounted.
        let script =
            "test \"$(cat \"$FLASHWISE_MOUNT/more\")\" = more; grep \" $FLASHWISE_MOUNT \" /proc/self/mountinfo > how";
        mounted(&place, other, script);
        assert!(place.read("how").contains(&format!(" - {kind} ")), "{}", place.read("how"));
    }
}

#[test]
fn a_file_system_on_a_drive_that_was_killed_is_mounted_again_with_what_was_synced() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    let attach = ["attach", "samsung-960-evo", "--mount", "on", "--data", "drive.img", "--time", "none"];
    let drive = Drive::of(&place, &attach);
    let process = drive.number();
    std::fs::write(place.path("on/kept"), bytes(19)).unwrap();
    assert!(Command::new("sync").arg(place.path("on/kept")).arg(place.path("on")).status().unwrap().success());
    drive.signal(Signal::KILL);
    drive.killed();
    std::fs::write(place.path("in.img"), bytes(19)).unwrap();
    let ended = mounted(&place, "ext4", "cmp in.img \"$FLASHWISE_MOUNT/kept\"");
    assert!(ended.stderr.contains("the drive was not detached"), "{}", ended.stderr);
    assert_nothing_left(&place, process);
}

#[test]
fn a_drive_that_holds_no_file_system_is_not_formatted() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    if !has_nbdcopy() {
        return;
    }
    let place = place();
    std::fs::write(place.path("in.img"), bytes(23)).unwrap();
    script(&place, "nbdcopy --flush in.img \"$FLASHWISE_NBD\"").expect(0);
    let ended = place.run(&["attach", "samsung-960-evo", "--mount", "on", "--data", "drive.img", "--time", "none"]);
    assert_eq!(ended.code, 5, "{}", ended.stderr);
    assert!(ended.stderr.contains("a drive with content is not formatted; give another data file"), "{}", ended.stderr);
    script(&place, "nbdcopy \"$FLASHWISE_NBD\" - | head -c 12582912 | cmp - in.img").expect(0);
}

/// A drive whose bytes are in a file.
fn in_file(config: &DeviceConfig, image: &Path, syncs: bool) -> Engine {
    let mut data = DataFile::open(image, ByteSize(config.capacity_bytes)).unwrap();
    if syncs {
        data.sync_at_flush();
    }
    let new = || Ok::<_, AttachError>(SimulatedSsd::new(config.clone(), 1).unwrap());
    let (drive, _) = data.drive(config, new).unwrap();
    let mut engine = Engine::new(drive, Pace::Free, Duration::ZERO, None, Instant::now()).unwrap();
    engine.store_content_in(data, false);
    engine
}

/// Does one thing on it; the bytes of a read.
fn done(engine: &mut Engine, operation: Operation, offset: u64, length: u64, fua: bool) -> Option<IoBuffer> {
    let bytes: Vec<u8> = (0..length).map(|n| (offset / 4096 + n / 512 + 1) as u8).collect();
    let payload = (operation == Operation::Write).then(|| IoBuffer::copy_of(&bytes));
    let (offset, length) = (ByteSize(offset), ByteSize(length));
    let asked = Asked { client: 1, cookie: 1, process: None, operation, offset, length, fua, payload };
    engine.submit(asked, Instant::now()).unwrap();
    let mut answers = Vec::new();
    while engine.next_wake() != Wake::Never {
        engine.poll(Instant::now(), &mut answers).unwrap();
    }
    let answer = answers.pop().unwrap();
    answer.result.unwrap();
    if operation == Operation::Read {
        assert!(answer.payload.as_deref() == Some(&bytes), "{operation:?} at {offset}");
    }
    answer.payload
}

/// The machine is a file system on another attached drive: its power is cut.
#[test]
fn what_a_client_flushed_survives_the_machine_where_a_flush_syncs_the_file() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    small_drive(&place);
    let config = DeviceConfig::from_toml(&place.read("drive.toml"), "drive.toml").unwrap();
    let attach = ["attach", "drive.toml", "--mount", "on", "--power-cuts", "--time", "none"];
    let machine = Drive::of(&place, &attach);
    let (process, device, image) = (machine.number(), machine.device(), place.path("on/db.img"));
    let mut engine = in_file(&config, &image, true);
    for n in 0..100 {
        done(&mut engine, Operation::Write, n * 7 * 4096, 4096, false);
    }
    done(&mut engine, Operation::Flush, 0, 0, false);
    done(&mut engine, Operation::Write, 4096, 4096, true);
    power_fails(&place, &device, &Power::default(), || drop(engine));
    let mut engine = in_file(&config, &image, true);
    for n in 0..100 {
        done(&mut engine, Operation::Read, n * 7 * 4096, 4096, false);
    }
    done(&mut engine, Operation::Read, 4096, 4096, false);
    engine.detach().unwrap();
    drop(engine);
    machine.signal(Signal::INT);
    machine.ended().expect(0);
    assert_nothing_left(&place, process);
}
