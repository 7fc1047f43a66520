//! A score on a terminal: true and learned values side by side, group by group, and how many are right.

use flashwise_learn::score::{FigureScore, Score};
use flashwise_profile::Verdict;

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::text::groups::{GROUPS, Group};
use crate::text::parameters::{quantity, value_in_words, verdict_in_words};

/// Learned values beside the true ones.
pub fn render_score(score: &Score, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading("Learned and true values");
    let section = |group: &'static Group| {
        let members = group.sort_out(&score.figures, |figure| figure.figure);
        let lines = members.into_iter().filter_map(|figure| Some(line(group.name_of(figure.figure)?, figure)));
        (group.title, lines.collect::<Vec<_>>())
    };
    let sections = GROUPS.iter().map(section).filter(|(_, lines)| !lines.is_empty()).collect();
    let align = [Align::Left, Align::Right, Align::Right, Align::Left, Align::Left];
    screen.sections(&["figure", "truth", "learned", "verdict", ""], &align, sections);
    screen.gap();
    screen.paragraph(&totals(score));
    screen.finish()
}

fn line(name: &str, figure: &FigureScore) -> Vec<Text> {
    let (truth, value) = figure.quantities;
    let truth = truth.map_or_else(|| "none".to_owned(), quantity);
    let mark = match (figure.correct, figure.verdict) {
        (true, _) => Text::new("right", Ink::Good),
        (false, Verdict::Inconclusive) => Text::new("–", Ink::Doubtful),
        (false, _) => Text::new("wrong", Ink::Bad),
    };
    let verdict = Text::plain(verdict_in_words(figure.verdict, value));
    vec![Text::plain(name), Text::plain(truth), Text::plain(value_in_words(figure.verdict, value)), verdict, mark]
}

fn totals(score: &Score) -> String {
    let wrong = score.settled.saturating_sub(score.settled_correct);
    let open = score.scored.saturating_sub(score.correct + wrong);
    format!(
        "Of {} figures, {} are right, {wrong} wrong, {open} inconclusive. Of the {} reported as certain or absent, {} \
         are right; false positives: {}.",
        score.scored, score.correct, score.settled, score.settled_correct, score.false_features
    )
}
