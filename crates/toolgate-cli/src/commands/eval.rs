//! `toolgate eval`

mod encode;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use toolgate_search::{
    Hit, SearchIndex, StrategyName,
    encoder::Encoder,
    evaluation::{
        Hints, Interval, LabelledSet, QueryFigures, Summary, measure_encoded, paired_bootstrap,
    },
};

use self::encode::SetVectors;
use crate::{
    cli::{Eval, Globals},
    failure::{CommandResult, Failure},
    load, print,
    table::table,
};

/// A set is in memory together with its indexes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The measurements of one set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    file: PathBuf,
    tools: usize,
    queries: usize,
    strategies: Vec<Row>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    strategy: StrategyName,
    #[serde(flatten)]
    summary: Summary,
    /// The averages of each style of queries, if the set has styles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    styles: BTreeMap<String, Summary>,
    /// Each query, if that is wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    each: Vec<MeasuredQuery>,
    /// Against the first strategy, query by query: what recall@5 changes by.
    #[serde(skip_serializing_if = "Option::is_none")]
    recall_at_5_change: Option<Interval>,
}

/// One query of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MeasuredQuery {
    query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<String>,
    /// The rank of the first tool that answers it, if there is one within ten.
    rank: Option<usize>,
    #[serde(flatten)]
    figures: QueryFigures,
    found: Vec<String>,
}

pub(crate) async fn run(globals: &Globals, arguments: &Eval) -> CommandResult {
    let mut strategies: Vec<StrategyName> = Vec::new();
    for strategy in &arguments.strategy {
        if !strategies.contains(strategy) {
            strategies.push(*strategy);
        }
    }
    if strategies.is_empty() {
        // A sentence is a regular expression that matches little, which measures nothing.
        let all = StrategyName::ALL.iter().copied();
        let unmeasured = [StrategyName::Regex, StrategyName::Subagent];
        strategies = all.filter(|strategy| !unmeasured.contains(strategy)).collect();
    }
    if strategies.contains(&StrategyName::Subagent) {
        return Err(Failure::usage(
            "`subagent` cannot be measured: it asks a model for every query",
        )
        .hint("what it chooses from is measured by --strategy hybrid, at R@10"));
    }
    // All files are read before the first is measured: a typing error shows at once.
    let sets: Vec<(&Path, LabelledSet)> = arguments
        .files
        .iter()
        .map(|file| Ok((&**file, read(file)?)))
        .collect::<Result<_, Failure>>()?;
    for (file, set) in &sets {
        note_unknown_labels(file, set);
    }
    let hints = if arguments.hints { Hints::Given } else { Hints::Ignored };
    let by_meaning = strategies.iter().any(|strategy| strategy.ranks_by_meaning());
    let vectors = match encoder(globals)?.filter(|_| by_meaning) {
        Some(encoder) => encode::all(&*encoder, load::store().as_ref(), &sets, hints).await?,
        None => Vec::new(),
    };
    let total: usize = sets.iter().map(|(_, set)| set.queries.len() * strategies.len()).sum();
    let bar = print::progress(total as u64, "measuring");
    let mut vectors = vectors.into_iter();
    let measured: Vec<Measured> = sets
        .iter()
        .map(|(file, set)| (file, set, vectors.next().unwrap_or_default()))
        .map(|(file, set, vectors)| Measured {
            file: file.to_path_buf(),
            tools: set.corpus.len(),
            queries: set.queries.len(),
            strategies: rows(set, &strategies, hints, &vectors, &mut || bar.inc(1)),
        })
        .collect();
    bar.finish_and_clear();
    let mut measured = measured;
    if !arguments.queries {
        measured.iter_mut().flat_map(|set| &mut set.strategies).for_each(|row| row.each.clear());
    }
    print::show(arguments.output.json, &measured, || render(&measured))?;
    Ok(ExitCode::SUCCESS)
}

/// The encoder of the configuration after `--config`. A configuration of the working folder is not
/// used, because measurements must not depend on the folder.
fn encoder(globals: &Globals) -> Result<Option<Arc<dyn Encoder>>, Failure> {
    if globals.config.is_none() {
        return Ok(None);
    }
    match load::load(globals)?.encoder() {
        None => Ok(None),
        Some(Ok(setup)) => Ok(Some(setup.encoder)),
        Some(Err(reason)) => Err(Failure::usage(reason.to_string())),
    }
}

fn rows(
    set: &LabelledSet,
    strategies: &[StrategyName],
    hints: Hints,
    vectors: &SetVectors,
    progress: &mut dyn FnMut(),
) -> Vec<Row> {
    let start = Instant::now();
    let mut clock = || start.elapsed();
    let mut first: Option<Vec<QueryFigures>> = None;
    let mut rows = Vec::new();
    for strategy in strategies {
        let mut index = SearchIndex::ranked_by(*strategy);
        set.put_into(&mut index);
        for (server, vectors) in &vectors.servers {
            index.set_vectors(server, vectors);
        }
        let mut found: Vec<Vec<String>> = Vec::new();
        let mut each = |hits: &[Hit]| {
            found.push(hits.iter().map(|hit| hit.key.to_string()).collect());
            progress();
        };
        let figures = measure_encoded(set, &index, hints, &vectors.queries, &mut clock, &mut each);
        rows.push(Row {
            strategy: *strategy,
            summary: Summary::of(&figures),
            styles: styles(set, &figures),
            each: each_query(set, &figures, found),
            recall_at_5_change: first.as_deref().map(|first| change(first, &figures)),
        });
        first.get_or_insert(figures);
    }
    rows
}

fn styles(set: &LabelledSet, figures: &[QueryFigures]) -> BTreeMap<String, Summary> {
    let mut styles: BTreeMap<String, Vec<QueryFigures>> = BTreeMap::new();
    for (query, figures) in set.queries.iter().zip(figures) {
        if let Some(style) = &query.style {
            styles.entry(style.clone()).or_default().push(*figures);
        }
    }
    styles.into_iter().map(|(style, figures)| (style, Summary::of(&figures))).collect()
}

fn each_query(
    set: &LabelledSet,
    figures: &[QueryFigures],
    found: Vec<Vec<String>>,
) -> Vec<MeasuredQuery> {
    let queries = set.queries.iter().zip(figures).zip(found);
    queries
        .map(|((query, figures), found)| MeasuredQuery {
            query: query.q.clone(),
            style: query.style.clone(),
            rank: found
                .iter()
                .position(|id| query.labels.iter().any(|need| need.contains(id)))
                .map(|place| place + 1),
            figures: *figures,
            found,
        })
        .collect()
}

fn change(first: &[QueryFigures], other: &[QueryFigures]) -> Interval {
    let pairs = first.iter().zip(other);
    let differences: Vec<f64> =
        pairs.map(|(first, other)| other.recall_at_5 - first.recall_at_5).collect();
    paired_bootstrap(&differences)
}

fn read(file: &Path) -> Result<LabelledSet, Failure> {
    let shown = file.display();
    let cannot = |error| Failure::usage(format!("{shown} cannot be read: {error}"));
    let size = fs::metadata(file).map_err(cannot)?.len();
    if size > MAX_FILE_BYTES {
        return Err(Failure::usage(format!("{shown} has more than {MAX_FILE_BYTES} bytes")));
    }
    let text = fs::read_to_string(file).map_err(cannot)?;
    serde_json::from_str(&text).map_err(|error| {
        if error.is_data() {
            Failure::usage(format!("{shown} is not a labelled set: {error}")).hint(
                "a set is {\"corpus\": [{\"id\", \"server\", \"name\", \"desc\", \"params\"}], \
                 \"queries\": [{\"q\", \"labels\": [[id]]}]}; docs/search.md has more",
            )
        } else {
            Failure::usage(format!("{shown} is not JSON: {error}"))
        }
    })
}

/// A label that no tool has lowers every figure, and is most often a slip.
fn note_unknown_labels(file: &Path, set: &LabelledSet) {
    let unknown = set.unknown_labels();
    if let Some(example) = unknown.first() {
        let (count, shown) = (unknown.len(), file.display());
        print::note(format!("warning: {shown}: {count} labels name no tool, such as `{example}`"));
    }
}

fn render(measured: &[Measured]) -> String {
    let columns = [
        "set",
        "strategy",
        ">queries",
        ">R@1",
        ">R@5",
        ">R@10",
        ">nDCG@10",
        ">MRR",
        ">median",
        ">p99",
        "R@5 against the first",
    ];
    let rows = measured.iter().flat_map(|measured| {
        measured.strategies.iter().flat_map(move |row| {
            let name = measured.file.file_stem().unwrap_or(measured.file.as_os_str());
            let name = name.to_string_lossy();
            let all = cells(&name, row.strategy, &row.summary, remark(row));
            let styles = row.styles.iter().map(|(style, summary)| {
                let name = format!("{name}, {}", toolgate_host::one_line(style, 40));
                cells(&name, row.strategy, summary, String::new())
            });
            [all].into_iter().chain(styles.collect::<Vec<_>>())
        })
    });
    let mut text = table(&columns, rows);
    for row in measured.iter().flat_map(|measured| &measured.strategies) {
        if !row.each.is_empty() {
            text.push_str("\n\n");
            text.push_str(&render_queries(row));
        }
    }
    text
}

fn render_queries(row: &Row) -> String {
    let strategy = row.strategy.as_str();
    let rows = row.each.iter().map(|query| {
        let shown = |text: &str| toolgate_host::one_line(text, 80);
        let found: Vec<String> = query.found.iter().take(3).map(|id| shown(id)).collect();
        vec![
            query.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string()),
            shown(query.style.as_deref().unwrap_or_default()),
            shown(&query.query),
            found.join(", "),
        ]
    });
    table(&[">rank", "style", "query", &format!("found by {strategy}")], rows)
}

/// What there is to say about a row.
fn remark(row: &Row) -> String {
    let summary = &row.summary;
    let mut remark = row.recall_at_5_change.map(|change| {
        let [mean, low, high] = [change.mean, change.low, change.high].map(|part| part * 100.0);
        format!("{mean:+.1} [{low:+.1}, {high:+.1}]")
    });
    if summary.refused > 0 {
        let refused = format!("{} refused", summary.refused);
        remark = Some(remark.map_or(refused.clone(), |remark| format!("{remark}, {refused}")));
    }
    remark.unwrap_or_default()
}

fn cells(name: &str, strategy: StrategyName, summary: &Summary, remark: String) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    vec![
        name.to_owned(),
        strategy.to_string(),
        summary.queries.to_string(),
        percent(summary.recall_at_1),
        percent(summary.recall_at_5),
        percent(summary.recall_at_10),
        percent(summary.ndcg_at_10),
        percent(summary.mrr),
        shown(summary.median_time),
        shown(summary.p99_time),
        remark,
    ]
}

fn shown(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}
