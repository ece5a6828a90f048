//! What scripts may do.

use toolgate_sandbox::{PoolSettings, RunLimits};
use toolgate_store::Retention;

/// How scripts run.
#[derive(Debug, Clone)]
pub struct CodeSettings {
    /// How workers are started, and how many scripts may run at once.
    pub pool: PoolSettings,
    /// What each script may use.
    pub limits: RunLimits,
    /// How much of a script's output and value is shown, in tokens.
    pub max_output_tokens: usize,
    /// How many calls of all scripts together one server gets at once.
    pub max_parallel_calls: usize,
    /// How much is kept of runs, where there is a store.
    pub retention: Retention,
}

impl CodeSettings {
    /// The defaults, with these workers.
    pub fn new(pool: PoolSettings) -> Self {
        Self {
            pool,
            limits: RunLimits::default(),
            max_output_tokens: 4_000,
            max_parallel_calls: 32,
            retention: Retention::default(),
        }
    }
}
