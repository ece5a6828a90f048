//! The annotations of a tool: what its server claims about it.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_catalog::{Definition, ServerName, Tool};

use crate::{Claims, Trust};

/// One of the annotation hints of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Hint {
    /// `readOnlyHint`: the tool changes nothing.
    ReadOnlyHint,
    /// `destructiveHint`: a change may destroy data.
    DestructiveHint,
    /// `idempotentHint`: a second call with the same arguments changes nothing more.
    IdempotentHint,
    /// `openWorldHint`: the tool interacts with things outside of its server.
    OpenWorldHint,
}

/// The annotations of a tool. They are claims of its server and may be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Annotations {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    /// Whether the values come from the protocol, so that no server has to be believed.
    certain: bool,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 4] =
        [Self::ReadOnlyHint, Self::DestructiveHint, Self::IdempotentHint, Self::OpenWorldHint];

    /// The key that MCP and the configuration use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnlyHint => "readOnlyHint",
            Self::DestructiveHint => "destructiveHint",
            Self::IdempotentHint => "idempotentHint",
            Self::OpenWorldHint => "openWorldHint",
        }
    }

    /// The value to assume without a claim that counts. MCP assumes the worst.
    pub fn worst(self) -> bool {
        matches!(self, Self::DestructiveHint | Self::OpenWorldHint)
    }
}

impl Annotations {
    /// Reads the annotations of a definition. Values that are not booleans are ignored.
    pub fn of(definition: &Definition) -> Self {
        #[derive(Deserialize)]
        struct Part {
            annotations: Option<Value>,
        }
        serde_json::from_str::<Part>(definition.json())
            .ok()
            .and_then(|part| part.annotations)
            .map_or_else(Self::default, |value| Self::from_value(&value))
    }

    /// Reads the value of `annotations`.
    pub fn from_value(value: &Value) -> Self {
        let claim = |hint: Hint| value.get(hint.as_str()).and_then(Value::as_bool);
        Self {
            read_only: claim(Hint::ReadOnlyHint),
            destructive: claim(Hint::DestructiveHint),
            idempotent: claim(Hint::IdempotentHint),
            open_world: claim(Hint::OpenWorldHint),
            certain: false,
        }
    }

    /// The same annotations as certain ones, which need no trust in a server.
    pub(crate) fn beyond_doubt(self) -> Self {
        Self { certain: true, ..self }
    }

    /// Whether the server says in so many words that the tool may destroy something. A tool without
    /// annotations does not say so, and one that says it is read-only says the contrary.
    pub fn declares_destructive(self) -> bool {
        self.destructive == Some(true) && self.read_only != Some(true)
    }

    /// Whether the server says in so many words that the tool reaches things outside of it.
    pub fn declares_open_world(self) -> bool {
        self.open_world == Some(true)
    }

    /// The value to assume for a hint: the claim if it counts, else the worst.
    ///
    /// A claim that agrees with the worst always counts. A read-only tool destroys nothing,
    /// whatever else it claims.
    pub fn holds(self, hint: Hint, claims: Claims, trust: Trust) -> bool {
        let counts = self.certain || claims == Claims::All || trust == Trust::Trusted;
        let claimed = match hint {
            Hint::ReadOnlyHint => self.read_only,
            Hint::DestructiveHint if counts && self.read_only == Some(true) => Some(false),
            Hint::DestructiveHint => self.destructive,
            Hint::IdempotentHint => self.idempotent,
            Hint::OpenWorldHint => self.open_world,
        };
        claimed.filter(|_| counts).unwrap_or(hint.worst())
    }
}

/// The methods that only read from a server. No tool can have such a name.
pub const READING: [&str; 6] = [
    "resources/read",
    "resources/subscribe",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/result",
];

/// The definitions exist once, so that the policy for each of them is also computed only once per
/// server.
static DEFINITIONS: LazyLock<Vec<Arc<Definition>>> = LazyLock::new(|| {
    let annotations = json!({ "readOnlyHint": true, "openWorldHint": true });
    let define = |name: &&str| {
        let definition = json!({ "name": name, "inputSchema": {}, "annotations": annotations });
        Definition::from_value(&definition).ok().map(Arc::new)
    };
    READING.iter().filter_map(define).collect()
});

/// Whether this is the name of a method that only reads, and so of no tool.
pub fn is_reading(name: &str) -> bool {
    READING.contains(&name)
}

/// A request as a tool, so that rules apply to it. `prefix` is that of the server's names. An
/// unknown method may do anything. Returns `None` if no tool could have such a name.
pub fn request_as_tool(
    server: &ServerName,
    prefix: Option<Arc<str>>,
    method: &str,
) -> Option<Tool> {
    let known = DEFINITIONS.iter().find(|known| **known.name() == *method).cloned();
    let definition = known.or_else(|| {
        let definition = json!({ "name": method, "inputSchema": {} });
        Definition::from_value(&definition).ok().map(Arc::new)
    })?;
    Some(Tool::of_method(server, prefix, definition))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(value: &Value, hint: Hint, claims: Claims, trust: Trust) -> bool {
        Annotations::from_value(value).holds(hint, claims, trust)
    }

    #[test]
    fn without_annotations_the_worst_is_assumed() {
        for junk in [json!({}), json!({"readOnlyHint": "yes"}), json!(7), json!(null)] {
            for hint in Hint::ALL {
                assert_eq!(holds(&junk, hint, Claims::All, Trust::Trusted), hint.worst());
            }
        }
    }

    #[test]
    fn claims_count_only_from_trusted_servers_if_so_configured() {
        let reads = json!({"readOnlyHint": true, "destructiveHint": true});
        assert!(holds(&reads, Hint::ReadOnlyHint, Claims::All, Trust::Unknown));
        assert!(!holds(&reads, Hint::DestructiveHint, Claims::All, Trust::Unknown));
        assert!(!holds(&reads, Hint::ReadOnlyHint, Claims::Trusted, Trust::Unknown));
        assert!(holds(&reads, Hint::DestructiveHint, Claims::Trusted, Trust::Unknown));
        assert!(holds(&reads, Hint::ReadOnlyHint, Claims::Trusted, Trust::Trusted));
    }

    #[test]
    fn only_what_is_said_in_so_many_words_is_a_declaration() {
        let declares = |value: Value| Annotations::from_value(&value).declares_destructive();
        assert!(declares(json!({ "destructiveHint": true })));
        assert!(declares(json!({ "destructiveHint": true, "readOnlyHint": false })));
        assert!(!declares(json!({})) && !declares(json!({ "readOnlyHint": false })));
        assert!(!declares(json!({ "destructiveHint": "true" })));
        assert!(!declares(json!({ "destructiveHint": true, "readOnlyHint": true })));
    }

    #[test]
    fn they_are_found_in_a_definition() {
        let definition = Definition::from_value(&json!({
            "name": "t", "inputSchema": {}, "annotations": {"openWorldHint": false},
        }))
        .unwrap();
        let found = Annotations::of(&definition);
        assert!(!found.holds(Hint::OpenWorldHint, Claims::All, Trust::Unknown));
    }
}
