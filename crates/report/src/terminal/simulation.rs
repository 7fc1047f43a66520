//! A simulation on a terminal.

use flashwise_array::ArrayActivity;
use flashwise_sim::Simulation;

use super::Style;
use super::layout::{Align, Ink, Screen, Text};
use crate::printed::Printed;
use crate::text::{array, headings, life, simulation as say, volume};

/// What a workload on a simulated drive gave.
pub fn render_simulation(s: &Simulation, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on {}", s.workload.name, s.target_name()));
    screen.strong_paragraph(&say::headline(s));
    screen.gap();
    screen.paragraph(&say::state_sentence(s));
    screen.heading(headings::FLOWS);
    flows(&mut screen, s);
    let amplification = say::amplification_rows(s);
    if !amplification.is_empty() {
        screen.heading("Write amplification");
    }
    screen.numbers(&["cause", "factor", "share"], amplification);
    if let Some(it) = &s.array {
        the_array(&mut screen, s, it);
    }
    if let Some(it) = &s.volume {
        screen.heading(headings::VOLUME);
        screen.paragraph(&volume::sentence(it, s));
        screen.gap();
        screen.numbers(&volume::LIMIT_COLUMNS, volume::limit_rows(it));
    }
    screen.heading(say::drive_heading(s));
    screen.pairs(24, say::device_rows(s));
    screen.numbers(&say::COMMAND_COLUMNS, say::command_rows(s));
    if let Some(sentence) = life::sentence(s) {
        lifetime(&mut screen, s, &sentence);
    }
    screen.gap();
    screen.paragraph(&format!("{} {}", say::invariants_sentence(s), say::process_sentence(s)));
    screen.finish()
}

fn the_array(screen: &mut Screen, s: &Simulation, it: &ArrayActivity) {
    screen.heading(headings::ARRAY);
    screen.paragraph(&array::sentence(s, it));
    screen.gap();
    screen.pairs(24, array::rows(it));
    screen.numbers(&array::MEMBER_COLUMNS, array::member_rows(it));
}

fn lifetime(screen: &mut Screen, s: &Simulation, sentence: &str) {
    screen.heading(headings::LIFE);
    screen.paragraph(sentence);
    screen.gap();
    screen.pairs(24, life::rows(s));
    screen.numbers(&life::FACTOR_COLUMNS, life::factor_rows(s));
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
