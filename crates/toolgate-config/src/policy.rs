//! The words of the policy, and its part of the JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;
use toolgate_policy::{
    Claims, Findings, FlowMode, Hint, Label, MAX_RULES, Mode, NewTools, Verdict,
};

use crate::choice::{Choice, Named};

impl Choice for Verdict {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny)];
}

impl Choice for Mode {
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("allow", Self::Allow),
        ("ask", Self::Ask),
        ("ask-always", Self::AskAlways),
        ("deny-writes", Self::DenyWrites),
        ("deny", Self::Deny),
    ];
}

impl Choice for Claims {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("all", Self::All), ("trusted", Self::Trusted)];
}

impl Choice for FlowMode {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("content", Self::Content), ("labels", Self::Labels), ("off", Self::Off)];
}

impl Choice for NewTools {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("allow", Self::Allow), ("hold", Self::Hold)];
}

impl Choice for Findings {
    const CHOICES: &'static [(&'static str, Self)] = &[("warn", Self::Warn), ("hold", Self::Hold)];
}

impl Choice for Label {
    const CHOICES: &'static [(&'static str, Self)] =
        &[("private", Self::Private), ("untrusted", Self::Untrusted), ("egress", Self::Egress)];
}

impl Choice for Hint {
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("readOnlyHint", Self::ReadOnlyHint),
        ("destructiveHint", Self::DestructiveHint),
        ("idempotentHint", Self::IdempotentHint),
        ("openWorldHint", Self::OpenWorldHint),
    ];
}

/// One word for what holds unless a rule says otherwise, or all of it.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "the variants are read by the derive alone")]
pub(crate) enum PolicyFile {
    Mode(Named<Mode>),
    Policy(PolicyObject),
}

/// Who may call what.
///
/// A matching `deny` beats everything. Otherwise the most specific rule that applies decides: one
/// tool before a pattern of names, that before an annotation, that before a server, that before all
/// tools, and within each a rule with conditions before one without. Of equally specific rules the
/// later one decides. Rules about data answer a question of their own; the stricter answer holds.
#[derive(JsonSchema)]
#[schemars(rename = "Policy", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct PolicyObject {
    /// What holds for tools that no rule speaks of. `ask` and `deny-writes` let read-only tools
    /// through; `ask-always` does not. Unless set, `ask`.
    default: Option<Named<Mode>>,
    /// The rules.
    #[schemars(length(max = MAX_RULES))]
    rules: Option<Vec<RuleFile>>,
    /// How it is judged which data a call carries: by `content` that is found in its arguments, by
    /// `labels` that the run has touched, or not at all. Unless set, `content`.
    flow: Option<Named<FlowMode>>,
    /// What becomes of tools that a known server did not have before. Unless set, `allow`.
    new_tools: Option<Named<NewTools>>,
    /// What becomes of tools in whose definition something is suspicious: hidden characters, instructions
    /// aimed at the model, a name that can be taken for another server's. With `hold` they are held back
    /// until somebody approves them. Unless set, `warn`.
    findings: Option<Named<Findings>>,
    /// Whose claims count that a tool is harmless: those of `all` servers or of `trusted` ones.
    /// Unless set, `all`.
    claims: Option<Named<Claims>>,
    /// Labels of tools, by exposed names, `server/tool` and patterns of them.
    labels: Option<BTreeMap<String, OneOrMany<Named<Label>>>>,
}

/// A rule: which calls, and what becomes of them.
#[derive(JsonSchema)]
#[schemars(rename = "Rule", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct RuleFile {
    /// The server, or a pattern of servers.
    server: Option<String>,
    /// The tool: its exposed name, `server/tool` or, beside a `server`, its own name; or a pattern
    /// with `*` and `?`; or a list of these.
    tool: Option<OneOrMany<String>>,
    /// What is to be assumed of the tool, after its server's claims.
    annotations: Option<AnnotationsFile>,
    /// Whether its server is trusted.
    trusted: Option<bool>,
    /// What must hold of the call.
    when: Option<WhenFile>,
    /// What becomes of the call.
    verdict: Option<Named<Verdict>>,
    /// Why, for the person who is asked and the model that is refused.
    #[schemars(length(max = 500))]
    reason: Option<String>,
}

/// Claims of a server about a tool. What is not claimed is the worst.
#[derive(JsonSchema)]
#[schemars(rename = "Annotations", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
#[expect(clippy::struct_field_names, reason = "these are the names of MCP")]
pub(crate) struct AnnotationsFile {
    /// The tool changes nothing.
    read_only_hint: Option<bool>,
    /// What it changes may be lost.
    destructive_hint: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    idempotent_hint: Option<bool>,
    /// It deals with things outside of its server.
    open_world_hint: Option<bool>,
}

/// What must hold of a call.
#[derive(JsonSchema)]
#[schemars(rename = "When", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct WhenFile {
    /// Of its arguments, by JSON pointer (`/options/force`) or names with dots (`options.force`);
    /// `*` stands for every element. What cannot be judged counts against the call.
    arguments: Option<BTreeMap<String, ConditionFile>>,
    /// The arguments carry data with one of these labels.
    carries: Option<OneOrMany<Named<Label>>>,
    /// The tool has one of these labels.
    to: Option<OneOrMany<Named<Label>>>,
    /// Data with one of these labels has a say in the call.
    steered_by: Option<OneOrMany<Named<Label>>>,
}

/// What must hold of an argument: all that is set.
#[derive(JsonSchema)]
#[schemars(rename = "Condition", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct ConditionFile {
    /// It is this value.
    equals: Option<Value>,
    /// It is one of these values.
    #[schemars(length(min = 1, max = 1_000))]
    r#in: Option<Vec<Value>>,
    /// The whole text matches this regular expression.
    #[schemars(length(min = 1, max = 1_000))]
    matches: Option<String>,
    /// With false, a part of the text may match. Unless set, true.
    anchored: Option<bool>,
    /// The text begins with this.
    #[schemars(length(min = 1, max = 4_096))]
    prefix: Option<String>,
    /// The path is this folder or in it, after `.` and `..`. `${NAME}` stands for an environment
    /// variable.
    #[schemars(length(min = 1, max = 4_096))]
    under: Option<String>,
    /// The number is less than this.
    less: Option<f64>,
    /// The number is greater than this.
    greater: Option<f64>,
    /// Whether the argument is there, and not null.
    exists: Option<bool>,
    /// The URL has this host, or one of these.
    host: Option<OneOrMany<String>>,
    /// Whether subdomains of the host count too. Unless set, false.
    subdomains: Option<bool>,
}

/// One value or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "the variants are read by the derive alone")]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    /// The policy writes its own words in explanations; they are those that are read.
    fn agree<C: Choice + Serialize>() {
        for (name, value) in C::CHOICES {
            assert_eq!(serde_json::to_value(value).unwrap(), *name);
        }
    }

    #[test]
    fn the_words_are_those_of_the_policy() {
        agree::<Verdict>();
        agree::<Mode>();
        agree::<Claims>();
        agree::<FlowMode>();
        agree::<NewTools>();
        agree::<Findings>();
        agree::<Label>();
        agree::<Hint>();
        assert_eq!(Label::CHOICES.len(), Label::ALL.len());
        assert_eq!(Hint::CHOICES.len(), Hint::ALL.len());
    }
}
