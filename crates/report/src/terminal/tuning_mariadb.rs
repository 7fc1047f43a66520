//! What to change of a MariaDB server, on a terminal and as an option file.

use flashwise_tune::ServerTuning;

use super::layout::Screen;
use super::{Style, comment, tuning_server};
use crate::printed::Printed;
use crate::text::headings;

/// What to change of a MariaDB server, as text.
pub fn render_mariadb_tuning(t: &ServerTuning, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    tuning_server::render(&mut screen, t);
    statements(&mut screen, t);
    tuning_server::notes(&mut screen, &t.notes);
    screen.finish()
}

fn statements(screen: &mut Screen, t: &ServerTuning) {
    match &t.applied {
        Some(applied) => {
            screen.heading(headings::WAS_DONE);
            match applied.statements.as_slice() {
                [] => screen.paragraph("None: no change can take effect without a restart."),
                statements => statements.iter().for_each(|statement| screen.paragraph(statement)),
            }
            screen.gap();
            if !applied.undo.is_empty() {
                screen.paragraph("The new values were read back and verified. To undo:");
                screen.gap();
                applied.undo.iter().for_each(|statement| screen.paragraph(statement));
            }
            if !applied.needs_restart.is_empty() {
                screen.gap();
                let names = applied.needs_restart.join(", ");
                screen.paragraph(&format!("These need an option file and a restart: {names}."));
            }
        }
        None if !t.sql.is_empty() => {
            screen.heading("Statements for the mariadb client");
            t.sql.iter().for_each(|statement| screen.paragraph(statement));
        }
        None => {}
    }
    if let Some(lines) = t.option_file.as_ref().filter(|lines| !lines.is_empty()) {
        screen.heading("Lines for an option file");
        lines.iter().for_each(|line| screen.paragraph(line));
    }
}

/// The same as an option file.
pub fn mariadb_option_file(t: &ServerTuning) -> String {
    let mut text = format!("# flashwise {}: {} on {}\n", t.flashwise_version, t.program, comment(&t.drive));
    let [section, lines @ ..] = t.option_file.as_deref().unwrap_or_default() else {
        return text + "# No changes.\n";
    };
    text += &format!("{section}\n");
    for line in lines {
        let name = line.split(' ').next().unwrap_or_default();
        if let Some(proposal) = t.proposals.iter().find(|proposal| proposal.name == name) {
            text += &format!("\n# Was {}: {}\n", comment(&proposal.old_value), comment(&proposal.reason));
        }
        text += &format!("{line}\n");
    }
    text
}
