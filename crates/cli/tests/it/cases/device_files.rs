//! Configurations of other simulators as their forks and users have them.

use super::input;
use crate::support::Place;

fn text(name: &str) -> String {
    std::fs::read_to_string(input("devices").join(name)).unwrap()
}

/// Imports into `out`, checks that the drive can be, and gives the notes.
fn import(place: &Place, files: &[&str]) -> String {
    let notes = place.run(&[&["device", "import"], files, &["--directory", "out"]].concat()).expect(0).stdout;
    place.run(&["device", "check", "out/device.toml"]).expect(0);
    std::fs::remove_dir_all(place.path("out")).unwrap();
    notes
}

const MQSIM: [&str; 3] = ["--mqsim", "ssdconfig.xml", "workload.xml"];

/// MQSim of one of its forks, with a part of its configuration changed.
fn mqsim(replaced: &str, by: &str) -> Place {
    let place = Place::new();
    let config = text("ssdconfig.xml");
    assert!(config.contains(replaced), "{replaced}");
    place.write("ssdconfig.xml", &config.replace(replaced, by));
    place.write("workload.xml", &text("workload.xml"));
    place
}

#[test]
fn a_channel_is_as_fast_as_the_configuration_says() {
    let note = "MQSim counts whole nanoseconds, so a transfer takes no time there; here it takes its time at this rate";
    for (rate, is_noted) in [("333", false), ("1000", false), ("1200", true), ("3600", true)] {
        let place = mqsim("<Channel_Transfer_Rate>1200<", &format!("<Channel_Transfer_Rate>{rate}<"));
        let notes = import(&place, &MQSIM);
        let line = format!("note: <Channel_Transfer_Rate> = {rate}: {note}");
        assert_eq!(notes.contains(&line), is_noted, "{rate}: {notes}");
    }
}

#[test]
fn what_a_fork_of_mqsim_has_added_to_a_scenario_is_noted() {
    let place = mqsim("<Channel_Transfer_Rate>1200<", "<Channel_Transfer_Rate>800<");
    let scenario =
        text("workload.xml").replacen("<IO_Scenario>", "<IO_Scenario><IOCap_Tracker><X>1</X></IOCap_Tracker>", 1);
    place.write("workload.xml", &scenario);
    let notes = import(&place, &MQSIM);
    assert!(notes.contains("<IOCap_Tracker> is unknown in <IO_Scenario> and has no effect"), "{notes}");
}

/// Each of them wrapped to a drive that could be, or to a panic.
#[test]
fn a_figure_out_of_range_is_refused_by_its_name() {
    for (tag, old, value) in [
        ("Flash_Channel_Width", "1", "4611686018427387904"),
        ("PCIe_Lane_Count", "4", "1099511627776"),
        ("GC_Exec_Threshold", "0.01000", "1e308"),
    ] {
        let place = mqsim(&format!("<{tag}>{old}<"), &format!("<{tag}>{value}<"));
        let line = place.fails(1, &[&["device", "import"], &MQSIM[..], &["--directory", "out"]].concat());
        assert!(line.contains("ssdconfig.xml: line ") && line.contains(&format!("<{tag}> is '")), "{line}");
    }
}

#[test]
fn what_a_fork_of_disksim_has_added_to_its_model_is_noted() {
    let published = text("ssd.parv");
    let units = "Number of parallel units = 1,";
    assert!(published.contains(units));
    for (changed, words) in [
        (published.clone(), ""),
        (
            published.replace(units, &format!("{units}\nCheckpoint time = 0,\nRead intensity aware GC = 1,")),
            "'Checkpoint time' is unknown in ssdmodel_ssd and has no effect",
        ),
        (published.replace(units, "Number of parallel units = 4,"), "'Number of parallel units' = 4: "),
        (
            published.replace("Max queue length =  20,", "Max queue length = 100,"),
            "'Max queue length' = 100: the link has 1 to 32; 32 is used",
        ),
    ] {
        let place = Place::new();
        place.write("ssd.parv", &changed);
        let notes = import(&place, &["--disksim", "ssd.parv"]);
        assert!(notes.contains(words), "{words}: {notes}");
    }
}

#[test]
fn a_time_that_no_transfer_has_is_refused_and_not_replaced_by_another_one() {
    let place = Place::new();
    place.write("ssd.parv", &text("ssd.parv").replace("Chip xfer latency = 0.000025,", "Chip xfer latency = 25000,"));
    let line = place.fails(1, &["device", "import", "--disksim", "ssd.parv", "--directory", "out"]);
    assert!(line.contains("ssd.parv: line ") && line.contains("'Chip xfer latency' = "), "{line}");
}

/// As other simulators' tools, and `--output` of any of them, name the place of what they write.
#[test]
fn the_directory_of_an_import_may_be_given_as_its_output() {
    let place = mqsim("<Channel_Transfer_Rate>1200<", "<Channel_Transfer_Rate>800<");
    let import = [&["device", "import"], &MQSIM[..]].concat();
    for (options, directory) in [
        (&["--output", "one"][..], "one"),
        (&["--output=two", "-o", "json"], "two"),
        (&["--output", "json", "--output", "three"], "three"),
    ] {
        let ended = place.run(&[&import[..], options].concat()).expect(0);
        assert!(place.path(directory).join("device.toml").exists(), "{}", ended.stdout);
        if directory != "one" {
            assert_eq!(ended.document()["files"][0], format!("{directory}/device.toml"));
        }
    }
    let line = place.fails(5, &[&import[..], &["--output", "one"]].concat());
    assert!(line.contains("one/device.toml: exists"), "{line}");
}
