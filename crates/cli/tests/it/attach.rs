//! `flashwise attach`: other people's programs on the simulated drive.

use crate::mounted;
use crate::support;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use mounted::small_drive;
use serde_json::Value;
use support::{Ended, Place};

/// Whether a program is there; says so where it is not.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = there.is_ok_and(|ended| ended.success());
    if !there {
        eprintln!("{program} is not installed: not tested");
    }
    there
}

fn has_fio_with_nbd() -> bool {
    let engines = Command::new("fio").arg("--enghelp").output().map(|out| out.stdout).unwrap_or_default();
    let there = String::from_utf8_lossy(&engines).lines().any(|line| line.trim() == "nbd");
    if !there {
        eprintln!("fio with its nbd engine is not installed: not tested");
    }
    there
}

#[test]
fn qemu_s_tools_copy_compare_and_check_images_on_the_drive() {
    if !has("qemu-img") || !has("qemu-io") {
        return;
    }
    let place = Place::new();
    small_drive(&place);
    let image: Vec<u8> = (0_u32..3 << 20).flat_map(|n| (n / 5 * 7).to_le_bytes()).collect();
    std::fs::write(place.path("in.img"), image).unwrap();
    let script = "set -e; \
        qemu-img info -f raw --output=json \"$FLASHWISE_NBD\" > info.json; \
        qemu-img convert -n -f raw -O raw in.img \"$FLASHWISE_NBD\"; \
        qemu-img compare -f raw -F raw in.img \"$FLASHWISE_NBD\" > compared; \
        qemu-io -f raw -c 'write -f -P 7 32m 64k' -c 'discard 0 1m' -c 'write -z 1m 64k' -c flush \
            -c 'read -P 7 32m 64k' -c 'read -P 0 0 1m' -c 'read -P 0 1m 64k' \"$FLASHWISE_NBD\" > checked; \
        qemu-img bench -f raw -w -c 1000 -d 16 -s 4k --flush-interval=64 \"$FLASHWISE_NBD\" > benched";
    let attach = ["attach", "drive.toml", "--nbd", "unix:ssd.sock", "--time", "none", "-o", "json", "--", "sh", "-c"];
    let ended = place.run(&[&attach[..], &[script]].concat()).expect(0);
    let info: Value = serde_json::from_str(&place.read("info.json")).unwrap();
    assert_eq!(info["virtual-size"], 419_430_400, "{info}");
    assert!(place.read("compared").contains("Images are identical"), "{}", place.read("compared"));
    let checked = place.read("checked");
    assert!(checked.matches("bytes at offset").count() == 6 && !checked.contains("failed"), "{checked}");
    assert!(place.read("benched").contains("Run completed"), "{}", place.read("benched"));
    let counters = &ended.document()["counters"];
    let of = |name: &str| counters[name].as_u64().unwrap();
    assert!(of("trims") >= 1 && of("zero_writes") >= 1 && of("flushes") > 1000 / 64, "{counters}");
    assert_eq!(ended.document()["failed"], 0);
}

/// fio's job that writes, reads and flushes, and finds out whether everything that it wrote comes back.
const VERIFIED: &str =
    "--minimal --name=v --rw=randrw --size=24m --iodepth=32 --verify=crc32c --verify_fatal=1 --fsync=64";

/// Attaches the default drive for a shell command.
fn attach(place: &Place, more: &[&str], script: &str) -> Ended {
    let fixed = ["attach", "samsung-960-evo", "--nbd", "unix:ssd.sock"];
    let ended = place.run(&[&fixed[..], more, &["--", "sh", "-c", script]].concat());
    let left = [place.path("ssd.sock"), place.path("ssd.sock.control")];
    assert!(!left.iter().any(|socket| socket.exists()), "no socket is left");
    ended
}

#[test]
fn nbdinfo_sees_the_drive_with_what_it_can_do() {
    if !has("nbdinfo") {
        return;
    }
    let place = Place::new();
    attach(&place, &["--time", "none"], "nbdinfo --json --no-content \"$FLASHWISE_NBD\" > info.json").expect(0);
    let info: Value = serde_json::from_str(&place.read("info.json")).unwrap();
    let export = &info["exports"][0];
    assert_eq!(info["protocol"], "newstyle-fixed");
    for able in ["can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn"] {
        assert_eq!(export[able], true, "{able}: {info}");
    }
    assert_eq!((&export["is_read_only"], &export["block_size_minimum"]), (&false.into(), &512.into()));
    assert!(export["export-size"].as_u64().unwrap() > 1 << 30);
}

#[test]
fn an_image_that_is_copied_in_comes_out_the_same() {
    if !has("nbdcopy") {
        return;
    }
    let place = Place::new();
    let image: Vec<u8> = (0_u32..3 << 20).flat_map(|n| (n / 5 * 7).to_le_bytes()).collect();
    std::fs::write(place.path("in.img"), &image).unwrap();
    let script =
        "nbdcopy --flush in.img \"$FLASHWISE_NBD\" && nbdcopy \"$FLASHWISE_NBD\" - | head -c 12582912 > out.img";
    let ended = attach(&place, &["--time", "none", "-o", "json"], script).expect(0);
    assert!(std::fs::read(place.path("out.img")).unwrap() == image);
    let written = ended.document()["counters"]["host_bytes_written"].as_u64().unwrap();
    assert!(written >= 12 << 20, "{written}");
}

#[test]
fn fio_finds_no_wrong_byte_under_mixed_load_with_trims() {
    if !has_fio_with_nbd() {
        return;
    }
    let place = Place::new();
    let fio = "fio --ioengine=nbd --uri=\"$FLASHWISE_NBD\"";
    // Trims beside the work, and in a second run each block trimmed just before it is written.
    let job = format!(
        "{fio} {VERIFIED} --bsrange=512-64k --name=t --rw=randtrim --offset=32m --size=24m --bs=16k --verify=0 \
         > fio.out 2>&1 && \
         {fio} --minimal --name=v --rw=randtrimwrite --size=24m --bs=4k --iodepth=32 --verify=crc32c --verify_fatal=1 \
         >> fio.out 2>&1"
    );
    let ended = attach(&place, &["--time", "none", "-o", "json"], &job);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, place.read("fio.out"));
    let document = ended.document();
    assert!(document["counters"]["flushes"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(document["counters"]["trims"], (24 << 20) / (16 << 10) + (24 << 20) / (4 << 10), "{document}");
    assert_eq!((&document["failed"], &document["pacing"]), (&0.into(), &Value::Null));
}

/// The same through the kernel. fio does not trim files; holes are punched beside it, and read as zeros.
#[test]
fn fio_finds_no_wrong_byte_in_the_file_under_mixed_load_with_trims() {
    if !has("fio") || !has("fallocate") || !Path::new("/dev/fuse").exists() {
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("ssd")).unwrap();
    let job = format!(
        "set -e; disk=\"$FLASHWISE_DISK\"; \
         dd if=/dev/urandom of=\"$disk\" bs=1M count=4 oflag=direct conv=notrunc,fsync 2> dd.out; \
         fio --ioengine=libaio --direct=1 --filename=\"$disk\" {VERIFIED} --offset=8m --bsrange=4k-64k > fio.out 2>&1 & \
         for n in $(seq 0 255); do fallocate --punch-hole -o $((n * 16384)) -l 12288 \"$disk\"; done; \
         wait $!; \
         for n in $(seq 0 255); do cmp -n 12288 -i $((n * 16384)):0 \"$disk\" /dev/zero; done; \
         ! cmp -s -n 4096 -i 12288:0 \"$disk\" /dev/zero"
    );
    let attach = ["attach", "samsung-960-evo", "--fuse", "ssd", "--time", "none", "-o", "json", "--", "sh", "-c"];
    let ended = place.run(&[&attach[..], &[&job]].concat());
    if ended.stderr.contains("it cannot be mounted") {
        return eprintln!("{}: not tested", ended.stderr);
    }
    assert_eq!(ended.code, 0, "{}\n{}", ended.stderr, place.read("fio.out"));
    let document = ended.document();
    assert!(document["counters"]["flushes"].as_u64().unwrap() > 0, "{document}");
    assert_eq!((&document["counters"]["trims"], &document["failed"]), (&256.into(), &0.into()), "{document}");
}

/// The thread that answers is not held up by what else the machine does, where that is allowed, and its command is as
/// urgent as any other.
#[test]
fn a_drive_with_its_own_time_is_scheduled_before_others() {
    let may = Command::new("chrt").args(["-f", "20", "true"]).status().is_ok_and(|ended| ended.success());
    if !may {
        return eprintln!("SCHED_FIFO is not allowed here, or chrt not installed: not tested");
    }
    // The scheduling policy: 0 is most processes', 1 SCHED_FIFO (proc_pid_stat(5)).
    let script = "sleep 0.5; for of in $PPID self; do cut -d ' ' -f 41 /proc/$of/stat; done > policies";
    for (time, policies) in [("real", "1\n0\n"), ("none", "0\n0\n")] {
        let place = Place::new();
        attach(&place, &["--time", time], script).expect(0);
        assert_eq!(place.read("policies"), policies, "--time {time}");
    }
}

#[test]
fn what_reached_the_drive_is_captured_and_audited() {
    if !has_fio_with_nbd() {
        return;
    }
    let place = Place::with_profile();
    // A log that is appended to in pieces of half a kilobyte, each durable before the next.
    let job =
        "fio --name=log --ioengine=nbd --uri=\"$FLASHWISE_NBD\" --rw=write --bs=512 --size=128k --fsync=1 --minimal";
    let ended = attach(&place, &["--capture", "run.csv", "-o", "json"], job).expect(0);
    let document = ended.document();
    assert_eq!((&document["schema"], &document["schema_version"]), (&"flashwise.attach".into(), &1.into()));
    let counters = &document["counters"];
    assert_eq!((&counters["host_writes"], &document["capture"]["trace"]), (&256.into(), &"run.csv".into()));
    let captured = document["capture"]["requests"].as_u64().unwrap();
    assert_eq!(document["pacing"]["error"]["count"], captured, "each answer has its error: {document}");
    assert_eq!(captured, 256 + counters["flushes"].as_u64().unwrap() + counters["host_reads"].as_u64().unwrap());

    let audit = place.run(&["audit", "run.csv", "--profile", "p.toml", "-o", "json"]).expect(3).document();
    let rules: Vec<_> = audit["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    assert!(rules.contains(&"write-whole-units") && rules.contains(&"sync-less-often"), "{rules:?}");
    let short = audit["findings"].as_array().unwrap().iter().find(|f| f["rule"] == "write-whole-units").unwrap();
    assert_eq!((&short["violations"], &short["bytes"]), (&256.into(), &131_072.into()));
    assert_eq!(short["processes"].as_array().unwrap().len(), 1, "{short}");
}

/// Whatever the machine does meanwhile: what fio measures lies between what the drive took, less the way that is taken
/// off, and what it is told to have measured at most. Where the run says that this is the drive's, it is.
#[test]
fn fio_measures_what_the_drive_takes_but_for_the_error_that_is_told() {
    if !has_fio_with_nbd() {
        return;
    }
    let place = Place::new();
    let scale = 100.0;
    for depth in [1, 32] {
        let job = format!(
            "fio --name=j --ioengine=nbd --uri=\"$FLASHWISE_NBD\" --rw=randread --bs=4k --size=64m --number_ios={} \
             --iodepth={depth} --lat_percentiles=1 --percentile_list=50 --output-format=json --output=fio.out > words",
            if depth == 1 { 400 } else { 3000 }
        );
        let ended = attach(&place, &["--time-scale", "100", "-o", "json"], &job).expect(0);
        let told = place.read("fio.out");
        let fio: Value = serde_json::from_str(&told[told.find('{').unwrap()..]).unwrap();
        let fio = fio["jobs"][0]["read"]["lat_ns"]["percentile"]["50.000000"].as_f64().unwrap();
        let document = ended.document();
        let pacing = &document["pacing"];
        let ns = |value: &Value| value.as_f64().unwrap();
        let drive = ns(&document["latency"]["reads"]["p50_ns"]) * scale;
        let words = format!("depth {depth}: fio {fio} ns, the drive {drive} ns: {pacing}");
        // fio's own percentiles are exact to 1/64.
        let slack = fio / 64.0 + drive / 100.0 + 10_000.0;
        assert!(fio >= drive - ns(&pacing["round_trip_ns"]) - slack, "{words}");
        // The same times are put together in another way: their sum is the same, and the median where they are alike.
        let spread = ns(&pacing["error"]["p50_ns"]);
        assert!(fio <= ns(&pacing["at_once"]["p50_ns"]) + spread + slack, "{words}");
        if pacing["spoils_the_result"] == true {
            eprintln!("the machine is too slow today: {words}");
            assert!(ns(&pacing["enough_time_scale"]) > scale, "{words}");
        } else {
            assert!((fio - drive).abs() <= drive * 0.05 + slack, "{words}");
        }
    }
}

#[test]
fn what_the_drive_did_is_told_in_words() {
    if !has_fio_with_nbd() {
        return;
    }
    let place = Place::new();
    let job = "fio --name=j --ioengine=nbd --uri=\"$FLASHWISE_NBD\" --rw=randrw --bs=4k --size=1m --minimal > fio.out";
    let ended = attach(&place, &["--time", "none", "--capture", "run.parquet"], job).expect(0);
    let text = ended.stdout;
    for words in [
        "Activity of Samsung SSD 960 EVO 500GB",
        "simulated time",
        "latency (simulated time)",
        "reads",
        "writes",
        "run.parquet",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("client measurements show this machine, not the drive"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_command_that_fails_is_told_after_what_the_drive_did() {
    let place = Place::new();
    let ended = attach(&place, &["--time", "none"], "exit 7");
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.contains("Activity of Samsung SSD 960 EVO 500GB"), "{}", ended.stdout);
    assert_eq!(ended.stderr.trim(), "flashwise: sh: exit status: 7");
}

/// A child that does not outlive a failed test.
struct OnFailure(Option<std::process::Child>);

impl Drop for OnFailure {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
        }
    }
}

#[test]
fn ctrl_c_ends_the_drive_with_its_report_and_no_socket_left() {
    let place = Place::new();
    let arguments = ["attach", "samsung-960-evo", "--nbd", "unix:ssd.sock", "--time", "none", "-o", "json"];
    let mut child = OnFailure(Some(place.command(&arguments).spawn().unwrap()));
    // It is told where the drive is once Ctrl-C is listened to.
    let mut words = String::new();
    BufReader::new(child.0.as_mut().unwrap().stderr.take().unwrap()).read_line(&mut words).unwrap();
    assert!(words.contains("Samsung SSD 960 EVO 500GB is at nbd+unix:///disk?socket=/"), "{words}");
    let process = rustix::process::Pid::from_child(child.0.as_ref().unwrap());
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let ended = Ended::of(child.0.take().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.document()["counters"]["host_writes"], 0);
    assert!(!place.path("ssd.sock").exists() && !place.path("ssd.sock.control").exists());
}

#[test]
fn a_drive_that_is_attached_empty_says_what_its_reads_are_worth() {
    let place = Place::new();
    let attached = |more: &[&str]| {
        let at = ["attach", "samsung-960-evo", "--nbd", "unix:s", "--runtime", "50ms", "--time", "none"];
        place.run(&[&at[..], more].concat()).expect(0).stderr
    };
    let empty = attached(&[]);
    assert!(empty.contains("the drive is empty") && empty.contains("--precondition fill"), "{empty}");
    let full = attached(&["--precondition", "fill"]);
    assert!(!full.contains("the drive is empty"), "{full}");
}

#[test]
fn mistakes_are_told_before_anything_is_attached() {
    let place = Place::new();
    let nowhere = place.run(&["attach", "samsung-960-evo"]).expect(2).stderr;
    assert!(["--mount DIR", "--fuse DIR", "--nbd unix:PATH"].iter().all(|way| nowhere.contains(way)), "{nowhere}");
    place.write("mine.csv", "at_ns\n");
    let at = ["attach", "samsung-960-evo", "--nbd"];
    let told = |more: &[&str]| {
        let ended = place.run(&[&at[..], more].concat());
        assert!(!place.path("s").exists());
        (ended.code, ended.stderr.trim().to_owned())
    };
    let (code, words) = told(&["/tmp/s"]);
    assert!(code == 2 && words.contains("give unix:PATH"), "{words}");
    let (code, words) = told(&["unix:s", "--time", "none", "--time-scale", "10"]);
    assert!(code == 2 && words.contains("no effect with --time none"), "{words}");
    let (code, words) = told(&["unix:s", "--metrics", "0.0.0.0:9750"]);
    assert!(code == 5 && words.contains("other machines could read the metrics"), "{words}");
    let (code, words) = told(&["unix:s", "--metrics", "somewhere"]);
    assert!(code == 2 && words.contains("give PORT or ADDRESS:PORT"), "{words}");
    let (code, words) = told(&["unix:s", "--control", "mine.csv"]);
    assert!(code == 5 && words.contains("this is not a socket and is not replaced"), "{words}");
    let (code, words) = told(&["unix:s", "--time-scale", "0"]);
    assert!(code == 2 && words.contains("a time scale of 0 is not possible"), "{words}");
    let (code, words) = told(&["unix:s", "--capture", "mine.csv"]);
    assert!(code == 5 && words.contains("existing files are never written to"), "{words}");
    let (code, words) = told(&["unix:s", "--capture", "t.csv.gz"]);
    assert!(code == 2 && words.contains("a capture is written uncompressed"), "{words}");
    let (code, words) = told(&["unix:mine.csv"]);
    assert!(code == 5 && words.contains("this is not a socket and is not replaced"), "{words}");
    assert_eq!(place.read("mine.csv"), "at_ns\n");
}

/// A file system on the drive, made and mounted as root; what goes wrong in the middle is undone in the same way.
const ON_EXT4: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
mkdir on
undo() { umount on 2>/dev/null || true; losetup --detach "$loop" 2>/dev/null || true; }
loop=$(losetup --show --find --direct-io=on --sector-size 4096 "$FLASHWISE_DISK")
trap undo EXIT
mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 "$loop" 2g
mount -o noatime "$loop" on
dd if=in.img of=on/copy.img bs=64k conv=fsync status=none
umount on
mount -o noatime "$loop" on
cmp in.img on/copy.img
"#;

#[test]
fn a_file_system_on_the_drive_keeps_its_files_over_an_unmount() {
    let tools = ["losetup", "mkfs.ext4"].iter().all(|tool| {
        let found = ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|at| Path::new(at).join(tool).exists());
        if !found {
            eprintln!("{tool} is not installed: not tested");
        }
        found
    });
    let has_loops = || Command::new("losetup").arg("--find").output().is_ok_and(|found| found.status.success());
    if !tools || !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() || !has_loops() {
        eprintln!("it needs root, loop devices, and /dev/fuse for the file: not tested");
        return;
    }
    let place = Place::new();
    std::fs::create_dir(place.path("drive")).unwrap();
    std::fs::write(place.path("in.img"), (0_u32..1 << 19).flat_map(|n| (n * 7).to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
    let arguments =
        ["attach", "samsung-960-evo", "--fuse", "drive", "--time", "none", "--capture", "run.csv", "-o", "json"];
    let ended = place.run(&[&arguments[..], &["--", "sh", "-c", ON_EXT4]].concat());
    if ended.stderr.contains("it cannot be mounted") {
        return eprintln!("{}: not tested", ended.stderr);
    }
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let document = ended.document();
    let counters = &document["counters"];
    assert!(counters["host_bytes_written"].as_u64().unwrap() >= 2 << 20, "{document}");
    assert!(counters["host_bytes_read"].as_u64().unwrap() >= 2 << 20, "after the unmount it is read anew: {document}");
    assert!(counters["flushes"].as_u64().unwrap() > 0, "{document}");
    let captured = place.run(&["trace", "info", "run.csv", "-o", "json"]).expect(0).document();
    assert_eq!(captured["summary"]["bytes_read"], counters["host_bytes_read"]);
    assert_eq!(place.path("drive").read_dir().unwrap().count(), 0, "nothing is mounted any more");
}
