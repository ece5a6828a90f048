//! Measures the ranking against labelled queries.
//!
//! ```text
//! cargo run -p toolgate-search --example evaluate -- [--parameters JSON] [--hints] FILE…
//! ```
//!
//! A file is one JSON object:
//!
//! ```text
//! {"corpus":  [{"id", "server", "server_desc", "name", "desc", "params": {name: description}}],
//!  "queries": [{"q", "hint"?, "labels": [[acceptable ids], …], "gains"?: {id: grade}}]}
//! ```
//!
//! Each file is reported as a whole and by halves, the queries at even and at odd places, so that
//! numbers can be chosen on one half and checked on the other.

use std::{collections::BTreeMap, error::Error, fs, process::ExitCode};

use serde::Deserialize;
use toolgate_search::{
    Bm25Index, Bm25Parameters, ParameterText, Query, SearchIndex, ServerText, ToolKey, ToolText,
    metrics::{ndcg_at, recall_at},
};

#[derive(Deserialize)]
struct Set {
    corpus: Vec<Tool>,
    #[serde(default)]
    queries: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    server: String,
    server_desc: String,
    name: String,
    desc: String,
    params: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Labelled {
    q: String,
    hint: Option<String>,
    labels: Vec<Vec<String>>,
    gains: Option<BTreeMap<String, f64>>,
}

#[derive(Default)]
struct Arguments {
    parameters: Bm25Parameters,
    hints: bool,
    files: Vec<String>,
}

/// Sums of the measures over queries.
#[derive(Default, Clone, Copy)]
struct Figures {
    queries: f64,
    recall: [f64; 3],
    ndcg: f64,
}

const DEPTHS: [usize; 3] = [1, 5, 10];

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that reports to a person"
)]
fn main() -> ExitCode {
    let report = arguments().and_then(|arguments| {
        println!(
            "{:<40} {:>7} {:>6} {:>6} {:>6} {:>7}",
            "set", "queries", "R@1", "R@5", "R@10", "nDCG@10"
        );
        arguments.files.iter().try_for_each(|file| {
            let [even, odd] = evaluate(file, &arguments)?;
            println!("{}", line(file, even.plus(odd)));
            println!("{}", line("  even places", even));
            println!("{}", line("  odd places", odd));
            Ok(())
        })
    });
    match report {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut arguments = Arguments::default();
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--hints" => arguments.hints = true,
            "--parameters" => {
                let json = given.next().ok_or("--parameters needs a JSON object")?;
                arguments.parameters = serde_json::from_str(&json)?;
            }
            _ => arguments.files.push(argument),
        }
    }
    if arguments.files.is_empty() {
        return Err("no files given".into());
    }
    Ok(arguments)
}

fn evaluate(file: &str, arguments: &Arguments) -> Result<[Figures; 2], Box<dyn Error>> {
    let set: Set = serde_json::from_str(&fs::read_to_string(file)?)?;
    let index = build(&set.corpus, arguments.parameters);
    let mut halves = [Figures::default(); 2];
    for (place, labelled) in set.queries.iter().enumerate() {
        let mut query = Query::new(&labelled.q, 10);
        if arguments.hints {
            query.hint = labelled.hint.as_deref();
        }
        let ranking: Vec<String> =
            index.search(&query).into_iter().map(|hit| hit.key.to_string()).collect();
        halves[place % 2].count(&ranking, labelled);
    }
    Ok(halves)
}

fn build(corpus: &[Tool], parameters: Bm25Parameters) -> SearchIndex {
    let mut servers: BTreeMap<&str, Vec<&Tool>> = BTreeMap::new();
    for tool in corpus {
        servers.entry(&tool.server).or_default().push(tool);
    }
    let mut index = SearchIndex::with_strategy(Box::new(Bm25Index::with_parameters(parameters)));
    for (server, tools) in servers {
        let description = tools.first().map_or("", |tool| tool.server_desc.as_str());
        let tools: Vec<_> =
            tools.iter().map(|tool| (ToolKey::from(tool.id.as_str()), tool.text())).collect();
        index.replace_server(server, ServerText { name: server, description }, &tools);
    }
    index
}

impl Tool {
    fn text(&self) -> ToolText<'_> {
        let parameters = self.params.iter().map(|(name, description)| ParameterText {
            name,
            description,
            values: Vec::new(),
        });
        ToolText {
            name: &self.name,
            title: None,
            description: &self.desc,
            parameters: parameters.collect(),
        }
    }
}

impl Figures {
    fn count(&mut self, ranking: &[String], labelled: &Labelled) {
        self.queries += 1.0;
        for (sum, depth) in self.recall.iter_mut().zip(DEPTHS) {
            *sum += recall_at(depth, ranking, &labelled.labels);
        }
        let gains = labelled.gains.clone().unwrap_or_else(|| {
            labelled.labels.iter().flatten().map(|id| (id.clone(), 1.0)).collect()
        });
        let worth: Vec<f64> = gains.values().copied().collect();
        self.ndcg += ndcg_at(10, ranking, &worth, |id| gains.get(id).copied().unwrap_or(0.0));
    }

    fn plus(self, other: Self) -> Self {
        Self {
            queries: self.queries + other.queries,
            recall: std::array::from_fn(|depth| self.recall[depth] + other.recall[depth]),
            ndcg: self.ndcg + other.ndcg,
        }
    }
}

fn line(name: &str, figures: Figures) -> String {
    let percent = |sum: f64| 100.0 * sum / figures.queries.max(1.0);
    let [first, fifth, tenth] = figures.recall.map(percent);
    let name = name.rsplit('/').next().unwrap_or(name);
    format!(
        "{name:<40} {:>7} {first:>6.1} {fifth:>6.1} {tenth:>6.1} {:>7.1}",
        figures.queries,
        percent(figures.ndcg)
    )
}
