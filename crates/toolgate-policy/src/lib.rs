//! Who may call what, decided purely; and definitions that change.
//!
//! This room is pure: no file, no clock, no socket. It answers three questions.
//!
//! - **What becomes of a call?** A [`Policy`] is made of [`PolicySettings`]; [`Policy::of`] gives the
//!   rules for one tool, and [`ToolPolicy::decide`] a [`Decision`] for its arguments and its data.
//!   [`ToolPolicy::explain`] says which rule it was and why not another. Where a person said yes
//!   before, [`Grants`] know it.
//! - **Where does the data go?** Labels on servers and tools say what is private, what strangers
//!   wrote, what leaves the house. The caller brings a [`Flow`]; rules weigh it.
//! - **Is a tool what it was?** [`definitions`] has the lock file, the comparison with what a server
//!   lists now, and the search for texts and names that aim at the model.
//!
//! What cannot be judged counts against the call, everywhere.

mod annotations;
mod argument;
pub mod definitions;
mod explanation;
mod flow;
mod grant;
mod index;
mod pattern;
mod policy;
mod rule;
mod settings;
mod verdict;

pub use annotations::{Annotations, Hint, READING, is_reading, request_as_tool};
pub use argument::{
    ArgumentConditions, ArgumentPath, ConditionError, ConditionProblem, ConditionTextError,
    MAX_CONDITIONS, MAX_SEGMENTS, OPERATORS,
};
pub use explanation::{Considered, Decision, Explanation, FlowFinding, Ground, Lost};
pub use flow::{Contact, Evidence, Flow, FlowCondition};
pub use grant::{
    Authorisation, Full, Grant, GrantId, GrantRequest, GrantScope, GrantedArguments, Grants,
    MAX_GRANTS, Timestamp,
};
pub use pattern::{MAX_PATTERN_BYTES, NamePattern, PatternError, ToolPattern};
pub use policy::{Policy, ToolPolicy};
pub use rule::{Breadth, Rule, RuleOrigin, RuleTarget, Specificity, Trust};
pub use settings::{MAX_RULES, PolicySettings, ServerPolicy, ToolPolicySettings};
/// Who servers and tools are, as the catalogue has it.
pub use toolgate_catalog::{ServerName, ToolId};
/// What is said of data.
pub use toolgate_flow::{Label, LabelSet};
pub use verdict::{Claims, Findings, FlowMode, Mode, NewTools, Verdict};
