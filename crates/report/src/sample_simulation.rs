//! Reads, writes and arrivals on a full drive of 96 MiB; a document that `flashwise simulate -o json` gave once.

use flashwise_sim::Simulation;
use flashwise_sim::life::{Life, LifeFactors, Projection};

pub(crate) fn simulation() -> Simulation {
    serde_json::from_str(include_str!("sample-simulation.json")).unwrap()
}

/// The same on flash that wears out.
pub(crate) fn simulation_with_life() -> Simulation {
    let factors = LifeFactors {
        capacity_bytes: 96 << 20,
        pe_cycles: 3_000.0,
        over_provisioning: 1.25,
        wear_levelling: 0.9,
        endurance_spread: 0.8,
        spare_superblocks: 1.1,
        deduplication: 1.0,
        compression: 1.0,
        absorption: 1.02,
        padding: 0.99,
        garbage_collection: 0.5,
        wear_levelling_moves: 1.0,
        retirement: 1.0,
        mapping: 1.0,
        folding: 1.0,
        slc_mode: 1.0,
        unfilled_blocks: 1.0,
    };
    let host_bytes = factors.product();
    let projection = Projection {
        host_bytes,
        warranty_years: 5.0,
        drive_writes_per_day: host_bytes / factors.capacity_bytes as f64 / 1_825.0,
        years: 0.25,
        steady_host_bytes: 48 << 20,
        steady_write_amplification: 1.98,
        factors,
    };
    let life = Life {
        pe_cycles_limit: Some(3_000),
        used_share_max: Some(0.02),
        used_share_mean: Some(0.015),
        end_of_life: None,
        projection: Some(projection),
        not_projected: None,
    };
    Simulation { life: Some(life), ..simulation() }
}
