//! `innodb_doublewrite`: pages are written twice, so that a torn one can be repaired.
//!
//! It is turned off only where every layer reports that a page is written whole or not at all: the server writes past
//! the page cache, the file system has a page in one block and passes it on whole, and the drive promises not to tear
//! it. With smaller blocks a page may be in two places, and the server does not ask for an atomic write. The drive's
//! part is a promise: no probe cuts the power. A flush that costs nothing indicates a buffer that survives a power cut,
//! not that the drive writes a page atomically.
//!
//! The profile keeps what its drive promised. It counts where the kernel does not say what the drive of the server's
//! files promises, and where it promises less. A kernel that reports 0 does say it: file systems that write a copy
//! report a unit also on a drive that promises nothing.
//!
//! Source: MariaDB documentation, "InnoDB Doublewrite Buffer" and "Atomic Write Support": for drives that are known to
//! write 16 KiB atomically, the server itself omits it (`innodb_use_atomic_writes`); `flashwise_block::AtomicWrites`.

use flashwise_block::{AtomicWrites, ByteSize};

use super::super::settings::{DATA_BUFFERING, Variable};
use super::{Facts, Ruling};
use crate::servers::{Change, EvidenceFigure};

const FLUSH_METHOD: &str = "innodb_flush_method";
/// Values of `innodb_flush_method` with which data files bypass the page cache.
const DIRECT: [&str; 4] = ["O_DIRECT", "O_DIRECT_NO_FSYNC", "4", "5"];

/// The drive's unit as the kernel reports it, and as the profile keeps it.
const REPORTED: &str = "atomic_write_unit_max of the drive";
const PROFILED: &str = "promised_atomic_write_bytes of the profile";

pub(super) fn judge(facts: &Facts<'_>, now: &Variable) -> Result<Ruling, String> {
    let promised = promised(facts);
    match (now.value.as_str(), promised) {
        ("OFF", Ok(promise)) => Ok(Ruling::Fits(format!("it is off, and {}", promise.words()))),
        ("OFF", Err(why)) => Err(format!("it is off: a page torn by a power cut cannot be repaired, and {why}")),
        (_, Err(why)) => Err(why),
        (_, Ok(promise)) => Ok(Ruling::Change(promise.change())),
    }
}

/// What file system and drive report, both at least a page.
struct Promise {
    page: ByteSize,
    file_system: ByteSize,
    drive: ByteSize,
    /// Where the drive's unit is from.
    figure: &'static str,
}

fn promised(facts: &Facts<'_>) -> Result<Promise, String> {
    let page = ByteSize(facts.variables.number("innodb_page_size")? as u64);
    let value = |name: &str| facts.variables.get(name).map(|variable| variable.value.as_str());
    let (name, now, is_direct) = match (value(DATA_BUFFERING), value(FLUSH_METHOD).unwrap_or_default()) {
        (Some(now), _) => (DATA_BUFFERING, now, now == "OFF"),
        (None, now) => (FLUSH_METHOD, now, DIRECT.contains(&now)),
    };
    if !is_direct {
        return Err(format!("with {name} = {now} pages go through the page cache, which promises nothing"));
    }
    let Some(AtomicWrites { file_system, block, drive }) = facts.atomic_writes else {
        return Err(
            "no parameter in the profile proves that a write of a page cannot be torn, and the server's files \
                    cannot be examined from here"
                .to_owned(),
        );
    };
    let enough = |who: &str, unit: Option<ByteSize>| match unit {
        Some(unit) if unit >= page => Ok(unit),
        Some(unit) => Err(format!("the {who} reports atomic writes of up to {unit}, less than a page of {page}")),
        None => Err(format!("the {who} reports no atomic writes, so a power cut may tear a page of {page}")),
    };
    if block < page {
        return Err(format!(
            "blocks of the file system are {block}: it may have a page of {page} in two places, and the server does not \
             ask for atomic writes"
        ));
    }
    let file_system = enough("file system", file_system)?;
    let (drive, figure) = of_drive(facts, drive);
    Ok(Promise { page, file_system, drive: enough("drive", drive)?, figure })
}

/// The smaller of what the kernel and the profile report of the drive, as far as they do, and where it is from; of
/// equals the kernel's, which is of the drive in use. 0 is no promise.
fn of_drive(facts: &Facts<'_>, reported: Option<ByteSize>) -> (Option<ByteSize>, &'static str) {
    let profiled = facts.profile.device.promised_atomic_write_bytes.map(ByteSize);
    let (unit, figure) = match (reported, profiled) {
        (None, Some(profiled)) => (Some(profiled), PROFILED),
        (Some(reported), Some(profiled)) if profiled < reported => (Some(profiled), PROFILED),
        (reported, _) => (reported, REPORTED),
    };
    (unit.filter(|unit| unit.0 > 0), figure)
}

impl Promise {
    fn words(&self) -> String {
        let Self { page, file_system, drive, .. } = self;
        format!(
            "the drive promises that a power cut does not tear writes of up to {drive}, and the file system passes on \
             up to {file_system} whole: a page of {page} is written at once, without a copy, if the drive keeps its \
             promise"
        )
    }

    fn change(&self) -> Change {
        let exact = |figure: &str, value: ByteSize| {
            let value = value.0 as f64;
            EvidenceFigure { figure: figure.to_owned(), value, low: value, high: value, unit: "bytes".to_owned() }
        };
        let evidence =
            vec![exact("atomic_write_unit_max of the file", self.file_system), exact(self.figure, self.drive)];
        let mut change = Change::unmeasured("OFF", self.words(), evidence);
        "each page is written once and not twice; --measure shows what that brings"
            .clone_into(&mut change.expected_gain);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, changed, fits, untold};
    use super::*;

    fn reporting(file_system: u64, drive: u64) -> Bench {
        let some = |kib: u64| (kib > 0).then_some(ByteSize::kib(kib));
        let mut bench = Bench::new();
        let block = ByteSize::kib(16);
        bench.atomic_writes = Some(AtomicWrites { file_system: some(file_system), block, drive: some(drive) });
        bench
    }

    #[test]
    fn it_is_turned_off_only_where_every_layer_reports_a_whole_page() {
        let judge = |bench: &Bench| bench.judge(judge, "innodb_doublewrite");
        assert!(untold(judge(&Bench::new())).contains("cannot be examined"));
        assert!(untold(judge(&reporting(0, 16))).contains("file system reports no atomic writes"));
        assert!(untold(judge(&reporting(16, 0))).contains("drive reports no atomic writes"));
        assert!(untold(judge(&reporting(16, 4))).contains("less than a page"));
        assert!(untold(judge(&reporting(4, 64))).contains("less than a page"));
        let mut small_blocks = reporting(16, 64);
        small_blocks.atomic_writes.as_mut().unwrap().block = ByteSize::kib(4);
        assert!(untold(judge(&small_blocks)).contains("in two places"));
        let change = changed(judge(&reporting(16, 64)));
        assert_eq!(change.value, "OFF");
        assert!(change.reason.contains("the drive promises") && change.evidence.len() == 2);
    }

    #[test]
    fn of_kernel_and_profile_the_smaller_promise_counts() {
        let judged = |kernel: Option<u64>, profile_kib: u64| {
            let mut bench = reporting(16, 0);
            bench.atomic_writes.as_mut().unwrap().drive = kernel.map(ByteSize::kib);
            bench.profile.device.promised_atomic_write_bytes = Some(profile_kib << 10);
            bench.judge(judge, "innodb_doublewrite")
        };
        assert!(untold(judged(Some(64), 4)).contains("up to 4 KiB, less than a page"));
        assert!(untold(judged(None, 4)).contains("up to 4 KiB, less than a page"));
        assert!(untold(judged(Some(4), 64)).contains("up to 4 KiB, less than a page"));
        let figures = |change: Change| change.evidence[1].figure.clone();
        assert_eq!(figures(changed(judged(None, 16))), PROFILED);
        assert_eq!(figures(changed(judged(Some(16), 64))), REPORTED);
        assert!(untold(judged(Some(0), 64)).contains("drive reports no atomic writes"));
    }

    #[test]
    fn a_profile_s_promise_loosens_no_other_condition() {
        let with_profile = |mut bench: Bench| {
            bench.profile.device.promised_atomic_write_bytes = Some(64 << 10);
            untold(bench.judge(judge, "innodb_doublewrite"))
        };
        assert!(with_profile(Bench::new()).contains("cannot be examined"));
        assert!(with_profile(reporting(0, 0)).contains("file system reports no atomic writes"));
        let mut small_blocks = reporting(16, 64);
        small_blocks.atomic_writes.as_mut().unwrap().block = ByteSize::kib(4);
        assert!(with_profile(small_blocks).contains("in two places"));
        let mut cached = reporting(16, 64);
        cached.set("innodb_flush_method", "fsync");
        assert!(with_profile(cached).contains("page cache"));
    }

    #[test]
    fn through_the_page_cache_no_promise_counts() {
        let mut bench = reporting(16, 64);
        bench.set("innodb_flush_method", "fsync");
        assert!(untold(bench.judge(judge, "innodb_doublewrite")).contains("innodb_flush_method = fsync"));
        let buffering = |value: &str| {
            let mut bench = reporting(16, 64);
            let like = bench.variables.get("innodb_doublewrite").unwrap().clone();
            bench.variables.0.insert(DATA_BUFFERING.to_owned(), Variable { value: value.to_owned(), ..like });
            bench.judge(judge, "innodb_doublewrite")
        };
        assert!(untold(buffering("ON")).contains("innodb_data_file_buffering = ON"));
        assert_eq!(changed(buffering("OFF")).value, "OFF");
    }

    #[test]
    fn that_it_is_off_is_judged_by_the_same_reports() {
        let mut bench = reporting(16, 16);
        bench.set("innodb_doublewrite", "OFF");
        assert!(fits(bench.judge(judge, "innodb_doublewrite")).starts_with("it is off, and the drive promises"));
        bench.atomic_writes = None;
        assert!(untold(bench.judge(judge, "innodb_doublewrite")).starts_with("it is off: a page torn"));
    }
}
