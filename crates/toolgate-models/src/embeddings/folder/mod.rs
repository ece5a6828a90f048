//! A model in a folder, as model hubs provide it.

mod bert;
mod files;
mod static_table;
mod tokens;
mod weights;

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use tokio::sync::OnceCell;
use toolgate_search::encoder::{EncodeError, Encoder, Encoding, TextKind, UnitVector};

use self::{
    bert::Bert,
    files::{Architecture, Folder},
    static_table::StaticTable,
    tokens::Tokens,
};
use super::{FolderError, Prefixes};

/// Runs a model from a folder, on the processor.
///
/// Opening reads only the small files. The weights are read when the first text is encoded, in a
/// separate thread.
#[derive(Debug)]
pub struct FolderEncoder {
    folder: Arc<Folder>,
    id: String,
    name: String,
    prefixes: Prefixes,
    model: OnceCell<Arc<Model>>,
}

/// The model of the weights.
#[derive(Debug)]
struct Model {
    tokens: Tokens,
    network: Network,
}

#[derive(Debug)]
enum Network {
    Bert(Box<Bert>),
    Static(StaticTable),
}

impl FolderEncoder {
    /// Reads the small files of a folder.
    pub fn open(path: impl Into<PathBuf>, prefixes: Prefixes) -> Result<Self, FolderError> {
        let folder = Folder::open(path.into())?;
        let mut hasher = folder.fingerprint()?;
        for prefix in [&prefixes.query, &prefixes.document] {
            hasher.update(&prefix.len().to_le_bytes()).update(prefix.as_bytes());
        }
        let name = folder.name();
        let id = format!("folder {name} {}", &hasher.finalize().to_hex()[..32]);
        Ok(Self { folder: Arc::new(folder), id, name, prefixes, model: OnceCell::new() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn model(&self) -> Result<Arc<Model>, FolderError> {
        let load = || async {
            let folder = Arc::clone(&self.folder);
            let loaded = tokio::task::spawn_blocking(move || Model::load(&folder)).await;
            loaded.map_err(|_| FolderError::damaged(self.path(), "the model cannot be run"))?
        };
        self.model.get_or_try_init(|| async { load().await.map(Arc::new) }).await.cloned()
    }

    async fn vectors(
        &self,
        texts: &[&str],
        kind: TextKind,
    ) -> Result<Vec<UnitVector>, FolderError> {
        let model = self.model().await?;
        let prefix = self.prefixes.of(kind);
        let texts: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let made = tokio::task::spawn_blocking(move || model.vectors(&texts)).await;
        // A shape that does not fit shows only when the model runs, as a panic in its thread.
        let made =
            made.map_err(|_| FolderError::damaged(self.path(), "the model cannot be run"))?;
        made.map_err(|reason| FolderError::damaged(self.path(), reason))
    }
}

impl Encoder for FolderEncoder {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn encode<'a>(&'a self, texts: &'a [&'a str], kind: TextKind) -> Encoding<'a> {
        Box::pin(async move {
            let vectors = self.vectors(texts, kind).await;
            vectors.map_err(|error| EncodeError::Lasting(error.to_string()))
        })
    }
}

impl Model {
    fn load(folder: &Folder) -> Result<Self, FolderError> {
        let tokens = Tokens::load(folder)?;
        let network = match folder.architecture() {
            Architecture::Bert(config) => Network::Bert(Box::new(Bert::load(folder, config)?)),
            Architecture::Static => Network::Static(StaticTable::load(folder)?),
        };
        Ok(Self { tokens, network })
    }

    /// Several texts at a time, on as many threads as there are cores.
    fn vectors(&self, texts: &[String]) -> Result<Vec<UnitVector>, &'static str> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(8);
        let share = texts.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            let workers: Vec<_> = texts
                .chunks(share)
                .map(|part| {
                    scope.spawn(|| part.iter().map(|text| self.vector(text)).collect::<Vec<_>>())
                })
                .collect();
            let mut vectors = Vec::with_capacity(texts.len());
            for worker in workers {
                for vector in worker.join().map_err(|_| "the model cannot be run")? {
                    vectors.push(vector?);
                }
            }
            Ok(vectors)
        })
    }

    fn vector(&self, text: &str) -> Result<UnitVector, &'static str> {
        let ids = self.tokens.ids(text)?;
        let numbers = match &self.network {
            Network::Bert(network) => network.forward(&ids),
            Network::Static(table) => table.mean(&ids),
        };
        UnitVector::new(numbers).ok_or("the model returned a zero vector")
    }
}

#[cfg(test)]
mod tests;
