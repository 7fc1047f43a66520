//! What k is when it is read from the same curve in another way: as an eye does that looks for the end of growth.
//!
//! The fitted knee is where a line of constant latency meets the plateau. A soft knee, requests that meet on a die,
//! reaches its plateau later. So the depth is given, too, at which throughput first has 90, 95 and 99 % of its largest
//! value, interpolated between the depths that were tried, on logarithms.

use flashwise_block::Operation;
use flashwise_profile::{Parameters, ThroughputCurve, ThroughputPoint, published_asymmetries};
use flashwise_report::study::{StudyCell, StudySection, StudyTable};

use super::concurrency::curve_name;
use super::learned::LearnedDrives;
use crate::StudyError;

/// Shares of the largest throughput, per cent.
const SHARES: [u32; 3] = [90, 95, 99];

/// The depth at which a curve first has this share of its largest value; `None` where it has it from its first point
/// on.
fn depth_at(points: &[ThroughputPoint], share: f64) -> Option<f64> {
    let wanted = share * points.iter().map(|point| point.iops).fold(0.0, f64::max);
    let at = points.iter().position(|point| point.iops >= wanted)?;
    let (below, above) = (points.get(at.checked_sub(1)?)?, points.get(at)?);
    let depth = |point: &ThroughputPoint| f64::from(point.in_flight).ln();
    let part = (wanted / below.iops).ln() / (above.iops / below.iops).ln();
    Some((depth(below) + part * (depth(above) - depth(below))).exp())
}

/// The fitted knee that a curve led to.
fn fitted(parameters: &Parameters, curve: &ThroughputCurve) -> Option<u64> {
    let figure = match (curve.operation, curve.request_bytes) {
        (Operation::Read, 4096) => parameters.read_concurrency_4k,
        (Operation::Read, 8192) => parameters.read_concurrency_8k,
        (Operation::Write, 4096) => parameters.write_concurrency_4k,
        (Operation::Write, 8192) => parameters.write_concurrency_8k,
        _ => return None,
    };
    figure.value
}

fn row(name: &str, curve: &ThroughputCurve, k: Option<u64>) -> Vec<StudyCell> {
    let number = |depth: Option<f64>| depth.map_or("1".to_owned(), |depth| format!("{depth:.1}"));
    let at = |percent: u32| StudyCell::text(number(depth_at(&curve.points, f64::from(percent) / 100.0)));
    let name = StudyCell::text(format!("{name}, {}", curve_name(curve)));
    let k = StudyCell::text(k.map_or("?".to_owned(), |k| k.to_string()));
    [name, k].into_iter().chain(SHARES.map(at)).collect()
}

/// The table.
pub(super) fn section(drives: &LearnedDrives) -> Result<StudySection, StudyError> {
    let mut rows = Vec::new();
    for drive in published_asymmetries() {
        let profile = drives.of(drive.preset)?.first()?;
        let of_curve = |curve| row(drive.name, curve, fitted(&profile.parameters, curve));
        rows.extend(profile.curves.throughput.iter().map(of_curve));
    }
    let shares = SHARES.map(|share| format!("{share} %"));
    let columns = ["".to_owned(), "fitted knee".to_owned()].into_iter().chain(shares).collect();
    Ok(StudySection {
        title: "Effect of the definition of k".to_owned(),
        text: vec![
            "Requests in flight at the fitted knee, and where throughput first reaches a share of its largest value. \
             At a sharp knee all are alike. At a soft knee, where requests meet on a die or wait for each other, 99 % \
             is far beyond the fit: reading the end of the growth by eye gives a larger k. Therefore k is compared to \
             within 15 % or 1, not to the digit."
                .to_owned(),
        ],
        tables: vec![StudyTable { caption: "Requests in flight:".to_owned(), columns, rows }],
        charts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(iops: &[f64]) -> Vec<ThroughputPoint> {
        let point = |(n, &iops): (usize, &f64)| ThroughputPoint { in_flight: 1 << n, iops, low: iops, high: iops };
        iops.iter().enumerate().map(point).collect()
    }

    #[test]
    fn between_two_depths_of_constant_latency_the_share_is_where_it_should_be() {
        let points = curve(&[10.0, 20.0, 40.0, 60.0, 60.0]);
        assert!((depth_at(&points, 0.5).unwrap() - 3.0).abs() < 1e-9);
        assert!((depth_at(&points, 1.0).unwrap() - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_drive_that_serves_one_at_a_time_has_its_share_from_the_first_point_on() {
        assert_eq!(depth_at(&curve(&[7.0, 7.0, 7.0]), 0.95), None);
    }
}
