//! Measures what a memory of past queries adds.
//!
//! ```text
//! cargo run --release -p toolgate-search --example memory -- PAST FILE…
//! ```
//!
//! Of each tool's queries the first PAST, spread evenly over the set, are taken as the past; the
//! others are asked, without the memory and with it. Then the same with nothing remembered of every
//! second tool: what becomes of queries for the tools that are new.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    fs,
};

use toolgate_search::{
    KnownTools, Query, Recall, SearchIndex, ToolKey, UsageMemory,
    evaluation::{
        DEPTH, LabelledQuery, LabelledSet, QueryFigures, Summary, figures, paired_bootstrap,
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let past: usize = arguments.next().ok_or("say how many past queries a tool has")?.parse()?;
    for file in arguments {
        let set: LabelledSet = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let mut index = SearchIndex::new();
        set.put_into(&mut index);
        let tools = Tools(set.corpus.iter().map(|tool| tool.id.as_str()).collect());
        let (memory, asked) = remember(&set, past, &HashSet::new());
        let title = format!("{file}: {} remembered", memory.len());
        report(&title, &index, &memory, &tools, &asked)?;
        let halves: [HashSet<&str>; 2] = [0, 1].map(|odd| {
            set.corpus.iter().skip(odd).step_by(2).map(|tool| tool.id.as_str()).collect()
        });
        for new in halves {
            let (memory, asked) = remember(&set, past, &new);
            let is_new = |query: &&LabelledQuery| labels(query).all(|tool| new.contains(tool));
            let (unknown, known): (Vec<_>, Vec<_>) = asked.into_iter().partition(is_new);
            let title = format!("{file}: half of the tools new");
            report(&format!("{title}, queries for those"), &index, &memory, &tools, &unknown)?;
            report(&format!("{title}, queries for the others"), &index, &memory, &tools, &known)?;
        }
    }
    Ok(())
}

/// The tools of a set, which are remembered under their ids.
struct Tools<'s>(HashSet<&'s str>);

impl KnownTools for Tools<'_> {
    fn remembered(&self, found: &ToolKey) -> ToolKey {
        found.clone()
    }

    fn wanted(&self, remembered: &ToolKey) -> Option<ToolKey> {
        self.0.contains(remembered.as_str()).then(|| remembered.clone())
    }
}

fn labels(query: &LabelledQuery) -> impl Iterator<Item = &str> {
    query.labels.iter().flatten().map(String::as_str)
}

/// A memory of up to `past` queries a tool, but none of `new` ones, and the queries to ask.
fn remember<'s>(
    set: &'s LabelledSet,
    past: usize,
    new: &HashSet<&str>,
) -> (UsageMemory, Vec<&'s LabelledQuery>) {
    let mut memory = UsageMemory::default();
    let mut taken: HashMap<&str, usize> = HashMap::new();
    let mut asked = Vec::new();
    // Every second query may become the past, so that both halves are spread over the set.
    for (place, query) in set.queries.iter().enumerate() {
        let has_room =
            |tool: &str| !new.contains(tool) && taken.get(tool).is_none_or(|count| *count < past);
        if place % 2 == 0 && labels(query).all(has_room) {
            for tool in labels(query) {
                *taken.entry(tool).or_default() += 1;
                memory.record(&query.q, &ToolKey::from(tool));
            }
        } else {
            asked.push(query);
        }
    }
    (memory, asked)
}

#[expect(clippy::print_stdout, reason = "an example that reports to a person")]
fn report(
    title: &str,
    index: &SearchIndex,
    memory: &UsageMemory,
    tools: &Tools<'_>,
    asked: &[&LabelledQuery],
) -> Result<(), Box<dyn Error>> {
    let (mut without, mut with): (Vec<QueryFigures>, Vec<QueryFigures>) = Default::default();
    for labelled in asked {
        let query = Query::new(&labelled.q, DEPTH);
        without.push(figures(labelled, &index.search(&query)?));
        let recall = Recall { memory, tools, caller: "" };
        with.push(figures(labelled, &index.search_remembering(&query, &recall)?));
    }
    println!("{title}");
    for (name, part) in [("without", &without), ("with", &with)] {
        let Summary { queries, recall_at_1, recall_at_5, ndcg_at_10, .. } = Summary::of(part);
        let [first, top, ndcg] = [recall_at_1, recall_at_5, ndcg_at_10].map(|it| it * 100.0);
        println!("  {name:<8} {queries} queries  R@1 {first:.1}  R@5 {top:.1}  nDCG@10 {ndcg:.1}");
    }
    let pairs: Vec<(usize, f64)> = with
        .iter()
        .zip(&without)
        .map(|(with, without)| with.ndcg_at_10 - without.ndcg_at_10)
        .enumerate()
        .collect();
    // The weights were chosen on the queries at even places.
    for (name, odd) in [("even", 0), ("odd", 1)] {
        let half = pairs.iter().filter(|(place, _)| place % 2 == odd);
        let gain = paired_bootstrap(&half.map(|(_, gain)| *gain).collect::<Vec<_>>());
        let [mean, low, high] = [gain.mean, gain.low, gain.high].map(|it| it * 100.0);
        println!("  nDCG@10 of the {name} half {mean:+.1} [{low:+.1}, {high:+.1}]");
    }
    Ok(())
}
