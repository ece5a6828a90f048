//! Which calls may run at the same time.
//!
//! Over stdio a server does not say which call its input request belongs to. While all open calls
//! are from one caller, the input request can only be for that caller. So after a server has sent
//! such a request, it gets the calls of one caller at a time, in order of arrival.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::input_handler::{ClientId, InputHandler};

/// How many calls of the current caller may overtake waiting calls.
const MAX_PASSED: usize = 16;

/// The caller of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueuedCaller {
    /// It has no input handler.
    Nobody,
    /// The client that its input handler names.
    Client(ClientId),
    /// The address of an input handler that names no client. Two are the same only while both are
    /// alive.
    Handler(usize),
}

impl QueuedCaller {
    pub(crate) fn of(handler: Option<&Arc<dyn InputHandler>>) -> Self {
        let Some(handler) = handler else { return Self::Nobody };
        let address = || Arc::as_ptr(handler).cast::<()>().addr();
        handler.client().map_or_else(|| Self::Handler(address()), Self::Client)
    }
}

/// The calls of one server.
#[derive(Debug, Default)]
pub(crate) struct CallQueue(Mutex<QueueState>);

#[derive(Debug, Default)]
struct QueueState {
    /// Whether the server gets the calls of one caller at a time.
    one_at_a_time: bool,
    /// The callers of the open calls.
    active: Vec<QueuedCaller>,
    /// How many calls have overtaken the waiting ones.
    passed: usize,
    waiting: VecDeque<(QueuedCaller, oneshot::Sender<()>)>,
}

/// Permission to call. Dropping it admits the next caller.
#[derive(Debug)]
pub(crate) struct CallSlot {
    queue: Arc<CallQueue>,
    caller: QueuedCaller,
}

impl CallQueue {
    /// Serves one caller at a time from now on.
    pub(crate) fn take_one_caller_at_a_time(&self) {
        self.0.lock().one_at_a_time = true;
    }

    /// Waits until the caller may call.
    pub(crate) async fn enter(self: &Arc<Self>, caller: QueuedCaller) -> CallSlot {
        let admitted = {
            let mut state = self.0.lock();
            if state.admits(caller) && (state.waiting.is_empty() || state.may_pass()) {
                state.passed += usize::from(!state.waiting.is_empty());
                state.active.push(caller);
                None
            } else {
                let (admit, admitted) = oneshot::channel();
                state.waiting.push_back((caller, admit));
                Some(admitted)
            }
        };
        let mut entry = QueueEntry { queue: self, caller, admitted };
        if let Some(admitted) = &mut entry.admitted {
            let _ = admitted.await;
        }
        entry.admitted = None;
        CallSlot { queue: Arc::clone(self), caller }
    }

    fn leave(&self, caller: QueuedCaller) {
        let mut state = self.0.lock();
        if let Some(index) = state.active.iter().position(|active| *active == caller) {
            state.active.swap_remove(index);
        }
        drop(state);
        self.admit_waiting();
    }

    fn admit_waiting(&self) {
        let mut state = self.0.lock();
        while let Some((next, _)) = state.waiting.front() {
            if !state.admits(*next) {
                return;
            }
            let Some((next, admit)) = state.waiting.pop_front() else { return };
            // A caller that no longer waits is skipped.
            if admit.send(()).is_ok() {
                state.active.push(next);
                state.passed = 0;
            }
        }
    }
}

impl QueueState {
    fn admits(&self, caller: QueuedCaller) -> bool {
        !self.one_at_a_time || self.active.iter().all(|active| *active == caller)
    }

    /// A client that answers an input request may have to call the same server. This call must not
    /// wait for calls that wait for the answer.
    fn may_pass(&self) -> bool {
        !self.active.is_empty() && self.passed < MAX_PASSED
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        self.queue.leave(self.caller);
    }
}

/// An entry of the queue. Dropping it removes the entry.
struct QueueEntry<'a> {
    queue: &'a CallQueue,
    caller: QueuedCaller,
    admitted: Option<oneshot::Receiver<()>>,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if let Some(admitted) = &mut self.admitted {
            admitted.close();
            // It may have been admitted at this very moment.
            if admitted.try_recv().is_ok() {
                self.queue.leave(self.caller);
            } else {
                // The entries behind it may belong to the current caller.
                self.queue.0.lock().waiting.retain(|(_, admit)| !admit.is_closed());
                self.queue.admit_waiting();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::BoxFuture};

    use super::*;

    fn enter(queue: &Arc<CallQueue>, caller: usize) -> BoxFuture<'static, CallSlot> {
        let queue = Arc::clone(queue);
        async move { queue.enter(QueuedCaller::Handler(caller)).await }.boxed()
    }

    #[test]
    fn there_is_no_queue_until_the_server_asks_for_input() {
        let queue = Arc::new(CallQueue::default());
        let first = enter(&queue, 1).now_or_never().unwrap();
        let second = enter(&queue, 2).now_or_never().unwrap();
        queue.take_one_caller_at_a_time();
        let mut third = enter(&queue, 1);
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none());
        drop(second);
        assert!(third.now_or_never().is_some());
    }

    #[test]
    fn callers_get_their_slots_in_order() {
        let queue = Arc::new(CallQueue::default());
        queue.take_one_caller_at_a_time();
        let first = enter(&queue, 1).now_or_never().unwrap();
        let also_first = enter(&queue, 1).now_or_never().unwrap();
        let mut second = enter(&queue, 2);
        assert!((&mut second).now_or_never().is_none());
        // The current caller may overtake waiting callers, but only a limited number of times.
        let passing: Vec<CallSlot> =
            (0..MAX_PASSED).map(|_| enter(&queue, 1).now_or_never().unwrap()).collect();
        let mut late = enter(&queue, 1);
        assert!((&mut late).now_or_never().is_none());
        drop((first, also_first, passing));
        let turn = (&mut second).now_or_never().unwrap();
        assert!((&mut late).now_or_never().is_none());
        drop(turn);
        assert!(late.now_or_never().is_some());
    }

    #[test]
    fn a_caller_that_stops_waiting_blocks_nobody() {
        let queue = Arc::new(CallQueue::default());
        queue.take_one_caller_at_a_time();
        let first = enter(&queue, 1).now_or_never().unwrap();
        let mut second = enter(&queue, 2);
        assert!((&mut second).now_or_never().is_none());
        let mut third = enter(&queue, 2);
        assert!((&mut third).now_or_never().is_none());
        drop((second, first));
        let also_second = (&mut third).now_or_never().unwrap();
        // This call is admitted and never polled.
        let mut fourth = enter(&queue, 3);
        assert!((&mut fourth).now_or_never().is_none());
        drop(also_second);
        drop(fourth);
        assert!(enter(&queue, 4).now_or_never().is_some());
    }
}
