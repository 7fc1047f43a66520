//! A score on a terminal: what was learned beside what is true, the wrong ones marked.

use flashwise_learn::score::{FigureScore, Score};
use flashwise_profile::Verdict;

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::text::parameters::quantity;

pub(super) fn render(score: &Score, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading("Beside the truth");
    let header = ["parameter", "learned", "truth", ""];
    let align = [Align::Left, Align::Right, Align::Right, Align::Left];
    screen.table(&header, &align, score.figures.iter().map(line).collect());
    screen.gap();
    screen.paragraph(&format!(
        "{} of {} figures are right; of {} that are certain or absent, {}; features told that are not there: {}.",
        score.correct, score.scored, score.settled, score.settled_correct, score.false_features
    ));
    screen.finish()
}

fn line(figure: &FigureScore) -> Vec<Text> {
    let (truth, value) = figure.quantities;
    let learned = match (figure.verdict, value) {
        (Verdict::Absent, _) => "none".to_owned(),
        (_, None) => "?".to_owned(),
        (Verdict::Certain, Some(value)) => quantity(value),
        (Verdict::Inconclusive, Some(value)) => format!("≈ {}", quantity(value)),
    };
    let mark = match (figure.correct, figure.verdict) {
        (true, _) => Text::new("right".to_owned(), Ink::Good),
        (false, Verdict::Inconclusive) => Text::plain("cannot tell".to_owned()),
        (false, _) => Text::new("wrong".to_owned(), Ink::Bad),
    };
    let truth = truth.map_or_else(|| "none".to_owned(), quantity);
    vec![Text::plain(figure.title.to_owned()), Text::plain(learned), Text::plain(truth), mark]
}
