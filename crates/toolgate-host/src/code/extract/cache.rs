//! The answers so far, by content: a model is not asked twice for the same.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_catalog::Fingerprint;

/// The answers of a host. The oldest ones go first.
#[derive(Debug, Default)]
pub(in crate::code) struct ExtractCache(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    by_key: HashMap<Fingerprint, (Value, usize)>,
    order: VecDeque<Fingerprint>,
    bytes: usize,
}

const MAX_ANSWERS: usize = 1_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;

impl ExtractCache {
    pub(super) fn get(&self, key: &Fingerprint) -> Option<Value> {
        self.0.lock().by_key.get(key).map(|(value, _)| value.clone())
    }

    pub(super) fn put(&self, key: Fingerprint, value: &Value) {
        let bytes = value.to_string().len();
        let mut answers = self.0.lock();
        if bytes > MAX_BYTES || answers.by_key.contains_key(&key) {
            return;
        }
        answers.by_key.insert(key, (value.clone(), bytes));
        answers.order.push_back(key);
        answers.bytes += bytes;
        while answers.bytes > MAX_BYTES || answers.order.len() > MAX_ANSWERS {
            let Some(oldest) = answers.order.pop_front() else { break };
            let removed = answers.by_key.remove(&oldest);
            answers.bytes -= removed.map_or(0, |(_, bytes)| bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_cache_is_bounded_in_number_and_in_bytes() {
        let cache = ExtractCache::default();
        let key = |number: usize| Fingerprint::of(&json!(number));
        for number in 0..=MAX_ANSWERS {
            cache.put(key(number), &json!(number));
        }
        assert_eq!(cache.get(&key(0)), None);
        assert_eq!(cache.get(&key(MAX_ANSWERS)), Some(json!(MAX_ANSWERS)));
        let large = json!("x".repeat(MAX_BYTES / 2));
        cache.put(Fingerprint::of(&json!("a")), &large);
        cache.put(Fingerprint::of(&json!("b")), &large);
        assert_eq!(cache.0.lock().order.len(), 1);
        assert_eq!(cache.0.lock().by_key.len(), 1);
    }
}
