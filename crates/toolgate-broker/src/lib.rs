//! The one way to call a tool.
//!
//! Direct calls, `call_tool`, scripts, chat and the command line all end in [`Broker::call`]: resolve
//! the name, validate the arguments, pass the [`Gate`], dispatch. The gate sees which earlier results the
//! arguments contain, decides by the policy, asks a person where it says so, learns the result, and
//! records all of it. What else is asked of servers (resources, prompts), and what a client sends to one
//! server as it is, passes the same gate.
//!
//! > **Invariant:** no other crate calls `Upstream::call`.

mod ask;
mod broker;
mod context;
mod error;
mod gate;
mod grants;
mod guard;
mod lanes;
mod record;
mod recording;
mod validate;
mod watch;

pub use ask::{Asker, Extent, Inquiry, Lasts, PersonAnswer};
pub use broker::{Broker, Rules, ServerRules, SharedCatalog};
pub use context::{
    CallContext, Caller, Decided, MadeBy, Pause, RunContext, RunLedger, Seat, SessionContext,
    new_id,
};
pub use error::BrokerError;
pub use gate::{Admitted, Gate};
pub use grants::{now, read_grants, write_grant};
pub use guard::{Endpoints, GuardSettings};
pub use record::Audit;
pub use validate::{InvalidArguments, Uncheckable, Violation};
pub use watch::{ReadBefore, ResultOrigin};
