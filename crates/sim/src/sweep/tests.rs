//! Whole sweeps over small drives.

use std::path::PathBuf;

use flashwise_block::{BlockError, Silent};
use tempfile::TempDir;

use super::*;
use crate::tests::small_config;

const GRID: &str = r#"
name = "depths"
device = "./small.toml"
workload = "reads.toml"
precondition = "fill"
seeds = [1, 2]
[vary]
"workload.flows.0.synthetic.pacing.closed.queue_depth" = [1, 8]
[[together]]
"flash.read_ns" = [20000, 40000, 80000]
"host.queue_depth" = [32, 32, 64]
"#;

const READS: &str = r#"
name = "reads"
[[flows]]
requests = 500
synthetic.read_share = 1.0
synthetic.access = "random"
synthetic.size.fixed.bytes = 4096
synthetic.pacing.closed.queue_depth = 1
"#;

struct Place {
    dir: TempDir,
}

impl Place {
    fn new(grid: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let device = toml::to_string(&small_config()).unwrap();
        for (name, text) in [("grid.toml", grid), ("reads.toml", READS), ("small.toml", &device)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn grid(&self) -> Result<Grid, SweepError> {
        Grid::read(&self.path("grid.toml"))
    }

    fn sweep(&self, jobs: usize, progress: &mut dyn Progress) -> Result<Sweep, SweepError> {
        sweep(&self.grid()?, &self.path("results.jsonl"), SweepOptions { jobs }, progress)
    }
}

/// Stops after so many ticks.
struct Impatient(u32);

impl Progress for Impatient {
    fn advance(&mut self, _stage: &str, _fraction: f64) -> Result<(), BlockError> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Err(BlockError::Interrupted) } else { Ok(()) }
    }
}

#[test]
fn every_combination_is_a_cell_and_the_last_axis_changes_fastest() {
    let grid = Place::new(GRID).grid().unwrap();
    assert_eq!(grid.cells.len(), 3 * 2 * 2);
    let told = |index: usize| {
        let cell = &grid.cells[index];
        let depth = cell.values["workload.flows.0.synthetic.pacing.closed.queue_depth"].as_integer().unwrap();
        let device = cell.machine.drive_config().unwrap();
        (device.flash.read_ns, device.host.queue_depth, depth, cell.workload.seed)
    };
    assert_eq!(
        [0, 1, 2, 4, 11].map(told),
        [(20_000, 32, 1, 1), (20_000, 32, 1, 2), (20_000, 32, 8, 1), (40_000, 32, 1, 1), (80_000, 64, 8, 2),]
    );
    let mut keys: Vec<_> = grid.cells.iter().map(|cell| &cell.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 12, "each cell has a key of its own");
}

#[test]
fn a_sweep_gives_the_same_on_one_core_and_on_many() {
    let [one, many] = [1, 4].map(|jobs| Place::new(GRID).sweep(jobs, &mut Silent).unwrap());
    assert!(one == many);
    assert_eq!((one.resumed, one.failed, one.cells.len()), (0, 0, 12));
    let iops = |index: usize| one.cells[index].rows[0].iops;
    assert!(iops(2) > 2.0 * iops(0), "eight in flight are faster than one: {} {}", iops(2), iops(0));
    assert!(iops(0) > iops(8), "slow flash is slower");
}

#[test]
fn a_sweep_that_was_stopped_goes_on_where_it_was() {
    let place = Place::new(GRID);
    let whole = place.sweep(1, &mut Silent).unwrap();
    let path = place.path("results.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 13);
    // Five cells, and a sixth whose line was cut off.
    std::fs::write(&path, lines[..6].concat() + &lines[6][..40]).unwrap();
    let resumed = place.sweep(2, &mut Silent).unwrap();
    assert_eq!(resumed.resumed, 5);
    assert!(resumed.cells == whole.cells);
    assert_eq!(place.sweep(1, &mut Silent).unwrap().resumed, 12, "nothing is left to do");
}

#[test]
fn an_impatient_listener_stops_all_workers_and_what_is_finished_stays() {
    let place = Place::new(&GRID.replace("[1, 8]", "[1, 2, 3, 4, 5, 6, 7, 8]"));
    let error = place.sweep(2, &mut Impatient(3)).unwrap_err();
    assert_eq!(error, SweepError::Stopped(BlockError::Interrupted));
    let finished = std::fs::read_to_string(place.path("results.jsonl")).unwrap().lines().count() - 1;
    let resumed = place.sweep(2, &mut Silent).unwrap();
    assert_eq!(resumed.resumed as usize, finished);
    assert_eq!(resumed.cells.len(), 48);
}

#[test]
fn shards_are_disjoint_and_merge_into_the_whole() {
    let place = Place::new(GRID);
    let whole = place.sweep(2, &mut Silent).unwrap();
    let mut files = Vec::new();
    for number in 1..=5 {
        let mut grid = place.grid().unwrap();
        grid.keep(Shard { number, of: 5 });
        assert!(grid.cells.len() == 2 || grid.cells.len() == 3, "twelve cells in five shards");
        files.push(place.path(&format!("shard-{number}.jsonl")));
        sweep(&grid, files.last().unwrap(), SweepOptions::default(), &mut Silent).unwrap();
    }
    let grid = place.grid().unwrap();
    let missing = merge(&grid, &place.path("some.jsonl"), &files[1..]).unwrap_err();
    assert_eq!(missing, SweepError::Missing { missing: 3, cells: 12 });
    assert!(merge(&grid, &place.path("all.jsonl"), &files).unwrap().cells == whole.cells);
}

#[test]
fn a_cell_that_was_sent_elsewhere_gives_the_same_rows() {
    let place = Place::new(GRID);
    let grid = place.grid().unwrap();
    let whole = place.sweep(2, &mut Silent).unwrap();
    for (cell, expected) in grid.cells.iter().zip(&whole.cells) {
        let sent: Cell = serde_json::from_str(&serde_json::to_string(cell).unwrap()).unwrap();
        assert!(&sent == cell);
        assert!(run_cell(&sent, &grid.base, &mut Silent).unwrap() == expected.rows);
    }
}

#[test]
fn a_changed_cell_is_run_again_and_the_others_are_not() {
    let place = Place::new(GRID);
    place.sweep(1, &mut Silent).unwrap();
    std::fs::write(place.path("grid.toml"), GRID.replace("80000", "90000")).unwrap();
    assert_eq!(place.sweep(1, &mut Silent).unwrap().resumed, 8);
}

#[test]
fn a_grid_that_makes_no_sense_is_refused_before_the_first_simulation() {
    for (from, to, words) in [
        ("[20000, 40000, 80000]", "[20000, 40000]", "a different number"),
        ("[1, 8]", "[1, 0]", "(flash.read_ns = 20000"),
        ("[1, 8]", "[1, 0]", "queue_depth"),
        ("[1, 8]", "[]", "has no value"),
        ("[1, 8]", "8", "should be a list"),
        ("flash.read_ns", "flash.raed_ns", "raed_ns"),
        ("flows.0", "flows.7", "a list of 1"),
        ("\"host.queue_depth\"", "\"flash.page_bytes\"", "flash.page_bytes = 32"),
        ("reads.toml", "none.toml", "none.toml"),
        ("./small.toml", "no-such-preset", "unknown preset"),
        ("seeds", "seedz", "line 6"),
    ] {
        let error = Place::new(&GRID.replacen(from, to, 1)).grid().unwrap_err().to_string();
        assert!(error.contains(words), "{from} -> {to}: {error}");
    }
}

#[test]
fn somebody_else_s_file_is_not_taken_for_results() {
    let place = Place::new(GRID);
    for text in ["mine\n", "{}\n", "no line end"] {
        std::fs::write(place.path("results.jsonl"), text).unwrap();
        let error = place.sweep(1, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("is not a file of sweep results"), "{error}");
        assert_eq!(std::fs::read_to_string(place.path("results.jsonl")).unwrap(), text);
    }
}

#[test]
fn results_that_another_sweep_adds_to_or_that_are_no_file_are_left_alone() {
    let place = Place::new(GRID);
    let path = place.path("results.jsonl");
    let other = super::Journal::open(&path).unwrap();
    let error = place.sweep(1, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("results.jsonl: another run is adding to it"), "{error}");
    drop(other);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    let error = place.sweep(1, &mut Silent).unwrap_err().to_string();
    assert!(error.contains("it is a character device"), "{error}");
}
