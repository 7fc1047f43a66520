//! A drive with round figures, for the tests of the rules.

use flashwise_profile::{DeviceProfile, Figure, ThroughputCurve, ThroughputPoint};

use super::*;
use crate::servers::tests::profile;
pub(super) use crate::servers::tests::{changed, fits, untold};

/// A drive, and a server of version 10.11 with default settings.
pub(in super::super) struct Bench {
    pub(in super::super) profile: DeviceProfile,
    pub(in super::super) variables: Variables,
    pub(super) atomic_writes: Option<AtomicWrites>,
}

impl Bench {
    pub(in super::super) fn new() -> Self {
        let mut profile = profile();
        profile.parameters.page_bytes = Figure::certain(4096, 4096, 4096);
        profile.parameters.collection_cost = Figure::certain(2.5, 2.4, 2.6);
        let mut bench = Self { profile, variables: Variables::documented(), atomic_writes: None };
        bench.writes(50_000.0);
        bench
    }

    /// A drive with that many random writes of 16 KiB per second.
    pub(in super::super) fn writes(&mut self, iops: f64) {
        let point = ThroughputPoint { in_flight: 8, iops, low: iops * 0.99, high: iops * 1.01 };
        self.profile.curves.throughput =
            vec![ThroughputCurve { operation: Operation::Write, request_bytes: 16_384, points: vec![point] }];
    }

    pub(in super::super) fn facts(&self) -> Facts<'_> {
        Facts { profile: &self.profile, variables: &self.variables, atomic_writes: self.atomic_writes }
    }

    pub(super) fn judge(
        &self,
        judge: fn(&Facts<'_>, &Variable) -> Result<Ruling, String>,
        name: &str,
    ) -> Result<Ruling, String> {
        judge(&self.facts(), self.variables.get(name).unwrap())
    }

    pub(in super::super) fn set(&mut self, name: &str, value: &str) {
        self.variables.0.get_mut(name).unwrap().value = value.to_owned();
    }
}

#[test]
fn every_rule_judges_a_variable_that_is_known() {
    let variables = Variables::documented();
    assert!(RULES.iter().all(|rule| variables.get(rule.name).is_some()));
}
