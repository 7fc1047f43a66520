//! `learn` on block devices, and what is left of a scratch file whatever ends the program.

use crate::loops;
use crate::support;
use std::path::Path;
use std::time::Duration;

use loops::{LoopDevice, Mounted, run};
use rustix::process::{Pid, Signal, kill_process};
use support::{Place, is_empty};

/// So large that the probes fit, and larger than the region that they may write.
const MIB: u64 = 320;

fn drive(place: &Place) -> Option<LoopDevice> {
    LoopDevice::new(&place.path("image"), MIB)
}

fn name(device: &LoopDevice) -> &str {
    device.path().to_str().unwrap()
}

fn image(place: &Place) -> String {
    place.path("image").canonicalize().unwrap().display().to_string()
}

/// Whether the image holds nothing but zeros from this byte on.
fn is_untouched_from(place: &Place, start: usize) -> bool {
    std::fs::read(place.path("image")).unwrap()[start..].iter().all(|&byte| byte == 0)
}

#[test]
fn a_dry_run_shows_the_plan_and_touches_nothing() {
    let place = Place::new();
    let Some(device) = drive(&place) else { return };
    let (name, image) = (name(&device), image(&place));
    let plan = ["learn", name, "--dry-run", "--profile", "p.toml"];
    let reading = place.run(&plan).expect(0);
    assert!(reading.stdout.contains("writes       nothing; it is opened read-only"), "{}", reading.stdout);

    let unconfirmed = place.run(&[&plan[..], &["--destructive"]].concat()).expect(5);
    assert!(unconfirmed.stdout.contains("refused      writing to it needs --confirm-device"), "{}", unconfirmed.stdout);
    assert!(unconfirmed.stdout.contains(&format!("confirmed by {image}")), "{}", unconfirmed.stdout);

    let consent = ["--destructive", "--confirm-device", &image, "--max-write", "1g"];
    let accepted = place.run(&[&plan[..], &consent].concat()).expect(0);
    assert!(
        accepted.stdout.contains("at most 1 GiB in all, to its first 256 MiB (80.00 % of it)"),
        "{}",
        accepted.stdout
    );
    assert!(!accepted.stdout.contains("refused"), "{}", accepted.stdout);

    let document = place.run(&[&plan[..], &["--destructive", "-o", "json"]].concat()).expect(5).document();
    assert_eq!(document["schema"], "flashwise.plan");
    assert_eq!((&document["kind"], &document["destructive"]), (&"raw".into(), &true.into()));
    assert_eq!(document["capacity_bytes"], MIB << 20);
    assert_eq!(document["region_bytes"], 256 << 20);
    assert_eq!(document["max_write_bytes"], 4u64 << 30);
    assert_eq!(document["refusals"][0]["cause"], "unconfirmed");
    assert_eq!(place.names(), ["image"]);
    assert!(is_untouched_from(&place, 0));
}

#[test]
fn a_dry_run_on_other_targets_says_what_they_would_write() {
    let place = Place::new();
    let simulated = place.run(&["learn", "--dry-run"]).expect(0);
    assert!(simulated.stdout.contains("nothing; the drive is simulated"), "{}", simulated.stdout);
    std::fs::create_dir(place.path("dir")).unwrap();
    let directory = place.run(&["learn", "dir", "--dry-run", "-o", "json"]).expect(0).document();
    assert_eq!(directory["kind"], "scratch");
    assert!(directory["scratch_bytes"].as_u64().unwrap() >= 64 << 20);
    assert!(is_empty(&place.path("dir")));
}

#[test]
fn without_destructive_a_device_is_never_written() {
    let place = Place::new();
    let Some(device) = drive(&place) else { return };
    // Whatever can be learned by reading; the exit code is the learner's to choose.
    place.run(&["learn", name(&device), "--max-write", "1g"]);
    assert!(is_untouched_from(&place, 0));
}

#[test]
fn what_is_mounted_is_refused_with_exit_code_5_and_one_line_whatever_is_allowed() {
    let place = Place::new();
    let Some(device) = drive(&place) else { return };
    let mounted =
        run("mkfs.ext4", &[&"-q", &device.path()]).and_then(|_| Mounted::new(device.path(), &place.path("mnt")));
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let link = place.path("by-id-Maker_S3RIAL");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    let image = image(&place);
    for target in [name(&device), link.to_str().unwrap()] {
        let consent = ["--destructive", "--confirm-device", &image, "--allow-signature", "ext4"];
        let line = place.fails(5, &[&["learn", target], &consent[..]].concat());
        assert!(line.contains("nothing is written: it is mounted at ") && line.contains("unmount it"), "{line}");
    }
    drop(mounted);
    let line = place.fails(5, &["learn", name(&device), "--destructive", "--confirm-device", &image]);
    assert!(line.contains("it contains ext4") && line.contains("--allow-signature ext4"), "{line}");
    let wrong = ["--destructive", "--confirm-device", "S3RIAL", "--allow-signature", "ext4"];
    let line = place.fails(5, &[&["learn", name(&device)], &wrong[..]].concat());
    assert!(line.contains("'S3RIAL' is neither its serial number nor its name"), "{line}");
    run("e2fsck", &[&"-fn", &device.path()]).unwrap();
}

#[test]
fn an_accepted_run_announces_its_writes_and_stays_within_region_and_limit() {
    let place = Place::new();
    let Some(device) = drive(&place) else { return };
    let image = image(&place);
    let consent = ["--destructive", "--confirm-device", &image, "--max-write", "3m"];
    let ended = place.run(&[&["learn", name(&device)], &consent[..]].concat());
    let first = ended.stderr.lines().next().unwrap_or_default();
    let announced = format!(
        "flashwise: {}: overwriting its first 256 MiB (80.00 % of it), writing at most 3 MiB in all",
        name(&device)
    );
    assert_eq!(first, announced);
    drop(device);
    assert!(is_untouched_from(&place, 256 << 20));
    let bytes = std::fs::read(place.path("image")).unwrap();
    let written = bytes.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count();
    assert!(written * 4096 <= 3 << 20, "{written} blocks");
    assert!(written > 0, "{}", ended.stderr);
}

#[test]
fn consent_is_for_block_devices_and_there_is_no_way_around_it() {
    let place = Place::new();
    place.write("file", "precious");
    std::fs::create_dir(place.path("dir")).unwrap();
    let line = place.fails(2, &["learn", "dir", "--destructive", "--confirm-device", "x"]);
    assert!(line.contains("dir is not a block device; --destructive is only for block devices"), "{line}");
    place.fails(2, &["learn", "--destructive"]);
    place.fails(5, &["learn", "file", "--destructive", "--confirm-device", "file"]);
    place.fails(2, &["learn", "dir", "--confirm-device", "x"]);
    place.fails(2, &["learn", "dir", "--allow-signature", "ext4"]);
    let line = place.fails(2, &["learn", "dir", "--destructive", "--allow-signature", "ext5"]);
    assert!(line.contains("unknown signature 'ext5'"), "{line}");
    for never in ["--yes", "--force", "-y"] {
        place.fails(2, &["learn", "dir", "--destructive", never]);
    }
    assert_eq!(place.read("file"), "precious");
    if let Some(device) = drive(&place) {
        place.fails(5, &["fit", "sqlite", "--on", name(&device)]);
        place.fails(5, &["learn", name(&device), "--destructive"]);
        assert!(is_untouched_from(&place, 0));
    }
}

#[test]
fn the_guide_lists_every_signature_that_can_be_allowed() {
    let guide = include_str!("../../../../docs/guide/real-drives.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let kinds: Vec<_> = flashwise_block::SignatureKind::all().iter().map(ToString::to_string).collect();
    let list = kinds.join(", ");
    assert!(guide.contains(&format!("the kind that it names: {list}.")), "it should list {list}");
}

/// Runs `learn` on a directory and ends it with a signal; its exit code, if it was not done before.
fn learn_until(signal: Signal, directory: &Path, place: &Place) -> Option<i32> {
    let mut child = place.command(&["learn", directory.to_str().unwrap()]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    if child.try_wait().unwrap().is_some() {
        return None;
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    Some(child.wait().unwrap().code().unwrap_or(-1))
}

#[test]
fn no_signal_leaves_a_scratch_file_behind() {
    let place = Place::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 130), (Signal::KILL, -1)] {
        let directory = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        match learn_until(signal, directory.path(), &place) {
            Some(ended) => assert_eq!(ended, code, "{signal:?}"),
            None => eprintln!("SKIPPED, {signal:?}: it ended before"),
        }
        assert!(is_empty(directory.path()), "{signal:?}");
    }
}
