//! n_w around k_w: how many pages should be written together?

use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::drives::{Drive, as_argued, beside_argued};
use super::run::{Compared, Method, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, MS};
use crate::{Progress, StudyError, StudyOptions};

/// n_w.
const SIZES: [usize; 12] = [1, 2, 4, 6, 7, 8, 9, 10, 12, 16, 32, 64];

/// Names of the drives, and the comparison of each, whose methods are classic and ACE by size.
pub(super) struct BatchSizes {
    drives: Vec<(String, Compared)>,
}

/// Runs them.
pub(super) fn measure(
    drives: &[Drive],
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<BatchSizes, StudyError> {
    let argued = as_argued(3.0)?;
    let named = beside_argued(&argued, drives);
    let methods: Vec<Method> = std::iter::once(Method::Classic).chain(SIZES.map(Method::Ace)).collect();
    let settings = named.map(|(_, config)| Setting {
        methods: methods.clone(),
        ..Setting::of(*conditions, MS, POLICIES[0].1, config, 1)
    });
    let compared = sweep::compare("batch size", &settings, options, progress)?;
    Ok(BatchSizes { drives: named.iter().map(|(name, _)| (*name).to_owned()).zip(compared).collect() })
}

impl BatchSizes {
    /// What n_w of 8 saves on the drive as argued, and what 9 saves.
    pub(super) fn at_and_beyond_k_w(&self) -> [f64; 2] {
        [8, 9].map(|size| {
            let place = SIZES.iter().position(|&known| known == size).unwrap_or(0);
            self.drives[0].1.saved(1 + place).value
        })
    }

    /// The table and the chart.
    pub(super) fn section(&self, conditions: &Conditions) -> StudySection {
        let row = |place: usize| {
            let saved = self.drives.iter().map(|(_, compared)| StudyCell::from(compared.saved(1 + place)));
            let more = StudyCell::from(self.drives[0].1.writes_more(1 + place));
            std::iter::once(StudyCell::text(SIZES[place].to_string())).chain(saved).chain([more]).collect()
        };
        let line = |compared: &Compared| {
            (0..SIZES.len()).map(|place| (SIZES[place] as f64, compared.speedup(1 + place))).collect()
        };
        let columns = ["n_w".to_owned()].into_iter().chain(self.drives.iter().map(|(name, _)| format!("{name}, %")));
        let lines = self.drives.iter().map(|(name, compared)| (name.clone(), line(compared)));
        let [at, beyond] = self.at_and_beyond_k_w();
        StudySection {
            title: "Effect of the batch size".to_owned(),
            text: vec![format!(
                "MS, LRU. {}. \"As argued\": eight dies, α = 3. There the ninth page of a batch waits for a die: 8 \
                 save {at:.1} %, 9 save {beyond:.1} %, and only multiples of 8 are optimal again. A drive that is \
                 limited by its rate has no such step: each further page takes the time given by the rate, and shares \
                 an ever smaller part of the fixed latency. k_w is the number of requests in flight at which the rate \
                 is reached; a batch that is awaited as a whole starts on an idle drive, so more than k_w pages still \
                 pay. Pages that are written earlier than needed are rewritten slightly more often (last column).",
                conditions.words()
            )],
            tables: vec![StudyTable {
                caption: "Time saved, %; pages written beyond the classic pool, %:".to_owned(),
                columns: columns.chain(["written, %".to_owned()]).collect(),
                rows: (0..SIZES.len()).map(row).collect(),
            }],
            charts: vec![sweep::chart("Batch size", "pages written together, n_w", lines.collect())],
        }
    }
}
