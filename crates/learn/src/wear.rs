//! What a drive's own counters show, before and after a workload or over its whole life.
//!
//! ```text
//!   write amplification = Δ flash bytes ÷ Δ host bytes
//!   years left          = flash bytes so far · (100 % − used) ÷ used ÷ (host bytes a second · write amplification)
//!   rating left         = (rated bytes − host bytes so far) ÷ host bytes a second
//! ```
//!
//! **Intervals** follow from how the counters count. A difference of two counts of a unit is known to a unit, a drive
//! brings its counters up to date every now and then ([`UPDATE_S`]), and the share of life used is a whole percentage
//! that a maker may round either way. What follows from a share of 0 % is a lower bound only.

use flashwise_block::ByteSize;
use flashwise_block::nvme::{AwsLog, AwsVolume, ByteCounter, Counters};
use flashwise_profile::{DeviceProfile, Evidence, Figure, Wear};

use crate::stats::graded::INTERVAL_SHARE_MAX;

/// The longest time between two updates of a drive's counters that was measured: a Solidigm D7-P5520 counts what it
/// programs every 60.4 s, a Micron 7450 every second.
const UPDATE_S: f64 = 60.4;
/// A year of 365.25 days.
const YEAR_S: f64 = 365.25 * 86_400.0;
/// Write amplification below which a drive compresses, or counts in another unit than its log's specification says:
/// flash holds what the host wrote, and at least a few per thousand of the drive's own.
const UNREDUCED_MIN: f64 = 0.98;

/// The counters of a drive, and what is known of its workload.
#[derive(Clone, Copy, Debug)]
pub struct WearInput<'a> {
    /// Before the workload; without it, its whole life is the workload.
    pub before: Option<&'a Counters>,
    /// After it.
    pub after: &'a Counters,
    /// Time between them, s; without it that of the logs, if both have one.
    pub elapsed_s: Option<f64>,
    /// Bytes a second that the host writes in the workload for which the years count; without it those counted.
    pub workload_bytes_per_s: Option<f64>,
    /// Bytes that the drive is rated for.
    pub endurance: Option<ByteSize>,
}

/// The figures, each with its evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// The figures.
    pub wear: Wear,
    /// Whether the limit that was met is the instance's; unknown where no volume reports it.
    pub limit_of_instance: Figure<bool>,
    /// How each came about.
    pub evidence: Vec<Evidence>,
}

/// Counters that cannot be of one drive, earlier and later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WearError {
    /// A counter is smaller afterwards.
    #[error(
        "{counter}: {before} before and {after} afterwards: give the earlier log first, and logs of the same drive"
    )]
    Backwards {
        /// What is counted.
        counter: &'static str,
        /// Its value before.
        before: u128,
        /// And after.
        after: u128,
    },
    /// One log is of a volume, the other of a drive, or pages are missing.
    #[error("{0} is only in one of the two logs: give the same log pages before and after")]
    OnlyOnce(&'static str),
    /// The time between the logs is not positive.
    #[error("the time between both logs must be positive, but is {0} s")]
    NoTime(String),
}

/// A value with both ends of its interval.
#[derive(Clone, Copy, Debug)]
struct Span {
    value: f64,
    low: f64,
    high: f64,
}

impl Span {
    fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    fn times(self, other: Self) -> Self {
        Self { value: self.value * other.value, low: self.low * other.low, high: self.high * other.high }
    }

    /// Both must be positive.
    fn over(self, other: Self) -> Self {
        Self { value: self.value / other.value, low: self.low / other.high, high: self.high / other.low }
    }

    fn widened(self, share: f64) -> Self {
        Self { value: self.value, low: self.low * (1.0 - share).max(0.0), high: self.high * (1.0 + share) }
    }

    /// Certain where the interval is narrow enough.
    fn figure(self) -> Figure<f64> {
        let Self { value, low, high } = self;
        let is_finite = value.is_finite() && low.is_finite() && high.is_finite();
        match is_finite && high - value <= INTERVAL_SHARE_MAX * value && value - low <= INTERVAL_SHARE_MAX * value {
            true => Figure::certain(value, low, high),
            false => Figure { value: finite(value), low: finite(low), high: finite(high), ..Figure::unknown() },
        }
    }
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

/// Bytes that were counted between two logs.
fn difference(counter: &'static str, before: Option<ByteCounter>, after: ByteCounter) -> Result<Span, WearError> {
    let unit = after.unit_bytes as f64;
    let Some(before) = before else {
        // Rounded up: between one unit less and as many.
        return Ok(Span {
            value: after.bytes(),
            low: after.units.saturating_sub(1) as f64 * unit,
            high: after.bytes(),
        });
    };
    if before.unit_bytes != after.unit_bytes {
        return Err(WearError::OnlyOnce(counter));
    }
    let (first, last) = (before.units, after.units);
    let units = last.checked_sub(first).ok_or(WearError::Backwards { counter, before: first, after: last })?;
    let (low, high) = (units.saturating_sub(1) as f64, units as f64 + 1.0);
    Ok(Span { value: units as f64 * unit, low: low * unit, high: high * unit })
}

/// A counter before and after; `None` where the later log lacks it.
fn counted(
    counter: &'static str,
    input: &WearInput<'_>,
    of: impl Fn(&Counters) -> Option<ByteCounter>,
) -> Result<Option<Span>, WearError> {
    match (input.before.map(&of), of(input.after)) {
        (_, None) => Ok(None),
        (Some(None), Some(_)) => Err(WearError::OnlyOnce(counter)),
        (Some(Some(before)), Some(after)) => difference(counter, Some(before), after).map(Some),
        (None, Some(after)) => difference(counter, None, after).map(Some),
    }
}

/// Computes the figures.
///
/// # Errors
/// When the logs cannot be of one drive, earlier and later.
pub fn wear(input: &WearInput<'_>) -> Result<Counted, WearError> {
    let mut counted_wear = Counted::default();
    let elapsed = elapsed_s(input)?;
    let host = counted("host writes", input, Counters::host_written)?;
    let flash = counted("flash writes", input, Counters::media_written)?;
    // Of a whole life, what was not yet brought up to date is of no weight.
    let late = input.before.map(|_| elapsed.map_or(f64::INFINITY, |seconds| UPDATE_S / seconds));
    let amplification = counted_wear.amplification(host, flash, late);
    let rate = counted_wear.rate(input, host, elapsed);
    counted_wear.used(input);
    counted_wear.years(input, rate, amplification);
    counted_wear.rating(input, rate);
    counted_wear.limits(input)?;
    Ok(counted_wear)
}

/// Adds what counters show to a profile. Figures of earlier counters are replaced.
///
/// # Errors
/// As [`wear`].
pub fn add_counters(profile: &mut DeviceProfile, input: &WearInput<'_>) -> Result<(), WearError> {
    let Counted { wear, limit_of_instance, evidence } = wear(input)?;
    if limit_of_instance.value.is_some() {
        profile.limits.limit_of_instance = limit_of_instance;
    }
    let keys: Vec<&str> = wear.entries().iter().map(|entry| entry.key).collect();
    let is_new = |figure: &str| evidence.iter().any(|evidence| evidence.figure == figure);
    profile.evidence.retain(|old| !keys.contains(&old.figure.as_str()) && !is_new(&old.figure));
    profile.wear = wear;
    profile.evidence.extend(evidence);
    Ok(())
}

fn elapsed_s(input: &WearInput<'_>) -> Result<Option<f64>, WearError> {
    let of_logs = || Some(input.after.time_s? - input.before?.time_s?);
    match input.elapsed_s.or_else(of_logs) {
        Some(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(Some(seconds)),
        Some(seconds) => Err(WearError::NoTime(seconds.to_string())),
        None => Ok(None),
    }
}

impl Counted {
    fn because(&mut self, figure: &str, recipe: &str, reason: String) {
        let (figure, recipe) = (figure.to_owned(), recipe.to_owned());
        self.evidence.push(Evidence { figure, recipe, reason, left_out: false, not_tried: false, curve: None });
    }

    fn amplification(&mut self, host: Option<Span>, flash: Option<Span>, late: Option<f64>) -> Option<Span> {
        let flash = flash?;
        let host = host.filter(|host| host.value > 0.0);
        let key = "write_amplification_counted";
        let recipe = "flash bytes ÷ host bytes by the drive's counters";
        let Some(host) = host else {
            self.because(key, recipe, "the host's counter is missing, or did not advance".to_owned());
            return None;
        };
        let ratio = flash.over(host);
        let (span, mut reason) = match late {
            None => (ratio, "since the drive was new".to_owned()),
            Some(late) if late.is_finite() => {
                let reason = format!(
                    "{} of flash for {} by the host; a drive may be up to {UPDATE_S} s late with a counter",
                    ByteSize(flash.value as u64),
                    ByteSize(host.value as u64)
                );
                (ratio.widened(late), reason)
            }
            Some(_) => {
                (ratio, "the time between both logs is unknown, and with it how late a counter may be".to_owned())
            }
        };
        let mut figure = span.figure();
        if late.is_some_and(f64::is_infinite) {
            figure.doubt();
        }
        if span.high < UNREDUCED_MIN {
            figure.doubt();
            reason += "; less than the host wrote: the drive compresses, or counts in another unit than its log's \
                       specification says";
        }
        self.wear.write_amplification_counted = figure;
        self.because(key, recipe, reason);
        Some(span)
    }

    /// Bytes a second for which the years count.
    fn rate(&mut self, input: &WearInput<'_>, host: Option<Span>, elapsed: Option<f64>) -> Option<Span> {
        let key = "host_write_bytes_per_s";
        let on_hours = input.after.smart.as_ref().map(|smart| smart.power_on_hours as f64);
        let (rate, reason) = match (input.workload_bytes_per_s, input.before, elapsed) {
            (Some(rate), _, _) => (Some(Span::exact(rate)), "by the workload's trace"),
            (None, Some(_), Some(seconds)) => (host.map(|host| host.over(Span::exact(seconds))), "between both logs"),
            (None, Some(_), None) => (None, "the time between both logs is unknown"),
            (None, None, _) => {
                let hours = on_hours.filter(|&hours| hours > 0.0);
                // Hours that are not over are not counted.
                let time = hours.map(|h| Span { value: h * 3600.0, low: h * 3600.0, high: (h + 1.0) * 3600.0 });
                (host.zip(time).map(|(host, time)| host.over(time)), "on average since the drive was new")
            }
        };
        let rate = rate.filter(|rate| rate.value.is_finite());
        if let Some(rate) = rate {
            // Nothing is written at a rate of which no share is an interval.
            let figure = if rate.value > 0.0 { rate.figure() } else { Figure::certain(0.0, rate.low, rate.high) };
            self.wear.host_write_bytes_per_s = figure.map(|x| x.round() as u64);
        }
        if host.is_some() || rate.is_some() {
            self.because(key, "bytes that the host wrote", reason.to_owned());
        }
        rate.filter(|rate| rate.value > 0.0)
    }

    fn used(&mut self, input: &WearInput<'_>) {
        let Some(smart) = &input.after.smart else { return };
        let used = used_share(smart.percent_used);
        self.wear.life_used = Figure::certain(used.value, used.low, used.high);
        let reason = format!("the drive reports {} %", smart.percent_used);
        self.because("life_used", "percentage used, of the SMART log", reason);
    }

    fn years(&mut self, input: &WearInput<'_>, rate: Option<Span>, amplification: Option<Span>) {
        let Some(smart) = &input.after.smart else { return };
        let key = "years_left";
        let recipe = "life used, what it was used for, and the rate of the host's writes";
        let Some(rate) = rate else {
            self.because(key, recipe, "the rate at which the host writes is unknown, or 0".to_owned());
            return;
        };
        let life = |counter: Option<ByteCounter>| counter.and_then(|counter| difference("life", None, counter).ok());
        let (flash_life, host_life) = (life(input.after.media_written()), life(input.after.host_written()));
        // Without a counter of the flash, the workload is taken to wear as the life so far did.
        let (worn, wears, is_alike) = match (flash_life, amplification, host_life) {
            (Some(flash), Some(amplification), _) => (flash, rate.times(amplification), false),
            (_, _, Some(host)) => (host, rate, true),
            _ => return,
        };
        let used = used_share(smart.percent_used);
        let left = |used: f64| if used > 0.0 { ((1.0 - used) / used).max(0.0) } else { f64::INFINITY };
        let left = Span { value: left(used.value), low: left(used.high), high: left(used.low) };
        let years = worn.times(left).over(wears.times(Span::exact(YEAR_S)));
        let mut figure = years.figure();
        let mut reason = match smart.percent_used {
            0 => "the drive reports 0 % used: a lower bound follows, and no value".to_owned(),
            percent => format!("{percent} % of the life took {} of {}", ByteSize(worn.value as u64), what(is_alike)),
        };
        if is_alike && (input.before.is_some() || input.workload_bytes_per_s.is_some()) {
            figure.doubt();
            reason += "; no counter of flash writes: this workload's write amplification is taken for that of the life \
                       so far";
        }
        self.wear.years_left = figure;
        self.because(key, recipe, reason);
    }

    fn rating(&mut self, input: &WearInput<'_>, rate: Option<Span>) {
        let Some(endurance) = input.endurance else { return };
        let key = "years_left_rated";
        let recipe = "rated bytes, less what the host wrote so far, at the rate of its writes";
        let so_far = input.after.host_written().and_then(|counter| difference("life", None, counter).ok());
        let Some((rate, so_far)) = rate.zip(so_far) else {
            self.because(key, recipe, "the host's counter or the rate of its writes is unknown".to_owned());
            return;
        };
        let left = |so_far: f64| (endurance.0 as f64 - so_far).max(0.0);
        let left = Span { value: left(so_far.value), low: left(so_far.high), high: left(so_far.low) };
        self.wear.years_left_rated = left.over(rate.times(Span::exact(YEAR_S))).figure();
        self.because(key, recipe, format!("{} of {endurance} are written", ByteSize(so_far.value as u64)));
    }

    /// Which limit demand exceeded, where a volume of AWS counts that.
    fn limits(&mut self, input: &WearInput<'_>) -> Result<(), WearError> {
        let Some(after) = &input.after.aws else { return Ok(()) };
        let before = match input.before.map(|before| before.aws.as_ref()) {
            Some(None) => return Err(WearError::OnlyOnce("the volume's page")),
            before => before.flatten(),
        };
        let since = |counter, of: fn(&AwsLog) -> u64| {
            let (first, last) = (before.map_or(0, of), of(after));
            let backwards = WearError::Backwards { counter, before: first.into(), after: last.into() };
            last.checked_sub(first).ok_or(backwards)
        };
        let volume_us = since("time over the volume's limits", AwsLog::volume_exceeded_us)?;
        let instance_us = since("time over the instance's limits", AwsLog::instance_exceeded_us)?;
        let exact = |us: u64| {
            let ns = us.saturating_mul(1000);
            Figure::certain(ns, ns, ns)
        };
        self.wear.over_volume_limit_ns = exact(volume_us);
        self.wear.over_instance_limit_ns = exact(instance_us);
        let recipe = "counters of the volume's own log";
        let reason = match after.volume {
            AwsVolume::Ebs => "microseconds of demand above IOPS and throughput",
            AwsVolume::InstanceStore => "microseconds of demand above IOPS and throughput of the local volume",
        };
        for key in ["over_volume_limit_ns", "over_instance_limit_ns"] {
            self.because(key, recipe, reason.to_owned());
        }
        let (is_instance, reason) = match (volume_us, instance_us) {
            (0, 0) => (Figure::unknown(), "demand never exceeded a limit between both logs".to_owned()),
            (0, over) => {
                (certain(true), format!("demand exceeded the instance's limit for {over} µs, the volume's never"))
            }
            (over, 0) => {
                (certain(false), format!("demand exceeded the volume's limit for {over} µs, the instance's never"))
            }
            (volume, instance) => {
                let reason =
                    format!("demand exceeded the volume's limit for {volume} µs, the instance's for {instance} µs");
                (Figure::unknown(), reason)
            }
        };
        self.limit_of_instance = is_instance;
        self.because("limit_of_instance", recipe, reason);
        Ok(())
    }
}

fn certain(flag: bool) -> Figure<bool> {
    Figure::certain(flag, flag, flag)
}

fn what(is_host: bool) -> &'static str {
    if is_host { "host writes" } else { "flash writes" }
}

/// A whole percentage that may have been rounded either way; at its last value it has stopped.
fn used_share(percent: u8) -> Span {
    let share = |percent: f64| percent / 100.0;
    let percent = f64::from(percent);
    Span { value: share(percent), low: share((percent - 1.0).max(0.0)), high: share(percent + 1.0) }
}

#[cfg(test)]
mod tests {
    use flashwise_block::nvme::{DATA_UNIT_BYTES, MakerLog, OcpLog, SmartLog};
    use flashwise_profile::Verdict;

    use super::*;

    const TB: u128 = 1_000_000_000_000;

    /// A drive by its counters: host bytes, flash bytes, percentage used, hours.
    fn drive(host: u128, flash: Option<u128>, percent_used: u8, hours: u128) -> Counters {
        let units = host.div_ceil(DATA_UNIT_BYTES.into());
        let smart = SmartLog { data_units_written: units, percent_used, power_on_hours: hours, ..SmartLog::default() };
        let ocp = flash.map(|flash| OcpLog { physical_media_units_written: flash, ..OcpLog::default() });
        Counters { smart: Some(smart), ocp, ..Counters::default() }
    }

    fn over(before: Option<&Counters>, after: &Counters, elapsed_s: Option<f64>) -> Result<Counted, WearError> {
        wear(&WearInput { before, after, elapsed_s, workload_bytes_per_s: None, endurance: None })
    }

    fn holds(figure: Figure<f64>, truth: f64) {
        let (low, high) = (figure.low.unwrap(), figure.high.unwrap());
        assert!(low <= truth && truth <= high, "{truth} and {figure:?}");
    }

    #[test]
    fn write_amplification_between_two_logs_has_the_interval_of_their_units() {
        let before = drive(100 * TB, Some(150 * TB), 10, 10_000);
        // 512 MB by the host: a thousand units, each way one more or less.
        let after = drive(100 * TB + 512_000_000, Some(150 * TB + 1_000_000_000), 10, 10_001);
        let figure = over(Some(&before), &after, Some(86_400.0)).unwrap().wear.write_amplification_counted;
        assert_eq!(figure.verdict, Verdict::Certain);
        let (value, low, high) = (figure.value.unwrap(), figure.low.unwrap(), figure.high.unwrap());
        assert!((value - 1.953).abs() < 0.001, "{value}");
        let late = 60.4 / 86_400.0;
        assert!((low / value - (1.0 - 0.001) * (1.0 - late)).abs() < 1e-5, "{low} {value}");
        assert!((high / value - (1.0 + 0.001) * (1.0 + late)).abs() < 1e-5, "{high} {value}");
    }

    #[test]
    fn a_short_or_unknown_time_between_logs_makes_no_certain_figure() {
        let (before, after) = (drive(TB, Some(TB), 1, 10), drive(2 * TB, Some(3 * TB), 1, 10));
        let figure = over(Some(&before), &after, Some(100.0)).unwrap().wear.write_amplification_counted;
        assert_eq!(figure.verdict, Verdict::Inconclusive);
        holds(figure, 2.0);
        let counted = over(Some(&before), &after, None).unwrap();
        assert_eq!(counted.wear.write_amplification_counted.verdict, Verdict::Inconclusive);
        assert_eq!(counted.wear.host_write_bytes_per_s, Figure::unknown());
        assert_eq!(counted.wear.years_left, Figure::unknown());
    }

    #[test]
    fn years_left_follow_from_wear_rate_and_write_amplification() {
        // A tenth of its life took 200 TB of flash; 20 MB/s at a write amplification of 2 take the other nine tenths.
        let before = drive(100 * TB, Some(200 * TB), 10, 10_000);
        let day = 20_000_000 * 86_400;
        let after = drive(100 * TB + day, Some(200 * TB + 2 * day), 10, 10_024);
        let counted = over(Some(&before), &after, Some(86_400.0)).unwrap();
        let truth = 9.0 * (200e12 + 2.0 * day as f64) / (40e6 * YEAR_S);
        let years = counted.wear.years_left;
        assert!((years.value.unwrap() / truth - 1.0).abs() < 1e-4, "{years:?} {truth}");
        // One percent more or less of ten is too wide to be certain.
        assert_eq!(years.verdict, Verdict::Inconclusive);
        holds(years, truth * 0.91);
        let half = drive(100 * TB + day, Some(200 * TB + 2 * day), 50, 10_024);
        let years = over(Some(&before), &half, Some(86_400.0)).unwrap().wear.years_left;
        assert_eq!(years.verdict, Verdict::Certain);
        holds(years, truth / 9.0);
    }

    #[test]
    fn a_drive_with_nothing_used_has_a_lower_bound_and_one_beyond_its_life_nothing_left() {
        let new = over(None, &drive(TB, Some(TB), 0, 1000), None).unwrap().wear.years_left;
        assert_eq!((new.value, new.high, new.verdict), (None, None, Verdict::Inconclusive));
        // 99 times what a thousand hours took, at the longest that a thousand hours may be.
        let low = new.low.unwrap();
        assert!((low / (99.0 * 1000.0 * 3600.0 / YEAR_S) - 1.0).abs() < 0.002, "{low}");
        let worn = over(None, &drive(TB, Some(TB), 255, 1000), None).unwrap().wear.years_left;
        assert_eq!(worn.value, Some(0.0));
    }

    #[test]
    fn without_flash_counters_the_life_so_far_stands_for_the_workload_and_is_no_certainty() {
        let before = drive(100 * TB, None, 50, 10_000);
        let after = drive(102 * TB, None, 50, 10_024);
        let counted = over(Some(&before), &after, Some(86_400.0)).unwrap();
        assert_eq!(counted.wear.write_amplification_counted, Figure::unknown());
        assert_eq!(counted.wear.years_left.verdict, Verdict::Inconclusive);
        assert!(counted.wear.years_left.value.is_some());
        let alone = over(None, &after, None).unwrap().wear.years_left;
        assert_eq!(alone.verdict, Verdict::Certain);
        holds(alone, 10_024.0 * 3600.0 / YEAR_S);
    }

    #[test]
    fn the_rating_is_used_up_by_host_writes_alone() {
        let (before, after) = (drive(TB, Some(TB), 1, 10), drive(2 * TB, Some(9 * TB), 1, 10));
        let input = WearInput {
            before: Some(&before),
            after: &after,
            elapsed_s: Some(YEAR_S / 100.0),
            workload_bytes_per_s: None,
            endurance: Some(ByteSize(52 * TB as u64)),
        };
        let rated = wear(&input).unwrap().wear.years_left_rated;
        assert_eq!(rated.verdict, Verdict::Certain);
        holds(rated, 0.5);
        let trace = WearInput { workload_bytes_per_s: Some(50e12 / YEAR_S), ..input };
        holds(wear(&trace).unwrap().wear.years_left_rated, 1.0);
    }

    #[test]
    fn a_drive_that_programs_less_than_was_written_is_doubted() {
        let (before, after) = (drive(TB, Some(TB), 1, 10), drive(3 * TB, Some(2 * TB), 1, 10));
        let counted = over(Some(&before), &after, Some(86_400.0)).unwrap();
        assert_eq!(counted.wear.write_amplification_counted.verdict, Verdict::Inconclusive);
        assert!(counted.evidence[0].reason.contains("the drive compresses, or counts in another unit"));
    }

    #[test]
    fn logs_of_two_drives_or_in_the_wrong_order_are_refused() {
        let (before, after) = (drive(2 * TB, Some(TB), 1, 10), drive(TB, Some(TB), 1, 10));
        let error = over(Some(&before), &after, Some(1.0)).unwrap_err().to_string();
        assert!(error.starts_with("host writes: 3906250 before and 1953125 afterwards"), "{error}");
        let error = over(Some(&drive(TB, None, 1, 1)), &after, Some(1.0)).unwrap_err();
        assert_eq!(error, WearError::OnlyOnce("flash writes"));
        assert!(matches!(over(Some(&after), &after, Some(0.0)), Err(WearError::NoTime(_))));
        let idle = over(Some(&after), &after, Some(9000.0)).unwrap();
        assert_eq!(
            (idle.wear.write_amplification_counted, idle.wear.years_left),
            (Figure::unknown(), Figure::unknown())
        );
    }

    #[test]
    fn a_maker_s_coarse_units_widen_the_interval() {
        let maker = |media: u128, host: u128| Counters {
            maker: Some(MakerLog {
                unit_bytes: 32 << 20,
                media_units_written: Some(media),
                host_units_written: Some(host),
            }),
            ..Counters::default()
        };
        let figure =
            over(Some(&maker(1000, 1000)), &maker(1020, 1010), Some(1e9)).unwrap().wear.write_amplification_counted;
        assert_eq!((figure.value, figure.verdict), (Some(2.0), Verdict::Inconclusive));
        assert!(figure.low.unwrap() < 1.73 && figure.high.unwrap() > 2.3, "{figure:?}");
    }

    fn volume(volume_us: u64, instance_us: u64) -> Counters {
        let text = format!(
            r#"{{"ebs_volume_performance_exceeded_iops":{volume_us},"ec2_instance_ebs_performance_exceeded_tp":{instance_us}}}"#
        );
        Counters::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn whose_limit_it_is_follows_from_the_volume_s_own_log() {
        let of = |after: Counters| over(Some(&volume(5, 7)), &after, Some(300.0)).unwrap();
        assert_eq!(of(volume(5, 9_000)).limit_of_instance, certain(true));
        let counted = of(volume(1_000_005, 7));
        assert_eq!(counted.limit_of_instance, certain(false));
        assert_eq!(counted.wear.over_volume_limit_ns.known(), Some(1_000_000_000));
        assert_eq!(of(volume(5, 7)).limit_of_instance, Figure::unknown());
        assert_eq!(of(volume(6, 8)).limit_of_instance, Figure::unknown());
        assert!(over(Some(&volume(5, 7)), &volume(4, 7), None).is_err());
        assert!(over(Some(&drive(TB, None, 1, 1)), &volume(4, 7), None).is_err());
    }
}
