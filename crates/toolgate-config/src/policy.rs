//! The `policy` key.

use serde_json::json;
use toolgate_policy::{
    CallPath, Claims, FindingsMode, FlowMode, Hint, Label, LabelSet, MAX_RULES, Mode, NewTools,
    PolicySettings, RuleTarget, Verdict,
};

use crate::document::{self, Member, Value};
use crate::position::SourceText;
use crate::rule::{self, RuleConfig};
use crate::scope::{FileReader, Location, Scope};
use crate::section::{
    Choice, Definitions, Flag, Section as _, Setting, Word, Wrong, choices, remember_minutes,
    section,
};
use crate::{Problem, ProblemSeverity, SavedPolicyText, StoredValueError, Surroundings};

choices! {
    Verdict: "allow" => Allow, "ask" => Ask, "deny" => Deny;
    Mode: "allow" => Allow, "ask-destructive" => AskDestructive, "ask" => Ask, "ask-always" => AskAlways, "deny-writes" => DenyWrites,
        "deny" => Deny;
    Claims: "all" => All, "trusted" => Trusted;
    FlowMode: "program" => Program, "content" => Content, "labels" => Labels, "off" => Off;
    NewTools: "allow" => Allow, "hold" => Hold;
    FindingsMode: "warn" => Warn, "hold" => Hold;
    CallPath: "direct" => Direct, "script" => Script;
    Label: "private" => Private, "untrusted" => Untrusted, "egress" => Egress;
    Hint: "readOnlyHint" => ReadOnlyHint, "destructiveHint" => DestructiveHint,
        "idempotentHint" => IdempotentHint, "openWorldHint" => OpenWorldHint;
}

section! {
    /// Who may call what.
    ///
    /// A matching `deny` rule always wins. Otherwise the most specific matching rule decides. A
    /// rule about one tool comes first, then a pattern of names, an annotation, a server, and all
    /// tools. Within each level, a rule with conditions comes before a rule without. If two rules
    /// are equally specific, the later rule decides. toolgate decides rules about data separately,
    /// and uses the stricter of the two decisions.
    impl PolicySettings as "Policy", base(), keys {
        /// The rules.
        "rules" => |definitions| {
            let rule = definitions.reference::<RuleConfig>();
            json!({ "type": "array", "items": rule, "maxItems": MAX_RULES })
        };
        /// Labels of tools, by exposed names, `server/tool` and patterns of them.
        "labels" => |_| json!({ "type": "object", "additionalProperties": Label::list_schema() });
    }, {
        /// What happens to calls that no rule matches. `ask` and `deny-writes` allow read-only
        /// tools; `ask-always` asks for them too. `ask-destructive` asks for tools that declare
        /// themselves destructive, where somebody can be asked. `off` is `allow`.
        "default" => mode, ModeWord;
        /// How toolgate finds out which data a call carries: by the `program` of the script that
        /// makes it, by the `content` of its arguments, by the `labels` of the tools that were used
        /// before, or not at all (`off`). With `program`, calls outside of scripts and results from
        /// before the script are compared by content.
        "flow" => flow, Word(Wrong::Becomes(FlowMode::Labels));
        /// How long what a caller has read counts for the caller's other sessions, in minutes after
        /// the end of the session that read it. 0 keeps sessions apart.
        "rememberMinutes" => remember, remember_minutes(0.0, 10_080.0);
        /// Whether a result also counts where it only decides: whether a script makes a call, or
        /// which of several values the call gets. For `flow: "program"`.
        "branches" => branches, Flag(Wrong::Becomes(true));
        /// What happens to new tools, prompts and templates of a server in `toolgate.lock`.
        "newTools" => new_tools, Word(Wrong::Becomes(NewTools::Hold));
        /// What happens to suspicious definitions and instructions of servers: hidden characters,
        /// instructions to the model, a name that imitates another tool. With `hold`, toolgate
        /// holds them back until a person approves them.
        "findings" => findings, Word(Wrong::Becomes(FindingsMode::Hold));
        /// Whose annotations count: those of `all` servers, or only those of `trusted` servers.
        "claims" => claims, Word(Wrong::Becomes(Claims::Trusted));
    }
}

/// One word for the default, or the whole policy.
pub(crate) fn schema(definitions: &mut Definitions) -> serde_json::Value {
    json!({ "anyOf": [mode_schema(), definitions.reference::<PolicySettings>()] })
}

/// The word that switches the policy off.
const OFF: &str = "off";

/// What happens to calls that no rule matches. A word that cannot be read denies.
struct ModeWord;

impl Setting for ModeWord {
    type Value = Mode;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Mode> {
        read_mode(&member.node.value)
            .or_else(|| Word(Wrong::Becomes(Mode::Deny)).read(scope, member))
    }

    fn schema(&self, _: &mut Definitions) -> serde_json::Value {
        mode_schema()
    }

    fn written(&self, value: &Mode) -> serde_json::Value {
        value.word().into()
    }
}

fn mode_schema() -> serde_json::Value {
    let words = Mode::CHOICES.iter().map(|(word, _)| *word).chain([OFF]);
    json!({ "type": "string", "enum": words.collect::<Vec<_>>() })
}

fn read_mode(value: &Value<'_>) -> Option<Mode> {
    let is_off = matches!(value, Value::String(word) if *word == OFF);
    is_off.then_some(Mode::Allow).or_else(|| Mode::from_value(value))
}

/// The policy of a file that has none: a tool that declares itself destructive is asked about where
/// somebody can be asked, and everything else goes through.
pub(crate) fn first() -> PolicySettings {
    PolicySettings::of_mode(Mode::AskDestructive)
}

/// The base of every policy. A person who writes a policy is asked by default.
pub(crate) fn base() -> PolicySettings {
    PolicySettings::of_mode(Mode::Ask)
}

/// Reads a policy that extends another. Its rules and labels are added, and other values replace
/// those of the base. A mistake never allows more: an unreadable part is an error, and denies, asks
/// more often or holds back.
pub(crate) fn read(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    mut policy: PolicySettings,
) -> PolicySettings {
    if let Some(mode) = read_mode(&member.node.value) {
        return PolicySettings { mode, ..policy };
    }
    let at = scope.at.value(member);
    let Value::Object(object) = &member.node.value else {
        let found = if member.is_null() { ", but is null" } else { "" };
        let predicate =
            format!("must be {}, `off` or an object{found}; every call is denied", Mode::names());
        let hint = if member.is_null() {
            "write `\"policy\": \"off\"` to allow everything, or remove the key"
        } else {
            "to be asked before a tool changes something, write `\"policy\": \"ask\"`"
        };
        scope.error(member, &predicate, hint);
        policy.rules.push(rule::denial(scope.file, &at, RuleTarget::default()));
        return PolicySettings { mode: Mode::Deny, ..policy };
    };
    let mut scope = Scope::new(object, at, scope.file);
    scope.refuse_replaced();
    scope.refuse_unknown::<PolicySettings>();
    for member in object.members.iter().filter(|member| member.is_null()) {
        scope.error(member, "is null; every call is denied", "give it a value, or remove it");
    }
    // A misspelt `rules` must not be a policy without rules, nor one of two a policy without the other.
    let is_misspelt = scope.first_error.is_some();
    policy.rules.extend(rule::read_all(&mut scope));
    if is_misspelt {
        policy.rules.push(rule::denial(scope.file, &scope.at, RuleTarget::default()));
    }
    policy.labels.extend(labels(&mut scope));
    // A word that cannot be read becomes the strictest.
    policy.read_keys(&mut scope);
    policy
}

/// Reads a policy that is saved outside of the configuration. Another version of toolgate may have saved it, so a
/// mistake in it is none of a person who is at it: then every call is denied, and not only what the mistake is about.
pub(crate) fn read_saved(
    saved: SavedPolicyText<'_>,
    surroundings: &Surroundings<'_>,
) -> (PolicySettings, Vec<Problem>) {
    let source = SourceText::new(saved.text.unwrap_or_default(), saved.name);
    // Who may save a policy may not read files or run commands of all nodes.
    let surroundings =
        Surroundings { stored: &|_| Err(StoredValueError::NoAccess), ..*surroundings };
    let mut file = FileReader::new(&source, surroundings);
    let root = saved
        .text
        .map_err(str::to_owned)
        .and_then(|_| document::read_member(&source, "policy").map_err(|error| error.to_string()));
    let policy = root.map(|root| {
        let mut scope = Scope::new(&root, Location::default(), &mut file);
        let member = root.written("policy");
        member.map_or_else(base, |member| read(&mut scope, member, base()))
    });
    let at = Location { path: "policy".to_owned(), offset: 0 };
    let (mut policy, why) = match policy {
        Ok(policy) if !file.has_errors() => return (policy, file.finish()),
        Ok(policy) => (policy, String::new()),
        // The excerpt of a text may be long.
        Err(why) => (base(), format!(": {}", why.lines().next().unwrap_or_default())),
    };
    policy.mode = Mode::Deny;
    policy.rules.push(rule::denial(&file, &at, RuleTarget::default()));
    let predicate =
        format!("cannot be read by this version of toolgate, so every call is denied{why}");
    let hint = "give all nodes the same version; or save another policy with `toolgate policy save`, or remove it with \
                `toolgate policy remove`";
    let problem = file.problem(ProblemSeverity::Error, &at, &predicate, hint);
    let mut problems = file.finish();
    problems.insert(0, problem);
    (policy, problems)
}

/// Labels by pattern. A tool whose labels cannot be read has them all.
fn labels(scope: &mut Scope<'_, '_>) -> Vec<(RuleTarget, LabelSet)> {
    let Some(member) = scope.object.get("labels") else { return Vec::new() };
    let all: LabelSet = Label::ALL.into_iter().collect();
    let hint = "write `\"labels\": { \"crm_*\": [\"private\"] }`";
    let labels = scope.nested(member, hint, |scope| {
        let object = scope.object;
        let labels = object.members.iter().map(|member| {
            let labels = scope.words::<Label, _>(member).unwrap_or(all);
            let target = RuleTarget::read(None, Some(&member.key)).unwrap_or_else(|error| {
                let (severity, at) = (ProblemSeverity::Error, scope.at.key(member));
                scope.complain(severity, &at, &error.to_string(), "");
                RuleTarget::default()
            });
            (target, labels)
        });
        labels.collect()
    });
    labels.unwrap_or_else(|| vec![(RuleTarget::default(), all)])
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    /// The names of values in explanations are those of the configuration.
    fn agree<C: Choice + Serialize>() {
        for (name, value) in C::CHOICES {
            assert_eq!(serde_json::to_value(value).unwrap(), *name);
        }
    }

    #[test]
    fn the_values_are_those_of_the_policy() {
        agree::<Verdict>();
        agree::<Mode>();
        agree::<Claims>();
        agree::<FlowMode>();
        agree::<NewTools>();
        agree::<FindingsMode>();
        agree::<CallPath>();
        agree::<Label>();
        agree::<Hint>();
        assert_eq!(Label::CHOICES.len(), Label::ALL.len());
        assert_eq!(Hint::CHOICES.len(), Hint::ALL.len());
    }
}
