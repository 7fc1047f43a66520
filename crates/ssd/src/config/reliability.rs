//! Wear, bit errors and retention: keys of `[flash.reliability]`; without the table flash neither errs nor wears out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::Checker;
use crate::error::SsdError;

/// How flash errs and wears out.
///
/// The raw bit error rate of a block after *c* P/E cycles whose data is *t* hours old is
///
/// ```text
///   RBER(c, t) = base + wear · c^wear_exponent + retention · c^retention_wear_exponent · t^retention_time_exponent
/// ```
///
/// Source: Kim, Choi and Min, "Design Tradeoffs for SSD Reliability", FAST 2019, section 3, without its term for read
/// disturbance. The default coefficients are those that simulators built on it use for its 72-layer TLC; the paper's
/// table was not at hand. That wear-out follows a power of the cycles and not an exponential: Mielke et al., "Bit Error
/// Rate in NAND Flash Memories", IRPS 2008; Schroeder et al., "Flash Reliability in Production", FAST 2016.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReliabilityConfig {
    /// Raw bit error rate of new flash; default 1.48·10⁻³.
    pub rber_base: f64,
    /// Factor of the term of wear; default 3.90·10⁻¹⁰.
    pub rber_wear: f64,
    /// Exponent of the cycles in it; default 2.05.
    pub rber_wear_exponent: f64,
    /// Factor of the term of retention, time in hours; default 6.28·10⁻⁵.
    pub rber_retention: f64,
    /// Exponent of the cycles in it; default 0.14.
    pub rber_retention_wear_exponent: f64,
    /// Exponent of the time in it; default 0.54.
    pub rber_retention_time_exponent: f64,
    /// P/E cycles of each block when the drive is new; default 0.
    pub initial_pe_cycles: u32,
    /// Hours added to the simulated age of all data, for a drive that was stored unused; default 0.
    pub retention_hours: f64,
    /// Bytes of data that one codeword of error correction protects; default 1024, usual for BCH codes.
    pub codeword_bytes: u32,
    /// Wrong bits of a codeword that can be corrected; default 72, usual for BCH codes over 1 KiB.
    pub correctable_bits: u32,
    /// Maximum number of read retries of an uncorrectable page, with other thresholds; default 5 \[fit\].
    pub read_retries_max: u32,
    /// Time of one read retry, ns; by default the flash's `read_ns`.
    pub read_retry_ns: Option<u64>,
    /// Factor on the raw bit error rate for each read retry; default 0.5 \[fit\].
    pub read_retry_rber_factor: f64,
    /// From the last byte of a read to its corrected data, ns; default 0.
    pub ecc_decode_ns: u64,
    /// Probability that a program fails at `failure_pe_cycles` P/E cycles; default 0.
    pub program_failure_probability: f64,
    /// Probability that an erase fails at `failure_pe_cycles` P/E cycles; default 0.
    pub erase_failure_probability: f64,
    /// P/E cycles at which the two failure probabilities hold; default 3,000, usual for TLC.
    pub failure_pe_cycles: u32,
    /// Failure probabilities grow with this power of the P/E cycles; default 2 \[fit\].
    pub failure_exponent: f64,
    /// P/E cycles after which each further erase fails; by default there is no limit.
    pub pe_cycles_limit: Option<u32>,
}

impl Default for ReliabilityConfig {
    fn default() -> Self {
        Self {
            rber_base: 1.48e-3,
            rber_wear: 3.90e-10,
            rber_wear_exponent: 2.05,
            rber_retention: 6.28e-5,
            rber_retention_wear_exponent: 0.14,
            rber_retention_time_exponent: 0.54,
            initial_pe_cycles: 0,
            retention_hours: 0.0,
            codeword_bytes: 1024,
            correctable_bits: 72,
            read_retries_max: 5,
            read_retry_ns: None,
            read_retry_rber_factor: 0.5,
            ecc_decode_ns: 0,
            program_failure_probability: 0.0,
            erase_failure_probability: 0.0,
            failure_pe_cycles: 3_000,
            failure_exponent: 2.0,
            pe_cycles_limit: None,
        }
    }
}

impl ReliabilityConfig {
    pub(super) fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        for (key, share) in [
            ("flash.reliability.rber_base", self.rber_base),
            ("flash.reliability.rber_wear", self.rber_wear),
            ("flash.reliability.rber_retention", self.rber_retention),
            ("flash.reliability.read_retry_rber_factor", self.read_retry_rber_factor),
            ("flash.reliability.program_failure_probability", self.program_failure_probability),
            ("flash.reliability.erase_failure_probability", self.erase_failure_probability),
        ] {
            checker.share(key, share, 0.0, 1.0)?;
        }
        for (key, exponent) in [
            ("flash.reliability.rber_wear_exponent", self.rber_wear_exponent),
            ("flash.reliability.rber_retention_wear_exponent", self.rber_retention_wear_exponent),
            ("flash.reliability.rber_retention_time_exponent", self.rber_retention_time_exponent),
            ("flash.reliability.failure_exponent", self.failure_exponent),
        ] {
            checker.require(key, exponent, (0.0..=20.0).contains(&exponent), "must be between 0 and 20")?;
        }
        let hours = self.retention_hours;
        let possible = (0.0..=1e6).contains(&hours);
        checker.require("flash.reliability.retention_hours", hours, possible, "must be at most a million hours")?;
        let bytes = self.codeword_bytes;
        let possible = (64..=1 << 16).contains(&bytes);
        checker.require("flash.reliability.codeword_bytes", bytes, possible, "must be between 64 and 65536")?;
        let (bits, reason) = (self.correctable_bits, "must be below half of the codeword's bits");
        checker.require("flash.reliability.correctable_bits", bits, bits < bytes * 4, reason)?;
        let retries = self.read_retries_max;
        checker.require("flash.reliability.read_retries_max", retries, retries <= 100, "must be at most 100")?;
        checker.time("flash.reliability.read_retry_ns", self.read_retry_ns.unwrap_or(0))?;
        checker.time("flash.reliability.ecc_decode_ns", self.ecc_decode_ns)?;
        let reason = "must be between 1 and 10000000";
        checker.count("flash.reliability.failure_pe_cycles", self.failure_pe_cycles, 10_000_000, reason)?;
        let (limit, reason) = (self.pe_cycles_limit.unwrap_or(1), "must be at least 1");
        checker.require("flash.reliability.pe_cycles_limit", limit, limit > 0, reason)
    }
}
