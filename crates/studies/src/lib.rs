//! Published studies as runnable experiments: claims of a paper compared with measurements.
//!
//! ```text
//!   STUDIES ─▶ Study::run(options, progress) ─▶ StudyDocument (crates/report) ─▶ text, JSON, HTML
//!                 │
//!                 └─ experiments: a drive, a workload, repeated with other seeds until the mean is known (statistics)
//! ```
//!
//! A study states each claim of its paper, measures it under the paper's conditions, and varies one condition at a time
//! to explain the result. Every value has the 95 % interval of its mean. Claims that are not reproduced are reported as
//! such.
//!
//! To add a study: a module with a function of the form of [`Study::run`] that returns `Findings`, a line in
//! [`STUDIES`], a page in `docs/studies/`. A study that needs a drive as a block device runs `flashwise attach`
//! (`attached/`).

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro))]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a test makes and removes files of its own"))]

mod ace;
mod ace_postgres;
pub mod attached;
mod bonnie;
mod cloud_volumes;
mod death_time;
mod dedup_raid;
mod error;
mod fillfactor;
mod fit;
mod flash_per_transaction;
mod gc_organisation;
mod hidden_parameters;
mod kept;
mod mariadb;
mod parallel;
mod real_drives;
pub mod slots;
mod sqlite;
mod statistics;
mod stores;
mod transparent_compression;
mod verdict;

use std::path::PathBuf;

use flashwise_block::ByteSize;
use flashwise_report::study::{STUDY_SCHEMA, STUDY_SCHEMA_VERSION, StudyClaim, StudyDocument, StudySection};
use flashwise_tune::{Host, ProgramTime, TuneError};

pub use error::StudyError;

/// How a study is run.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyOptions {
    /// The small version: the same questions, fewer points and repetitions.
    pub quick: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// The program `flashwise`, which a study runs that attaches drives; the others do without.
    pub program: Option<PathBuf>,
    /// Where a study that runs SQLite on a simulated drive has its databases.
    pub host: Host,
    /// A program that runs other stores (`benches/stores-beside`), for the study `stores`.
    pub peers: Option<PathBuf>,
    /// The folder of PostgreSQL's programs for the study `ace-postgres`; the newest that is installed by default.
    pub programs: Option<PathBuf>,
    /// A file in which the studies `ace-postgres`, `flash-per-transaction` and `stores` keep finished runs, and whose
    /// runs they do not repeat.
    pub resume: Option<PathBuf>,
}

/// The file system under SQLite's files unless another is named.
pub const DEFAULT_FILE_SYSTEM: &str = "ext4";
/// Memory of the machine on which a study runs SQLite. The same on every machine, so that results are.
const MEMORY: ByteSize = ByteSize::gib(4);

impl StudyOptions {
    /// A study whose databases are on [`DEFAULT_FILE_SYSTEM`].
    ///
    /// # Errors
    /// When there is no such file system.
    pub fn new(quick: bool, seed: u64) -> Result<Self, StudyError> {
        let host = Self::machine(DEFAULT_FILE_SYSTEM)?;
        Ok(Self { quick, seed, program: None, host, peers: None, programs: None, resume: None })
    }

    /// The simulated machine with that file system; `none` is the bare drive.
    ///
    /// # Errors
    /// When there is no such file system.
    pub fn machine(file_system: &str) -> Result<Host, TuneError> {
        Host::named(file_system, MEMORY, ProgramTime::Modelled)
    }
}

/// Told how far a study is: what it does, and how much of it is done, 0 to 1. It may be called by several threads.
pub type Progress<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// What a study found.
#[derive(Debug)]
pub struct Findings {
    /// What the text claims beside what is measured.
    pub claims: Vec<StudyClaim>,
    /// The measurements.
    pub sections: Vec<StudySection>,
    /// What the study does not tell.
    pub limits: Vec<String>,
}

/// A published study.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// Authors, title, place and year of the text.
    pub source: &'static str,
    run: fn(&StudyOptions, Progress<'_>) -> Result<Findings, StudyError>,
}

/// All studies, in the order in which they are listed.
pub static STUDIES: [Study; 15] = [
    Study {
        name: "ace",
        title: "ACE: write-back and prefetching in batches",
        source: "T. I. Papon, M. Athanassoulis: ACEing the Bufferpool Management Paradigm for Modern Storage Devices. \
                 ICDE, 2023. M. Athanassoulis: Asymmetry & Concurrency Aware Storage Management. CS 561, class 18, Boston \
                 University.",
        run: ace::run,
    },
    Study {
        name: "ace-postgres",
        title: "ACE in PostgreSQL: settings, extension, paper's scheme",
        source: "T. I. Papon, M. Athanassoulis: ACEing the Bufferpool Management Paradigm for Modern Storage Devices. \
                 ICDE, 2023.",
        run: ace_postgres::run,
    },
    Study {
        name: "cloud-volumes",
        title: "Cloud volumes: limits, bursts, a limiter that holds",
        source: "Maps of gp3 and Persistent Disk: scylladb/diskplorer. Azure's local NVMe: eloqdata/eloqstore, \
                 docs/design/io_qos.md. i4i: G. Haas et al.: SSD-iq: Uncovering the Hidden Side of SSD Performance. PVLDB \
                 18(11), 2025. gp2: AWS documentation.",
        run: cloud_volumes::run,
    },
    Study {
        name: "death-time",
        title: "Garbage collection that knows when pages die",
        source: "T. Lange, J. Naor, G. Yadgar: Offline and Online Algorithms for SSD Management. Proc. ACM Meas. Anal. \
                 Comput. Syst. 5(3) (SIGMETRICS), 2021; Communications of the ACM 66(7), 2023. G. Haas et al.: SSD-iq: \
                 Uncovering the Hidden Side of SSD Performance. PVLDB 18(11), 2025.",
        run: death_time::run,
    },
    Study {
        name: "dedup-raid",
        title: "SLC and MLC drives in RAID-10, 5 and 6 under Bonnie++",
        source: "StorIQ: Une nouvelle génération de SSD. La traînée de poudre, 20 May 2011.",
        run: dedup_raid::run,
    },
    Study {
        name: "fillfactor",
        title: "PostgreSQL's fill factor on drives that compress",
        source: "ScaleFlux: opportunities that computational storage drives bring to database software (CSD 2000).",
        run: fillfactor::run,
    },
    Study {
        name: "fit",
        title: "Where a fit of SQLite pays: five workloads, nine drives",
        source: "No paper: what a user may expect beside SQLite's defaults and the usual checklist, a write-ahead log \
                 and a page cache of 64 MiB.",
        run: fit::run,
    },
    Study {
        name: "flash-per-transaction",
        title: "Flash bytes of a transaction: user × database × drive",
        source: "No paper: each factor by itself. The published figure beside it is that of a Samsung PM9A3 in the study \
                 real-drives.",
        run: flash_per_transaction::run,
    },
    Study {
        name: "gc-organisation",
        title: "Internal organisation and GC in DiskSim's SSD model",
        source: "V. Machado, F. Boito, R. Kassick, P. Navaux: Simulando o Impacto da Organização Interna de um SSD no \
                 seu Desempenho. Escola Regional de Alto Desempenho (ERAD), Gramado, 2015.",
        run: gc_organisation::run,
    },
    Study {
        name: "hidden-parameters",
        title: "Published hidden parameters, learned blind",
        source: "A. Kakaraparthy, J. M. Patel, K. Park, B. P. Kroth: Optimizing Databases by Learning Hidden Parameters \
                 of Solid State Drives. PVLDB 13(4), 2019. T. I. Papon, M. Athanassoulis: A Parametric I/O Model for \
                 Modern Storage Devices. DaMoN, 2021.",
        run: hidden_parameters::run,
    },
    Study {
        name: "mariadb",
        title: "MariaDB, unpatched: hot locations and the binary log",
        source: "A. Kakaraparthy, J. M. Patel, K. Park, B. P. Kroth: Optimizing Databases by Learning Hidden Parameters \
                 of Solid State Drives. PVLDB 13(4), 2019.",
        run: mariadb::run,
    },
    Study {
        name: "real-drives",
        title: "Data-centre drives: write amplification, cliff, skew, zones",
        source: "G. Haas et al.: SSD-iq: Uncovering the Hidden Side of SSD Performance. PVLDB 18(11), 2025; the data in \
                 the authors' repository.",
        run: real_drives::run,
    },
    Study {
        name: "sqlite",
        title: "SQLite: hot locations, aligned logs, checkpoints",
        source: "A. Kakaraparthy, J. M. Patel, K. Park, B. P. Kroth: Optimizing Databases by Learning Hidden Parameters \
                 of Solid State Drives. PVLDB 13(4), 2019. Y. Qiao et al.: Closing the B+-tree vs. LSM-tree Write \
                 Amplification Gap on Modern Storage Hardware with Built-in Transparent Compression. FAST, 2022. \
                 T. I. Papon, M. Athanassoulis: ACEing the Bufferpool Management Paradigm for Modern Storage Devices. \
                 ICDE, 2023.",
        run: sqlite::run,
    },
    Study {
        name: "stores",
        title: "B⁻-tree and table-less hash beside other stores",
        source: "Y. Qiao et al.: Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with \
                 Built-in Transparent Compression. FAST, 2022. KallaxDB: A Table-less Hash-based Key-Value Store on \
                 Storage Hardware with Built-in Transparent Compression. DaMoN, 2021.",
        run: stores::run,
    },
    Study {
        name: "transparent-compression",
        title: "Partly filled pages and sparse logs under compression",
        source: "ScaleFlux: opportunities that computational storage drives bring to database software (CSD 2000). Y. Qiao \
                 et al.: Closing the B+-tree vs. LSM-tree Write Amplification Gap on Modern Storage Hardware with Built-in \
                 Transparent Compression. FAST, 2022.",
        run: transparent_compression::run,
    },
];

impl Study {
    /// The study of that name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<&'static Self, StudyError> {
        STUDIES.iter().find(|study| study.name == name).ok_or_else(|| StudyError::Unknown {
            name: name.to_owned(),
            known: flashwise_block::names::choices(name, STUDIES.iter().map(|study| study.name)),
        })
    }

    /// Runs it.
    ///
    /// # Errors
    /// When a drive of it cannot be built or loses a request.
    pub fn run(&self, options: &StudyOptions, progress: Progress<'_>) -> Result<StudyDocument, StudyError> {
        let Findings { claims, sections, limits } = (self.run)(options, progress)?;
        Ok(StudyDocument {
            schema: STUDY_SCHEMA.to_owned(),
            schema_version: STUDY_SCHEMA_VERSION,
            flashwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            source: self.source.to_owned(),
            quick: options.quick,
            seed: options.seed,
            claims,
            sections,
            limits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_found_by_its_name_and_another_name_is_told_with_those_that_exist() {
        assert_eq!(Study::find("gc-organisation").unwrap().name, "gc-organisation");
        let error = Study::find("gc").err().unwrap().to_string();
        assert_eq!(
            error,
            "unknown study 'gc': choose one of ace, ace-postgres, cloud-volumes, death-time, dedup-raid, fillfactor, fit, \
             flash-per-transaction, gc-organisation, hidden-parameters, mariadb, real-drives, sqlite, stores, \
             transparent-compression"
        );
    }
}
