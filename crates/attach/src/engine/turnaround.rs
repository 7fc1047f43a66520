//! How soon clients send the next request.
//!
//! The server cannot see the time between itself and a client. It sees when a completion is sent, and when the next
//! request arrives. A client that keeps the same number of requests in flight sends one for each completion, in their
//! order: so the n-th request after its first ones follows the n-th completion. The time from the arrival of the
//! completed request to the arrival of the following one includes the way there and back, and the client's own work in
//! between.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::nanos;
use super::times::AtOnce;

/// Most completions of a client that are remembered.
const MAX_COMPLETED: usize = 1024;
/// Requests after which the earlier number in flight is forgotten.
const WINDOW: u32 = 64;

/// A completion that no request has followed yet.
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
    /// Most requests in flight, in the present window and in the one before.
    deepest: [u32; 2],
    /// Requests of the present window.
    requests: u32,
}

/// Clients that have sent a request.
#[derive(Debug, Default)]
pub(super) struct Turnarounds(Vec<Client>);

impl Turnarounds {
    /// A client that has sent a request and is connected.
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

    /// Records the arrival of a request: the time since the arrival of the one whose completion it follows, and how
    /// many requests its client has in flight.
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

    /// Records its completion.
    pub(super) fn completed(&mut self, client: u32, at: Instant, after: Duration) {
        let Some(client) = self.known(client) else { return };
        client.in_flight = client.in_flight.saturating_sub(1);
        client.answered.push_back(Completed { at, after });
        // A client with fewer requests in flight than before does not send one for each completion.
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

    /// A client has disconnected.
    pub(super) fn forget(&mut self, client: u32) {
        self.0.retain(|known| known.number != client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// Rounds of a client: that many concurrent requests of 10 µs each, then 5 µs until it sends as many again.
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
        // The 32 completions are forgotten when the window ends; until then each request seems to follow an older one.
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
