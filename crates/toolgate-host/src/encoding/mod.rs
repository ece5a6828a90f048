//! An encoder's vectors for the tools of a host: made aside, kept, and asked for with each query.
//!
//! Search never waits for a tool's vector. What has none yet is ranked by the word vectors in the
//! program; a query whose vector does not come in time is, too, and its result says so.

mod progress;
mod shelf;
mod worker;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::Instant};
use toolgate_search::encoder::{Encoder, QueryVector, TextKind};
use toolgate_store::Store;

use self::{shelf::Shelf, worker::Worker};
use crate::{knowledge::Knowledge, meta::one_line};

pub use self::progress::VectorProgress;
pub(crate) use self::progress::{Phase, Wanted};

/// An encoder, and how it is used.
#[derive(Debug, Clone)]
pub struct EncoderSetup {
    /// The encoder.
    pub encoder: Arc<dyn Encoder>,
    /// How long a search waits for the vectors of its queries.
    pub patience: Duration,
    /// What is encoded.
    pub tools: EncodeTools,
}

/// Which tools an encoder is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodeTools {
    /// Those whose vectors are not in the store.
    #[default]
    Missing,
    /// None: the vectors in the store are all there are.
    Never,
}

/// The vectors of queries, and what to tell of them.
#[derive(Debug, Default)]
pub(crate) struct EncodedQueries {
    /// In the order of the queries; none where they are to be ranked without.
    pub(crate) vectors: Vec<QueryVector>,
    /// A sentence, where something is not as it should be.
    pub(crate) note: Option<String>,
}

/// The encoder at work.
pub(crate) struct Encoding {
    setup: EncoderSetup,
    wanted: Arc<Wanted>,
    worker: JoinHandle<()>,
    /// When a query last got no vector, and why: the next ones need not wait for the same.
    failed: Mutex<Option<(Instant, String)>>,
}

/// How long queries do without the encoder after it failed one.
const COOLING: Duration = Duration::from_secs(5);
const REASON_CHARACTERS: usize = 160;

impl Encoding {
    /// Starts to look for the vectors of all tools that `knowledge` has and will have.
    pub(crate) fn start(
        setup: EncoderSetup,
        wanted: Arc<Wanted>,
        knowledge: Arc<Knowledge>,
        store: Option<&Store>,
    ) -> Self {
        let shelf = Shelf::new(store.map(|store| store.vectors(setup.encoder.id())));
        let worker = Worker::new(setup.clone(), Arc::clone(&wanted), knowledge, Arc::new(shelf));
        let worker = tokio::spawn(worker.run());
        Self { setup, wanted, worker, failed: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        self.setup.encoder.name()
    }

    /// Asks the encoder for nothing more. Texts that are being encoded are encoded again some time.
    pub(crate) fn stop(&self) {
        self.worker.abort();
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The vectors of queries and of the hint that goes with all of them, in the time there is.
    pub(crate) async fn queries(&self, queries: &[String], hint: Option<&str>) -> EncodedQueries {
        let deadline = Instant::now() + self.setup.patience;
        // Right after a start, what is kept is still being read.
        let mut unseen = |_: &VectorProgress| {};
        let kept_is_read = self.wanted.reached(Phase::Encoding, &mut unseen);
        let _ = tokio::time::timeout_at(deadline, kept_is_read).await;
        let progress = self.wanted.progress();
        if queries.is_empty() || progress.total == 0 {
            return EncodedQueries::default();
        }
        let failed = self.failed.lock().clone();
        if let Some((_, reason)) = failed.filter(|(when, _)| when.elapsed() < COOLING) {
            return self.without(&reason);
        }
        if progress.known == 0 {
            let reason = progress.failure.unwrap_or_else(|| "no tool has a vector yet".to_owned());
            return self.without(&reason);
        }
        let mut texts: Vec<&str> = queries.iter().map(String::as_str).collect();
        texts.extend(hint);
        let encoding = self.setup.encoder.encode(&texts, TextKind::Query);
        let reason = match tokio::time::timeout_at(deadline, encoding).await {
            Ok(Ok(mut vectors)) if vectors.len() == texts.len() => {
                *self.failed.lock() = None;
                let hint = hint.and_then(|_| vectors.pop());
                if let Some(first) = vectors.first() {
                    self.wanted.expect_dimensions(first.dimensions());
                }
                let vectors = vectors.into_iter();
                let vectors = vectors.map(|text| QueryVector { text, hint: hint.clone() });
                return EncodedQueries { vectors: vectors.collect(), note: incomplete(&progress) };
            }
            Ok(Ok(_)) => "it gives too few vectors".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", self.setup.patience.as_secs_f32()),
        };
        *self.failed.lock() = Some((Instant::now(), reason.clone()));
        self.without(&reason)
    }

    fn without(&self, reason: &str) -> EncodedQueries {
        let reason = one_line(reason, REASON_CHARACTERS);
        let note =
            format!("Ranked by the built-in word vectors, without {}: {reason}.", self.name());
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
