//! The one way to call a tool.
//!
//! Direct calls, `call_tool`, scripts, chat and the command line all end in [`Broker::call`]:
//! resolve the name, validate the arguments, see which earlier results they contain, decide by the
//! policy, ask a person where it says so, dispatch, learn the result, and record all of it.
//!
//! > **Invariant:** no other crate calls `Upstream::call`.

mod ask;
mod broker;
mod context;
mod error;
mod grants;
mod guard;
mod record;
mod recording;
mod validate;
mod watch;

pub use ask::{Asker, Inquiry, Lasts, PersonAnswer};
pub use broker::{Broker, Rules, ServerRules, SharedCatalog};
pub use context::{
    CallContext, Caller, Decided, MadeBy, RunContext, RunLedger, SessionContext, new_id,
};
pub use error::BrokerError;
pub use grants::{now, read_grants, write_grant};
pub use guard::GuardSettings;
pub use record::Audit;
pub use validate::{InvalidArguments, Uncheckable, Violation};
