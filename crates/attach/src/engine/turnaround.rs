//! How soon clients ask again.
//!
//! What the way between the server and a client takes the server cannot see. It sees when an answer goes, and when the
//! next request comes. A client that keeps the same number of requests under way asks once for each answer, in their
//! order: so the n-th request after its first ones follows the n-th answer. From the arrival of that answer's request
//! to the arrival of the one that follows lies all of the way, there and back, and what the client does in between.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::nanos;
use super::times::AtOnce;

/// Answers of a client that are remembered at most.
const MAX_COMPLETED: usize = 1024;
/// Requests after which it is forgotten how many were under way before those.
const WINDOW: u32 = 64;

/// An answer that no request has followed.
#[derive(Clone, Copy, Debug)]
struct Completed {
    at: Instant,
    /// From the arrival of its request on.
    after: Duration,
}

/// One client.
#[derive(Debug)]
struct Client {
    number: u32,
    answered: VecDeque<Completed>,
    in_flight: u32,
    /// Most that were under way, in the present window and in the one before.
    deepest: [u32; 2],
    /// Requests of the present window.
    requests: u32,
}

/// Clients that have asked for something.
#[derive(Debug, Default)]
pub(super) struct Turnarounds(Vec<Client>);

impl Turnarounds {
    /// A client that has asked before and is not gone.
    fn known(&mut self, number: u32) -> Option<&mut Client> {
        self.0.iter_mut().find(|client| client.number == number)
    }

    fn of(&mut self, number: u32) -> &mut Client {
        let known = self.0.iter().position(|client| client.number == number);
        let place = known.unwrap_or_else(|| {
            let answered = VecDeque::with_capacity(MAX_COMPLETED + 1);
            self.0.push(Client { number, answered, in_flight: 0, deepest: [0; 2], requests: 0 });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// A request has arrived; notes how long that took from the arrival of the one on whose answer it follows, and how
    /// many its client has under way, on their way and answered.
    pub(super) fn submitted(&mut self, client: u32, at: Instant, times: &mut AtOnce) {
        let client = self.of(client);
        client.in_flight += 1;
        client.requests += 1;
        if client.requests > WINDOW {
            client.requests = 0;
            client.deepest = [0, client.deepest[0]];
        }
        client.deepest[0] = client.deepest[0].max(client.in_flight);
        if let Some(Completed { at: answered, after }) = client.answered.pop_front() {
            times.times.record(nanos(at.saturating_duration_since(answered) + after));
            times.under_way += u64::from(client.in_flight) + client.answered.len() as u64;
        }
    }

    /// It is answered.
    pub(super) fn completed(&mut self, client: u32, at: Instant, after: Duration) {
        let Some(client) = self.known(client) else { return };
        client.in_flight = client.in_flight.saturating_sub(1);
        client.answered.push_back(Completed { at, after });
        // A client that has fewer requests under way than before does not ask for each answer.
        let most = (client.deepest[0].max(client.deepest[1]) as usize).min(MAX_COMPLETED);
        while client.answered.len() > most {
            client.answered.pop_front();
        }
    }

    /// It is lost.
    pub(super) fn lost(&mut self, client: u32) {
        let Some(client) = self.known(client) else { return };
        client.in_flight = client.in_flight.saturating_sub(1);
    }

    /// A client is gone.
    pub(super) fn forget(&mut self, client: u32) {
        self.0.retain(|known| known.number != client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// Rounds of a client: so many requests at once, each of which takes 10 µs, and 5 µs until it asks for as many
    /// again.
    fn play(turnarounds: &mut Turnarounds, began: Instant, depths: &[u32]) -> AtOnce {
        let (mut times, mut now) = (AtOnce::default(), began);
        for &depth in depths {
            (0..depth).for_each(|_| turnarounds.submitted(7, now, &mut times));
            now += 10 * MICROSECOND;
            (0..depth).for_each(|_| turnarounds.completed(7, now, 10 * MICROSECOND));
            now += 5 * MICROSECOND;
        }
        times
    }

    #[test]
    fn a_client_that_asks_again_at_once_is_seen_to_take_its_way_at_any_depth() {
        let began = Instant::now();
        for depth in [1, 4, 32] {
            let times = play(&mut Turnarounds::default(), began, &[depth; 5]);
            let (count, median_ns) = (times.times.count(), times.times.percentile(50.0).0);
            assert_eq!((count, median_ns / 100, times.depth()), (4 * u64::from(depth), 150, f64::from(depth)));
        }
    }

    #[test]
    fn a_client_that_asks_for_less_than_before_is_not_taken_for_a_slow_one() {
        let mut turnarounds = Turnarounds::default();
        let began = Instant::now();
        play(&mut turnarounds, began, &[32; 3]);
        let settled = play(&mut turnarounds, began + 200 * MICROSECOND, &[1; 200]);
        // The 32 answers are forgotten once the window is; until then each request seems to follow an older one.
        let late = play(&mut turnarounds, began + 10_000 * MICROSECOND, &[1; 100]);
        assert!(settled.times.percentile(99.0).0 > 100_000, "{:?}", settled.times.percentiles());
        assert_eq!((late.times.percentile(90.0).0 / 100, late.depth() < 1.5), (150, true), "{late:?}");
    }

    #[test]
    fn what_is_lost_is_followed_by_nothing_and_a_client_that_is_gone_is_forgotten() {
        let (mut turnarounds, mut times, now) = (Turnarounds::default(), AtOnce::default(), Instant::now());
        turnarounds.submitted(1, now, &mut times);
        turnarounds.lost(1);
        turnarounds.submitted(1, now, &mut times);
        turnarounds.completed(1, now, MICROSECOND);
        turnarounds.forget(1);
        turnarounds.completed(1, now, MICROSECOND);
        turnarounds.submitted(1, now, &mut times);
        assert_eq!(times.times.count(), 0);
    }
}
