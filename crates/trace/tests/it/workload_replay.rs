//! What the replay of a trace promises, on good traces and on hostile ones.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flashwise_block::{ByteSize, Nanos, Operation};
use flashwise_trace::workload::{
    Flow, FlowRequest, FlowSource, ReplayPacing, SourcePacing, TraceFormat, TraceReplay, WorkloadError,
};
use flashwise_trace::{FileRole, IoRecord, IoTrace, write_csv};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

const CAPACITY: ByteSize = ByteSize::mib(1);
const MQSIM: &str = "100 0 0 8 1\n150 1 16 8 0\n\n400 0 32 16 0\n";

/// A folder with traces in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(trace: impl AsRef<[u8]>) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(trace);
        folder
    }

    fn write(&self, trace: impl AsRef<[u8]>) {
        fs::write(self.0.path().join("t"), trace).unwrap();
    }

    fn open(&self, flow: &Flow) -> Result<FlowSource, WorkloadError> {
        FlowSource::open(flow, 0, 1, CAPACITY, ByteSize(512), self.0.path())
    }

    fn replay(&self, trace: TraceReplay) -> Vec<FlowRequest> {
        self.open(&Flow::replay("f", trace)).unwrap().collect()
    }

    /// The error, without the folder's name.
    fn refusal(&self, flow: &Flow) -> String {
        let error = self.open(flow).unwrap_err().to_string();
        error.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn mqsim() -> TraceReplay {
    TraceReplay::new("t", TraceFormat::Mqsim)
}

fn refusal(trace: impl AsRef<[u8]>, replay: TraceReplay) -> String {
    Folder::with(trace).refusal(&Flow::replay("f", replay))
}

fn request(at: u64, operation: Operation, offset: u64, length: u64) -> FlowRequest {
    FlowRequest { operation, offset: ByteSize(offset), length: ByteSize(length), fua: false, at: Nanos(at) }
}

fn times(requests: &[FlowRequest]) -> Vec<u64> {
    requests.iter().map(|request| request.at.0).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(path)
}

#[test]
fn a_trace_of_mqsim_is_replayed_by_its_timestamps() {
    let told = Folder::with(MQSIM).replay(mqsim());
    let (read, write) = (Operation::Read, Operation::Write);
    assert_eq!(told, [request(100, read, 0, 4096), request(150, write, 8192, 4096), request(400, write, 16_384, 8192)]);
}

#[test]
fn a_trace_of_disksim_is_replayed_in_milliseconds_with_sectors_of_any_size() {
    let trace = TraceReplay { logical_block_bytes: 4096, ..TraceReplay::new("t", TraceFormat::Disksim) };
    let told = Folder::with("0.0005 0 1 2 1\n1.25 0 4 1 0\n").replay(trace);
    assert_eq!(told, [request(500, Operation::Read, 4096, 8192), request(1_250_000, Operation::Write, 16_384, 4096)]);
}

#[test]
fn flashwises_own_trace_is_replayed_with_its_trims_and_flushes() {
    let record = |at, operation, offset| IoRecord {
        at: Nanos(at),
        operation,
        role: FileRole::Database,
        offset: ByteSize(offset),
        length: ByteSize(512),
        latency: Nanos(9),
    };
    let records = vec![record(1, Operation::Trim, 512), record(2, Operation::Flush, 1 << 40)];
    let mut text = Vec::new();
    write_csv(&IoTrace { records }, &mut text).unwrap();
    let told = Folder::with(text).replay(TraceReplay::new("t", TraceFormat::Csv));
    assert_eq!(told, [request(1, Operation::Trim, 512, 512), request(2, Operation::Flush, 0, 0)]);
}

#[test]
fn a_compressed_trace_is_the_same_trace_whatever_its_name() {
    let two_members = [gzip("100 0 0 8 1\n150 1 "), gzip("16 8 0\n\n400 0 32 16 0")].concat();
    let plain = Folder::with(MQSIM).replay(mqsim());
    assert_eq!(Folder::with(gzip(MQSIM)).replay(mqsim()), plain);
    assert_eq!(Folder::with(two_members).replay(mqsim()), plain);
}

#[test]
fn each_round_of_a_repeated_trace_starts_at_the_last_arrival() {
    let folder = Folder::with(MQSIM);
    let told = folder.replay(TraceReplay { repeat: 3, ..mqsim() });
    assert_eq!(times(&told), [100, 150, 400, 500, 550, 800, 900, 950, 1200]);
    let slow = folder.replay(TraceReplay { repeat: 2, time_scale: 1.5, ..mqsim() });
    assert_eq!(times(&slow), [150, 225, 600, 750, 825, 1200]);
}

#[test]
fn a_trace_lies_in_its_region_and_is_folded_into_it() {
    let offsets = |region: (u64, Option<u64>), fold| {
        let (region_start_bytes, region_bytes) = region;
        let told = Folder::with(MQSIM).replay(TraceReplay { region_start_bytes, region_bytes, fold, ..mqsim() });
        told.iter().map(|request| request.offset.0).collect::<Vec<_>>()
    };
    assert_eq!(offsets((65_536, None), false), [65_536, 65_536 + 8192, 65_536 + 16_384]);
    assert_eq!(offsets((4096, Some(12_288)), true), [4096, 4096 + 8192, 4096 + 4096], "16 KiB modulo 12 KiB");
    assert_eq!(offsets((0, Some(10_240)), true), [0, 2048 * 3, 2048], "what sticks out moves back to the region's end");
}

#[test]
fn a_region_that_the_drive_does_not_have_is_refused_and_so_is_what_sticks_out_of_one() {
    let refusal = |region_start_bytes, region_bytes| {
        let trace = TraceReplay { region_start_bytes, region_bytes, ..mqsim() };
        Folder::with(MQSIM).refusal(&Flow::replay("f", trace))
    };
    let sticks_out = refusal(4096, Some(12_288));
    assert!(
        sticks_out.contains("8192 bytes at byte 16384: the region ends at byte 12288; fold = true (--fold)"),
        "{sticks_out}"
    );
    assert!(refusal(u64::MAX, None).contains("trace.region_start_bytes"));
    assert!(refusal(4096, Some(u64::MAX)).contains("bytes from byte 4096 on"));
    assert!(refusal(4096, Some(0)).contains("trace.region_bytes = 0"));
    assert!(refusal(100, None).contains("multiple of the drive's logical block"));
}

#[test]
fn only_the_requests_of_one_device_are_replayed() {
    let folder = Folder::with(MQSIM);
    assert_eq!(times(&folder.replay(TraceReplay { device: Some(0), ..mqsim() })), [100, 400]);
    let none = Flow::replay("f", TraceReplay { device: Some(7), ..mqsim() });
    assert_eq!(folder.refusal(&none), "t: the trace has no request of device 7");
}

#[test]
fn a_trace_whose_first_request_is_an_hour_late_is_refused_and_not_played_all_at_once() {
    let late = "9,W,0,4096,1577811600000000\n7,R,0,4096,1577808000010000\n7,W,8192,4096,1577808000020000\n";
    let alibaba = || TraceReplay::new("t", TraceFormat::Alibaba);
    let told = refusal(late, alibaba());
    assert_eq!(
        told,
        "t: line 2: time goes back to 3599990000000 ns before the start of the trace: sort the trace by time"
    );
    let closed = TraceReplay { pacing: ReplayPacing::Closed { queue_depth: 1 }, ..alibaba() };
    assert_eq!(Folder::with(late).replay(closed).len(), 3, "its times are not used");
}

#[test]
fn devices_that_are_laid_over_one_another_are_told() {
    let source = Folder::with(MQSIM).open(&Flow::replay("f", mqsim())).unwrap();
    let told = "2 devices of the trace are replayed on the same addresses; device = N in a workload's [flows.trace] \
                selects one, such as 0";
    assert_eq!(source.notes(), [told]);
    let one = TraceReplay { device: Some(0), ..mqsim() };
    assert_eq!(Folder::with(MQSIM).open(&Flow::replay("f", one)).unwrap().notes(), [""; 0]);
    // Longer than what is kept in memory.
    let long: String = (0..70_000).map(|n| format!("{n} {} 0 8 1\n", n % 2)).collect();
    assert_eq!(Folder::with(long).open(&Flow::replay("f", mqsim())).unwrap().notes(), [told]);
    let files = "fio version 3 iolog\n1 a read 0 4096\n2 b read 0 4096\n3 a sync\n";
    let lost = format!("{files}4 a sync_file_range 0 8192\n");
    let source = Folder::with(lost).open(&Flow::replay("f", TraceReplay::new("t", TraceFormat::FioIolog))).unwrap();
    assert_eq!(source.notes()[1], "left out, as they are not requests: actions sync_file_range (1)");
    let source = Folder::with(files).open(&Flow::replay("f", TraceReplay::new("t", TraceFormat::FioIolog))).unwrap();
    assert!(
        source.notes()[0].starts_with("2 files of the trace are replayed on the same addresses"),
        "{:?}",
        source.notes()
    );
}

#[test]
fn a_text_of_columns_is_replayed_by_its_layout() {
    let layout = Some("time=1:us,offset=2:sectors,length=3:bytes,op=4".to_owned());
    let told = Folder::with("5 8 4096 R\n7 0 512 W\n")
        .replay(TraceReplay { layout, ..TraceReplay::new("t", TraceFormat::Columns) });
    assert_eq!(told, [request(0, Operation::Read, 4096, 4096), request(2000, Operation::Write, 0, 512)]);
}

#[test]
fn a_closed_replay_has_no_times_and_takes_traces_in_any_order() {
    let closed = TraceReplay { pacing: ReplayPacing::Closed { queue_depth: 4 }, ..mqsim() };
    let source = Folder::with("9 0 0 8 1\n5 0 8 8 1\n").open(&Flow::replay("f", closed)).unwrap();
    assert_eq!(source.pacing(), SourcePacing::Closed { queue_depth: 4, think: Nanos(0) });
    assert_eq!(times(&source.collect::<Vec<_>>()), [0, 0]);
}

#[test]
fn a_flow_ends_after_its_requests_or_its_duration_and_reads_no_further() {
    let folder = Folder::with(format!("{MQSIM}this line is never read\n"));
    let flow = Flow { requests: Some(2), ..Flow::replay("f", mqsim()) };
    assert_eq!(times(&folder.open(&flow).unwrap().collect::<Vec<_>>()), [100, 150]);
    let flow = Flow { duration_ns: Some(400), ..Flow::replay("f", mqsim()) };
    assert_eq!(times(&folder.open(&flow).unwrap().collect::<Vec<_>>()), [100, 150]);
    let short = Flow { duration_ns: Some(100), ..flow };
    assert_eq!(folder.refusal(&short), "t: the trace has no request within the flow's 100 ns");
}

#[test]
fn requests_beyond_the_drive_are_refused_or_folded() {
    // The drive has 2048 sectors.
    let trace = "0 0 2040 8 1\n0 0 2044 8 1\n0 0 4106 8 1\n0 0 18014398509481983 8 1\n";
    let told = Folder::with(trace).replay(TraceReplay { fold: true, ..mqsim() });
    let sectors: Vec<u64> = told.iter().map(|request| request.offset.0 / 512).collect();
    assert_eq!(sectors, [2040, 2040, 10, 2040]);
    let long = TraceReplay { fold: true, ..mqsim() };
    let told = [refusal(trace, mqsim()), refusal("0 0 0 2049 1\n", long)];
    insta::assert_snapshot!(told.join("\n"), @r#"
        t: line 2: 4096 bytes at byte 1046528: the drive ends at byte 1048576; fold = true (--fold) wraps addresses around
        t: line 1: 1049088 bytes at byte 0: the drive has only 1048576 bytes
    "#);
}

#[test]
fn a_hostile_trace_is_told_with_its_line() {
    let csv = || TraceReplay::new("t", TraceFormat::Csv);
    let header = "at_ns,operation,role,offset_bytes,length_bytes,latency_ns\n";
    let half = gzip(MQSIM);
    let wide = TraceReplay { logical_block_bytes: 1 << 60, ..mqsim() };
    let forever = TraceReplay { repeat: 3, ..mqsim() };
    let scaled = TraceReplay { time_scale: 1e9, ..mqsim() };
    let told = [
        refusal("", mqsim()),
        refusal("\n \n", mqsim()),
        refusal("1 0 0 8 1\n1 0 0 8\n", mqsim()),
        refusal("1 0 0 8 1\n\n\n1 0 0 8 7\n", mqsim()),
        refusal("1 0 0 0 1\n", mqsim()),
        refusal("5 0 0 8 1\n4 0 0 8 1\n", mqsim()),
        refusal("5 0 16 8 1\n", wide),
        refusal("9223372036854775808 0 0 8 1\n", forever),
        refusal("9223372036854775808 0 0 8 1\n", scaled),
        refusal([b'7'; 200_000], mqsim()),
        refusal([b"1 0 0 8 1\n".as_slice(), &[b'7'; 200_000]].concat(), mqsim()),
        refusal([header.as_bytes(), &[b'7'; 200_000]].concat(), csv()),
        refusal(gzip(&"x".repeat(50 << 20)), mqsim()),
        refusal(&half[..half.len() - 10], mqsim()),
        refusal([0x1f, 0x8b, 0xff, 0xff], mqsim()),
        refusal(format!("{header}1,read,database,0,512,9\n1,smell,database,0,512,9\n"), csv()),
        refusal(format!("{header}1,read,database,0,-512,9\n"), csv()),
        refusal(format!("{header}1,read,database,0\n"), csv()),
        refusal(format!("{header}1,\"read\n,database,0,512,9\n"), csv()),
        refusal(format!("{header}1,read,database,100,512,9\n"), csv()),
        refusal("offset,length\n0,512\n", csv()),
        refusal("at_ns,\u{0}\n", csv()),
        refusal(MQSIM, TraceReplay { path: "missing".into(), ..mqsim() }),
        refusal(MQSIM, TraceReplay { path: ".".into(), ..mqsim() }),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
        t: the trace has no request
        t: the trace has no request
        t: line 2: it has 4 of five fields: time_ns device first_sector sectors op; it reads '1 0 0 8'
        t: line 4: op is '7'; MQSim writes 0 for a write, 1 for a read; it reads '1 0 0 8 7'
        t: line 1: its length is 0; it must be at least 1 byte
        t: line 2: time goes back from 5 ns to 4 ns: sort the trace by time
        t: line 1: first sector 16 exceeds 2^64 bytes; it reads '5 0 16 8 1'
        workload: flow 'f': trace.repeat = 3: so many rounds of 9223372036854775808 ns exceed 64 bits
        t: line 1: its time, scaled to 9223372036854776000000000000 ns, exceeds 292 years
        t: line 1: a line is longer than 64 KiB: not a trace
        t: line 2: a line is longer than 64 KiB: not a trace
        t: line 2: a line is longer than 64 KiB: not a trace
        t: line 1: a line is longer than 64 KiB: not a trace
        t: incomplete deflate stream
        t: unexpected end of file
        t: line 3: operation is 'smell'; it must be one of read, write, trim, write_zeroes, flush; it reads '1,smell,database,0,512,9'
        t: line 2: length_bytes is '-512'; it must be a whole number, 0 or above, of at most 64 bits; it reads '1,read,database,0,-512,9'
        t: line 2: it has 4 fields, but the header 6; it reads '1,read,database,0'
        t: line 2: it has 2 fields, but the header 6; it reads '1,\"read'
        t: line 2: 512 bytes at byte 100: both must be multiples of the drive's logical block, 512 bytes; widen = true (--widen) widens requests to whole blocks
        t: line 1: the header has no at_ns; required are at_ns, operation, offset_bytes, length_bytes; it reads 'offset,length'
        t: line 1: the header has no operation; required are at_ns, operation, offset_bytes, length_bytes; it reads 'at_ns,\0'
        missing: No such file or directory (os error 2)
        .: not a regular file
    "#);
}

#[test]
fn a_trace_that_changes_under_the_replay_ends_it_with_a_reason() {
    // Longer than what is kept in memory.
    let lines = 70_000;
    let folder = Folder::with("100 0 0 8 1\n".repeat(lines));
    let mut source = folder.open(&Flow::replay("f", TraceReplay { repeat: 2, ..mqsim() })).unwrap();
    folder.write("100 0 0 8 1\ngarbage\n");
    // The replay comes to the end of what it had read ahead, in the midst of a line, or to the new file.
    assert!(source.by_ref().count() < 2 * lines);
    assert_eq!(source.next(), None);
    let failure = source.failure().unwrap().to_string();
    let (cut, garbage) = ("of five fields: time_ns device first_sector sectors op; it reads '1", "it reads 'garbage'");
    assert!(failure.contains(cut) || failure.contains(garbage), "{failure}");
}

#[test]
fn a_short_trace_is_played_from_memory_whatever_becomes_of_its_file() {
    let rounds = |repeat| Flow::replay("f", TraceReplay { repeat, ..mqsim() });
    let folder = Folder::with(MQSIM);
    let source = folder.open(&rounds(3)).unwrap();
    folder.write("garbage");
    let times: Vec<u64> = source.map(|request| request.at.0).collect();
    assert_eq!(times, [100, 150, 400, 500, 550, 800, 900, 950, 1200]);
}

#[test]
fn a_trace_is_played_alike_from_memory_and_from_its_file() {
    let trace: String = (0..70_000).map(|n| format!("{} 0 {} 8 {}\n", 7 * n, n * 8 % 2040, n % 2)).collect();
    let short: String = trace.lines().take(5_000).map(|line| format!("{line}\n")).collect();
    let twice = |text: &str| Folder::with(text).replay(TraceReplay { repeat: 2, time_scale: 3.0, ..mqsim() });
    let (long, short) = (twice(&trace), twice(&short));
    assert_eq!(short[..5_000], long[..5_000]);
    let second = |played: &[FlowRequest], round: usize| {
        let start = played[round - 1].at.0;
        played[round..round + 5_000].iter().map(|request| request.at.0 - start).collect::<Vec<_>>()
    };
    assert_eq!(second(&short, 5_000), second(&long, 70_000));
}

#[test]
fn a_flow_that_ends_by_time_in_its_first_round_has_no_second_one() {
    let flow = Flow { duration_ns: Some(200), ..Flow::replay("f", TraceReplay { repeat: 2, ..mqsim() }) };
    assert_eq!(Folder::with(MQSIM).open(&flow).unwrap().count(), 2);
}

#[test]
fn the_tpcc_trace_of_mqsim_has_6999_requests() {
    let trace = shared("mqsim/tpcc-small.trace.gz");
    if !trace.exists() {
        eprintln!("SKIPPED: {} is not there", trace.display());
        return;
    }
    let replay = TraceReplay { repeat: 2, ..TraceReplay::new(trace, TraceFormat::Mqsim) };
    let open = |replay| {
        FlowSource::open(&Flow::replay("tpcc", replay), 0, 1, ByteSize::gib(256), ByteSize(512), Path::new("/"))
            .unwrap()
    };
    let told: Vec<FlowRequest> = open(replay.clone()).collect();
    assert_eq!(told.len(), 2 * 6999);
    assert_eq!(told[0], request(938_513_000, Operation::Write, 264_719_034 * 512, 8192));
    assert_eq!(told[6998], request(1_075_002_000, Operation::Write, 160_057_354 * 512, 8192));
    assert_eq!(told[6999].at, Nanos(1_075_002_000 + 938_513_000));
    let reads = told[..6999].iter().filter(|request| request.operation == Operation::Read).count();
    assert_eq!(reads, 4381);
    assert_eq!(open(TraceReplay { device: Some(8), repeat: 1, ..replay }).count(), 150);
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200), format in 0..3) {
        let format = [TraceFormat::Mqsim, TraceFormat::Disksim, TraceFormat::Csv][format as usize];
        let _ = Folder::with(bytes).open(&Flow::replay("f", TraceReplay::new("t", format)));
    }

    #[test]
    fn nearly_right_lines_give_requests_on_the_drive_or_an_error(lines in "([0-9.]{1,12} [0-9] [0-9]{1,6} [0-9]{1,4} [0-9a-f]{1,2}\n){1,9}", fold: bool) {
        for format in [TraceFormat::Mqsim, TraceFormat::Disksim] {
            let replay = TraceReplay { fold, repeat: 2, ..TraceReplay::new("t", format) };
            if let Ok(source) = Folder::with(&lines).open(&Flow::replay("f", replay)) {
                for request in source {
                    prop_assert!(request.offset.0 + request.length.0 <= CAPACITY.0);
                }
            }
        }
    }
}
