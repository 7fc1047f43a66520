//! What room that is left in the pages of a table costs on a drive that compresses.

use std::sync::{Mutex, PoisonError};

use flashwise_block::grouped;
use flashwise_report::study::{Measured, StudyCell, StudyChart, StudyPoint, StudySection, StudySeries, StudyTable};

use super::drives::{self, CODINGS, Size};
use super::postgres::Postgres;
use super::rows::Content;
use super::{Scale, sqlite_pages};
use crate::{Progress, StudyError, StudyOptions, parallel, statistics};

/// Fill factors, per cent; the first is what the others are compared with.
const FILLS: [u32; 5] = [100, 90, 75, 60, 50];
/// The place of the text's.
pub(super) const SEVENTY_FIVE: usize = 2;
/// The place of the smallest.
const FIFTY: usize = 4;
/// The place of zlib at its own level among the codes.
pub(super) const ZLIB: usize = 0;

/// Whose pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Postgres,
    /// SQLite, the space that is left holding zeros.
    SqliteZeros,
    /// SQLite, the space that is left holding what was deleted.
    SqliteOldBytes,
}

impl Source {
    const ALL: [Self; 3] = [Self::Postgres, Self::SqliteZeros, Self::SqliteOldBytes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::SqliteZeros => "SQLite, zeros",
            Self::SqliteOldBytes => "SQLite, old bytes",
        }
    }
}

/// Sizes by fill factor and code.
type Grid = Vec<Vec<Size>>;

/// The tables of one kind, by seed.
pub(super) struct Tables {
    pub(super) source: Source,
    pub(super) content: Content,
    grids: Vec<Grid>,
}

/// All that was measured.
pub(super) struct FillFactor {
    pub(super) tables: Vec<Tables>,
    /// The version of PostgreSQL, or why there is none.
    postgres: Result<String, String>,
}

/// Loads, writes and weighs all tables.
pub(super) fn measure(scale: &Scale, options: &StudyOptions, progress: Progress<'_>) -> Result<FillFactor, StudyError> {
    let postgres = Postgres::new().map(Mutex::new);
    let sources = || Source::ALL.into_iter().filter(|&source| source != Source::Postgres || postgres.is_ok());
    let kinds: Vec<_> = sources().flat_map(|source| Content::ALL.map(|content| (source, content))).collect();
    let seeds = scale.seeds(options);
    let work: Vec<_> = kinds.iter().flat_map(|&kind| seeds.iter().map(move |&seed| (kind, seed))).collect();
    let grids = parallel::map("fill factor", &work, progress, |&((source, content), seed)| {
        let images = match (source, &postgres) {
            (Source::Postgres, Ok(postgres)) => {
                // Single-user mode: one at a time.
                let postgres = postgres.lock().unwrap_or_else(PoisonError::into_inner);
                postgres.images(content, scale.rows, &FILLS, seed)?
            }
            _ => {
                let has_zeros = source == Source::SqliteZeros;
                let image = |&fill: &u32| sqlite_pages::image(content, scale.rows, fill, has_zeros, seed);
                FILLS.iter().map(image).collect::<Result<_, _>>()?
            }
        };
        let weigh = |image: &Vec<u8>| {
            CODINGS.iter().map(|coding| drives::size_of(image, coding)).collect::<Result<Vec<Size>, StudyError>>()
        };
        images.iter().map(weigh).collect::<Result<Grid, StudyError>>()
    })?;
    let mut grids = grids.chunks(seeds.len());
    let tables = kinds.iter().map(|&(source, content)| {
        let grids = grids.next().map(<[Grid]>::to_vec).unwrap_or_default();
        Tables { source, content, grids }
    });
    let tables = tables.collect();
    let postgres = match &postgres {
        Ok(postgres) => Ok(postgres.lock().unwrap_or_else(PoisonError::into_inner).version.clone()),
        Err(why) => Err(why.clone()),
    };
    Ok(FillFactor { tables, postgres })
}

impl Tables {
    fn mean(&self, fill: usize, coding: usize, of: impl Fn(Size, Size) -> f64) -> Measured {
        let values = self.grids.iter().map(|grid| of(grid[fill][coding], grid[0][coding]));
        statistics::mean(&values.collect::<Vec<_>>())
    }

    /// Logical bytes beyond those of full pages, per cent.
    pub(super) fn more_logical(&self, fill: usize) -> Measured {
        self.mean(fill, ZLIB, |size, full| 100.0 * (size.logical / full.logical - 1.0))
    }

    /// Physical bytes beyond those of full pages, per cent.
    pub(super) fn more_physical(&self, fill: usize, coding: usize) -> Measured {
        self.mean(fill, coding, |size, full| 100.0 * (size.physical / full.physical - 1.0))
    }

    /// Logical ÷ physical bytes.
    pub(super) fn ratio(&self, fill: usize, coding: usize) -> Measured {
        self.mean(fill, coding, |size, _| size.logical / size.physical)
    }

    /// Physical bytes that each added logical one takes, per cent.
    pub(super) fn price(&self, fill: usize, coding: usize) -> Measured {
        let price = |size: Size, full: Size| 100.0 * (size.physical - full.physical) / (size.logical - full.logical);
        self.mean(fill, coding, price)
    }

    fn name(&self) -> String {
        format!("{}, {}", self.source.name(), self.content.name())
    }
}

impl FillFactor {
    /// The tables of one kind.
    pub(super) fn find(&self, source: Source, content: Content) -> Option<&Tables> {
        self.tables.iter().find(|tables| tables.source == source && tables.content == content)
    }

    /// The best pages that there are: PostgreSQL's, or SQLite's with zeros.
    pub(super) fn source(&self) -> Source {
        if self.postgres.is_ok() { Source::Postgres } else { Source::SqliteZeros }
    }

    /// What is to be said of PostgreSQL.
    pub(super) fn about_postgres(&self) -> String {
        match &self.postgres {
            Ok(version) => format!(
                "PostgreSQL's pages are those of the installed version, {version}. Pages contain the log position of \
                 their last change, so another version may give sizes that differ by some granules."
            ),
            Err(why) => format!("PostgreSQL's pages were not measured: {why}. SQLite's are used instead."),
        }
    }

    /// The sections.
    pub(super) fn sections(&self, scale: &Scale) -> Vec<StudySection> {
        vec![self.by_fill(scale), self.by_coding()]
    }

    fn by_fill(&self, scale: &Scale) -> StudySection {
        let row = |tables: &Tables, fill: usize| -> Vec<StudyCell> {
            let price = if fill == 0 { StudyCell::text("") } else { tables.price(fill, ZLIB).into() };
            vec![
                StudyCell::text(format!("{}, {}", tables.name(), FILLS[fill])),
                tables.more_logical(fill).into(),
                tables.more_physical(fill, ZLIB).into(),
                tables.ratio(fill, ZLIB).into(),
                price,
            ]
        };
        let rows = self.tables.iter().flat_map(|tables| (0..FILLS.len()).map(move |fill| row(tables, fill)));
        let series = self.tables.iter().filter(|tables| tables.content == Content::Words).map(|tables| StudySeries {
            name: tables.source.name().to_owned(),
            points: (0..FILLS.len())
                .map(|fill| StudyPoint { x: FILLS[fill].into(), y: tables.more_physical(fill, ZLIB) })
                .collect(),
        });
        StudySection {
            title: "Cost of free space in pages".to_owned(),
            text: vec![
                format!(
                    "{} rows of TPC-C's STOCK, in 8 KiB pages, written to the drive with their bytes; 4 KiB blocks, \
                     zlib at level 6, granules of 64 bytes; {} seeds.",
                    grouped(scale.rows.into()),
                    scale.seeds
                ),
                "PostgreSQL is loaded WITH (fillfactor = N). SQLite has no fill factor: more rows are loaded than \
                 needed, and the surplus, evenly spaced, is deleted. With secure_delete the space between is zeros, \
                 as in PostgreSQL; without it the old bytes remain."
                    .to_owned(),
            ],
            tables: vec![StudyTable {
                caption: "Pages, strings, fill factor; logical and physical bytes compared with full pages, %; \
                          logical ÷ physical; physical bytes per added logical byte, %:"
                    .to_owned(),
                columns: ["", "logical, %", "physical, %", "ratio", "price, %"].map(str::to_owned).to_vec(),
                rows: rows.collect(),
            }],
            charts: vec![StudyChart {
                title: "Physical bytes by fill factor, words".to_owned(),
                x_label: "fill factor, %".to_owned(),
                x_is_bytes: false,
                y_label: "physical bytes compared with full pages, %".to_owned(),
                series: series.collect(),
            }],
        }
    }

    fn by_coding(&self) -> StudySection {
        let row = |tables: &Tables, coding: usize| -> Vec<StudyCell> {
            vec![
                StudyCell::text(format!("{}, {}", tables.name(), CODINGS[coding].name)),
                tables.ratio(0, coding).into(),
                tables.ratio(SEVENTY_FIVE, coding).into(),
                tables.more_physical(SEVENTY_FIVE, coding).into(),
                tables.more_physical(FIFTY, coding).into(),
            ]
        };
        let rows = self.tables.iter().flat_map(|tables| (0..CODINGS.len()).map(move |coding| row(tables, coding)));
        StudySection {
            title: "Effect of the compression code".to_owned(),
            text: vec!["The same pages on drives with other codes.".to_owned()],
            tables: vec![StudyTable {
                caption:
                    "Pages, strings, code; logical ÷ physical at fill factors 100 and 75; physical bytes compared \
                     with full pages at 75 and 50, %:"
                        .to_owned(),
                columns: ["", "ratio, 100", "ratio, 75", "at 75, %", "at 50, %"].map(str::to_owned).to_vec(),
                rows: rows.collect(),
            }],
            charts: Vec::new(),
        }
    }
}
