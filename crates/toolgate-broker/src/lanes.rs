//! How many calls of scripts a server gets at once.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolgate_catalog::ServerName;

/// A place in a lane, given back by dropping it.
pub(crate) type Place = OwnedSemaphorePermit;

/// A lane a server, so wide that some calls go side by side. The rest wait their turn, whichever
/// script they are from, and never for another server. A call that waits for a person is in none.
#[derive(Debug)]
pub(crate) struct Lanes {
    width: usize,
    lanes: Mutex<HashMap<ServerName, Arc<Semaphore>>>,
}

impl Lanes {
    pub(crate) fn new(width: usize) -> Self {
        Self { width: width.max(1), lanes: Mutex::default() }
    }

    /// Waits for a place. It is given back by dropping it.
    pub(crate) async fn enter(&self, server: &ServerName) -> Option<Place> {
        let lane = {
            let mut lanes = self.lanes.lock();
            match lanes.get(server) {
                Some(lane) => Arc::clone(lane),
                None => Arc::clone(
                    lanes
                        .entry(server.clone())
                        .or_insert_with(|| Arc::new(Semaphore::new(self.width))),
                ),
            }
        };
        // Lanes are never closed.
        lane.acquire_owned().await.ok()
    }
}
