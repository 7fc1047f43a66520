//! A drive with round figures, and rulings taken apart, for the tests of rules.

use flashwise_block::{BlockError, Clock, Operation, Progress};
use flashwise_profile::{
    DeviceIdentity, DeviceProfile, Figure, Parameters, Recipe, SCHEMA, SCHEMA_VERSION, ThroughputCurve, ThroughputPoint,
};

use super::{Change, Ruling};

/// A listener for what ends before a drive is learned.
pub(crate) struct LearnsNothing;

impl Progress for LearnsNothing {
    fn advance(&mut self, stage: &str, _: f64) -> Result<(), BlockError> {
        panic!("it has begun with {stage}")
    }
}

pub(crate) fn profile() -> DeviceProfile {
    let curve = |operation, request_bytes, points: &[(u32, f64)]| ThroughputCurve {
        operation,
        request_bytes,
        points: points
            .iter()
            .map(|&(in_flight, iops)| ThroughputPoint { in_flight, iops, low: iops * 0.99, high: iops * 1.01 })
            .collect(),
    };
    let mut profile = DeviceProfile {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        flashwise_version: String::new(),
        device: DeviceIdentity {
            target: "sim:x".to_owned(),
            name: "x".to_owned(),
            capacity_bytes: 1 << 40,
            logical_block_bytes: 512,
            clock: Clock::Virtual,
            promised_atomic_write_bytes: None,
        },
        recipe: Recipe {
            seed: 1,
            region_bytes: 1,
            bytes_written: 1,
            bytes_read: 1,
            device_time_ns: 1,
            probes: Vec::new(),
        },
        parameters: Parameters {
            write_unit_bytes: Figure::certain(32768, 32768, 32768),
            stripe_bytes: Figure::certain(65536, 65536, 65536),
            read_concurrency_8k: Figure::certain(16, 15, 18),
            write_concurrency_8k: Figure::certain(2, 2, 3),
            flush_ns: Figure::certain(740_000, 700_000, 780_000),
            compression_gain: Figure::absent(),
            ..Parameters::default()
        },
        limits: Default::default(),
        card: Default::default(),
        wear: Default::default(),
        at_sizes: Vec::new(),
        evidence: Vec::new(),
        curves: Default::default(),
    };
    profile.curves.throughput = vec![
        curve(Operation::Read, 8192, &[(1, 12_000.0), (16, 128_000.0), (32, 140_000.0)]),
        curve(Operation::Write, 8192, &[(1, 60_000.0), (2, 80_000.0)]),
        curve(Operation::Read, 131_072, &[(1, 4_500.0), (16, 20_000.0), (32, 22_000.0)]),
    ];
    profile
}

pub(crate) fn changed(ruling: Result<Ruling, String>) -> Change {
    match ruling {
        Ok(Ruling::Change(change)) => change,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn fits(ruling: Result<Ruling, String>) -> String {
    match ruling {
        Ok(Ruling::Fits(why)) => why,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn untold(ruling: Result<Ruling, String>) -> String {
    match ruling {
        Err(why) => why,
        other => panic!("{other:?}"),
    }
}
