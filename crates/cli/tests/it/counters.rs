//! `device counters` and `learn --counters` on recorded logs; on an attached drive in `attach_control.rs`.

use crate::support;
use support::Place;

/// A third of its life behind it: 2,048 TB by the host in two years, write amplification 1.89.
const SMART: &str = r#"{"critical_warning":0,"temperature":312,"avail_spare":100,"spare_thresh":5,"percent_used":34,
    "data_units_written":4000000000,"host_write_commands":44000000000,"power_on_hours":17520}"#;
const OCP: &str = r#"{"Physical media units written":{"hi":0,"lo":3870720000000000},"Percent free blocks":6}"#;

/// The counters of a volume, µs above the limits of the volume and of the instance.
fn volume(volume_us: u64, instance_us: u64) -> String {
    format!(
        r#"{{"total_write_bytes":4096,"ebs_volume_performance_exceeded_iops":{volume_us},
            "ec2_instance_ebs_performance_exceeded_tp":{instance_us}}}"#
    )
}

#[test]
fn logs_of_nvme_cli_show_write_amplification_and_years_left() {
    let place = Place::new();
    place.write("smart.json", SMART);
    place.write("ocp.json", OCP);
    let files = ["device", "counters", "smart.json", "ocp.json"];
    let text = place.run(&files).expect(0).stdout;
    assert!(text.contains("The drive lasts 3.88 more years at this workload; it writes 1.89 bytes of flash"), "{text}");
    let json = place.run(&[&files[..], &["--tbw", "4096", "-o", "json"]].concat()).expect(0).document();
    assert_eq!((&json["schema"], &json["schema_version"]), (&"flashwise.counters".into(), &1.into()));
    assert_eq!(json["counters"]["smart"]["data_units_written"], 4_000_000_000_u64);
    let rated = json["wear"]["years_left_rated"]["value"].as_f64().unwrap();
    assert!((rated - 2.0).abs() < 0.01, "half of the rating in two years, and {rated} are left");
    // What it prints is a log too: the earlier one.
    place.write("monday.json", &json.to_string());
    let later = SMART.replace("4000000000", "4001000000");
    place.write("smart.json", &later);
    place.write("ocp.json", &OCP.replace("3870720000000000", "3871744000000000"));
    let since = [&files[..], &["--before", "monday.json", "--elapsed", "24h", "-o", "json"]].concat();
    let json = place.run(&since).expect(0).document();
    let amplification = &json["wear"]["write_amplification_counted"];
    assert_eq!((&amplification["value"], &amplification["verdict"]), (&2.0.into(), &"certain".into()));
    let trace = "at_ns,operation,offset_bytes,length_bytes\n0,write,0,4096\n1000000000,write,4096,4096\n";
    place.write("run.csv", trace);
    let json = place.run(&[&since[..], &["--trace", "run.csv"]].concat()).expect(0).document();
    assert_eq!(json["wear"]["host_write_bytes_per_s"]["value"], 8192);
}

#[test]
fn whose_limit_it_is_comes_into_a_learned_profile() {
    let place = Place::new();
    place.write("before.json", &volume(7, 9));
    place.write("after.json", &volume(7, 60_000_009));
    let learn = ["learn", "sim:gp3", "--limits", "--time-budget", "30s", "--counters", "before.json"];
    let run = place.run(&[&learn[..], &["--counters", "after.json", "--profile", "p.toml", "-o", "json"]].concat());
    let json = run.expect(4).document();
    let limit = &json["limits"]["limit_of_instance"];
    assert_eq!((&limit["value"], &limit["verdict"]), (&true.into(), &"certain".into()));
    assert_eq!(json["wear"]["over_instance_limit_ns"]["value"], 60_000_000_000_u64);
    assert!(place.read("p.toml").contains("[limits.limit_of_instance]"), "{}", place.read("p.toml"));
    assert!(place.read("p.toml").contains("over_instance_limit_ns"));
}

#[test]
fn what_is_no_log_or_no_pair_of_logs_is_refused() {
    let place = Place::new();
    place.write("smart.json", SMART);
    place.write("later.json", &SMART.replace("4000000000", "5000000000"));
    place.write("words.txt", "Smart Log for NVME device:nvme0 namespace-id:ffffffff\n");
    let line = place.fails(1, &["device", "counters", "words.txt"]);
    assert!(line.contains("words.txt: 54 bytes that are no log page known here"), "{line}");
    let line = place.fails(2, &["device", "counters", "smart.json", "--before", "later.json"]);
    assert!(line.contains("give the earlier log first"), "{line}");
    let line = place.fails(2, &["device", "counters", "smart.json", "--over", "1s"]);
    assert!(line.contains("smart.json is a file, which does not change; give a device"), "{line}");
    let line = place.fails(1, &["device", "counters", "/dev/null"]);
    assert!(line.contains("/dev/null: it is a character device"), "{line}");
    let three = ["--counters", "smart.json", "--counters", "smart.json", "--counters", "smart.json"];
    let line = place.fails(2, &[&["learn", "sim:gp3", "--limits"][..], &three].concat());
    assert!(line.contains("give a device, or one file, or one before and one after"), "{line}");
}

#[test]
fn an_unknown_preset_lists_volumes_too() {
    let line = Place::new().fails(2, &["device", "show", "gp4"]);
    assert!(
        line.contains("did you mean 'gp2'?") && line.contains("gp3, io2") && line.contains("intel-p4510"),
        "{line}"
    );
}
