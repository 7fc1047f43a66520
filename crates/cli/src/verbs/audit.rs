//! `flashwise audit`.

use std::process::ExitCode;

use flashwise_audit::{Finding, Rule, audit, unjudged};
use flashwise_report::render_findings;
use flashwise_trace::TraceReader;
use serde::Serialize;

use super::read_profile;
use super::trace::{decision, tell};
use crate::arguments::AuditArguments;
use crate::failure::{Failure, VIOLATIONS};
use crate::output::Output;

/// What `-o json` gives.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    trace: String,
    target: &'a str,
    findings: &'a [Finding],
    /// The rules that the profile does not allow to be judged.
    unjudged: Vec<Unjudged>,
}

#[derive(Serialize)]
struct Unjudged {
    rule: Rule,
    reason: String,
}

/// Holds a trace against a profile.
pub fn run(options: &AuditArguments, output: &Output) -> Result<ExitCode, Failure> {
    let profile = read_profile(&options.profile)?;
    let reader = TraceReader::open(&options.trace, &options.reading.into())?;
    let decision = decision(&reader, options.reading.trace_format);
    let trace = reader.into_trace()?;
    tell(decision);
    let findings = audit(&trace, &profile);
    let document = Document {
        schema: "flashwise.findings",
        schema_version: 1,
        trace: options.trace.display().to_string(),
        target: &profile.device.target,
        findings: &findings,
        unjudged: unjudged(&profile).into_iter().map(|(rule, reason)| Unjudged { rule, reason }).collect(),
    };
    output.print(&document, |style| render_findings(&findings, &profile, style))?;
    let violated = findings.iter().any(|finding| finding.violations > 0);
    Ok(if violated { ExitCode::from(VIOLATIONS) } else { ExitCode::SUCCESS })
}
