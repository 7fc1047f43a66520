//! `flashwise device schema` and `device import`, and what `device check` says of a bad file.

use crate::support;
use support::Place;

const DRIVE: &str = "<Execution_Parameter_Set>
<Host_Parameter_Set></Host_Parameter_Set>
<Device_Parameter_Set>
  <Overprovisioning_Ratio>0.3</Overprovisioning_Ratio>
  <Ideal_Mapping_Table>true</Ideal_Mapping_Table>
  <Block_Choice>1</Block_Choice>
  <Flash_Parameter_Set><Block_No_Per_Plane>128</Block_No_Per_Plane></Flash_Parameter_Set>
</Device_Parameter_Set>
</Execution_Parameter_Set>";

const FLOWS: &str = "<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic>
<Read_Percentage>100</Read_Percentage>
<Total_Requests_To_Generate>300</Total_Requests_To_Generate>
</IO_Flow_Parameter_Set_Synthetic></IO_Scenario></MQSim_IO_Scenarios>";

#[test]
fn an_imported_drive_and_its_workload_can_be_simulated() {
    let place = Place::new();
    place.write("ssd.xml", &DRIVE.replace("  <Block_Choice>1</Block_Choice>\n", ""));
    place.write("work.xml", FLOWS);
    let import = ["device", "import", "--mqsim", "ssd.xml", "work.xml", "--directory", "out"];
    let document = place.run(&[&import[..], &["-o", "json"]].concat()).expect(0).document();
    assert_eq!((&document["schema"], &document["source"]), (&"flashwise.import".into(), &"MQSim, ssd.xml".into()));
    assert!(!document["notes"].as_array().unwrap().is_empty());
    place.run(&["device", "check", "out/device.toml"]).expect(0);
    let simulate = ["simulate", "out/device.toml", "out/workload.toml", "-o", "json"];
    assert_eq!(place.run(&simulate).expect(0).document()["total"]["requests"], 300);
    let line = place.fails(5, &import);
    assert!(line.contains("out/device.toml: exists"), "{line}");
}

#[test]
fn an_import_takes_a_directory_and_the_form_of_its_result_as_every_verb_does() {
    let place = Place::new();
    place.write("ssd.xml", &DRIVE.replace("  <Block_Choice>1</Block_Choice>\n", ""));
    let import = ["device", "import", "--mqsim", "ssd.xml"];
    for (n, form) in [&["-o", "json"][..], &["-ojson"], &["--output", "json"]].iter().enumerate() {
        let dir = format!("out-{n}");
        let document = place.run(&[&import[..], &["--directory", &dir], form].concat()).expect(0).document();
        assert_eq!(document["files"][0], format!("{dir}/device.toml"));
    }
    let before_the_verb = place.run(&[&["-o", "json"][..], &import, &["--directory", "early"]].concat()).expect(0);
    assert_eq!(before_the_verb.document()["schema"], "flashwise.import");
    let old_name = place.run(&[&import[..], &["--dir=old"]].concat()).expect(0);
    assert!(old_name.stdout.contains("written: old/device.toml"), "{}", old_name.stdout);
    let line = place.fails(2, &[&import[..], &["--directory", "new", "--output", "somewhere"]].concat());
    assert!(line.contains("'somewhere'") && line.contains("text, json"), "{line}");
}

#[test]
fn a_directory_that_cannot_be_is_refused_before_anything_is_written() {
    let place = Place::new();
    place.write("ssd.xml", &DRIVE.replace("  <Block_Choice>1</Block_Choice>\n", ""));
    place.write("file", "");
    let import = ["device", "import", "--mqsim", "ssd.xml", "--directory"];
    let line = place.fails(1, &[&import[..], &["file"]].concat());
    assert!(line.contains("file: "), "{line}");
    let line = place.fails(1, &[&import[..], &["file/inside"]].concat());
    assert!(line.contains("file/inside: Not a directory"), "{line}");
}

#[test]
fn an_unknown_tag_is_noted_with_its_line_and_what_is_no_configuration_is_refused() {
    let place = Place::new();
    place.write("ssd.xml", DRIVE);
    let imported = place.run(&["device", "import", "--mqsim", "ssd.xml", "--directory", "noted"]).expect(0).stdout;
    let words = "note: ssd.xml: line 6: <Block_Choice> is unknown in <Device_Parameter_Set> and has no effect\n";
    assert!(imported.contains(words) && place.read("noted/device.toml").contains(&words[6..]), "{imported}");
    let line = place.fails(1, &["device", "import", "--disksim", "ssd.xml", "--directory", "out"]);
    assert!(line.contains("ssd.xml: line 1: the block ssdmodel_ssd is missing"), "{line}");
    place.fails(2, &["device", "import", "--directory", "out"]);
}

#[test]
fn a_misspelt_key_is_told_with_the_one_that_was_meant() {
    let place = Place::new();
    let drive = place.run(&["device", "show", "micron-m500"]).expect(0).stdout;
    place.write("mine.toml", &drive.replace("pages_per_block", "page_per_block"));
    let line = place.fails(1, &["device", "check", "mine.toml"]);
    assert!(line.contains("mine.toml: line ") && line.ends_with("did you mean `pages_per_block`?"), "{line}");
    place.write("mine.toml", &drive.replace("mapping = \"page\"", "mapping = \"pages\""));
    let line = place.fails(1, &["device", "check", "mine.toml"]);
    assert!(line.ends_with("did you mean `page`?"), "{line}");
}

#[test]
fn the_schema_of_a_drive_names_every_key_of_a_preset() {
    let place = Place::new();
    let schema: serde_json::Value = serde_json::from_str(&place.run(&["device", "schema"]).expect(0).stdout).unwrap();
    for key in ["name", "capacity_bytes", "host", "controller", "ftl", "flash"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    let document = place.run(&["device", "schema", "-o", "json"]).expect(0).document();
    assert_eq!(document["json_schema"], schema);
}

#[test]
fn a_random_drive_is_the_same_for_the_same_seed_and_can_be_used_at_once() {
    let place = Place::new();
    let drive = place.run(&["device", "random", "--seed", "11"]).expect(0).stdout;
    assert!(drive.starts_with("# A random drive: flashwise device random --seed 11\n"), "{drive}");
    assert_eq!(place.run(&["device", "random", "--seed", "11"]).expect(0).stdout, drive);
    place.write("random.toml", &drive);
    place.run(&["device", "check", "random.toml"]).expect(0);
    let document = place.run(&["device", "random", "--seed", "11", "-o", "json"]).expect(0).document();
    assert_eq!(
        (&document["schema"], &document["device"]["name"]),
        (&"flashwise.device".into(), &"random drive 11".into())
    );
    let line = place.fails(2, &["device", "random"]);
    assert!(line.contains("--seed"), "{line}");
}
