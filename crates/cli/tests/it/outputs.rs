//! What the program leaves: never in the place of something that is not its own, and readable to nobody new.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::Place;

/// A small drive, and a trace for it.
const DRIVE: &str = "samsung-960-evo";

fn simulate<'a>(trace: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["simulate", DRIVE, trace, "--fold"], more].concat()
}

fn with_trace(name: &str) -> Place {
    let place = Place::new();
    place.run(&["trace", "generate", "ssdiq-uniform", name, "--size", "64m", "--requests", "500"]).expect(0);
    place
}

/// The command is refused by the file's name, and the file is as it was.
fn keeps(place: &Place, file: &str, arguments: &[&str]) {
    let before = std::fs::read(place.path(file)).unwrap();
    let line = place.fails(5, arguments);
    assert!(line.contains(file), "{arguments:?}: {line}");
    assert_eq!(std::fs::read(place.path(file)).unwrap(), before, "{arguments:?}");
}

#[test]
fn a_trace_in_parquet_is_not_replaced_by_a_table_of_results_and_an_input_never() {
    let place = with_trace("tr.parquet");
    keeps(&place, "tr.parquet", &simulate("tr.parquet", &["--parquet", "tr.parquet"]));
    place.run(&["trace", "generate", "ssdiq-uniform", "other.parquet", "--size", "64m", "--requests", "9"]).expect(0);
    keeps(&place, "other.parquet", &simulate("tr.parquet", &["--parquet", "other.parquet"]));
    // A table of its own is replaced, by the same table and by no other.
    for _ in 0..2 {
        place.run(&simulate("tr.parquet", &["--parquet", "series.parquet"])).expect(0);
    }
    let flow = "[[flows]]\nrequests = 9\nsynthetic.read_share = 1.0\nsynthetic.access = \"random\"\n\
                synthetic.size.fixed.bytes = 4096\nsynthetic.pacing.closed.queue_depth = 1\n";
    place.write("reads.toml", &format!("name = \"reads\"\n{flow}"));
    place.write(
        "grid.toml",
        "device = \"samsung-960-evo\"\nworkload = \"reads.toml\"\n[vary]\n\"flash.read_ns\" = [40000]\n",
    );
    keeps(&place, "series.parquet", &["sweep", "grid.toml", "--parquet", "series.parquet"]);
}

#[test]
fn a_file_that_mentions_flashwise_is_not_flashwise_s() {
    let place = with_trace("tr.csv");
    let words =
        "# a flashwise README\nschema = \"flashwise.profile\"\nWritten by flashwise 0.1.0.\nstart_ns,requests\n";
    place.write("README.md", words);
    for option in ["--parquet", "--csv", "--html"] {
        keeps(&place, "README.md", &simulate("tr.csv", &[option, "README.md"]));
    }
    keeps(&place, "README.md", &["learn", "--profile", "README.md"]);
    keeps(&place, "README.md", &["learn", "--html", "README.md"]);
    keeps(&place, "README.md", &["study", "ace", "--quick", "--html", "README.md"]);
    keeps(&place, "README.md", &["trace", "convert", "tr.csv", "README.md", "--to", "csv"]);
    keeps(&place, "README.md", &["trace", "generate", "ssdiq-uniform", "README.md", "--to", "csv"]);
    std::fs::create_dir(place.path("report")).unwrap();
    for name in ["report/report.html", "report/report.json"] {
        place.write(name, words);
        keeps(&place, name, &simulate("tr.csv", &["--report", "report"]));
        std::fs::remove_file(place.path(name)).unwrap();
    }
}

#[test]
fn one_file_is_not_two_outputs_of_a_command() {
    let place = with_trace("tr.csv");
    let line = place.fails(5, &simulate("tr.csv", &["--csv", "out", "--html", "./out"]));
    assert!(line.contains("this command names it twice"), "{line}");
}

#[test]
fn a_file_that_is_read_is_no_output_and_the_name_of_a_preset_or_format_is_no_file() {
    let place = with_trace("tr.csv");
    place.run(&simulate("tr.csv", &["--csv", "table"])).expect(0);
    let line = place.fails(5, &simulate("table", &["--csv", "table", "--trace-format", "csv"]));
    assert!(line.contains("table: this command names it twice"), "{line}");
    let preset = place.run(&["device", "show", DRIVE]).expect(0).stdout;
    place.write("mine.toml", &preset);
    for device in ["mine.toml", "sim:mine.toml", "sim:./mine.toml"] {
        let line = place.fails(5, &["simulate", device, "tr.csv", "--fold", "--csv", "mine.toml"]);
        assert!(line.contains("mine.toml: "), "{line}");
    }
    place.run(&["simulate", DRIVE, "ycsb-a", "--requests", "9", "--csv", "ycsb-a"]).expect(0);
    // Now it is a file of that name, which would be read.
    let kept = place.read("ycsb-a");
    assert_ne!(place.run(&["simulate", DRIVE, "ycsb-a", "--csv", "ycsb-a"]).code, 0);
    assert_eq!(place.read("ycsb-a"), kept);
    // Twice, as the second time a file of that name is there.
    for _ in 0..2 {
        place.run(&simulate("tr.csv", &["--csv", DRIVE])).expect(0);
        place.run(&simulate("tr.csv", &["--trace-format", "csv", "--csv", "csv"])).expect(0);
        place.run(&["learn", "sim:toshiba-xg5", "--quick", "--profile", "toshiba-xg5"]);
        assert!(place.read("toshiba-xg5").contains("schema = \"flashwise.profile\""));
    }
}

#[test]
fn what_replaces_a_private_table_is_private() {
    let place = with_trace("tr.csv");
    place.run(&simulate("tr.csv", &["--csv", "t.csv"])).expect(0);
    std::fs::set_permissions(place.path("t.csv"), std::fs::Permissions::from_mode(0o600)).unwrap();
    place.run(&simulate("tr.csv", &["--csv", "t.csv"])).expect(0);
    assert_eq!(std::fs::metadata(place.path("t.csv")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn what_is_made_of_a_database_has_its_owner_and_its_mode() {
    let place = Place::new();
    place.database("app.db");
    std::fs::set_permissions(place.path("app.db"), std::fs::Permissions::from_mode(0o600)).unwrap();
    if std::os::unix::fs::chown(place.path("app.db"), Some(1234), Some(4321)).is_err() {
        eprintln!("SKIPPED in part: owners of other users take root");
    }
    place.run(&["sqlite", "import", "app.db", "fitted.db", "--techniques", "atomic-batch=on"]).expect(0);
    place.run(&["sqlite", "export", "fitted.db", "plain.db"]).expect(0);
    let access = |name: &str| {
        let metadata = std::fs::metadata(place.path(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o777)
    };
    for name in ["fitted.db", "plain.db"] {
        assert_eq!(access(name), access("app.db"), "{name}");
    }
}

#[test]
fn man_pages_replace_those_of_flashwise_and_no_other_file() {
    let place = Place::new();
    for _ in 0..2 {
        place.run(&["generate", "man", "man"]).expect(0);
    }
    place.write("man/flashwise.1", ".TH somebody 1\n");
    let ended = place.run(&["generate", "man", "man"]).expect(1);
    assert!(ended.stderr.contains("flashwise.1 in it is not a man page of flashwise"), "{}", ended.stderr);
    assert_eq!(place.read("man/flashwise.1"), ".TH somebody 1\n");
}

#[test]
fn a_drive_whose_image_goes_while_it_is_attached_ends_with_an_error() {
    let place = Place::new();
    let attach = |script: &'static str| {
        let arguments =
            ["attach", DRIVE, "--nbd", "unix:s", "--data", "d.img", "--time", "none", "--", "sh", "-c", script];
        place.run(&arguments)
    };
    attach("true").expect(0);
    let state = std::fs::read(place.path("d.img.ftl")).unwrap();
    let ended = attach("rm d.img").expect(1);
    assert!(ended.stderr.contains("d.img is gone or was replaced by another file"), "{}", ended.stderr);
    assert_eq!(std::fs::read(place.path("d.img.ftl")).unwrap(), state);
    let ended = attach("true").expect(5);
    assert!(ended.stderr.contains("d.img.ftl: the drive's state is here but its image is not"), "{}", ended.stderr);
    assert_eq!(std::fs::read(place.path("d.img.ftl")).unwrap(), state);
    assert!(!place.path("d.img").exists());
}
