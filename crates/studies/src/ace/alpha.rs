//! α from 1 to 8: on the drive that the text argues for, on the raw P4510 with slower writes, and by the text's model.

use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_ssd::DeviceConfig;

use super::drives::{Drive, LANES, as_argued, with_slower_writes};
use super::matrix::{ACE, CLASSIC};
use super::one_request::{Waits, waits};
use super::published::FIGURE_8H;
use super::run::{Compared, Method, POLICIES, Setting};
use super::sweep;
use super::workload::{Conditions, MS};
use crate::{Progress, StudyError, StudyOptions, parallel};

const ALPHAS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
/// The place of ACE with n_w = α among the methods.
const ALPHA_TOGETHER: usize = 2;

/// The comparisons, by α.
pub(super) struct Alphas {
    as_argued: Vec<Compared>,
    slower_writes: Vec<Compared>,
    waits: Vec<Waits>,
}

/// Runs them.
pub(super) fn measure(
    drive: &Drive,
    conditions: &Conditions,
    options: &StudyOptions,
    progress: Progress<'_>,
) -> Result<Alphas, StudyError> {
    let argued = ALPHAS.iter().map(|&alpha| as_argued(alpha)).collect::<Result<Vec<_>, _>>()?;
    let published = drive.published.at_4k.asymmetry;
    let slower = |&alpha: &f64| with_slower_writes(&drive.config, alpha / published);
    let slower = ALPHAS.iter().map(slower).collect::<Result<Vec<DeviceConfig>, _>>()?;
    let of = |config, batch: usize, alpha: f64| {
        let methods = vec![Method::Classic, Method::Ace(batch), Method::Ace(alpha.round() as usize)];
        Setting { methods, ..Setting::of(*conditions, MS, POLICIES[0].1, config, batch) }
    };
    let mut settings: Vec<_> =
        argued.iter().zip(ALPHAS).map(|(config, alpha)| of(config, LANES as usize, alpha)).collect();
    settings.extend(slower.iter().zip(ALPHAS).map(|(config, alpha)| of(config, drive.batch, alpha)));
    let mut as_argued = sweep::compare("asymmetry", &settings, options, progress)?;
    let slower_writes = as_argued.split_off(ALPHAS.len());
    let waits = parallel::map("one write", &slower, progress, |config| waits(config, drive.batch, options.seed))?;
    Ok(Alphas { as_argued, slower_writes, waits })
}

/// What the text's model says is left of the classic time where n_w = k_w = α: a miss is 1, a write or a batch α.
fn modelled(compared: &Compared, alpha: f64) -> Measured {
    compared.against_first(ALPHA_TOGETHER, |run, first| {
        (run.misses + alpha * run.batches) / (first.misses + alpha * first.pages_written)
    })
}

impl Alphas {
    /// What ACE saves on the drive as argued at an α, per cent.
    pub(super) fn saved_as_argued(&self, alpha: f64) -> Option<f64> {
        let place = ALPHAS.iter().position(|&known| known == alpha)?;
        Some(self.as_argued[place].saved(ACE).value)
    }

    /// What ACE saves on the drive with slower writes at the least and the largest α, per cent.
    pub(super) fn saved_at_ends(&self) -> [f64; 2] {
        [0, ALPHAS.len() - 1].map(|place| self.slower_writes[place].saved(ACE).value)
    }

    /// Whether ACE saves more with each larger α on the drive as argued.
    pub(super) fn grows_as_argued(&self) -> bool {
        self.as_argued.windows(2).all(|two| two[1].saved(ACE).value > two[0].saved(ACE).value)
    }

    /// By α of figure 8/h: α, the published cost, and that of the model.
    pub(super) fn figure_8h(&self) -> Vec<(u64, f64, f64)> {
        let at = |&(alpha, published): &(u64, f64)| {
            let place = ALPHAS.iter().position(|&known| known == alpha as f64)?;
            Some((alpha, published, modelled(&self.as_argued[place], alpha as f64).value))
        };
        FIGURE_8H.iter().filter_map(at).collect()
    }

    /// The tables and the chart.
    pub(super) fn section(&self, drive: &Drive, conditions: &Conditions) -> StudySection {
        let row = |place: usize| {
            let (argued, slower) = (&self.as_argued[place], &self.slower_writes[place]);
            vec![
                StudyCell::text(format!("{}", ALPHAS[place])),
                argued.mean(CLASSIC, |run| run.seconds).into(),
                argued.saved(ACE).into(),
                slower.mean(CLASSIC, |run| run.seconds).into(),
                slower.saved(ACE).into(),
                StudyCell::text(format!("{:.2}", self.waits[place].write_in_reads())),
            ]
        };
        let model_row = |(alpha, published, modelled): (u64, f64, f64)| {
            [alpha.to_string(), format!("{published:.2}"), format!("{modelled:.2}")].map(StudyCell::text).to_vec()
        };
        let line = |all: &[Compared]| ALPHAS.iter().zip(all).map(|(&alpha, c)| (alpha, c.speedup(ACE))).collect();
        StudySection {
            title: "Effect of the asymmetry α".to_owned(),
            text: vec![
                format!(
                    "MS, LRU, n_w = 8. {}. \"As argued\": eight dies, a write takes α reads, and eight writes take no \
                     longer than one. \"{}\": its writes are accepted α ÷ 3 times as slowly, so α is the ratio of \
                     saturated rates; the time of a single write grows less (last column).",
                    conditions.words(),
                    drive.name
                ),
                "Figure 8/h of the authors shows a remaining cost of 1, 0.72, 0.46 and 0.27 for α of 1, 2, 4 and 8. \
                 The paper's model gives the same numbers with n_w = k_w = α, so they appear to be computed rather \
                 than measured."
                    .to_owned(),
            ],
            tables: vec![
                StudyTable {
                    caption: format!("As argued (s, saved %), then {} (s, saved %, one write ÷ one read):", drive.name),
                    columns: ["α", "argued, s", "ACE, %", "P4510, s", "ACE, %", "w ÷ r"].map(str::to_owned).to_vec(),
                    rows: (0..ALPHAS.len()).map(row).collect(),
                },
                StudyTable {
                    caption: "Cost with n_w = k_w = α ÷ classic cost:".to_owned(),
                    columns: ["α", "figure 8/h", "model"].map(str::to_owned).to_vec(),
                    rows: self.figure_8h().into_iter().map(model_row).collect(),
                },
            ],
            charts: vec![sweep::chart(
                "Asymmetry",
                "α",
                vec![
                    ("as argued".to_owned(), line(&self.as_argued)),
                    (format!("{}, slower writes", drive.name), line(&self.slower_writes)),
                ],
            )],
        }
    }
}
