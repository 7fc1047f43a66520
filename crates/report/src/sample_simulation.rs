//! Reads, writes and arrivals on a full drive of 96 MiB; a document that `flashwise simulate -o json` gave once.

use flashwise_ssd::simulation::Simulation;

pub(crate) fn simulation() -> Simulation {
    serde_json::from_str(include_str!("sample-simulation.json")).unwrap()
}
