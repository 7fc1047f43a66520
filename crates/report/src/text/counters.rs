//! A drive's own counters, in words.

use flashwise_block::nvme::{AwsVolume, Counters};
use flashwise_profile::{Entry, Figure, Quantity, Verdict};

use super::groups::short_name;
use super::numbers::{bytes, grouped, significant};
use super::parameters::{interval_in_words, quantity};
use crate::counters::CountersDocument;

/// The result in a sentence.
pub(crate) fn headline(document: &CountersDocument) -> Option<String> {
    let wear = &document.wear;
    let value = |figure: &Figure<f64>| figure.value.map(|x| (x, figure.verdict == Verdict::Certain));
    let about = |is_certain: bool| if is_certain { "" } else { "about " };
    let years = value(&wear.years_left).map(|(years, is_certain)| {
        let years = if years >= 100.0 { grouped(years.round() as u64) } else { significant(years) };
        format!("The drive lasts {}{years} more years at this workload", about(is_certain))
    });
    let least = || {
        let low = wear.years_left.low?;
        let years = if low >= 100.0 { grouped(low.round() as u64) } else { significant(low) };
        Some(format!("The drive lasts at least {years} more years at this workload"))
    };
    let amplified = value(&wear.write_amplification_counted).map(|(factor, is_certain)| {
        format!("it writes {}{} bytes of flash for each byte of the host", about(is_certain), significant(factor))
    });
    match (years.or_else(least), amplified) {
        (Some(years), Some(amplified)) => Some(format!("{years}; {amplified}.")),
        (Some(sentence), None) => Some(format!("{sentence}.")),
        (None, Some(amplified)) => Some(super::findings::sentence(&amplified)),
        (None, None) => match document.limit_of_instance.known() {
            Some(true) => Some("Demand exceeded the limit of the instance, not that of the volume.".to_owned()),
            Some(false) => Some("Demand exceeded the limit of the volume, not that of the instance.".to_owned()),
            None => None,
        },
    }
}

/// Figures that were computed or tried: name, value with interval.
pub(crate) fn figure_rows(document: &CountersDocument) -> Vec<(&'static str, String)> {
    let mut rows: Vec<_> = document.figures().iter().map(|entry| (short_name(entry.key), value(entry))).collect();
    if let Some(flag) = document.limit_of_instance.known() {
        rows.push(("of the instance", quantity(Quantity::Flag(flag))));
    }
    rows
}

fn value(entry: &Entry) -> String {
    let figure = &entry.figure;
    match (figure.value, figure.low) {
        (None, Some(low)) => format!("at least {}", quantity(low)),
        _ => interval_in_words(figure),
    }
}

/// The counters themselves.
pub(crate) fn counter_rows(counters: &Counters) -> Vec<(&'static str, String)> {
    let of_bytes = |counter: Option<flashwise_block::nvme::ByteCounter>| {
        counter.map(|counter| bytes(counter.bytes().min(u64::MAX as f64) as u64))
    };
    let mut rows = Vec::new();
    rows.extend(of_bytes(counters.host_written()).map(|host| ("written by the host", host)));
    rows.extend(of_bytes(counters.media_written()).map(|flash| ("written to flash", flash)));
    if let Some(smart) = &counters.smart {
        rows.push(("used", format!("{} %", smart.percent_used)));
        rows.push(("spare blocks left", format!("{} %", smart.avail_spare)));
        rows.push(("power on", format!("{} hours", smart.power_on_hours)));
        rows.push(("media errors", smart.media_errors.to_string()));
    }
    if let Some(ocp) = &counters.ocp {
        let (least, most) = (ocp.min_user_data_erase_counts, ocp.max_user_data_erase_counts);
        rows.push(("P/E cycles", format!("{} to {}", grouped(least), grouped(most))));
    }
    if let Some(aws) = &counters.aws {
        let kind = match aws.volume {
            AwsVolume::Ebs => "an EBS volume",
            AwsVolume::InstanceStore => "instance storage",
        };
        rows.push(("volume", kind.to_owned()));
        rows.push(("in flight", aws.volume_queue_length.to_string()));
    }
    rows
}

/// Why a figure is inconclusive.
pub(crate) fn remarks(document: &CountersDocument) -> Vec<String> {
    let figures = document.figures().into_iter().filter(|entry| entry.figure.verdict == Verdict::Inconclusive);
    let reason = |entry: Entry| {
        let evidence = document.evidence_of(entry.key)?;
        Some(super::findings::sentence(&format!("{}: {}", short_name(entry.key), evidence.reason)))
    };
    let instance = document.evidence_of("limit_of_instance").filter(|_| document.limit_of_instance.known().is_none());
    let instance = instance.map(|evidence| super::findings::sentence(&evidence.reason));
    figures.filter_map(reason).chain(instance).collect()
}
