//! What tools print beside their data, and what they tell of requests in ways of their own.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use flashwise_block::Operation;
use flashwise_trace::capture::{self, CaptureError, TracedCommand};
use flashwise_trace::{ReadOptions, TraceFormat, TraceReader, TraceRecord, TraceWriter, convert};

/// What was read.
struct Told {
    format: TraceFormat,
    requests: Vec<TraceRecord>,
    files: Vec<String>,
    remarks: Vec<String>,
}

impl Told {
    fn latencies_ns(&self) -> Vec<Option<u64>> {
        self.requests.iter().map(|record| record.latency.map(|latency| latency.0)).collect()
    }

    /// Kinds and lengths.
    fn asked(&self) -> Vec<(Operation, u64)> {
        self.requests.iter().map(|record| (record.operation, record.length.0)).collect()
    }

    fn says(&self, words: &str) -> bool {
        self.remarks.iter().any(|remark| remark.contains(words))
    }
}

fn told_by(name: &str, bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Told, String> {
    let bytes = Cursor::new(bytes.as_ref().to_vec());
    let mut reader = TraceReader::read(bytes, name, options).map_err(|error| error.to_string())?;
    let requests: Result<Vec<_>, _> = reader.by_ref().collect();
    let requests = requests.map_err(|error| error.to_string())?;
    let (format, files, remarks) = (reader.detection().format, reader.files().to_vec(), reader.remarks());
    Ok(Told { format, requests, files, remarks })
}

fn told(text: &str) -> Told {
    told_by("trace", text, &ReadOptions::default()).unwrap()
}

fn refusal(name: &str, text: &str) -> String {
    told_by(name, text, &ReadOptions::default()).map(|told| told.requests.len()).unwrap_err()
}

fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(name)
}

fn told_of_file(name: &str) -> Result<Told, String> {
    told_by(name, std::fs::read(tool(name)).unwrap(), &ReadOptions::default())
}

const ISSUE: &str = "259,0    0        2     0.000001000   123  D  WS 2048 + 8 [fio]\n";
const COMPLETION: &str = "259,0    0        3     0.000090000     0  C  WS 2048 + 8 [0]\n";

#[test]
fn blkparse_prints_its_input_files_and_its_sums_before_between_and_behind_events() {
    let sums = "CPU0 (sda):\n Reads Queued:           0,        0KiB\t Writes Queued:           5,       20KiB\n \
                Read Dispatches:        0,        0KiB\t Write Dispatches:        5,       20KiB\n \
                IO unplugs:             0        \t Timer unplugs:           0\n\n\
                fio (123)\n Reads Queued:           0,        0KiB\n\
                Throughput (R/W): 0KiB/s / 20KiB/s\nEvents (sda): 15 entries\nSkips: 2 forward (17 -   0.1%)\n";
    let input = "Input file sda.blktrace.0 added\n";
    let text = format!("{input}{ISSUE}{sums}{COMPLETION}{input}");
    let told = told(&text);
    assert_eq!((told.format, told.latencies_ns()), (TraceFormat::Blkparse, vec![Some(89_000)]));
    assert!(told.says("names of blkparse's input files (2)") && told.says("lines of blkparse's summary ("));
    assert!(told.says("blkparse missed 17 events"));
    // A line of data that is damaged is still an error.
    assert!(refusal("t", &format!("{ISSUE}{COMPLETION}{ISSUE}{COMPLETION}259,0 0 3 0.0001 5 D\n")).contains("line 5"));
}

#[test]
fn blktrace_says_what_it_dropped() {
    let text = format!(
        "{ISSUE}{COMPLETION}=== sda ===\n  CPU  0:  15 events, 1 KiB data\n  Total:  15 events (dropped 4),  1 KiB data\n"
    );
    assert!(told(&text).says("blktrace lost 4 events"));
}

#[test]
fn letters_of_newer_kernels_never_refuse_and_an_append_to_a_zone_is_a_write() {
    let line =
        |at: u32, action: &str, rwbs: &str| format!("259,0 3 1 0.{at:09} 697 {action} {rwbs} 223488 + 32 [db]\n");
    let both = |at: u32, rwbs: &str| line(at, "D", rwbs) + &line(at + 5, "C", rwbs);
    let text: String = ["WSU", "RQ", "ZA", "ZR", "ZRA", "ZO", "ZC", "ZF"]
        .into_iter()
        .zip(1..)
        .map(|(rwbs, at)| both(at * 10, rwbs))
        .collect();
    let told = told(&text);
    let (read, write) = (Operation::Read, Operation::Write);
    assert_eq!(told.asked(), [(write, 16_384), (read, 16_384), (write, 16_384)]);
    for name in ["zone resets (ZR) (1)", "resets of all zones (ZRA) (1)", "zone opens (ZO) (1)", "zone closes (ZC) (1)"]
    {
        assert!(told.says(name), "{:?}", told.remarks);
    }
    let text = "  db-1234  [001] .....  1234.667890: block_rq_issue: 259,0 WSU 16384 () 4096 + 32 be,0,4 [db]\n";
    assert_eq!(self::told(text).asked(), [(write, 16_384)]);
}

#[test]
fn appends_to_a_zone_lie_where_they_landed_and_each_has_its_own_completion() {
    let text = "259,0 3 1 0.000001000 697 D ZA 1024 + 8 [db]\n259,0 3 2 0.000002000 697 D ZA 1024 + 8 [db]\n\
                259,0 3 3 0.000009000 0 C ZA 1032 + 8 [0]\n259,0 3 4 0.000011000 0 C ZA 1024 + 8 [0]\n";
    let told = told(text);
    let places: Vec<u64> = told.requests.iter().map(|record| record.offset.0 / 512).collect();
    assert_eq!((places, told.latencies_ns()), (vec![1032, 1024], vec![Some(8_000), Some(9_000)]));
}

#[test]
fn files_become_devices_where_a_format_has_no_files() {
    let log = "fio version 3 iolog\n1 a write 0 4096\n2 b read 0 4096\n3 a sync\n";
    let written = |format| {
        let mut reader = TraceReader::read(Cursor::new(log), "t", &ReadOptions::default()).unwrap();
        let mut bytes = Vec::new();
        let done = convert(&mut reader, TraceWriter::new(format, &mut bytes, "out").unwrap()).unwrap();
        (String::from_utf8(bytes).unwrap(), done.losses.files_as_devices, done.losses.merged)
    };
    assert_eq!(written(TraceFormat::Mqsim), ("1000 0 0 8 0\n2000 1 0 8 1\n".to_owned(), 2, 0));
    assert_eq!(written(TraceFormat::Pages), ("W 0\nR 0\n".to_owned(), 0, 2));
}

#[test]
fn a_cgroup_in_the_payload_and_the_events_of_version_8_are_read() {
    for name in ["blktrace-cgroup.bin", "blktrace-version-8.bin"] {
        let told = told_of_file(name).unwrap();
        assert_eq!(told.asked(), [(Operation::Write, 4096); 5], "{name}");
        assert_eq!(told.latencies_ns(), [Some(89_000); 5], "{name}");
    }
}

#[test]
fn numbers_that_are_missing_in_a_binary_trace_are_lost_events() {
    let mut bytes = std::fs::read(tool("blktrace-version-8.bin")).unwrap();
    // The third event, with its number.
    bytes.drain(128..192);
    let told = told_by("t", &bytes, &ReadOptions::default()).unwrap();
    assert!(told.says("blktrace lost 1 events"), "{:?}", told.remarks);
}

const EVENTS: &str = "             fio-1234  [001]  1234.567890: block_rq_issue:       259,0 R 4096 () 2048 + 8 [fio]\n          \
                      <idle>-0     [001]  1234.567990: block_rq_complete:    259,0 R () 2048 + 8 [0]\n";

#[test]
fn trace_cmd_prints_its_processors_and_the_kernel_what_it_lost() {
    let losses = [
        ("CPU:1 [5 EVENTS DROPPED]", "the kernel lost 5 events"),
        ("CPU:3 [LOST 17 EVENTS]", "the kernel lost 17 events"),
        ("CPU:1 [EVENTS DROPPED]", "an unknown number"),
        ("# entries-in-buffer/entries-written: 100/250   #P:4", "the kernel lost 150 events"),
        ("swapper 0 [000] 12.5: PERF_RECORD_LOST lost 9", "the kernel lost 9 events"),
    ];
    for (line, words) in losses {
        let told = told(&format!("version = 6\nCPU 1 is empty\ncpus=2\n{line}\n{EVENTS}"));
        assert_eq!((told.format, told.latencies_ns()), (TraceFormat::Tracefs, vec![Some(100_000)]));
        assert!(told.says(words), "{line}: {:?}", told.remarks);
    }
    // A line of data that is damaged is still an error.
    assert!(refusal("t", &format!("{EVENTS}fio-1 [001] 1.5: block_rq_issue: 259 R\n")).contains("line 3"));
}

#[test]
fn call_chains_of_perf_and_of_tracefs_are_passed_over() {
    let text = "fio  1234 [001]  1234.567890: block:block_rq_issue: 259,0 WS 4096 () 2048 + 8 [fio]\n\
                \tffffffff81500000 blk_mq_start_request+0x1a0 ([kernel.kallsyms])\n\
                \t        7f0000000001 pwrite64+0x11 (/usr/lib/libc.so.6)\n\n\
                swapper     0 [001]  1234.567990:          1 block:block_rq_complete: 259,0 WS () 2048 + 8 [0]\n\
                 => blk_mq_end_request\n";
    let told = told(text);
    assert_eq!((told.latencies_ns(), told.requests[0].process), (vec![Some(100_000)], Some(1234)));
    assert!(told.says("frames of call chains (3)"), "{:?}", told.remarks);
}

#[test]
fn a_request_that_the_driver_gives_back_counts_once_with_the_latency_of_its_last_issue() {
    let blkparse = "259,0  0  1  0.000300000  5  D   W 9000 + 8 [fio]\n259,0  0  2  0.000310000  5  R   W 9000 + 8 [0]\n\
                    259,0  0  3  0.000320000  5  D   W 9000 + 8 [fio]\n259,0  0  4  0.000390000  5  C   W 9000 + 8 [0]\n";
    let event = |at: u32, name: &str, bytes: &str| {
        format!("fio-1 [001] ..... 12.{at:06}: {name}: 259,0 R {bytes}() 2048 + 8 none,0,0 [0]\n")
    };
    let tracefs = [
        (890, "block_rq_issue", "4096 "),
        (895, "block_rq_requeue", ""),
        (899, "block_rq_issue", "4096 "),
        (990, "block_rq_complete", ""),
    ];
    let tracefs: String = tracefs.iter().map(|(at, name, bytes)| event(*at, name, bytes)).collect();
    for (text, latency) in [(blkparse, 70_000), (tracefs.as_str(), 91_000)] {
        let told = told(text);
        assert_eq!(told.latencies_ns(), [Some(latency)]);
        assert!(told.says("1 requests were requeued by the driver"), "{:?}", told.remarks);
    }
}

#[test]
fn without_issue_events_requests_are_taken_where_they_were_queued() {
    let text = "  8,16   1        1     1.427376394  5529  Q  WS 274432 + 8 [dbwriter]\n  \
                8,16   1        2     1.427384090  5529  G  WS 274432 + 8 [dbwriter]\n  \
                8,16   1        3     1.427390000  5529  Q   R 1274432 + 64 [dbreader]\n";
    let read = told(text);
    assert_eq!(read.asked(), [(Operation::Write, 4096), (Operation::Read, 32_768)]);
    assert!(
        read.says("it has no issue events (D): requests are taken from the queue events (Q)"),
        "{:?}",
        read.remarks
    );
    let text = "fio-1 [001] ..... 12.000890: block_bio_queue: 8,16 WS 2048 + 8 [fio]\n\
                fio-1 [001] ..... 12.000990: block_bio_complete: 8,16 WS 2048 + 8 [0]\n";
    let read = told(text);
    assert_eq!((read.latencies_ns(), read.asked()), (vec![Some(100_000)], vec![(Operation::Write, 4096)]));
    assert!(read.says("block_bio_queue"), "{:?}", read.remarks);
}

#[test]
fn a_text_of_blkparse_f_is_read_with_its_format() {
    let text = "0.000000000 259,0   Q WS 2048 8 fio\n0.000001000 259,0   D WS 2048 8 fio\n0.000090000 259,0   C WS 2048 8 (null)\n\
                Input file bt-plain.blktrace.0 added\n";
    let options =
        ReadOptions { layout: Some("%T.%9t %D %a %d %S %n %C\\n".into()), ..ReadOptions::of(TraceFormat::Blkparse) };
    let told = told_by("t", text, &options).unwrap();
    assert_eq!((told.latencies_ns(), told.asked()), (vec![Some(89_000)], vec![(Operation::Write, 4096)]));
    let options = ReadOptions { layout: Some("%T %D %d %S %n".into()), ..options };
    assert_eq!(told_by("t", text, &options).err().unwrap(), "t: format of blkparse -f: it lacks %a, the action");
}

#[test]
fn biosnoop_is_read_by_its_line_of_names() {
    let tables = [
        (
            "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P LAT(ms)\n\
             11.269319   kworker/u8:4   278481  vda       W 113638304  8192   R    5.49\n\
             11.272153   kworker/u8:4   278481  vda       R 114101768  212992 S    8.51\n",
            vec![8_510_000, 5_490_000],
        ),
        (
            "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  P QUE(ms) LAT(ms)\n\
             11.269319   two words      278481  vda       W 113638304  8192   R    0.01    5.49\n",
            vec![5_490_000],
        ),
        (
            "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n\
             23:59:59.999 mkfs           163467  sde     WSM  41944043   524288    1.422\n\
             00:00:00.001 mkfs           163467  sde     R    41946091   524288    1.500\n",
            vec![1_422_000, 1_500_000],
        ),
        (
            "Tracing block device I/O... Hit Ctrl-C to end.\n\
             TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n\
             0.000000    dd             24852   sda       W 26236512   8192      3.00\n\
             0.000150    ?              0                 R 0          8         2.00\n\
             Possibly lost 7 samples\n^C\n",
            vec![3_000_000, 2_000_000],
        ),
    ];
    for (text, latencies) in tables {
        let told = told(text);
        assert_eq!(told.format, TraceFormat::Biosnoop);
        let found: Vec<u64> = told.requests.iter().map(|record| record.latency.unwrap().0).collect();
        assert_eq!(found, latencies, "{text}");
        let times: Vec<u64> = told.requests.iter().map(|record| record.at.0).collect();
        assert!(times.is_sorted() && times.last().unwrap() - times[0] < 10_000_000, "{times:?}");
    }
    assert!(told(tables_with_loss()).says("biosnoop lost 7 events"));
}

fn tables_with_loss() -> &'static str {
    "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.5 dd 1 sda W 8 8192 3.00\nPossibly lost 7 samples\n"
}

#[test]
fn requests_that_were_in_flight_when_the_recording_started_keep_their_distances() {
    let text = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n0.000000 a 5 sda R 2048 4096 3.00\n0.001000 a 5 sda R 2056 4096 1.00\n\
                0.010000 a 5 sda R 2064 4096 1.00\n";
    let told = told(text);
    let times: Vec<u64> = told.requests.iter().map(|record| record.at.0).collect();
    assert_eq!(times, [0, 3_000_000, 12_000_000]);
    assert!(told.says("3000000 ns earlier"), "{:?}", told.remarks);
}

#[test]
fn what_spreadsheets_and_data_frames_make_of_a_trace_is_the_same_trace() {
    let rows = ["1,R,0,4096,1577808000000000", "1,W,8192,4096,1577808000000001"];
    let plain = told(&rows.join("\n")).requests;
    let names = "device_id,opcode,offset,length,timestamp";
    let quoted = |row: &str| row.split(',').map(|field| format!("\"{field}\"")).collect::<Vec<_>>().join(",");
    let forms = [
        format!("\u{feff}{}\n{}\n", rows[0], rows[1]),
        format!("{names}\n{}\n{names}\n{}\n", rows[0], rows[1]),
        format!("dev,op,off,len,ts\r\n{}\r\n{}\r\n", rows[0], rows[1]),
        format!("{}\n{}\n{}\n", quoted(names), quoted(rows[0]), quoted(rows[1])),
        format!("{names}\n{}\n{}\n", rows[0], rows[1]).replace(',', ";"),
        format!(",{names}\n0,{}\n1,{}\n", rows[0], rows[1].replace("4096", "4096.0")),
        "timestamp,device_id,opcode,length,offset\n1577808000000000,1,R,4096,0\n1577808000000001,1,W,4096,8192\n"
            .to_owned(),
    ];
    for text in forms {
        let read = told(&text);
        assert_eq!((read.format, &read.requests), (TraceFormat::Alibaba, &plain), "{text}");
    }
    let wide: Vec<u8> =
        format!("\u{feff}{}\r\n{}\r\n", rows[0], rows[1]).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(told_by("t", wide, &ReadOptions::default()).unwrap().requests, plain);
    let vscsi = told("\u{feff}version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,4096,42932746\n");
    assert_eq!(vscsi.asked(), [(Operation::Write, 512), (Operation::Read, 4096)]);
}

#[test]
fn the_same_disk_number_on_two_hosts_is_two_devices() {
    let told = told("128166372003061629,hm,0,Read,0,4096,100\n128166372003061630,web,0,Write,0,4096,\n");
    let devices: Vec<_> = told.requests.iter().map(|record| record.device).collect();
    assert_eq!((devices, told.requests[1].latency), (vec![Some(0), Some(65_536)], None));
    assert!(told.says("it has 2 hosts"), "{:?}", told.remarks);
}

#[test]
fn fio_passes_over_actions_that_it_does_not_know_and_so_does_this_reader() {
    let text = "fio version 3 iolog\n20 f.dat add\n30 f.dat open\n100 f.dat write 0 4096\n300 f.dat sync_file_range 0 8192\n\
                400 f.dat write 8192 4096\n500 f.dat close\n";
    let told = told(text);
    assert_eq!(told.asked(), [(Operation::Write, 4096); 2]);
    assert!(told.says("actions sync_file_range (1)"), "{:?}", told.remarks);
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unknown-action.iolog");
    std::fs::write(&log, text).unwrap();
    let Some(output) =
        run("fio", &["--name=x", "--filename=f.dat", "--size=64k", "--read_iolog", log.to_str().unwrap()])
    else {
        return;
    };
    assert!(output.contains("bad iolog file action: sync_file_range"), "{output}");
}

/// What a tool prints, where it is installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    match Command::new(program).args(arguments).current_dir(folder.path()).output() {
        Ok(output) => {
            Some(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

#[test]
fn logs_of_averages_and_rates_are_refused_in_words() {
    let averages = "10, 1011498, 0, 0, 0, 0\n11, 7911, 1, 0, 0, 0\n";
    let told = refusal("averaged_clat.1.log", averages);
    assert!(told.contains("all of its sizes are 0: it contains averages (log_avg_msec) and no requests"), "{told}");
    let rates = told_of_file("run_iops.1.log").err().unwrap();
    assert!(rates.contains("a log of rates (write_iops_log) of fio and contains no requests"), "{rates}");
    // A pipe has no name.
    let rates = std::fs::read_to_string(tool("run_iops.1.log")).unwrap();
    assert!(
        refusal("standard input", &rates).contains("all of its values are 1"),
        "{}",
        refusal("standard input", &rates)
    );
    let times = "10, 1011498, 0, 4096, 0, 0\n11, 7911, 1, 4096, 0, 0\n";
    for (name, words) in [("x_bw.1.log", "bandwidths"), ("x_slat.log", "until requests were submitted")] {
        assert!(refusal(name, times).contains(words), "{}", refusal(name, times));
    }
    assert_eq!(told_by("x_clat.1.log", times, &ReadOptions::default()).unwrap().requests.len(), 2);
}

#[test]
fn a_copy_is_a_read_and_a_write_and_what_cannot_be_seen_is_told() {
    let told = told_of_file("copies.txt").unwrap();
    let asked = |operation| -> u64 {
        told.requests.iter().filter(|record| record.operation == operation).map(|record| record.length.0).sum()
    };
    assert_eq!((asked(Operation::Read), asked(Operation::Write)), (1_500_000, 1_500_000));
    let places: Vec<_> = told
        .requests
        .iter()
        .map(|r| (r.operation, r.offset.0, told.files[r.file.unwrap_or(0) as usize].as_str()))
        .collect();
    assert!(places.contains(&(Operation::Write, 2_000_000, "/data/c.dat")), "{places:?}");
    assert!(told.says("msync (1)"), "{:?}", told.remarks);
}

#[test]
fn only_maps_of_files_that_may_hold_data_are_counted() {
    let map = |file: &str| {
        format!("17 1700000000.1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3<{file}>, 0) = 0x7f <0.000010>\n")
    };
    let read = "17 1700000000.2 pread64(4</d/x>, \"\", 4096, 0) = 4096 <0.000010>\n";
    let told = told(&[&map("/usr/lib/gconv/gconv-modules.cache"), &map("/d/data.mdb"), read].concat());
    assert!(told.says("mmap of shared files (1)"), "{:?}", told.remarks);
}

#[test]
fn requests_of_asynchronous_io_are_read_out_of_their_submission() {
    let text = "17 1700000000.1 io_submit(0x7f, 2, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</d/ibdata1>, aio_buf=\"\\0a}, {\"..., aio_nbytes=16384, aio_offset=32768}, {aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=4</d/x>, aio_buf=0x7f, aio_nbytes=4096, aio_offset=0}]) = 2 <0.000010>\n\
                17 1700000000.2 sendfile(5<TCP:[1]>, 4</d/x>, [0] => [4096], 4096) = 4096 <0.000010>\n\
                17 1700000000.3 write(1</dev/pts/0<char 136:0>>, \"x\", 1) = 1 <0.000010>\n\
                hello from the program\n";
    let told = told(text);
    assert_eq!(told.asked(), [(Operation::Write, 16_384), (Operation::Read, 4096), (Operation::Read, 4096)]);
    assert!(told.says("copies from or to sockets and pipes (1)"), "{:?}", told.remarks);
    assert!(
        told.says("reads and writes of sockets, pipes and terminals (1)")
            && told.says("lines that are not system calls (1)")
    );
}

#[test]
fn a_trace_packed_by_bzip2_or_in_an_archive_is_read_and_what_is_not_read_is_named() {
    for (name, packing) in [("Financial.spc.bz2", "bzip2"), ("part.tgz", "gzip, tar")] {
        let mut reader = TraceReader::open(&tool(name), &ReadOptions::default()).unwrap();
        assert_eq!(reader.packing(), packing);
        assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 200, "{name}");
    }
    for (magic, what) in [(&b"PK\x03\x04rest"[..], "a zip archive"), (b"\x04\x22\x4D\x18", "compressed with lz4")] {
        let error = told_by("t", magic, &ReadOptions::default()).err().unwrap();
        assert_eq!(error, format!("t: it is {what}: unpack it first"));
    }
}

fn oracle_general(records: impl IntoIterator<Item = (u32, u64, u32, i64)>) -> Vec<u8> {
    let bytes = |(at, id, size, next): (u32, u64, u32, i64)| {
        [&at.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    records.into_iter().flat_map(bytes).collect()
}

#[test]
fn objects_of_no_size_speak_against_nothing() {
    for never in [-1, 0, i64::MAX] {
        let record = |n: u32| {
            (
                n / 50,
                u64::from(n * 7 % 200),
                if n.is_multiple_of(10) { 0 } else { 100 },
                if n.is_multiple_of(9) { never } else { i64::from(n) + 90 },
            )
        };
        let bytes = oracle_general((0..3000).map(record));
        let told = told_by("standard input", &bytes, &ReadOptions::default()).unwrap();
        assert_eq!((told.format, told.requests.len()), (TraceFormat::OracleGeneral, 3000), "never is {never}");
    }
    // Page numbers that grow, as words of 4 bytes, are none.
    let pages: Vec<u8> = (1_u32..6001).flat_map(u32::to_le_bytes).collect();
    assert_eq!(told_by("t", &pages, &ReadOptions::default()).unwrap().format, TraceFormat::U32Le);
    // A name breaks the tie.
    let odd = oracle_general((0..100_u32).map(|n| (n, u64::from(n), 1 << 31, -5)));
    assert!(told_by("t", &odd, &ReadOptions::default()).is_err());
    assert_eq!(told_by("t.oracleGeneral.zst", &odd, &ReadOptions::default()).unwrap().requests.len(), 100);
}

#[test]
fn numbers_of_objects_that_are_hashes_are_no_sectors() {
    let hash = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bytes = oracle_general((0..500_u32).map(|n| (n, hash(u64::from(n % 70) + 1), 100, -1)));
    let read = told_by("t", &bytes, &ReadOptions::default()).unwrap();
    assert!(read.says("each number is taken as a byte offset"), "{:?}", read.remarks);
    let ids = ReadOptions { object_ids: true, ..ReadOptions::default() };
    let told = told_by("t", &bytes, &ids).unwrap();
    assert_eq!((told.requests[3].offset.0, told.requests[3].length.0), (hash(4), 0));
}

#[test]
fn any_text_of_columns_is_read_by_a_layout() {
    let columns = |layout: &str| ReadOptions { layout: Some(layout.into()), ..ReadOptions::of(TraceFormat::Columns) };
    let read = |layout: &str, text: &str| told_by("t", text, &columns(layout));
    let systor = "Timestamp,Response,IOType,LUN,Offset,Size\n1455592200.190474000,0.000264000,R,0,129875968,32768\n1455592200.190586000,,W,1,129908736,4096\n";
    let layout = "time=1:s,latency=2:s,op=3,device=4,offset=5:bytes,length=6:bytes,skip=1,separator=comma";
    let told = read(layout, systor).unwrap();
    assert_eq!(
        (told.asked(), told.latencies_ns()),
        (vec![(Operation::Read, 32_768), (Operation::Write, 4096)], vec![Some(264_000), None])
    );
    let told = read("offset=1:sectors,length=2:bytes,time=3:s", "2048,4096,0.000125\n4096,8192,0.000310\n").unwrap();
    assert_eq!((told.requests[1].at.0, told.requests[1].offset.0), (310_000, 4096 * 512));
    assert!(told.says("the layout has no operations"));
    let named = "#AT.D,OP.S,LBA.I,NBLKS.I,LAT.I\n1.5,0,0x10,8,100\n2.5,1,16,8,100\n";
    let told =
        read("time=AT.D:us,op=OP.S,offset=LBA.I:sectors,length=NBLKS.I:sectors,latency=LAT.I:us,read=0,write=1", named)
            .unwrap();
    assert_eq!(told.asked(), [(Operation::Read, 4096), (Operation::Write, 4096)]);
    assert_eq!((told.requests[0].at.0, told.requests[0].offset.0), (1500, 8192));
    // Files that were put together have their line of names again, and a wrong name is no chatter.
    let by_name = "time=AT.D:us,op=OP.S,offset=LBA.I:sectors,length=NBLKS.I:sectors,read=0,write=1";
    assert_eq!(read(by_name, &named[1..].repeat(2)).unwrap().requests.len(), 4);
    let error = read(&by_name.replace("LBA.I", "LBA"), &named[1..]).err().unwrap();
    assert!(error.starts_with("t: line 1: ") && error.contains("LBA"), "{error}");
    let error = read("op=2,offset=1:bytes", "4096 7\n").err().unwrap();
    assert_eq!(error, "t: line 1: op is '7': define it in the layout, for example read=7; it reads '4096 7'");
    let error = told_by("t", systor, &ReadOptions::of(TraceFormat::Columns)).err().unwrap();
    assert!(error.contains("columns requires a layout: --trace-format columns:"), "{error}");
}

#[test]
fn a_request_is_found_by_the_line_that_it_stands_in_however_late_it_is_given() {
    let line = |n: u64| format!("0.{n:03}000 a 5 sda R {} 4096 0.10\n", 2048 + n * 8);
    let text = format!("TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n{}", (0..30).map(line).collect::<String>());
    let mut reader = TraceReader::read(Cursor::new(text), "t", &ReadOptions::default()).unwrap();
    for number in 2..32 {
        reader.next_record().unwrap().unwrap();
        assert_eq!(reader.place().number(), number);
    }
    let mut reader =
        TraceReader::read(Cursor::new(format!("{ISSUE}{COMPLETION}").repeat(3)), "t", &ReadOptions::default()).unwrap();
    let mut places = Vec::new();
    while reader.next_record().unwrap().is_some() {
        places.push(reader.place().number());
    }
    assert_eq!(places, [1, 3, 5]);
}

#[test]
fn a_request_of_more_than_any_drive_moves_is_a_bad_line() {
    let text = format!("1,W,0,4096,10\n1,W,0,{},10\n", 1_u64 << 50);
    assert!(
        refusal("t", &text).starts_with("t: line 2: the request is 1125899906842624 bytes long"),
        "{}",
        refusal("t", &text)
    );
}

/// One event of blktrace, version 7.
fn event(sequence: u32, at: u64, action: u32, sector: u64, bytes: u32) -> Vec<u8> {
    let mut event = Vec::new();
    for word in [0x6561_7407, sequence] {
        event.extend(u32::to_le_bytes(word));
    }
    event.extend(at.to_le_bytes());
    event.extend(sector.to_le_bytes());
    for word in [bytes, action, 77, 8 << 20, 0, 0] {
        event.extend(u32::to_le_bytes(word));
    }
    event
}

/// A write, and a read that the driver gives back once.
fn recording() -> Vec<u8> {
    const WRITE: u32 = 1 << 17 | 1 << 24;
    const READ: u32 = 1 << 16 | 1 << 24;
    [
        event(1, 1_000, 1 | WRITE | 1 << 20, 2048, 4096),
        event(2, 2_000, 7 | WRITE | 1 << 22, 2048, 4096),
        event(3, 91_000, 8 | WRITE | 1 << 23, 2048, 4096),
        event(4, 100_000, 7 | READ | 1 << 22, 4096, 8192),
        event(5, 110_000, 6 | READ | 1 << 21, 4096, 8192),
        event(6, 120_000, 7 | READ | 1 << 22, 4096, 8192),
        event(7, 200_000, 8 | READ | 1 << 23, 4096, 8192),
    ]
    .concat()
}

#[test]
fn a_recording_without_issue_events_is_read_where_requests_were_queued() {
    const WRITE: u32 = 1 << 17 | 1 << 24;
    let queued = [event(1, 1_000, 1 | WRITE | 1 << 20, 2048, 4096), event(2, 91_000, 8 | WRITE | 1 << 23, 2048, 4096)];
    let told = told_by("t", queued.concat(), &ReadOptions::default()).unwrap();
    assert_eq!((told.asked(), told.latencies_ns()), (vec![(Operation::Write, 4096)], vec![Some(90_000)]));
    assert!(told.says("it has no issue events: requests are taken from the queue events"), "{:?}", told.remarks);
}

#[test]
fn what_the_real_blkparse_prints_of_a_recording_is_the_same_trace() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sda.blktrace.0"), recording()).unwrap();
    let binary = told_by("sda.blktrace.0", recording(), &ReadOptions::default()).unwrap();
    assert_eq!(
        (binary.asked(), binary.latencies_ns()),
        (vec![(Operation::Write, 4096), (Operation::Read, 8192)], vec![Some(89_000), Some(80_000)])
    );
    assert!(binary.says("1 requests were requeued"), "{:?}", binary.remarks);
    let format = "%T.%9t %D %a %d %S %n %C\\n";
    for options in [&[][..], &["-q"], &["-t"], &["-s"], &["-q", "-f", format]] {
        let arguments = [options, &["-D", folder.path().to_str().unwrap(), "-i", "sda"]].concat();
        let Some(text) = run("blkparse", &arguments) else { return };
        let layout = options.contains(&"-f").then(|| format.into());
        let reading = match &layout {
            Some(_) => ReadOptions { layout, ..ReadOptions::of(TraceFormat::Blkparse) },
            None => ReadOptions::default(),
        };
        let told =
            told_by("standard input", &text, &reading).unwrap_or_else(|error| panic!("{options:?}: {error}\n{text}"));
        assert_eq!((told.asked(), told.latencies_ns()), (binary.asked(), binary.latencies_ns()), "{options:?}\n{text}");
        assert!(
            told.says("1 requests were requeued") && told.says("names of blkparse's input files (1)"),
            "{:?}",
            told.remarks
        );
    }
}

#[test]
fn what_the_real_fio_logs_is_read_or_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let job = |options: &[&str]| {
        let file = format!("--filename={}", path("f.dat"));
        let job = ["--name=x", "--rw=randrw", "--bs=4k", "--size=64k", "--ioengine=psync", &file];
        run("fio", &[&job[..], options].concat())
    };
    let iolog = format!("--write_iolog={}", path("iolog"));
    if job(&[&iolog, "--sync_file_range=write:4"]).is_none() {
        return;
    }
    let read = |name: &str| told_by(name, std::fs::read(folder.path().join(name)).unwrap(), &ReadOptions::default());
    let told = read("iolog").unwrap();
    assert_eq!(told.requests.len(), 16);
    assert!(told.says("actions sync_file_range ("), "{:?}", told.remarks);
    let run_log = format!("--write_lat_log={}", path("run"));
    let rates = format!("--write_iops_log={}", path("run"));
    job(&[&run_log, &rates, "--log_offset=1"]);
    assert_eq!(read("run_clat.1.log").unwrap().requests.len(), 16);
    for (name, words) in [("run_iops.1.log", "a log of rates"), ("run_slat.1.log", "until requests were submitted")] {
        if folder.path().join(name).exists() {
            let error = read(name).err().unwrap();
            assert!(error.contains(words), "{error}");
        }
    }
    let averages = format!("--write_lat_log={}", path("mean"));
    job(&[&averages, "--log_offset=1", "--log_avg_msec=1"]);
    let error = read("mean_clat.1.log").err().unwrap();
    assert!(error.contains("it contains averages (log_avg_msec)"), "{error}");
}

/// Bytes that were issued as writes, by the lines of a text of events.
fn written_by_lines(text: &str) -> u64 {
    let issues = text.lines().filter_map(|line| line.split_once("block_rq_issue:"));
    let words = issues.map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words[1].contains('W')).map(|words| words[2].parse::<u64>().unwrap()).sum()
}

/// They need root and a drive below the temporary directory.
#[test]
fn what_the_real_perf_and_trace_cmd_print_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, file) = (path("data"), format!("of={}", path("f.dat")));
    let events = ["-e", "block:block_rq_issue", "-e", "block:block_rq_complete", "-o", &data];
    let dd = ["dd", "if=/dev/zero", &file, "bs=4k", "count=16", "oflag=direct"];
    for (program, record, report) in [
        ("perf", [&["record", "-a", "-g", "-q"], &events[..], &["--"], &dd].concat(), ["script", "-i", &data]),
        ("trace-cmd", [&["record", "-q"], &events[..], &dd].concat(), ["report", "-i", &data]),
    ] {
        let recorded = run(program, &record).unwrap_or_default();
        let text = run(program, &report).unwrap_or_default();
        if !text.contains("block_rq_issue:") || !text.contains("block_rq_complete:") {
            eprintln!("NOT TESTED, {program}: {recorded}{text}");
            continue;
        }
        let told = told_by("standard input", &text, &ReadOptions::default()).unwrap();
        let written = told.requests.iter().filter(|record| record.operation == Operation::Write);
        assert_eq!(told.format, TraceFormat::Tracefs, "{text}");
        assert_eq!(written.map(|record| record.length.0).sum::<u64>(), written_by_lines(&text), "{program}: {text}");
        assert!(told.latencies_ns().iter().any(Option::is_some), "{program}: {text}");
        eprintln!("tested: {program}");
    }
}

#[test]
fn a_copy_that_the_real_strace_sees_is_written_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("a.dat"), vec![7; 4 << 20]).unwrap();
    let (log, from, to) = (path("log"), path("a.dat"), path("b.dat"));
    let strace = ["-f", "-ttt", "-T", "-y", "-o", &log, "-e", "trace=%desc", "cp", "--reflink=never", &from, &to];
    if run("strace", &strace).is_none() || !Path::new(&to).exists() {
        eprintln!("skipped: strace traces nothing here");
        return;
    }
    let told = told_by("log", std::fs::read(&log).unwrap(), &ReadOptions::default()).unwrap();
    let written = |record: &&TraceRecord| {
        record.operation == Operation::Write && record.file.is_some_and(|file| told.files[file as usize] == to)
    };
    let bytes: u64 = told.requests.iter().filter(written).map(|record| record.length.0).sum();
    assert_eq!(bytes, 4 << 20, "{:?}", told.remarks);
}

/// What the capture leaves out, the reader cannot count.
#[test]
fn a_captured_command_has_its_copies_and_its_memory_maps() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("a.dat"), vec![7; 4 << 20]).unwrap();
    let script = "import mmap, os, sys\n\
        a, b = os.open(sys.argv[1], os.O_RDWR), os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)\n\
        assert os.copy_file_range(a, b, 1 << 20, 0, 0) == 1 << 20\n\
        assert os.sendfile(b, a, 1 << 20, 1 << 20) == 1 << 20\n\
        m = mmap.mmap(a, 1 << 20); m[0] = 1; m.flush()\n";
    let command = ["python3", "-c", script, &path("a.dat"), &path("b.dat")].map(Into::into).to_vec();
    let traced = TracedCommand { command, output_to_stderr: true, interrupted: Default::default() };
    let log = folder.path().join("log");
    if run("python3", &["-c", "import mmap; assert hasattr(__import__('os'), 'copy_file_range')"]).is_none() {
        return;
    }
    match capture::strace::capture(&traced, &log) {
        Ok(status) => assert!(status.success(), "{status}"),
        Err(error @ (CaptureError::NoStrace | CaptureError::Refused { .. })) => return eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
    let told = told_by("log", std::fs::read(&log).unwrap(), &ReadOptions::default()).unwrap();
    let to = |record: &&TraceRecord| {
        record.operation == Operation::Write
            && record.file.is_some_and(|file| told.files[file as usize] == path("b.dat"))
    };
    assert_eq!(told.requests.iter().filter(to).map(|record| record.length.0).sum::<u64>(), 2 << 20);
    assert!(told.says("msync (1)") && told.says("mmap of shared files ("), "{:?}", told.remarks);
}
