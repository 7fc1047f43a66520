//! A job on a file, on a terminal.

use flashwise_kernel::job::FileRun;

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::file_run as say;

/// What a program on a file saw, and what its calls cost the drive.
pub fn render_file_run(run: &FileRun, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    screen.heading(&format!("{} on a file, {}", run.workload, run.device));
    screen.strong_paragraph(&say::headline(run));
    screen.gap();
    screen.paragraph(&say::machine(run));
    screen.heading("What the program sees");
    screen.numbers(&["call", "calls", "median", "p99", "max"], say::latency_rows(run));
    screen.heading("The page cache and the file system");
    screen.pairs(24, say::kernel_rows(run));
    screen.heading("What reaches the drive");
    screen.pairs(24, say::drive_rows(run));
    screen.finish()
}
