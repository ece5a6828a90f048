//! The vectors of a set's tools and queries.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use toolgate_search::{
    encoder::{
        Encoder, QueryVector, ServerVectors, TextKind, UnitVector, server_document, tool_document,
    },
    evaluation::{Hints, LabelledSet},
};
use toolgate_store::{Store, VectorCache};

use crate::{failure::Failure, print};

/// The vectors of one set.
#[derive(Debug, Default)]
pub(super) struct SetVectors {
    /// Of the tools, by server.
    pub(super) servers: Vec<(String, ServerVectors)>,
    /// Of the queries, in their order.
    pub(super) queries: Vec<QueryVector>,
}

/// The encoder and its vectors.
struct Encoded<'e> {
    encoder: &'e dyn Encoder,
    documents: Option<VectorCache>,
    queries: Option<VectorCache>,
    known: HashMap<(TextKind, String), UnitVector>,
}

const BATCH: usize = 64;

/// The vectors of all sets. Those of tools are shared with search; those of queries are cached
/// separately, so that a second measurement does not need the encoder.
pub(super) async fn all(
    encoder: &dyn Encoder,
    store: Option<&Store>,
    sets: &[(&Path, LabelledSet)],
    hints: Hints,
) -> Result<Vec<SetVectors>, Failure> {
    let cache =
        |suffix: &str| store.map(|store| store.vectors(&(encoder.id().to_owned() + suffix)));
    let mut held = Encoded {
        encoder,
        documents: cache(""),
        queries: cache(" queries"),
        known: HashMap::new(),
    };
    let sets = sets.iter().map(|(_, set)| set);
    let documents = sets.clone().flat_map(|set| {
        set.servers().into_iter().flat_map(|(server, tools)| {
            let own = server_document(server);
            let tools: Vec<String> = tools.iter().map(|(_, tool)| tool_document(tool)).collect();
            tools.into_iter().chain([own])
        })
    });
    held.fill(TextKind::Document, documents.collect()).await?;
    let queries = sets.clone().flat_map(|set| {
        set.queries.iter().flat_map(|query| {
            let hint = query.hint.clone().filter(|_| hints == Hints::Given);
            hint.into_iter().chain([query.q.clone()]).filter(|text| !text.trim().is_empty())
        })
    });
    held.fill(TextKind::Query, queries.collect()).await?;
    Ok(sets.map(|set| held.of(set)).collect())
}

impl Encoded<'_> {
    async fn fill(&mut self, kind: TextKind, texts: Vec<String>) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        let texts: Vec<String> =
            texts.into_iter().filter(|text| seen.insert(text.clone())).collect();
        let bar = print::progress(texts.len() as u64, "encoding");
        let cache = match kind {
            TextKind::Document => &self.documents,
            TextKind::Query => &self.queries,
        };
        for batch in texts.chunks(BATCH) {
            let texts: Vec<&str> = batch.iter().map(String::as_str).collect();
            let cached =
                cache.as_ref().map_or_else(|| vec![None; texts.len()], |it| it.get(&texts));
            let mut missing = Vec::new();
            for (text, vector) in texts.into_iter().zip(cached) {
                match vector.and_then(UnitVector::new) {
                    Some(vector) => drop(self.known.insert((kind, text.to_owned()), vector)),
                    None => missing.push(text),
                }
            }
            let made = self.encoder.encode(&missing, kind).await;
            let made = made.map_err(|error| Failure::new(format!("no vectors: {error}")))?;
            let entries: Vec<(&str, &[f32])> =
                missing.iter().copied().zip(made.iter().map(UnitVector::as_slice)).collect();
            if let Some(cache) = cache {
                // A failed write costs time only.
                let _ = cache.put(&entries);
            }
            let texts = missing.iter().map(|text| (kind, (*text).to_owned()));
            self.known.extend(texts.zip(made));
            bar.inc(batch.len() as u64);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn of(&self, set: &LabelledSet) -> SetVectors {
        let vector = |kind, text: &str| self.known.get(&(kind, text.to_owned())).cloned();
        let servers = set.servers().into_iter().map(|(server, tools)| {
            let tools = tools.into_iter().filter_map(|(key, tool)| {
                Some((key, vector(TextKind::Document, &tool_document(&tool))?))
            });
            let own = vector(TextKind::Document, &server_document(server));
            (server.name.to_owned(), ServerVectors { server: own, tools: tools.collect() })
        });
        let blank = UnitVector::new(vec![1.0]);
        let queries = set.queries.iter().filter_map(|query| {
            // An empty query has a vector that fits no tool.
            let text = vector(TextKind::Query, &query.q).or_else(|| blank.clone())?;
            let hint = query.hint.as_deref().and_then(|hint| vector(TextKind::Query, hint));
            Some(QueryVector { text, hint })
        });
        SetVectors { servers: servers.collect(), queries: queries.collect() }
    }
}
