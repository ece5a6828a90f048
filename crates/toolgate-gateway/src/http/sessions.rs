//! The legacy sessions of an HTTP endpoint.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::{error::HttpError, streams::SessionStreams};
use crate::{
    modern::random_id,
    service::{AuthenticatedClient, Owner},
    session::LegacySession,
};

#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) owner: Owner,
    pub(crate) session: Arc<LegacySession>,
    pub(crate) streams: SessionStreams,
    /// The parameters of its `initialize`, with which another node opens it again.
    pub(crate) params: Option<Value>,
    last_used: Mutex<Instant>,
    /// When it was last stored for other nodes.
    stored: Mutex<Instant>,
}

/// All sessions, by their ids.
#[derive(Debug)]
pub(crate) struct SessionTable {
    entries: Mutex<SessionEntries>,
    limit: usize,
    limit_per_caller: usize,
    /// After this time an unused session ends.
    idle: Duration,
}

#[derive(Debug, Default)]
struct SessionEntries {
    sessions: HashMap<String, Arc<HttpSession>>,
    /// The callers whose sessions are being created. They count towards the limits.
    reserved: Vec<AuthenticatedClient>,
}

/// Reserves capacity for a session. Dropping it releases the capacity.
#[derive(Debug)]
pub(crate) struct SessionReservation {
    table: Arc<SessionTable>,
    caller: AuthenticatedClient,
    is_used: bool,
}

/// A session that was used within this time is not ended in favour of another caller.
const MIN_IDLE: Duration = Duration::from_mins(1);
/// How long requests may take to finish after their service closed.
const FINISH_TIMEOUT: Duration = Duration::from_millis(500);

impl HttpSession {
    pub(crate) fn new(owner: Owner, session: Arc<LegacySession>, streams: SessionStreams) -> Self {
        let (last_used, stored) = (Mutex::new(Instant::now()), Mutex::new(Instant::now()));
        Self { owner, session, streams, params: None, last_used, stored }
    }

    /// The same session with the parameters of its `initialize`.
    pub(crate) fn opened_with(self, params: Option<Value>) -> Self {
        Self { params, ..self }
    }

    /// Whether it was not stored for this time. Then it counts as stored now.
    pub(crate) fn is_due(&self, pause: Duration) -> bool {
        let mut stored = self.stored.lock();
        let is_due = stored.elapsed() >= pause;
        if is_due {
            *stored = Instant::now();
        }
        is_due
    }

    /// How long it was not used; `None` if it is in use.
    fn unused_for(&self, now: Instant) -> Option<Duration> {
        let mut last_used = self.last_used.lock();
        if self.session.is_busy() || self.streams.general.is_read() {
            *last_used = now;
            return None;
        }
        Some(now.saturating_duration_since(*last_used))
    }

    fn end(self: Arc<Self>) {
        self.streams.end();
        tokio::spawn(async move { self.session.end().await });
    }
}

impl SessionTable {
    pub(crate) fn new(limit: usize, limit_per_caller: usize, idle: Duration) -> Arc<Self> {
        Arc::new(Self { entries: Mutex::default(), limit, limit_per_caller, idle })
    }

    /// Reserves capacity before anything is created for the session. If a limit is reached, the session
    /// that was unused for the longest time is ended: one of the caller, or one of another caller that
    /// was unused for some time. A session in use is not ended.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        caller: &AuthenticatedClient,
    ) -> Result<SessionReservation, HttpError> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let own = entries.sessions.values().filter(|it| it.owner.caller == *caller).count()
            + entries.reserved.iter().filter(|reserved| *reserved == caller).count();
        let is_below_own_limit = own < self.limit_per_caller;
        let evicted =
            if is_below_own_limit && entries.sessions.len() + entries.reserved.len() < self.limit {
                None
            } else {
                let oldest = entries
                    .sessions
                    .iter()
                    .filter_map(|(id, session)| {
                        let is_own = session.owner.caller == *caller;
                        let unused = session.unused_for(now)?;
                        let is_idle = unused > MIN_IDLE.min(self.idle);
                        (is_own || is_below_own_limit && is_idle).then_some((unused, id))
                    })
                    .max()
                    .map(|(_, id)| id.clone());
                let evicted = oldest.and_then(|id| entries.sessions.remove(&id));
                Some(evicted.ok_or_else(|| {
                    let message = "there are too many sessions; end one, or try again later";
                    HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message)
                })?)
            };
        entries.reserved.push(caller.clone());
        drop(entries);
        evicted.into_iter().for_each(HttpSession::end);
        Ok(SessionReservation { table: Arc::clone(self), caller: caller.clone(), is_used: false })
    }

    /// Adds a session and returns its id. The session ends when its service closes.
    pub(crate) fn insert(
        self: &Arc<Self>,
        session: HttpSession,
        reservation: SessionReservation,
    ) -> Result<String, HttpError> {
        let id = match random_id() {
            Ok(id) => id,
            Err(error) => {
                Arc::new(session).end();
                return Err(HttpError::with(StatusCode::INTERNAL_SERVER_ERROR, error));
            }
        };
        self.insert_as(id.clone(), session, reservation);
        Ok(id)
    }

    /// Adds a session under an id that it has already.
    pub(crate) fn insert_as(
        self: &Arc<Self>,
        id: String,
        session: HttpSession,
        mut reservation: SessionReservation,
    ) {
        let session = Arc::new(session);
        {
            let mut entries = self.entries.lock();
            entries.release(&reservation.caller);
            reservation.is_used = true;
            let replaced = entries.sessions.insert(id.clone(), Arc::clone(&session));
            replaced.into_iter().for_each(HttpSession::end);
        }
        let (table, session_id) = (Arc::downgrade(self), id);
        tokio::spawn(async move {
            tokio::select! {
                () = session.session.service.closed() => {}
                () = session.session.ended() => return,
            }
            if let Some(table) = table.upgrade() {
                table.entries.lock().sessions.remove(&session_id);
            }
            // Requests in progress get an error from the service.
            let _ = tokio::time::timeout(FINISH_TIMEOUT, session.session.idle()).await;
            session.end();
        });
    }

    /// Whether a request of any session is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.entries.lock().sessions.values().any(|session| session.session.is_busy())
    }

    /// The session with this id. The error does not reveal that another owner has such a session.
    pub(crate) fn get(&self, id: &str, owner: &Owner) -> Result<Arc<HttpSession>, HttpError> {
        let session = self.entries.lock().sessions.get(id).cloned();
        let Some(session) = session.filter(|session| session.owner == *owner) else {
            let message = "there is no such session; start a new one with initialize";
            return Err(HttpError::new(StatusCode::NOT_FOUND, message));
        };
        *session.last_used.lock() = Instant::now();
        Ok(session)
    }

    /// Ends a session.
    pub(crate) fn remove(&self, id: &str, owner: &Owner) -> Result<(), HttpError> {
        self.get(id, owner)?;
        let session = self.entries.lock().sessions.remove(id);
        session.into_iter().for_each(HttpSession::end);
        Ok(())
    }

    /// Ends the sessions that are idle for too long.
    pub(crate) fn remove_idle(&self) {
        let now = Instant::now();
        let is_idle = |session: &HttpSession| {
            session.unused_for(now).is_some_and(|unused| unused >= self.idle)
        };
        let mut entries = self.entries.lock();
        let removed: Vec<_> = entries.sessions.extract_if(|_, session| is_idle(session)).collect();
        drop(entries);
        for (_, session) in removed {
            session.end();
        }
    }

    /// Ends all sessions. Requests in progress get an error on their streams first.
    pub(crate) async fn end(&self) {
        let all: Vec<_> = self.entries.lock().sessions.drain().map(|(_, it)| it).collect();
        let ending = all.iter().map(|session| async {
            session.streams.general.end();
            session.session.end().await;
            session.streams.end();
        });
        futures::future::join_all(ending).await;
    }
}

impl SessionEntries {
    fn release(&mut self, caller: &AuthenticatedClient) {
        if let Some(index) = self.reserved.iter().position(|reserved| reserved == caller) {
            self.reserved.swap_remove(index);
        }
    }
}

impl Drop for SessionReservation {
    fn drop(&mut self) {
        if !self.is_used {
            self.table.entries.lock().release(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use serde_json::json;
    use toolgate_mcp::{ErrorObject, JsonObject, JsonRpcRequest};

    use super::*;
    use crate::{
        era::{Era, ServerInfo},
        http::streams::GeneralSink,
        service::{ClientInfo, IncomingRequest, McpService, ServiceFactory},
        session::SessionOptions,
    };

    /// A service that gets no requests.
    #[derive(Debug)]
    struct UnusedService;

    impl McpService for UnusedService {
        fn server_info(&self, era: Era) -> BoxFuture<'_, Result<ServerInfo, ErrorObject>> {
            Box::pin(std::future::ready(Ok(ServerInfo { era, fields: JsonObject::new() })))
        }

        fn request(&self, _request: IncomingRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
            Box::pin(std::future::pending())
        }

        fn notification(&self, _method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }

        fn header_schema<'a>(&'a self, _tool: &'a str) -> BoxFuture<'a, Option<Value>> {
            Box::pin(std::future::ready(None))
        }
    }

    impl ServiceFactory for UnusedService {
        fn open(&self, _: ClientInfo) -> BoxFuture<'_, Result<Arc<dyn McpService>, ErrorObject>> {
            Box::pin(std::future::ready(Ok(Arc::new(Self) as Arc<dyn McpService>)))
        }
    }

    fn owner(name: &str, path: &str) -> Owner {
        Owner { caller: AuthenticatedClient::named(name), path: path.into() }
    }

    async fn session(owner: &Owner) -> HttpSession {
        let streams = SessionStreams::new();
        let options = SessionOptions {
            caller: owner.caller.clone(),
            sink: Arc::new(GeneralSink(Arc::downgrade(&streams.general))),
            input_timeout: Duration::from_mins(1),
            max_in_flight: 8,
        };
        let params = Some(json!({ "protocolVersion": "2025-11-25" }));
        let request = JsonRpcRequest { id: json!(1), method: "initialize".to_owned(), params };
        let opened = LegacySession::initialize(&UnusedService, &request, options).await;
        HttpSession::new(owner.clone(), opened.unwrap().0, streams)
    }

    #[tokio::test]
    async fn capacity_is_reserved_while_a_session_is_created() {
        let sessions = SessionTable::new(3, 2, Duration::from_mins(1));
        let (greedy, other) = (owner("greedy", "/mcp"), owner("other", "/mcp"));
        let first = sessions.reserve(&greedy.caller).unwrap();
        let second = sessions.reserve(&greedy.caller).unwrap();
        assert!(sessions.reserve(&greedy.caller).is_err(), "the limit of a caller");
        let third = sessions.reserve(&other.caller).unwrap();
        assert!(sessions.reserve(&other.caller).is_err(), "the limit of all callers");
        let oldest = sessions.insert(session(&greedy).await, first).unwrap();
        assert!(sessions.reserve(&other.caller).is_err(), "that of another is too new");
        let makes_room = sessions.reserve(&greedy.caller).unwrap();
        assert!(sessions.get(&oldest, &greedy).is_err(), "the caller's own made room");
        assert!(sessions.reserve(&greedy.caller).is_err(), "what is being created does not");
        drop((makes_room, second));
        assert!(sessions.reserve(&greedy.caller).is_ok(), "an unused reservation is released");
        drop(third);
        assert!(sessions.reserve(&other.caller).is_ok());
        assert!(sessions.entries.lock().reserved.is_empty());
    }

    #[tokio::test]
    async fn a_session_belongs_to_its_caller_and_endpoint() {
        let sessions = SessionTable::new(8, 8, Duration::from_mins(1));
        let (mine, other) = (owner("me", "/mcp"), owner("other", "/mcp"));
        let reservation = sessions.reserve(&mine.caller).unwrap();
        let id = sessions.insert(session(&mine).await, reservation).unwrap();
        assert!(sessions.get(&id, &other).is_err());
        assert!(sessions.get(&id, &owner("me", "/mcp/work")).is_err());
        assert!(sessions.remove(&id, &other).is_err(), "another caller cannot end it");
        assert!(sessions.get(&id, &mine).is_ok());
        sessions.remove(&id, &mine).unwrap();
        assert!(sessions.get(&id, &mine).is_err());
    }
}
