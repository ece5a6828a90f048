//! The `codeMode` key: what scripts may do.

use crate::ProblemSeverity;
use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::section::{Definitions, Flag, Wrong, custom, integer, number, section, whole};

section! {
    /// Whether agents may run scripts, and the limits of scripts: the `codeMode` key.
    pub struct CodeModeConfig as "CodeMode" {
        /// Whether agents may run scripts.
        "enabled" => enabled: bool = true, Flag(Wrong::Becomes(false));
        /// How many seconds a script may take, including the time in which it waits for tools.
        "timeoutSeconds" => timeout_seconds: f64 = 30.0, number(0.1, 86_400.0);
        /// How many seconds of CPU time a script may use.
        "cpuSeconds" => cpu_seconds: f64 = 10.0, number(0.01, 3_600.0);
        /// How much memory a script's values may take, in megabytes.
        "memoryMb" => memory_mb: u64 = 128, whole::<u64>(2, 4_096);
        /// How much stack a script may use, in kilobytes.
        "stackKb" => stack_kb: u64 = 1_024, whole::<u64>(64, 4_096);
        /// How many workers wait for a script, so that it starts at once. Each takes a few megabytes.
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

/// Reads the section. A wrong `enabled` is an error that leaves scripts off; anything else that is
/// wrong keeps its default, with a warning.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> CodeModeConfig {
    if let Value::Boolean(enabled) = member.node.value {
        return CodeModeConfig { enabled, ..CodeModeConfig::default() };
    }
    let settings = scope.lenient_section(member, ProblemSeverity::Error, "; scripts are off", "");
    settings.unwrap_or(CodeModeConfig { enabled: false, ..CodeModeConfig::default() })
}
