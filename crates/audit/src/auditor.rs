//! Checks a trace against all rules at once, request by request.
//!
//! Kept in memory: the state of each rule, within its own bound, and the trace's first requests up to the window size,
//! which are simulated at the end. So memory does not grow with the trace.

use std::collections::BTreeMap;

use flashwise_block::ByteSize;
use flashwise_profile::DeviceProfile;
use flashwise_trace::{TraceError, TraceReader, TraceRecord};

use crate::Rule;
use crate::cost::{self, Broken};
use crate::finding::{Audit, Finding, Judgement, UncheckedRule};
use crate::picture;
use crate::request::{Facts, FileKind, InFlight, ObservedRequest};
use crate::rules::{Check, REGISTRY};
use crate::system::{DatabaseSystem, Shown, SqliteSettings};
use crate::tally::Tally;

/// Files whose kind is remembered.
const FILES_MAX: usize = 1 << 16;

/// How an audit is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// Requests from the start of the trace that are simulated to tell costs, and that the picture shows; with 0
    /// neither is made.
    pub window_requests: usize,
    /// Whether the trace was taken above the page cache, as strace does: then it says nothing of queues and trims.
    pub is_above_page_cache: bool,
    /// The database system, if known; otherwise it is recognised by the requests, where they show it.
    pub system: Option<DatabaseSystem>,
    /// Of SQLite: what is set already, as far as it is known.
    pub sqlite: SqliteSettings,
}

impl AuditOptions {
    /// What a simulation takes about a second for.
    pub const WINDOW: usize = 20_000;
}

impl Default for AuditOptions {
    /// A window of [`AuditOptions::WINDOW`] requests, of a drive.
    fn default() -> Self {
        let (system, sqlite) = (None, SqliteSettings::default());
        Self { window_requests: Self::WINDOW, is_above_page_cache: false, system, sqlite }
    }
}

/// One rule at work.
struct Judge {
    rule: Rule,
    check: Box<dyn Check>,
    tally: Tally,
}

/// Holds a trace against the rules that a profile allows to be judged.
///
/// ```
/// use flashwise_audit::{AuditOptions, Auditor, Rule};
/// # let text = include_str!("../tests/samsung.toml");
/// use flashwise_block::{ByteSize, Nanos, Operation};
/// use flashwise_profile::DeviceProfile;
/// use flashwise_trace::TraceRecord;
///
/// let profile = DeviceProfile::from_toml(text, "samsung.toml")?;
/// let mut auditor = Auditor::new(&profile, &AuditOptions::default());
/// for n in 0..100 {
///     auditor.observe(&TraceRecord::new(Nanos(n), Operation::Write, ByteSize(4096 * n), ByteSize(4096)), &[]);
/// }
/// let audit = auditor.finish(&[]);
/// let short = audit.findings.iter().find(|f| f.rule == Rule::WriteWholeUnits).unwrap();
/// assert_eq!((short.violations, short.requests), (100, 100));
/// # Ok::<(), flashwise_profile::ProfileError>(())
/// ```
pub struct Auditor<'a> {
    profile: &'a DeviceProfile,
    options: AuditOptions,
    judges: Vec<Judge>,
    unjudged: Vec<UncheckedRule>,
    facts: Facts,
    in_flight: InFlight,
    kinds: Vec<(FileKind, Option<DatabaseSystem>)>,
    starts: BTreeMap<u32, u64>,
    window: Vec<ObservedRequest>,
}

impl<'a> Auditor<'a> {
    /// Makes the rules ready for a drive.
    pub fn new(profile: &'a DeviceProfile, options: &AuditOptions) -> Self {
        let options = AuditOptions { window_requests: options.window_requests.min(u32::MAX as usize), ..*options };
        let (mut judges, mut unjudged) = (Vec::new(), Vec::new());
        for &(rule, prepare) in &REGISTRY {
            match prepare(profile) {
                Ok(check) => judges.push(Judge { rule, check, tally: Tally::new(options.window_requests) }),
                Err(reason) => unjudged.push(UncheckedRule { rule, reason }),
            }
        }
        let shown = Shown { sqlite: options.sqlite, ..Shown::default() };
        let facts = Facts { is_above_page_cache: options.is_above_page_cache, shown, ..Facts::default() };
        let (in_flight, kinds, window) = (InFlight::default(), Vec::new(), Vec::new());
        let starts = BTreeMap::new();
        Self { profile, options, judges, unjudged, facts, in_flight, kinds, starts, window }
    }

    /// Sets the drive address of a file's first byte, modulo the drive's flash page; to be called before its requests
    /// are observed.
    pub fn place(&mut self, file: u32, start: ByteSize) {
        if self.starts.len() < FILES_MAX {
            self.starts.insert(file, start.0);
        }
    }

    /// Checks the next request, in the order of submission; `files` are the names that the trace has listed so far.
    pub fn observe(&mut self, record: &TraceRecord, files: &[String]) {
        let known = files.len().min(FILES_MAX);
        while self.kinds.len() < known {
            let name = &files[self.kinds.len()];
            self.kinds.push((FileKind::of(name), DatabaseSystem::of_file(name)));
        }
        let (kind, system) = record.file.and_then(|file| self.kinds.get(file as usize)).copied().unwrap_or_default();
        let in_flight = self.in_flight.submit(record);
        let file_start = record.file.and_then(|file| self.starts.get(&file)).copied();
        let seen = ObservedRequest { number: self.facts.requests, record: *record, kind, in_flight, file_start };
        self.facts.note(&seen, self.options.system.or(system));
        for judge in &mut self.judges {
            judge.check.observe(&seen, &mut judge.tally);
        }
        if self.window.len() < self.options.window_requests {
            self.window.push(seen);
        }
    }

    /// Judges, and simulates what the violations cost.
    pub fn finish(mut self, files: &[String]) -> Audit {
        self.leave_out_hidden();
        for judge in &mut self.judges {
            judge.check.finish(&mut judge.tally);
        }
        let broken: Vec<Broken<'_>> = self
            .judges
            .iter()
            .filter(|judge| judge.tally.violations > 0)
            .map(|judge| Broken {
                rule: judge.rule,
                check: judge.check.as_ref(),
                requests: judge.tally.broken_in_window(self.window.len()),
            })
            .collect();
        let costs =
            cost::simulate(&self.window, &broken, self.profile, self.facts.requests, self.facts.is_above_page_cache);
        let (costs, simulated, not_simulated) = match costs {
            Ok((costs, simulated)) => (costs, Some(simulated), None),
            Err(reason) => (BTreeMap::new(), None, Some(reason)),
        };
        let shown = self.facts.shown;
        let cost = |judge: &Judge| costs.get(&judge.rule).copied().unwrap_or_default();
        let finding = |judge: &Judge| Finding {
            rule: judge.rule,
            judgement: Judgement::of(
                judge.tally.violations,
                judge.check.can_change(&shown),
                &cost(judge),
                simulated.as_ref(),
            ),
            statement: judge.check.statement(),
            violations: judge.tally.violations,
            requests: judge.tally.requests,
            bytes: judge.tally.bytes,
            examples: judge.tally.examples(files),
            places: judge.tally.places(files),
            processes: judge.tally.processes(),
            cost: cost(judge),
            remedy: judge.check.remedy(&shown),
        };
        let mut findings: Vec<Finding> = self.judges.iter().map(finding).collect();
        findings.sort_by_key(order);
        let by_cost: Vec<Rule> = findings.iter().map(|finding| finding.rule).collect();
        let picture = picture::draw(&self.window, &broken, &by_cost, files);
        self.unjudged.sort_by_key(|unjudged| unjudged.rule);
        Audit { findings, unjudged: self.unjudged, simulated, not_simulated, picture, partitions: None }
    }

    /// Moves the rules that the trace does not allow to be judged to the others.
    fn leave_out_hidden(&mut self) {
        let facts = self.facts;
        let (judges, unjudged) = (&mut self.judges, &mut self.unjudged);
        judges.retain(|judge| match judge.check.hidden(&facts) {
            Some(reason) => {
                unjudged.push(UncheckedRule { rule: judge.rule, reason });
                false
            }
            None => true,
        });
    }
}

/// Violations first, then what nothing can change, what is better left, then rules that nothing breaks; each by time
/// and flash bytes lost, most first, then by number.
fn order(finding: &Finding) -> impl Ord + use<> {
    let lost = |cost: Option<i64>| std::cmp::Reverse(cost.unwrap_or(0));
    (finding.judgement, lost(finding.cost.time_ns), lost(finding.cost.flash_bytes), finding.rule)
}

/// Audits what a reader gives, to its end: all of it, or with `files` those requests that are of one of these or of
/// none. To each belongs where its first byte is on the drive, modulo the drive's flash page, where that is known.
///
/// # Errors
/// At a line that is bad.
pub fn audit_trace(
    reader: &mut TraceReader,
    profile: &DeviceProfile,
    options: &AuditOptions,
    files: Option<&BTreeMap<u32, Option<ByteSize>>>,
) -> Result<Audit, TraceError> {
    let mut auditor = Auditor::new(profile, options);
    for (&file, start) in files.into_iter().flatten() {
        start.iter().for_each(|&start| auditor.place(file, start));
    }
    let is_kept = |file: Option<u32>| files.zip(file).is_none_or(|(files, file)| files.contains_key(&file));
    reader.find_start();
    while let Some(record) = reader.next_record()? {
        if is_kept(record.file) {
            let at = reader.since_start(record.at)?;
            auditor.observe(&TraceRecord { at, ..record }, reader.files());
        }
    }
    Ok(auditor.finish(reader.files()))
}
