//! Limiters that have nothing in common with the simulated volumes: each rule keeps the time at which its next request
//! would be due (the virtual scheduling of ITU-T I.371), and a leaky bucket lets requests out one after the other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_block::{
    BlockDevice, BlockError, ByteSize, Clock, Completion, DeviceCounters, DeviceInfo, Nanos, Operation, Request,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A rule: what it charges, a second's worth of it, and how much may be ahead of it.
#[derive(Clone)]
pub struct Rule {
    pub cost: fn(&Request) -> f64,
    pub rate: f64,
    pub size: f64,
    /// When the next request is due, s.
    due: f64,
}

impl Rule {
    pub fn new(cost: fn(&Request) -> f64, rate: f64, size: f64) -> Self {
        Self { cost, rate, size, due: 0.0 }
    }

    /// When a request may leave that comes at a time.
    fn leave_at(&self, now: f64, cost: f64) -> f64 {
        let ahead = (self.size - cost).max(0.0) / self.rate;
        if cost > 0.0 { now.max(self.due - ahead) } else { now }
    }

    fn charge(&mut self, at: f64, cost: f64) {
        if cost > 0.0 {
            self.due = self.due.max(at) + cost / self.rate;
        }
    }
}

pub fn any(_: &Request) -> f64 {
    1.0
}

pub fn bytes(request: &Request) -> f64 {
    request.length.bytes() as f64
}

pub fn read(request: &Request) -> f64 {
    f64::from(u8::from(request.operation == Operation::Read))
}

pub fn write(request: &Request) -> f64 {
    f64::from(u8::from(request.operation == Operation::Write))
}

/// What stands behind the rules: a latency without any limit, or servers that requests wait for.
#[derive(Clone)]
pub struct Behind {
    pub latency_ns: f64,
    /// Free at these times, s; none where any number is served at once.
    pub servers: Vec<f64>,
}

pub struct Limiter {
    info: DeviceInfo,
    now: f64,
    rules: Vec<Rule>,
    /// For how long a request that is not due is put aside; otherwise it waits for its turn.
    hold: Option<f64>,
    behind: Behind,
    random: Pcg64Mcg,
    /// Ends and second tries by time, ns, and by number.
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    number: u64,
    requests: Vec<Option<(Request, f64)>>,
    free: Vec<usize>,
    outstanding: usize,
}

/// A second try among the events; otherwise an end.
const AGAIN: usize = 1 << 40;

impl Limiter {
    pub fn new(rules: Vec<Rule>, hold: Option<f64>, behind: Behind) -> Self {
        let info = DeviceInfo {
            name: "a limiter".to_owned(),
            capacity: ByteSize::gib(100),
            logical_block: ByteSize(512),
            max_transfer: ByteSize::mib(1),
            queue_depth: 1024,
            clock: Clock::Virtual,
            atomic_write: None,
        };
        let random = Pcg64Mcg::seed_from_u64(7);
        Self {
            info,
            now: 0.0,
            rules,
            hold,
            behind,
            random,
            events: BinaryHeap::new(),
            number: 0,
            requests: Vec::new(),
            free: Vec::new(),
            outstanding: 0,
        }
    }

    fn at(&mut self, time: f64, what: usize) {
        self.number += 1;
        self.events.push(Reverse(((time * 1e9).round() as u64, self.number, what)));
    }

    fn attempt(&mut self, slot: usize) {
        let Some((request, _)) = &self.requests[slot] else { return };
        let costs: Vec<f64> = self.rules.iter().map(|rule| (rule.cost)(request)).collect();
        let mut at = self.now;
        for (rule, &cost) in self.rules.iter().zip(&costs) {
            at = rule.leave_at(at, cost);
        }
        if let Some(hold) = self.hold.filter(|_| at > self.now + 1e-12) {
            return self.at(self.now + hold, slot | AGAIN);
        }
        for (rule, &cost) in self.rules.iter_mut().zip(&costs) {
            rule.charge(at, cost);
        }
        let service = self.behind.latency_ns * 1e-9 * self.random.random_range(0.9..1.1);
        let first = self.behind.servers.iter_mut().min_by(|a, b| a.total_cmp(b));
        let end = match first {
            Some(server) => {
                *server = server.max(at) + service;
                *server
            }
            None => at + service,
        };
        self.at(end, slot);
    }
}

impl BlockDevice for Limiter {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn now(&self) -> Nanos {
        Nanos((self.now * 1e9).round() as u64)
    }

    fn submit(&mut self, request: Request) -> Result<(), BlockError> {
        self.info.check(&request)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.outstanding += 1;
        self.requests[slot] = Some((request, self.now));
        self.attempt(slot);
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<Completion>, BlockError> {
        while let Some(Reverse((at, _, what))) = self.events.pop() {
            self.now = self.now.max(at as f64 / 1e9);
            if what & AGAIN != 0 {
                self.attempt(what & !AGAIN);
                continue;
            }
            let (request, submitted) = self.requests[what].take().expect("an end of a request");
            self.free.push(what);
            self.outstanding -= 1;
            let submitted_at = Nanos((submitted * 1e9).round() as u64);
            return Ok(Some(Completion {
                tag: request.tag,
                operation: request.operation,
                submitted_at,
                started_at: submitted_at,
                completed_at: self.now(),
                result: Ok(()),
                buffer: request.buffer,
            }));
        }
        Ok(None)
    }

    fn outstanding(&self) -> usize {
        self.outstanding
    }

    fn pause(&mut self, duration: Nanos) -> Result<(), BlockError> {
        self.now += duration.as_secs_f64();
        Ok(())
    }

    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}
