//! The vectors of an encoder for the tools of a host: made in the background, cached, and requested
//! with each query.
//!
//! Search never waits for the vector of a tool. Tools without one are ranked by the built-in word
//! vectors. So is a query whose vector does not arrive in time, and its result says so.

mod progress;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use toolgate_catalog::ServerName;
use toolgate_search::encoder::{
    EncodeError, Encoder, QueryVector, ServerVectors, TextKind, UnitVector,
};
use toolgate_store::{Store, VectorCache};

pub use self::progress::VectorProgress;
pub(crate) use self::progress::{EncodingPhase, EncodingQueue};
use crate::{live_catalog::LiveCatalog, meta::one_line};

/// An encoder, and how it is used.
#[derive(Debug, Clone)]
pub struct EncoderSetup {
    /// The encoder.
    pub encoder: Arc<dyn Encoder>,
    /// How long a search waits for the vectors of its queries.
    pub timeout: Duration,
    /// Which tools are encoded.
    pub tools: EncodeTools,
}

/// Which tools the encoder is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodeTools {
    /// Tools whose vectors are not in the store.
    #[default]
    Missing,
    /// None: only the vectors in the store are used.
    Never,
}

/// The vectors of queries, and a note about them.
#[derive(Debug, Default)]
pub(crate) struct EncodedQueries {
    /// In the order of the queries; empty if the queries are ranked without vectors.
    pub(crate) vectors: Vec<QueryVector>,
    /// A sentence for the model if something failed.
    pub(crate) note: Option<String>,
}

/// The running encoder.
pub(crate) struct Encoding {
    setup: EncoderSetup,
    pub(crate) queue: Arc<EncodingQueue>,
    worker: JoinHandle<()>,
    /// When the last query failed to get a vector, and why. The next queries need not wait for the
    /// same.
    failed: Mutex<Option<(Instant, String)>>,
}

/// How long queries do without the encoder after a failure.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(5);
const REASON_CHARACTERS: usize = 160;

impl Encoding {
    /// Starts to encode all tools that `live_catalog` has and will have.
    pub(crate) fn start(
        setup: EncoderSetup,
        queue: Arc<EncodingQueue>,
        live_catalog: Arc<LiveCatalog>,
        store: Option<&Store>,
    ) -> Self {
        let cache = VectorIndexCache::new(store.map(|store| store.vectors(setup.encoder.id())));
        let (worker_setup, worker_queue) = (setup.clone(), Arc::clone(&queue));
        let worker = EncodingWorker {
            setup: worker_setup,
            queue: worker_queue,
            live_catalog,
            cache: Arc::new(cache),
        };
        let worker = tokio::spawn(worker.run());
        Self { setup, queue, worker, failed: Mutex::default() }
    }

    /// Stops the encoder. Unfinished texts are encoded another time.
    pub(crate) fn stop(&self) {
        self.worker.abort();
    }

    /// The vectors of the queries and of their common hint, within the timeout.
    pub(crate) async fn queries(&self, queries: &[String], hint: Option<&str>) -> EncodedQueries {
        let deadline = Instant::now() + self.setup.timeout;
        // Right after the start, stored vectors are still being read.
        let mut unseen = |_: &VectorProgress| {};
        let kept_is_read = self.queue.reached(EncodingPhase::Encoding, &mut unseen);
        let _ = tokio::time::timeout_at(deadline, kept_is_read).await;
        let progress = self.queue.progress();
        if queries.is_empty() || progress.total == 0 {
            return EncodedQueries::default();
        }
        let failed = self.failed.lock().clone();
        if let Some((_, reason)) = failed.filter(|(when, _)| when.elapsed() < RETRY_AFTER_FAILURE) {
            return self.without(&reason);
        }
        if progress.known == 0 {
            let reason = progress.failure.unwrap_or_else(|| "no tool has a vector yet".to_owned());
            return self.without(&reason);
        }
        let mut tool_text: Vec<&str> = queries.iter().map(String::as_str).collect();
        tool_text.extend(hint);
        let encoding = self.setup.encoder.encode(&tool_text, TextKind::Query);
        let reason = match tokio::time::timeout_at(deadline, encoding).await {
            Ok(Ok(mut vectors)) if vectors.len() == tool_text.len() => {
                *self.failed.lock() = None;
                let hint = hint.and_then(|_| vectors.pop());
                if let Some(first) = vectors.first() {
                    self.queue.expect_dimensions(first.dimensions());
                }
                let vectors = vectors.into_iter();
                let vectors = vectors.map(|text| QueryVector { text, hint: hint.clone() });
                return EncodedQueries { vectors: vectors.collect(), note: incomplete(&progress) };
            }
            Ok(Ok(_)) => "it gives too few vectors".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", self.setup.timeout.as_secs_f32()),
        };
        *self.failed.lock() = Some((Instant::now(), reason.clone()));
        self.without(&reason)
    }

    fn without(&self, reason: &str) -> EncodedQueries {
        let reason = one_line(reason, REASON_CHARACTERS);
        let note = format!(
            "Ranked by the built-in word vectors, without {}: {reason}.",
            self.setup.encoder.name()
        );
        EncodedQueries { vectors: Vec::new(), note: Some(note) }
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

fn incomplete(progress: &VectorProgress) -> Option<String> {
    let missing = progress.total.saturating_sub(progress.known);
    (missing > 0).then(|| {
        let total = progress.total;
        format!("{missing} of {total} tools have no vector yet; built-in word vectors rank them.")
    })
}

/// The task that encodes tools.
struct EncodingWorker {
    setup: EncoderSetup,
    queue: Arc<EncodingQueue>,
    live_catalog: Arc<LiveCatalog>,
    cache: Arc<VectorIndexCache>,
}

/// How many texts are encoded and stored at a time. Stored vectors survive the end of the program.
const BATCH: usize = 64;
/// How long the encoder is left alone after a failure; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

impl EncodingWorker {
    /// Runs until it is aborted.
    async fn run(self) {
        // Servers with tools that have no vector.
        let mut unfinished = BTreeSet::new();
        let mut pause = FIRST_PAUSE;
        let mut failure: Option<(Instant, String)> = None;
        loop {
            let again_at = failure.as_ref().map(|(again_at, _)| *again_at);
            let changed = tokio::select! {
                servers = self.queue.next() => servers,
                () = sleep_until(again_at.unwrap_or_else(Instant::now)), if again_at.is_some() => {
                    BTreeSet::new()
                }
            };
            // Stored vectors first, for all servers. Then the missing ones are made.
            for server in changed {
                if self.apply(&server).await.is_empty() {
                    unfinished.remove(&server);
                } else {
                    unfinished.insert(server);
                }
            }
            if let Some((again_at, reason)) = &failure
                && *again_at > Instant::now()
            {
                self.queue.enter(EncodingPhase::Idle, Some(reason.clone()));
                continue;
            }
            self.queue.enter(EncodingPhase::Encoding, None);
            match self.make_missing(&mut unfinished).await {
                Ok(()) => {
                    (pause, failure) = (FIRST_PAUSE, None);
                    self.queue.enter(EncodingPhase::Idle, None);
                }
                Err(error) => {
                    tracing::warn!(encoder = self.setup.encoder.name(), "no vectors: {error}");
                    self.queue.enter(EncodingPhase::Idle, Some(error.to_string()));
                    failure = Some((Instant::now() + pause, error.to_string()));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Makes the missing vectors of these servers' tools, in batches that may cross servers.
    /// Finished servers are removed.
    async fn make_missing(&self, unfinished: &mut BTreeSet<ServerName>) -> Result<(), EncodeError> {
        if self.setup.tools == EncodeTools::Never {
            unfinished.clear();
            return Ok(());
        }
        let mut missing: Vec<(ServerName, String)> = Vec::new();
        let mut seen = HashSet::new();
        for server in &*unfinished {
            let absent = self.apply(server).await.into_iter();
            let absent = absent.filter(|text| seen.insert(text.clone()));
            missing.extend(absent.map(|text| (server.clone(), text)));
        }
        for batch in missing.chunks(BATCH) {
            self.make(batch).await?;
            let touched: BTreeSet<&ServerName> = batch.iter().map(|(server, _)| server).collect();
            for server in touched {
                self.apply(server).await;
            }
        }
        // If servers have texts in common, only one of them was updated.
        for server in std::mem::take(unfinished) {
            self.apply(&server).await;
        }
        Ok(())
    }

    async fn make(&self, batch: &[(ServerName, String)]) -> Result<(), EncodeError> {
        let tool_text: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = self.setup.encoder.encode(&tool_text, TextKind::Document).await?;
        if vectors.len() != tool_text.len() {
            return Err(EncodeError::Lasting("the encoder gives too few vectors".to_owned()));
        }
        if let Some(first) = vectors.first() {
            self.queue.expect_dimensions(first.dimensions());
        }
        let tool_text: Vec<String> = tool_text.into_iter().map(str::to_owned).collect();
        let kept_in = Arc::clone(&self.cache);
        let kept = tokio::task::spawn_blocking(move || {
            let entries: Vec<_> = tool_text.iter().map(String::as_str).zip(vectors).collect();
            kept_in.put(&entries);
        });
        let _ = kept.await;
        Ok(())
    }

    /// Gives the stored vectors of a server's texts to the index. Returns the texts that have none.
    async fn apply(&self, server: &ServerName) -> Vec<String> {
        let (live_catalog, kept) = (Arc::clone(&self.live_catalog), Arc::clone(&self.cache));
        let (name, expected) = (server.clone(), self.queue.dimensions());
        let looked_up = tokio::task::spawn_blocking(move || {
            let documents = live_catalog.documents(&name);
            let mut tool_text = vec![documents.server.as_str()];
            tool_text.extend(documents.tools.iter().map(|(_, text)| text.as_str()));
            let mut vectors = kept.get(&tool_text);
            // Vectors of another length are from an earlier version of the encoder and useless.
            for vector in &mut vectors {
                let fits = |dimensions| expected.is_none_or(|expected| expected == dimensions);
                *vector = vector.take().filter(|vector| fits(vector.dimensions()));
            }
            let absent = tool_text.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
            let absent: Vec<String> = absent.map(|(text, _)| (*text).to_owned()).collect();
            let mut vectors = vectors.into_iter();
            let own = vectors.next().flatten();
            let keys = documents.tools.iter().map(|(key, _)| key.clone());
            let tools: Vec<_> =
                keys.zip(vectors).filter_map(|(key, vector)| Some((key, vector?))).collect();
            let length = tools.first().map(|(_, vector)| vector.dimensions());
            let (known, total) = (tools.len(), documents.tools.len());
            live_catalog.set_vectors(&name, &documents, &ServerVectors { server: own, tools });
            (known, total, length, absent)
        });
        let Ok((known, total, length, absent)) = looked_up.await else { return Vec::new() };
        if let Some(length) = length {
            self.queue.suppose_dimensions(length);
        }
        self.queue.found(server, known, total);
        absent
    }
}

/// The store, and memory for what cannot be stored.
#[derive(Debug)]
struct VectorIndexCache {
    cache: Option<VectorCache>,
    memory: Mutex<HashMap<String, UnitVector>>,
}

/// How many vectors are held in memory.
const MAX_IN_MEMORY: usize = 100_000;

impl VectorIndexCache {
    fn new(cache: Option<VectorCache>) -> Self {
        Self { cache, memory: Mutex::default() }
    }

    fn get(&self, tool_text: &[&str]) -> Vec<Option<UnitVector>> {
        let mut vectors: Vec<Option<UnitVector>> = match &self.cache {
            Some(cache) => {
                cache.get(tool_text).into_iter().map(|vector| UnitVector::new(vector?)).collect()
            }
            None => vec![None; tool_text.len()],
        };
        let memory = self.memory.lock();
        for (vector, text) in
            vectors.iter_mut().zip(tool_text).filter(|(vector, _)| vector.is_none())
        {
            *vector = memory.get(*text).cloned();
        }
        vectors
    }

    fn put(&self, entries: &[(&str, UnitVector)]) {
        if let Some(cache) = &self.cache {
            let slices: Vec<(&str, &[f32])> =
                entries.iter().map(|(text, vector)| (*text, vector.as_slice())).collect();
            match cache.put(&slices) {
                Ok(()) => return,
                Err(error) => tracing::warn!("vectors are not cached: {error}"),
            }
        }
        let mut memory = self.memory.lock();
        if memory.len() + entries.len() > MAX_IN_MEMORY {
            memory.clear();
        }
        memory.extend(entries.iter().map(|(text, vector)| ((*text).to_owned(), vector.clone())));
    }
}
