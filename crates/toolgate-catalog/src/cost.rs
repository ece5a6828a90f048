//! The cost of text in a context window.

mod o200k;

use serde::{Deserialize, Serialize};

/// Counts tokens with o200k, the tokenizer of current OpenAI models. It is an approximation for
/// other models, whose tokenizers are not public.
///
/// Counting is linear in the text, so that a server cannot make it slow.
#[derive(Clone, Copy)]
pub struct TokenCounter(&'static o200k::Tokenizer);

/// The unit of a limit or a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CostUnit {
    /// Tokens of o200k.
    #[default]
    Tokens,
    /// Unicode characters: what some clients count.
    Characters,
}

impl TokenCounter {
    /// The counter of this process. The first use builds its table, which takes some milliseconds.
    pub fn shared() -> Self {
        Self(&o200k::O200K)
    }

    /// Counts the tokens of `text`.
    pub fn count(self, text: &str) -> usize {
        self.0.count(text)
    }
}

impl std::fmt::Debug for TokenCounter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenCounter(o200k)")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Lines of `[count, text]`. The counts are those of tiktoken's algorithm, by the crate `bpe-openai` 0.3.2.
    const GOLDEN: &str = include_str!("cost/golden.jsonl");

    #[test]
    fn counts_as_tiktoken_does() {
        let counter = TokenCounter::shared();
        for line in GOLDEN.lines() {
            let (expected, text): (usize, String) = serde_json::from_str(line).unwrap();
            assert_eq!(counter.count(&text), expected, "{text:?}");
        }
    }

    /// Four times the text takes about four times as long. A quadratic algorithm would take minutes.
    #[test]
    fn hostile_text_is_counted_in_linear_time() {
        let counter = TokenCounter::shared();
        let begin = Instant::now();
        for unit in ["a", "A", " ", "ab", " \n", "!", "aA", "'", "漢字", "a\u{301}"] {
            let text = unit.repeat(100_000) + "x";
            assert!(counter.count(&text) > 500, "{unit:?}");
        }
        assert!(begin.elapsed() < Duration::from_mins(1));
    }
}
