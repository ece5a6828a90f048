//! The sessions of the legacy era.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{events::Streams, refusal::Refusal};
use crate::{caller::Caller, conversation::Conversation, token};

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) caller: Caller,
    /// Where it was begun; it is known nowhere else.
    pub(crate) place: Arc<str>,
    pub(crate) version: &'static str,
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) streams: Streams,
    used: Mutex<Instant>,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    limit: usize,
    limit_per_caller: usize,
    idle: Duration,
}

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<String, Arc<Session>>,
    /// For whom a place is kept while what is to take it is being made.
    promised: Vec<Caller>,
}

/// A place for a session. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Room {
    sessions: Arc<Sessions>,
    caller: Caller,
    taken: bool,
}

/// A session that was used within this time is not ended to make room for another.
const SPARED: Duration = Duration::from_mins(1);

/// How long requests have to come to an answer when what answers them has ended.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

impl Session {
    pub(crate) fn new(
        caller: Caller,
        place: Arc<str>,
        version: &'static str,
        conversation: Arc<Conversation>,
        streams: Streams,
    ) -> Self {
        let used = Mutex::new(Instant::now());
        Self { caller, place, version, conversation, streams, used }
    }

    fn is_in_use(&self) -> bool {
        self.conversation.is_busy() || self.streams.standing().is_read()
    }

    fn unused_for(&self, now: Instant) -> Duration {
        if self.is_in_use() {
            *self.used.lock() = now;
        }
        now.saturating_duration_since(*self.used.lock())
    }

    fn end(self: Arc<Self>) {
        self.streams.end();
        tokio::spawn(async move { self.conversation.end().await });
    }
}

impl Sessions {
    pub(crate) fn new(limit: usize, limit_per_caller: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), limit, limit_per_caller, idle }
    }

    /// Keeps a place for one more, before anything is made for it. Where there is none, the longest
    /// unused may have to go.
    pub(crate) fn make_room(self: &Arc<Self>, caller: &Caller) -> Result<Room, Refusal> {
        let now = Instant::now();
        let room = || Room { sessions: Arc::clone(self), caller: caller.clone(), taken: false };
        let mut table = self.table.lock();
        let own = table.sessions.values().filter(|session| session.caller == *caller).count()
            + table.promised.iter().filter(|promised| *promised == caller).count();
        let has_own_room = own < self.limit_per_caller;
        if has_own_room && table.sessions.len() + table.promised.len() < self.limit {
            table.promised.push(caller.clone());
            return Ok(room());
        }
        let oldest = table
            .sessions
            .iter()
            .filter(|(_, session)| has_own_room || session.caller == *caller)
            .map(|(id, session)| (session.unused_for(now), id))
            .max()
            .filter(|(unused, _)| *unused > SPARED.min(self.idle))
            .map(|(_, id)| id.clone());
        let Some(session) = oldest.and_then(|id| table.sessions.remove(&id)) else {
            return Err(full());
        };
        table.promised.push(caller.clone());
        drop(table);
        session.end();
        Ok(room())
    }

    /// Takes a session in, and gives its id. It ends when its face can answer no more.
    pub(crate) fn insert(
        self: &Arc<Self>,
        session: Session,
        mut room: Room,
    ) -> Result<String, Refusal> {
        let session = Arc::new(session);
        let id = match token::unguessable() {
            Ok(id) => id,
            Err(error) => {
                session.end();
                return Err(Refusal::with(StatusCode::INTERNAL_SERVER_ERROR, error));
            }
        };
        {
            let mut table = self.table.lock();
            table.give_up(&room.caller);
            room.taken = true;
            table.sessions.insert(id.clone(), Arc::clone(&session));
        }
        let (sessions, ended) = (Arc::downgrade(self), id.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = session.conversation.face().closed() => {}
                () = session.conversation.ended() => return,
            }
            if let Some(sessions) = sessions.upgrade() {
                sessions.table.lock().sessions.remove(&ended);
            }
            // What was under way is told why.
            let _ = tokio::time::timeout(LAST_ANSWERS, session.conversation.idle()).await;
            session.end();
        });
        Ok(id)
    }

    /// The session of this id, if it is the caller's and was begun here. That there is one of
    /// somebody else is not told.
    pub(crate) fn get(
        &self,
        id: &str,
        caller: &Caller,
        place: &Arc<str>,
    ) -> Result<Arc<Session>, Refusal> {
        let session = self.table.lock().sessions.get(id).cloned();
        let session =
            session.filter(|session| session.caller == *caller && session.place == *place);
        let Some(session) = session else {
            let message = "there is no such session; begin anew with initialize";
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };
        *session.used.lock() = Instant::now();
        Ok(session)
    }

    /// Ends a session.
    pub(crate) fn remove(
        &self,
        id: &str,
        caller: &Caller,
        place: &Arc<str>,
    ) -> Result<(), Refusal> {
        self.get(id, caller, place)?;
        let session = self.table.lock().sessions.remove(id);
        if let Some(session) = session {
            session.end();
        }
        Ok(())
    }

    /// Ends what nobody has used for long.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.table.lock().sessions.retain(|_, session| {
            let keep = session.unused_for(now) < self.idle;
            if !keep {
                ended.push(Arc::clone(session));
            }
            keep
        });
        for session in ended {
            session.end();
        }
    }

    /// Ends all, and waits for it. Requests that are under way are told on their streams.
    pub(crate) async fn end(&self) {
        let all: Vec<_> = self.table.lock().sessions.drain().map(|(_, session)| session).collect();
        let ending = all.iter().map(|session| async {
            session.streams.standing().end();
            session.conversation.end().await;
            session.streams.end();
        });
        futures::future::join_all(ending).await;
    }
}

impl Table {
    fn give_up(&mut self, caller: &Caller) {
        if let Some(index) = self.promised.iter().position(|promised| promised == caller) {
            self.promised.swap_remove(index);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if !self.taken {
            self.sessions.table.lock().give_up(&self.caller);
        }
    }
}

fn full() -> Refusal {
    let message = "there are too many sessions; end one, or try again later";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use serde_json::Value;
    use toolgate_mcp::ErrorObject;

    use super::*;
    use crate::{
        era::Era,
        face::{Asked, Face},
        greeting::Greeting,
        link::Questions,
    };

    /// A face that is never spoken to.
    #[derive(Debug)]
    struct Silent;

    impl Face for Silent {
        fn greeting(&self, _era: Era) -> BoxFuture<'_, Result<Greeting, ErrorObject>> {
            Box::pin(std::future::pending())
        }

        fn request(&self, _asked: Asked) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }

        fn notification(&self, _method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn header_schema<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, Option<Value>> {
            Box::pin(std::future::ready(None))
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn closed(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_place_is_kept_while_a_session_is_made() {
        let sessions = Arc::new(Sessions::new(3, 2, Duration::from_mins(1)));
        let (greedy, other) = (Caller::named("greedy"), Caller::named("other"));
        let first = sessions.make_room(&greedy).unwrap();
        let second = sessions.make_room(&greedy).unwrap();
        assert!(sessions.make_room(&greedy).is_err(), "it has what one may have");
        let third = sessions.make_room(&other).unwrap();
        assert!(sessions.make_room(&other).is_err(), "there are as many as there may be");
        let questions = Questions::new(Duration::from_mins(1));
        let conversation = Conversation::new(Arc::new(Silent), Arc::default(), questions, 8);
        let place: Arc<str> = "/mcp".into();
        let session =
            Session::new(greedy.clone(), place, "2025-11-25", conversation, Streams::new());
        sessions.insert(session, first).unwrap();
        assert!(sessions.make_room(&greedy).is_err() && sessions.make_room(&other).is_err());
        drop(second);
        assert!(sessions.make_room(&greedy).is_ok(), "what came to nothing takes no place");
        drop(third);
        assert!(sessions.make_room(&other).is_ok());
        assert!(sessions.table.lock().promised.is_empty());
    }

    #[tokio::test]
    async fn a_session_is_its_callers_and_known_where_it_began() {
        let sessions = Arc::new(Sessions::new(8, 8, Duration::from_mins(1)));
        let questions = Questions::new(Duration::from_mins(1));
        let conversation = Conversation::new(Arc::new(Silent), Arc::default(), questions, 8);
        let (mine, other) = (Caller::named("me"), Caller::named("other"));
        let (here, there): (Arc<str>, Arc<str>) = ("/mcp".into(), "/mcp/work".into());
        let place = Arc::clone(&here);
        let session = Session::new(mine.clone(), place, "2025-11-25", conversation, Streams::new());
        let room = sessions.make_room(&mine).unwrap();
        let id = sessions.insert(session, room).unwrap();
        assert!(sessions.get(&id, &other, &here).is_err());
        assert!(sessions.get(&id, &mine, &there).is_err());
        assert!(sessions.remove(&id, &other, &here).is_err(), "nor can another end it");
        assert!(sessions.get(&id, &mine, &here).is_ok());
        sessions.remove(&id, &mine, &here).unwrap();
        assert!(sessions.get(&id, &mine, &here).is_err());
    }
}
