//! The engines, prepared before a script is known.

use toolgate_bindings::check::{Language, Lookup, LookupResult, check};
#[cfg(feature = "engine-wasm")]
use toolgate_engines::wasm::LoadedComponent;
use toolgate_engines::{
    Engine, EngineLimits, EngineScript, NullWorld,
    javascript::{EngineStartError, JavaScript},
    python::Python,
};

#[cfg(feature = "engine-wasm")]
use crate::lockdown::bound_start;
use crate::system::page_tables::MappedFiles;

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

/// The engines of a zygote. A worker uses one of them.
pub(crate) enum Engines {
    /// One engine of each language that is built in.
    BuiltIn {
        typescript: Result<Box<dyn Engine>, EngineStartError>,
        python: Result<Box<dyn Engine>, EngineStartError>,
    },
    /// A component, or why it does not run.
    #[cfg(feature = "engine-wasm")]
    Component(Result<Box<dyn Engine>, String>),
}

impl Engines {
    /// Makes the engines, and runs the code that every script runs: a small script spends most of
    /// its time on code that was never executed before. Of the pages of `files`, workers get those that
    /// this uses.
    pub(crate) fn prepare(make: MakeEngine, files: &MappedFiles) -> Self {
        let engines = Self::BuiltIn {
            typescript: make(Language::TypeScript),
            python: make(Language::Python),
        };
        let trials = TRIALS.map(|(language, source)| (language, source, make(language)));
        files.forget_pages();
        for (language, source, engine) in trials {
            check(language, source, &[], &[], &mut NoTools);
            if let Ok(engine) = engine {
                let script = EngineScript { source, functions: &[], places: &[] };
                drop(engine.run(&script, &TRIAL_LIMITS, &mut NullWorld));
            }
        }
        engines
    }

    /// The same, unless a component was loaded.
    #[cfg(feature = "engine-wasm")]
    pub(crate) fn prepare_component(
        loaded: Option<Result<LoadedComponent, String>>,
        make: MakeEngine,
        files: &MappedFiles,
    ) -> Self {
        let Some(loaded) = loaded else { return Self::prepare(make, files) };
        let start = |loaded: LoadedComponent| match bound_start(|| loaded.start()) {
            Ok(engine) => Ok(Box::new(engine) as Box<dyn Engine>),
            Err(error) => Err(error.to_string()),
        };
        Self::Component(loaded.and_then(start))
    }

    /// Why no script can run.
    pub(crate) fn problem(&self) -> Option<&str> {
        match self {
            Self::BuiltIn { .. } => None,
            #[cfg(feature = "engine-wasm")]
            Self::Component(component) => component.as_ref().err().map(String::as_str),
        }
    }

    /// The engine of a language; without a language, the component. The other engines are not freed,
    /// which would take longer than most scripts.
    pub(crate) fn of(self, language: Option<Language>) -> Result<Box<dyn Engine>, String> {
        match (self, language) {
            (Self::BuiltIn { typescript, python }, Some(language)) => {
                let (engine, other) = match language {
                    Language::TypeScript => (typescript, python),
                    Language::Python => (python, typescript),
                };
                std::mem::forget(other);
                engine.map_err(|error| error.to_string())
            }
            #[cfg(feature = "engine-wasm")]
            (Self::Component(component), None) => component,
            _ => Err(String::from("the worker does not have this language")),
        }
    }
}

/// Scripts that do what most scripts do.
const TRIALS: [(Language, &str); 2] =
    [(Language::TypeScript, TYPESCRIPT), (Language::Python, PYTHON)];
const TYPESCRIPT: &str = "\
const load = async (n: number) => ({ items: [{ id: n, name: `row ${n}` }] });
const rows = (await Promise.all([1, 2].map(load))).flatMap((page) => page.items);
console.log(rows.length, JSON.stringify(rows));
return { names: rows.filter(({ id }) => id > 1).map((row) => row.name) };
";
const PYTHON: &str = "\
import json
async def load(n):
    return {'items': [{'id': n, 'name': f'row {n}'}]}
rows = [row for n in range(2) for row in (await load(n))['items']]
print(len(rows), json.dumps(rows))
{'names': [row['name'] for row in rows if row['id'] > 0]}
";
/// The limits for these scripts.
const TRIAL_LIMITS: EngineLimits =
    EngineLimits { memory_bytes: 16 * 1024 * 1024, stack_bytes: 512 * 1024 };

/// A lookup without tools.
struct NoTools;

impl Lookup for NoTools {
    fn look_up(&mut self, _names: &[String]) -> Vec<LookupResult> {
        Vec::new()
    }
}
