//! How many calls may be made.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};
use toolgate_catalog::Fingerprint;

use crate::{CallPath, CallerCondition, CallerFacts, RuleOrigin, RuleTarget, Verdict};

/// A limit of the calls that a selection of tools gets. Every caller has a count of its own, unless
/// the limit is shared.
#[derive(Debug, Clone, PartialEq)]
pub struct CallLimit {
    /// The tools that the limit counts the calls of, all of them together.
    pub target: RuleTarget,
    /// The callers that the limit is for, and the way in which the call is made.
    pub caller: CallerCondition,
    /// The most calls in any 60 seconds.
    pub per_minute: Option<u32>,
    /// The most calls in a day of UTC.
    pub per_day: Option<u32>,
    /// The most calls that are open at the same time.
    pub in_flight: Option<u32>,
    /// Whether all callers share one count.
    pub shared: bool,
    /// Where the limit is written.
    pub origin: RuleOrigin,
    /// Identifies the limit.
    pub key: LimitKey,
}

/// Identifies a limit in every process that uses the same configuration. It stays the same if only
/// the numbers of the limit are changed, so that what was counted before still counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitKey(Arc<str>);

impl CallLimit {
    /// A limit without numbers.
    pub fn new(
        target: RuleTarget,
        caller: CallerCondition,
        shared: bool,
        origin: RuleOrigin,
    ) -> Self {
        let key = LimitKey("".into());
        let (per_minute, per_day, in_flight) = (None, None, None);
        Self { target, caller, per_minute, per_day, in_flight, shared, origin, key }.within("")
    }

    /// The same limit in the configuration at this path. Two configurations with the same limit have
    /// two counts.
    #[must_use]
    pub fn within(mut self, configuration: &str) -> Self {
        let named = json!([configuration, self.to_value(), self.shared]);
        self.key = LimitKey(Fingerprint::of(&named).to_string().into());
        self
    }

    /// Whether a call of this caller counts.
    pub fn counts(&self, caller: &CallerFacts, from: CallPath) -> bool {
        self.caller.holds(caller, from, Verdict::Deny)
    }

    /// The calls that count, with the keys of the configuration.
    pub fn to_value(&self) -> Value {
        let mut value: Map<String, Value> = self.target.to_map();
        self.caller.add_to(&mut value);
        Value::Object(value)
    }
}

impl LimitKey {
    /// The key as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallLimit {
    /// Displays the calls that count.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.target, self.caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_that_of_the_selection() {
        let origin = RuleOrigin::Configured { path: "limits[0]".into(), position: None };
        let limit = |tool: &str, shared| {
            let target = RuleTarget::read(None, Some(tool)).unwrap();
            CallLimit::new(target, CallerCondition::default(), shared, origin.clone())
        };
        let first = limit("git_*", false);
        assert_eq!(first.key, CallLimit { per_day: Some(7), ..limit("git_*", false) }.key);
        assert_ne!(first.key, limit("git_push", false).key);
        assert_ne!(first.key, limit("git_*", true).key);
        assert_ne!(first.key, first.clone().within("/srv/toolgate.json").key);
    }
}
