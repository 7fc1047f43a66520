//! Bonnie++'s large file: written, rewritten, read, on both generations in both states.

use flashwise_block::{BlockDevice, Nanos};
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};

use super::drives::{CONTROLLER_IOPS, Generation, ORGANISATIONS, State};
use crate::bonnie::stream::{Host, Pass, stream};
use crate::statistics::mean;
use crate::{Progress, StudyError, StudyOptions, parallel};

const PASSES: [Pass; 3] = [Pass::Write, Pass::Rewrite, Pass::Read];

/// MB/s of one array.
pub(super) struct Rates {
    pub(super) generation: Generation,
    pub(super) state: State,
    /// By pass.
    pub(super) mb_per_s: [Measured; 3],
}

/// Measures all.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Vec<Rates>, StudyError> {
    let (seeds, bytes) = if options.quick { (2, 1 << 30) } else { (5, 4 << 30) };
    let cells: Vec<(Generation, State)> = [Generation::Slc, Generation::Mlc]
        .into_iter()
        .flat_map(|generation| [State::Filled, State::Steady].map(|state| (generation, state)))
        .collect();
    // Where data takes little room, collection has much, and what was written before hardly matters: told by the last
    // two.
    let reducing = [(Generation::MlcHalf, State::Filled), (Generation::MlcTenth, State::Filled)];
    let overwritten = (!options.quick).then_some((Generation::MlcTenth, State::Steady));
    let cells: Vec<_> = cells.into_iter().chain(reducing).chain(overwritten).collect();
    let inputs: Vec<_> =
        cells.iter().flat_map(|&(generation, state)| (0..seeds).map(move |n| (generation, state, n))).collect();
    let runs = parallel::map("large files", &inputs, progress, |&(generation, state, n)| {
        let mut array = generation.array(ORGANISATIONS[0], state, CONTROLLER_IOPS, options.seed.wrapping_add(n))?;
        let mut rates = [0.0; PASSES.len()];
        for (pass, rate) in PASSES.into_iter().zip(&mut rates) {
            *rate = stream(&mut array, &Host::default(), pass, bytes)? / 1e6;
            // Bonnie++ starts each test when the one before is steady.
            array.pause(Nanos::secs(2))?;
        }
        Ok(rates)
    })?;
    let rates = |(&(generation, state), runs): (&(Generation, State), &[[f64; 3]])| {
        let of = |pass: usize| mean(&runs.iter().map(|rates| rates[pass]).collect::<Vec<_>>());
        Rates { generation, state, mb_per_s: [of(0), of(1), of(2)] }
    };
    Ok(cells.iter().zip(runs.chunks(seeds as usize)).map(rates).collect())
}

/// The table of all.
pub(super) fn section(all: &[Rates]) -> StudySection {
    let row = |rates: &Rates| {
        let names = [rates.generation.name(), rates.state.name()].map(StudyCell::text);
        names.into_iter().chain(rates.mb_per_s.map(StudyCell::from)).collect()
    };
    StudySection {
        title: "A large file".to_owned(),
        text: vec![
            "RAID-10 of eight drives, chunks of 16 KiB, no write cache in the controller. The text gives 200 and 600 \
             MB/s (write, read) for the drives of 2010 and 590 and 1,150 MB/s for those of 2011; it does not describe \
             the history of the drives."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Throughput seen by the program, MB/s:".to_owned(),
            columns: ["drives", "state", "write", "rewrite", "read"].map(str::to_owned).to_vec(),
            rows: all.iter().map(row).collect(),
        }],
        charts: Vec::new(),
    }
}
