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
    table: Mutex<HashMap<String, Arc<Session>>>,
    limit: usize,
    limit_per_caller: usize,
    idle: Duration,
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

    /// Whether there is room for one more. Makes room where the longest unused can go.
    pub(crate) fn make_room(&self, caller: &Caller) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut table = self.table.lock();
        let own = table.values().filter(|session| session.caller == *caller).count();
        let has_own_room = own < self.limit_per_caller;
        if has_own_room && table.len() < self.limit {
            return Ok(());
        }
        let oldest = table
            .iter()
            .filter(|(_, session)| has_own_room || session.caller == *caller)
            .map(|(id, session)| (session.unused_for(now), id))
            .max()
            .filter(|(unused, _)| *unused > SPARED.min(self.idle))
            .map(|(_, id)| id.clone());
        let ended = oldest.and_then(|id| table.remove(&id));
        drop(table);
        let Some(session) = ended else { return Err(full()) };
        session.end();
        Ok(())
    }

    /// Takes a session in, and gives its id. It ends when its face can answer no more.
    pub(crate) fn insert(self: &Arc<Self>, session: Session) -> Result<String, Refusal> {
        let id = token::unguessable()
            .map_err(|error| Refusal::with(StatusCode::INTERNAL_SERVER_ERROR, error))?;
        let mut table = self.table.lock();
        // Others may have come in since room was made.
        if table.len() >= self.limit {
            drop(table);
            Arc::new(session).end();
            return Err(full());
        }
        let session = Arc::new(session);
        table.insert(id.clone(), Arc::clone(&session));
        drop(table);
        let (sessions, ended) = (Arc::downgrade(self), id.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = session.conversation.face().closed() => {}
                () = session.conversation.ended() => return,
            }
            if let Some(sessions) = sessions.upgrade() {
                sessions.table.lock().remove(&ended);
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
        let session = self.table.lock().get(id).cloned();
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
        let session = self.table.lock().remove(id);
        if let Some(session) = session {
            session.end();
        }
        Ok(())
    }

    /// Ends what nobody has used for long.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.table.lock().retain(|_, session| {
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
        let all: Vec<_> = self.table.lock().drain().map(|(_, session)| session).collect();
        let ending = all.iter().map(|session| async {
            session.streams.standing().end();
            session.conversation.end().await;
            session.streams.end();
        });
        futures::future::join_all(ending).await;
    }
}

fn full() -> Refusal {
    let message = "there are too many sessions; end one, or try again later";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use rmcp::ErrorData;
    use serde_json::Value;

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
        fn greeting(&self, _era: Era) -> BoxFuture<'_, Result<Greeting, ErrorData>> {
            Box::pin(std::future::pending())
        }

        fn request(&self, _asked: Asked) -> BoxFuture<'_, Result<Value, ErrorData>> {
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
    async fn a_session_is_its_callers_and_known_where_it_began() {
        let sessions = Arc::new(Sessions::new(8, 8, Duration::from_mins(1)));
        let questions = Questions::new(Duration::from_mins(1));
        let conversation = Conversation::new(Arc::new(Silent), Arc::default(), questions, 8);
        let (mine, other) = (Caller::named("me"), Caller::named("other"));
        let (here, there): (Arc<str>, Arc<str>) = ("/mcp".into(), "/mcp/work".into());
        let place = Arc::clone(&here);
        let session = Session::new(mine.clone(), place, "2025-11-25", conversation, Streams::new());
        let id = sessions.insert(session).unwrap();
        assert!(sessions.get(&id, &other, &here).is_err());
        assert!(sessions.get(&id, &mine, &there).is_err());
        assert!(sessions.remove(&id, &other, &here).is_err(), "nor can another end it");
        assert!(sessions.get(&id, &mine, &here).is_ok());
        sessions.remove(&id, &mine, &here).unwrap();
        assert!(sessions.get(&id, &mine, &here).is_err());
    }
}
