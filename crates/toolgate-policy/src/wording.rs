//! Rules in words, and as a configuration writes them.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::{FlowCondition, Label, LabelSet, Rule, RuleTarget, Trust, pattern::Naming};

impl Rule {
    /// Which calls it is about, in the keys of a configuration.
    pub fn to_value(&self) -> Value {
        let mut value = self.target.to_map();
        let mut when = Map::new();
        if !self.arguments.is_empty() {
            when.insert("arguments".to_owned(), self.arguments.to_value());
        }
        let FlowCondition { carries, steered_by } = self.flow;
        for (key, labels) in
            [("carries", carries), ("to", self.target.labels), ("steeredBy", steered_by)]
        {
            if !labels.is_empty() {
                when.insert(key.to_owned(), json!(labels));
            }
        }
        if !when.is_empty() {
            value.insert("when".to_owned(), Value::Object(when));
        }
        Value::Object(value)
    }
}

impl RuleTarget {
    /// Which tools, in the keys of a configuration. Labels are a condition, and not among them.
    pub fn to_map(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if let Some(server) = &self.server {
            map.insert("server".to_owned(), json!(server.to_string()));
        }
        if let Some(tool) = &self.tool {
            map.insert("tool".to_owned(), json!(tool.name.to_string()));
        }
        if !self.annotations.is_empty() {
            let claims = self.annotations.iter();
            let claims = claims.map(|(hint, wanted)| (hint.as_str().to_owned(), json!(wanted)));
            map.insert("annotations".to_owned(), Value::Object(claims.collect()));
        }
        if let Some(trust) = self.trust {
            map.insert("trusted".to_owned(), json!(trust == Trust::Trusted));
        }
        map
    }
}

impl fmt::Display for Rule {
    /// Which calls it is about.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.target)?;
        if !self.arguments.is_empty() {
            write!(formatter, ", where {}", self.arguments)?;
        }
        let FlowCondition { carries, steered_by } = self.flow;
        let data = [("with data that is", carries), ("steered by what is", steered_by)];
        for (words, labels) in data.into_iter().filter(|(_, labels)| !labels.is_empty()) {
            write!(formatter, ", {words} {}", either(labels))?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.tool) {
            (None, None) => formatter.write_str("all tools")?,
            (Some(server), None) => write!(formatter, "all of `{server}`")?,
            (None, Some(tool)) => write!(formatter, "`{}`", tool.name)?,
            (Some(server), Some(tool)) if tool.naming == Naming::Own => {
                write!(formatter, "`{server}/{}`", tool.name)?;
            }
            (Some(server), Some(tool)) => write!(formatter, "`{}` of `{server}`", tool.name)?,
        }
        for (hint, wanted) in &self.annotations {
            write!(formatter, ", {}: {wanted}", hint.as_str())?;
        }
        match self.trust {
            Some(Trust::Trusted) => formatter.write_str(", of a trusted server")?,
            Some(Trust::Unknown) => formatter.write_str(", of a server that is not trusted")?,
            None => {}
        }
        if self.labels.is_empty() {
            return Ok(());
        }
        write!(formatter, ", labelled {}", either(self.labels))
    }
}

/// One of them is enough.
fn either(labels: LabelSet) -> String {
    labels.iter().map(Label::as_str).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgumentConditions, Hint, RuleOrigin, Verdict};

    #[test]
    fn a_rule_says_everything_that_it_asks() {
        let origin = || RuleOrigin::Configured { path: "policy.rules[0]".into(), place: None };
        let rule = |server, tool| {
            Rule::new(RuleTarget::read(server, tool).unwrap(), Verdict::Deny, origin())
        };
        let mut narrow = rule(None, Some("github_delete_*"));
        narrow.target.annotations = vec![(Hint::ReadOnlyHint, false)];
        narrow.target.trust = Some(Trust::Unknown);
        narrow.target.labels = Label::Egress.into();
        narrow.flow.carries = [Label::Private, Label::Untrusted].into_iter().collect();
        narrow.arguments =
            ArgumentConditions::from_value(&json!({ "path": { "under": "/srv" } })).unwrap();
        let rules = [
            rule(None, None),
            rule(Some("git*"), None),
            rule(Some("git"), Some("push")),
            rule(None, Some("git/push")),
            narrow,
        ];
        let told: Vec<String> =
            rules.iter().map(|rule| format!("{rule} {}", rule.to_value())).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        all tools {}
        all of `git*` {"server":"git*"}
        `push` of `git` {"server":"git","tool":"push"}
        `git/push` {"server":"git","tool":"push"}
        `github_delete_*`, readOnlyHint: false, of a server that is not trusted, labelled egress, where path is under "/srv", with data that is private or untrusted {"tool":"github_delete_*","annotations":{"readOnlyHint":false},"trusted":false,"when":{"arguments":{"path":{"under":"/srv"}},"carries":["private","untrusted"],"to":["egress"]}}
        "#);
    }
}
