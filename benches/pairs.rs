//! Two ways of the same work in turn, and how their times compare.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

const RESAMPLES: usize = 2_000;

/// What a bench of pairs is told: `[DIRECTORY] [--pairs N]`, and how much is to be done by an option of its own.
pub struct Arguments {
    pub directory: PathBuf,
    pub pairs: usize,
    pub amount: u32,
}

impl Arguments {
    /// The words of the command line, with the defaults for what they leave out. `--test` asks for the least of
    /// everything.
    pub fn parse(pairs: usize, option: &str, amount: u32) -> Result<Self, Box<dyn Error>> {
        let mut arguments = Self { directory: PathBuf::from(env!("CARGO_TARGET_TMPDIR")), pairs, amount };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number =
                || words.next().ok_or("a number is missing")?.parse::<u32>().map_err(Box::<dyn Error>::from);
            match word.as_str() {
                "--pairs" => arguments.pairs = number()?.max(1) as usize,
                "--test" => (arguments.pairs, arguments.amount) = (1, 1),
                "--bench" => {}
                word if word == option => arguments.amount = number()?.max(1),
                directory => arguments.directory = PathBuf::from(directory),
            }
        }
        Ok(arguments)
    }
}

/// What pairs of runs have shown.
pub struct Compared {
    /// Median of the first way's time ÷ the second's, and its 95 % bootstrap interval.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Median of the second way's times, in seconds.
    pub second: f64,
}

/// Runs both ways `pairs` times. Which is first changes from pair to pair.
pub fn compare<E>(
    pairs: usize,
    mut first: impl FnMut() -> Result<Duration, E>,
    mut second: impl FnMut() -> Result<Duration, E>,
) -> Result<Compared, E> {
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (one, other) = match pair % 2 {
            0 => {
                let one = first()?;
                (one, second()?)
            }
            _ => {
                let other = second()?;
                (first()?, other)
            }
        };
        ratios.push(one.as_secs_f64() / other.as_secs_f64());
        times.push(other.as_secs_f64());
    }
    let [ratio, low, high] = interval(&ratios);
    Ok(Compared { ratio, low, high, second: median(&mut times) })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// Median and its 95 % bootstrap interval.
fn interval(ratios: &[f64]) -> [f64; 3] {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let mut resample =
        || median(&mut Vec::from_iter((0..ratios.len()).map(|_| ratios[random.next_u64() as usize % ratios.len()])));
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    medians.sort_unstable_by(f64::total_cmp);
    [median(&mut ratios.to_vec()), medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40]]
}
