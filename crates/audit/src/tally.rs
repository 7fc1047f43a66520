//! The counts of one rule: how often, where, by which process, and the first three examples.

use std::collections::BTreeMap;

use crate::finding::{Example, PlaceShare, ProcessShare};
use crate::request::{Key, ObservedRequest};

/// Places and processes with a counter of their own; later ones are counted as elsewhere.
const COUNTED: usize = 4096;
/// Places and processes that are reported.
const TOLD: usize = 5;
/// Examples that are reported.
const EXAMPLES: usize = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    violations: u64,
    bytes: u64,
}

impl Share {
    fn add(&mut self, bytes: u64) {
        self.violations += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Counts of one rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) violations: u64,
    pub(crate) bytes: u64,
    examples: Vec<ObservedRequest>,
    places: BTreeMap<Key, Share>,
    processes: BTreeMap<u32, Share>,
    /// Numbers of the window's requests that violate the rule; in order, except for rules that decide later.
    pub(crate) broken: Vec<u32>,
    window: u64,
}

impl Tally {
    /// Counts; remembers which requests of a window break the rule.
    pub(crate) fn new(window: usize) -> Self {
        Self { window: window as u64, ..Self::default() }
    }

    /// The rule speaks about a request.
    pub(crate) fn speaks(&mut self) {
        self.requests += 1;
    }

    /// A request that the rule speaks about breaks it.
    pub(crate) fn breaks(&mut self, seen: &ObservedRequest) {
        let bytes = seen.record.length.0;
        self.violations += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.examples.len() < EXAMPLES {
            self.examples.push(*seen);
        }
        let mut key = seen.place();
        if self.places.len() >= COUNTED && !self.places.contains_key(&key) {
            key = Key::Elsewhere;
        }
        self.places.entry(key).or_default().add(bytes);
        if let Some(process) = seen.record.process
            && (self.processes.len() < COUNTED || self.processes.contains_key(&process))
        {
            self.processes.entry(process).or_default().add(bytes);
        }
        if seen.number < self.window {
            self.broken.push(seen.number as u32);
        }
    }

    /// The requests of the window that break the rule, one by one.
    pub(crate) fn broken_in_window(&self, requests: usize) -> Vec<bool> {
        let mut broken = vec![false; requests];
        for &number in &self.broken {
            if let Some(is_broken) = broken.get_mut(number as usize) {
                *is_broken = true;
            }
        }
        broken
    }

    pub(crate) fn examples(&self, files: &[String]) -> Vec<Example> {
        let mut examples = self.examples.clone();
        examples.sort_by_key(|seen| seen.number);
        let told = |seen: &ObservedRequest| Example {
            operation: seen.record.operation,
            role: seen.record.role,
            file: seen.record.file.and_then(|file| files.get(file as usize).cloned()),
            offset_bytes: seen.record.offset.0,
            length_bytes: seen.record.length.0,
            request: seen.number + 1,
        };
        examples.iter().map(told).collect()
    }

    pub(crate) fn places(&self, files: &[String]) -> Vec<PlaceShare> {
        let told = |(key, share): (&Key, &Share)| PlaceShare {
            place: key.named(files),
            violations: share.violations,
            bytes: share.bytes,
        };
        let mut places: Vec<_> = self.places.iter().map(told).collect();
        places.sort_by_key(|share| std::cmp::Reverse(share.violations));
        places.truncate(TOLD);
        places
    }

    pub(crate) fn processes(&self) -> Vec<ProcessShare> {
        let told = |(&process, share): (&u32, &Share)| ProcessShare {
            process,
            violations: share.violations,
            bytes: share.bytes,
        };
        let mut processes: Vec<_> = self.processes.iter().map(told).collect();
        processes.sort_by_key(|share| std::cmp::Reverse(share.violations));
        processes.truncate(TOLD);
        processes
    }
}
