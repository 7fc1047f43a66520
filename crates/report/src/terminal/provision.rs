//! What to buy for a workload, on a terminal.

use flashwise_audit::provision::{ProvisionReport, Provisioning, Trial};
use flashwise_block::Nanos;

use super::Style;
use super::layout::Screen;
use crate::printed::Printed;
use crate::text::numbers::{grouped, significant, time};

/// The answer first, then what each provisioning brings, then the demand.
pub fn render_provision(report: &ProvisionReport, style: Style) -> Printed {
    let mut screen = Screen::new(style);
    let name = report.product.name;
    screen.heading(&format!("What {} needs of {name}", report.trace));
    screen.strong_paragraph(&headline(report));
    screen.gap();
    let row = |what: &str, trial: &Trial| {
        [what.to_owned(), iops(trial.provisioning), bandwidth(trial.provisioning), time(trial.latency_ns)]
    };
    let mut rows = vec![row("included", &report.base)];
    rows.extend(report.needed.as_ref().map(|trial| row("needed", trial)));
    rows.extend(report.bought.as_ref().map(|trial| row("to buy", trial)));
    rows.push(row("the most", &report.most));
    let latency = format!("{} of requests within", percentile(report));
    screen.numbers(&[name, "IOPS", "bandwidth", &latency], rows);
    screen.gap();
    let demand = &report.demand;
    let of = |[mean, p95, most]: [f64; 3], unit: &str| {
        format!(
            "{} {unit} in the mean, {} in 95 % of all seconds, {} at most",
            significant(mean),
            significant(p95),
            significant(most)
        )
    };
    screen.paragraph(&format!(
        "Demand of the trace's {} requests in {}: {}; {}.",
        grouped(demand.requests),
        time(demand.duration_ns),
        of(demand.iops, "IOPS"),
        of(demand.bandwidth_bytes_per_s.map(|bytes| bytes / 1_048_576.0), "MiB/s")
    ));
    screen.paragraph(
        "Each row is a replay of the requests at the times of the trace on the simulated volume; a latency includes the \
         wait for the volume's limits. To buy is the need with 5 % to spare, in round figures.",
    );
    screen.finish()
}

fn headline(report: &ProvisionReport) -> String {
    let (name, goal) = (report.product.name, Nanos(report.goal_ns));
    let share = percentile(report);
    match (&report.needed, &report.bought) {
        (Some(needed), Some(bought)) if bought.provisioning == report.product.base => format!(
            "{name} as it is, {} and {}, suffices: this workload needs {} and {} for {share} of requests within {goal}.",
            words_of_iops(bought.provisioning),
            bandwidth(bought.provisioning),
            words_of_iops(needed.provisioning),
            bandwidth(needed.provisioning)
        ),
        (Some(needed), Some(bought)) => format!(
            "Buy {name} at {} and {}: this workload needs {} and {} for {share} of requests within {goal}.",
            words_of_iops(bought.provisioning),
            bandwidth(bought.provisioning),
            words_of_iops(needed.provisioning),
            bandwidth(needed.provisioning)
        ),
        _ => format!(
            "No {name} meets {share} of requests within {goal}: at its most, {} and {}, it is {}.",
            words_of_iops(report.most.provisioning),
            bandwidth(report.most.provisioning),
            time(report.most.latency_ns)
        ),
    }
}

fn percentile(report: &ProvisionReport) -> String {
    format!("{} %", report.percentile)
}

fn iops(provisioning: Provisioning) -> String {
    grouped(provisioning.iops)
}

fn words_of_iops(provisioning: Provisioning) -> String {
    format!("{} IOPS", iops(provisioning))
}

fn bandwidth(provisioning: Provisioning) -> String {
    format!("{} MiB/s", significant(provisioning.bandwidth_bytes_per_s as f64 / 1_048_576.0))
}

#[cfg(test)]
mod tests {
    use flashwise_audit::provision::{Demand, PRODUCTS};

    use super::*;

    #[test]
    fn the_first_line_says_what_to_buy_and_why() {
        let trial = |iops, mib: u64, us: u64| Trial {
            provisioning: Provisioning { iops, bandwidth_bytes_per_s: mib << 20 },
            latency_ns: us * 1_000,
        };
        let report = ProvisionReport {
            schema: "flashwise.provision",
            schema_version: 1,
            trace: "shop.csv".into(),
            product: PRODUCTS[0],
            percentile: 99.0,
            goal_ns: 2_000_000,
            demand: Demand {
                requests: 120_000,
                duration_ns: 60_000_000_000,
                iops: [2_000.0, 3_500.0, 4_000.0],
                bandwidth_bytes_per_s: [40e6, 70e6, 90e6],
            },
            base: trial(3_000, 125, 310_000),
            needed: Some(trial(4_100, 95, 1_950)),
            bought: Some(trial(4_500, 125, 1_200)),
            most: trial(16_000, 1_000, 900),
        };
        let style = Style { color: false, width: 100 };
        let text = render_provision(&report, style).to_string();
        let line = "Buy gp3 at 4,500 IOPS and 125 MiB/s: this workload needs 4,100 IOPS and 95.0 MiB/s";
        assert!(text.contains(line), "{text}");
        let none = ProvisionReport { needed: None, bought: None, ..report.clone() };
        assert!(render_provision(&none, style).contains("No gp3 meets 99 % of requests within 2 ms"), "{none:?}");
        let base = ProvisionReport { bought: Some(report.base), ..report };
        assert!(render_provision(&base, style).contains("gp3 as it is, 3,000 IOPS and 125 MiB/s, suffices"));
    }
}
