//! The languages of scripts.

use std::{path::PathBuf, sync::Arc};

use toolgate_bindings::check::Language;

/// What a script is written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptLanguage {
    /// A language that is built in.
    BuiltIn(Language),
    /// The language of a component.
    Component(Arc<ComponentProgram>),
}

/// A component that was compiled, and that runs the scripts of a language.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ComponentProgram {
    /// The name of the language.
    pub language: String,
    /// The file with the machine code.
    pub file: PathBuf,
    /// The BLAKE3 hash of the file, in hexadecimal digits. Another file does not run.
    pub hash: String,
}

impl ScriptLanguage {
    /// The name with which `run_code` chooses it.
    pub fn name(&self) -> &str {
        match self {
            Self::BuiltIn(Language::TypeScript) => "typescript",
            Self::BuiltIn(Language::Python) => "python",
            Self::Component(component) => &component.language,
        }
    }
}

impl From<Language> for ScriptLanguage {
    fn from(language: Language) -> Self {
        Self::BuiltIn(language)
    }
}

impl From<ComponentProgram> for ScriptLanguage {
    fn from(component: ComponentProgram) -> Self {
        Self::Component(Arc::new(component))
    }
}
