//! Workloads that the field knows by name.
//!
//! **YCSB A to F** (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, Table 2): the requests of
//! a store that keeps a record a page of 4 KiB, and does nothing else. A real store adds an index, a log and
//! compaction.
//!
//! | name | reads | writes | where |
//! |---|---|---|---|
//! | `ycsb-a` | 50 % | 50 % updates | zipf 0.99 |
//! | `ycsb-b` | 95 % | 5 % updates | zipf 0.99 |
//! | `ycsb-c` | 100 % | – | zipf 0.99 |
//! | `ycsb-d` | 95 % | 5 % inserts | latest |
//! | `ycsb-e` | 95 % scans of 1 to 100 records | 5 % inserts | zipf 0.99 |
//! | `ycsb-f` | 50 % | 50 % read-modify-write | zipf 0.99 |
//!
//! **SSD-iq** (Haas et al., PVLDB 18(11), 2025): writes of 4 KiB, 128 in flight, over the whole drive: `ssdiq-uniform`,
//! `ssdiq-zipf-0.2` to `ssdiq-zipf-1.0`, `ssdiq-two-zone` (a tenth of the drive has nine tenths of the writes,
//! shuffled), `ssdiq-fill` (one sequential fill of 512 KiB, one in flight: what comes before), `ssdiq-latency` (99 %
//! writes, Poisson arrivals).

use super::{Access, Arrivals, Flow, Pacing, Size, Synthetic, WeightedSize, Workload, Zone};

/// A page, bytes.
const PAGE: u64 = 4096;
/// YCSB's exponent.
const YCSB_THETA: f64 = 0.99;
/// Most records of a scan.
const SCAN: u64 = 100;
/// Requests in flight of YCSB's clients: the default of its threads in most published runs.
const YCSB_DEPTH: u32 = 16;
/// SSD-iq's four threads of 32.
const SSDIQ_DEPTH: u32 = 128;
/// Mean time between the requests of SSD-iq's latency runs, where the drive's own rate is not known: 50,000 a second.
const SSDIQ_INTERARRIVAL_NS: u64 = 20_000;

const NAMES: [&str; 15] = [
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "ssdiq-uniform",
    "ssdiq-zipf-0.2",
    "ssdiq-zipf-0.4",
    "ssdiq-zipf-0.6",
    "ssdiq-zipf-0.8",
    "ssdiq-zipf-1.0",
    "ssdiq-two-zone",
    "ssdiq-fill",
    "ssdiq-latency",
];

impl Workload {
    /// Usual number of requests of a workload by name.
    pub const NAMED_REQUESTS: u64 = 100_000;

    /// Names of [`named`](Self::named).
    pub const NAMES: &'static [&'static str] = &NAMES;

    /// A workload that the field knows by name, of so many requests over the whole drive; `None` for another name.
    ///
    /// ```
    /// use flashwise_trace::workload::Workload;
    ///
    /// let workload = Workload::named("ycsb-b", 1_000_000).unwrap();
    /// assert_eq!(workload.flows[0].synthetic.as_ref().unwrap().read_share, 0.95);
    /// ```
    pub fn named(name: &str, requests: u64) -> Option<Self> {
        let synthetic = match name.split_once('-')? {
            ("ycsb", letter) => ycsb(letter)?,
            ("ssdiq", pattern) => ssdiq(pattern)?,
            _ => return None,
        };
        let flows = vec![Flow::synthetic(name, requests, synthetic)];
        NAMES.contains(&name).then(|| Self { name: name.to_owned(), seed: 1, content: None, flows })
    }
}

fn ycsb(letter: &str) -> Option<Synthetic> {
    let zipf = Access::Zipf { theta: YCSB_THETA };
    let pacing = Pacing::Closed { queue_depth: YCSB_DEPTH, think_ns: 0 };
    let of = |access, read_share| Synthetic { read_share, ..Synthetic::new(access, Size::fixed(PAGE), pacing) };
    Some(match letter {
        "a" => of(zipf, 0.5),
        "b" => of(zipf, 0.95),
        "c" => of(zipf, 1.0),
        "d" => of(Access::Latest { theta: YCSB_THETA }, 0.95),
        "e" => {
            let scan = |records| WeightedSize { bytes: records * PAGE, weight: 1.0 };
            let scans = Size::Weighted((1..=SCAN).map(scan).collect());
            Synthetic { read_size: Some(scans), align_bytes: Some(PAGE), ..of(zipf, 0.95) }
        }
        "f" => Synthetic { modify_share: 1.0, ..of(zipf, 0.5) },
        _ => return None,
    })
}

fn ssdiq(pattern: &str) -> Option<Synthetic> {
    let closed = |queue_depth| Pacing::Closed { queue_depth, think_ns: 0 };
    let writes = |access| Synthetic::new(access, Size::fixed(PAGE), closed(SSDIQ_DEPTH));
    Some(match pattern {
        "uniform" => writes(Access::Random),
        "two-zone" => {
            let zones = vec![Zone { size: 0.9, traffic: 0.1 }, Zone { size: 0.1, traffic: 0.9 }];
            writes(Access::HotCold { zones, shuffled: true })
        }
        "fill" => Synthetic::new(Access::Sequential, Size::fixed(512 << 10), closed(1)),
        "latency" => {
            let pacing = Pacing::Open { interarrival_ns: SSDIQ_INTERARRIVAL_NS, arrivals: Arrivals::Poisson };
            Synthetic { read_share: 0.01, pacing, ..writes(Access::Random) }
        }
        zipf => writes(Access::Zipf { theta: zipf.strip_prefix("zipf-")?.parse().ok()? }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::FlowSource;
    use flashwise_block::{ByteSize, Operation};

    fn requests(name: &str) -> Vec<crate::workload::FlowRequest> {
        let workload = Workload::named(name, 20_000).unwrap();
        let base = std::path::Path::new("");
        let flow = &workload.flows[0];
        FlowSource::open(flow, 0, workload.seed, ByteSize::gib(1), ByteSize(512), base).unwrap().collect()
    }

    fn share(requests: &[crate::workload::FlowRequest], operation: Operation) -> f64 {
        requests.iter().filter(|request| request.operation == operation).count() as f64 / requests.len() as f64
    }

    #[test]
    fn every_name_is_a_workload_that_a_drive_can_be_asked_for() {
        for name in Workload::NAMES {
            Workload::named(name, 10).unwrap().check().unwrap();
            assert_eq!(requests(name).len(), 20_000, "{name}");
        }
        assert_eq!(Workload::named("ycsb-g", 10), None);
        assert_eq!(Workload::named("ssdiq-zipf-0.3", 10), None);
        assert_eq!(Workload::named("uniform", 10), None);
    }

    #[test]
    fn ycsb_e_scans_many_records_and_inserts_one() {
        let requests = requests("ycsb-e");
        assert!((share(&requests, Operation::Read) - 0.95).abs() < 0.01);
        for request in &requests {
            let most = if request.operation == Operation::Read { SCAN * PAGE } else { PAGE };
            assert!(request.length.0 <= most && request.length.0.is_multiple_of(PAGE));
        }
        let scanned: u64 = requests.iter().map(|request| request.length.0 / PAGE).sum();
        assert!((scanned as f64 / requests.len() as f64 - 0.95 * 50.5 - 0.05).abs() < 2.0);
    }

    #[test]
    fn ycsb_f_reads_what_it_writes_just_before() {
        let requests = requests("ycsb-f");
        let mut writes = 0;
        for pair in requests.windows(2).filter(|pair| pair[1].operation == Operation::Write) {
            writes += 1;
            assert_eq!(
                (pair[0].operation, pair[0].offset, pair[0].length),
                (Operation::Read, pair[1].offset, pair[1].length)
            );
        }
        // One of two operations is a read and a write.
        assert!((writes as f64 / requests.len() as f64 - 1.0 / 3.0).abs() < 0.02);
    }

    #[test]
    fn ycsb_d_reads_what_was_written_lately() {
        let mut newest = (1 << 30) - PAGE;
        let (mut near, mut reads) = (0, 0);
        for request in requests("ycsb-d") {
            if request.operation == Operation::Write {
                newest = (newest + PAGE) % (1 << 30);
                assert_eq!(request.offset.0, newest, "inserts follow each other");
            } else {
                reads += 1;
                near += u64::from((newest.wrapping_sub(request.offset.0) % (1 << 30)) / PAGE < 1000);
            }
        }
        // Zipf 0.99 gives the 1,000 most popular of 262,144 ranks 57 %.
        assert!((near as f64 / f64::from(reads) - 0.57).abs() < 0.03, "{near} of {reads}");
    }

    #[test]
    fn a_tenth_of_the_drive_has_nine_tenths_of_the_writes_and_lies_everywhere() {
        let mut counts = std::collections::BTreeMap::new();
        requests("ssdiq-two-zone").iter().for_each(|request| *counts.entry(request.offset.0).or_insert(0_u32) += 1);
        let mut hot: Vec<(u32, u64)> = counts.into_iter().map(|(offset, count)| (count, offset)).collect();
        hot.sort_unstable_by_key(|&(count, _)| std::cmp::Reverse(count));
        let lower = hot[..1000].iter().filter(|(_, offset)| *offset < 1 << 29).count();
        assert!((400..600).contains(&lower), "{lower} of 1000 hot pages lie in the lower half");
    }
}
