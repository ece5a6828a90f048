//! Token use, prices and context windows.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// The tokens of one request, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUse {
    /// Input tokens that were neither read from a cache nor written to one.
    pub new: u64,
    /// Input tokens that the provider read from its cache.
    pub cached: u64,
    /// Input tokens that the provider wrote to its cache.
    pub cache_written: u64,
    /// Tokens of the answer, with those of thinking.
    pub output: u64,
}

impl TokenUse {
    /// All input tokens: what the model read.
    pub fn input(&self) -> u64 {
        self.new + self.cached + self.cache_written
    }

    /// Input and output.
    pub fn total(&self) -> u64 {
        self.input() + self.output
    }
}

impl AddAssign for TokenUse {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.cached += other.cached;
        self.cache_written += other.cache_written;
        self.output += other.output;
    }
}

/// What a million tokens cost, in US dollars. Prices change, so this crate knows none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenPrices {
    /// New input tokens.
    pub input: f64,
    /// Tokens read from the cache.
    pub cached: f64,
    /// Tokens written to the cache.
    pub cache_written: f64,
    /// Output tokens.
    pub output: f64,
}

impl TokenPrices {
    /// The cost of these tokens, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "no conversation has 2^53 tokens")]
    pub fn cost(&self, tokens: &TokenUse) -> f64 {
        (tokens.new as f64 * self.input
            + tokens.cached as f64 * self.cached
            + tokens.cache_written as f64 * self.cache_written
            + tokens.output as f64 * self.output)
            / 1e6
    }
}

/// Context windows by the beginning of a model's name; the first that fits holds. Names of routers have a folder
/// before them (`anthropic/claude-…`), which does not count.
const WINDOWS: [(&str, u64); 11] = [
    ("claude-", 200_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini-", 1_048_576),
    ("deepseek-", 128_000),
    ("kimi-", 256_000),
    ("glm-", 128_000),
    ("qwen3", 128_000),
];
/// For models that nobody knows. Most have more, and a compaction too early costs less than a request that fails.
const SMALL_WINDOW: u64 = 32_768;

/// The context window of a model, by its name, in tokens. A setting overrides it.
pub fn known_window(model: &str) -> u64 {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let known = WINDOWS.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.map_or(SMALL_WINDOW, |(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_found_by_prefix() {
        assert_eq!(known_window("claude-sonnet-4-5"), 200_000);
        assert_eq!(known_window("anthropic/Claude-Opus"), 200_000);
        assert_eq!(known_window("gpt-4.1-mini"), 1_047_576);
        assert_eq!(known_window("smollm2:135m"), SMALL_WINDOW);
    }

    #[test]
    fn a_cost_counts_each_kind() {
        let prices = TokenPrices { input: 3.0, cached: 0.3, cache_written: 3.75, output: 15.0 };
        let tokens = TokenUse {
            new: 1_000_000,
            cached: 1_000_000,
            cache_written: 1_000_000,
            output: 1_000_000,
        };
        assert!((prices.cost(&tokens) - 22.05).abs() < 1e-9);
        assert_eq!(tokens.total(), 4_000_000);
    }
}
