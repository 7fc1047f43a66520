//! The few forms that a report on a terminal is made of.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement};
use comfy_table::{LineStyle, Row, Table, TableStyle, Width};

use flashwise_block::shown;

use super::Style;
use crate::printed::Printed;
use crate::text::words::{KEPT_SPACE, kept_together};

/// A rule below the header, space between columns, nothing else.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
const BARE: TableStyle = TableStyle::new();

/// Holds the place of a section's title in a table, whose columns are not to be as wide as the title; a character for
/// private use.
const TITLE: &str = "\u{e000}";

/// What a text means; colours follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Doubtful,
}

/// A text with its meaning.
#[derive(Clone, Debug)]
pub(super) struct Text {
    text: String,
    ink: Ink,
}

/// Where a column's texts stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Align {
    Left,
    Right,
}

impl Text {
    /// Whatever the text holds of control characters is shown and does nothing, but for the line ends of a cell.
    pub(super) fn new(text: impl Into<String>, ink: Ink) -> Self {
        Self { text: shown::lines(&text.into()).into_owned(), ink }
    }

    /// A text without line ends of its own.
    fn line(text: &str, ink: Ink) -> Self {
        Self { text: shown::line(text).into_owned(), ink }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Ink::Plain)
    }

    fn cell(&self) -> Cell {
        let cell = Cell::new(kept_together(&self.text));
        match self.ink {
            Ink::Plain => cell,
            Ink::Strong => cell.add_attribute(Attribute::Bold),
            Ink::Faint => cell.add_attribute(Attribute::Dim),
            Ink::Good => cell.fg(Color::Green),
            Ink::Bad => cell.fg(Color::Red),
            Ink::Doubtful => cell.fg(Color::Yellow),
        }
    }
}

/// A row that is below the title of its section.
fn indented(mut row: Vec<Text>) -> Vec<Text> {
    if let Some(first) = row.first_mut() {
        first.text.insert_str(0, "\u{a0}\u{a0}");
    }
    row
}

/// A text that grows downwards.
pub(super) struct Screen {
    style: Style,
    text: String,
}

impl Screen {
    pub(super) fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    /// The whole text, with one line end at its end.
    pub(super) fn finish(self) -> Printed {
        Printed::rendered(self.text.trim_end().to_owned() + "\n")
    }

    /// A heading of a section, with a line below it.
    pub(super) fn heading(&mut self, text: &str) {
        self.gap();
        let width = usize::from(self.style.width);
        self.columns(&[], vec![vec![Text::line(text, Ink::Strong)]]);
        self.push(&"━".repeat(width.min(80)));
    }

    /// A table of numbers behind a name, below an empty line; none without rows.
    pub(super) fn numbers<const N: usize>(&mut self, header: &[&str; N], rows: Vec<[String; N]>) {
        if rows.is_empty() {
            return;
        }
        self.gap_between_items();
        let mut align = [Align::Right; N];
        align[0] = Align::Left;
        self.table(header, &align, rows.into_iter().map(|row| row.map(Text::plain).into()).collect());
    }

    /// Remarks at the end.
    pub(super) fn remarks(&mut self, remarks: &[String]) {
        if !remarks.is_empty() {
            self.gap();
        }
        remarks.iter().for_each(|remark| self.bullet(remark));
    }

    /// A text over the whole width.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.columns(&[], vec![vec![Text::line(text, Ink::Plain)]]);
    }

    /// The same, to be seen first.
    pub(super) fn strong_paragraph(&mut self, text: &str) {
        self.columns(&[], vec![vec![Text::line(text, Ink::Strong)]]);
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// An empty line, except right below a heading.
    pub(super) fn gap_between_items(&mut self) {
        if !self.text.ends_with("━\n") {
            self.gap();
        }
    }

    /// A text behind a mark.
    pub(super) fn item(&mut self, mark: &str, text: &str) {
        self.columns(&[3], vec![vec![Text::new(mark, Ink::Strong), Text::line(text, Ink::Strong)]]);
    }

    /// A text behind a mark that is not to be seen first.
    pub(super) fn plain_item(&mut self, mark: &str, text: &str) {
        self.columns(&[3], vec![vec![Text::new(mark, Ink::Plain), Text::line(text, Ink::Plain)]]);
    }

    /// A plain text behind a point.
    pub(super) fn bullet(&mut self, text: &str) {
        self.columns(&[3], vec![vec![Text::plain("•"), Text::line(text, Ink::Plain)]]);
    }

    /// Names and texts, below an item.
    pub(super) fn details(&mut self, details: Vec<(&'static str, Text)>) {
        let row = |(name, text)| vec![Text::plain(""), Text::new(name, Ink::Faint), text];
        self.columns(&[3, 9], details.into_iter().map(row).collect());
    }

    /// Names and values, the names `width` columns wide.
    pub(super) fn pairs(&mut self, width: u16, pairs: Vec<(&'static str, String)>) {
        let row = |(name, value): (_, String)| vec![Text::new(name, Ink::Faint), Text::line(&value, Ink::Plain)];
        self.columns(&[width], pairs.into_iter().map(row).collect());
    }

    /// A table with a header.
    pub(super) fn table(&mut self, header: &[&str], align: &[Align], rows: Vec<Vec<Text>>) {
        let table = self.headed_table(header, align, 2, rows);
        self.push_table(&table);
    }

    /// A table with a header, whose columns stand `padding` and one space apart.
    fn headed_table(&self, header: &[&str], align: &[Align], padding: u16, rows: Vec<Vec<Text>>) -> Table {
        let mut table = self.new_table(RULED, rows);
        table.set_header(header.iter().map(|h| Text::new(*h, Ink::Faint).cell()).collect::<Vec<_>>());
        for (i, place) in align.iter().enumerate() {
            let Some(column) = table.column_mut(i) else { continue };
            column.set_padding((0, if i + 1 < align.len() { padding } else { 0 }));
            column.set_cell_alignment(match place {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        table
    }

    /// A table whose rows are in sections, each below its title.
    pub(super) fn sections(&mut self, header: &[&str], align: &[Align], sections: Vec<(&str, Vec<Vec<Text>>)>) {
        let mut rows = Vec::new();
        let mut titles = Vec::new();
        for (title, section) in sections {
            titles.push(title);
            rows.push(vec![Text::plain(TITLE)]);
            rows.extend(section.into_iter().map(indented));
        }
        let table = self.headed_table(header, align, 1, rows);
        let mut titles = titles.into_iter();
        for line in table.lines() {
            match line.trim() {
                TITLE => self.section_title(titles.next().unwrap_or_default()),
                _ => self.push_line(&line),
            }
        }
    }

    fn section_title(&mut self, title: &str) {
        if !self.text.ends_with("─\n") {
            self.gap();
        }
        self.strong_paragraph(title);
    }

    /// Rows without header; the first columns have fixed widths, the last takes the rest.
    fn columns(&mut self, widths: &[u16], rows: Vec<Vec<Text>>) {
        let mut table = self.new_table(BARE, rows);
        table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 0)));
        for (i, width) in widths.iter().enumerate() {
            let Some(column) = table.column_mut(i) else { continue };
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(*width)));
        }
        self.push_table(&table);
    }

    fn new_table(&self, style: TableStyle, rows: Vec<Vec<Text>>) -> Table {
        let mut table = Table::new();
        table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic).set_width(self.style.width);
        if self.style.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.add_rows(rows.iter().map(|row| Row::from(row.iter().map(Text::cell).collect::<Vec<_>>())));
        table
    }

    fn push_table(&mut self, table: &Table) {
        table.lines().for_each(|line| self.push_line(&line));
    }

    fn push_line(&mut self, line: &str) {
        self.push(line.replace(KEPT_SPACE, " ").trim_end());
    }

    fn push(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }
}
