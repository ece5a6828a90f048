//! The life of the servers: start, supervision, restart, lists, logins, calls.
//!
//! [`Upstream`] has one supervisor for each server. Each connects on its own, with its own timeout. So
//! a slow or dead server never delays another. A [`ServerObserver`] gets the events.
//!
//! The connection itself is [`toolgate_mcp::client`]. [`ServerSpec::open_connection`] opens one without
//! a supervisor, for pass-through.
//!
//! > **Invariant:** a call that may have had an effect is never repeated.

mod announced_lists;
mod auth;
mod calls;
mod connection;
mod error;
mod forwarding;
mod handshake;
mod input_handler;
mod input_requests;
mod input_required;
mod listing;
mod placement;
mod server;
mod spec;
mod upstream;

pub use auth::{
    ACCESS_TOKEN_TYPE, AuthorizationSettings, Authorizer, CALLBACK, CallbackListener,
    CallerLoginSettings, CallerLogins, LOGIN_PATH, Login, LoginCredentials, LoginError, LoginEvent,
    LoginState, LogoutOutcome, PendingLogin, PendingLogins, SubjectToken, TokenSource,
};
pub use connection::{CallOptions, LogSink, Progress, SendCheck, SubscriptionEvent};
pub use error::CallError;
pub use forwarding::{forwarded_error, not_begun};
pub use handshake::Handshake;
pub use input_handler::{ClientId, ClientKey, InputHandler, can_answer};
pub use input_required::required_pages;
pub use listing::{Listing, ListingProblem};
pub use placement::{PlacedServer, ServerPlacement, ServerPlaces};
pub use server::{ServerState, StateKind};
pub use spec::{LateValues, ServerSpec, StartMode};
pub use toolgate_mcp::{
    HttpDialect, InstanceMode,
    client::{
        CallHold, ConnectFailure, ConnectionClient, ConnectionHandler, Endpoint, HttpEndpoint,
        InProcessServer, InputRequest, OutputSource, ProcessLineage, RawConnection, RawRequest,
        Redactor, RelatedRequest, RequestError, ServerLimits, StdioEndpoint, TokenProvider,
        launcher_main, lineage_of, own_lineage, use_launcher,
    },
};
pub use upstream::{ServerObserver, ServerPool, Upstream};
