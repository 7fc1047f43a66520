//! A workload of one flow in fio's terms, and values in fio's spelling: `random_distribution` and `bssplit` (fio's
//! HOWTO, *I/O type* and *Block size*).

use flashwise_block::names::choices;
use flashwise_block::{ByteSize, Nanos};

use super::{Access, Arrivals, Flow, Pacing, Size, Synthetic, WeightedSize, Workload, Zone};

/// fio's `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Sequential reads and writes.
    Both,
    /// Random reads and writes.
    RandBoth,
}

impl Rw {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::RandRead, Self::RandWrite, Self::Both, Self::RandBoth];

    /// As fio writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
            Self::Both => "rw",
            Self::RandBoth => "randrw",
        }
    }

    /// In a few words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Read => "Sequential reads",
            Self::Write => "Sequential writes",
            Self::RandRead => "Random reads",
            Self::RandWrite => "Random writes",
            Self::Both => "Sequential reads and writes",
            Self::RandBoth => "Random reads and writes",
        }
    }

    const fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandBoth)
    }
}

impl std::str::FromStr for Rw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("unknown rw '{text}': {}", choices(text, Self::ALL.map(Self::name)));
        Self::ALL.into_iter().find(|rw| rw.name() == text).ok_or_else(unknown)
    }
}

/// A workload of one flow, as a job of fio describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// What is requested.
    pub rw: Rw,
    /// Bytes of a request.
    pub bs: ByteSize,
    /// Sizes of requests with their weights, instead of `bs`.
    pub bssplit: Option<Size>,
    /// Bytes from the start of the drive that are used; without a limit of time or requests, also the bytes to
    /// transfer.
    pub size: Option<ByteSize>,
    /// Requests in flight.
    pub iodepth: u32,
    /// Percentage of reads where both are requested.
    pub rwmixread: u8,
    /// Distribution of random requests.
    pub random_distribution: Option<Access>,
    /// Pause between a completion and the next request.
    pub thinktime: Nanos,
    /// Requests per second, whether or not the drive keeps up; `iodepth` is then ignored.
    pub rate_iops: Option<u32>,
    /// Times between requests at that rate.
    pub rate_process: Arrivals,
    /// Most requests.
    pub requests: Option<u64>,
    /// Most time on the drive's clock.
    pub runtime: Option<Nanos>,
}

impl FioJob {
    /// fio's defaults: requests of 4 KiB, one in flight, half of them reads where both are requested.
    pub const fn new(rw: Rw) -> Self {
        Self {
            rw,
            bs: ByteSize::kib(4),
            bssplit: None,
            size: None,
            iodepth: 1,
            rwmixread: 50,
            random_distribution: None,
            thinktime: Nanos(0),
            rate_iops: None,
            rate_process: Arrivals::Constant,
            requests: None,
            runtime: None,
        }
    }

    /// The workload on a drive of this capacity.
    ///
    /// # Errors
    /// When it has no end, or a distribution is given for sequential requests.
    pub fn workload(&self, capacity: ByteSize) -> Result<Workload, String> {
        let read_share = match self.rw {
            Rw::Read | Rw::RandRead => 1.0,
            Rw::Write | Rw::RandWrite => 0.0,
            Rw::Both | Rw::RandBoth => f64::from(self.rwmixread) / 100.0,
        };
        let access = match (&self.random_distribution, self.rw.is_random()) {
            (Some(distribution), true) => distribution.clone(),
            (Some(_), false) => return Err("--random-distribution is for randread, randwrite and randrw".to_owned()),
            (None, true) => Access::Random,
            (None, false) => Access::Sequential,
        };
        let size = self.bssplit.clone().unwrap_or(Size::fixed(self.bs.0));
        let mut synthetic = Synthetic::new(access, size, self.pacing());
        (synthetic.read_share, synthetic.region_bytes) = (read_share, self.size.map(|size| size.0));
        let name = self.rw.name();
        let mut flow = Flow { name: name.to_owned(), synthetic: Some(synthetic), ..Flow::default() };
        if self.runtime.is_none() && self.requests.is_none() {
            let size = self.size.unwrap_or(ByteSize(0));
            flow.requests = Some(size.0.checked_div(self.bs.0).unwrap_or(0));
            if size.0 == 0 || size > capacity {
                let what =
                    "the workload has no end: give --runtime (such as 1s), --requests, or --size within the drive";
                return Err(what.to_owned());
            }
        }
        let paced = match self.rate_iops {
            Some(rate) => format!("{rate} per second"),
            None => format!("{} in flight", self.iodepth),
        };
        let sizes = self.bssplit.as_ref().map_or_else(|| self.bs.to_string(), |_| "several sizes".to_owned());
        let name = format!("{name} of {sizes}, {paced}");
        Ok(Workload { name, seed: 1, content: None, flows: vec![flow] })
    }

    /// Open loop at a fixed rate, or closed loop with a number of requests in flight.
    fn pacing(&self) -> Pacing {
        let closed = Pacing::Closed { queue_depth: self.iodepth, think_ns: self.thinktime.0 };
        self.rate_iops.map_or(closed, |rate| Pacing::Open {
            interarrival_ns: (1_000_000_000 / u64::from(rate.max(1))).max(1),
            arrivals: self.rate_process,
        })
    }
}

impl Access {
    /// fio's `random_distribution`: `random`, `zipf:THETA`, `pareto:H`, `zoned:ACCESSES/SIZE:…` in percent.
    ///
    /// ```
    /// use flashwise_trace::workload::Access;
    /// assert_eq!(Access::of_fio("zipf:1.2"), Ok(Access::Zipf { theta: 1.2 }));
    /// ```
    ///
    /// # Errors
    /// When it is none of them, with what would be right.
    pub fn of_fio(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let number = || {
            let told = || format!("'{text}': a number must follow the colon, such as {name}:0.9");
            value.parse::<f64>().map_err(|_| told())
        };
        match name {
            "random" if value.is_empty() => Ok(Self::Random),
            "zipf" => Ok(Self::Zipf { theta: number()? }),
            "pareto" => Ok(Self::Pareto { h: number()? }),
            "zoned" => Ok(Self::HotCold { zones: zones(value)?, shuffled: false }),
            _ => Err(format!("'{text}': must be random, zipf:THETA, pareto:H or zoned:ACCESSES/SIZE:…")),
        }
    }
}

/// `60/10:40/90`: 60 % of the requests on the first 10 % of the region, 40 % on the rest.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    let zone = |part: &str| {
        let (traffic, size) = part.split_once('/')?;
        let share = |percent: &str| percent.parse::<f64>().ok().map(|percent| percent / 100.0);
        Some(Zone { size: share(size)?, traffic: share(traffic)? })
    };
    let told = |part| format!("zone '{part}': must be ACCESSES/SIZE in percent, such as 90/10");
    text.split(':').map(|part| zone(part).ok_or_else(|| told(part))).collect()
}

impl Size {
    /// fio's `bssplit`: `4k/60:64k/40`, sizes with their percentages; those without one share what is left.
    ///
    /// # Errors
    /// When it is none, with what would be right.
    pub fn of_fio(text: &str) -> Result<Self, String> {
        let told = |part: &str| format!("'{part}': must be SIZE/PERCENT, such as 4k/60");
        let mut sizes = Vec::new();
        for part in text.split(':') {
            let (size, percent) = part.split_once('/').unwrap_or((part, ""));
            let bytes = size.parse::<ByteSize>().map_err(|_| told(part))?.0;
            let weight = if percent.is_empty() { None } else { Some(percent.parse::<f64>().map_err(|_| told(part))?) };
            sizes.push((bytes, weight));
        }
        let given: f64 = sizes.iter().filter_map(|(_, weight)| *weight).sum();
        let open = sizes.iter().filter(|(_, weight)| weight.is_none()).count();
        // As fio does: nothing is left for the others.
        if open > 0 && !(0.0..=100.0).contains(&given) {
            return Err(format!(
                "'{text}': the percentages add up to {given}, and the sizes without one share what is left of 100"
            ));
        }
        let share = (100.0 - given) / open.max(1) as f64;
        let weighted = |(bytes, weight): (u64, Option<f64>)| WeightedSize { bytes, weight: weight.unwrap_or(share) };
        Ok(Self::Weighted(sizes.into_iter().map(weighted).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_as_fio_spells_them() {
        assert_eq!(Access::of_fio("random"), Ok(Access::Random));
        assert_eq!(Access::of_fio("pareto:0.2"), Ok(Access::Pareto { h: 0.2 }));
        let zones = vec![Zone { size: 0.1, traffic: 0.6 }, Zone { size: 0.9, traffic: 0.4 }];
        assert_eq!(Access::of_fio("zoned:60/10:40/90"), Ok(Access::HotCold { zones, shuffled: false }));
        for wrong in ["", "gauss:1", "zipf", "zipf:x", "zoned:60", "zoned:", "random:1"] {
            assert!(Access::of_fio(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_without_a_percentage_share_the_rest() {
        let sizes = [(4096, 50.0), (65_536, 25.0), (512, 25.0)].map(|(bytes, weight)| WeightedSize { bytes, weight });
        assert_eq!(Size::of_fio("4k/50:64k:512"), Ok(Size::Weighted(sizes.to_vec())));
        assert!(Size::of_fio("4k/80:8k/40:16k").unwrap_err().contains("add up to 120"));
        for wrong in ["", "4k/x", "4KB/10", "4k/50:", "4k/-5:8k", "4k/nan:8k"] {
            assert!(Size::of_fio(wrong).is_err(), "{wrong}");
        }
    }
}
