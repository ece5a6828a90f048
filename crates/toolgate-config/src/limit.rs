//! The `limits` key: how many calls may be made.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolgate_policy::{CallLimit, CallPath, CallerCondition, Hint, Rule, RuleTarget, Trust};

use crate::ProblemSeverity;
use crate::document::{Member, Node, Value};
use crate::rule::{self, AnnotationKeys, CallerConfig};
use crate::scope::{Location, Scope};
use crate::section::{Custom, Definitions, Flag, Section as _, Word, Wrong, custom, section};
use crate::server::trusted;

section! {
    /// A limit of calls. It selects calls as a rule of the policy does, and counts all of them
    /// together. Each caller has a count of its own.
    pub(crate) struct LimitConfig as "Limit" keys {
        /// The server, or a pattern of servers.
        "server" => |_| json!({ "type": "string" });
        /// The tool: its exposed name, `server/tool` or, beside a `server`, its own name; or a pattern
        /// with `*` and `?`.
        "tool" => |_| json!({ "type": "string" });
    } {
        /// The annotations that the tool must have.
        "annotations" => annotations: Vec<(Hint, bool)> = Vec::new(),
            custom(Definitions::reference::<AnnotationKeys>, rule::annotations);
        /// Whether its server is trusted.
        "trusted" => trust: Option<Trust> = None, trusted();
        /// The callers that the limit is for. The default is all of them.
        "caller" => caller: CallerConfig = CallerConfig::default(),
            custom(Definitions::reference::<CallerConfig>, rule::caller);
        /// The way in which the call is made: `direct` or `script`.
        "from" => from: Option<CallPath> = None, Word::<CallPath>(Wrong::Refused);
        /// The most calls in any 60 seconds.
        "perMinute" => per_minute: Option<u32> = None, count();
        /// The most calls in a day, from midnight to midnight UTC. A restart does not change the
        /// count.
        "perDay" => per_day: Option<u32> = None, count();
        /// The most calls that are open at the same time.
        "inFlight" => in_flight: Option<u32> = None, count();
        /// Whether all callers share one count.
        "shared" => shared: bool = false, Flag(Wrong::Refused);
    }
}

/// The most limits in a file.
pub(crate) const MAX_LIMITS: usize = 1_000;
/// The largest number of a limit.
const MAX_CALLS: u32 = 100_000_000;

/// What the key says.
#[derive(Default)]
pub(crate) struct Limits {
    pub(crate) limits: Vec<Arc<CallLimit>>,
    /// What replaces limits that cannot be read: no call of what they may have been about.
    pub(crate) denials: Vec<Rule>,
}

pub(crate) fn schema(definitions: &mut Definitions) -> Json {
    let limit = definitions.reference::<LimitConfig>();
    json!({ "type": "array", "items": limit, "maxItems": MAX_LIMITS })
}

/// Reads all limits.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Limits {
    let (error, at) = (ProblemSeverity::Error, scope.at.value(member));
    let mut read = Limits::default();
    let Value::Array(elements) = &member.node.value else {
        let hint = "write `\"limits\": [{ \"server\": \"github\", \"perMinute\": 30 }]`";
        scope.mismatch(error, &at, &member.node.value, "a list", hint);
        read.denials.push(rule::denial(scope.file, &at, RuleTarget::default()));
        return read;
    };
    for (index, element) in elements.iter().enumerate() {
        let at = at.element(index, element.offset);
        if index >= MAX_LIMITS {
            let predicate = format!("is one limit too many: a file may have at most {MAX_LIMITS}");
            scope.complain(error, &at, &predicate, "");
            read.denials.push(rule::denial(scope.file, &at, RuleTarget::default()));
            break;
        }
        match read_one(scope, &at, element) {
            Ok(limit) => read.limits.push(Arc::new(limit)),
            Err(target) => read.denials.push(rule::denial(scope.file, &at, *target)),
        }
    }
    read
}

/// Reads a limit. If it cannot be read, returns what it may have been about.
fn read_one(
    scope: &mut Scope<'_, '_>,
    at: &Location,
    node: &Node<'_>,
) -> Result<CallLimit, Box<RuleTarget>> {
    let Value::Object(object) = &node.value else {
        scope.mismatch(ProblemSeverity::Error, at, &node.value, "an object", "");
        return Err(Box::default());
    };
    let mut scope = Scope::new(object, at.clone(), scope.file);
    scope.refuse_replaced();
    scope.refuse_unknown::<LimitConfig>();
    let mut limit = LimitConfig::default();
    limit.read_keys(&mut scope);
    let targets = rule::targets(&mut scope, &limit.annotations, limit.trust);
    let [target] = targets.unwrap_or_default().try_into().unwrap_or_else(|targets: Vec<_>| {
        if !targets.is_empty() {
            let predicate = "must have one `tool`, since all calls of a limit are counted together";
            scope.complain(ProblemSeverity::Error, at, predicate, "write one limit for each");
        }
        [RuleTarget::default()]
    });
    let LimitConfig { per_minute, per_day, in_flight, .. } = limit;
    if scope.first_error.is_none() && [per_minute, per_day, in_flight] == [None; 3] {
        let hint = "add `\"perMinute\"`, `\"perDay\"` or `\"inFlight\"`";
        scope.complain(ProblemSeverity::Error, at, "has no number", hint);
    }
    if scope.first_error.is_some() {
        return Err(Box::new(target));
    }
    let caller: CallerCondition = limit.caller.condition(limit.from);
    let origin = scope.file.origin(at);
    let limit = CallLimit::new(target, caller, limit.shared, origin);
    Ok(CallLimit { per_minute, per_day, in_flight, ..limit })
}

fn count() -> Custom<Option<u32>> {
    let schema =
        |_: &mut Definitions| json!({ "type": "integer", "minimum": 0, "maximum": MAX_CALLS });
    custom(schema, |scope, member| {
        let count = match &member.node.value {
            Value::Number(text) => text.parse().ok().filter(|count| *count <= MAX_CALLS),
            _ => None,
        };
        if count.is_none() {
            let expected = "a whole number from 0 to 100,000,000";
            scope.unfit(ProblemSeverity::Error, &scope.at.value(member), expected, "");
        }
        Some(count)
    })
}
