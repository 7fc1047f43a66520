//! Fields of a grid, coloured: time from left to right, addresses from bottom to top, in bands of what they belong to.

use maud::{Markup, html};

use super::{at, figure};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 190.0;
const TOP: f64 = 6.0;
const ROW: f64 = 8.0;
/// Room below for the axis.
const BELOW: f64 = 28.0;
/// Letters of a band's name that have room beside it.
const NAME: usize = 28;
/// Rows that a band must have for its name to be readable.
const NAMED_ROWS: u16 = 2;

/// One chart.
pub(crate) struct FieldChart {
    pub(crate) title: String,
    /// Class and name of each colour.
    pub(crate) legend: Vec<(&'static str, String)>,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) bands: Vec<FieldBand>,
    pub(crate) fields: Vec<Field>,
}

/// Rows that belong together.
pub(crate) struct FieldBand {
    pub(crate) name: String,
    pub(crate) first_row: u16,
    pub(crate) end_row: u16,
}

/// One coloured field.
pub(crate) struct Field {
    pub(crate) x: u16,
    /// From the bottom.
    pub(crate) y: u16,
    pub(crate) class: &'static str,
    pub(crate) words: String,
}

impl FieldChart {
    pub(crate) fn render(&self) -> Markup {
        let legend: Vec<_> = self.legend.iter().map(|(class, name)| (*class, name.as_str())).collect();
        let bottom = self.bottom();
        let drawing = html! {
            @for band in &self.bands { (self.band(band)) }
            @for field in &self.fields { (self.field(field)) }
            line.base x1=(at(LEFT)) y1=(at(bottom)) x2=(at(WIDTH)) y2=(at(bottom)) {}
            text x=(at((LEFT + WIDTH) / 2.0)) y=(at(bottom + 20.0)) text-anchor="middle" { (self.x) }
        };
        let description = format!("{} by {}", self.y, self.x);
        figure(&self.title, &legend, &description, (WIDTH, bottom + BELOW), &drawing)
    }

    fn bottom(&self) -> f64 {
        TOP + f64::from(self.rows) * ROW
    }

    fn row(&self, row: u16) -> f64 {
        self.bottom() - f64::from(row.min(self.rows)) * ROW
    }

    fn band(&self, band: &FieldBand) -> Markup {
        let (top, bottom) = (self.row(band.end_row), self.row(band.first_row));
        html! {
            line.grid x1="0" y1=(at(top)) x2=(at(WIDTH)) y2=(at(top)) {}
            @if band.end_row >= band.first_row + NAMED_ROWS {
                text x=(at(LEFT - 8.0)) y=(at((top + bottom) / 2.0 + 4.0)) text-anchor="end" {
                    title { (band.name) } (shortened(&band.name))
                }
            }
        }
    }

    fn field(&self, field: &Field) -> Markup {
        let width = (WIDTH - LEFT) / f64::from(self.columns.max(1));
        let x = LEFT + f64::from(field.x) * width;
        html! {
            rect class=(field.class) fill="currentColor" x=(at(x)) y=(at(self.row(field.y + 1)))
                width=(at(width)) height=(at(ROW)) { title { (field.words) } }
        }
    }
}

/// The end of a long name, which tells files apart.
fn shortened(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= NAME {
        return name.to_owned();
    }
    let end: String = name.chars().skip(letters - (NAME - 1)).collect();
    format!("…{end}")
}
