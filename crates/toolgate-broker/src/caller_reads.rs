//! What callers have read, in all of their sessions.
//!
//! A caller who reconnects is the same caller: it may still hold what it read before. So the
//! labelled results of a session count for the other sessions of its caller, while the session
//! lasts and for a time after its end. Other callers never get to know of them.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};

use crate::data_flow::SharedResults;

/// What callers have read. All clones share their content, so that the hosts of one gateway know
/// the same callers.
#[derive(Clone, Default)]
pub struct CallerReads(Arc<Mutex<HashMap<Arc<str>, Vec<SessionReads>>>>);

/// How long the results of a session count after its end. Zero keeps sessions apart. All clones share
/// the time, so that a new policy also holds for the sessions of the old one.
#[derive(Debug, Clone, Default)]
pub struct KeepTime(Arc<RwLock<Duration>>);

/// The labelled results of one session.
struct SessionReads {
    session: Arc<str>,
    results: SharedResults,
    keep: KeepTime,
    ended: Option<EndedSession>,
}

#[derive(Clone, Copy)]
struct EndedSession {
    at: Instant,
    /// How many hashes of contents are stored.
    hashes: usize,
}

/// Keeps the results of a session until a time after it is dropped.
pub(crate) struct ReadsRegistration {
    callers: CallerReads,
    caller: Arc<str>,
    session: Arc<str>,
}

/// The most sessions that have ended and still count. Of more, the oldest are forgotten.
const ENDED: usize = 4_096;
/// Of so many ended sessions of one caller the contents are stored. Of older ones only the tools and
/// their labels are known, so that any argument may contain their data.
const WITH_CONTENTS: usize = 16;
/// The most hashes of contents that all ended sessions store, at about 40 bytes each.
const HASHES: usize = 1_000_000;

impl CallerReads {
    /// Lets the results of a session count for all sessions of its caller.
    pub(crate) fn register(
        &self,
        caller: &Arc<str>,
        session: &Arc<str>,
        results: &SharedResults,
        keep: &KeepTime,
    ) -> ReadsRegistration {
        let (session, results, keep) = (Arc::clone(session), results.clone(), keep.clone());
        let entry = SessionReads { session: Arc::clone(&session), results, keep, ended: None };
        self.0.lock().entry(Arc::clone(caller)).or_default().push(entry);
        ReadsRegistration { callers: self.clone(), caller: Arc::clone(caller), session }
    }

    /// The results of the other sessions of a caller.
    pub(crate) fn others(
        &self,
        caller: &Arc<str>,
        session: &Arc<str>,
        now: Instant,
    ) -> Vec<SharedResults> {
        let mut callers = self.0.lock();
        let Some(sessions) = callers.get_mut(caller) else { return Vec::new() };
        sessions.retain(|known| !known.is_over(now));
        let others = sessions.iter().filter(|known| known.session != *session);
        // A session that still lasts may count again later.
        let others = others.filter(|known| !known.keep.get().is_zero());
        let others = others.map(|known| known.results.clone()).collect();
        if sessions.is_empty() {
            callers.remove(caller);
        }
        others
    }

    fn end(&self, registration: &ReadsRegistration, now: Instant) {
        let mut callers = self.0.lock();
        let sessions = callers.get_mut(&registration.caller).into_iter().flatten();
        for known in sessions.filter(|known| known.session == registration.session) {
            known.ended = Some(EndedSession { at: now, hashes: known.results.hashes() });
        }
        callers.retain(|_, sessions| {
            sessions.retain(|known| !known.is_over(now));
            !sessions.is_empty()
        });
        limit(&mut callers);
    }
}

/// Forgets the contents of old sessions, and of very many sessions all.
fn limit(callers: &mut HashMap<Arc<str>, Vec<SessionReads>>) {
    let mut ended: Vec<(Arc<str>, &mut SessionReads, EndedSession)> = callers
        .iter_mut()
        .flat_map(|(caller, sessions)| sessions.iter_mut().map(move |known| (caller, known)))
        .filter_map(|(caller, known)| known.ended.map(|end| (Arc::clone(caller), known, end)))
        .collect();
    ended.sort_by_key(|(.., end)| std::cmp::Reverse(end.at));
    let oldest = ended.get(ENDED).map(|(.., end)| end.at);
    let (mut hashes, mut of_caller) = (0, HashMap::<Arc<str>, usize>::new());
    for (caller, known, end) in ended {
        let count = of_caller.entry(caller).or_default();
        *count += 1;
        hashes += end.hashes;
        if end.hashes > 0 && (*count > WITH_CONTENTS || hashes > HASHES) {
            hashes -= end.hashes;
            known.results.forget_contents();
            known.ended = Some(EndedSession { hashes: 0, ..end });
        }
    }
    if let Some(oldest) = oldest {
        let stays = |known: &SessionReads| known.ended.is_none_or(|end| end.at > oldest);
        for sessions in callers.values_mut() {
            sessions.retain(stays);
        }
    }
}

impl KeepTime {
    pub(crate) fn set(&self, time: Duration) {
        *self.0.write() = time;
    }

    fn get(&self) -> Duration {
        *self.0.read()
    }
}

impl SessionReads {
    /// Whether it has ended, and the time is over in which its results count.
    fn is_over(&self, now: Instant) -> bool {
        self.ended.is_some_and(|end| now.saturating_duration_since(end.at) >= self.keep.get())
    }
}

impl Drop for ReadsRegistration {
    fn drop(&mut self) {
        self.callers.end(self, Instant::now());
    }
}

impl fmt::Debug for CallerReads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallerReads").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn keep(time: Duration) -> KeepTime {
        KeepTime(Arc::new(RwLock::new(time)))
    }

    fn name(text: &str) -> Arc<str> {
        text.into()
    }

    #[test]
    fn what_a_caller_read_counts_for_a_time_and_for_that_caller_alone() {
        let callers = CallerReads::default();
        let results = SharedResults::default();
        let (ada, bob) = (name("ada"), name("bob"));
        let first = callers.register(&ada, &name("s_1"), &results, &keep(HOUR));
        let now = Instant::now();
        assert_eq!(callers.others(&ada, &name("s_2"), now).len(), 1, "while it lasts");
        assert_eq!(callers.others(&ada, &name("s_1"), now).len(), 0, "a session is no other one");
        assert_eq!(callers.others(&bob, &name("s_2"), now).len(), 0);
        drop(first);
        assert_eq!(callers.others(&ada, &name("s_2"), now + HOUR / 2).len(), 1);
        assert_eq!(callers.others(&bob, &name("s_2"), now + HOUR / 2).len(), 0);
        assert_eq!(callers.others(&ada, &name("s_2"), now + 2 * HOUR).len(), 0);
        assert!(callers.0.lock().is_empty(), "nothing is left");
    }

    #[test]
    fn a_new_time_holds_for_the_sessions_of_the_old_one() {
        let (callers, time) = (CallerReads::default(), keep(Duration::ZERO));
        let ada = name("ada");
        let first = callers.register(&ada, &name("s_1"), &SharedResults::default(), &time);
        let others = |after| callers.others(&ada, &name("s_2"), Instant::now() + after).len();
        assert_eq!(others(Duration::ZERO), 0, "sessions are apart");
        time.set(HOUR);
        assert_eq!(others(Duration::ZERO), 1, "what was read before counts");
        drop(first);
        assert_eq!(others(HOUR / 2), 1);
        time.set(2 * HOUR);
        assert_eq!(others(HOUR + HOUR / 2), 1, "a longer time");
        time.set(HOUR / 4);
        assert_eq!(others(HOUR / 2), 0, "a shorter time");
        assert!(callers.0.lock().is_empty(), "nothing is left");
    }

    #[test]
    fn ended_sessions_are_bounded() {
        let (callers, time) = (CallerReads::default(), keep(HOUR));
        for number in 0..ENDED + 50 {
            let (caller, session) = (name(&format!("c{number}")), name(&format!("s{number}")));
            drop(callers.register(&caller, &session, &SharedResults::default(), &time));
        }
        let kept = callers.0.lock().values().map(Vec::len).sum::<usize>();
        assert!(kept <= ENDED, "{kept}");
    }

    #[test]
    fn the_contents_of_many_sessions_are_reduced_to_their_tools() {
        let (callers, time) = (CallerReads::default(), keep(HOUR));
        let all: Vec<SharedResults> = (0..WITH_CONTENTS + 3)
            .map(|number| {
                let results = SharedResults::with_a_result(number);
                let session = name(&format!("s{number}"));
                drop(callers.register(&name("ada"), &session, &results, &time));
                results
            })
            .collect();
        let with = all.iter().filter(|results| results.hashes() > 0).count();
        assert_eq!(with, WITH_CONTENTS);
        let now = Instant::now();
        assert_eq!(callers.others(&name("ada"), &name("s"), now).len(), WITH_CONTENTS + 3);
    }
}
