//! The definitions of the meta-tools. A session with deferred tools pays for nothing else.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_catalog::{Definition, ExposureKind, OwnCost};

use super::MetaTool;

/// What the definitions depend on, apart from the exposure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a thing of its own")]
pub(crate) struct MetaToolOptions {
    /// Whether found tools stay loaded.
    pub(crate) keep_loaded_tools: bool,
    /// Whether scripts may run.
    pub(crate) scripts: bool,
    /// Which Python scripts may be written in.
    pub(crate) python: PythonKind,
    /// The languages of components, with a hint for each.
    pub(crate) languages: Arc<[(String, Option<String>)]>,
    /// Whether a model turns texts into data for scripts.
    pub(crate) extract: bool,
    /// Whether there are tools that have to be searched for.
    pub(crate) deferred: bool,
    /// Whether there are servers to enable.
    pub(crate) servers: bool,
    /// Whether there are skills.
    pub(crate) skills: bool,
    /// Whether there are skills of servers.
    pub(crate) server_skills: bool,
}

/// The Python that runs scripts, as `run_code` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum PythonKind {
    /// A subset of the language, which is built in.
    #[default]
    Subset,
    /// `CPython` of this version.
    CPython {
        /// The version without the number of its patch, so that an update of the machine changes no
        /// description: `3.12`.
        version: Arc<str>,
        /// The packages that scripts may import.
        packages: Arc<[String]>,
    },
}

/// The definitions, in their fixed order.
pub(crate) fn meta_definitions(kind: ExposureKind, offer: &MetaToolOptions) -> Vec<Value> {
    let unloads = kind == ExposureKind::Dynamic && !offer.keep_loaded_tools;
    MetaTool::ALL
        .into_iter()
        .filter(|tool| match tool {
            MetaTool::Search | MetaTool::Details => offer.deferred,
            // A session for scripts has to call tools if scripts are off.
            MetaTool::Call => offer.deferred && (kind != ExposureKind::Code || !offer.scripts),
            MetaTool::Run | MetaTool::Resume => offer.scripts,
            // Any result may be too long to show.
            MetaTool::Read => true,
            MetaTool::FindServers | MetaTool::Enable | MetaTool::Disable => offer.servers,
            MetaTool::LoadSkill => offer.skills,
        })
        .map(|tool| {
            json!({
                "name": tool.name(),
                "description": description(tool, kind, offer),
                "inputSchema": offered_schema(tool, unloads, offer),
                "annotations": annotations(tool),
            })
        })
        .collect()
}

/// What the meta-tools of a direct session cost. It is counted once for the same options.
pub(crate) fn direct_cost(offer: &MetaToolOptions) -> OwnCost {
    static KNOWN: LazyLock<Mutex<HashMap<MetaToolOptions, OwnCost>>> =
        LazyLock::new(Mutex::default);
    if let Some(known) = KNOWN.lock().get(offer) {
        return *known;
    }
    let mut cost = OwnCost::default();
    for tool in meta_definitions(ExposureKind::Direct, offer) {
        let Ok(definition) = Definition::from_value(&tool) else { continue };
        cost.tokens += u64::from(definition.tokens());
        cost.characters += definition.characters() as u64;
    }
    KNOWN.lock().insert(offer.clone(), cost);
    cost
}

/// What the description of `run_code` says if scripts have a model.
const EXTRACT_SENTENCE: &str =
    " await extract(value, schema, hint?) turns prose into data of a JSON Schema.";

fn run_description(offer: &MetaToolOptions) -> String {
    let python = match &offer.python {
        PythonKind::Subset => "Python (a subset of Python 3)".to_owned(),
        PythonKind::CPython { version, packages } => {
            let mut parts = vec!["standard library"];
            parts.extend(packages.iter().map(String::as_str));
            format!("Python (CPython {version}, {})", parts.join(", "))
        }
    };
    let extract = if offer.extract { EXTRACT_SENTENCE } else { "" };
    let hints = offer.languages.iter().filter_map(|(name, hint)| Some((name, hint.as_ref()?)));
    let hints = hints.map(|(name, hint)| format!(" {name}: {hint}")).collect::<Vec<_>>().concat();
    format!(
        "Run a script that calls tools; only what it prints and returns comes back. For several \
         calls, large results, loops. Every tool is an async function of its name. TypeScript: \
         const issues = await github_list_issues({{repo: \"a/b\"}}); return issues.length; also \
         tools[name]({{…}}). {python}: issues = await github_list_issues(repo=\"a/b\"); \
         print(len(issues)). A result is data already, do not parse it; or text where the tool gives \
         text. A failed call throws. search_tools, get_tool_details, read_resource(uri) and \
         read_output are functions too. Parallel: Promise.all, asyncio.gather. There is no network, \
         no file, no package. For types: get_tool_details with format.{extract}{hints}"
    )
}

fn description(tool: MetaTool, kind: ExposureKind, offer: &MetaToolOptions) -> String {
    let text = match (tool, kind) {
        (MetaTool::Search, ExposureKind::Dynamic) => {
            "Find tools of the connected servers by what they do. Most tools are not listed until \
             found: search before you say that something cannot be done. Found tools are added to \
             your tools and can be called by name."
        }
        (MetaTool::Search, ExposureKind::Code) => {
            "Find tools of the connected servers by what they do. They are not listed: search \
             before you say that something cannot be done. Call what you found from run_code."
        }
        (MetaTool::Search, _) => {
            "Find tools of the connected servers by what they do. Most tools are not listed: \
             search before you say that something cannot be done. Call a found tool with call_tool."
        }
        (MetaTool::Details, _) => {
            "Full definitions of tools: parameters, types, what they return. Read them before the \
             first call."
        }
        (MetaTool::Call, _) => {
            "Call a tool by its name from search_tools. Arguments are checked first; the tool's \
             own result comes back."
        }
        (MetaTool::Run, _) => return run_description(offer),
        (MetaTool::Resume, _) => {
            "Go on with a run_code that failed, was interrupted or waits for approval, by its run id. \
             Calls that completed are not repeated. With code: corrected, its first calls the same."
        }
        (MetaTool::Read, _) => {
            "More of an output that was too long to show, or a toolgate:// resource: from an offset \
             on, or the lines that match a pattern."
        }
        (MetaTool::FindServers, _) => {
            "Find servers and skills that are not in use yet, by what they are for. Search before you \
             say that there is no way to do something."
        }
        (MetaTool::Enable, _) => {
            "Connect a server by its name from search_available_servers; then search_tools finds its \
             tools. One that is not configured needs the consent of a person, who is asked."
        }
        (MetaTool::Disable, _) => {
            "Disconnect a server that is no longer needed. Its calls are refused from now on; its \
             tools are not listed in new conversations."
        }
        (MetaTool::LoadSkill, _) if offer.server_skills => {
            "Read the instructions of a skill: by name, or by server and uri for a skill of a server."
        }
        (MetaTool::LoadSkill, _) => {
            "Read the instructions of a skill, and connect the servers that it needs."
        }
    };
    text.to_owned()
}

/// The schema with the languages that components add.
fn offered_schema(tool: MetaTool, unloads: bool, offer: &MetaToolOptions) -> Value {
    let mut schema = input_schema(tool, unloads);
    if tool == MetaTool::Run
        && let Some(Value::Array(names)) = schema.pointer_mut("/properties/language/enum")
    {
        names.extend(offer.languages.iter().map(|(name, _)| json!(name)));
    }
    if tool == MetaTool::LoadSkill && offer.server_skills {
        let text = json!({ "type": "string" });
        schema["properties"] = json!({ "name": text, "server": text, "uri": text });
        schema["required"] = json!([]);
    }
    schema
}

pub(crate) fn input_schema(tool: MetaTool, unloads: bool) -> Value {
    match tool {
        MetaTool::Search => {
            let mut schema = json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "What the tool should do, in a few words" },
                    "queries": {
                        "type": "array", "items": { "type": "string" },
                        "description": "Several queries at once, for a task of several steps"
                    },
                    "server": {
                        "type": "string", "description": "Only this server; alone, lists its tools"
                    },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50 },
                    "offset": { "type": "integer" },
                    "strategy": { "enum": ["hybrid", "bm25", "embedding", "keyword", "regex"] },
                    "detail": {
                        "enum": ["name", "description", "schema"],
                        "description": "How much to show of each tool; default description"
                    },
                },
                "additionalProperties": false,
            });
            if unloads {
                schema["properties"]["unload"] = json!({
                    "type": "boolean", "description": "Unload the tools found so far first"
                });
            }
            schema
        }
        MetaTool::Details => json!({
            "type": "object",
            "properties": {
                "names": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 20 },
                "format": {
                    "enum": ["typescript", "python", "json"], "description": "Default typescript"
                },
            },
            "required": ["names"],
            "additionalProperties": false,
        }),
        MetaTool::Call => json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "arguments": { "type": "object" },
            },
            "required": ["name"],
            "additionalProperties": false,
        }),
        MetaTool::Run => json!({
            "type": "object",
            "properties": {
                "code": { "type": "string" },
                "language": { "enum": ["typescript", "python"], "description": "Default typescript" },
            },
            "required": ["code"],
            "additionalProperties": false,
        }),
        MetaTool::Resume => json!({
            "type": "object",
            "properties": {
                "run_id": { "type": "string" },
                "code": { "type": "string" },
            },
            "required": ["run_id"],
            "additionalProperties": false,
        }),
        MetaTool::Read => json!({
            "type": "object",
            "properties": {
                "id": { "type": "string" },
                "offset": { "type": "integer", "minimum": 0, "description": "In bytes" },
                "pattern": { "type": "string", "description": "A regular expression" },
            },
            "required": ["id"],
            "additionalProperties": false,
        }),
        MetaTool::FindServers => json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "What it should be for, in a few words" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 20 },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
        MetaTool::Enable | MetaTool::Disable | MetaTool::LoadSkill => json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        }),
    }
}

fn annotations(tool: MetaTool) -> Value {
    match tool {
        MetaTool::Search | MetaTool::Details | MetaTool::Read | MetaTool::FindServers => {
            json!({ "readOnlyHint": true })
        }
        MetaTool::Enable => json!({ "openWorldHint": true, "idempotentHint": true }),
        MetaTool::Disable => json!({ "destructiveHint": false, "idempotentHint": true }),
        MetaTool::LoadSkill => json!({ "destructiveHint": false }),
        // The effect depends on the tool that is called.
        MetaTool::Call | MetaTool::Run | MetaTool::Resume => json!({ "openWorldHint": true }),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_catalog::TokenCounter;

    use super::*;

    static BASE: LazyLock<MetaToolOptions> = LazyLock::new(|| MetaToolOptions {
        keep_loaded_tools: true,
        scripts: true,
        python: PythonKind::Subset,
        languages: Arc::default(),
        extract: false,
        deferred: true,
        servers: false,
        skills: false,
        server_skills: false,
    });

    #[test]
    fn all_of_them_cost_a_session_less_than_a_thousand_tokens() {
        for kind in [ExposureKind::Stable, ExposureKind::Dynamic, ExposureKind::Code] {
            let offer = MetaToolOptions { keep_loaded_tools: false, ..BASE.clone() };
            let text = serde_json::to_string(&meta_definitions(kind, &offer)).unwrap();
            let tokens = TokenCounter::shared().count(&text);
            assert!(tokens <= 1_000, "{kind}: {tokens}");
            let all = MetaToolOptions { extract: true, servers: true, skills: true, ..offer };
            let text = serde_json::to_string(&meta_definitions(kind, &all)).unwrap();
            let tokens = TokenCounter::shared().count(&text);
            assert!(tokens <= 1_500, "{kind} with servers and skills: {tokens}");
        }
    }

    #[test]
    fn servers_and_skills_are_offered_where_there_are_any() {
        let names = |offer: MetaToolOptions| -> Vec<String> {
            let definitions = meta_definitions(ExposureKind::Direct, &offer);
            definitions.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let nothing_deferred = MetaToolOptions { deferred: false, scripts: false, ..BASE.clone() };
        // A long result of any tool names it.
        assert_eq!(names(nothing_deferred.clone()), ["read_output"]);
        let servers =
            ["read_output", "search_available_servers", "enable_server", "disable_server"];
        assert_eq!(names(MetaToolOptions { servers: true, ..nothing_deferred.clone() }), servers);
        let skills = ["read_output", "load_skill"];
        assert_eq!(names(MetaToolOptions { skills: true, ..nothing_deferred.clone() }), skills);
        let extended = MetaToolOptions { servers: true, skills: true, ..nothing_deferred };
        insta::assert_json_snapshot!("extended", meta_definitions(ExposureKind::Direct, &extended));
    }

    #[test]
    fn their_bytes_are_always_the_same() {
        let stable = || meta_definitions(ExposureKind::Stable, &BASE);
        assert_eq!(stable().len(), 6);
        let text = || serde_json::to_string(&stable()).unwrap();
        assert_eq!(text(), text());
        insta::assert_json_snapshot!("stable", stable());
    }

    #[test]
    fn scripts_are_offered_where_they_may_run() {
        let names = |kind, scripts| -> Vec<String> {
            meta_definitions(kind, &MetaToolOptions { scripts, ..BASE.clone() })
                .iter()
                .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
                .collect()
        };
        let code = ["search_tools", "get_tool_details", "run_code", "resume_run", "read_output"];
        assert_eq!(names(ExposureKind::Code, true), code);
        let calls = ["search_tools", "get_tool_details", "call_tool", "read_output"];
        assert_eq!(names(ExposureKind::Code, false), calls);
        assert_eq!(names(ExposureKind::Stable, false), calls);
    }

    #[test]
    fn a_direct_session_has_scripts_and_pays_for_them() {
        let direct = MetaToolOptions { deferred: false, ..BASE.clone() };
        let tools = meta_definitions(ExposureKind::Direct, &direct);
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, ["run_code", "resume_run", "read_output"]);
        let deferred = meta_definitions(ExposureKind::Stable, &BASE);
        assert!(tools.iter().all(|tool| deferred.contains(tool)), "the same bytes in every mode");
        let cost = direct_cost(&direct);
        assert!((100..500).contains(&cost.tokens), "{cost:?}");
        let off = direct_cost(&MetaToolOptions { scripts: false, ..direct });
        assert!(off.tokens < cost.tokens / 2, "{off:?}");
    }

    #[test]
    fn run_code_says_that_results_are_data_how_tools_are_named_and_which_python_runs() {
        let says = |python| run_description(&MetaToolOptions { python, ..BASE.clone() });
        let subset = says(PythonKind::Subset);
        for part in ["data already, do not parse", "tools[name]", "a subset of Python 3"] {
            assert!(subset.contains(part), "{subset}");
        }
        let packages = ["numpy".to_owned()].into();
        let native = says(PythonKind::CPython { version: "3.13".into(), packages });
        assert!(native.contains("CPython 3.13, standard library, numpy)"), "{native}");
        assert!(!native.contains("subset"), "{native}");
    }

    #[test]
    fn the_languages_of_components_are_offered_with_their_hints() {
        let languages = [
            ("lua".to_owned(), Some("server_tool{a=1} returns the result.".to_owned())),
            ("ruby".to_owned(), None),
        ];
        let offer = MetaToolOptions { languages: languages.into(), ..BASE.clone() };
        let tools = meta_definitions(ExposureKind::Code, &offer);
        let run = tools.iter().find(|tool| tool["name"] == "run_code").unwrap();
        let names = &run["inputSchema"]["properties"]["language"]["enum"];
        assert_eq!(*names, json!(["typescript", "python", "lua", "ruby"]));
        let text = run["description"].as_str().unwrap();
        assert!(text.ends_with(" lua: server_tool{a=1} returns the result."), "{text}");
    }
}
