//! A score on a terminal: what is true beside what was learned, group by group, and how much of it is right.

use flashwise_learn::score::{FigureScore, Score};
use flashwise_profile::Verdict;

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::text::groups::{GROUPS, Group};
use crate::text::parameters::{quantity, value_in_words, verdict_in_words};

/// What was learned beside what is true.
pub fn render_score(score: &Score, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading("Beside the truth");
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
        (false, Verdict::Inconclusive) => Text::new("open", Ink::Doubtful),
        (false, _) => Text::new("wrong", Ink::Bad),
    };
    let verdict = Text::plain(verdict_in_words(figure.verdict, value));
    vec![Text::plain(name), Text::plain(truth), Text::plain(value_in_words(figure.verdict, value)), verdict, mark]
}

fn totals(score: &Score) -> String {
    let wrong = score.settled.saturating_sub(score.settled_correct);
    let open = score.scored.saturating_sub(score.correct + wrong);
    format!(
        "{} of {} right, {wrong} wrong, {open} open. Of {} that are certain or absent, {} are right; features told that \
         are not there: {}.",
        score.correct, score.scored, score.settled, score.settled_correct, score.false_features
    )
}
