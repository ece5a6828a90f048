//! Who may call a server that asks.
//!
//! A server on pipes does not say which call its question is about. While the calls in flight are
//! one caller's, it can only be that caller. So once a server has asked such a question, it is
//! given the calls of one caller at a time, in the order in which they came.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::input_handler::{ClientId, InputHandler};

/// How many calls of the caller whose turn it is may pass those who wait.
const MAX_PASSED: usize = 16;

/// Whom a call is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Nobody answers for it.
    Nobody,
    /// The client that its respondent names.
    Client(ClientId),
    /// A respondent that names none, by its address. Two are the same only while both are alive.
    Respondent(usize),
}

impl Caller {
    pub(crate) fn of(respondent: Option<&Arc<dyn InputHandler>>) -> Self {
        let Some(respondent) = respondent else { return Self::Nobody };
        let address = || Arc::as_ptr(respondent).cast::<()>().addr();
        respondent.client().map_or_else(|| Self::Respondent(address()), Self::Client)
    }
}

/// The callers of one server.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether callers are taken one at a time.
    in_turn: bool,
    /// The callers of the calls that are under way.
    active: Vec<Caller>,
    /// How many calls have passed those who wait.
    passed: usize,
    waiting: VecDeque<(Caller, oneshot::Sender<()>)>,
}

/// Leave to call. Dropping it lets the next caller in.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    caller: Caller,
}

impl Turns {
    /// Takes callers one at a time from now on.
    pub(crate) fn take_in_turn(&self) {
        self.0.lock().in_turn = true;
    }

    /// Waits for leave to call.
    pub(crate) async fn enter(self: &Arc<Self>, caller: Caller) -> Turn {
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
        let mut place = Place { turns: self, caller, admitted };
        if let Some(admitted) = &mut place.admitted {
            let _ = admitted.await;
        }
        place.admitted = None;
        Turn { turns: Arc::clone(self), caller }
    }

    fn leave(&self, caller: Caller) {
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
            // One that waits no longer is passed over.
            if admit.send(()).is_ok() {
                state.active.push(next);
                state.passed = 0;
            }
        }
    }
}

impl State {
    fn admits(&self, caller: Caller) -> bool {
        !self.in_turn || self.active.iter().all(|active| *active == caller)
    }

    /// Whoever answers a question may have to call the same server for it, which must not wait for
    /// those who wait for the answer.
    fn may_pass(&self) -> bool {
        !self.active.is_empty() && self.passed < MAX_PASSED
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.leave(self.caller);
    }
}

/// A place in the queue, given up by who stops waiting.
struct Place<'a> {
    turns: &'a Turns,
    caller: Caller,
    admitted: Option<oneshot::Receiver<()>>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(admitted) = &mut self.admitted {
            admitted.close();
            // It may have been let in at this very moment.
            if admitted.try_recv().is_ok() {
                self.turns.leave(self.caller);
            } else {
                // Those behind it may be of the caller whose turn it is.
                self.turns.0.lock().waiting.retain(|(_, admit)| !admit.is_closed());
                self.turns.admit_waiting();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::BoxFuture};

    use super::*;

    fn enter(turns: &Arc<Turns>, caller: usize) -> BoxFuture<'static, Turn> {
        let turns = Arc::clone(turns);
        async move { turns.enter(Caller::Respondent(caller)).await }.boxed()
    }

    #[test]
    fn everybody_is_let_in_until_there_is_a_reason_not_to() {
        let turns = Arc::new(Turns::default());
        let first = enter(&turns, 1).now_or_never().unwrap();
        let second = enter(&turns, 2).now_or_never().unwrap();
        turns.take_in_turn();
        let mut third = enter(&turns, 1);
        assert!((&mut third).now_or_never().is_none());
        drop(first);
        assert!((&mut third).now_or_never().is_none());
        drop(second);
        assert!(third.now_or_never().is_some());
    }

    #[test]
    fn callers_come_in_the_order_in_which_they_asked() {
        let turns = Arc::new(Turns::default());
        turns.take_in_turn();
        let first = enter(&turns, 1).now_or_never().unwrap();
        let also_first = enter(&turns, 1).now_or_never().unwrap();
        let mut second = enter(&turns, 2);
        assert!((&mut second).now_or_never().is_none());
        // A caller whose turn it is may pass those who wait, and not for ever.
        let passing: Vec<Turn> =
            (0..MAX_PASSED).map(|_| enter(&turns, 1).now_or_never().unwrap()).collect();
        let mut late = enter(&turns, 1);
        assert!((&mut late).now_or_never().is_none());
        drop((first, also_first, passing));
        let turn = (&mut second).now_or_never().unwrap();
        assert!((&mut late).now_or_never().is_none());
        drop(turn);
        assert!(late.now_or_never().is_some());
    }

    #[test]
    fn who_stops_waiting_holds_nobody_up() {
        let turns = Arc::new(Turns::default());
        turns.take_in_turn();
        let first = enter(&turns, 1).now_or_never().unwrap();
        let mut second = enter(&turns, 2);
        assert!((&mut second).now_or_never().is_none());
        let mut third = enter(&turns, 2);
        assert!((&mut third).now_or_never().is_none());
        drop((second, first));
        let also_second = (&mut third).now_or_never().unwrap();
        // One that is let in and never looks.
        let mut fourth = enter(&turns, 3);
        assert!((&mut fourth).now_or_never().is_none());
        drop(also_second);
        drop(fourth);
        assert!(enter(&turns, 4).now_or_never().is_some());
    }
}
