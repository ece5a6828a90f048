//! One sync for all threads that wait at the same time.

use std::{
    io,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Lets one waiting thread sync for all threads that came before it began.
#[derive(Debug, Default)]
pub(super) struct GroupSync {
    state: Mutex<SyncTurns>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SyncTurns {
    asked: u64,
    /// Everybody up to this one is served.
    done: u64,
    under_way: bool,
}

impl GroupSync {
    /// Returns once a sync that began after this call has succeeded.
    pub(super) fn wait(&self, sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let mut turns = self.lock();
        turns.asked += 1;
        let own = turns.asked;
        while turns.done < own {
            if turns.under_way {
                turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            turns.under_way = true;
            let all = turns.asked;
            drop(turns);
            let synced = sync();
            turns = self.lock();
            turns.under_way = false;
            if synced.is_ok() {
                turns.done = turns.done.max(all);
            }
            self.changed.notify_all();
            synced?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, SyncTurns> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    use super::*;

    #[test]
    fn calls_that_wait_at_the_same_time_share_one_sync() {
        let (group, syncs) = (Arc::new(GroupSync::default()), Arc::new(AtomicUsize::new(0)));
        let (begun, first_begun) = mpsc::channel();
        let (go, may_end) = mpsc::channel::<()>();
        let (first, count) = (Arc::clone(&group), Arc::clone(&syncs));
        let may_end = Mutex::new(may_end);
        let first = std::thread::spawn(move || {
            first.wait(|| {
                count.fetch_add(1, Ordering::Relaxed);
                begun.send(()).unwrap();
                may_end.lock().unwrap().recv().unwrap();
                Ok(())
            })
        });
        first_begun.recv().unwrap();
        let others: Vec<_> = (0..16)
            .map(|_| {
                let (group, count) = (Arc::clone(&group), Arc::clone(&syncs));
                std::thread::spawn(move || {
                    group.wait(|| {
                        count.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    })
                })
            })
            .collect();
        while group.lock().asked < 17 {
            std::thread::yield_now();
        }
        go.send(()).unwrap();
        first.join().unwrap().unwrap();
        for other in others {
            other.join().unwrap().unwrap();
        }
        assert_eq!(syncs.load(Ordering::Relaxed), 2, "one for the first, one for all others");
        assert!(group.wait(|| Err(io::Error::other("no"))).is_err());
    }
}
