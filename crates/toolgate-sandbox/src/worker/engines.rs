//! The engines of a worker.

use toolgate_bindings::check::{Language, Lookup, LookupResult, check};
use toolgate_engines::{Engine, EngineLimits, EngineScript, NullWorld};

use super::{MakeEngine, Urgency};

/// Engines that were made while there was time, and the way to make others.
pub(super) struct Engines {
    make: MakeEngine,
    typescript: Option<Result<Box<dyn Engine>, String>>,
    python: Option<Result<Box<dyn Engine>, String>>,
}

impl Engines {
    pub(super) fn new(make: MakeEngine) -> Self {
        Self { make, typescript: None, python: None }
    }

    /// Makes one engine of each language, of which one will be used.
    ///
    /// And takes ways that every script takes: most of the time that a small script needs is spent
    /// on code that was never touched before. JavaScript's engine does that itself when it is made.
    pub(super) fn warm_up(&mut self) {
        check(Language::TypeScript, "return 1", &[], &[], &mut NoTools);
        check(Language::Python, "1", &[], &[], &mut NoTools);
        if let Ok(engine) = (self.make)(Language::Python, Urgency::Idle) {
            drop(engine.run(&EngineScript { source: "1", functions: &[] }, &TRIAL, &mut NullWorld));
        }
        self.typescript = Some((self.make)(Language::TypeScript, Urgency::Idle));
        self.python = Some((self.make)(Language::Python, Urgency::Idle));
    }

    pub(super) fn of(self, language: Language) -> Result<Box<dyn Engine>, String> {
        let made = match language {
            Language::TypeScript => self.typescript,
            Language::Python => self.python,
        };
        made.unwrap_or_else(|| (self.make)(language, Urgency::ScriptWaits))
    }
}

/// What a script may use that does nothing.
const TRIAL: EngineLimits =
    EngineLimits { memory_bytes: 16 * 1024 * 1024, stack_bytes: 512 * 1024 };

/// Knows no tool.
struct NoTools;

impl Lookup for NoTools {
    fn look_up(&mut self, _names: &[String]) -> Vec<LookupResult> {
        Vec::new()
    }
}
