//! The client side: one connection to one server, over stdio, Streamable HTTP, HTTP+SSE or in memory.
//!
//! A [`RawConnection`] knows what it needs to keep a connection: ids, sessions, the handshakes of
//! both eras, and which request a message belongs to. Requests, results, errors, notifications and
//! input requests pass through it as JSON, in both directions.
//!
//! > **Invariant:** a request that may have had an effect is never repeated.
//!
//! Child processes are started in their own session and never outlive toolgate (`process`).

mod backoff;
mod clock;
mod connection;
mod descendants;
mod endpoint;
mod exchange;
mod failure;
mod handshake;
mod http;
mod in_process;
mod incoming;
mod launcher;
mod lineage;
mod parameters;
mod process;
mod redact;
mod request_meta;
mod spare;
mod sse;
mod stderr;
mod stdio;
mod streamable;
mod transport;
mod watchdog;

pub use backoff::Backoff;
pub use clock::{OpenInputRequest, OpenInputRequests, PERSON_TIMEOUT};
pub use connection::{
    AFTER_CANCELLATION, CallHold, ConnectionClient, ConnectionHandler, ConnectionSettings,
    InputRequest, OutputSource, PendingRequest, RawConnection, RawRequest, RelatedRequest,
    RequestError, TransportFailure, answered,
};
pub use endpoint::{Endpoint, HttpEndpoint, ServerLimits, StdioEndpoint, place};
pub use failure::{AuthorizationError, ConnectFailure, START_OR_CORRECT, error_chain};
pub use http::{TokenProvider, TokenVerdict, bearer_challenge};
pub use in_process::InProcessServer;
pub use incoming::without_single_surrogates;
pub use launcher::{launcher_main, use_launcher};
pub use lineage::{ProcessLineage, lineage_of, own_lineage};
pub use redact::Redactor;
pub use spare::SpareProcesses;
