//! The result of `audit`.

use flashwise_audit::Audit;
use serde::Serialize;

/// One audit of one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditDocument {
    /// `flashwise.findings`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Version of flashwise that made it.
    pub flashwise_version: &'static str,
    /// The trace, or the command that was traced.
    pub trace: String,
    /// Remarks on the trace, a sentence each.
    pub remarks: Vec<String>,
    /// The target that the profile is of.
    pub target: String,
    /// The drive's name.
    pub device: String,
    /// The findings.
    #[serde(flatten)]
    pub audit: Audit,
}

impl AuditDocument {
    /// Of a trace and a drive by their names.
    pub fn new(trace: String, remarks: Vec<String>, profile: &flashwise_profile::DeviceProfile, audit: Audit) -> Self {
        Self {
            schema: "flashwise.findings",
            schema_version: 1,
            flashwise_version: env!("CARGO_PKG_VERSION"),
            trace,
            remarks,
            target: profile.device.target.clone(),
            device: profile.device.name.clone(),
            audit,
        }
    }
}
