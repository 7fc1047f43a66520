//! Arrays on the command line: `simulate`, `sweep` and `device check` take them, other verbs say that they do not.

use crate::support;
use support::Place;

/// A drive of 24 MiB.
const MEMBER: [(&str, &str); 6] = [
    ("max_transfer_bytes = ", "max_transfer_bytes = 262_144"),
    ("capacity_bytes = ", "capacity_bytes = 25_165_824"),
    ("blocks_per_plane = ", "blocks_per_plane = 32"),
    ("pages_per_block = ", "pages_per_block = 16"),
    ("write_buffer_bytes = ", "write_buffer_bytes = 2_097_152"),
    ("free_superblocks = ", "free_superblocks = 2"),
];

const ARRAY: &str = "name = \"four\"\nlevel = \"raid5\"\nmembers = 4\nmember = \"member.toml\"\nchunk_bytes = 16384\n";

const WRITES: [&str; 8] = ["--rw", "randwrite", "--bs", "4k", "--iodepth", "8", "--requests", "2000"];

/// A directory with an array whose file has a name like any other's.
fn place() -> Place {
    let place = Place::new();
    let preset = place.run(&["device", "show", "micron-m500"]).expect(0).stdout;
    let line = |line: &str| {
        let of_line = MEMBER.iter().find(|(key, _)| line.starts_with(key));
        of_line.map_or_else(|| line.to_owned(), |(_, value)| (*value).to_owned())
    };
    place.write("member.toml", &preset.lines().map(|text| line(text) + "\n").collect::<String>());
    place.write("mine.toml", ARRAY);
    place
}

/// The command that writes at random.
fn writes_on<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["simulate", name], &WRITES[..], more].concat()
}

fn simulate(place: &Place, more: &[&str]) -> serde_json::Value {
    let arguments = [&["simulate", "mine.toml"], &WRITES[..], more, &["-o", "json"]].concat();
    place.run(&arguments).expect(0).document()
}

#[test]
fn an_array_is_recognised_by_its_content_and_gives_a_drives_document_and_more() {
    let place = place();
    let document = simulate(&place, &["--precondition", "fill"]);
    assert_eq!(document["schema"], "flashwise.simulation");
    assert_eq!(document["total"]["requests"], 2_000);
    let array = &document["array"];
    assert_eq!((&array["level"], &array["chunk_bytes"]), (&"raid5".into(), &16_384.into()));
    assert_eq!(array["row_writes"]["read_modify_write"], 2_000);
    assert_eq!(array["accesses"]["parity_writes"]["count"], 2_000);
    assert_eq!(array["members"].as_array().unwrap().len(), 4);
    for key in ["bytes_written", "flash_bytes_programmed", "write_amplification"] {
        assert!(array["members"][0][key].as_f64() > Some(0.0), "{key}");
    }
    assert!(array["controller"]["limit_reached"].is_null());
    assert_eq!(simulate(&place, &["--precondition", "fill"])["array"], *array, "the same again");
    let drive = [&["simulate", "member.toml"], &WRITES[..], &["-o", "json"]].concat();
    assert!(place.run(&drive).expect(0).document()["array"].is_null());
}

#[test]
fn the_text_and_the_page_tell_of_the_array() {
    let place = place();
    let arguments = [&["simulate", "sim:mine.toml"], &WRITES[..], &["--fail", "2@20ms", "--html", "page.html"]];
    let text = place.run(&arguments.concat()).expect(0).stdout;
    for words in
        ["on four", "The array", "RAID-5 over 4 × Micron", "read-modify-write", "member 2 after 20", "2, failed"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = place.read("page.html");
    assert!(page.contains("The array") && page.contains("RAID-5 over 4 × Micron") && page.contains("2, failed"));
}

#[test]
fn traces_and_workloads_by_name_run_on_an_array() {
    let place = place();
    place.write("small.trace", "0 0 0 8 0\n1000000 0 0 8 1\n2500000 0 64 16 0\n");
    let replay = ["simulate", "mine.toml", "small.trace", "--trace-format", "mqsim", "-o", "json"];
    let document = place.run(&replay).expect(0).document();
    assert_eq!((&document["flows"][0]["reads"], &document["flows"][0]["writes"]), (&1.into(), &2.into()));
    assert_eq!(document["array"]["row_writes"]["read_modify_write"], 2);
    let named = ["simulate", "mine.toml", "ycsb-a", "--requests", "500", "--precondition", "fill", "-o", "json"];
    let document = place.run(&named).expect(0).document();
    assert_eq!((&document["total"]["requests"], &document["unwritten_pages_read"]), (&500.into(), &0.into()));
}

#[test]
fn a_drive_fails_in_the_middle_and_a_spare_is_rebuilt() {
    let place = place();
    place.write("mine.toml", &format!("{ARRAY}spares = 1\n[[failures]]\nmember = 1\nat_ns = 5_000_000\n"));
    let document = simulate(&place, &["--precondition", "fill", "--fail", "1@4s", "--fail", "0@900s"]);
    let array = &document["array"];
    assert_eq!(array["failures"][0], serde_json::json!({ "member": 1, "at_ns": 5_000_000 }));
    assert_eq!(array["rebuilds"][0]["began_ns"], 5_000_000);
    assert!(array["rebuilds"][0]["rows_done"].as_u64() > Some(0));
    assert_eq!((&array["spares_left"], &array["config"]["failures"][2]["member"]), (&0.into(), &0.into()));
    let line = place.fails(1, &[&["simulate", "mine.toml"], &WRITES[..], &["--fail", "2@5ms"]].concat());
    assert!(line.contains("more drives of the array have failed than its level survives"), "{line}");
}

#[test]
fn what_makes_no_sense_is_told() {
    let place = place();
    let line = place.fails(2, &writes_on("member.toml", &["--fail", "0@1s"]));
    assert!(line.ends_with("member.toml: --fail is for arrays, and this is a single drive"), "{line}");
    let line = place.fails(1, &writes_on("mine.toml", &["--fail", "4@1s"]));
    assert!(line.ends_with("mine.toml: failures.member = 4: must be a member's number, 0 to 3"), "{line}");
    let ended = place.run(&writes_on("mine.toml", &["--fail", "4"]));
    assert!(ended.code == 2 && ended.stderr.contains("'4' is not MEMBER@TIME, such as 2@500ms"), "{}", ended.stderr);
    // Theory covers drives of one stream; a member that it does not cover is told as such a drive alone is.
    place.write("member.toml", &place.read("member.toml").replace("policy = \"greedy\"", "policy = \"cost-benefit\""));
    let line = place.fails(2, &writes_on("mine.toml", &["--precondition", "analytic"]));
    let alone = place.fails(2, &writes_on("member.toml", &["--precondition", "analytic"]));
    assert_eq!(line, alone);
}

#[test]
fn device_check_tells_what_an_array_is() {
    let place = place();
    let text = place.run(&["device", "check", "mine.toml"]).expect(0).stdout;
    assert_eq!(
        text,
        "mine.toml: four: valid array, 72 MiB addressable on 4 × Micron M500 120GB, rows of 48 KiB, survives any \
         one failure\n"
    );
    let document = place.run(&["device", "check", "mine.toml", "-o", "json"]).expect(0).document();
    assert_eq!((&document["schema"], &document["schema_version"]), (&"flashwise.array".into(), &1.into()));
    assert_eq!((&document["capacity_bytes"], &document["survives"]), (&(72 << 20).into(), &1.into()));
    assert_eq!(document["device"]["name"], "Micron M500 120GB");
    place.write("mine.toml", &ARRAY.replace("members = 4", "members = 2"));
    let line = place.fails(1, &["device", "check", "mine.toml"]);
    assert!(line.ends_with("mine.toml: members = 2: this level requires 3 to 64 members"), "{line}");
    place.write("mine.toml", &ARRAY.replace("member.toml", "other.toml"));
    let line = place.fails(1, &["device", "check", "mine.toml"]);
    assert!(line.contains("member = \"other.toml\": neither a preset nor a readable file"), "{line}");
}

#[test]
fn verbs_for_single_drives_refuse_an_array_by_name() {
    let place = place();
    for verb in [&["learn", "sim:mine.toml"][..], &["device", "truth", "mine.toml"]] {
        let line = place.fails(1, verb);
        assert!(
            line.contains("mine.toml: is an array of drives, but a single drive is required here"),
            "{verb:?}: {line}"
        );
    }
}

#[test]
fn a_grid_varies_the_array_and_its_members() {
    let place = place();
    place.write(
        "grid.toml",
        "device = \"mine.toml\"\nworkload = \"writes.toml\"\nprecondition = \"fill\"\n[vary]\n\
         level = [\"raid0\", \"raid5\"]\n\"member.flash.program_ns\" = [800_000, 1_600_000]\n",
    );
    place.write(
        "writes.toml",
        "name = \"writes\"\n[[flows]]\nrequests = 1_000\nsynthetic.access = \"random\"\n\
         synthetic.size.fixed.bytes = 4096\nsynthetic.pacing.closed.queue_depth = 4\n",
    );
    let document = place.run(&["sweep", "grid.toml", "-o", "json"]).expect(0).document();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!((cells.len(), &document["failed"]), (4, &0.into()));
    let iops = |cell: usize| cells[cell]["rows"][0]["iops"].as_f64().unwrap();
    assert_eq!((&cells[0]["values"]["level"], &cells[2]["values"]["level"]), (&"raid0".into(), &"raid5".into()));
    assert!(iops(0) > iops(2), "a small write to RAID-5 costs more: {} {}", iops(0), iops(2));
    place.write(
        "grid.toml",
        &place.read("grid.toml").replace("[\"raid0\", \"raid5\"]", "[\"raid10\"]\nmembers = [4, 5]"),
    );
    let line = place.fails(1, &["sweep", "grid.toml"]);
    assert!(line.contains("members = 5: RAID-10 requires an even number"), "{line}");
}
