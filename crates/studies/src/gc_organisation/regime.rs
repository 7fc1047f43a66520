//! Where the policies do differ: how long a drive is written, how full it is, how skewed the writes are.

use flashwise_block::{ByteSize, Request, execute};
use flashwise_report::study::{StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};
use flashwise_ssd::config::CleaningPolicy;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::experiment::Organisation;
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions, parallel};

const PAGE: u64 = 65_536;

/// Erasures that a block lives: four times the 50 of DiskSim, so that hardly any dies on the way.
const LIFETIME: u32 = 200;

/// (hot part of the pages, share of the writes that goes there); the first is uniform.
const SKEWS: [(f64, f64); 4] = [(1.0, 1.0), (0.2, 0.8), (0.1, 0.9), (0.05, 0.95)];
const RESERVES: [u32; 3] = [15, 30, 60];
const POLICIES: [CleaningPolicy; 2] = [CleaningPolicy::Greedy, CleaningPolicy::WearAware];

/// At one moment of a run: the mean response time so far, and the spread of P/E cycles over the blocks.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    response_ms: f64,
    deviation: f64,
    least_life: u32,
}

fn checkpoints(options: &StudyOptions) -> &'static [u64] {
    if options.quick { &[1_000, 10_000, 100_000] } else { &[1_000, 10_000, 100_000, 300_000, 1_000_000] }
}

fn run(
    reserve: u32,
    skew: (f64, f64),
    policy: CleaningPolicy,
    marks: &[u64],
    seed: u64,
) -> Result<Vec<State>, StudyError> {
    let mut organisation = Organisation::with_threshold(256, 5, policy);
    (organisation.reserve_percent, organisation.lifetime_erasures) = (reserve, LIFETIME);
    let mut drive = organisation.drive(seed)?;
    let pages = drive.config().capacity_bytes / PAGE;
    let hot = ((pages as f64 * skew.0) as u64).max(1);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let (mut sum_ns, mut states) = (0, Vec::new());
    for n in 1..=marks.last().copied().unwrap_or(0) {
        let is_hot = hot == pages || random.random::<f64>() < skew.1;
        let page = if is_hot { random.random_range(0..hot) } else { random.random_range(hot..pages) };
        let done = execute(&mut drive, Request::write(ByteSize(page * PAGE), ByteSize(PAGE)))?;
        sum_ns += done.latency().0;
        if marks.contains(&n)
            && let Some(life) = drive.remaining_life()
        {
            let response_ms = sum_ns as f64 / n as f64 / 1e6;
            states.push(State { response_ms, deviation: life.deviation, least_life: life.least });
        }
    }
    Ok(states)
}

/// The runs of one cell for both policies: state by seed and mark.
struct Cell {
    reserve: u32,
    skew: (f64, f64),
    runs: [Vec<Vec<State>>; 2],
}

impl Cell {
    fn measured(&self, policy: usize, mark: usize, what: fn(&State) -> f64) -> flashwise_report::study::Measured {
        mean(&self.runs[policy].iter().map(|states| what(&states[mark])).collect::<Vec<_>>())
    }

    fn row(&self, mark: usize, first: String) -> Vec<StudyCell> {
        let value = |policy, what| StudyCell::from(self.measured(policy, mark, what));
        vec![
            StudyCell::text(first),
            value(0, |state| state.response_ms),
            value(1, |state| state.response_ms),
            value(0, |state| state.deviation),
            value(1, |state| state.deviation),
        ]
    }
}

fn skew_name(skew: (f64, f64)) -> String {
    if skew.0 >= 1.0 { "uniform".to_owned() } else { format!("{:.0}/{:.0}", 100.0 * skew.1, 100.0 * skew.0) }
}

/// Measures both policies over length, fullness and skew.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Vec<StudySection>, StudyError> {
    let marks = checkpoints(options);
    let seeds: u64 = if options.quick { 2 } else { 3 };
    let mut cells: Vec<(u32, (f64, f64))> = SKEWS.iter().map(|&skew| (15, skew)).collect();
    cells.extend(RESERVES[1..].iter().map(|&reserve| (reserve, SKEWS[2])));
    let mut inputs = Vec::new();
    for &(reserve, skew) in &cells {
        for policy in POLICIES {
            inputs.extend((0..seeds).map(|n| (reserve, skew, policy, options.seed.wrapping_add(n))));
        }
    }
    let runs = parallel::map("where the policies differ", &inputs, progress, |&(reserve, skew, policy, seed)| {
        run(reserve, skew, policy, marks, seed)
    })?;
    let cells: Vec<Cell> = cells
        .into_iter()
        .zip(runs.chunks(2 * seeds as usize))
        .map(|((reserve, skew), runs)| {
            let (greedy, wear_aware) = runs.split_at(seeds as usize);
            Cell { reserve, skew, runs: [greedy.to_vec(), wear_aware.to_vec()] }
        })
        .collect();
    Ok(vec![section(&cells, marks)])
}

fn table(caption: &str, first: &str, rows: Vec<Vec<StudyCell>>) -> StudyTable {
    let columns = [first, "greedy ms", "wear-aware ms", "greedy sd", "wear-aware sd"].map(str::to_owned).to_vec();
    StudyTable { caption: caption.to_owned(), columns, rows }
}

fn section(cells: &[Cell], marks: &[u64]) -> StudySection {
    let last = marks.len() - 1;
    let skewed: &Cell = &cells[2];
    let by_length = (0..marks.len()).map(|mark| skewed.row(mark, grouped(marks[mark]))).collect();
    let by_skew = cells[..SKEWS.len()].iter().map(|cell| cell.row(last, skew_name(cell.skew))).collect();
    let by_reserve =
        [&cells[2], &cells[4], &cells[5]].map(|cell| cell.row(last, format!("{} %", cell.reserve))).to_vec();
    let response = |cell: &Cell, policy| cell.measured(policy, last, |state| state.response_ms).value;
    let spread = |cell: &Cell, policy| cell.measured(policy, last, |state| state.deviation).value;
    let most = cells[..SKEWS.len()]
        .iter()
        .max_by(|a, b| (response(a, 1) / response(a, 0)).total_cmp(&(response(b, 1) / response(b, 0))))
        .unwrap_or(skewed);
    let least_lives = |policy: usize| skewed.runs[policy].iter().map(|run| run[last].least_life).min().unwrap_or(0);
    let text = vec![
        format!(
            "4 GB, threshold 5 %, synchronous random writes of 64 KiB, blocks with a life of {LIFETIME} erasures. \
             \"90/10\": 90 % of the writes go to 10 % of the pages. sd is the standard deviation of P/E cycles over \
             all blocks."
        ),
        format!(
            "Wear-aware cleaning costs most with {}: {:+.1} % after {} writes. With 90/10 it changes the standard \
             deviation of P/E cycles from {:.1} to {:.1}, and the most worn block has {} instead of {} erasures left. \
             At first the runs do not differ: the policies diverge when the most written blocks have lost 15 % of \
             their lives more than the average.",
            skew_name(most.skew),
            100.0 * (response(most, 1) / response(most, 0) - 1.0),
            grouped(marks[last]),
            spread(skewed, 0),
            spread(skewed, 1),
            least_lives(1),
            least_lives(0),
        ),
    ];
    let lines = |what: fn(&State) -> f64, title: &str, y_label: &str| StudyChart {
        title: title.to_owned(),
        x_label: "writes".to_owned(),
        x_is_bytes: false,
        y_label: y_label.to_owned(),
        series: ["greedy", "wear-aware"]
            .iter()
            .enumerate()
            .map(|(policy, name)| StudySeries {
                name: (*name).to_owned(),
                points: (0..marks.len())
                    .map(|mark| StudyPoint { x: marks[mark] as f64, y: skewed.measured(policy, mark, what) })
                    .collect(),
            })
            .collect(),
    };
    StudySection {
        title: "Where the policies differ".to_owned(),
        text,
        tables: vec![
            table("By duration: 90/10, reserve 15 %:", "writes", by_length),
            table("By skew: reserve 15 %:", "skew", by_skew),
            table("By fill: 90/10:", "reserve", by_reserve),
        ],
        charts: vec![
            lines(|state| state.response_ms, "Response time, 90/10", "mean response time, ms"),
            lines(|state| state.deviation, "Spread of P/E cycles, 90/10", "standard deviation"),
        ],
    }
}

fn grouped(n: u64) -> String {
    if n >= 1_000_000 { format!("{},000,000", n / 1_000_000) } else { format!("{},{:03}", n / 1_000, n % 1_000) }
}
