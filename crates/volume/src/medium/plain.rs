//! A latency without a mechanism behind it: what is known of media inside a cloud.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_block::{Operation, Request};
use flashwise_ssd::SsdError;
use flashwise_ssd::config::Checker;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use super::bytes::Bytes;
use super::completions::Completions;

/// A medium of a latency and a number of requests at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainConfig {
    /// Latency of a read, its bytes apart, ns.
    pub read_ns: u64,
    /// Latency of a write, its bytes apart, ns.
    pub write_ns: u64,
    /// Latency of a flush, ns.
    #[serde(default)]
    pub flush_ns: u64,
    /// Bytes a second of one read; 0 for no limit.
    #[serde(default)]
    pub read_bytes_per_s: u64,
    /// Bytes a second of one write; 0 for no limit.
    #[serde(default)]
    pub write_bytes_per_s: u64,
    /// Requests that are served at once; 0 for any number.
    #[serde(default)]
    pub parallel: u32,
}

impl PlainConfig {
    pub(crate) fn check(&self, checker: &Checker<'_>) -> Result<(), SsdError> {
        checker.time("medium.plain.read_ns", self.read_ns)?;
        checker.time("medium.plain.write_ns", self.write_ns)?;
        checker.time("medium.plain.flush_ns", self.flush_ns)?;
        for (key, rate) in [
            ("medium.plain.read_bytes_per_s", self.read_bytes_per_s),
            ("medium.plain.write_bytes_per_s", self.write_bytes_per_s),
        ] {
            let possible = rate == 0 || (1_000_000..=1_000_000_000_000).contains(&rate);
            checker.require(key, rate, possible, "must be 0 (no limit) or between 1 MB/s and 1 TB/s")?;
        }
        let possible = self.parallel <= 1 << 20;
        checker.require("medium.plain.parallel", self.parallel, possible, "must be at most 2^20")
    }

    fn service_ns(&self, request: &Request) -> u64 {
        let transfer = |bytes_per_s: u64| match bytes_per_s {
            0 => 0,
            rate => (u128::from(request.length.0) * 1_000_000_000 / u128::from(rate)) as u64,
        };
        match request.operation {
            Operation::Read => self.read_ns + transfer(self.read_bytes_per_s),
            Operation::Write => self.write_ns + transfer(self.write_bytes_per_s),
            Operation::WriteZeroes | Operation::Trim => self.write_ns,
            Operation::Flush => self.flush_ns,
        }
    }
}

/// The medium, with its bytes.
pub(crate) struct Plain {
    config: PlainConfig,
    /// When each of the places for concurrent requests is free.
    places: BinaryHeap<Reverse<u64>>,
    ends: Completions,
    pub(super) bytes: Bytes,
}

impl Plain {
    pub(crate) fn new(config: PlainConfig) -> Self {
        let places = (0..config.parallel).map(|_| Reverse(0)).collect();
        Self { config, places, ends: Completions::default(), bytes: Bytes::default() }
    }

    pub(crate) fn submit(&mut self, mut request: Request, now_ns: u64) {
        self.bytes.serve(&mut request);
        let service_ns = self.config.service_ns(&request);
        let starts_ns = self.places.pop().map_or(now_ns, |Reverse(free_ns)| free_ns.max(now_ns));
        let end_ns = starts_ns + service_ns;
        if self.config.parallel > 0 {
            self.places.push(Reverse(end_ns));
        }
        self.ends.add(end_ns, request);
    }

    pub(crate) fn next_time(&self) -> Option<u64> {
        self.ends.next_time()
    }

    pub(crate) fn advance(&mut self, limit_ns: u64) -> Option<Done> {
        self.ends.take(limit_ns)
    }
}
