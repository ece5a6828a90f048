//! Limits failed authentications by address.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// How many failures an address may have at once.
const BURST: u32 = 20;
/// After this time, one failure is forgotten.
const RECOVERY: Duration = Duration::from_secs(3);
const MAX_ADDRESSES: usize = 10_000;

/// Counts the recent failures of each address as a leaky bucket.
///
/// Nobody guesses 256 random bits. The limit saves the work of checking guesses.
#[derive(Debug, Default)]
pub(super) struct FailureLimiter {
    /// When all failures of an address are forgotten. The distance to that time is the number of
    /// failures.
    clear_at: Mutex<HashMap<IpAddr, Instant>>,
}

impl FailureLimiter {
    /// Counts a failure. Returns whether the limit is exceeded.
    pub(super) fn record(&self, peer: IpAddr, now: Instant) -> bool {
        let peer = network(peer);
        let mut table = self.clear_at.lock();
        if table.len() >= MAX_ADDRESSES && !table.contains_key(&peer) {
            evict(&mut table, now);
        }
        let clear_at = table.entry(peer).or_insert(now);
        *clear_at = (*clear_at).max(now) + RECOVERY;
        let exceeded = *clear_at > now + RECOVERY * BURST;
        // However long the failures go on, a minute without one is enough.
        *clear_at = (*clear_at).min(now + RECOVERY * (BURST + 1));
        exceeded
    }

    /// Whether one more failure would exceed the limit.
    pub(super) fn is_exceeded(&self, peer: IpAddr, now: Instant) -> bool {
        let table = self.clear_at.lock();
        table.get(&network(peer)).is_some_and(|clear_at| *clear_at > now + RECOVERY * (BURST - 1))
    }
}

/// Removes addresses without failures. If there are none, removes the half with the fewest failures.
fn evict(table: &mut HashMap<IpAddr, Instant>, now: Instant) {
    table.retain(|_, clear_at| *clear_at > now);
    if table.len() >= MAX_ADDRESSES {
        let mut all: Vec<(Instant, IpAddr)> =
            table.iter().map(|(peer, clear_at)| (*clear_at, *peer)).collect();
        let (fewest, ..) = all.select_nth_unstable(MAX_ADDRESSES / 2);
        for (_, peer) in fewest {
            table.remove(peer);
        }
    }
}

/// The address that failures are counted for. One customer has one IPv4 address or an IPv6 /64 network.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(number).into()
    }

    #[test]
    fn a_burst_is_allowed_and_forgotten() {
        let (limiter, start) = (FailureLimiter::default(), Instant::now());
        let peer = address(7);
        for _ in 0..BURST {
            assert!(!limiter.is_exceeded(peer, start));
            assert!(!limiter.record(peer, start));
        }
        assert!(limiter.is_exceeded(peer, start));
        assert!(limiter.record(peer, start));
        assert!(!limiter.is_exceeded(address(8), start), "other addresses are not affected");
        for _ in 0..1_000 {
            assert!(limiter.record(peer, start));
        }
        let later = start + RECOVERY * 2;
        assert!(!limiter.is_exceeded(peer, later), "a pause is enough for one more");
        assert!(!limiter.record(peer, later));
        assert!(limiter.record(peer, later));
        let rested = start + RECOVERY * (BURST + 3);
        for _ in 0..BURST {
            assert!(!limiter.record(peer, rested));
        }
    }

    #[test]
    fn a_network_is_counted_as_one() {
        let (limiter, now) = (FailureLimiter::default(), Instant::now());
        let peers = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        for number in 0..=20 {
            limiter.record(peers(number), now);
        }
        assert!(limiter.is_exceeded(peers(99), now));
        assert!(!limiter.is_exceeded(IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1]), now));
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        for _ in 0..=BURST {
            limiter.record(mapped, now);
        }
        assert!(limiter.is_exceeded("10.0.0.1".parse().unwrap(), now));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_worst() {
        let (limiter, now) = (FailureLimiter::default(), Instant::now());
        let worst = address(u32::MAX);
        for _ in 0..=BURST {
            limiter.record(worst, now);
        }
        for number in 0..50_000 {
            limiter.record(address(number), now);
        }
        assert!(limiter.clear_at.lock().len() <= MAX_ADDRESSES);
        assert!(limiter.is_exceeded(worst, now));
    }
}
