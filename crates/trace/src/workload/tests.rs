use super::*;
use proptest::prelude::*;

const DOCS: &str = include_str!("../../../../docs/formats/workload.md");
const SYNTHETIC: &str = "access = 'random'\nsize.fixed.bytes = 4096\npacing.closed.queue_depth = 1\n";

fn refusal(text: &str) -> String {
    Workload::from_toml(text, "w.toml").unwrap_err().to_string()
}

/// A workload with one flow, whose table has `keys`.
fn flow_refusal(keys: &str) -> String {
    refusal(&format!("name = 'w'\n[[flows]]\nname = 'f'\n{keys}\n"))
}

/// A workload with one synthetic flow; the lines of `keys` are in for those of the same key.
fn synthetic_refusal(keys: &str) -> String {
    let key = |line: &str| line.split([' ', '.']).next().unwrap_or_default().to_owned();
    let replaced = |line: &&str| !keys.lines().any(|other| key(other) == key(line));
    let rest: String = SYNTHETIC.lines().filter(replaced).map(|line| format!("{line}\n")).collect();
    flow_refusal(&format!("requests = 1\n[flows.synthetic]\n{rest}{keys}"))
}

/// The TOML blocks of the documentation.
fn documented() -> Vec<&'static str> {
    DOCS.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn what_is_not_given_has_its_default() {
    let text = format!(
        "name = 'w'\n[[flows]]\nrequests = 5\n[flows.synthetic]\n{SYNTHETIC}[[flows]]\ntrace.path = 't.gz'\ntrace.format = 'mqsim'\n"
    );
    let workload = Workload::from_toml(&text, "w.toml").unwrap();
    let synthetic = Synthetic::new(Access::Random, Size::fixed(4096), Pacing::Closed { queue_depth: 1, think_ns: 0 });
    let flows = vec![
        Flow::synthetic("flow-1", 5, synthetic),
        Flow::replay("flow-2", TraceReplay::new("t.gz", TraceFormat::Mqsim)),
    ];
    assert_eq!(workload, Workload { name: "w".to_owned(), seed: 1, content: None, flows });
}

#[test]
fn the_documented_examples_are_workloads() {
    let examples = documented();
    assert!(!examples.is_empty());
    for example in examples {
        let workload = Workload::from_toml(example, "docs/formats/workload.md").unwrap();
        assert_eq!(Workload::from_toml(&workload.to_toml().unwrap(), "again").unwrap(), workload);
    }
}

#[test]
fn every_key_and_every_name_of_the_schema_is_documented() {
    fn names(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(object) => {
                if let Some(properties) = object.get("properties").and_then(|p| p.as_object()) {
                    found.extend(properties.keys().cloned());
                    assert_eq!(object.get("additionalProperties"), Some(&false.into()), "{properties:?}");
                }
                found.extend(object.get("const").and_then(|name| name.as_str()).map(str::to_owned));
                object.values().for_each(|value| names(value, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    names(&workload_schema(), &mut found);
    assert!(found.len() > 50, "{found:?}");
    for name in found {
        assert!(DOCS.contains(&format!("`{name}`")), "docs/formats/workload.md does not explain {name}");
    }
}

#[test]
fn what_is_no_workload_is_told_with_its_line() {
    let told = [
        refusal(""),
        refusal("name = 'w'\nflows = 3\n"),
        refusal("name = 'w'\ncolour = 'red'\nflows = []\n"),
        flow_refusal("reqests = 1"),
        flow_refusal("priority = 'highest'"),
        flow_refusal("requests = -1"),
        flow_refusal("requests = '4k'"),
        synthetic_refusal("access = 'randm'"),
        synthetic_refusal("access = 'zipf'"),
        synthetic_refusal("access.zipf = { theta = 0.9, skew = 1 }"),
        synthetic_refusal("size.fixed = { bytes = 4096, kib = 4 }"),
        synthetic_refusal("size.weighted = [{ bytes = 4096, share = 1 }]"),
        synthetic_refusal("pacing.open = { interarrival_ns = 5 }"),
        synthetic_refusal("think_ns = 5"),
        flow_refusal("trace = { path = 't', format = 'spcc' }"),
        flow_refusal("trace = { path = 't', format = 'csv', pacing = 'asap' }"),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
        w.toml: line 1: missing field `name`
        w.toml: line 2: invalid type: integer `3`, expected a sequence
        w.toml: line 2: unknown field `colour`, expected one of `name`, `seed`, `content`, `flows`
        w.toml: line 4: unknown field `reqests`, expected one of `name`, `priority`, `stream`, `start_ns`, `duration_ns`, `requests`, `synthetic`, `trace`; did you mean `requests`?
        w.toml: line 4: unknown variant `highest`, expected one of `urgent`, `high`, `medium`, `low`; did you mean `high`?
        w.toml: line 4: invalid value: integer `-1`, expected u64
        w.toml: line 4: invalid type: string "4k", expected u64
        w.toml: line 8: unknown variant `randm`, expected one of `random`, `sequential`, `zipf`, `pareto`, `latest`, `hot-cold`; did you mean `random`?
        w.toml: line 8: this choice requires its keys, such as zipf.theta = 0.99 or fixed.bytes = 4096
        w.toml: line 8: unexpected keys in table: skew, available keys: theta
        w.toml: line 8: unexpected keys in table: kib, available keys: bytes
        w.toml: line 8: unknown field `share`, expected `bytes` or `weight`
        w.toml: line 8: missing field `arrivals`
        w.toml: line 9: unknown field `think_ns`, expected one of `read_share`, `trim_share`, `modify_share`, `flush_every`, `fua`, `region_start_bytes`, `region_bytes`, `access`, `size`, `read_size`, `align_bytes`, `pacing`
        w.toml: line 4: unknown variant `spcc`, expected one of `auto`, `csv`, `parquet`, `msr`, `fiu`, `spc`, `disksim`, `mqsim`, `alibaba`, `tencent`, `fio-iolog`, `fio-log`, `blkparse`, `blktrace`, `biosnoop`, `vscsi`, `vscsi-csv`, `oracle-general`, `lcs`, `tracefs`, `strace`, `pages`, `u32-le`, `u32-be`, `systor`, `k5cloud`, `thesios`, `baleen`, `etw`, `arc`, `simplessd`, `columns`; did you mean `spc`?
        w.toml: line 4: unknown variant `asap`, expected `timestamps` or `closed`
    "#);
}

#[test]
fn what_makes_no_sense_is_told_with_its_key() {
    let two = format!("[[flows]]\nname = 'f'\nrequests = 1\n[flows.synthetic]\n{SYNTHETIC}");
    let told = [
        refusal("name = 'w'\nflows = []\n"),
        refusal(&format!("name = 'w'\n{two}{two}")),
        flow_refusal("requests = 1"),
        flow_refusal(&format!(
            "requests = 1\ntrace = {{ path = 't', format = 'csv' }}\n[flows.synthetic]\n{SYNTHETIC}"
        )),
        flow_refusal(&format!("[flows.synthetic]\n{SYNTHETIC}")),
        flow_refusal(&format!("requests = 0\n[flows.synthetic]\n{SYNTHETIC}")),
        flow_refusal(&format!("duration_ns = 0\n[flows.synthetic]\n{SYNTHETIC}")),
        synthetic_refusal("read_share = 1.2"),
        synthetic_refusal("read_share = nan"),
        synthetic_refusal("read_share = 0.7\ntrim_share = 0.4"),
        synthetic_refusal("flush_every = 0"),
        synthetic_refusal("align_bytes = 0"),
        synthetic_refusal("region_bytes = 0"),
        synthetic_refusal("access.zipf.theta = 0"),
        synthetic_refusal("access.hot-cold.zones = []"),
        synthetic_refusal("access.hot-cold.zones = [{ size = 0.1, traffic = 0.9 }]"),
        synthetic_refusal("access.hot-cold.zones = [{ size = 1, traffic = 0.9 }, { size = 0, traffic = 0.1 }]"),
        synthetic_refusal("size.fixed.bytes = 0"),
        synthetic_refusal("size.uniform = { min_bytes = 8192, max_bytes = 4096 }"),
        synthetic_refusal("size.normal = { mean_bytes = 4096, deviation_bytes = 9000000000000000000 }"),
        synthetic_refusal("size.weighted = []"),
        synthetic_refusal("size.weighted = [{ bytes = 4096, weight = 0 }]"),
        synthetic_refusal("size.weighted = [{ bytes = 4096, weight = -1 }]"),
        synthetic_refusal("pacing.closed.queue_depth = 0"),
        synthetic_refusal("pacing.closed.queue_depth = 100000"),
        synthetic_refusal("pacing.open = { interarrival_ns = 0, arrivals = 'poisson' }"),
        flow_refusal("trace = { path = 't', format = 'mqsim', repeat = 0 }"),
        flow_refusal("trace = { path = 't', format = 'mqsim', time_scale = 0 }"),
        flow_refusal("trace = { path = 't', format = 'mqsim', time_scale = inf }"),
        flow_refusal("trace = { path = 't', format = 'mqsim', logical_block_bytes = 0 }"),
        flow_refusal("trace = { path = 't', format = 'csv', pacing.closed.queue_depth = 0 }"),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
        w.toml: flows = (0 flows): must have 1 to 1024 flows
        w.toml: flow 'f': name = f: another flow has this name; names must be unique
        w.toml: flow 'f': has neither synthetic nor trace: give one
        w.toml: flow 'f': has both synthetic and trace: keep one
        w.toml: flow 'f': would never end: set requests, duration_ns or both
        w.toml: flow 'f': requests = 0: must be at least 1
        w.toml: flow 'f': duration_ns = 0: must be above 0
        w.toml: flow 'f': synthetic.read_share = 1.2: must be between 0 and 1
        w.toml: flow 'f': synthetic.read_share = NaN: must be between 0 and 1
        w.toml: flow 'f': synthetic.read_share + trim_share = 1.1: must be at most 1 together; the rest are writes
        w.toml: flow 'f': synthetic.flush_every = 0: must be at least 1
        w.toml: flow 'f': synthetic.align_bytes = 0: must be at least 1 byte
        w.toml: flow 'f': synthetic.region_bytes = 0: must be at least 1 byte
        w.toml: flow 'f': synthetic.access.zipf.theta = 0: must be above 0 and at most 10; instead of 0 use access = "random"
        w.toml: flow 'f': synthetic.access.hot-cold.zones = (0 entries): must have 1 to 1024 entries
        w.toml: flow 'f': synthetic.access.hot-cold: sum of size = 0.1: the shares of all zones must add up to 1
        w.toml: flow 'f': synthetic.access.hot-cold.zones[1].size = 0: must be above 0
        w.toml: flow 'f': synthetic.size.fixed.bytes = 0: must be at least 1 byte
        w.toml: flow 'f': synthetic.size.uniform.max_bytes = 4096: must be at least min_bytes = 8192
        w.toml: flow 'f': synthetic.size.normal.deviation_bytes = 9000000000000000000: the mean plus four deviations exceeds the size of any drive
        w.toml: flow 'f': synthetic.size.weighted = (0 entries): must have 1 to 1024 entries
        w.toml: flow 'f': synthetic.size.weighted: sum of weight = 0: the weights must add up to more than 0
        w.toml: flow 'f': synthetic.size.weighted[0].weight = -1: must be 0 or above
        w.toml: flow 'f': synthetic.pacing.closed.queue_depth = 0: must be between 1 and 65536
        w.toml: flow 'f': synthetic.pacing.closed.queue_depth = 100000: must be between 1 and 65536
        w.toml: flow 'f': synthetic.pacing.open.interarrival_ns = 0: must be at least 1 ns
        w.toml: flow 'f': trace.repeat = 0: must be at least 1
        w.toml: flow 'f': trace.time_scale = 0: must be a number above 0; to ignore the trace's times use pacing.closed
        w.toml: flow 'f': trace.time_scale = inf: must be a number above 0; to ignore the trace's times use pacing.closed
        w.toml: flow 'f': trace.logical_block_bytes = 0: must be at least 1 byte
        w.toml: flow 'f': trace.pacing.closed.queue_depth = 0: must be between 1 and 65536
    "#);
}

#[test]
fn a_file_is_read_and_an_endless_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.toml");
    std::fs::write(&path, documented()[0]).unwrap();
    assert_eq!(Workload::read(&path).unwrap(), Workload::from_toml(documented()[0], "w").unwrap());
    let endless = Workload::read("/dev/zero").unwrap_err().to_string();
    assert_eq!(endless, "/dev/zero: longer than 1 MiB, the limit for a workload");
    let missing = Workload::read("/no/such.toml").unwrap_err().to_string();
    assert!(missing.starts_with("/no/such.toml: No such file"), "{missing}");
}

#[test]
fn a_path_that_toml_cannot_hold_is_refused_and_not_changed() {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::OsStr::from_bytes(b"\xff");
    let flows = vec![Flow::replay("f", TraceReplay::new(path, TraceFormat::Csv))];
    let error = Workload { name: "w".to_owned(), seed: 1, content: None, flows }.to_toml().unwrap_err().to_string();
    assert_eq!(error, "cannot write workload 'w': path contains invalid UTF-8 characters");
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}") {
        let _ = Workload::from_toml(&text, "w.toml");
    }

    #[test]
    fn values_survive_the_way_through_a_file(
        seed: u64, theta in 1e-3..10.0, reads in 0.0..=1.0, weight in 0.0..1e9, scale in 1e-6..1e6,
    ) {
        let size = Size::Weighted(vec![WeightedSize { bytes: 512, weight }, WeightedSize { bytes: 1, weight: 1.0 }]);
        let pacing = Pacing::Open { interarrival_ns: 3, arrivals: Arrivals::Constant };
        let synthetic = Synthetic { read_share: reads, ..Synthetic::new(Access::Zipf { theta }, size, pacing) };
        let closed = ReplayPacing::Closed { queue_depth: 2 };
        let trace = TraceReplay { time_scale: scale, pacing: closed, ..TraceReplay::new("t", TraceFormat::Disksim) };
        let low = Flow { priority: Priority::Low, start_ns: 9, ..Flow::replay("b", trace) };
        let flows = vec![Flow::synthetic("a", 7, synthetic), low];
        let workload = Workload { name: "w \"x\"".to_owned(), seed, content: None, flows };
        prop_assert_eq!(Workload::from_toml(&workload.to_toml().unwrap(), "w.toml").unwrap(), workload);
    }
}
