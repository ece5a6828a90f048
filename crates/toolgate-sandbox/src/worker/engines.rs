//! The engines, prepared before a script is known.

use toolgate_bindings::check::{Language, Lookup, LookupResult, check};
use toolgate_engines::{
    Engine, EngineLimits, EngineScript, NullWorld,
    javascript::{EngineStartError, JavaScript},
    python::Python,
};

/// Makes the engine of a language, with everything that a script may need.
pub type MakeEngine = fn(Language) -> Result<Box<dyn Engine>, EngineStartError>;

/// The engine of a language.
pub fn make_engine(language: Language) -> Result<Box<dyn Engine>, EngineStartError> {
    match language {
        Language::TypeScript => {
            let engine = JavaScript::new()?;
            engine.warm();
            Ok(Box::new(engine))
        }
        Language::Python => Ok(Box::new(Python::prepared())),
    }
}

/// One engine of each language. A worker uses one of them.
pub(crate) struct Engines {
    typescript: Result<Box<dyn Engine>, EngineStartError>,
    python: Result<Box<dyn Engine>, EngineStartError>,
}

impl Engines {
    /// Makes the engines, and runs the code that every script runs: a small script spends most of
    /// its time on code that was never executed before.
    pub(crate) fn prepare(make: MakeEngine) -> Self {
        for (language, source) in [(Language::TypeScript, "return 1"), (Language::Python, "1")] {
            check(language, source, &[], &[], &mut NoTools);
            if let Ok(engine) = make(language) {
                let script = EngineScript { source, functions: &[], places: &[] };
                drop(engine.run(&script, &TRIAL, &mut NullWorld));
            }
        }
        Self { typescript: make(Language::TypeScript), python: make(Language::Python) }
    }

    pub(crate) fn of(self, language: Language) -> Result<Box<dyn Engine>, EngineStartError> {
        match language {
            Language::TypeScript => self.typescript,
            Language::Python => self.python,
        }
    }
}

/// The limits for the first script.
const TRIAL: EngineLimits =
    EngineLimits { memory_bytes: 16 * 1024 * 1024, stack_bytes: 512 * 1024 };

/// A lookup without tools.
struct NoTools;

impl Lookup for NoTools {
    fn look_up(&mut self, _names: &[String]) -> Vec<LookupResult> {
        Vec::new()
    }
}
