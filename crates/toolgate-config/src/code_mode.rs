//! The `codeMode` key: what scripts may do.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::section::{
    Definitions, Flag, Word, Wrong, custom, integer, number, seconds, section, strings_schema,
    text, text_schema, whole,
};
use crate::tool_search::{ChatProviderName, MODEL_HINT, api_key, base_url};
use crate::{ProblemSeverity, Secret};

section! {
    /// Whether agents may run scripts, and the limits of scripts: the `codeMode` key.
    pub struct CodeModeConfig as "CodeMode" {
        /// Whether agents may run scripts.
        "enabled" => enabled: bool = true, Flag(Wrong::Becomes(false));
        /// Which Python runs scripts: `auto` is the `CPython` of this machine, version 3.11 or newer, if
        /// there is one and the system can confine it, and else `monty`, the embedded interpreter of
        /// a part of the language. A path or a name is that program; a folder is a virtual environment.
        /// `false` means `monty`, and `true` means `auto`.
        "python" => python: String = String::from("auto"), custom(python_schema, read_python);
        /// Packages that Python scripts may import beside the standard library, if `CPython` runs them
        /// and they are installed: `["numpy", "pandas"]`.
        "pythonPackages" => python_packages: Vec<String> = Vec::new(),
            custom(strings_schema, read_packages);
        /// How many seconds a script may take, including the time in which it waits for tools.
        "timeoutSeconds" => timeout_seconds: f64 = 30.0, number(0.1, 86_400.0);
        /// How many seconds of CPU time a script may use.
        "cpuSeconds" => cpu_seconds: f64 = 10.0, number(0.01, 3_600.0);
        /// How much memory a script's values may take, in megabytes.
        "memoryMb" => memory_mb: u64 = 512, whole::<u64>(2, 4_096);
        /// How much stack a script may use, in kilobytes.
        "stackKb" => stack_kb: u64 = 1_024, whole::<u64>(64, 4_096);
        /// How many workers are forked before a script needs them, so that it starts at once.
        "warmWorkers" => warm_workers: usize = 2, integer(0, 100);
        /// How many scripts may run at once.
        "maxRuns" => max_runs: usize = 256, integer(1, 10_000);
        /// How many calls a script may make.
        "maxCalls" => max_calls: u64 = 500, whole::<u64>(0, 1_000_000);
        /// How many calls of a script may be open at once.
        "maxCallsInFlight" => max_calls_in_flight: usize = 500, integer(1, 100_000);
        /// How many calls of all scripts together one server gets at once. Further calls wait in a
        /// queue.
        "maxParallelCalls" => max_parallel_calls: usize = 32, integer(1, 10_000);
        /// The largest result of a call that a script gets, in bytes.
        "maxResultBytes" => max_result_bytes: u64 = 16 * 1024 * 1024, whole::<u64>(1_024, 268_435_456);
        /// How much of a script's output toolgate stores, in bytes.
        "maxOutputBytes" => max_output_bytes: usize = 1024 * 1024, integer(1_024, 67_108_864);
        /// How much of a script's output and value the model gets, in tokens. `read_output` reads
        /// the rest.
        "maxOutputTokens" => max_output_tokens: usize = 4_000, integer(100, 1_000_000);
        /// How many runs toolgate stores, so that a person can inspect them and a run can resume.
        "journal" => journal: JournalConfig = JournalConfig::default(),
            custom(Definitions::reference::<JournalConfig>, |scope, member| {
                scope.lenient_section::<JournalConfig>(
                    member, ProblemSeverity::Warning, "; it is ignored", "",
                )
            });
        /// The model that turns prose into data for the function `extract` of scripts, and how much a
        /// script may ask it.
        "extract" => extract: ExtractConfig = ExtractConfig::default(),
            custom(Definitions::reference::<ExtractConfig>, read_extract);
    }
}

section! {
    /// The function `extract` of scripts: the `codeMode.extract` key. Without a `model`, toolgate asks
    /// the model of the client, if the client offers sampling.
    ///
    /// `${NAME}` and `${NAME:-default}` in `endpoint`, `model` and `apiKey` stand for environment
    /// variables.
    pub struct ExtractConfig as "Extract" {
        /// The API of the endpoint. Most endpoints support `openai`.
        "provider" => provider: ChatProviderName = ChatProviderName::OpenAi, Word::<ChatProviderName>(Wrong::Refused);
        /// The base URL. toolgate adds `/chat/completions` or, for `anthropic`, `/v1/messages`. The
        /// default is the URL of the provider.
        "endpoint" => endpoint: Option<Secret> = None, custom(text_schema, base_url);
        /// The name of the model: a small, fast one.
        "model" => model: String = String::new(), text();
        /// The API key of the endpoint, preferably as `${NAME}`.
        "apiKey" => api_key: Option<Secret> = None, custom(text_schema, api_key);
        /// How many seconds a script waits for one answer.
        "timeoutSeconds" => timeout: Duration = Duration::from_secs(20), seconds(0.1, 600.0);
        /// How many questions a script may ask. An answer that toolgate knows already does not count.
        "maxCalls" => max_calls: u32 = 50, whole::<u32>(0, 100_000);
        /// How many tokens the questions and answers of a script may have together.
        "maxTokens" => max_tokens: usize = 100_000, integer(0, 100_000_000);
    }
}

impl ExtractConfig {
    /// The base URL: the configured one, or that of the provider.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_ref().map_or(self.provider.endpoint(), Secret::expose)
    }
}

section! {
    /// How many runs toolgate stores: the `codeMode.journal` key. Runs that have not ended or wait
    /// for approval do not count, and stay until they are too old.
    pub struct JournalConfig as "RunJournal" {
        /// How many runs that have ended toolgate stores.
        "runs" => runs: u32 = 1_000, whole::<u32>(0, 1_000_000);
        /// For how many days toolgate stores a run.
        "days" => days: u32 = 30, whole::<u32>(1, 3_650);
        /// How much disk space all runs may use, in megabytes.
        "megabytes" => megabytes: u64 = 1_024, whole::<u64>(1, 1_048_576);
    }
}

fn python_schema(_: &mut Definitions) -> Json {
    json!({ "anyOf": [{ "type": "string" }, { "type": "boolean" }] })
}

/// Reads which Python runs scripts. After a mistake it is the embedded one, and not a program of the machine.
fn read_python(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
    Some(match &member.node.value {
        Value::Null => return None,
        Value::Boolean(true) => "auto".to_owned(),
        Value::Boolean(false) => "monty".to_owned(),
        _ => scope.text(member).unwrap_or_else(|| "monty".to_owned()),
    })
}

/// Reads the names of packages, which scripts write after `import`.
fn read_packages(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Vec<String>> {
    let is_name = |part: &str| {
        let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        part.chars().all(is_letter) && part.starts_with(|first: char| !first.is_ascii_digit())
    };
    let mut packages = Vec::new();
    for (package, at) in scope.strings(member)? {
        if package.split('.').all(is_name) {
            packages.push(package.to_owned());
        } else {
            let expected = "the name that a script imports, such as `numpy`";
            scope.unfit(ProblemSeverity::Warning, &at, expected, "");
        }
    }
    Some(packages)
}

/// Reads the model. A mistake costs the model, with an error: scripts run without it.
fn read_extract(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<ExtractConfig> {
    let hint =
        "write `\"extract\": { \"endpoint\": \"http://localhost:11434/v1\", \"model\": \"…\" }`";
    scope.sound_section(member, hint, |scope| {
        if ["provider", "endpoint", "apiKey"].iter().any(|key| scope.object.get(key).is_some()) {
            scope.require("model", MODEL_HINT);
        }
    })
}

/// Reads the section. A wrong `enabled` is an error that leaves scripts off; anything else that is
/// wrong keeps its default, with a warning.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> CodeModeConfig {
    if let Value::Boolean(enabled) = member.node.value {
        return CodeModeConfig { enabled, ..CodeModeConfig::default() };
    }
    let settings = scope.lenient_section(member, ProblemSeverity::Error, "; scripts are off", "");
    settings.unwrap_or(CodeModeConfig { enabled: false, ..CodeModeConfig::default() })
}
