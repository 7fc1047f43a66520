//! One adapter a database: find what can be set, propose, apply, and measure before and after.
//!
//! ```text
//!   Target ──▶ learn ──▶ DeviceProfile ─┐
//!   workload ──▶ run (before) ──▶ trace ─┼─▶ audit ──▶ Findings ──▶ techniques ──▶ run (after) ──▶ Comparison
//! ```

mod comparison;

pub use comparison::{
    Applied, COMPARISON_SCHEMA, COMPARISON_SCHEMA_VERSION, Comparison, Gain, Rate, RunMeasurement, WorkloadDescription,
};
