//! What text costs a context window.

use serde::{Deserialize, Serialize};

/// Counts tokens with o200k, the tokenizer of current OpenAI models and a fair stand-in for
/// others, whose tokenizers are not public.
///
/// Counting is linear in the text, whatever the text: a server cannot make it slow.
#[derive(Clone, Copy)]
pub struct TokenCounter(&'static bpe_openai::Tokenizer);

/// In what a limit or a report counts.
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
    /// The counter. Its tables are built at the first use, which takes some tens of milliseconds.
    pub fn shared() -> Self {
        Self(bpe_openai::o200k_base())
    }

    /// The number of tokens of `text`.
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
    use super::*;

    #[test]
    fn counts_as_o200k_does() {
        // Reference counts of the published vocabulary.
        let counter = TokenCounter::shared();
        assert_eq!(counter.count(""), 0);
        assert_eq!(counter.count("hello world"), 2);
        assert_eq!(counter.count(r#"{"type":"object"}"#), 5);
    }
}
