//! Statistics of a drive in the text format of Prometheus, version 0.0.4.
//!
//! Source: "Exposition formats" and "Metric and label naming" of the Prometheus documentation: names in base units with
//! their unit as a suffix, counters with `_total`, a HELP and a TYPE before the samples of each name.

use std::fmt::{Display, Write};

use flashwise_block::{DeviceCounters, FlashCounters};
use flashwise_sim::{Busy, WriteCauses};

use crate::{DeviceStat, KindLatency};

/// The text.
#[derive(Default)]
struct Exposition(String);

/// Labels after a name: label and value.
type Label<'a> = (&'a str, &'a str);

impl Exposition {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP flashwise_{name} {help}\n# TYPE flashwise_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "flashwise_{name}{labels} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.sample(name, &[], value);
    }
}

/// A label's value, escaped for quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Statistics of a drive, as text.
pub(super) fn exposition(stat: &DeviceStat) -> String {
    let mut out = Exposition::default();
    drive(&mut out, stat);
    host(&mut out, &stat.counters, stat.failed);
    if let Some(flash) = &stat.counters.flash {
        programmed(&mut out, flash);
        collected(&mut out, flash);
    }
    amplification(&mut out, stat.write_amplification, stat.write_amplification_by_cause.as_ref());
    space(&mut out, stat);
    utilisation(&mut out, stat);
    durations(&mut out, stat);
    pacing(&mut out, stat);
    faults(&mut out, stat);
    log_pages(&mut out, stat);
    out.0
}

fn drive(out: &mut Exposition, stat: &DeviceStat) {
    out.head("device_info", "gauge", "The simulated drive; always 1.");
    out.sample("device_info", &[("device", &stat.device)], 1);
    out.gauge("capacity_bytes", "Addressable bytes of the drive.", stat.capacity_bytes);
    out.counter(
        "simulated_seconds_total",
        "Time on the drive's clock since it was attached.",
        seconds(stat.simulated_ns),
    );
    out.gauge("requests_in_flight", "Requests in flight.", stat.in_flight);
    let read_only = u8::from(stat.state.read_only.is_some());
    out.gauge("read_only", "1 while the drive refuses writes.", read_only);
    let end = u8::from(stat.state.end_of_life.is_some());
    out.gauge("end_of_life", "1 once the drive has run out of spare blocks.", end);
}

fn host(out: &mut Exposition, counters: &DeviceCounters, failed: u64) {
    out.head("host_requests_total", "counter", "Completed requests.");
    for (operation, count) in [
        ("read", counters.host_reads),
        ("write", counters.host_writes),
        ("flush", counters.flushes),
        ("trim", counters.trims),
        ("write_zeroes", counters.zero_writes),
    ] {
        out.sample("host_requests_total", &[("operation", operation)], count);
    }
    out.counter("host_read_bytes_total", "Bytes read by the host.", counters.host_bytes_read.0);
    out.counter("host_written_bytes_total", "Bytes written by the host.", counters.host_bytes_written.0);
    out.counter("host_zeroed_bytes_total", "Bytes of writes of zeros.", counters.bytes_zeroed.0);
    out.counter("failed_requests_total", "Requests that failed.", failed);
}

fn programmed(out: &mut Exposition, flash: &FlashCounters) {
    for (name, help, bytes) in [
        ("read", "Bytes sensed from flash.", flash.bytes_read),
        ("programmed", "Bytes programmed into flash, in all.", flash.bytes_programmed),
        ("padding", "Bytes programmed as padding.", flash.padding_bytes),
        ("gc_moved", "Bytes moved by garbage collection.", flash.gc_bytes_moved),
        ("wear_levelling_moved", "Bytes moved by wear levelling.", flash.wear_levelling_bytes_moved),
        ("retirement_moved", "Bytes moved out of retired blocks.", flash.retirement_bytes_moved),
        ("folding_moved", "Bytes moved out of the SLC cache.", flash.folding_bytes_moved),
        ("slc_programmed", "Bytes programmed in SLC mode.", flash.slc_bytes_programmed),
        ("mapping", "Bytes of mapping tables programmed.", flash.mapping_bytes),
    ] {
        out.counter(&format!("flash_{name}_bytes_total"), help, bytes.0);
    }
}

fn collected(out: &mut Exposition, flash: &FlashCounters) {
    out.counter("gc_runs_total", "Superblocks collected by garbage collection.", flash.gc_runs);
    out.counter("gc_moved_pages_total", "Logical pages moved by garbage collection.", flash.gc_pages_moved);
    out.counter("erased_superblocks_total", "Superblocks erased.", flash.erases);
    out.counter("retired_superblocks_total", "Superblocks retired.", flash.retired_superblocks);
}

fn amplification(out: &mut Exposition, whole: Option<f64>, parts: Option<&WriteCauses>) {
    let (Some(whole), Some(parts)) = (whole, parts) else { return };
    let help = "Flash bytes programmed per host byte written, since the drive was attached.";
    out.gauge("write_amplification_ratio", help, whole);
    let name = "write_amplification_by_cause_ratio";
    out.head(name, "gauge", "Write amplification by cause.");
    for (cause, part) in [
        ("host", parts.host),
        ("gc", parts.gc),
        ("wear_levelling", parts.wear_levelling),
        ("retirement", parts.retirement),
        ("folding", parts.folding),
        ("mapping", parts.mapping),
        ("padding", parts.padding),
    ] {
        out.sample(name, &[("cause", cause)], part);
    }
}

fn space(out: &mut Exposition, stat: &DeviceStat) {
    let Some(space) = &stat.space else { return };
    out.gauge("logical_bytes", "Bytes of logical pages in use.", space.logical_bytes);
    out.gauge("physical_bytes", "Bytes of flash in use for logical pages.", space.physical_bytes);
    out.gauge("physical_capacity_bytes", "Bytes of flash available for logical pages.", space.physical_capacity_bytes);
}

fn utilisation(out: &mut Exposition, stat: &DeviceStat) {
    out.head("busy_ratio", "gauge", "Share of time that the parts of the drive were busy, since it was attached.");
    let busy = &stat.utilisation;
    let parts = [("channel", &busy.channels), ("chip", &busy.chips), ("die", &busy.dies), ("plane", &busy.planes)];
    for (part, Busy { mean, min, max, .. }) in parts {
        for (statistic, share) in [("mean", mean), ("min", min), ("max", max)] {
            out.sample("busy_ratio", &[("part", part), ("statistic", statistic)], share);
        }
    }
}

fn durations(out: &mut Exposition, stat: &DeviceStat) {
    let name = "request_duration_seconds";
    out.head(name, "summary", "Latency of requests on the drive's clock.");
    let times = &stat.latency;
    for (operation, kind) in
        [("read", times.reads), ("write", times.writes), ("flush", times.flushes), ("trim", times.trims)]
    {
        let KindLatency { requests, sum_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, .. } = kind;
        for (quantile, ns) in [("0.5", p50_ns), ("0.9", p90_ns), ("0.99", p99_ns), ("0.999", p99_9_ns)] {
            out.sample(name, &[("operation", operation), ("quantile", quantile)], seconds(ns));
        }
        out.sample(&format!("{name}_sum"), &[("operation", operation)], seconds(sum_ns));
        out.sample(&format!("{name}_count"), &[("operation", operation)], requests);
    }
}

fn pacing(out: &mut Exposition, stat: &DeviceStat) {
    let (Some(pacing), Some(scale)) = (&stat.pacing, stat.time_scale) else { return };
    let help = "Seconds on the machine's clock per second on the drive's clock.";
    out.gauge("time_scale_ratio", help, scale);
    let help = "Delay of completions on the machine's clock, median.";
    out.gauge("pacing_error_median_seconds", help, seconds(pacing.error.p50_ns));
    let help = "Delay of completions on the machine's clock, 99th percentile.";
    out.gauge("pacing_error_p99_seconds", help, seconds(pacing.error.p99_ns));
}

fn faults(out: &mut Exposition, stat: &DeviceStat) {
    out.counter("power_cuts_total", "Injected power cuts.", stat.power_cuts);
    let extra_ns = stat.faults.latency_spike.map_or(0, |spike| spike.extra_ns);
    out.gauge("fault_latency_seconds", "Injected extra latency of requests.", seconds(extra_ns));
    out.gauge("fault_unreadable_bytes", "Bytes made unreadable by an injected fault.", stat.faults.unreadable_bytes);
}

/// Fields of the drive's NVMe log pages, under nvme-cli's names, since the drive is new.
fn log_pages(out: &mut Exposition, stat: &DeviceStat) {
    let Some(life) = &stat.life else { return };
    let smart = life.smart();
    for (name, help, value) in [
        ("data_units_read", "Units of 512,000 bytes read by the host.", smart.data_units_read),
        ("data_units_written", "Units of 512,000 bytes written by the host.", smart.data_units_written),
        ("host_read_commands", "Read commands.", smart.host_read_commands),
        ("host_write_commands", "Write commands.", smart.host_write_commands),
        ("power_on_hours", "Hours on the drive's clock.", smart.power_on_hours),
    ] {
        out.counter(&format!("nvme_smart_{name}_total"), help, value);
    }
    for (name, help, value) in [
        ("critical_warning", "Bits of critical warnings.", smart.critical_warning),
        ("avail_spare_percent", "Spare blocks that are left.", smart.avail_spare),
        ("percent_used", "Life used, in percent of the rated P/E cycles.", smart.percent_used),
    ] {
        out.gauge(&format!("nvme_smart_{name}"), help, value);
    }
    let Some(ocp) = life.ocp() else { return };
    for (name, help, value) in [
        ("physical_media_units_written", "Bytes written to flash.", ocp.physical_media_units_written),
        ("physical_media_units_read", "Bytes read from flash.", ocp.physical_media_units_read),
        ("bad_user_nand_blocks", "Retired blocks.", ocp.bad_user_nand_blocks_raw.into()),
    ] {
        out.counter(&format!("nvme_ocp_{name}_total"), help, value);
    }
    for (name, help, value) in [
        ("max_user_data_erase_counts", "P/E cycles of the most worn block.", ocp.max_user_data_erase_counts),
        ("min_user_data_erase_counts", "P/E cycles of the least worn block.", ocp.min_user_data_erase_counts),
    ] {
        out.gauge(&format!("nvme_ocp_{name}"), help, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_quotes_stays_one_label() {
        let mut out = Exposition::default();
        out.sample("device_info", &[("device", "a \"b\" \\ c\nd")], 1);
        assert_eq!(out.0, "flashwise_device_info{device=\"a \\\"b\\\" \\\\ c\\nd\"} 1\n");
    }
}
