//! The only sender of requests to servers.
//!
//! Direct calls, `call_tool`, scripts and the command line all end in [`Broker::call`]: it validates
//! the arguments and admits the call. To admit a request, the broker finds the earlier results that
//! the arguments contain, decides by the policy, and asks a person if the policy requires it. The
//! [`Admitted`] request is sent with [`Admitted::send`], which also remembers and records the result.
//! Requests for resources and prompts, and those of pass-through, take the same way.
//!
//! > **Invariant:** nothing reaches a server but by [`Admitted::send`]. The connections are private
//! > to the broker, and a raw connection requires a [`SendPermit`], which only the broker can make.

mod admitted;
mod approval;
mod audit;
mod authorize;
mod broker;
mod caller_reads;
mod context;
mod data_flow;
mod error;
mod grants;
mod limits;
mod queue;
mod script_flow;
mod validate;

pub use admitted::{Admitted, Outgoing, RawChannel, SendPermit};
pub use approval::{ApprovalPrompt, ApprovalRequest, GrantDuration, GrantExtent, PersonAnswer};
pub use audit::AuditOptions;
pub use authorize::{ClientForms, EndpointFingerprints};
pub use broker::{Broker, BrokerSettings, SharedCatalog, ValidationSettings};
pub use caller_reads::{CallerReads, KeepTime};
pub use context::{
    CallContext, CallJournal, CallJournalError, Caller, CallerLocation, MadeBy, Pause, RunContext,
    SessionContext, new_id,
};
pub use data_flow::{PriorRead, ResultOrigin};
pub use error::BrokerError;
pub use grants::{now, read_grants, write_grant};
pub use limits::{CallLimitReached, CallLimiter, LimitKind};
pub use queue::{AnswerError, QueuedCall};
pub use script_flow::{ScriptFlow, ScriptFlowEdge, ScriptSite};
pub use validate::{InvalidArguments, Uncheckable, Unfit, ValueSchema, Violation};
