//! What to change of a PostgreSQL server, on a terminal and as statements for psql.

use flashwise_tune::{ServerTuning, SettingProposal};

use super::layout::Screen;
use super::{Style, comment, tuning_server};
use crate::printed::Printed;
use crate::text::headings;

/// What to change of a PostgreSQL server.
pub fn render_postgres_tuning(t: &ServerTuning, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    tuning_server::render(&mut screen, t);
    statements(&mut screen, t);
    tuning_server::notes(&mut screen, &t.notes);
    screen.finish()
}

fn statements(screen: &mut Screen, t: &ServerTuning) {
    if let Some(applied) = &t.applied {
        screen.heading(headings::WAS_DONE);
        applied.statements.iter().for_each(|statement| screen.paragraph(statement));
        screen.gap();
        match applied.needs_restart.as_slice() {
            [] => screen.paragraph("All changes are in effect; the new values were read back and verified. To undo:"),
            names => screen.paragraph(&format!("These need a restart: {}. To undo:", names.join(", "))),
        }
        screen.gap();
        applied.undo.iter().for_each(|statement| screen.paragraph(statement));
    } else if !t.sql.is_empty() {
        screen.heading("Statements for psql");
        t.sql.iter().for_each(|statement| screen.paragraph(statement));
    }
}

/// The same as statements for psql, with reasons and what takes them back.
pub fn postgres_tuning_sql(t: &ServerTuning) -> String {
    let mut text = format!("-- flashwise {}: {} on {}\n", t.flashwise_version, t.program, comment(&t.drive));
    for proposal in &t.proposals {
        let SettingProposal { name, old_value, reason, apply, .. } = proposal;
        text += &format!("\n-- {} was {}: {}\n{apply}\n", comment(name), comment(old_value), comment(reason));
    }
    // The last one makes the server read its configuration again.
    let [.., reload] = t.sql.as_slice() else {
        return text + "-- No changes.\n";
    };
    text += &format!("\n{reload}\n\n-- To undo:\n");
    t.undo_sql.iter().for_each(|statement| text += &format!("-- {}\n", comment(statement)));
    text
}
