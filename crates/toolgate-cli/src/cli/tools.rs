//! The arguments of the commands that find tools, call them and run scripts.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use toolgate_search::StrategyName;

use super::{ConfigFile, Output};

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What the tool should do, in quotes; each of several queries has its own results
    #[arg(required_unless_present = "server", value_name = "QUERY")]
    pub(crate) queries: Vec<String>,
    /// Search only this server; without a query, list its tools
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Show at most N tools for each query
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Leave out the first N tools
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<usize>,
    /// Rank with this strategy; the configuration sets the default
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Option<StrategyName>,
    /// Show this much of each tool
    #[arg(long, value_name = "DETAIL", default_value = "description")]
    pub(crate) detail: Detail,
    /// Show what each score is made of, and the place of each tool by every strategy
    #[arg(long)]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The parts of a tool that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Detail {
    /// The name
    Name,
    /// The name, the parameters and the description
    Description,
    /// The name, the description and the schemas
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Names as `toolgate search` shows them
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// A name as `toolgate search` shows it
    pub(crate) name: String,
    /// The arguments as a JSON object; `-` reads them from stdin, `@FILE` from a file
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Set one argument; may be repeated. A value that is not JSON is a text
    #[arg(long = "arg", short = 'a', value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// A script in TypeScript, JavaScript or Python; `-` reads it from stdin
    #[arg(value_name = "FILE", required_unless_present = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// Read the script in this language: typescript, python, or one that `toolgate engines` lists; the default is
    /// that of the file name, else typescript
    #[arg(long, short, value_name = "LANGUAGE", conflicts_with = "resume")]
    pub(crate) language: Option<String>,
    /// Check the script as `run_code` does, and do not run it; the exit code is 1 if it would not run
    #[arg(long, conflicts_with = "resume")]
    pub(crate) check: bool,
    /// Resume this run without repeating completed calls; FILE, if given, replaces its code
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Repeat calls that were sent and whose outcome is unknown
    #[arg(long, requires = "resume")]
    pub(crate) repeat_unknown: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    /// Show at most N runs, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Show runs in this state: running (or interrupted), waiting, done or failed
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Show runs in this language
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<String>,
    /// Show runs of callers whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) caller: Option<String>,
    /// Show runs with a call of this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Show a run: its code, its calls in order, its output
    Show {
        /// The id of the run, or the first characters of the id
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Let the next resume of a run repeat a call whose outcome is unknown
    Repeat {
        /// The id of the run, or the first characters of the id
        id: String,
        /// The number of the call
        call: u64,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Engines {
    #[command(subcommand)]
    pub(crate) command: Option<EnginesCommand>,
    #[command(flatten)]
    pub(crate) from: ConfigFile,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnginesCommand {
    /// Add a WebAssembly component that runs the scripts of a language
    ///
    /// The component is checked, compiled and started once. Its scripts are confined like all others. The program
    /// must be built with the feature `engine-wasm`.
    Add(AddEngine),
    /// Remove the component of a language
    Remove {
        /// The name of the language
        language: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddEngine {
    /// The file of the component
    pub(crate) file: PathBuf,
    /// Name the language; `run_code` chooses it by this name
    #[arg(long, value_name = "NAME")]
    pub(crate) language: String,
    /// Tell models in a sentence how a script calls a tool
    #[arg(long, value_name = "TEXT")]
    pub(crate) hint: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Files with labelled sets: each is a JSON object with `corpus` and `queries`; docs/search.md describes them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Measure this strategy; may be repeated, and the first is the baseline. The default is every strategy
    /// except `regex` and `subagent`; `subagent` cannot be measured
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) strategy: Vec<StrategyName>,
    /// Give each query the hint about its server, if the labelled set has one
    #[arg(long)]
    pub(crate) hints: bool,
    /// Show each query with the rank of its first answer and the first tools that were found
    #[arg(long)]
    pub(crate) queries: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a strategy's name.
fn strategy() -> impl TypedValueParser<Value = StrategyName> {
    let names = StrategyName::ALL.iter().map(|strategy| strategy.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<StrategyName>())
}
