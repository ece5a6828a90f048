//! Where vectors are looked for before they are made.

use std::collections::HashMap;

use parking_lot::Mutex;
use toolgate_search::encoder::UnitVector;
use toolgate_store::VectorCache;

/// The store, and memory for what it does not take.
#[derive(Debug)]
pub(super) struct Shelf {
    cache: Option<VectorCache>,
    memory: Mutex<HashMap<String, UnitVector>>,
}

/// Without a store, this many vectors are held.
const MAX_IN_MEMORY: usize = 100_000;

impl Shelf {
    pub(super) fn new(cache: Option<VectorCache>) -> Self {
        Self { cache, memory: Mutex::default() }
    }

    pub(super) fn get(&self, texts: &[&str]) -> Vec<Option<UnitVector>> {
        let mut vectors: Vec<Option<UnitVector>> = match &self.cache {
            Some(cache) => {
                cache.get(texts).into_iter().map(|vector| UnitVector::new(vector?)).collect()
            }
            None => vec![None; texts.len()],
        };
        let memory = self.memory.lock();
        for (vector, text) in vectors.iter_mut().zip(texts).filter(|(vector, _)| vector.is_none()) {
            *vector = memory.get(*text).cloned();
        }
        vectors
    }

    pub(super) fn put(&self, entries: &[(&str, UnitVector)]) {
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
