//! What scripts may do.

use schemars::JsonSchema;
use serde::Serialize;

/// Whether agents may run scripts, and what these may use: the `codeMode` key.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CodeMode {
    /// Whether `run_code` is offered.
    pub enabled: bool,
    /// How many seconds a script may take, waiting for tools included.
    #[schemars(range(min = 0.1, max = 86_400))]
    pub timeout_seconds: f64,
    /// How many seconds a script may compute; waiting for tools does not count.
    #[schemars(range(min = 0.01, max = 3_600))]
    pub cpu_seconds: f64,
    /// How much memory a script's values may take, in megabytes.
    #[schemars(range(min = 2, max = 4_096))]
    pub memory_mb: u64,
    /// How much stack a script may use, in kilobytes.
    #[schemars(range(min = 64, max = 4_096))]
    pub stack_kb: u64,
    /// How many workers wait for a script, so that it starts at once. Each takes a few megabytes.
    #[schemars(range(min = 0, max = 100))]
    pub warm_workers: u64,
    /// How many scripts may run at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_runs: u64,
    /// How many calls a script may make.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_calls: u64,
    /// How many of a script's calls may be in flight at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_calls_in_flight: u64,
    /// How many calls of all scripts together one server gets at once; more wait their turn.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_parallel_calls: u64,
    /// The largest result of a call that a script is given, in bytes.
    #[schemars(range(min = 1_024, max = 268_435_456))]
    pub max_result_bytes: u64,
    /// How much of a script's output is kept, in bytes.
    #[schemars(range(min = 1_024, max = 67_108_864))]
    pub max_output_bytes: u64,
    /// How much of a script's output and value the model is shown, in tokens. The rest can be read
    /// with `read_output`.
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_output_tokens: u64,
    /// How much is kept of runs, so that they can be looked at and resumed.
    pub journal: RunJournal,
}

/// How much is kept of runs: the `codeMode.journal` key. What runs or waits for approval is kept
/// beside it, until it is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RunJournal {
    /// How many runs that are over.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub runs: u64,
    /// For how many days.
    #[schemars(range(min = 1, max = 3_650))]
    pub days: u64,
    /// How much of the disk all of them may take, in megabytes.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub megabytes: u64,
}

impl Default for RunJournal {
    fn default() -> Self {
        Self { runs: 1_000, days: 30, megabytes: 1_024 }
    }
}

impl Default for CodeMode {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout_seconds: 30.0,
            cpu_seconds: 10.0,
            memory_mb: 128,
            stack_kb: 1_024,
            warm_workers: 2,
            max_runs: 256,
            max_calls: 500,
            max_calls_in_flight: 500,
            max_parallel_calls: 32,
            max_result_bytes: 16 * 1024 * 1024,
            max_output_bytes: 1024 * 1024,
            max_output_tokens: 4_000,
            journal: RunJournal::default(),
        }
    }
}
