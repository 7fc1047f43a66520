//! When the next request arrives.

use flashwise_block::Nanos;
use rand_pcg::Pcg64Mcg;

use super::random::unit;
use crate::workload::{Arrivals, Pacing};

/// Draws arrival times, from the flow's start. They never go back; at the end of 64 bits they stand still.
#[derive(Debug)]
pub(super) enum ArrivalTimes {
    /// The runner decides; the time is always 0.
    Closed,
    Constant {
        next: u64,
        step: u64,
    },
    Poisson {
        now: u64,
        mean: f64,
    },
}

impl ArrivalTimes {
    pub(super) fn new(pacing: Pacing) -> Self {
        match pacing {
            Pacing::Closed { .. } => Self::Closed,
            Pacing::Open { interarrival_ns: step, arrivals: Arrivals::Constant } => Self::Constant { next: 0, step },
            Pacing::Open { interarrival_ns, arrivals: Arrivals::Poisson } => {
                Self::Poisson { now: 0, mean: interarrival_ns as f64 }
            }
        }
    }

    #[inline]
    pub(super) fn draw(&mut self, random: &mut Pcg64Mcg) -> Nanos {
        match self {
            Self::Closed => Nanos(0),
            Self::Constant { next, step } => {
                let now = *next;
                *next = now.saturating_add(*step);
                Nanos(now)
            }
            Self::Poisson { now, mean } => {
                // Inversion: −ln of a uniform number is exponentially distributed with mean 1.
                *now = now.saturating_add((-libm::log(unit(random)) * *mean + 0.5) as u64);
                Nanos(*now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::stream;
    use super::*;

    #[test]
    fn constant_arrivals_start_at_once_and_keep_their_distance() {
        let mut times = ArrivalTimes::new(Pacing::Open { interarrival_ns: 250, arrivals: Arrivals::Constant });
        let mut random = stream(1, 0);
        assert_eq!([0; 3].map(|_| times.draw(&mut random).0), [0, 250, 500]);
    }

    #[test]
    fn poisson_arrivals_have_exponential_distances() {
        let mut times = ArrivalTimes::new(Pacing::Open { interarrival_ns: 20_000, arrivals: Arrivals::Poisson });
        let (mut random, mut last, draws) = (stream(1, 0), 0, 200_000);
        let distances: Vec<f64> = (0..draws)
            .map(|_| {
                let now = times.draw(&mut random).0;
                (now - std::mem::replace(&mut last, now)) as f64
            })
            .collect();
        let mean = distances.iter().sum::<f64>() / f64::from(draws);
        let variance = distances.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(draws);
        assert!((mean / 20_000.0 - 1.0).abs() < 0.015, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
        let beyond_mean = distances.iter().filter(|&&d| d > 20_000.0).count() as f64 / f64::from(draws);
        assert!((beyond_mean - (-1.0_f64).exp()).abs() < 0.006, "{beyond_mean}");
    }

    #[test]
    fn times_end_where_64_bits_end() {
        let mut times = ArrivalTimes::new(Pacing::Open { interarrival_ns: u64::MAX, arrivals: Arrivals::Poisson });
        let mut random = stream(1, 0);
        let times: Vec<u64> = (0..100).map(|_| times.draw(&mut random).0).collect();
        assert!(times.is_sorted() && times.last() == Some(&u64::MAX));
    }
}
