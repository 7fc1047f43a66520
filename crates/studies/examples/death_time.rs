//! Write amplification and speed of the algorithms of [`flashwise_studies::slots`] under one workload.
//!
//! ```sh
//! cargo run --release -p flashwise-studies --example death_time -- [BLOCKS SLOTS FILL TRAFFIC SIZE [SIGMA]]
//! ```
//! By default 2048 blocks of 128 slots, 87.5 % full, uniform writes: `TRAFFIC` of the writes to `SIZE` of the pages.

use std::time::Instant;

use flashwise_studies::slots::{
    Algorithm, DeathTimeError, Greedy, NoDaP, Offline, Online, PredictionError, Shape, TwoR, Workload, deaths, run_part,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<f64>, _>>()?;
    let number = |n: usize, default: f64| given.get(n).copied().unwrap_or(default);
    let shape = Shape::with_fill(number(0, 2048.0) as u32, number(1, 128.0) as u32, number(2, 0.875))?;
    let (traffic, size, sigma) = (number(3, 1.0), number(4, 1.0), number(5, 0.0));
    let workload = if size < 1.0 { Workload::TwoZones { traffic, size } } else { Workload::Uniform };
    let pages = shape.pages() as usize;
    let trace = workload.trace(shape, 16 * pages, 1);
    let deaths = deaths(&trace);
    let predictions = PredictionError { sigma, swapped: 0.0 }.predictions(&deaths, 1);
    let limit = |factor: f64| (f64::from(shape.pages()) * factor) as u32;

    let measured = 6 * pages..12 * pages;
    let report = |name: &str, algorithm: &mut dyn FnMut() -> Result<flashwise_studies::slots::Run, DeathTimeError>| {
        let start = Instant::now();
        match algorithm() {
            Ok(run) => println!(
                "{name:28} WA {:.4}   {:.2} million writes/s",
                run.measured.write_amplification(),
                run.all.writes as f64 / start.elapsed().as_secs_f64() / 1e6
            ),
            Err(error) => println!("{name:28} {error}"),
        }
    };
    fn play(
        shape: Shape,
        mut algorithm: impl Algorithm,
        trace: &[u32],
        measured: &std::ops::Range<usize>,
    ) -> Result<flashwise_studies::slots::Run, DeathTimeError> {
        run_part(shape, &mut algorithm, trace, measured.clone())
    }
    report("greedy", &mut || play(shape, Greedy::new(shape), &trace, &measured));
    report("2R", &mut || play(shape, TwoR::new(shape), &trace, &measured));
    for limits in [vec![0.25], vec![1.0], vec![0.125, 0.25, 0.5, 1.0], vec![0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0]] {
        let set: Vec<u32> = limits.iter().map(|&factor| limit(factor)).collect();
        report(&format!("NoDaP {limits:?}"), &mut || play(shape, NoDaP::new(shape, &deaths, &set), &trace, &measured));
    }
    report("online", &mut || play(shape, Online::new(shape, |t, _| predictions[t as usize]), &trace, &measured));
    report("offline", &mut || {
        let offline = Offline::new(shape, &deaths)?;
        println!("{:?}, at most {} rewrites", offline.wheel(), offline.bound());
        play(shape, offline, &trace, &measured)
    });
    Ok(())
}
