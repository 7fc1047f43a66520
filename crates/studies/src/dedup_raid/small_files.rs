//! Bonnie++'s many files, up to the text's 80,000.

use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};

use super::drives::{CONTROLLER_IOPS, Generation, ORGANISATIONS, State};
use crate::bonnie::file_system::Made;
use crate::bonnie::files::{Order, Processor, Run, files};
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions, parallel};

/// Operations a second on one array.
pub(super) struct Rates {
    pub(super) generation: Generation,
    order: Order,
    sync_each: bool,
    /// Create, stat, delete.
    pub(super) per_s: [Measured; 3],
}

impl Rates {
    fn name(&self) -> &'static str {
        match (self.order, self.sync_each) {
            (Order::Sequential, false) => "in order",
            (Order::Random, false) => "at random",
            (Order::Sequential, true) => "in order, each durable",
            (Order::Random, true) => "at random, each durable",
        }
    }
}

/// Measures all.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Vec<Rates>, StudyError> {
    let (seeds, count) = if options.quick { (2, 8_000) } else { (5, 80_000) };
    let orders = [(Order::Sequential, false), (Order::Random, false), (Order::Sequential, true), (Order::Random, true)];
    let cells: Vec<_> = [Generation::Slc, Generation::Mlc]
        .into_iter()
        .flat_map(|generation| orders.map(|(order, sync_each)| (generation, order, sync_each)))
        .collect();
    let inputs: Vec<_> = cells.iter().flat_map(|&cell| (0..seeds).map(move |n| (cell, n))).collect();
    let runs = parallel::map("many files", &inputs, progress, |&((generation, order, sync_each), n)| {
        let seed = options.seed.wrapping_add(n);
        let mut array = generation.array(ORGANISATIONS[0], State::Filled, CONTROLLER_IOPS, seed)?;
        let run = Run { files: if sync_each { count / 8 } else { count }, order, sync_each };
        let rates = files(&mut array, (Made::default(), Processor::default()), run, seed)?;
        Ok([rates.create, rates.stat, rates.delete])
    })?;
    let rates = |(&(generation, order, sync_each), runs): (&(Generation, Order, bool), &[[f64; 3]])| {
        let of = |what: usize| mean(&runs.iter().map(|rates| rates[what]).collect::<Vec<_>>());
        Rates { generation, order, sync_each, per_s: [of(0), of(1), of(2)] }
    };
    Ok(cells.iter().zip(runs.chunks(seeds as usize)).map(rates).collect())
}

/// The table of all.
pub(super) fn section(all: &[Rates]) -> StudySection {
    let row = |rates: &Rates| {
        let names = [rates.generation.name(), rates.name()].map(StudyCell::text);
        names.into_iter().chain(rates.per_s.map(StudyCell::from)).collect()
    };
    StudySection {
        title: "Many files".to_owned(),
        text: vec![
            "Empty files in one directory of a modelled file system similar to ext4, RAID-10, 16 KiB; 80,000 files \
             (8,000 in the quick version), an eighth of that if each is made durable by itself. All metadata fits in \
             memory, so the processor is the limit, and the drives differ only where each file waits for its commit. \
             The order makes no difference: the directory is hashed, and inodes are allocated in order of creation."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Operations a second:".to_owned(),
            columns: ["drives", "files", "create", "stat", "delete"].map(str::to_owned).to_vec(),
            rows: all.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
