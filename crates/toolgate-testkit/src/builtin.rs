//! The built-in tools and their definitions.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A tool that every fixture can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// Returns its arguments as text, as structured content, and the request's `_meta` under
    /// `_meta["fixture/requestMeta"]`.
    Echo,
    /// Adds `a` and `b`; has an output schema.
    Add,
    /// Sleeps for `ms` milliseconds, unless it is cancelled.
    Sleep,
    /// Reports the last request that was cancelled while it ran: `{requestId, reason}` or null. Also the
    /// tasks that were cancelled, and the roots that it asked for after the last change of them.
    LastCancelled,
    /// Sends `steps` progress notifications, `intervalMs` apart, then answers. Each has the fields of `with` too.
    Progress,
    /// Answers `isError: true`.
    Fail,
    /// Answers with a JSON-RPC error (`code`, `message`).
    RpcError,
    /// Exits the process without an answer (`code`).
    Crash,
    /// Answers with a text of `bytes` bytes, 64 MiB at most.
    Big,
    /// Answers with each kind of content, one of an unknown kind included.
    Media,
    /// Increments a counter of the process and returns it.
    Counter,
    /// Adds the tool `add` to the list, or removes the tool `remove`, with a notification.
    ChangeTools,
    /// Returns the environment variables `names` and the working directory.
    Environment,
    /// Starts a process that outlives the server unless somebody ends it; returns its `pid`.
    SpawnGrandchild,
    /// Writes `lines` lines to stderr.
    Stderr,
    /// Asks the client for its roots and returns the answer, which may be an error.
    AskRoots,
    /// Asks for a form to be filled in (`elicitation/create`), `rounds` times in turn.
    AskForm,
    /// Asks for a page to be visited (`elicitation/create` with a URL), `rounds` times in turn.
    AskUrl,
    /// Asks the client's model (`sampling/createMessage`), `rounds` times in turn.
    AskModel,
    /// Asks for a form, a model's words and the roots at the same time, `rounds` times in turn.
    AskAll,
    /// Sends `count` log messages (`level`, `data`), then answers.
    Log,
    /// Reports who the client says it is: the parameters of its `initialize`, or the request's
    /// `_meta`.
    Client,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Echo,
        Self::Add,
        Self::Sleep,
        Self::LastCancelled,
        Self::Progress,
        Self::Fail,
        Self::RpcError,
        Self::Crash,
        Self::Big,
        Self::Media,
        Self::Counter,
        Self::ChangeTools,
        Self::Environment,
        Self::SpawnGrandchild,
        Self::Stderr,
        Self::AskRoots,
        Self::AskForm,
        Self::AskUrl,
        Self::AskModel,
        Self::AskAll,
        Self::Log,
        Self::Client,
    ];

    /// The tool's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Add => "add",
            Self::Sleep => "sleep",
            Self::LastCancelled => "last_cancelled",
            Self::Progress => "progress",
            Self::Fail => "fail",
            Self::RpcError => "rpc_error",
            Self::Crash => "crash",
            Self::Big => "big",
            Self::Media => "media",
            Self::Counter => "counter",
            Self::ChangeTools => "change_tools",
            Self::Environment => "environment",
            Self::SpawnGrandchild => "spawn_grandchild",
            Self::Stderr => "stderr",
            Self::AskRoots => "ask_roots",
            Self::AskForm => "ask_form",
            Self::AskUrl => "ask_url",
            Self::AskModel => "ask_model",
            Self::AskAll => "ask_all",
            Self::Log => "log",
            Self::Client => "client",
        }
    }

    /// The built-in of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// The definition that `tools/list` has of it.
    pub fn definition(self) -> Value {
        let mut definition = json!({
            "name": self.name(),
            "description": self.description(),
            "inputSchema": self.input_schema(),
        });
        if self == Self::Add {
            definition["outputSchema"] = object(&json!({ "sum": { "type": "number" } }), &["sum"]);
        }
        if self == Self::Echo {
            definition["annotations"] = json!({ "readOnlyHint": true, "idempotentHint": true });
        }
        definition
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Echo => "Return the arguments unchanged.",
            Self::Add => "Add two numbers.",
            Self::Sleep => "Wait for a number of milliseconds.",
            Self::LastCancelled => "Report the last request that was cancelled.",
            Self::Progress => "Report progress in steps, then finish.",
            Self::Fail => "Fail with an error that the tool reports.",
            Self::RpcError => "Fail with a protocol error.",
            Self::Crash => "End the server process without an answer.",
            Self::Big => "Return a text of a given size.",
            Self::Media => "Return text, image, audio, links and resources.",
            Self::Counter => "Increment a counter and return it.",
            Self::ChangeTools => "Add a tool to this server's list or remove one.",
            Self::Environment => "Return environment variables of the server process.",
            Self::SpawnGrandchild => "Start a background process and return its id.",
            Self::Stderr => "Write lines to the server's standard error.",
            Self::AskRoots => "Ask the client for its roots.",
            Self::AskForm => "Ask the person to fill in a form.",
            Self::AskUrl => "Ask the person to visit a page.",
            Self::AskModel => "Ask the client's model for a few words.",
            Self::AskAll => "Ask the person, the model and for the roots at once.",
            Self::Log => "Send log messages.",
            Self::Client => "Report what the client says of itself.",
        }
    }

    fn input_schema(self) -> Value {
        let text = json!({ "type": "string" });
        let count = json!({ "type": "integer", "minimum": 0 });
        match self {
            Self::Echo | Self::Fail => object(&json!({ "message": text }), &[]),
            Self::Add => {
                let number = json!({ "type": "number" });
                object(&json!({ "a": number, "b": number }), &["a", "b"])
            }
            Self::Sleep => object(&json!({ "ms": count }), &["ms"]),
            Self::Progress => object(&json!({ "steps": count, "intervalMs": count }), &["steps"]),
            Self::RpcError => {
                object(&json!({ "code": { "type": "integer" }, "message": text }), &[])
            }
            Self::Crash => object(&json!({ "code": { "type": "integer" } }), &[]),
            Self::Big => object(&json!({ "bytes": count }), &["bytes"]),
            Self::ChangeTools => object(&json!({ "add": text, "remove": text }), &[]),
            Self::Environment => {
                object(&json!({ "names": { "type": "array", "items": text } }), &["names"])
            }
            Self::SpawnGrandchild => {
                let flag = json!({ "type": "boolean" });
                object(&json!({ "keepsPipes": flag, "ignoresTerminate": flag }), &[])
            }
            Self::Stderr => object(&json!({ "lines": count }), &["lines"]),
            Self::AskForm | Self::AskUrl | Self::AskModel | Self::AskAll => {
                let any = json!({ "type": "object" });
                object(&json!({ "rounds": count, "with": any }), &[])
            }
            Self::Log => object(&json!({ "level": text, "data": {}, "count": count }), &[]),
            Self::LastCancelled | Self::Media | Self::Counter | Self::AskRoots | Self::Client => {
                object(&json!({}), &[])
            }
        }
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_serialised_form() {
        for builtin in Builtin::ALL {
            assert_eq!(serde_json::to_value(builtin).unwrap(), json!(builtin.name()));
            assert_eq!(Builtin::from_name(builtin.name()), Some(builtin));
        }
    }

    #[test]
    fn definitions_are_well_formed() {
        for builtin in Builtin::ALL {
            let definition = builtin.definition();
            assert_eq!(definition["name"], builtin.name());
            assert_eq!(definition["inputSchema"]["type"], "object");
        }
    }
}
