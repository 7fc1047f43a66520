//! The poster's grid: drives, policies, thresholds, patterns and sizes.

use flashwise_report::study::{
    Measured, StudyCell, StudyChart, StudyClaim, StudyPoint, StudySection, StudySeries, StudyTable, StudyVerdict,
};
use flashwise_ssd::config::CleaningPolicy;

use super::experiment::{Experiment, Organisation, Pattern};
use super::repetition;
use crate::{Progress, StudyError, StudyOptions, parallel, verdict};

/// The grid's part of the study.
pub(super) struct Grid {
    pub(super) claims: Vec<StudyClaim>,
    pub(super) sections: Vec<StudySection>,
}

/// The poster's drives: blocks a plane and threshold.
const DRIVES: [(u32, u32); 5] = [(2048, 5), (2048, 50), (2048, 90), (256, 5), (256, 50)];
const POLICIES: [CleaningPolicy; 2] = [CleaningPolicy::Greedy, CleaningPolicy::WearAware];

/// A measured point.
struct Point {
    drive: (u32, u32),
    policy: CleaningPolicy,
    pattern: Pattern,
    bytes: u64,
    response_ms: Measured,
}

struct Points(Vec<Point>);

impl Points {
    fn find(&self, drive: (u32, u32), policy: CleaningPolicy, pattern: Pattern, bytes: u64) -> Measured {
        let found = |p: &&Point| p.drive == drive && p.policy == policy && p.pattern == pattern && p.bytes == bytes;
        self.0.iter().find(found).map_or(Measured::default(), |point| point.response_ms)
    }

    /// Mean over the sizes of the response time of a drive ÷ that of another, less one, per cent.
    fn slower(&self, drive: (u32, u32), than: (u32, u32), pattern: Pattern, sizes: &[u64]) -> f64 {
        let ratio = |&bytes: &u64| {
            let of = |drive| self.find(drive, CleaningPolicy::Greedy, pattern, bytes).value;
            of(drive) / of(than)
        };
        100.0 * (sizes.iter().map(ratio).sum::<f64>() / sizes.len() as f64 - 1.0)
    }
}

fn sizes(options: &StudyOptions) -> Vec<u64> {
    let all: Vec<u64> = (13..=22).map(|power| 1 << power).collect();
    if options.quick { all.into_iter().step_by(3).collect() } else { all }
}

/// Measures the grid.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Grid, StudyError> {
    let sizes = sizes(options);
    let mut inputs = Vec::new();
    for drive in DRIVES {
        for policy in POLICIES {
            for pattern in Pattern::ALL {
                inputs.extend(sizes.iter().map(|&bytes| (drive, policy, pattern, bytes)));
            }
        }
    }
    let points = parallel::map("the poster's grid", &inputs, progress, |&(drive, policy, pattern, bytes)| {
        let organisation = Organisation::with_threshold(drive.0, drive.1, policy);
        let response_ms = Experiment::new(organisation, pattern, bytes).repeat(repetition(options), options.seed)?;
        Ok(Point { drive, policy, pattern, bytes, response_ms })
    })?;
    let points = Points(points);
    let claims = vec![policies_claim(&points, &inputs), large_claim(&points, &sizes), small_claim(&points, &sizes)];
    let sections = vec![StudySection {
        title: "The poster's grid".to_owned(),
        text: vec![
            "300 synchronous requests of one size on a full drive, aligned to their size, over the whole drive; \
             repeated with other seeds until the 95 % interval of the mean is within 5 %. Mean response time in ms, \
             greedy; the wear-aware policy is compared in the first claim."
                .to_owned(),
        ],
        tables: Pattern::ALL.map(|pattern| table(&points, pattern, &sizes)).to_vec(),
        charts: Pattern::ALL.map(|pattern| chart(&points, pattern, &sizes)).to_vec(),
    }];
    Ok(Grid { claims, sections })
}

fn name(drive: (u32, u32)) -> String {
    Organisation::with_threshold(drive.0, drive.1, CleaningPolicy::Greedy).name()
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

fn table(points: &Points, pattern: Pattern, sizes: &[u64]) -> StudyTable {
    let mut columns = vec!["size".to_owned()];
    columns.extend(DRIVES.map(name));
    let row = |&bytes: &u64| {
        let mut row = vec![StudyCell::text(size(bytes))];
        row.extend(DRIVES.map(|drive| points.find(drive, CleaningPolicy::Greedy, pattern, bytes).into()));
        row
    };
    StudyTable { caption: format!("{}, ms:", pattern.name()), columns, rows: sizes.iter().map(row).collect() }
}

fn chart(points: &Points, pattern: Pattern, sizes: &[u64]) -> StudyChart {
    let shown = [(2048, 5), (2048, 50), (256, 5), (256, 50)];
    let point = |drive, &bytes: &u64| {
        let y = points.find(drive, CleaningPolicy::Greedy, pattern, bytes);
        StudyPoint { x: bytes as f64, y }
    };
    let series =
        shown.map(|drive| StudySeries { name: name(drive), points: sizes.iter().map(|b| point(drive, b)).collect() });
    StudyChart {
        title: format!("Response time, {}", pattern.name()),
        x_label: "request size".to_owned(),
        x_is_bytes: true,
        y_label: "mean response time, ms".to_owned(),
        series: series.to_vec(),
    }
}

type Input = ((u32, u32), CleaningPolicy, Pattern, u64);

fn policies_claim(points: &Points, inputs: &[Input]) -> StudyClaim {
    let greedy = inputs.iter().filter(|input| input.1 == CleaningPolicy::Greedy);
    let pairs: Vec<(f64, f64)> = greedy
        .map(|&(drive, _, pattern, bytes)| {
            let of = |policy| points.find(drive, policy, pattern, bytes).value;
            (of(CleaningPolicy::Greedy), of(CleaningPolicy::WearAware))
        })
        .collect();
    let differing = pairs.iter().filter(|(greedy, wear_aware)| greedy != wear_aware).count();
    StudyClaim {
        claim: "The garbage-collection policies, greedy and wear-aware, do not differ.".to_owned(),
        measured: format!("{differing} of {} pairs of means differ, to the last bit.", pairs.len()),
        verdict: if differing == 0 { StudyVerdict::Reproduced } else { StudyVerdict::Partly },
        because: "The policies differ only once a block has 15 % less life left than its plane's average, 8 of 50 \
                  erasures; 300 requests erase hardly any block twice. So this is a property of the experiment, not \
                  of the policies."
            .to_owned(),
    }
}

fn writes() -> [Pattern; 2] {
    [Pattern::ALL[2], Pattern::ALL[3]]
}

fn large_claim(points: &Points, sizes: &[u64]) -> StudyClaim {
    let [half, most] = [(2048, 50), (2048, 90)]
        .map(|drive| writes().map(|pattern| points.slower(drive, (2048, 5), pattern, sizes)).iter().sum::<f64>() / 2.0);
    StudyClaim {
        claim: "On 32 GB, thresholds of 50 and 90 % cost 5.5 % against 5 %.".to_owned(),
        measured: format!(
            "{half:+.1} % with 50 %, {most:+.1} % with 90 %: mean over the sizes of both kinds of writes."
        ),
        verdict: verdict(&[half, most], 5.5),
        because: "A full drive starts with its whole reserve free. Before cleaning starts, 204 blocks of a plane can \
                  be written with thresholds of 5 and of 50 %, and 101 with 90 %; 300 requests of 4 MiB fill 100, \
                  smaller ones fewer. So cleaning never starts; its cost is shown below, under threshold and reserve."
            .to_owned(),
    }
}

fn small_claim(points: &Points, sizes: &[u64]) -> StudyClaim {
    let mean = writes().map(|pattern| points.slower((256, 50), (256, 5), pattern, sizes)).iter().sum::<f64>() / 2.0;
    let largest = sizes.last().copied().unwrap_or_default();
    let random = Pattern::ALL[3];
    let [large, small] =
        [(2048, 5), (256, 5)].map(|drive| points.find(drive, CleaningPolicy::Greedy, random, largest).value);
    StudyClaim {
        claim: "On 4 GB, a threshold of 50 % costs 7 % against 5 %.".to_owned(),
        measured: format!(
            "{mean:+.1} %, the mean over the sizes of both kinds of writes. Where cleaning runs, the cost is higher: \
             random writes of 4 MiB take {large:.2} ms on 32 GB and {small:.2} ms on 4 GB, {:+.0} %.",
            100.0 * (small / large - 1.0)
        ),
        verdict: verdict(&[mean], 7.0),
        because: "With 256 blocks per plane only requests of 1 MiB and more reach the threshold within 300 requests."
            .to_owned(),
    }
}

/// Within a quarter of what is claimed, or at least of that sign.
fn verdict(measured: &[f64], claimed: f64) -> StudyVerdict {
    let near = measured.iter().all(|percent| (percent / claimed - 1.0).abs() < 0.25);
    verdict::verdict(near, measured.iter().any(|&percent| percent > 0.5))
}
