//! What callers have read, in all of their sessions.
//!
//! A caller who reconnects is the same caller: it may still hold what it read before. So the
//! labelled results of a session count for the other sessions of its caller, while the session
//! lasts and for a time after its end. So do the servers that it gave labelled data to. Other callers
//! never get to know of them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use toolgate_catalog::{ServerName, ToolId};
use toolgate_flow::LabelSet;
use toolgate_store::{NodeMessage, TimedValues};

use crate::{
    context::new_id,
    data_flow::{PriorRead, SharedResults},
};

/// What callers have read. All clones share their content, so that the hosts of one gateway know
/// the same callers.
#[derive(Clone, Default)]
pub struct CallerReads(Arc<Mutex<KnownReads>>);

/// How long the results of a session count after its end. Zero keeps sessions apart. All clones share
/// the time, so that a new policy also holds for the sessions of the old one.
#[derive(Debug, Clone, Default)]
pub struct KeepTime(Arc<RwLock<Duration>>);

/// What other sessions of a caller have read.
#[derive(Default)]
pub(crate) struct OtherReads {
    /// The results of sessions whose contents are known.
    pub(crate) results: Vec<SharedResults>,
    /// The tools whose results older sessions have read.
    pub(crate) older: Vec<PriorRead>,
    /// The servers that older sessions gave labelled data to.
    older_given: Vec<(ServerName, LabelSet)>,
}

/// Keeps the results of a session until a time after it is dropped.
pub(crate) struct ReadsRegistration {
    callers: CallerReads,
    caller: Arc<str>,
    session: Arc<str>,
}

#[derive(Default)]
struct KnownReads {
    callers: HashMap<Arc<str>, SessionsOfCaller>,
    /// The sessions that have ended, the first one first. A session may be reduced already.
    ended: VecDeque<(Arc<str>, Arc<str>)>,
    /// How many hashes of contents the ended sessions store.
    hashes: usize,
    shared: Option<SharedReads>,
}

/// The other nodes of a fleet, and what they were told.
struct SharedReads {
    values: Arc<dyn TimedValues>,
    /// Marks the messages of this process.
    sender: Arc<str>,
    told: HashSet<(Arc<str>, ReadElsewhere)>,
}

/// What other nodes are told of a caller: that it has read results of a tool, or has given data to a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ReadElsewhere {
    Read(ToolId, LabelSet),
    Gave(ServerName, LabelSet),
}

#[derive(Serialize, Deserialize)]
struct ReadMessage {
    sender: Arc<str>,
    keep: Duration,
    what: ReadElsewhere,
}

#[derive(Default)]
struct SessionsOfCaller {
    live: HashMap<Arc<str>, LiveSession>,
    /// The latest sessions that have ended, the first one first.
    ended: VecDeque<EndedSession>,
    /// One entry a tool, for the sessions whose contents are forgotten.
    older: Vec<(PriorRead, SessionEnd)>,
    /// What these sessions gave to servers.
    older_given: Vec<((ServerName, LabelSet), SessionEnd)>,
}

struct LiveSession {
    results: SharedResults,
    keep: KeepTime,
}

/// When a session ended, and how long it counts.
#[derive(Clone)]
struct SessionEnd {
    at: Instant,
    keep: KeepTime,
}

struct EndedSession {
    session: Arc<str>,
    results: SharedResults,
    end: SessionEnd,
    /// How many hashes of contents are stored.
    hashes: usize,
}

/// The most ended sessions of all callers whose contents are stored.
const ENDED: usize = 4_096;
/// Of so many ended sessions of one caller the contents are stored. Of older ones only the tools and
/// their labels are known, so that any argument may contain their data.
const WITH_CONTENTS: usize = 16;
/// The most hashes of contents that all ended sessions store, at about 40 bytes each.
const HASHES: usize = 1_000_000;
/// The most callers. Of more, those without an open session are forgotten.
const CALLERS: usize = 16_384;
/// The subject of messages to other nodes.
const TOPIC: &str = "read";
/// Of so many things it is known that other nodes were told.
const TOLD: usize = 65_536;

impl CallerReads {
    /// Tells the other nodes of a fleet what callers read here, and takes in what they read there. Of the latter only the
    /// tools and their labels are known, so any argument may contain that data.
    pub fn share(&self, values: &Arc<dyn TimedValues>) {
        let sender = new_id("reads");
        {
            let mut known = self.0.lock();
            if known.shared.is_some() {
                return;
            }
            let (values, sender) = (Arc::clone(values), Arc::clone(&sender));
            known.shared = Some(SharedReads { values, sender, told: HashSet::new() });
        }
        let (callers, own) = (Arc::downgrade(&self.0), Arc::clone(&sender));
        values.on_message(Box::new(move |message| {
            if message.topic == TOPIC
                && let Some(callers) = callers.upgrade()
                && let Ok(told) = serde_json::from_str::<ReadMessage>(&message.content)
                && told.sender != own
            {
                callers.lock().hear(&message.key, told);
            }
        }));
    }

    /// Tells the other nodes, once, before the caller gets the result. Waits for the database.
    pub(crate) fn tell(&self, caller: &Arc<str>, what: ReadElsewhere, keep: &KeepTime) {
        let keep = keep.get();
        let mut known = self.0.lock();
        let Some(shared) = known.shared.as_mut().filter(|_| !keep.is_zero()) else { return };
        if shared.told.len() >= TOLD {
            shared.told.clear();
        }
        if !shared.told.insert((Arc::clone(caller), what.clone())) {
            return;
        }
        let values = Arc::clone(&shared.values);
        let message = ReadMessage { sender: Arc::clone(&shared.sender), keep, what };
        drop(known);
        let Ok(content) = serde_json::to_string(&message) else { return };
        let message = NodeMessage { topic: TOPIC.to_owned(), key: caller.to_string(), content };
        if let Err(error) = values.send(&message) {
            tracing::warn!("other nodes do not know what a caller has read: {error}");
        }
    }

    /// Lets the results of a session count for all sessions of its caller.
    pub(crate) fn register(
        &self,
        caller: &Arc<str>,
        session: &Arc<str>,
        results: &SharedResults,
        keep: &KeepTime,
    ) -> ReadsRegistration {
        let mut known = self.0.lock();
        let sessions = known.callers.entry(Arc::clone(caller)).or_default();
        let live = LiveSession { results: results.clone(), keep: keep.clone() };
        sessions.live.insert(Arc::clone(session), live);
        let (caller, session) = (Arc::clone(caller), Arc::clone(session));
        ReadsRegistration { callers: self.clone(), caller, session }
    }

    /// What the other sessions of a caller have read.
    pub(crate) fn others(&self, caller: &Arc<str>, session: &Arc<str>, now: Instant) -> OtherReads {
        let mut known = self.0.lock();
        let known = &mut *known;
        let Some(sessions) = known.callers.get_mut(caller) else { return OtherReads::default() };
        known.hashes -= sessions.expire(now);
        // A session that lasts may count again after another reload.
        let counts = |live: &LiveSession| !live.keep.get().is_zero();
        let live = sessions.live.iter().filter(|(id, live)| *id != session && counts(live));
        let live = live.map(|(_, live)| live.results.clone());
        let ended = sessions.ended.iter().map(|ended| ended.results.clone());
        let others = OtherReads {
            results: live.chain(ended).collect(),
            older: sessions.older.iter().map(|(read, _)| read.clone()).collect(),
            older_given: sessions.older_given.iter().map(|(given, _)| given.clone()).collect(),
        };
        if sessions.is_empty() {
            known.callers.remove(caller);
        }
        others
    }

    /// The labels of the data that other sessions of a caller gave to a server.
    pub(crate) fn given_by_others(
        &self,
        caller: &Arc<str>,
        session: &Arc<str>,
        server: &ServerName,
        now: Instant,
    ) -> LabelSet {
        let others = self.others(caller, session, now);
        let older = others.older_given.iter().filter(|(known, _)| known == server);
        let older = older.map(|(_, labels)| *labels);
        let known = others.results.iter().map(|results| results.given(server));
        known.chain(older).fold(LabelSet::EMPTY, LabelSet::union)
    }

    fn end(&self, registration: &ReadsRegistration, now: Instant) {
        let mut known = self.0.lock();
        let known = &mut *known;
        let ReadsRegistration { caller, session, .. } = registration;
        let Some(sessions) = known.callers.get_mut(caller) else { return };
        known.hashes -= sessions.expire(now);
        let ended = sessions.live.remove(session);
        if let Some(LiveSession { results, keep }) = ended.filter(|it| !it.keep.get().is_zero()) {
            let (session, hashes) = (Arc::clone(session), results.hashes());
            let end = SessionEnd { at: now, keep };
            known.hashes += hashes;
            known.ended.push_back((Arc::clone(caller), Arc::clone(&session)));
            sessions.ended.push_back(EndedSession { session, results, end, hashes });
            if sessions.ended.len() > WITH_CONTENTS {
                known.hashes -= sessions.reduce(0);
            }
        }
        if sessions.is_empty() {
            known.callers.remove(caller);
        }
        known.limit(now);
    }
}

impl KnownReads {
    /// Takes in what a caller read at another node.
    fn hear(&mut self, caller: &str, ReadMessage { sender, keep, what }: ReadMessage) {
        let now = Instant::now();
        let sessions = self.callers.entry(caller.into()).or_default();
        let end = SessionEnd { at: now, keep: KeepTime(Arc::new(RwLock::new(keep))) };
        match what {
            ReadElsewhere::Read(tool, labels) => {
                let read = PriorRead { session: sender, tool, labels };
                keep_longest(&mut sessions.older, read, &end, |known, read| {
                    (&known.tool, known.labels) == (&read.tool, read.labels)
                });
            }
            ReadElsewhere::Gave(server, labels) => {
                keep_longest(&mut sessions.older_given, (server, labels), &end, PartialEq::eq);
            }
        }
        self.limit(now);
    }

    /// Forgets the contents of the oldest sessions, and of very many callers all.
    fn limit(&mut self, now: Instant) {
        while self.ended.len() > ENDED || self.hashes > HASHES {
            let Some((caller, session)) = self.ended.pop_front() else { break };
            let Some(sessions) = self.callers.get_mut(&caller) else { continue };
            if let Some(at) = sessions.ended.iter().position(|ended| ended.session == session) {
                self.hashes -= sessions.reduce(at);
            }
        }
        if self.callers.len() > CALLERS {
            self.callers.retain(|_, sessions| {
                self.hashes -= sessions.expire(now);
                !sessions.is_empty()
            });
        }
        if self.callers.len() > CALLERS {
            // A quarter at once, so that the next callers cost nothing.
            let mut without: Vec<(Option<Instant>, Arc<str>)> = self
                .callers
                .iter()
                .filter(|(_, sessions)| sessions.live.is_empty())
                .map(|(caller, sessions)| (sessions.until(), Arc::clone(caller)))
                .collect();
            without.sort();
            for (_, caller) in without.into_iter().take(CALLERS / 4) {
                let sessions = self.callers.remove(&caller).unwrap_or_default();
                self.hashes -= sessions.ended.iter().map(|ended| ended.hashes).sum::<usize>();
            }
        }
    }
}

impl SessionsOfCaller {
    /// Removes what counts no longer. Returns how many hashes of contents that frees.
    fn expire(&mut self, now: Instant) -> usize {
        let mut freed = 0;
        self.ended.retain(|ended| {
            let counts = now < ended.end.until();
            freed += if counts { 0 } else { ended.hashes };
            counts
        });
        self.older.retain(|(_, end)| now < end.until());
        self.older_given.retain(|(_, end)| now < end.until());
        freed
    }

    /// Forgets the contents of an ended session. The tools and their labels stay known. Returns how
    /// many hashes of contents that frees.
    fn reduce(&mut self, at: usize) -> usize {
        let Some(ended) = self.ended.remove(at) else { return 0 };
        for read in ended.results.read(&ended.session) {
            let is_same = |known: &PriorRead, read: &PriorRead| {
                (&known.tool, known.labels) == (&read.tool, read.labels)
            };
            keep_longest(&mut self.older, read, &ended.end, is_same);
        }
        for given in ended.results.all_given() {
            keep_longest(&mut self.older_given, given, &ended.end, PartialEq::eq);
        }
        ended.hashes
    }

    /// Until when something of this counts, if no session is open.
    fn until(&self) -> Option<Instant> {
        let given = self.older_given.iter().map(|(_, end)| end.until());
        let older = self.older.iter().map(|(_, end)| end.until()).chain(given);
        self.ended.iter().map(|ended| ended.end.until()).chain(older).max()
    }

    fn is_empty(&self) -> bool {
        let is_older = !self.older.is_empty() || !self.older_given.is_empty();
        self.live.is_empty() && self.ended.is_empty() && !is_older
    }
}

/// Adds what an ended session knew. What is known already counts until the later end.
fn keep_longest<T>(
    all: &mut Vec<(T, SessionEnd)>,
    one: T,
    end: &SessionEnd,
    is_same: impl Fn(&T, &T) -> bool,
) {
    match all.iter_mut().find(|(known, _)| is_same(known, &one)) {
        Some((_, known)) if known.until() >= end.until() => {}
        Some((_, known)) => *known = end.clone(),
        None => all.push((one, end.clone())),
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

impl SessionEnd {
    /// Until then the results count.
    fn until(&self) -> Instant {
        self.at + self.keep.get()
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

    /// How many sessions with known contents, and how many tools of older ones, `ada` has read.
    fn read_by(callers: &CallerReads, caller: &str, now: Instant) -> (usize, usize) {
        let others = callers.others(&name(caller), &name("another session"), now);
        (others.results.len(), others.older.len())
    }

    fn end_session(callers: &CallerReads, caller: &str, number: usize) -> SharedResults {
        let results = SharedResults::with_a_result(number);
        drop(callers.register(&name(caller), &name(&format!("s{number}")), &results, &keep(HOUR)));
        results
    }

    #[test]
    fn what_a_caller_read_counts_for_a_time_and_for_that_caller_alone() {
        let callers = CallerReads::default();
        let results = SharedResults::default();
        let (ada, bob) = ("ada", "bob");
        let first = callers.register(&name(ada), &name("s_1"), &results, &keep(HOUR));
        let now = Instant::now();
        assert_eq!(read_by(&callers, ada, now), (1, 0), "while it lasts");
        let own = callers.others(&name(ada), &name("s_1"), now);
        assert_eq!(own.results.len(), 0, "a session is no other one");
        assert_eq!(read_by(&callers, bob, now), (0, 0));
        drop(first);
        assert_eq!(read_by(&callers, ada, now + HOUR / 2), (1, 0));
        assert_eq!(read_by(&callers, bob, now + HOUR / 2), (0, 0));
        assert_eq!(read_by(&callers, ada, now + 2 * HOUR), (0, 0));
        assert!(callers.0.lock().callers.is_empty(), "nothing is left");
    }

    #[test]
    fn a_new_time_holds_for_the_sessions_of_the_old_one() {
        let (callers, time) = (CallerReads::default(), keep(Duration::ZERO));
        let register = |session: &str| {
            callers.register(&name("ada"), &name(session), &SharedResults::default(), &time)
        };
        let (first, second) = (register("s_1"), register("s_2"));
        let sessions = |after| read_by(&callers, "ada", Instant::now() + after).0;
        assert_eq!(sessions(Duration::ZERO), 0, "sessions are apart");
        drop(second);
        time.set(HOUR);
        assert_eq!(sessions(Duration::ZERO), 1, "what an open session has read counts");
        drop(first);
        assert_eq!(sessions(HOUR / 2), 1);
        time.set(2 * HOUR);
        assert_eq!(sessions(HOUR + HOUR / 2), 1, "a longer time");
        time.set(HOUR / 4);
        assert_eq!(sessions(HOUR / 2), 0, "a shorter time");
        assert!(callers.0.lock().callers.is_empty(), "nothing is left");
    }

    #[test]
    fn the_contents_of_many_sessions_are_reduced_to_their_tools() {
        let callers = CallerReads::default();
        for number in 0..WITH_CONTENTS + 3 {
            end_session(&callers, "ada", number);
        }
        let now = Instant::now();
        assert_eq!(read_by(&callers, "ada", now), (WITH_CONTENTS, 1));
        let given = |caller: &str, now: Instant| {
            callers.given_by_others(&name(caller), &name("x"), &"notes".into(), now)
        };
        let known: LabelSet = toolgate_flow::Label::Private.into();
        for _ in 0..=WITH_CONTENTS {
            drop(callers.register(
                &name("ada"),
                &name("s"),
                &SharedResults::default(),
                &keep(HOUR),
            ));
        }
        assert_eq!(given("ada", now), known, "the sessions that gave it are reduced too");
        assert_eq!(given("bob", now), LabelSet::EMPTY);
        assert_eq!(given("ada", now + 2 * HOUR), LabelSet::EMPTY);
        assert_eq!(read_by(&callers, "ada", now + 2 * HOUR), (0, 0));
        assert_eq!(callers.0.lock().hashes, 0, "what has expired is not counted");
    }

    /// Many sessions of others, and of the caller itself, do not make it forget.
    #[test]
    fn ended_sessions_are_bounded_and_no_caller_forgets() {
        let callers = CallerReads::default();
        end_session(&callers, "ada", 0);
        for number in 1..=ENDED {
            end_session(&callers, &format!("c{}", number % 500), number);
        }
        assert_eq!(callers.0.lock().ended.len(), ENDED);
        assert_eq!(read_by(&callers, "ada", Instant::now()), (0, 1));
        let with_contents = |sessions: &SessionsOfCaller| sessions.ended.len();
        let stored: usize = callers.0.lock().callers.values().map(with_contents).sum();
        assert!(stored <= ENDED, "{stored}");
    }

    #[test]
    fn the_number_of_callers_is_bounded() {
        let callers = CallerReads::default();
        let results = SharedResults::default();
        let open = callers.register(&name("open"), &name("s"), &results, &keep(HOUR));
        for number in 0..=CALLERS {
            let caller = name(&format!("c{number}"));
            drop(callers.register(&caller, &name("s"), &results, &keep(HOUR)));
        }
        let known = callers.0.lock().callers.len();
        assert!(known <= CALLERS, "{known}");
        assert_eq!(read_by(&callers, "open", Instant::now()), (1, 0));
        drop(open);
    }
}
