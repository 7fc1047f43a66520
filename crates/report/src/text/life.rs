//! A drive's life after a simulation, in words.

use flashwise_sim::Simulation;
use flashwise_sim::life::Life;

use super::numbers::{bytes, grouped, significant, time, two_decimals};

/// The life in a sentence or two; `None` where nothing wears out.
pub(crate) fn sentence(s: &Simulation) -> Option<String> {
    let life = s.life.as_ref()?;
    let refused: u64 = s.flows.iter().map(|flow| flow.refused).sum();
    if let Some(end) = life.end_of_life {
        return Some(format!(
            "The drive wore out and became read-only after {} of simulated time and {} written. {} writes and trims \
             failed.",
            time(end.at_ns),
            bytes(end.host_bytes_written),
            grouped(refused)
        ));
    }
    Some(match (&life.projection, &life.not_projected) {
        (Some(projection), _) => format!(
            "At the rate of this run's steady part, a new drive endures {} of writes before it becomes read-only: {} \
             drive writes per day over {} years, or {} years at this pace.",
            amount(projection.host_bytes),
            significant(projection.drive_writes_per_day),
            significant(projection.warranty_years),
            significant(projection.years)
        ),
        (None, reason) => {
            format!("The drive's life was not projected: {}.", reason.as_deref().unwrap_or("no reason was given"))
        }
    })
}

/// Name and value of the known figures.
pub(crate) fn rows(s: &Simulation) -> Vec<(&'static str, String)> {
    let Some(life) = &s.life else { return Vec::new() };
    let limit = life.pe_cycles_limit.map(|limit| ("P/E cycles rated", grouped(u64::from(limit))));
    limit.into_iter().chain(used(life).map(|used| ("life used", used))).collect()
}

fn used(life: &Life) -> Option<String> {
    let percent = |share: f64| format!("{} %", significant(100.0 * share));
    let (most, mean) = (life.used_share_max?, life.used_share_mean?);
    Some(format!("{} (most worn block), {} (mean)", percent(most), percent(mean)))
}

/// Names of the columns of [`factor_rows`].
pub(crate) const FACTOR_COLUMNS: [&str; 3] = ["contribution", "factor", "host bytes"];

/// The factors that differ from 1, each with the product of all factors up to it, in bytes.
pub(crate) fn factor_rows(s: &Simulation) -> Vec<[String; 3]> {
    let Some(projection) = s.life.as_ref().and_then(|life| life.projection) else { return Vec::new() };
    let capacity = projection.factors.capacity_bytes;
    let mut so_far = capacity as f64;
    let mut rows = vec![["capacity".to_owned(), bytes(capacity), bytes(capacity)]];
    for (name, factor) in projection.factors.named() {
        so_far *= factor;
        let told = if factor >= 100.0 { significant(factor) } else { two_decimals(factor) };
        if (factor - 1.0).abs() >= 0.005 {
            rows.push([name.to_owned(), format!("× {told}"), amount(so_far)]);
        }
    }
    rows
}

/// A number of bytes that may exceed 64 bits.
fn amount(amount: f64) -> String {
    bytes(amount.round().min(u64::MAX as f64) as u64)
}
