//! The result of a study: published claims, measured values, and why they differ.
//!
//! A study fills in this document; how it looks on a terminal and on a page is decided here, for all of them alike.
//! Every measured value carries the 95 % interval of its mean, and every learned figure its interval and its verdict.

use flashwise_profile::{Entry, Quantity, Verdict};
use serde::{Deserialize, Serialize};

use crate::text::parameters::interval_in_words;

/// `schema` of a study.
pub const STUDY_SCHEMA: &str = "flashwise.study";
/// `schema_version` of a study.
pub const STUDY_SCHEMA_VERSION: u32 = 1;

/// A study that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyDocument {
    /// [`STUDY_SCHEMA`].
    pub schema: String,
    /// [`STUDY_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version that ran it.
    pub flashwise_version: String,
    /// Its name on the command line.
    pub name: String,
    /// One line.
    pub title: String,
    /// Authors, title, place and year of the text.
    pub source: String,
    /// Whether it is the small version.
    pub quick: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// What the text claims, one by one.
    pub claims: Vec<StudyClaim>,
    /// The measurements, each with its question and its answer.
    pub sections: Vec<StudySection>,
    /// Limits of the study.
    pub limits: Vec<String>,
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyVerdict {
    /// It does.
    Reproduced,
    /// In its direction, not in its amount, or under conditions that the text does not name.
    Partly,
    /// It does not.
    NotReproduced,
}

impl StudyVerdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::NotReproduced => "not reproduced",
        }
    }
}

/// A claim and the measurement that tests it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyClaim {
    /// The published claim.
    pub claim: String,
    /// The measured result.
    pub measured: String,
    /// Whether it holds.
    pub verdict: StudyVerdict,
    /// Why.
    pub because: String,
}

/// One question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySection {
    /// The question.
    pub title: String,
    /// What was varied, and what follows.
    pub text: Vec<String>,
    /// The numbers.
    pub tables: Vec<StudyTable>,
    /// The same as pictures.
    pub charts: Vec<StudyChart>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyTable {
    /// Its caption, with the unit.
    pub caption: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<StudyCell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StudyCell {
    /// A name, or why a number is missing.
    Text(String),
    /// A figure that was learned of a drive.
    Learned(LearnedCell),
    /// A mean with its interval.
    Measured(Measured),
}

/// A figure that was learned of a drive, with its interval and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedCell {
    /// Its verdict.
    pub verdict: Verdict,
    /// The value, in bytes if it is a size; `None` if absent or not a number.
    pub value: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// As printed: "≈" marks a best guess, "–" absent, "?" inconclusive.
    pub words: String,
}

impl LearnedCell {
    /// A figure of a profile.
    pub fn new(entry: &Entry) -> Self {
        let figure = &entry.figure;
        let number = |quantity: Option<Quantity>| match quantity? {
            Quantity::Bytes(n)
            | Quantity::Count(n)
            | Quantity::Nanos(n)
            | Quantity::BytesPerSecond(n)
            | Quantity::PerSecond(n) => Some(n as f64),
            Quantity::Ratio(x) | Quantity::Share(x) | Quantity::Years(x) => Some(x),
            Quantity::AddressBits(_) | Quantity::Flag(_) | Quantity::Location(_) => None,
        };
        let (value, low, high) = (number(figure.value), number(figure.low), number(figure.high));
        Self { verdict: figure.verdict, value, low, high, words: interval_in_words(figure) }
    }
}

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The mean over runs.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A line chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyChart {
    /// Its title.
    pub title: String,
    /// Name and unit of the horizontal axis, which is logarithmic.
    pub x_label: String,
    /// Whether the horizontal axis shows bytes.
    pub x_is_bytes: bool,
    /// Name and unit of the vertical axis, which starts at zero.
    pub y_label: String,
    /// The lines, at most four.
    pub series: Vec<StudySeries>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySeries {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<StudyPoint>,
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyPoint {
    /// Where.
    pub x: f64,
    /// What is measured there.
    pub y: Measured,
}

impl StudyCell {
    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// As printed.
    pub fn words(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Learned(figure) => figure.words.clone(),
            Self::Measured(measured) => measured.words(),
        }
    }
}

impl From<Measured> for StudyCell {
    fn from(measured: Measured) -> Self {
        Self::Measured(measured)
    }
}

impl Measured {
    /// The value and half the width of its interval: as many digits as the value deserves, and no more than two of the
    /// half.
    pub fn words(&self) -> String {
        let half = (self.high - self.low) / 2.0;
        let most = match self.value.abs() {
            v if v >= 100.0 => 1,
            v if v >= 10.0 => 2,
            v if v >= 0.1 || v == 0.0 => 3,
            _ => 5,
        };
        let digits = if half > 0.0 { (1 - half.log10().floor() as i32).clamp(0, most) } else { most };
        match half {
            half if half < 0.5 * 10_f64.powi(-digits) => format!("{:.*} ± 0", digits as usize, self.value),
            half => format!("{:.*} ± {:.*}", digits as usize, self.value, digits as usize, half),
        }
    }
}

#[cfg(test)]
mod tests {
    use flashwise_profile::{Figure, HotLocation, Parameters};

    use super::*;

    #[test]
    fn a_value_is_printed_with_half_of_its_interval_in_as_many_digits_as_that_tells() {
        let words = |value, half: f64| Measured { value, low: value - half, high: value + half }.words();
        assert_eq!(words(1.9583, 0.0021), "1.958 ± 0.002");
        assert_eq!(words(17.6345, 0.0), "17.63 ± 0");
        assert_eq!(words(0.0, 0.0), "0.000 ± 0");
        assert_eq!(words(10454.7, 28.1), "10455 ± 28");
        assert_eq!(words(2.68, 3.618), "2.7 ± 3.6");
        assert_eq!(words(-0.03383, 0.0601), "-0.034 ± 0.060");
        assert_eq!(words(14341.6, 935.0), "14342 ± 935");
    }

    #[test]
    fn a_figure_is_printed_with_its_interval_and_a_sign_for_its_verdict() {
        let hot = HotLocation { period_bytes: 65536, offset_bytes: 32768 };
        let parameters = Parameters {
            write_unit_bytes: Figure::certain(32768, 32768, 32768),
            stripe_bytes: Figure::absent(),
            hot_location: Figure::certain(hot, hot, hot),
            asymmetry_4k: Figure::inconclusive(3.017, 2.5, 3.5),
            ..Parameters::default()
        };
        let cells: Vec<LearnedCell> = parameters.entries().iter().map(LearnedCell::new).collect();
        let words = |key| {
            let at = parameters.entries().iter().position(|entry| entry.key == key).unwrap();
            cells[at].words.as_str()
        };
        assert_eq!(words("write_unit_bytes"), "32 KiB ± 0");
        assert_eq!(words("stripe_bytes"), "–");
        assert_eq!(words("hot_location"), "64 KiB·i + 32 KiB ± 0");
        assert_eq!(words("asymmetry_4k"), "≈ 3.02, 2.50 … 3.50");
        assert_eq!(words("chunk_bytes"), "?");
        assert!(cells.iter().any(|cell| (cell.value, cell.low) == (Some(3.017), Some(2.5))));
    }

    #[test]
    fn a_cell_survives_the_way_through_json() {
        let measured = StudyCell::from(Measured { value: 1.5, low: 1.0, high: 2.0 });
        let entries = Parameters { asymmetry_4k: Figure::certain(1.5, 1.0, 2.0), ..Parameters::default() }.entries();
        let learned = entries.iter().map(|entry| StudyCell::Learned(LearnedCell::new(entry)));
        let cells: Vec<StudyCell> = [StudyCell::text("5 %"), measured].into_iter().chain(learned).collect();
        let text = serde_json::to_string(&cells).unwrap();
        assert_eq!(serde_json::from_str::<Vec<StudyCell>>(&text).unwrap(), cells);
    }
}
