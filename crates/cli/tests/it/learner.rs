//! What `learn` leaves: samples, job files that fio takes, and a profile that survives Ctrl-C and a full disk.

use crate::loops;
use crate::support;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use flashwise_profile::{DeviceProfile, Verdict};
use loops::{LoopDevice, Mounted, run};
use rustix::process::{Pid, Signal, kill_process};
use support::Place;

/// A drive of 96 MiB, learned in a moment.
fn small_drive(place: &Place) {
    let preset = include_str!("../../../../devices/micron-m500.toml");
    let small = preset
        .replace("capacity_bytes = 120_034_123_776", "capacity_bytes = 100_663_296")
        .replace("blocks_per_plane = 4096", "blocks_per_plane = 32")
        .replace("pages_per_block = 512", "pages_per_block = 64");
    assert!(small.contains("100_663_296") && small.contains("= 32 ") && small.contains("= 64 "));
    place.write("small.toml", &small);
}

const LEARN: [&str; 3] = ["learn", "sim:small.toml", "--quick"];

fn profile(place: &Place, name: &str) -> DeviceProfile {
    DeviceProfile::from_toml(&place.read(name), name).unwrap()
}

/// Learning ends with 0, or with 4 where a figure is inconclusive.
fn learned(place: &Place, arguments: &[&str]) {
    let ended = place.run(&[&LEARN[..], arguments].concat());
    assert!([0, 4].contains(&ended.code), "{}: {}", ended.code, ended.stderr);
}

// ---- through a file -------------------------------------------------------------------------------------------------

/// The score of a simulated drive that is learned through a file of its file system.
fn scored(place: &Place, target: &str, file_system: &str) -> serde_json::Value {
    let arguments = ["learn", target, "--file-system", file_system, "--quick", "--score", "-o", "json"];
    let ended = place.run(&arguments);
    assert!([0, 4].contains(&ended.code), "{}: {}", ended.code, ended.stderr);
    ended.document()["score"].clone()
}

/// The file begins within a chunk of the drive, and the kernel cuts requests that are too long for it.
#[test]
fn through_a_file_the_layout_of_the_drive_below_is_found() {
    let place = Place::new();
    small_drive(&place);
    let larger = place
        .read("small.toml")
        .replace("100_663_296", "201_326_592")
        .replace("blocks_per_plane = 32", "blocks_per_plane = 64");
    place.write("larger.toml", &larger);
    let score = scored(&place, "sim:larger.toml", "ext4");
    let figures = score["figures"].as_array().unwrap();
    for name in ["write_unit_bytes", "chunk_bytes", "hot_location", "page_bytes"] {
        let figure = figures.iter().find(|figure| figure["figure"] == name).unwrap();
        assert!(figure["correct"] == true && figure["verdict"] == "certain", "{figure}");
    }
}

#[test]
#[ignore = "two minutes: make test-full runs it"]
fn through_a_file_each_figure_of_a_published_drive_that_is_certain_is_right() {
    let place = Place::new();
    for file_system in ["ext4", "xfs"] {
        let score = scored(&place, "sim:samsung-960-evo", file_system);
        assert!(score["settled"].as_u64() >= Some(20), "{score}");
        assert_eq!(score["settled"], score["settled_correct"], "{file_system}: {score}");
    }
}

// ---- samples --------------------------------------------------------------------------------------------------------

/// The tables in `raw`, each with its rows.
fn tables(place: &Place) -> Vec<(String, Vec<(f64, f64)>)> {
    let entries = std::fs::read_dir(place.path("raw")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".flashwise.json");
    names.sort();
    names.into_iter().map(|name| (name.clone(), rows(&place.read(&format!("raw/{name}")), &name))).collect()
}

fn rows(table: &str, name: &str) -> Vec<(f64, f64)> {
    let row = |line: &str| {
        let (varied, measured) = line.split_once(',').unwrap_or_else(|| panic!("{name}: {line}"));
        (varied.parse().unwrap(), measured.parse().unwrap())
    };
    table.strip_prefix("varied,measured\n").unwrap_or_else(|| panic!("{name}")).lines().map(row).collect()
}

#[test]
fn raw_keeps_every_sample_in_a_table_for_each_probe() {
    let place = Place::new();
    small_drive(&place);
    learned(&place, &["--raw", "raw"]);
    let first = tables(&place);
    assert!(first.len() >= 6, "{:?}", first.iter().map(|table| &table.0).collect::<Vec<_>>());
    for (name, rows) in &first {
        assert!(name.ends_with(".csv") && !name.contains(' '), "{name}");
        assert!(rows.len() > 1, "{name} has {} rows", rows.len());
        assert!(rows.iter().all(|(varied, measured)| varied.is_finite() && *measured >= 0.0), "{name}");
    }
    learned(&place, &["--raw", "raw"]);
    assert_eq!(tables(&place), first, "the same seed takes the same samples, and replaces the tables");
}

#[test]
fn raw_replaces_no_file_of_anybody_else() {
    let place = Place::new();
    small_drive(&place);
    learned(&place, &["--raw", "raw"]);
    let (name, _) = tables(&place).remove(0);
    place.write(&format!("raw/{name}"), "precious\n");
    let ended = place.run(&[&LEARN[..], &["--raw", "raw"]].concat()).expect(5);
    assert!(ended.stderr.contains(&name) && ended.stderr.contains("it is not replaced"), "{}", ended.stderr);
    assert_eq!(place.read(&format!("raw/{name}")), "precious\n");
}

#[test]
fn raw_is_not_mixed_with_files_of_anybody_else() {
    let place = Place::new();
    small_drive(&place);
    std::fs::create_dir(place.path("raw")).unwrap();
    place.write("raw/reads.csv", "varied,measured\n1,1\n");
    let ended = place.run(&[&LEARN[..], &["--raw", "raw"]].concat()).expect(5);
    assert!(ended.stderr.contains("raw: reads.csv: exists") && !ended.stderr.contains("learning"), "{}", ended.stderr);
    assert_eq!(tables(&place), [("reads.csv".to_owned(), vec![(1.0, 1.0)])]);
}

// ---- fio ------------------------------------------------------------------------------------------------------------

/// The job files for a directory on a disk; `None`, said aloud, where there is no fio.
fn exported(place: &Place) -> Option<Vec<String>> {
    if let Err(why) = run("fio", &[&"--version"]) {
        eprintln!("SKIPPED, no fio here: {why}");
        return None;
    }
    std::fs::create_dir(place.path("target")).unwrap();
    let target = place.path("target");
    let document =
        place.run(&["learn", target.to_str().unwrap(), "--export", "fio", "jobs", "-o", "json"]).expect(0).document();
    assert_eq!(document["schema"], "flashwise.export");
    let files: Vec<String> =
        document["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap().to_owned()).collect();
    assert!(support::is_empty(&target), "nothing is learned, and nothing written to the target");
    Some(files)
}

#[test]
fn fio_accepts_every_job_file() {
    let place = Place::new();
    let Some(files) = exported(&place) else { return };
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        run("fio", &[&"--parse-only", &place.path(&file)]).unwrap_or_else(|why| panic!("{file}: {why}"));
    }
}

#[test]
fn fio_runs_the_jobs_and_tells_a_latency_for_each() {
    let place = Place::new();
    let Some(files) = exported(&place) else { return };
    let file = files.iter().find(|file| file.contains("durable-writes")).unwrap();
    let small = place.read(file).replace("size=268435456", "size=16777216");
    assert!(small.contains("size=16777216"), "the region is there to be made smaller: {small}");
    // The temporary directory may be in memory, where there is no direct I/O; the target directory of the build is not.
    let scratch = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place_of_file = scratch.path().join("file");
    let ours = place.path("target").join("flashwise-fio");
    let small = small.replace(ours.to_str().unwrap(), place_of_file.to_str().unwrap());
    assert!(small.contains(place_of_file.to_str().unwrap()), "{small}");
    place.write("small.fio", &small);
    let told = run("fio", &[&"--output-format=json", &place.path("small.fio")]);
    let told = match told {
        Err(why) if why.contains("libaio") || why.contains("O_DIRECT") || why.contains("Invalid argument") => {
            return eprintln!("SKIPPED, no direct I/O here: {why}");
        }
        told => told.unwrap(),
    };
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let jobs = told["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), small.matches("\n[write-").count());
    for job in jobs {
        assert_eq!((&job["error"], &job["write"]["total_ios"]), (&0.into(), &60.into()), "{}", job["jobname"]);
        assert!(job["write"]["clat_ns"]["percentile"]["50.000000"].as_f64().unwrap() > 0.0, "{}", job["jobname"]);
    }
}

#[test]
fn an_export_names_its_format_and_replaces_nothing_of_anybody_else() {
    let place = Place::new();
    let line = place.fails(2, &["learn", "--export", "vdbench", "jobs"]);
    assert!(line.contains("vdbench") && line.contains("fio"), "{line}");
    std::fs::create_dir(place.path("jobs")).unwrap();
    place.write("jobs/1-durable-writes.fio", "[mine]\n");
    let line = place.fails(5, &["learn", "--export", "fio", "jobs"]);
    assert!(line.contains("1-durable-writes.fio") && line.contains("it is not replaced"), "{line}");
    assert_eq!(place.read("jobs/1-durable-writes.fio"), "[mine]\n");
}

#[test]
fn limits_are_exported_from_a_profile_and_what_is_not_certain_is_named() {
    let place = Place::new();
    let line = |key: &str, verdict: &str| {
        format!("{key} = {{ value = 3000, low = 3000, high = 3000, verdict = \"{verdict}\" }}\n")
    };
    let keys = ["read_iops_limit", "write_iops_limit", "read_bandwidth_limit", "write_bandwidth_limit"];
    let write = |name: &str, verdict: &str| {
        let limits: String =
            keys.iter().map(|key| line(key, if *key == keys[3] { verdict } else { "certain" })).collect();
        place.write(name, &format!("{PROFILE}\n[limits]\n{limits}"));
    };
    write("certain.toml", "certain");
    write("doubtful.toml", "inconclusive");
    let export = |profile: &str, format: &str| place.run(&["learn", "--resume", profile, "--export", format, "limits"]);
    let ended = export("doubtful.toml", "seastar").expect(4);
    assert!(ended.stderr.contains("write_bandwidth_limit is inconclusive"), "{}", ended.stderr);
    assert!(!place.path("limits").exists() || support::is_empty(&place.path("limits")));
    export("certain.toml", "seastar").expect(0);
    assert!(place.read("limits/io-properties.yaml").contains("\n    write_bandwidth: 3000\n"));
    place.run(&["learn", "--resume", "certain.toml", "--export", "iocost", "cost"]).expect(0);
    assert!(place.read("cost/io.cost.model").starts_with("ctrl=user model=linear rbps=3000 "));
}

/// A profile without figures.
const PROFILE: &str = "\
schema = \"flashwise.profile\"
schema_version = 1
flashwise_version = \"0\"
[device]
target = \"/data\"
name = \"/data\"
capacity_bytes = 1073741824
logical_block_bytes = 512
clock = \"wall\"
[recipe]
seed = 1
region_bytes = 0
bytes_written = 0
bytes_read = 0
device_time_ns = 0
[parameters]
";

// ---- Ctrl-C ---------------------------------------------------------------------------------------------------------

/// Waits until something is so; whether it was before the program ended.
fn until(child: &mut Child, so: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(300) {
        if so() {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing happened for five minutes");
}

#[test]
fn ctrl_c_keeps_the_profile_of_the_probes_that_were_finished_and_learning_goes_on_from_it() {
    let place = Place::new();
    small_drive(&place);
    // Not the quick one: it must still be at work when it is stopped.
    let arguments = ["learn", "sim:small.toml", "--thorough", "--profile", "p.toml"];
    let mut child = place.command(&arguments).spawn().unwrap();
    let has_probes = || std::fs::read_to_string(place.path("p.toml")).is_ok_and(|text| text.contains("probes = ["));
    assert!(until(&mut child, has_probes), "it ended before its profile was seen");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = support::Ended::of(child);
    assert_eq!((ended.code, &*ended.stdout), (130, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted"), "{}", ended.stderr);
    assert_eq!(place.names(), ["p.toml", "small.toml"], "and no file under another name");

    let partial = profile(&place, "p.toml");
    assert!(!partial.recipe.probes.is_empty());
    learned(&place, &["--resume", "p.toml", "--profile", "p.toml"]);
    let whole = profile(&place, "p.toml");
    assert!(whole.recipe.probes.len() > partial.recipe.probes.len());
    assert!(whole.recipe.probes.starts_with(&partial.recipe.probes), "{:?}", whole.recipe.probes);
    assert!(whole.recipe.bytes_written > partial.recipe.bytes_written);
    for entry in partial.parameters.entries() {
        let then = whole.parameters.entries().into_iter().find(|then| then.key == entry.key).unwrap();
        let is_kept = entry.figure.verdict != Verdict::Certain || then.figure.value == entry.figure.value;
        assert!(is_kept, "{entry:?} became {then:?}");
    }
}

#[test]
fn a_run_that_comes_to_nothing_takes_the_place_of_no_earlier_profile() {
    let place = Place::new();
    small_drive(&place);
    learned(&place, &["--profile", "p.toml", "--html", "p.html"]);
    let before = (place.read("p.toml"), place.read("p.html"));
    let line =
        place.fails(1, &[&LEARN[..], &["--profile", "p.toml", "--html", "p.html", "--max-write", "1m"]].concat());
    assert!(line.contains("--max-write 1 MiB"), "{line}");
    assert!((place.read("p.toml"), place.read("p.html")) == before);
}

#[test]
fn a_profile_of_another_drive_is_not_gone_on_from() {
    let place = Place::with_profile();
    small_drive(&place);
    let before = place.read("p.toml");
    let line = place.fails(1, &[&LEARN[..], &["--resume", "p.toml", "--profile", "p.toml"]].concat());
    assert!(line.contains("cannot continue from this profile") && line.contains("Samsung"), "{line}");
    assert_eq!(place.read("p.toml"), before);
}

// ---- a full disk ----------------------------------------------------------------------------------------------------

/// Something mounted; unmounted at the end.
struct Memory(std::path::PathBuf);

impl Memory {
    /// A file system of so many KiB in memory, or `None`, said aloud.
    fn new(place: &Path, kib: u64) -> Option<Self> {
        std::fs::create_dir(place).unwrap();
        let size = format!("size={kib}k");
        match run("mount", &[&"-t", &"tmpfs", &"-o", &size, &"none", &place]) {
            Ok(_) => Some(Self(place.to_owned())),
            Err(why) => {
                eprintln!("SKIPPED, nothing can be mounted here: {why}");
                None
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.0]);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_profile_for_which_there_is_no_room_leaves_the_earlier_one_and_says_so() {
    let place = Place::new();
    small_drive(&place);
    let Some(_full) = Memory::new(&place.path("full"), 1024) else { return };
    learned(&place, &["--profile", "full/p.toml"]);
    let before = place.read("full/p.toml");
    // Whole pages: what is left holds nothing.
    let mut filler = std::fs::File::create(place.path("full/filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    drop(filler);
    let line = place.fails(1, &[&LEARN[..], &["--seed", "2", "--profile", "full/p.toml"]].concat());
    assert!(line.contains("full/p.toml: No space left on device"), "{line}");
    assert_eq!(place.read("full/p.toml"), before);
    assert_eq!(names(&place.path("full")), ["filler", "p.toml"]);
}

/// Bytes that are free where this is.
fn free(directory: &Path) -> u64 {
    let told = Command::new("stat").args(["--file-system", "--format=%a %S"]).arg(directory).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    told.split_whitespace().map(|word| word.parse::<u64>().unwrap()).product()
}

#[test]
fn a_directory_without_room_for_a_scratch_file_is_refused_and_stays_as_it_was() {
    let place = Place::new();
    let Some(device) = LoopDevice::new(&place.path("image"), 320) else { return };
    let mounted =
        run("mkfs.ext4", &[&"-q", &device.path()]).and_then(|_| Mounted::new(device.path(), &place.path("mnt")));
    let _mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    let line = place.fails(5, &["learn", "mnt"]);
    assert!(line.contains("mnt") && line.contains("free"), "{line}");
    assert_eq!(names(&place.path("mnt")), ["lost+found"]);
}

#[test]
fn a_disk_that_becomes_full_keeps_the_earlier_profile_and_no_scratch_file() {
    let place = Place::new();
    let Some(device) = LoopDevice::new(&place.path("image"), 1024) else { return };
    let mounted =
        run("mkfs.ext4", &[&"-q", &device.path()]).and_then(|_| Mounted::new(device.path(), &place.path("mnt")));
    let _mounted = match mounted {
        Ok(mounted) => mounted,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    small_drive(&place);
    learned(&place, &["--profile", "mnt/p.toml"]);
    let (before, room) = (place.read("mnt/p.toml"), free(&place.path("mnt")));
    let arguments = ["learn", "mnt", "--seed", "2", "--time-budget", "20s", "--profile", "mnt/p.toml"];
    let mut child = place.command(&arguments).spawn().unwrap();
    let has_scratch_file = || free(&place.path("mnt")) + (64 << 20) <= room;
    assert!(until(&mut child, has_scratch_file), "{:?}", child.wait_with_output());
    let _ = run("fallocate", &[&"--length", &free(&place.path("mnt")).to_string(), &place.path("mnt/filler")]);
    let mut filler = std::fs::OpenOptions::new().create(true).append(true).open(place.path("mnt/filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[1; 4096]).is_ok() {}
    let ended = support::Ended::of(child);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    if ended.stderr.contains("--time-budget") {
        return eprintln!("SKIPPED, this machine is too slow for one probe in 20 s: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("mnt/p.toml: No space left on device"), "{}", ended.stderr);
    assert_eq!(place.read("mnt/p.toml"), before);
    assert_eq!(names(&place.path("mnt")), ["filler", "lost+found", "p.toml"]);
    drop(filler);
    std::fs::remove_file(place.path("mnt/filler")).unwrap();
    assert!(free(&place.path("mnt")) + (1 << 20) >= room, "what the scratch file held is free again");
}

// ---- changes of a drive ---------------------------------------------------------------------------------------------

/// What `--compare` says of the small drive, learned with other random choices than the profile.
fn drift(place: &Place, code: i32) -> serde_json::Value {
    let compare = ["--seed", "2", "--compare", "then.toml", "-o", "json"];
    place.run(&[&LEARN[..], &compare].concat()).expect(code).document()["drift"].clone()
}

#[test]
fn a_drive_that_has_changed_is_reported_and_one_that_has_not_is_not() {
    let place = Place::new();
    small_drive(&place);
    learned(&place, &["--profile", "then.toml"]);
    let same = drift(&place, 0);
    assert!(same["compared"].as_u64() > Some(15) && same["changed"] == serde_json::json!([]), "{same}");

    let slower = place.read("small.toml").replace("program_ns = 450_000 ", "program_ns = 900_000 ");
    place.write("small.toml", &slower);
    let changed = drift(&place, 3);
    let changed: Vec<&str> =
        changed["changed"].as_array().unwrap().iter().map(|changed| changed["figure"].as_str().unwrap()).collect();
    assert!(changed.contains(&"sustained_write_bytes_per_s") && changed.contains(&"flush_ns"), "{changed:?}");
    assert!(!changed.contains(&"chunk_bytes") && !changed.contains(&"page_bytes"), "{changed:?}");

    let text = place.run(&[&LEARN[..], &["--compare", "then.toml"]].concat()).expect(3).stdout;
    assert!(text.contains(" have changed since then.toml beyond their intervals."), "{text}");
}

#[test]
fn the_profile_of_another_drive_is_not_compared() {
    let place = Place::new();
    small_drive(&place);
    learned(&place, &["--profile", "then.toml"]);
    let line = place.fails(2, &["learn", "sim:samsung-960-evo", "--quick", "--compare", "then.toml"]);
    assert!(line.contains("the profile is of Micron M500 120GB, but the target is Samsung SSD 960 EVO"), "{line}");
}

// ---- limits of volumes ----------------------------------------------------------------------------------------------

#[test]
fn a_volume_is_learned_for_its_limits_and_a_burst_is_not_what_it_grants_for_long() {
    let place = Place::new();
    let learn = ["learn", "sim:gp2", "--time-budget", "3h", "--score", "--profile", "gp2.toml", "-o", "json"];
    let document = place.run(&learn).expect(4).document();
    let (limits, score) = (&document["limits"], &document["score"]);
    let certain = |key: &str, least: u64, most: u64| {
        let figure = &limits[key];
        let value = figure["value"].as_u64().unwrap_or_default();
        assert!(figure["verdict"] == "certain" && (least..=most).contains(&value), "{key}: {figure}");
    };
    certain("read_iops_limit", 298, 302);
    certain("write_iops_limit", 298, 302);
    certain("read_iops_burst", 2950, 3050);
    certain("request_unit_bytes", 256 << 10, 256 << 10);
    assert_eq!(score["settled_correct"], score["settled"], "{score}");
    // What was learned is enough for those who schedule by it.
    place.run(&["learn", "sim:gp2", "--resume", "gp2.toml", "--export", "seastar", "files"]).expect(0);
    assert!(place.read("files/io-properties.yaml").contains("read_iops: 300\n"));
}

#[test]
fn a_rate_that_did_not_change_is_no_limit_that_is_certain_and_is_not_exported() {
    let place = Place::new();
    let text = place.run(&["learn", "sim:gp3"]).expect(4).stdout;
    assert!(text.contains("Reads and writes together get 3,000 requests/s and 125 MiB/s"), "{text}");
    assert!(text.contains("read IOPS            ≈ 3,000/s") && text.contains("credits unseen, spent"), "{text}");
    let line = place.fails(4, &["learn", "sim:gp3", "--export", "iocost", "files"]);
    assert!(line.contains("read_iops_limit is inconclusive") && line.contains("--limits --time-budget 3h"), "{line}");
}
