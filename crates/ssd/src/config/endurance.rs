//! How many program/erase cycles cells endure: keys of `[flash.endurance]`; without the table nothing wears out, unless
//! `flash.reliability` says how.
//!
//! Figures for the same kind of cell differ by more than ten times between years and makers, so each has a source:
//!
//! | cell | `"2009"` | `"2011"` | `"today"` | `"today-best"` |
//! |---|---|---|---|---|
//! | SLC | 100,000 | 1,000,000 | 30,000 | 100,000 |
//! | MLC | 10,000 | 100,000 | 3,000 | 10,000 |
//! | TLC | – | – | 800 | 3,000 |
//! | QLC | – | – | 100 | 1,000 |
//! | 3D XPoint | – | – | 54,750 | 1,400,000 |
//!
//! - `"2009"` and `"2011"`: StorIQ, "Une nouvelle génération de SSD", 20 May 2011, which gives both years and no other
//!   cells. Its figures of 2011 are ten times those of 2009. Cells went the other way: smaller ones endure less, and no
//!   data sheet of 2011 or later bears the rise out. They are there to play that comparison, not to plan with.
//! - `"today"` and `"today-best"` for NAND flash: the two ends of what makers and their resellers promise. HP, "Solid
//!   State Drive Technology: Differences between SLC, MLC and TLC NAND" (SLC 100,000, MLC 3,000 to 5,000, TLC 1,000 to
//!   3,000); Kalstor, "SLC, MLC, TLC, QLC and pSLC", after Lexar Enterprise and Delkin (SLC 50,000 to 100,000, MLC
//!   3,000 to 10,000, TLC 1,000 to 3,000, QLC 100 to 1,000). The lowest SLC and TLC figures, 30,000 and 800, are those
//!   of small planar cells.
//! - 3D XPoint has writes in place instead of cycles, and no published rating of its cells. Both figures are what a
//!   product promises, so that they hold its own levelling and caution. Lower end: Intel Optane SSD DC P4800X, 30 drive
//!   writes a day for 5 years (AnandTech's review of the 750 GB model, 2017): 30 · 365 · 5 = 54,750. Upper end: Optane
//!   DC Persistent Memory of 256 GB, about 360 PB (Blocks & Files, 4 April 2019): 360 PB ÷ 256 GB ≈ 1,400,000.
//!
//! # Adding figures
//!
//! A name in the list of [`EnduranceFigures`], with its source above, and a column in its `pe_cycles`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::choices::choices;
use super::{CellType, DeviceConfig, Mapping};
use crate::error::SsdError;

choices! {
    /// Whose figures for the P/E cycles of a cell.
    pub enum EnduranceFigures {
        /// Figures for cells of 2009: SLC 100,000, MLC 10,000 (StorIQ, 2011).
        Y2009 = "2009",
        /// Figures of the same text for cells of 2011: SLC 1,000,000, MLC 100,000; no data sheet confirms them.
        Y2011 = "2011",
        /// Lowest ratings of today's cells: SLC 30,000, MLC 3,000, TLC 800, QLC 100, 3D XPoint 54,750.
        Today = "today",
        /// Highest ratings of today's cells: SLC 100,000, MLC 10,000, TLC 3,000, QLC 1,000, 3D XPoint 1,400,000.
        TodayBest = "today-best",
    }
}

impl EnduranceFigures {
    /// P/E cycles that a cell endures; `None` where these figures know no such cell.
    pub fn pe_cycles(self, cell: CellType) -> Option<u32> {
        let by_figures = match cell {
            CellType::Slc => [Some(100_000), Some(1_000_000), Some(30_000), Some(100_000)],
            CellType::Mlc => [Some(10_000), Some(100_000), Some(3_000), Some(10_000)],
            CellType::Tlc => [None, None, Some(800), Some(3_000)],
            CellType::Qlc => [None, None, Some(100), Some(1_000)],
            CellType::Xpoint => [None, None, Some(54_750), Some(1_400_000)],
        };
        by_figures[self as usize]
    }
}

/// Endurance of the cells, and the intended life of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnduranceConfig {
    /// Source of the P/E cycles of `flash.cell`. `pe_cycles` or `flash.reliability.pe_cycles_limit` set a number
    /// instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<EnduranceFigures>,
    /// P/E cycles after which each further erase of a block fails; with mapping in place, writes to a page after which
    /// it fails. With block mapping, a block that fails is set aside, and the drive is read-only when it has no more to
    /// spare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pe_cycles: Option<u32>,
    /// Variation of blocks: their P/E cycles are normally distributed about that number with this share of it as
    /// standard deviation, drawn from the drive's seed, and at least 1; default 0. Boboila and Desnoyers, "Write
    /// Endurance in Flash Drives: Measurements and Analysis", FAST 2010, measured the variation of blocks of one chip.
    pub spread: f64,
    /// Years for which drive writes per day are computed; default 5.
    pub warranty_years: f64,
}

impl Default for EnduranceConfig {
    fn default() -> Self {
        Self { figures: None, pe_cycles: None, spread: 0.0, warranty_years: 5.0 }
    }
}

impl EnduranceConfig {
    pub(super) fn check(&self, config: &DeviceConfig, checker: &Checker<'_>) -> Result<(), SsdError> {
        let limit = config.flash.reliability.and_then(|reliability| reliability.pe_cycles_limit);
        let given = [self.figures.is_some(), self.pe_cycles.is_some(), limit.is_some()];
        let one = given.iter().filter(|&&given| given).count() == 1;
        let reason = "give the P/E cycles in exactly one way: figures, pe_cycles or flash.reliability.pe_cycles_limit";
        checker.require("flash.endurance", format!("{self:?}"), one, reason)?;
        let cycles = self.pe_cycles.unwrap_or(1);
        checker.count("flash.endurance.pe_cycles", cycles, 1 << 30, "must be between 1 and 2^30")?;
        checker.share("flash.endurance.spread", self.spread, 0.0, 0.5)?;
        let years = self.warranty_years;
        let possible = (0.1..=100.0).contains(&years);
        checker.require("flash.endurance.warranty_years", years, possible, "must be between 0.1 and 100 years")?;
        let reason = "not supported for mapping = \"element\"";
        let wears = config.ftl.mapping != Mapping::Element;
        checker.require("flash.endurance", "present", wears, reason)?;
        let reason = "requires mapping = \"page\"";
        let alike = self.spread == 0.0 || config.ftl.mapping == Mapping::Page;
        checker.require("flash.endurance.spread", self.spread, alike, reason)?;
        let Some(figures) = self.figures else { return Ok(()) };
        let reason = match config.flash.cell {
            None => "requires flash.cell".to_owned(),
            Some(cell) => format!("no figures for cell \"{}\"", format!("{cell:?}").to_lowercase()),
        };
        let known = config.flash.cell.is_some_and(|cell| figures.pe_cycles(cell).is_some());
        checker.require("flash.endurance.figures", format!("{figures:?}"), known, reason)
    }
}

impl DeviceConfig {
    /// P/E cycles that a block endures, or writes to a page of a medium that is written in place, as a mean where
    /// blocks differ; `None` where nothing wears out.
    pub fn pe_cycles_limit(&self) -> Option<u32> {
        let own = self.flash.reliability.and_then(|reliability| reliability.pe_cycles_limit);
        let Some(endurance) = self.flash.endurance else { return own };
        let of_cell = endurance.figures.zip(self.flash.cell).and_then(|(figures, cell)| figures.pe_cycles(cell));
        of_cell.or(endurance.pe_cycles).or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ReliabilityConfig;

    fn with(cell: Option<CellType>, endurance: EnduranceConfig) -> DeviceConfig {
        let mut config = DeviceConfig::preset("samsung-960-evo").unwrap();
        (config.flash.cell, config.flash.endurance) = (cell, Some(endurance));
        config
    }

    fn figures(figures: EnduranceFigures) -> EnduranceConfig {
        EnduranceConfig { figures: Some(figures), ..EnduranceConfig::default() }
    }

    fn refused(config: &DeviceConfig) -> String {
        config.check("mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn figures_of_a_later_year_are_those_that_their_sources_give() {
        use CellType::{Mlc, Qlc, Slc, Tlc, Xpoint};
        let of = |cell: CellType| EnduranceFigures::ALL.map(|figures| figures.pe_cycles(cell));
        assert_eq!(of(Slc), [Some(100_000), Some(1_000_000), Some(30_000), Some(100_000)]);
        assert_eq!(of(Mlc), [Some(10_000), Some(100_000), Some(3_000), Some(10_000)]);
        assert_eq!((of(Tlc), of(Qlc)), ([None, None, Some(800), Some(3_000)], [None, None, Some(100), Some(1_000)]));
        assert_eq!(of(Xpoint)[2], Some(30 * 365 * 5));
        for figures in [EnduranceFigures::Today, EnduranceFigures::TodayBest] {
            let ladder = [Slc, Mlc, Tlc, Qlc].map(|cell| figures.pe_cycles(cell));
            assert!(ladder.is_sorted_by(|more, less| more > less), "each further bit costs endurance: {ladder:?}");
        }
    }

    #[test]
    fn the_limit_comes_from_the_cells_or_is_a_number_of_ones_own() {
        let tlc = Some(CellType::Tlc);
        assert_eq!(with(tlc, figures(EnduranceFigures::Today)).pe_cycles_limit(), Some(800));
        let own = EnduranceConfig { pe_cycles: Some(77), ..EnduranceConfig::default() };
        assert_eq!(with(None, own).pe_cycles_limit(), Some(77));
        let mut old = with(None, EnduranceConfig { spread: 0.1, ..EnduranceConfig::default() });
        old.flash.reliability = Some(ReliabilityConfig { pe_cycles_limit: Some(9), ..ReliabilityConfig::default() });
        assert_eq!((old.check("old"), old.pe_cycles_limit()), (Ok(()), Some(9)));
        old.flash.endurance = None;
        assert_eq!(old.pe_cycles_limit(), Some(9));
        assert_eq!(DeviceConfig::preset("samsung-960-evo").unwrap().pe_cycles_limit(), None);
    }

    #[test]
    fn figures_without_a_cell_that_they_know_are_refused() {
        assert!(refused(&with(None, figures(EnduranceFigures::Today))).contains("requires flash.cell"));
        let told = refused(&with(Some(CellType::Qlc), figures(EnduranceFigures::Y2011)));
        assert!(told.contains("flash.endurance.figures") && told.contains("no figures for cell \"qlc\""), "{told}");
    }

    #[test]
    fn a_limit_that_is_given_twice_or_not_at_all_is_refused() {
        assert!(refused(&with(None, EnduranceConfig::default())).contains("exactly one way"));
        let twice = EnduranceConfig { pe_cycles: Some(5), ..figures(EnduranceFigures::Today) };
        assert!(refused(&with(Some(CellType::Mlc), twice)).contains("exactly one way"));
        let wide = EnduranceConfig { pe_cycles: Some(5), spread: 0.6, ..EnduranceConfig::default() };
        assert!(refused(&with(None, wide)).contains("between 0 and 0.5"));
    }

    #[test]
    fn xpoint_cells_and_writing_in_place_go_together() {
        assert!(refused(&with(Some(CellType::Xpoint), figures(EnduranceFigures::Today))).contains("in-place"));
        let mut optane = DeviceConfig::preset("intel-optane-905p").unwrap();
        (optane.flash.cell, optane.flash.endurance) = (Some(CellType::Xpoint), Some(figures(EnduranceFigures::Today)));
        assert_eq!((optane.check("optane"), optane.pe_cycles_limit()), (Ok(()), Some(54_750)));
        optane.flash.cell = Some(CellType::Slc);
        assert!(refused(&optane).contains("xpoint"));
    }

    #[test]
    fn the_keys_are_read_back_as_they_were_written() {
        let text = "figures = \"today-best\"\nspread = 0.05\nwarranty_years = 3\n";
        let read: EnduranceConfig = toml::from_str(text).unwrap();
        let expected = EnduranceConfig { spread: 0.05, warranty_years: 3.0, ..figures(EnduranceFigures::TodayBest) };
        assert_eq!(read, expected);
        assert_eq!(toml::from_str::<EnduranceConfig>(&toml::to_string(&read).unwrap()).unwrap(), expected);
    }
}
