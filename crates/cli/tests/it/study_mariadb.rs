//! `flashwise study mariadb` as a user runs it: what it needs, what it tells, and that nothing stays behind; and a file
//! system that begins behind the drive's start.

use crate::mounted;
use crate::studies::{as_nobody, complaint, is_root, rows};
use crate::support;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use mounted::{ATTACH, assert_nothing_left, place, turn};
use serde_json::Value;
use support::{Place, is_empty};

const STUDY: [&str; 3] = ["study", "mariadb", "--quick"];

fn is_installed() -> bool {
    ["/usr/sbin", "/usr/bin"].iter().any(|place| Path::new(place).join("mariadbd").is_file())
}

#[test]
fn without_a_server_one_line_names_the_package() {
    if !is_root() {
        return eprintln!("it needs root to hide the server: not tested");
    }
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("flashwise");
    // A mount that is this process's own hides administrators' programs, where the server is, wherever it is looked
    // for.
    let script = "mount -t tmpfs none /usr/sbin && PATH=$1 exec \"$2\" study mariadb --quick";
    let mut command = Command::new("unshare");
    command.args(["--mount", "/bin/sh", "-c", script, "sh"]).arg(place.path("")).arg(program);
    let line = complaint(&mut command);
    assert!(line.contains("install the package mariadb-server-core"), "{line}");
    assert!(!line.contains("--programs"), "the study has no such option: {line}");
}

#[test]
fn who_may_not_mount_is_told_so_in_one_line() {
    let (_place, mut command) = as_nobody();
    let line = complaint(command.args(STUDY));
    assert!(line.contains("run it as root") || !is_installed(), "{line}");
}

/// Writes a mark into a file, and finds it on the drive by the file's extents.
const USE: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
echo $PPID > process
head -c 65536 /dev/zero | tr '\0' 'x' > "$FLASHWISE_MOUNT/marked"
sync -f "$FLASHWISE_MOUNT/marked"
cat "/sys/block/$(basename "$FLASHWISE_DEVICE")/loop/offset" > offset
filefrag -e -b512 "$FLASHWISE_MOUNT/marked" > extents
blockdev --getsize64 "$FLASHWISE_DEVICE" > size
"#;

#[test]
fn a_file_system_begins_where_it_is_told_to() {
    let Some(_turn) = turn(&["mkfs.ext4", "filefrag"]) else { return };
    let place = place();
    let more = ["--offset", "32k", "--time", "none", "--capture", "run.csv", "-o", "json", "--", "sh", "-c", USE];
    place.run(&[&ATTACH[..], &more].concat()).expect(0);
    assert_eq!(place.read("offset").trim(), "32768");
    let capacity = 500_107_862_016_u64;
    assert_eq!(place.read("size").trim().parse::<u64>().unwrap(), capacity - 32_768);
    // The drive is sent the file's bytes 32 KiB behind where the file system has them.
    let extents = place.read("extents");
    let line = extents.lines().find(|line| line.trim_start().starts_with("0:")).unwrap();
    let physical: u64 = line.split(':').nth(2).unwrap().split("..").next().unwrap().trim().parse().unwrap();
    let expected = physical * 512 + 32_768;
    let trace = place.read("run.csv");
    let mut lines = trace.lines();
    let header: Vec<&str> = lines.by_ref().find(|line| line.contains("offset")).unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|column| column.contains(name)).unwrap();
    let (operation, offset, length) = (column("op"), column("offset"), column("length"));
    let writes = lines.map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[operation].starts_with('w'));
    let number = |text: &str| text.parse::<u64>().unwrap();
    let mut spans = writes.map(|row| (number(row[offset]), number(row[length])));
    assert!(spans.any(|(at, length)| (at..at + length).contains(&expected)), "{expected}: {trace}");
    assert_nothing_left(&place, place.read("process").trim().parse().unwrap());
}

#[test]
fn an_offset_that_is_no_place_on_the_drive_is_refused() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    let place = place();
    for wrong in ["100", "1t"] {
        let ended = place.run(&[&ATTACH[..], &["--offset", wrong, "--", "true"]].concat());
        assert_ne!(ended.code, 0);
        assert!(ended.stderr.contains("an offset of"), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
}

/// A cell of a table as a number: the value of a measured one.
fn number(cell: &Value) -> f64 {
    let of_text = || cell.as_str()?.replace('−', "-").replace(',', "").parse().ok();
    cell["value"].as_f64().or_else(of_text).unwrap_or_else(|| panic!("{cell}"))
}

#[test]
#[ignore = "minutes; part of make test-full"]
fn pages_are_hot_where_they_are_written_in_halves_and_padding_saves_what_lengths_say() {
    let Some(_turn) = turn(&["mkfs.ext4"]) else { return };
    if !is_installed() {
        return eprintln!("mariadbd is not installed: not tested");
    }
    let place = Place::new();
    let mounted = || std::fs::read_to_string("/proc/self/mountinfo").unwrap().matches("flashwise-study").count();
    // The server's user has to come through.
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    [place.path(""), temporary.clone()]
        .iter()
        .for_each(|path| std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap());
    let mut command = place.command(&[&STUDY[..], &["-o", "json"]].concat());
    let ended = command.env("TMPDIR", &temporary).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(document["claims"].as_array().unwrap().len(), 3);

    let places = rows(&document, &["variant", "page", "offset", "at hot locations", "extents"]);
    let hot_share = |name: &str| {
        let row = places.iter().find(|row| row[0] == name).unwrap();
        let (hot, of) = row[3].as_str().unwrap().split_once(" of ").unwrap();
        let all = of.split(", ").next().unwrap();
        number(&Value::from(hot)) / number(&Value::from(all))
    };
    assert!(hot_share("64 KiB pages") < 0.1 && hot_share("placed") > 0.9, "{places:?}");

    let columns = ["variant", "pages", "µs", "a second", "gain", "processor", "gain", "seen"];
    let selects = rows(&document, &columns);
    let gain = |name: &str| number(&selects.iter().find(|row| row[0] == name).unwrap()[4]);
    // A page in two halves is on two channels; one in one piece is not, wherever it lies.
    assert!((35.0..=75.0).contains(&gain("placed, split writes")), "{selects:?}");
    assert!((35.0..=75.0).contains(&gain("split writes")), "{selects:?}");
    assert!(gain("placed").abs() < 10.0, "{selects:?}");

    let columns = ["setting", "bytes", "in the trace", "plain", "padded", "saved, %", "longer, %"];
    for row in rows(&document, &columns) {
        let (bytes, plain, saved) = (number(&row[1]), number(&row[3]), number(&row[5]));
        assert!((plain - (1.0 + bytes / 4096.0)).abs() < 0.03, "{row:?}");
        assert!((saved - 100.0 * (1.0 / plain - 1.0)).abs() < 0.5, "{row:?}");
        let (traced, predicted) = row[2].as_str().unwrap().split_once(" of ").unwrap();
        let [traced, predicted] = [traced, predicted].map(|text| number(&Value::from(text)));
        assert!((traced / predicted - 1.0).abs() < 0.02, "{row:?}");
    }
    assert_eq!(mounted(), 0);
    assert!(is_empty(&temporary));
}
