//! use-hot-locations: SELECTs a second with pages at the hot locations, by inserts a transaction.
//!
//! The drive is learned, the layout made from the profile, the work done with SQLite by default, with pages of the
//! drive's chunk, and with these pages at hot locations.
//!
//! Source: Kakaraparthy et al., PVLDB 13(4), 2019. Their 10 million rows, 50,000 inserts and SELECTs a round and 128
//! MiB of page cache are divided by the same number.

use flashwise_block::{ByteSize, Silent};
use flashwise_kernel::KernelConfig;
use flashwise_report::study::{Measured, StudyCell, StudySection, StudyTable};
use flashwise_tune::sqlite::{HotLocationRuns, KeyValueWorkload, Workload, hot_locations, learn_target};
use flashwise_tune::{DEFAULT_TARGET, Host, Target};

use crate::{Progress, StudyError, StudyOptions, parallel, statistics};

/// Inserts a transaction in the text.
const PER_TRANSACTION: [u32; 4] = [1, 500, 5_000, 50_000];
/// What the text has, in per cent.
pub(super) const CLAIMED: f64 = 29.0;

/// All runs, by inserts a transaction and seed.
pub(super) struct Hot {
    compared: Vec<Vec<HotLocationRuns>>,
    divisor: u32,
    /// What the times include.
    times: String,
    is_bare: bool,
}

/// Fits SQLite to the Samsung.
pub(super) fn measure(options: &StudyOptions, progress: Progress<'_>) -> Result<Hot, StudyError> {
    let (divisor, rounds, seeds) = if options.quick { (200, 2, 2) } else { (50, 6, 5) };
    let drive = Target::parse(DEFAULT_TARGET)?;
    progress("learning", 0.0);
    let profile = learn_target(&drive, options.seed, None, &mut Silent)?;
    let page_cache = ByteSize(KeyValueWorkload::FULL.page_cache.0 / u64::from(divisor));
    let host = scarce(&options.host, KeyValueWorkload::FULL.rows / divisor);
    let times = match &host {
        Host::Bare => "Times are drive time.".to_owned(),
        host => format!("On {}; times include {}.", host.describe(), host.describe_program()),
    };
    let is_bare = host == Host::Bare;
    let target = drive.with_host(host);
    let work: Vec<(u32, u64)> =
        PER_TRANSACTION.iter().flat_map(|&n| (0..seeds).map(move |seed| (n.div_ceil(divisor), seed))).collect();
    let full = KeyValueWorkload::FULL;
    let compared = parallel::map("hot locations", &work, progress, |&(inserts_per_transaction, seed)| {
        let workload = KeyValueWorkload {
            rows: full.rows / divisor,
            rounds,
            inserts_per_round: full.inserts_per_round / divisor,
            selects_per_round: full.selects_per_round / divisor,
            inserts_per_transaction,
            page_cache,
        };
        let (workload, seed) = (Workload::KeyValue(workload), options.seed.wrapping_add(seed));
        hot_locations(&target, &workload, &profile, seed, &mut Silent)?.ok_or(StudyError::NoHotLocations)
    })?;
    Ok(Hot { compared: compared.chunks(seeds as usize).map(<[_]>::to_vec).collect(), divisor, times, is_bare })
}

/// Bytes of the database a row, with its share of a page's free space.
const BYTES_A_ROW: u64 = 125;
/// The machine's page cache has so many times less than the database.
const SCARCITY: u64 = 4;

/// A machine whose page cache holds a part of a table of so many rows: scaled down, the table would be read from memory
/// otherwise.
fn scarce(host: &Host, rows: u32) -> Host {
    match host {
        Host::Bare => Host::Bare,
        Host::Linux { kernel, program } => {
            let memory = ByteSize(u64::from(rows) * BYTES_A_ROW / SCARCITY);
            Host::Linux { kernel: Box::new(KernelConfig { memory, ..(**kernel).clone() }), program: *program }
        }
    }
}

fn mean(of: &[HotLocationRuns], what: impl Fn(&HotLocationRuns) -> f64) -> Measured {
    statistics::mean(&of.iter().map(what).collect::<Vec<_>>())
}

/// By how many per cent SELECTs gain at the same page size.
fn gain(runs: &HotLocationRuns) -> f64 {
    100.0 * (runs.after.select_per_s / runs.before.select_per_s - 1.0)
}

fn against_default(runs: &HotLocationRuns) -> f64 {
    100.0 * (runs.after.select_per_s / runs.default.select_per_s - 1.0)
}

impl Hot {
    /// The gain by inserts a transaction, per cent.
    pub(super) fn gains(&self) -> Vec<Measured> {
        self.compared.iter().map(|of| mean(of, gain)).collect()
    }

    /// The mean of everything.
    fn over_all(&self, what: impl Fn(&HotLocationRuns) -> f64) -> f64 {
        statistics::mean(&self.compared.iter().flatten().map(what).collect::<Vec<_>>()).value
    }

    /// Times of a SELECT with one insert a transaction, without and with the technique, µs.
    pub(super) fn select_times(&self) -> [f64; 2] {
        let one = self.compared.first().map_or(&[][..], Vec::as_slice);
        [mean(one, |of| 1e6 / of.before.select_per_s), mean(one, |of| 1e6 / of.after.select_per_s)].map(|of| of.value)
    }

    /// Why long transactions gain less.
    pub(super) fn what_is_lost(&self) -> &'static str {
        match self.is_bare {
            true => "",
            false => {
                "Longer transactions dirty more pages than the kernel keeps (10 % of its memory): it writes them back \
                 before the sync and joins them, and their locations are not hot any more. "
            }
        }
    }

    /// How long a SELECT would have to take beside the drive for the claimed gain, µs.
    pub(super) fn time_beside(&self) -> f64 {
        let [cold, hot] = self.select_times();
        let claimed = 1.0 + CLAIMED / 100.0;
        (cold - claimed * hot) / (claimed - 1.0)
    }

    /// SELECTs against SQLite with its own page size, per cent.
    pub(super) fn against_default(&self) -> f64 {
        self.over_all(against_default)
    }

    /// The table.
    pub(super) fn section(&self) -> StudySection {
        let row = |(of, text): (&Vec<HotLocationRuns>, u32)| {
            vec![
                StudyCell::text(format!("{} ({text})", text.div_ceil(self.divisor))),
                mean(of, |of| of.before.select_per_s).into(),
                mean(of, |of| of.after.select_per_s).into(),
                mean(of, gain).into(),
                mean(of, |of| of.before.insert_per_s).into(),
                mean(of, |of| of.after.insert_per_s).into(),
                mean(of, |of| of.default.select_per_s).into(),
            ]
        };
        let [cold, hot] = self.select_times();
        StudySection {
            title: "Gain from hot locations".to_owned(),
            text: vec![
                format!(
                    "Samsung 960 EVO, learned, with the paper's table and rounds and {} rows, all scaled down \
                     together with the page cache by {}. 64 KiB pages, plain and at hot locations. {}",
                    KeyValueWorkload::FULL.rows / self.divisor,
                    self.divisor,
                    self.times
                ),
                format!(
                    "With one insert per transaction a SELECT takes {cold:.0} µs without and {hot:.0} µs with the \
                     technique. {}SQLite's default 4 KiB pages are faster than both for this work.",
                    self.what_is_lost()
                ),
            ],
            tables: vec![StudyTable {
                caption:
                    "Inserts per transaction (the paper's); SELECTs a second, plain and hot, and the gain, %; inserts \
                     a second, plain and hot; SELECTs a second with 4 KiB pages:"
                        .to_owned(),
                columns: ["inserts", "SELECT/s", "hot", "gain, %", "insert/s", "hot", "4 KiB"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: self.compared.iter().zip(PER_TRANSACTION).map(row).collect(),
            }],
            charts: Vec::new(),
        }
    }
}
