//! What an audit says.

use flashwise_block::Operation;
use flashwise_trace::FileRole;
use serde::{Deserialize, Serialize};

/// One of the five rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// 1: write lengths are multiples of the write unit.
    WriteWholeUnits,
    /// 2: reads are chunk-sized and start at hot locations.
    ReadChunksAtHotLocations,
    /// 3: writes start on a stripe boundary.
    StartWritesOnStripes,
    /// 4: no chunk-sized write off the chunk's alignment: it wipes out hot locations.
    KeepHotLocations,
    /// 5: a write touches as few flash pages as its length allows.
    TouchFewPages,
}

/// What following a rule would save over the traced run. Times are estimates from the drive's own learned curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Time that the drive spent more than needed, ns; `None` where the curves do not tell.
    pub time_ns: Option<u64>,
    /// Flash bytes programmed more than needed; `None` for rules that are not about flash bytes.
    pub flash_bytes: Option<u64>,
    /// Stripes touched more than the lengths need; `None` for rules that are not about stripes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripes: Option<u64>,
}

/// One request that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What was asked.
    pub operation: Operation,
    /// Of which file.
    pub role: FileRole,
    /// Where.
    pub offset_bytes: u64,
    /// How much.
    pub length_bytes: u64,
}

/// What one rule says about one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// The rule in a sentence, with the drive's own figures in it.
    pub statement: String,
    /// Requests that break it.
    pub violations: u64,
    /// Requests that it applies to.
    pub requests: u64,
    /// The first request that breaks it.
    pub example: Option<Example>,
    /// What that costs.
    pub cost: Cost,
    /// What would help.
    pub remedy: String,
}

impl Rule {
    /// All rules in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::WriteWholeUnits,
        Self::ReadChunksAtHotLocations,
        Self::StartWritesOnStripes,
        Self::KeepHotLocations,
        Self::TouchFewPages,
    ];

    /// The rule's number in the paper.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }
}
