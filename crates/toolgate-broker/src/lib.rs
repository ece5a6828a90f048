//! The one way to call a tool.
//!
//! Direct calls, `call_tool`, scripts, chat and the command line all end in [`Broker::call`]:
//! resolve the name, validate the arguments, dispatch. Authorisation, data flow and the record
//! have their place between these steps.
//!
//! > **Invariant:** no other crate calls `Upstream::call`.

mod broker;
mod validate;

pub use broker::{Broker, BrokerError, Rules, ServerRules, SharedCatalog};
pub use validate::{InvalidArguments, Uncheckable, Violation};
