//! Servers: their files, and a running one.

use std::fmt;
use std::sync::LazyLock;

use rquickjs::{CatchResultExt, Context, Ctx, Function, Runtime};
use serde::Deserialize;
use serde_json::Value;

use crate::NOW;
use crate::error::DemoError;

/// Much more than the demo's data needs.
const MEMORY_BYTES: usize = 64 * 1024 * 1024;
const STACK_BYTES: usize = 512 * 1024;

const RUNTIME: &str = include_str!("../servers/runtime.js");

/// The files, in the order in which a menu shows the servers.
const FILES: [(&str, &str); 10] = [
    ("logging", include_str!("../servers/logging.js")),
    ("ticketing", include_str!("../servers/ticketing.js")),
    ("team", include_str!("../servers/team.js")),
    ("calendar", include_str!("../servers/calendar.js")),
    ("notifications", include_str!("../servers/notifications.js")),
    ("crm", include_str!("../servers/crm.js")),
    ("inventory", include_str!("../servers/inventory.js")),
    ("deploy", include_str!("../servers/deploy.js")),
    ("docs", include_str!("../servers/docs.js")),
    ("metrics", include_str!("../servers/metrics.js")),
];

/// A demo server, as a menu shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemoServer {
    /// The name that [`serve`](crate::serve) takes.
    pub name: String,
    /// What the server is for, in a sentence.
    pub description: String,
    /// The prefix to configure for its tools' exposed names. `None` leaves it to the default,
    /// the server's name; an empty one exposes its tools under their own names.
    pub prefix: Option<String>,
    /// How many tools it has.
    pub tools: usize,
    /// Whether it answers `server/discover` of 2026-07-28 as well as `initialize`.
    pub modern: bool,
}

/// What the file of a server describes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerFile {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) version: String,
    prefix: Option<String>,
    pub(crate) modern: bool,
    /// The tools, as `tools/list` gives them.
    pub(crate) definitions: Vec<Value>,
}

/// What a call of a tool gives.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Value(Value),
    Refused(String),
}

/// All demo servers, in the order in which a menu should show them.
pub fn servers() -> &'static [DemoServer] {
    static SERVERS: LazyLock<Vec<DemoServer>> = LazyLock::new(|| {
        let files = FILES.iter().filter_map(|(name, _)| Some(Instance::open(name).ok()?.file));
        files
            .map(|file| DemoServer {
                tools: file.definitions.len(),
                name: file.name,
                description: file.description,
                prefix: file.prefix,
                modern: file.modern,
            })
            .collect()
    });
    &SERVERS
}

/// The tools of a server, as its `tools/list` gives them.
pub fn definitions(server: &str) -> Result<Vec<Value>, DemoError> {
    Ok(Instance::open(server)?.file.definitions)
}

/// Calls a tool of a server in its first state; what the call changes is forgotten.
///
/// ```
/// use serde_json::json;
///
/// let budget = toolgate_demo::call("team", "get_budget_by_level", json!({ "level": "senior" }))?;
/// assert_eq!(budget["travel_limit"], 8000);
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
pub fn call(server: &str, tool: &str, arguments: Value) -> Result<Value, DemoError> {
    Instance::open(server)?.call(tool, arguments)
}

/// A demo server with its own state, without a process and without a protocol.
///
/// ```
/// use serde_json::json;
/// use toolgate_demo::Instance;
///
/// let mut ticketing = Instance::open("ticketing")?;
/// let issue = ticketing.call("createIssue", json!({ "title": "Checkout times out" }))?;
/// let found = ticketing.call("getIssue", json!({ "issueId": issue["id"] }))?;
/// assert_eq!(found["status"], "open");
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
pub struct Instance {
    server: &'static str,
    pub(crate) file: ServerFile,
    context: Context,
}

impl Instance {
    /// The server of this name, with the state that every server starts with.
    pub fn open(server: &str) -> Result<Self, DemoError> {
        let Some((server, text)) = FILES.iter().find(|(name, _)| *name == server) else {
            let name = server.chars().take(80).collect();
            let known = FILES.map(|(name, _)| name).join(", ");
            return Err(DemoError::UnknownServer { name, known });
        };
        let context = new_context().map_err(|error| broken(server, &error))?;
        let file = evaluate(server, &context, |ctx| {
            ctx.globals().set("NOW", NOW)?;
            ctx.eval::<(), _>(RUNTIME)?;
            ctx.eval::<(), _>(*text)?;
            ctx.globals().get::<_, Function<'_>>("describe")?.call(())
        })?;
        Ok(Self { server, file, context })
    }

    /// Calls a tool. The value is what its text says: a list is a list here, see the crate's page.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the arguments in place")]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, DemoError> {
        self.definition(tool)?;
        let outcome = evaluate(self.server, &self.context, |ctx| {
            let call: Function<'_> = ctx.globals().get("call")?;
            call.call((tool, arguments.to_string()))
        })?;
        match outcome {
            Outcome::Value(value) => Ok(value),
            Outcome::Refused(message) => Err(DemoError::Refused(message)),
        }
    }

    pub(crate) fn definition(&self, tool: &str) -> Result<&Value, DemoError> {
        let found = self.file.definitions.iter().find(|definition| definition["name"] == tool);
        found.ok_or_else(|| DemoError::UnknownTool {
            server: self.server.to_owned(),
            tool: tool.chars().take(80).collect(),
        })
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Instance").field("file", &self.file).finish_non_exhaustive()
    }
}

fn new_context() -> rquickjs::Result<Context> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES);
    runtime.set_max_stack_size(STACK_BYTES);
    Context::full(&runtime)
}

/// Runs scripts that give JSON, and reads it.
fn evaluate<T: for<'de> Deserialize<'de>>(
    server: &'static str,
    context: &Context,
    scripts: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<String>,
) -> Result<T, DemoError> {
    let json =
        context.with(|ctx| scripts(&ctx).catch(&ctx).map_err(|error| broken(server, &error)))?;
    serde_json::from_str(&json).map_err(|error| broken(server, &error))
}

fn broken(server: &'static str, error: &impl ToString) -> DemoError {
    DemoError::BrokenFile { server, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Runs a function of `tests/checks.js` in the context of a server.
    fn check(server: &'static str, function: &str) {
        let instance = Instance::open(server).unwrap();
        instance.context.with(|ctx| {
            let script = format!("{}\n{function}();", include_str!("../tests/checks.js"));
            let outcome = ctx.eval::<(), _>(script).catch(&ctx);
            outcome.unwrap_or_else(|error| panic!("{server}: {error}"));
        });
    }

    #[test]
    fn files_are_consistent() {
        for (server, _) in FILES {
            check(server, "firstRowsFitTheirColumns");
            check(server, "toolsAreAboutTablesAndColumnsThatExist");
            check(server, "functionsUseNamesThatExist");
        }
    }

    #[test]
    fn the_runtime_does_what_it_says() {
        for function in [
            "linesBecomeRows",
            "namesOfArgumentsSayHowToFilter",
            "timesAreReadAsProgramsWriteThem",
            "aSeedGivesTheSameNumbersWithinBounds",
            "numbersKeepTheirForm",
            "titlesAreWords",
        ] {
            check("docs", function);
        }
    }

    #[test]
    fn the_memory_is_limited_and_the_server_goes_on() {
        let mut docs = Instance::open("docs").unwrap();
        docs.context.runtime().set_memory_limit(4 * 1024 * 1024);
        let tags = vec!["x".repeat(20_000); 20];
        let mut create =
            || docs.call("create-page", json!({ "title": "", "body": "", "tags": tags }));
        let error = (0..50).find_map(|_| create().err()).unwrap();
        assert!(error.to_string().contains("out of memory"), "{error}");
        docs.call("delete-page", json!({ "page_id": "PG-1001" })).unwrap();
        assert_eq!(docs.call("get-page", json!({ "page_id": "PG-1" })).unwrap()["id"], "PG-1");
    }

    #[test]
    fn a_file_reaches_nothing_outside() {
        let docs = Instance::open("docs").unwrap();
        for script in
            ["fetch('x')", "process.exit()", "std.open('x')", "require('fs').readFile('x')"]
        {
            let outcome = evaluate::<Value>(docs.server, &docs.context, |ctx| ctx.eval(script));
            assert!(matches!(outcome, Err(DemoError::BrokenFile { .. })), "{script}");
        }
    }
}
