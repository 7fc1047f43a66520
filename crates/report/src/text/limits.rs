//! The limits of a volume in a sentence: what it grants, and for how long that was seen.

use flashwise_profile::{Figure, Limits, Quantity, Verdict};

use super::numbers::grouped;
use super::parameters::quantity;

/// Share by which the rates of reads and writes may differ and be called the same: half of the interval of a rate.
const SAME: f64 = 0.01;

/// What a volume grants; `None` without limits. A rate that may be a burst is called one that may be.
pub(crate) fn limits_sentence(limits: &Limits) -> Option<String> {
    let (read, write) = (&limits.read_iops_limit, &limits.write_iops_limit);
    let (read_rate, write_rate) = (&limits.read_bandwidth_limit, &limits.write_bandwidth_limit);
    let is_one = limits.shared_budget.known() == Some(true) && is_near(read, write) && is_near(read_rate, write_rate);
    let grants = match (granted(read, read_rate), granted(write, write_rate)) {
        (Some(reads), Some(_)) if is_one => format!("Reads and writes together get {reads}"),
        (Some(reads), Some(writes)) => format!("Reads get {reads}; writes get {writes}"),
        (Some(reads), None) => format!("Reads get {reads}"),
        (None, Some(writes)) => format!("Writes get {writes}"),
        (None, None) => return None,
    };
    let verdicts = [read.verdict, write.verdict, read_rate.verdict, write_rate.verdict];
    Some(if verdicts.contains(&Verdict::Inconclusive) {
        format!("{grants} for as long as they were measured. Some of it may be a burst that ends later.")
    } else {
        format!("{grants} in the long run{}.", burst(limits))
    })
}

fn is_near(one: &Figure<u64>, other: &Figure<u64>) -> bool {
    match (one.value, other.value) {
        (Some(one), Some(other)) => one.abs_diff(other) as f64 <= SAME * one as f64,
        (one, other) => one == other,
    }
}

fn granted(iops: &Figure<u64>, bandwidth: &Figure<u64>) -> Option<String> {
    let bandwidth = bandwidth.value.map(|rate| quantity(Quantity::BytesPerSecond(rate)));
    let both: Vec<String> = iops.value.map(requests).into_iter().chain(bandwidth).collect();
    (!both.is_empty()).then(|| both.join(" and "))
}

/// Three significant digits, which is what the interval of a rate allows.
fn requests(per_s: u64) -> String {
    let unit = 10_u64.pow(per_s.max(1).ilog10().saturating_sub(2));
    format!("{} requests/s", grouped((per_s + unit / 2) / unit * unit))
}

fn burst(limits: &Limits) -> String {
    let rate = limits.read_iops_burst.known().or(limits.write_iops_burst.known());
    rate.map_or_else(String::new, |rate| format!(", and up to {} while a burst lasts", requests(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certain(value: u64) -> Figure<u64> {
        Figure::certain(value, value, value)
    }

    #[test]
    fn what_a_volume_grants_for_long_is_one_sentence_with_its_burst() {
        let gp2 = Limits {
            read_iops_limit: certain(300),
            write_iops_limit: certain(301),
            read_bandwidth_limit: certain(78_646_619),
            write_bandwidth_limit: certain(78_643_200),
            read_iops_burst: certain(2_998),
            shared_budget: Figure::certain(true, true, true),
            ..Limits::default()
        };
        assert_eq!(
            limits_sentence(&gp2).unwrap(),
            "Reads and writes together get 300 requests/s and 75.0 MiB/s in the long run, and up to 3,000 requests/s \
             while a burst lasts."
        );
    }

    #[test]
    fn a_rate_that_may_be_a_burst_is_not_said_to_be_for_long() {
        let azure = Limits {
            read_iops_limit: Figure::inconclusive(274_994, 0, 276_369),
            write_iops_limit: certain(174_271),
            ..Limits::default()
        };
        assert_eq!(
            limits_sentence(&azure).unwrap(),
            "Reads get 275,000 requests/s; writes get 174,000 requests/s for as long as they were measured. Some of it \
             may be a burst that ends later."
        );
        assert_eq!(limits_sentence(&Limits::default()), None);
    }
}
