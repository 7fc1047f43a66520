//! The counters of a drive and what follows from them, as a document.

use flashwise_block::nvme::Counters;
use flashwise_learn::wear::Counted;
use flashwise_profile::{Entry, Evidence, Figure, Wear};
use serde::Serialize;

/// The document of `flashwise device counters`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountersDocument {
    /// `flashwise.counters`.
    pub schema: &'static str,
    /// 1.
    pub schema_version: u32,
    /// Where they were read.
    pub source: String,
    /// The counters; names as in nvme-cli.
    pub counters: Counters,
    /// What follows.
    pub wear: Wear,
    /// Whether the limit that demand exceeded is the instance's.
    pub limit_of_instance: Figure<bool>,
    /// How each figure came about.
    pub evidence: Vec<Evidence>,
}

impl CountersDocument {
    /// Of counters and their figures.
    pub fn new(source: String, counters: Counters, counted: Counted) -> Self {
        let Counted { wear, limit_of_instance, evidence } = counted;
        Self { schema: "flashwise.counters", schema_version: 1, source, counters, wear, limit_of_instance, evidence }
    }

    /// How a figure came about, if it was computed or tried.
    pub fn evidence_of(&self, key: &str) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.figure == key)
    }

    /// The figures of the drive that were computed or tried.
    pub fn figures(&self) -> Vec<Entry> {
        let mut entries = self.wear.entries();
        entries.retain(|entry| self.evidence_of(entry.key).is_some());
        entries
    }
}
