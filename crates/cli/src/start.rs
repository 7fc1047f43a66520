//! The short screen that `flashwise` prints without arguments.

use clap::CommandFactory;

use crate::arguments::Arguments;

const PURPOSE: &str = "\
flashwise fits a database to its SSD: it learns the drive and finds settings.

  flashwise fit sqlite                             try it, on a simulated drive
  flashwise learn /mnt/ssd --profile ssd.toml      measure the drive of /mnt/ssd
  flashwise fit sqlite app.db --profile ssd.toml   settings for your database

Commands; `flashwise help COMMAND` describes one, with examples:
";

/// What the program is for, three commands to start with, and all commands in a line each.
pub fn screen() -> String {
    let command = Arguments::command();
    let line = |verb: &clap::Command| format!("  {:<9} {}\n", verb.get_name(), verb.get_about().unwrap_or_default());
    let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    PURPOSE.to_owned() + &visible.map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_fits_into_24_lines_of_80_columns() {
        let screen = screen();
        assert!(screen.lines().count() < 24, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    }
}
