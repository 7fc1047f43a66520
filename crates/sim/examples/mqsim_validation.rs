//! Runs MQSim's own inputs here and prints both results side by side.
//!
//! ```console
//! $ cargo run --release -p flashwise-sim --example mqsim_validation -- [FOLDER] [CASE]
//! ```
//!
//! FOLDER holds one folder a case; by default the reference results beside the workspace. Each case runs in a process
//! of its own, whose whole CPU time is compared with MQSim's.

#[path = "../tests/it/support/mqsim.rs"]
mod mqsim;

use std::path::{Path, PathBuf};
use std::process::Command;

use mqsim::Outcome;

/// What is in a column beside its ratio to MQSim's.
type Column = (&'static str, fn(&Outcome) -> f64);

const COLUMNS: [Column; 6] = [
    ("requests", |it| it.all_requests() as f64),
    ("mean, µs", Outcome::mean_us),
    ("pages read", |it| it.pages_read as f64),
    ("programmed", |it| it.pages_programmed as f64),
    ("erases", |it| it.erases as f64),
    ("map reads", |it| it.mapping_reads as f64),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case] = &arguments[..]
        && flag == "--alone"
    {
        let outcome = mqsim::measured(Path::new(case), &mqsim::traces_folder());
        println!("{}", outcome.to_line());
        return;
    }
    let folder = arguments.first().map_or_else(mqsim::reference_folder, PathBuf::from);
    let only = arguments.get(1).map_or("", String::as_str);
    print!("{:<32}", "case");
    COLUMNS.iter().for_each(|(name, _)| print!(" {name:>11} {:>7}", "ratio"));
    println!(" {:>8} {:>6}", "CPU, s", "faster");
    let mut speeds = Vec::new();
    for case in mqsim::cases(&folder) {
        let name = case.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.contains(only) {
            speeds.extend(compare(&name, &case));
        }
    }
    if !speeds.is_empty() {
        let mean = speeds.iter().map(|speed: &f64| speed.ln()).sum::<f64>() / speeds.len() as f64;
        println!("faster in the geometric mean: {:.1}", mean.exp());
    }
}

/// Prints a case's row; gives MQSim's CPU time over ours, where it is known.
fn compare(name: &str, case: &Path) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).arg("--alone").arg(case).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(ours) = Outcome::from_line(text.lines().last().unwrap_or("")) else {
        let errors = String::from_utf8_lossy(&output.stderr);
        println!("{name:<32} fails: {}", errors.lines().find(|line| line.contains("Err")).unwrap_or("no message"));
        return None;
    };
    let theirs = mqsim::expected(case);
    print!("{name:<32}");
    for (_, of) in COLUMNS {
        let (ours, theirs) = (of(&ours), of(&theirs));
        let ratio = if theirs == 0.0 { String::new() } else { format!("{:.4}", ours / theirs) };
        let digits = if ours.fract() == 0.0 { 0 } else { 3 };
        print!(" {ours:>11.digits$} {ratio:>7}");
    }
    let speed = theirs.cpu_s / ours.cpu_s;
    println!(" {:>8.4} {speed:>6.1}", ours.cpu_s);
    (speed > 0.0).then_some(speed)
}
