//! Connections of which no request was accepted yet.
//!
//! Anybody can open connections and send nothing. Such connections are few for an address, and end
//! soon, so that they keep nobody out. A connection with an accepted request does not count any more.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// The connections that wait for a request, by their addresses.
#[derive(Debug)]
pub(crate) struct NewConnections {
    waiting: Mutex<HashMap<IpAddr, WaitingConnections>>,
    next: AtomicU64,
    /// How many of one address may wait.
    limit: usize,
    /// How long each may wait.
    timeout: Duration,
}

/// Those of one address by their numbers, the longest waiting first.
type WaitingConnections = VecDeque<(u64, watch::Sender<Stage>)>;

/// One connection.
#[derive(Debug)]
pub(crate) struct NewConnection {
    table: Arc<NewConnections>,
    address: IpAddr,
    number: u64,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a request until then.
    Waiting(Instant),
    /// Its request is being answered.
    Answering,
    /// A request was accepted.
    Accepted,
}

/// How long a connection that must make room may still take: what the client has sent may not have
/// been read yet.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

impl NewConnections {
    pub(crate) fn new(limit: usize, timeout: Duration) -> Arc<Self> {
        let (waiting, next) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { waiting, next, limit, timeout })
    }

    /// Adds a connection, which waits for a request.
    pub(crate) fn add(self: &Arc<Self>, address: IpAddr) -> NewConnection {
        let connection = NewConnection {
            table: Arc::clone(self),
            address,
            number: self.next.fetch_add(1, Ordering::Relaxed),
            stage: watch::Sender::new(Stage::Answering),
        };
        connection.wait();
        connection
    }
}

impl NewConnection {
    /// Waits for a request. Beyond the limit, the connection that has waited longest makes room.
    fn wait(&self) {
        let until = Instant::now() + self.table.timeout;
        self.stage.send_replace(Stage::Waiting(until));
        let mut waiting = self.table.waiting.lock();
        let of_address = waiting.entry(self.address).or_default();
        of_address.push_back((self.number, self.stage.clone()));
        if of_address.len() > self.table.limit
            && let Some((_, longest)) = of_address.pop_front()
        {
            let soon = Instant::now() + ROOM_TIMEOUT;
            longest.send_modify(|stage| {
                if let Stage::Waiting(until) = stage {
                    *until = soon.min(*until);
                }
            });
        }
    }

    fn remove(&self) {
        let mut waiting = self.table.waiting.lock();
        if let Some(of_address) = waiting.get_mut(&self.address) {
            of_address.retain(|(number, _)| *number != self.number);
            if of_address.is_empty() {
                waiting.remove(&self.address);
            }
        }
    }

    /// Notes that a request has arrived.
    pub(crate) fn request_begins(&self) {
        let was_waiting = self.stage.send_if_modified(|stage| {
            let is_waiting = matches!(stage, Stage::Waiting(_));
            if is_waiting {
                *stage = Stage::Answering;
            }
            is_waiting
        });
        if was_waiting {
            self.remove();
        }
    }

    /// Notes that the request is accepted.
    pub(crate) fn accept(&self) {
        self.stage.send_replace(Stage::Accepted);
    }

    /// Notes that the request has its response. If it was not accepted, the next one is awaited.
    pub(crate) fn request_ends(&self) {
        if *self.stage.borrow() == Stage::Answering {
            self.wait();
        }
    }

    /// Completes when the connection has waited for too long.
    pub(crate) async fn overdue(&self) {
        let mut stages = self.stage.subscribe();
        loop {
            let stage = *stages.borrow_and_update();
            let timeout = async {
                match stage {
                    Stage::Waiting(until) => tokio::time::sleep_until(until).await,
                    Stage::Answering | Stage::Accepted => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = stages.changed() => {}
                () = timeout => return,
            }
        }
    }
}

impl Drop for NewConnection {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_waits_longest_makes_room() {
        let table = NewConnections::new(2, Duration::from_mins(1));
        let (first, second) = (table.add(ONE), table.add(ONE));
        let others = [table.add(OTHER), table.add(OTHER)];
        // A connection with an open or an accepted request does not wait.
        first.request_begins();
        let third = table.add(ONE);
        assert!(second.overdue().now_or_never().is_none());
        first.accept();
        first.request_ends();
        let fourth = table.add(ONE);
        let began = Instant::now();
        second.overdue().await;
        assert_eq!(began.elapsed().as_secs(), 1);
        // One whose request was refused waits again, behind the others.
        third.request_begins();
        third.request_ends();
        let fifth = table.add(ONE);
        fourth.overdue().await;
        assert_eq!(began.elapsed().as_secs(), 2);
        fifth.overdue().await;
        assert_eq!(began.elapsed().as_secs(), 61);
        assert!(first.overdue().now_or_never().is_none());
        drop((first, second, third, fourth, fifth, others));
        assert!(table.waiting.lock().is_empty());
    }
}
