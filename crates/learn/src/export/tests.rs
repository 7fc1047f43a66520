use std::collections::BTreeMap;
use std::process::Command;

use flashwise_block::Clock;
use flashwise_profile::{DeviceIdentity, Limits, Parameters, Recipe, SCHEMA, SCHEMA_VERSION};

use super::*;

fn profile(name: &str, limits: Limits) -> DeviceProfile {
    DeviceProfile {
        schema: SCHEMA.into(),
        schema_version: SCHEMA_VERSION,
        flashwise_version: "0".into(),
        device: DeviceIdentity {
            target: "/data/my \"disk\"".into(),
            name: name.into(),
            capacity_bytes: 1 << 30,
            logical_block_bytes: 512,
            clock: Clock::Wall,
            promised_atomic_write_bytes: None,
        },
        recipe: Recipe {
            seed: 1,
            region_bytes: 0,
            bytes_written: 0,
            bytes_read: 0,
            device_time_ns: 0,
            probes: Vec::new(),
        },
        parameters: Parameters::default(),
        limits,
        card: Default::default(),
        wear: Default::default(),
        at_sizes: Vec::new(),
        evidence: Vec::new(),
        curves: Default::default(),
    }
}

fn certain(value: u64) -> Figure<u64> {
    Figure::certain(value, value, value)
}

/// gp3 as it is without further payment: 3,000 IOPS and 125 MiB/s.
fn gp3() -> Limits {
    let (iops, bandwidth) = (certain(3000), certain(125 << 20));
    Limits {
        read_iops_limit: iops,
        write_iops_limit: iops,
        read_bandwidth_limit: bandwidth,
        write_bandwidth_limit: bandwidth,
        ..Limits::default()
    }
}

/// Seastar's reader: a mapping of `disks` to a list of mappings, comments apart; keys and numbers as it takes them.
fn seastar(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("disks:"));
    let mount = lines.next().and_then(|line| line.strip_prefix("  - mountpoint: ")).unwrap();
    assert!(serde_json::from_str::<String>(mount).is_ok(), "a double-quoted scalar: {mount}");
    let pair = |line: &str| {
        let (key, value) = line.strip_prefix("    ").unwrap().split_once(": ").unwrap();
        let (digits, suffix) = value.split_at(value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len()));
        assert!(["", "k", "M", "G", "T"].contains(&suffix), "parse_memory_size: {value}");
        (key.to_owned(), digits.parse().unwrap())
    };
    lines.map(pair).collect()
}

/// The kernel's reader: tokens between spaces, tabs and newlines, each of a table; `%u` is a whole number of 64 bits,
/// a percentage has at most two decimals and is at most 10,000.
fn kernel(text: &str, words: &[(&str, &str)], numbers: &[&str], percentages: &[&str]) -> BTreeMap<String, String> {
    let token = |token: &str| {
        let (key, value) = token.split_once('=').unwrap();
        match () {
            () if numbers.contains(&key) => assert!(value.parse::<u64>().is_ok(), "{token}"),
            () if percentages.contains(&key) => {
                let (whole, decimals) = value.split_once('.').unwrap_or((value, ""));
                assert!(whole.parse::<u64>().is_ok_and(|whole| whole <= 10_000) && decimals.len() <= 2, "{token}");
            }
            () => assert!(words.contains(&(key, value)), "-EINVAL: {token}"),
        }
        (key.to_owned(), value.to_owned())
    };
    text.split([' ', '\t', '\n']).filter(|part| !part.is_empty()).map(token).collect()
}

const MODEL: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

/// systemd's reader (`hwdb(7)`): comments, then records of match lines and of indented `KEY=VALUE`, ended by an empty
/// line; a `#` anywhere starts a comment.
fn hwdb(text: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let (mut matches, mut properties) = (Vec::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(!line.contains('#'), "cut at the comment: {line}");
        match line.strip_prefix(' ') {
            None => {
                assert!(properties.is_empty(), "a match line inside of a record: {line}");
                matches.push(line.to_owned());
            }
            Some(property) => {
                let (key, value) = property.trim().split_once('=').unwrap();
                properties.insert(key.to_owned(), value.to_owned());
            }
        }
    }
    (matches, properties)
}

#[test]
fn seastar_reads_the_four_figures() {
    let files = seastar_files(&profile("disk", gp3())).unwrap();
    assert_eq!(files[0].name, "io-properties.yaml");
    let read = seastar(&files[0].text);
    let expected =
        [("read_iops", 3000), ("read_bandwidth", 125 << 20), ("write_iops", 3000), ("write_bandwidth", 125 << 20)];
    assert_eq!(read, expected.map(|(key, value)| (key.to_owned(), value)).into());
    assert!(files[0].text.contains(r#"mountpoint: "/data/my \"disk\"""#), "{}", files[0].text);
}

#[test]
fn the_kernel_reads_model_and_qos() {
    let files = iocost_files(&profile("/dev/nvme1n1", gp3())).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.name).collect();
    assert_eq!(names, ["io.cost.model", "io.cost.qos"], "no hwdb without a model of the drive");
    let model = kernel(&files[0].text, &[("ctrl", "user"), ("model", "linear")], &MODEL, &[]);
    let values: Vec<&str> = MODEL.iter().map(|&key| &*model[key]).collect();
    assert_eq!(values, ["131072000", "3000", "3000", "131072000", "3000", "3000"]);
    let percentages = ["rpct", "wpct", "min", "max"];
    let qos = kernel(&files[1].text, &[("ctrl", "user")], &["enable", "rlat", "wlat"], &percentages);
    assert_eq!((&*qos["enable"], &*qos["min"], &*qos["max"]), ("1", "100.00", "100.00"));
    let holds = Limits { throttle_hold_ns: certain(3_000_000), ..gp3() };
    let qos = &iocost_files(&profile("disk", holds)).unwrap()[1].text;
    assert!(qos.contains("min=95.00 max=95.00"), "{qos}");
}

#[test]
fn systemd_reads_the_hwdb() {
    let files = iocost_files(&profile("Amazon Elastic*Block #1", gp3())).unwrap();
    let text = &files.iter().find(|file| file.name.ends_with(".hwdb")).unwrap().text;
    let (matches, properties) = hwdb(text);
    assert_eq!(matches, ["block:*:name:Amazon?Elastic?Block??1:*"]);
    for solution in properties["IOCOST_SOLUTIONS"].split(' ') {
        let name = solution.to_ascii_uppercase().replace('-', "_");
        kernel(&properties[&format!("IOCOST_MODEL_{name}")], &[], &MODEL, &[]);
        kernel(&properties[&format!("IOCOST_QOS_{name}")], &[], &["rlat", "wlat"], &["rpct", "wpct", "min", "max"]);
    }
    // And the program itself, where it is installed.
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/udev/hwdb.d");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("90-iocost-tune.hwdb"), text).unwrap();
    match Command::new("systemd-hwdb").args(["update", "--strict", "--root"]).arg(root.path()).output() {
        Err(why) => eprintln!("SKIPPED, no systemd-hwdb here: {why}"),
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "{errors}");
            assert!(root.path().join("etc/udev/hwdb.bin").exists());
        }
    }
}

#[test]
fn what_reads_and_writes_share_is_exported_as_what_each_gets_alone() {
    let limits = Limits {
        shared_iops_limit: certain(366_000),
        shared_write_cost: Figure::certain(2.0, 2.0, 2.0),
        shared_write_cost_per_mib: Figure::certain(512.0, 512.0, 512.0),
        read_bandwidth_limit: certain(1 << 30),
        ..Limits::default()
    };
    let (read_iops, write_iops) = (366_000, 183_000);
    let (read_bandwidth, write_bandwidth) = (1 << 30, 366_000 * 2048);
    let expected = DriveLimits { read_iops, read_bandwidth, write_iops, write_bandwidth };
    assert_eq!(DriveLimits::of_profile(&profile("disk", limits)), Ok(expected));
}

#[test]
fn a_figure_that_is_not_certain_is_named_and_nothing_is_exported() {
    let limits = Limits {
        read_iops_limit: Figure::inconclusive(3000, 0, 3000),
        write_iops_limit: Figure::absent(),
        write_bandwidth_limit: Figure::unknown(),
        ..gp3()
    };
    let refused = seastar_files(&profile("disk", limits)).unwrap_err();
    assert_eq!(
        refused.0,
        [
            "read_iops_limit is inconclusive",
            "write_iops_limit is absent: the drive itself is the limit",
            "write_bandwidth_limit was not learned",
        ]
    );
    assert!(refused.to_string().contains("nothing is exported: read_iops_limit"), "{refused}");
}
