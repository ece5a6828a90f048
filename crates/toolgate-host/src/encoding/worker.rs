//! Sees to it that tools get vectors.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use toolgate_catalog::ServerName;
use toolgate_search::encoder::{EncodeError, ServerVectors, TextKind};

use super::{
    EncodeTools, EncoderSetup,
    progress::{Phase, Wanted},
    shelf::Shelf,
};
use crate::knowledge::Knowledge;

/// The task that does it.
pub(super) struct Worker {
    setup: EncoderSetup,
    wanted: Arc<Wanted>,
    knowledge: Arc<Knowledge>,
    shelf: Arc<Shelf>,
}

/// Texts that are encoded and kept at a time. What was kept is not lost when the program ends.
const BATCH: usize = 64;
/// How long the encoder is left alone after it failed; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

impl Worker {
    pub(super) fn new(
        setup: EncoderSetup,
        wanted: Arc<Wanted>,
        knowledge: Arc<Knowledge>,
        shelf: Arc<Shelf>,
    ) -> Self {
        Self { setup, wanted, knowledge, shelf }
    }

    /// Never ends by itself.
    pub(super) async fn run(self) {
        // Servers that have tools without a vector.
        let mut unfinished = BTreeSet::new();
        let mut pause = FIRST_PAUSE;
        let mut failure: Option<(Instant, String)> = None;
        loop {
            let again_at = failure.as_ref().map(|(again_at, _)| *again_at);
            let changed = tokio::select! {
                servers = self.wanted.next() => servers,
                () = sleep_until(again_at.unwrap_or_else(Instant::now)), if again_at.is_some() => {
                    BTreeSet::new()
                }
            };
            // First what is kept, for all servers, then what is to be made.
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
                self.wanted.enter(Phase::Idle, Some(reason.clone()));
                continue;
            }
            self.wanted.enter(Phase::Encoding, None);
            match self.make_missing(&mut unfinished).await {
                Ok(()) => {
                    (pause, failure) = (FIRST_PAUSE, None);
                    self.wanted.enter(Phase::Idle, None);
                }
                Err(error) => {
                    tracing::warn!(encoder = self.setup.encoder.name(), "no vectors: {error}");
                    self.wanted.enter(Phase::Idle, Some(error.to_string()));
                    failure = Some((Instant::now() + pause, error.to_string()));
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Makes the vectors that these servers' tools lack, in batches that may cross servers. Those
    /// that are finished are taken out.
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
        // Where servers have texts in common, only one of them was touched.
        for server in std::mem::take(unfinished) {
            self.apply(&server).await;
        }
        Ok(())
    }

    async fn make(&self, batch: &[(ServerName, String)]) -> Result<(), EncodeError> {
        let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
        let vectors = self.setup.encoder.encode(&texts, TextKind::Document).await?;
        if vectors.len() != texts.len() {
            return Err(EncodeError::Lasting("the encoder gives too few vectors".to_owned()));
        }
        if let Some(first) = vectors.first() {
            self.wanted.expect_dimensions(first.dimensions());
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let kept_in = Arc::clone(&self.shelf);
        let kept = tokio::task::spawn_blocking(move || {
            let entries: Vec<_> = texts.iter().map(String::as_str).zip(vectors).collect();
            kept_in.put(&entries);
        });
        let _ = kept.await;
        Ok(())
    }

    /// Gives the index what is kept of a server's texts; returns the texts of which nothing is.
    async fn apply(&self, server: &ServerName) -> Vec<String> {
        let (knowledge, kept) = (Arc::clone(&self.knowledge), Arc::clone(&self.shelf));
        let (name, expected) = (server.clone(), self.wanted.dimensions());
        let looked_up = tokio::task::spawn_blocking(move || {
            let documents = knowledge.documents(&name);
            let mut texts = vec![documents.server.as_str()];
            texts.extend(documents.tools.iter().map(|(_, text)| text.as_str()));
            let mut vectors = kept.get(&texts);
            // Of an encoder that changed its mind, the old ones are of no use.
            for vector in &mut vectors {
                let fits = |dimensions| expected.is_none_or(|expected| expected == dimensions);
                *vector = vector.take().filter(|vector| fits(vector.dimensions()));
            }
            let absent = texts.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
            let absent: Vec<String> = absent.map(|(text, _)| (*text).to_owned()).collect();
            let mut vectors = vectors.into_iter();
            let own = vectors.next().flatten();
            let keys = documents.tools.iter().map(|(key, _)| key.clone());
            let tools: Vec<_> =
                keys.zip(vectors).filter_map(|(key, vector)| Some((key, vector?))).collect();
            let length = tools.first().map(|(_, vector)| vector.dimensions());
            let (known, total) = (tools.len(), documents.tools.len());
            knowledge.set_vectors(&name, &documents, &ServerVectors { server: own, tools });
            (known, total, length, absent)
        });
        let Ok((known, total, length, absent)) = looked_up.await else { return Vec::new() };
        if let Some(length) = length {
            self.wanted.suppose_dimensions(length);
        }
        self.wanted.found(server, known, total);
        absent
    }
}
