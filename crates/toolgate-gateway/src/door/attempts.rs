//! How often somebody has failed to come in.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// How many failures are borne at once.
const BURST: u32 = 20;
/// How long it takes for one of them to be forgotten.
const FORGIVEN: Duration = Duration::from_secs(3);
/// How many addresses are remembered.
const ADDRESSES: usize = 10_000;

/// Failures by address: those of the last minute, about.
///
/// Nobody guesses 256 random bits; what this saves is the work that guesses make.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// When all failures of an address will be forgotten. How far that is away says how many
    /// there are.
    table: Mutex<HashMap<IpAddr, Instant>>,
}

impl Attempts {
    /// Counts a failure; says whether there were too many.
    pub(super) fn fail(&self, peer: IpAddr, now: Instant) -> bool {
        let peer = household(peer);
        let mut table = self.table.lock();
        if table.len() >= ADDRESSES && !table.contains_key(&peer) {
            make_room(&mut table, now);
        }
        let clear = table.entry(peer).or_insert(now);
        *clear = (*clear).max(now) + FORGIVEN;
        let too_many = *clear > now + FORGIVEN * BURST;
        // However long somebody goes on, a minute of quiet is enough.
        *clear = (*clear).min(now + FORGIVEN * (BURST + 1));
        too_many
    }

    /// Whether one more would be too many.
    pub(super) fn are_too_many(&self, peer: IpAddr, now: Instant) -> bool {
        let table = self.table.lock();
        table.get(&household(peer)).is_some_and(|clear| *clear > now + FORGIVEN * (BURST - 1))
    }
}

/// Forgets who has nothing to be forgotten, and else the half that has the least.
fn make_room(table: &mut HashMap<IpAddr, Instant>, now: Instant) {
    table.retain(|_, clear| *clear > now);
    if table.len() >= ADDRESSES {
        let mut all: Vec<(Instant, IpAddr)> =
            table.iter().map(|(peer, clear)| (*clear, *peer)).collect();
        let (least, ..) = all.select_nth_unstable(ADDRESSES / 2);
        for (_, peer) in least {
            table.remove(peer);
        }
    }
}

/// One household has one IPv4 address, or 2^64 IPv6 addresses.
fn household(peer: IpAddr) -> IpAddr {
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
    fn a_burst_is_borne_and_forgotten() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        let peer = address(7);
        for _ in 0..BURST {
            assert!(!attempts.are_too_many(peer, start));
            assert!(!attempts.fail(peer, start));
        }
        assert!(attempts.are_too_many(peer, start));
        assert!(attempts.fail(peer, start));
        assert!(!attempts.are_too_many(address(8), start), "others are not concerned");
        for _ in 0..1_000 {
            assert!(attempts.fail(peer, start));
        }
        let later = start + FORGIVEN * 2;
        assert!(!attempts.are_too_many(peer, later), "a pause is enough for one more");
        assert!(!attempts.fail(peer, later));
        assert!(attempts.fail(peer, later));
        let rested = start + FORGIVEN * (BURST + 3);
        for _ in 0..BURST {
            assert!(!attempts.fail(peer, rested));
        }
    }

    #[test]
    fn a_household_is_one() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let peers = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]);
        for number in 0..=20 {
            attempts.fail(peers(number), now);
        }
        assert!(attempts.are_too_many(peers(99), now));
        assert!(!attempts.are_too_many(IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1]), now));
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        for _ in 0..=BURST {
            attempts.fail(mapped, now);
        }
        assert!(attempts.are_too_many("10.0.0.1".parse().unwrap(), now));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_worst() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let worst = address(u32::MAX);
        for _ in 0..=BURST {
            attempts.fail(worst, now);
        }
        for number in 0..50_000 {
            attempts.fail(address(number), now);
        }
        assert!(attempts.table.lock().len() <= ADDRESSES);
        assert!(attempts.are_too_many(worst, now));
    }
}
