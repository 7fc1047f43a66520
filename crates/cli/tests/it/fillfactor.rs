//! `flashwise study fillfactor` as a user runs it: what it needs, what it tells, and that nothing stays behind.

use crate::studies::{as_nobody, complaint, is_root, rows};
use crate::support;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{Place, is_empty};

const STUDY: [&str; 3] = ["study", "fillfactor", "--quick"];

#[test]
fn without_a_server_one_line_names_the_package() {
    if !is_root() {
        return eprintln!("it needs root to hide the server: not tested");
    }
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("flashwise");
    // A mount that is this process's own hides what is installed.
    let script = "mkdir -p /usr/lib/postgresql && mount -t tmpfs none /usr/lib/postgresql && \
                  PATH=$1 exec \"$2\" study fillfactor --quick";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(place.path("")).arg(program);
    let line = complaint(&mut command);
    assert!(line.contains("install the package postgresql"), "{line}");
}

#[test]
fn who_may_not_mount_is_told_so_in_one_line() {
    let (_place, mut command) = as_nobody();
    let line = complaint(command.args(STUDY));
    let is_installed = Path::new("/usr/lib/postgresql").is_dir();
    assert!(line.contains("run it as root") || !is_installed, "{line}");
}

/// A cell of a table as a number: the value of a measured one.
fn number(cell: &Value) -> f64 {
    cell["value"].as_f64().or_else(|| cell.as_str()?.parse().ok()).unwrap_or_else(|| panic!("{cell}"))
}

#[test]
#[ignore = "minutes; part of make test-full"]
fn room_keeps_updates_on_their_page_and_costs_a_drive_that_compresses_next_to_nothing() {
    let place = Place::new();
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return eprintln!("it needs root, loop devices and /dev/fuse: not tested");
    }
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
    assert_eq!(document["claims"].as_array().unwrap().len(), 4);
    let space = rows(&document, &["drive", "fill factor", "logical", "%", "physical", "%", "ratio"]);
    let of = |drive: &str, fill: &str| {
        let row = space.iter().find(|row| row[0] == drive && row[1] == fill).unwrap();
        (number(&row[2]), number(&row[4]))
    };
    let [plain, compressing] = ["plain", "compressing"].map(|drive| (of(drive, "100"), of(drive, "75")));
    let growth = |(before, after): (f64, f64)| after / before;
    // A third of the tables, which are most of the database; both drives are addressed alike.
    assert!((1.18..=1.30).contains(&growth((plain.0.0, plain.1.0))), "{plain:?}");
    assert!((plain.0.0 / compressing.0.0 - 1.0).abs() < 0.02, "{plain:?} {compressing:?}");
    assert_eq!(plain.1.0, plain.1.1, "a plain drive stores what it is given");
    assert!((1.0..=1.08).contains(&growth((compressing.0.1, compressing.1.1))), "{compressing:?}");
    assert!(compressing.0.0 / compressing.0.1 > 3.5, "{compressing:?}");
    // Which updates stay is PostgreSQL's doing, on either drive, and so is what is logged.
    for row in rows(&document, &["drive", "fill factor", "a second", "gain, %", "on page, %"]) {
        let (fill, on_page) = (number(&row[1]), number(&row[4]));
        assert!(if fill > 99.0 { on_page < 90.0 } else { on_page > 97.0 }, "{row:?}");
        assert!(number(&row[2]) > 0.0);
    }
    let costs = rows(&document, &["drive", "fill factor", "ms", "log", "reads", "written", "flash", "again"]);
    for drive in ["plain", "compressing"] {
        let log = |fill: &str| number(&costs.iter().find(|row| row[0] == drive && row[1] == fill).unwrap()[3]);
        assert!(log("75") < 0.95 * log("100"), "{costs:?}");
    }
    let varied = rows(&document, &["", "logical", "physical"]);
    let size = |name: &str, at: usize| number(&varied.iter().find(|row| row[0] == name).unwrap()[at]);
    // pgbench's accounts, a third longer, with their index.
    assert!((1.15..=1.34).contains(&size("pgbench", 1)), "{varied:?}");
    assert!(size("pgbench, compressing", 2) < 1.15, "{varied:?}");
    assert_eq!(mounted(), 0);
    assert!(is_empty(&temporary));
}
