//! Decides which calls are allowed, and detects changed or suspicious tool definitions.
//!
//! The crate uses no files, no clock and no sockets. It answers three questions.
//!
//! - **May this call be made?** A [`Policy`] is compiled from [`PolicySettings`]. [`Policy::of`]
//!   selects the rules for one tool, and [`ToolPolicy::decide`] makes a [`Decision`] for its
//!   arguments and its data. [`ToolPolicy::explain`] says which rule decided and why no other did.
//!   [`Grants`] are what people have allowed before.
//! - **Where does the data go?** Labels on servers and tools mark private data, untrusted data and
//!   tools that send data out. The caller supplies a [`Flow`], which rules evaluate.
//! - **Has a tool changed?** [`definitions`] contains the lock file, the comparison with what a
//!   server lists now, and the search for texts and names that try to manipulate the model.
//!
//! Whatever cannot be determined counts against the call.

mod annotations;
mod argument;
mod caller;
pub mod definitions;
mod explanation;
mod flow;
mod grant;
mod index;
mod limit;
mod pattern;
mod policy;
mod presence;
mod rule;
mod settings;
mod suggest;
mod verdict;

pub use annotations::{Annotations, Hint, READING, is_reading, request_as_tool};
pub use argument::{
    ArgumentConditions, ArgumentPath, ConditionAdvice, ConditionError, ConditionProblem,
    ConditionTextError, MAX_CONDITIONS, MAX_SEGMENTS, OPERATORS,
};
pub use caller::{CallPath, CallerCondition, CallerFacts};
pub use explanation::{Decision, Explanation, FlowFinding, Ground, OverriddenRule, OverrideReason};
pub use flow::{Contact, Evidence, Flow, FlowCondition, ScriptWay};
pub use grant::{
    Authorisation, Grant, GrantId, GrantRequest, GrantScope, GrantedArguments, Grants, GrantsFull,
    MAX_GRANTS, Timestamp,
};
pub use limit::{CallLimit, LimitKey};
pub use pattern::{MAX_PATTERN_BYTES, NamePattern, PatternError, ToolPattern};
pub use policy::{Policy, ToolPolicy};
pub use presence::Presence;
pub use rule::{Breadth, Rule, RuleOrigin, RuleTarget, Specificity, Trust};
pub use settings::{MAX_RULES, PolicySettings, RememberTime, ServerPolicy, ToolPolicySettings};
pub use suggest::{SuggestedLabel, SuggestedRule, Suggestion, suggest};
/// The identities of servers and tools, from the catalog.
pub use toolgate_catalog::{ServerName, ToolId};
/// The labels of data.
pub use toolgate_flow::{Label, LabelSet};
pub use verdict::{Claims, FindingsMode, FlowMode, Mode, NewTools, Verdict};
