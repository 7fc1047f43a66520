//! A simulation on a terminal.

use flashwise_ssd::array::ArrayActivity;
use flashwise_ssd::simulation::Simulation;

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::text::{array, life, simulation as say};

pub(super) fn render(s: &Simulation, style: Style) -> String {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on {}", s.workload.name, s.target_name()));
    screen.strong_paragraph(&say::headline(s));
    screen.gap();
    screen.paragraph(&say::state_sentence(s));
    screen.heading("Flows");
    flows(&mut screen, s);
    let amplification = say::amplification_rows(s);
    if !amplification.is_empty() {
        screen.heading("Write amplification");
        let rows = amplification.into_iter().map(|row| row.map(Text::plain).into()).collect();
        screen.table(&["cause", "factor", "share"], &[Align::Left, Align::Right, Align::Right], rows);
    }
    if let Some(it) = &s.array {
        the_array(&mut screen, s, it);
    }
    screen.heading(say::drive_heading(s));
    screen.pairs(24, say::device_rows(s));
    let commands = say::command_rows(s);
    if !commands.is_empty() {
        screen.gap();
        let rows = commands.into_iter().map(|row| row.map(Text::plain).into()).collect();
        screen.table(&say::COMMAND_COLUMNS, &[Align::Left, Align::Right, Align::Right, Align::Right], rows);
    }
    if let Some(sentence) = life::sentence(s) {
        lifetime(&mut screen, s, &sentence);
    }
    screen.gap();
    screen.paragraph(&format!("{} {}", say::invariants_sentence(s), say::process_sentence(s)));
    screen.finish()
}

fn the_array(screen: &mut Screen, s: &Simulation, it: &ArrayActivity) {
    screen.heading("The array");
    screen.paragraph(&array::sentence(s, it));
    screen.gap();
    screen.pairs(24, array::rows(it));
    screen.gap();
    let mut align = [Align::Right; 7];
    align[0] = Align::Left;
    let rows = array::member_rows(it).into_iter().map(|row| row.map(Text::plain).into()).collect();
    screen.table(&array::MEMBER_COLUMNS, &align, rows);
}

fn lifetime(screen: &mut Screen, s: &Simulation, sentence: &str) {
    screen.heading("Life");
    screen.paragraph(sentence);
    screen.gap();
    screen.pairs(24, life::rows(s));
    let factors = life::factor_rows(s);
    if !factors.is_empty() {
        screen.gap();
        let rows = factors.into_iter().map(|row| row.map(Text::plain).into()).collect();
        screen.table(&life::FACTOR_COLUMNS, &[Align::Left, Align::Right, Align::Right], rows);
    }
}

fn flows(screen: &mut Screen, s: &Simulation) {
    let row = |row: say::FlowRow| {
        let name = if row.is_part { Text::new(format!("  {}", row.name), Ink::Faint) } else { Text::plain(row.name) };
        [name].into_iter().chain(row.cells.map(Text::plain)).collect()
    };
    let mut align = [Align::Right; 8];
    align[0] = Align::Left;
    screen.table(&say::FLOW_COLUMNS, &align, say::flow_rows(s).into_iter().map(row).collect());
}
