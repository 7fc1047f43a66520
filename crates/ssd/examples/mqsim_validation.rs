//! Runs MQSim's own inputs here and prints both results side by side.
//!
//! ```console
//! $ cargo run --release -p flashwise-ssd --example mqsim_validation -- [FOLDER] [CASE]
//! ```
//!
//! FOLDER holds one folder a case; by default the reference results beside the workspace. Each case runs in a process of
//! its own, whose whole CPU time is compared with MQSim's.

#[path = "../tests/support/mqsim.rs"]
mod mqsim;

use std::path::{Path, PathBuf};
use std::process::Command;

use mqsim::Outcome;

const HEAD: &str = "case                              requests  mqsim      ratio  mean us    mqsim      ratio   reads      ratio  programs   ratio  erases  ratio  mapreads  ratio   cpu s  speed";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case] = &arguments[..]
        && flag == "--alone"
    {
        let outcome = mqsim::measured(Path::new(case), &traces());
        println!("{}", outcome.to_line());
        return;
    }
    let folder = arguments.first().map_or_else(mqsim::reference_folder, PathBuf::from);
    let only = arguments.get(1).cloned().unwrap_or_default();
    println!("{HEAD}");
    let mut speeds = Vec::new();
    for case in mqsim::cases(&folder) {
        let name = case.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.contains(&only) {
            speeds.extend(compare(&name, &case));
        }
    }
    if !speeds.is_empty() {
        let mean = speeds.iter().map(|speed: &f64| speed.ln()).sum::<f64>() / speeds.len() as f64;
        println!("geometric mean of the speed ratios: {:.1}", mean.exp());
    }
}

fn traces() -> PathBuf {
    mqsim::reference_folder().join("../../traces/mqsim")
}

fn compare(name: &str, case: &Path) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).arg("--alone").arg(case).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(ours) = Outcome::from_line(text.lines().last().unwrap_or("")) else {
        println!("{name:<32} failed: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or(""));
        return None;
    };
    let theirs = mqsim::expected(case);
    let ratio = |ours: f64, theirs: f64| if theirs == 0.0 { f64::NAN } else { ours / theirs };
    let (n, m) = (ours.all_requests() as f64, theirs.all_requests() as f64);
    let speed = theirs.cpu_s / ours.cpu_s;
    println!(
        "{name:<32} {n:>9} {m:>9} {:>7.4} {:>10.3} {:>10.3} {:>7.4} {:>9} {:>7.4} {:>9} {:>7.4} {:>6} {:>6.3} {:>8} {:>6.3} {:>8.4} {speed:>6.1}",
        ratio(n, m),
        ours.mean_us(),
        theirs.mean_us(),
        ratio(ours.mean_us(), theirs.mean_us()),
        ours.pages_read,
        ratio(ours.pages_read as f64, theirs.pages_read as f64),
        ours.pages_programmed,
        ratio(ours.pages_programmed as f64, theirs.pages_programmed as f64),
        ours.erases,
        ratio(ours.erases as f64, theirs.erases as f64),
        ours.mapping_reads,
        ratio(ours.mapping_reads as f64, theirs.mapping_reads as f64),
        ours.cpu_s,
    );
    (speed > 0.0).then_some(speed)
}
