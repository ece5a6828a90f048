//! Who makes a call, and in which way, as rules see it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{NamePattern, Verdict};

/// What is known of a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallerFacts {
    /// The name of the access token.
    pub token: Option<Arc<str>>,
    /// The issuer of the OAuth token.
    pub issuer: Option<Arc<str>>,
    /// The subject of the OAuth token.
    pub subject: Option<Arc<str>>,
    /// The scopes of the OAuth token.
    pub scopes: Vec<Arc<str>>,
    /// The groups in the OAuth token.
    pub groups: Vec<Arc<str>>,
    /// The name that the client gives itself. Nothing proves it.
    pub client: Option<Arc<str>>,
}

/// The way in which a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallPath {
    /// A client makes the call itself, also through `call_tool`.
    Direct,
    /// A script makes the call.
    Script,
}

/// The callers that a rule matches: those that match every field that is set. Of several patterns
/// in a field, one must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallerCondition {
    /// The name of the access token.
    pub token: Vec<NamePattern>,
    /// The subject of the OAuth token.
    pub subject: Vec<NamePattern>,
    /// A scope of the OAuth token.
    pub scope: Vec<NamePattern>,
    /// A group in the OAuth token.
    pub group: Vec<NamePattern>,
    /// The name that the client gives itself.
    pub client: Vec<NamePattern>,
    /// The way in which the call is made.
    pub from: Option<CallPath>,
}

impl CallPath {
    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Script => "script",
        }
    }

    /// The other way.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Direct => Self::Script,
            Self::Script => Self::Direct,
        }
    }
}

impl CallerCondition {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        self.from.is_none() && self.fields().iter().all(|(_, patterns)| patterns.is_empty())
    }

    /// Whether it holds for a call of this caller. What is not known of the caller matches nothing.
    /// For a rule that denies or asks, names that look alike are equal: a client chooses its name.
    pub(crate) fn holds(&self, caller: &CallerFacts, from: CallPath, verdict: Verdict) -> bool {
        let fits = |pattern: &NamePattern, name: &str| {
            pattern.matches(name) || (verdict != Verdict::Allow && pattern.resembles(name))
        };
        let any = |patterns: &[NamePattern], names: &[Arc<str>]| {
            patterns.is_empty()
                || names.iter().any(|name| patterns.iter().any(|pattern| fits(pattern, name)))
        };
        self.from.is_none_or(|wanted| wanted == from)
            && any(&self.token, caller.token.as_slice())
            && any(&self.subject, caller.subject.as_slice())
            && any(&self.scope, &caller.scopes)
            && any(&self.group, &caller.groups)
            && any(&self.client, caller.client.as_slice())
    }

    fn fields(&self) -> [(&'static str, &[NamePattern]); 5] {
        [
            ("token", &self.token),
            ("subject", &self.subject),
            ("scope", &self.scope),
            ("group", &self.group),
            ("client", &self.client),
        ]
    }

    /// The conditions with the keys of the configuration.
    pub(crate) fn add_to(&self, rule: &mut Map<String, Value>) {
        let fields = self.fields().into_iter().filter(|(_, patterns)| !patterns.is_empty());
        let caller: Map<String, Value> = fields
            .map(|(key, patterns)| {
                let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
                (key.to_owned(), json!(patterns))
            })
            .collect();
        if !caller.is_empty() {
            rule.insert("caller".to_owned(), Value::Object(caller));
        }
        if let Some(from) = self.from {
            rule.insert("from".to_owned(), json!(from));
        }
    }
}

impl fmt::Display for CallerCondition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, patterns) in self.fields() {
            if !patterns.is_empty() {
                let patterns: Vec<String> =
                    patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
                write!(formatter, ", for the {key} {}", patterns.join(" or "))?;
            }
        }
        match self.from {
            Some(CallPath::Direct) => formatter.write_str(", called directly"),
            Some(CallPath::Script) => formatter.write_str(", called by a script"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_is_set_must_match() {
        let pattern = |text: &str| vec![NamePattern::new(text).unwrap()];
        let caller = CallerFacts {
            token: Some("ci".into()),
            scopes: vec!["read".into(), "write".into()],
            ..CallerFacts::default()
        };
        let applies = |condition: &CallerCondition| {
            condition.holds(&caller, CallPath::Direct, Verdict::Allow)
        };
        let token = CallerCondition { token: pattern("c*"), ..CallerCondition::default() };
        assert!(applies(&token) && !token.is_empty());
        let both = CallerCondition { scope: pattern("write"), ..token.clone() };
        assert!(applies(&both));
        assert!(!applies(&CallerCondition { scope: pattern("admin"), ..token.clone() }));
        assert!(!applies(&CallerCondition { subject: pattern("*"), ..token.clone() }));
        assert!(!applies(&CallerCondition { from: Some(CallPath::Script), ..token }));
        assert!(applies(&CallerCondition::default()) && CallerCondition::default().is_empty());
    }

    #[test]
    fn a_name_in_another_spelling_escapes_no_denial_and_gets_no_permission() {
        let holds = |pattern: &str, client: &str, verdict| {
            let client = Some(client.into());
            let caller = CallerFacts { client, ..CallerFacts::default() };
            let client = vec![NamePattern::new(pattern).unwrap()];
            let condition = CallerCondition { client, ..CallerCondition::default() };
            condition.holds(&caller, CallPath::Direct, verdict)
        };
        for (pattern, client) in
            [("Cursor *", "cursor 1.2"), ("cursor *", "CURSOR 1.2"), ("cursor *", "сursor 1.2")]
        {
            assert!(holds(pattern, client, Verdict::Deny), "{client}");
            assert!(holds(pattern, client, Verdict::Ask), "{client}");
            assert!(!holds(pattern, client, Verdict::Allow), "{client}");
        }
        assert!(!holds("cursor *", "claude 1.2", Verdict::Deny));
    }
}
