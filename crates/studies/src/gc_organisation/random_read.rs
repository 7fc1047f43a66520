//! What makes a random read look like a write, and a sequential one much better: one thing is changed at a time.

use flashwise_report::study::{Measured, StudyCell, StudyClaim, StudySection, StudyTable, StudyVerdict};
use flashwise_ssd::config::CleaningPolicy;

use super::experiment::{Arrivals, Experiment, Organisation, Pattern};
use super::repetition;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// The random reads' part of the study.
pub(super) struct RandomRead {
    pub(super) claim: StudyClaim,
    pub(super) section: StudySection,
}

/// Something that the poster may have had without telling.
struct Hypothesis {
    name: &'static str,
    change: fn(&mut Experiment),
}

const HYPOTHESES: [Hypothesis; 7] = [
    Hypothesis { name: "as described", change: |_| {} },
    Hypothesis { name: "starts at any 4 KiB", change: |experiment| experiment.alignment = Some(4096) },
    Hypothesis { name: "queue, half busy", change: |experiment| experiment.arrivals = Arrivals::Open(0.5) },
    Hypothesis { name: "queue, 90 % busy", change: |experiment| experiment.arrivals = Arrivals::Open(0.9) },
    Hypothesis { name: "drive overwritten before", change: |experiment| experiment.overwrites = 0.5 },
    Hypothesis {
        name: "threshold above reserve",
        change: |experiment| {
            let organisation = &mut experiment.organisation;
            (organisation.min_free_percent, organisation.reserve_percent) = (50, 15);
            organisation.cleanings_max = Some(1);
        },
    },
    Hypothesis { name: "host reads 512 KiB ahead", change: |experiment| experiment.read_ahead = Some(512 << 10) },
];

const SIZES: [u64; 3] = [8 << 10, 64 << 10, 1 << 20];

/// The four patterns under one hypothesis, over the sizes.
struct Row {
    response_ms: [[Measured; 4]; SIZES.len()],
}

impl Row {
    /// Mean over the sizes of random reads ÷ another pattern.
    fn ratio(&self, to: usize) -> f64 {
        self.response_ms.iter().map(|sizes| sizes[1].value / sizes[to].value).sum::<f64>() / SIZES.len() as f64
    }

    /// Whether it is as the poster has it: sequential reads much better than random ones, and these like both writes.
    fn is_as_described(&self) -> bool {
        let like_writes = [2, 3].iter().all(|&to| (0.8..1.25).contains(&self.ratio(to)));
        self.ratio(0) > 1.5 && like_writes
    }
}

/// Measures every hypothesis.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<RandomRead, StudyError> {
    let mut inputs = Vec::new();
    for hypothesis in &HYPOTHESES {
        for bytes in SIZES {
            inputs.extend(Pattern::ALL.map(|pattern| (hypothesis, bytes, pattern)));
        }
    }
    let values = parallel::map("random reads", &inputs, progress, |&(hypothesis, bytes, pattern)| {
        let organisation = Organisation::with_threshold(256, 5, CleaningPolicy::Greedy);
        let mut experiment = Experiment::new(organisation, pattern, bytes);
        experiment.organisation.lifetime_erasures = 3_000;
        (hypothesis.change)(&mut experiment);
        experiment.repeat(repetition(options), options.seed)
    })?;
    let rows: Vec<Row> = values
        .chunks(4 * SIZES.len())
        .map(|chunk| {
            let mut response_ms = [[Measured::default(); 4]; SIZES.len()];
            chunk.iter().enumerate().for_each(|(n, &value)| response_ms[n / 4][n % 4] = value);
            Row { response_ms }
        })
        .collect();
    Ok(RandomRead { claim: claim(&rows), section: section(&rows) })
}

fn claim(rows: &[Row]) -> StudyClaim {
    let told = &rows[0];
    let matching: Vec<&str> = HYPOTHESES
        .iter()
        .zip(rows)
        .filter(|(_, row)| row.is_as_described())
        .map(|(hypothesis, _)| hypothesis.name)
        .collect();
    let because = match matching.as_slice() {
        [] => "None of the tested conditions reproduces the poster's result; see below.".to_owned(),
        names => format!(
            "Of the tested conditions, this one reproduces the poster's result: {}. In the model itself the time of a \
             page read does not depend on its place, and a write takes only 175 µs more than the 1.71 ms of a read of \
             64 KiB.",
            names.join("; ")
        ),
    };
    StudyClaim {
        claim: "Sequential reads are much better than random ones, and random reads behave like writes.".to_owned(),
        measured: format!(
            "Random reads take {:.2} times as long as sequential ones, and {:.2} and {:.2} times as long as \
             sequential and random writes: all four are alike.",
            told.ratio(0),
            told.ratio(2),
            told.ratio(3)
        ),
        verdict: if told.is_as_described() { StudyVerdict::Reproduced } else { StudyVerdict::Partly },
        because,
    }
}

fn section(rows: &[Row]) -> StudySection {
    let mut ratios = Vec::new();
    for (hypothesis, row) in HYPOTHESES.iter().zip(rows) {
        let ratio = |to| StudyCell::text(format!("{:.2}", row.ratio(to)));
        let verdict = StudyCell::text(if row.is_as_described() { "yes" } else { "no" });
        ratios.push(vec![StudyCell::text(hypothesis.name), ratio(0), ratio(2), ratio(3), verdict]);
    }
    let times = |n: usize| {
        let row = |(hypothesis, row): (&Hypothesis, &Row)| {
            let cells = row.response_ms[n].map(StudyCell::from);
            [StudyCell::text(hypothesis.name)].into_iter().chain(cells).collect()
        };
        StudyTable {
            caption: format!("Mean response time with {} KiB, ms:", SIZES[n] >> 10),
            columns: ["", "seq. read", "random read", "seq. write", "rand. write"].map(str::to_owned).to_vec(),
            rows: HYPOTHESES.iter().zip(rows).map(row).collect(),
        }
    };
    let overview = StudyTable {
        caption: "Random reads ÷ another pattern, quotients of the means below, mean over the sizes:".to_owned(),
        columns: ["", "÷ seq. read", "÷ seq. write", "÷ rand. write", "as described"].map(str::to_owned).to_vec(),
        rows: ratios,
    };
    StudySection {
        title: "Why random reads resemble writes".to_owned(),
        text: vec![
            "4 GB, 5 %, greedy; 8 KiB, 64 KiB and 1 MiB; one condition changed at a time. \"As described\": \
             sequential reads at least 1.5 times as fast as random ones, and random reads within 25 % of both kinds \
             of writes."
                .to_owned(),
            "The model checks for cleaning before reads as well as writes, so a threshold above the reserve makes all \
             patterns slow, including sequential reads. With queues, random requests collide on an element, reads and \
             writes alike, while sequential ones are spread over the elements."
                .to_owned(),
        ],
        tables: std::iter::once(overview).chain((0..SIZES.len()).map(times)).collect(),
        charts: Vec::new(),
    }
}
