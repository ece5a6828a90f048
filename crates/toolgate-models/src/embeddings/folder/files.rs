//! The small files of a folder, which describe the model.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};

use super::FolderError;

/// A folder, and the settings in its small files.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    architecture: Architecture,
    /// How many tokens of a text are read.
    max_tokens: usize,
}

/// How texts become vectors.
#[derive(Debug)]
pub(super) enum Architecture {
    /// A transformer of the BERT family.
    Bert(BertConfig),
    /// The mean of the tokens' rows.
    Static,
}

/// The numbers of a transformer.
#[derive(Debug, Clone)]
pub(super) struct BertConfig {
    pub(super) heads: usize,
    pub(super) layers: usize,
    pub(super) epsilon: f32,
    pub(super) activation: Activation,
    pub(super) pooling: Pooling,
    /// The position of the first token. The `RoBERTa` family does not count from zero.
    pub(super) first_position: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    Gelu,
    GeluTanh,
    Relu,
}

/// How the vectors of the tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    First,
    Mean,
    Max,
}

/// The used fields of `config.json`.
#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    num_attention_heads: usize,
    #[serde(default)]
    num_hidden_layers: usize,
    #[serde(default)]
    max_position_embeddings: usize,
    #[serde(default = "default_epsilon")]
    layer_norm_eps: f32,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    pad_token_id: Option<usize>,
}

#[derive(Deserialize)]
struct ModuleFile {
    r#type: String,
    #[serde(default)]
    path: String,
}

#[derive(Deserialize, Default)]
struct SentenceFile {
    max_seq_length: Option<usize>,
}

/// Models that large have weights in several files, which is not supported.
const MAX_WEIGHT_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MAX_SMALL_BYTES: u64 = 64 * 1024 * 1024;
const MAX_LAYERS: usize = 128;
/// The default of the number of tokens that are read.
const USUAL_TOKENS: usize = 512;
const MAX_TOKENS: usize = 512;
const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";

impl Folder {
    pub(super) fn open(path: PathBuf) -> Result<Self, FolderError> {
        let config: ConfigFile = json(&path, CONFIG)?;
        require(&path, TOKENIZER, MAX_SMALL_BYTES)?;
        require(&path, WEIGHTS, MAX_WEIGHT_BYTES)?;
        let sentence: Option<SentenceFile> = optional(&path, "sentence_bert_config.json")?;
        let wanted = sentence.and_then(|file| file.max_seq_length).unwrap_or(USUAL_TOKENS);
        let mut max_tokens = wanted.clamp(8, MAX_TOKENS);
        let offset = match config.model_type.as_str() {
            "model2vec" => None,
            "bert" => Some(0),
            "roberta" | "xlm-roberta" => Some(config.pad_token_id.unwrap_or(1).min(16) + 1),
            "" => {
                return Err(FolderError::unsupported(&path, "no `model_type` in its config.json"));
            }
            other => {
                let other: String = other.chars().take(64).collect();
                return Err(FolderError::unsupported(&path, format!("a model of type `{other}`")));
            }
        };
        let architecture = match offset {
            None => Architecture::Static,
            Some(first_position) => {
                let room = config.max_position_embeddings.saturating_sub(first_position);
                max_tokens = max_tokens.min(room).max(1);
                Architecture::Bert(bert_config(&path, &config, first_position)?)
            }
        };
        Ok(Self { path, architecture, max_tokens })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the folder, or of its parent if the folder is called `model`.
    pub(super) fn name(&self) -> String {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let own = name(&self.path).unwrap_or_else(|| "model".to_owned());
        if own == "model" { self.path.parent().and_then(name).unwrap_or(own) } else { own }
    }

    pub(super) fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    pub(super) fn tokenizer(&self) -> Result<Vec<u8>, FolderError> {
        read(&self.path.join(TOKENIZER))
    }

    pub(super) fn weights_path(&self) -> PathBuf {
        self.path.join(WEIGHTS)
    }

    pub(super) fn weights(&self) -> Result<Vec<u8>, FolderError> {
        read(&self.weights_path())
    }

    /// Identifies the model: the small files, and samples of the weights, which are too large to be
    /// read at every start. Another training changes all of them.
    pub(super) fn fingerprint(&self) -> Result<blake3::Hasher, FolderError> {
        const SAMPLES: u64 = 32;
        const SAMPLE_BYTES: u64 = 32 * 1024;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?} {}", self.architecture, self.max_tokens).as_bytes());
        hasher.update(&self.tokenizer()?);
        let path = self.weights_path();
        let unreadable = |source| FolderError::Unreadable { path: path.clone(), source };
        let mut file = File::open(&path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        hasher.update(&length.to_le_bytes());
        for sample in 0..=SAMPLES {
            let start = length.saturating_sub(SAMPLE_BYTES) * sample / SAMPLES;
            file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
            let mut bytes = Vec::new();
            (&mut file).take(SAMPLE_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
            hasher.update(&bytes);
        }
        Ok(hasher)
    }
}

fn default_epsilon() -> f32 {
    1e-12
}

fn bert_config(
    path: &Path,
    config: &ConfigFile,
    first_position: usize,
) -> Result<BertConfig, FolderError> {
    let positions = config.position_embedding_type.as_deref().unwrap_or("absolute");
    if positions != "absolute" {
        return Err(FolderError::unsupported(path, "relative positions"));
    }
    let activation = match config.hidden_act.as_deref().unwrap_or("gelu") {
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        other => {
            let other: String = other.chars().take(64).collect();
            return Err(FolderError::unsupported(path, format!("the activation `{other}`")));
        }
    };
    let (heads, layers) = (config.num_attention_heads, config.num_hidden_layers);
    if heads == 0 || heads > 1_024 || layers == 0 || layers > MAX_LAYERS {
        let reason = "has no sensible number of heads or layers";
        return Err(FolderError::damaged(&path.join(CONFIG), reason));
    }
    let epsilon = config.layer_norm_eps;
    let pooling = pooling(path)?;
    Ok(BertConfig { heads, layers, epsilon, activation, pooling, first_position })
}

/// The pooling after the transformer. Without such a module it is the mean, as in most models.
fn pooling(path: &Path) -> Result<Pooling, FolderError> {
    let modules: Vec<ModuleFile> = optional(path, "modules.json")?.unwrap_or_default();
    let mut folder = "1_Pooling".to_owned();
    for module in &modules {
        match module.r#type.rsplit('.').next().unwrap_or_default() {
            // Vectors are made to length one here in any case.
            "Transformer" | "Normalize" => {}
            "Pooling" => folder.clone_from(&module.path),
            other => {
                let other: String = other.chars().take(64).collect();
                return Err(FolderError::unsupported(path, format!("a module `{other}`")));
            }
        }
    }
    let is_inside =
        Path::new(&folder).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_inside {
        let reason = "names a folder that is not within this one";
        return Err(FolderError::damaged(&path.join("modules.json"), reason));
    }
    let file: Option<serde_json::Map<String, serde_json::Value>> =
        optional(&path.join(folder), CONFIG)?;
    let Some(file) = file else { return Ok(Pooling::Mean) };
    let chosen: Vec<&str> = file
        .iter()
        .filter(|(key, value)| key.starts_with("pooling_mode_") && **value == true)
        .map(|(key, _)| key.as_str())
        .collect();
    match chosen[..] {
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        // The two differ only in length, which is normalised in the end.
        ["pooling_mode_mean_tokens" | "pooling_mode_mean_sqrt_len_tokens"] | [] => {
            Ok(Pooling::Mean)
        }
        ["pooling_mode_max_tokens"] => Ok(Pooling::Max),
        _ => {
            let chosen: String = chosen.join(" and ").chars().take(200).collect();
            Err(FolderError::unsupported(path, format!("the pooling {chosen}")))
        }
    }
}

/// A file that has to be there.
fn require(folder: &Path, file: &'static str, most: u64) -> Result<(), FolderError> {
    let path = folder.join(file);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() > most => {
            Err(FolderError::damaged(&path, format!("has more than {most} bytes")))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FolderError::Missing { folder: folder.to_owned(), file })
        }
        Err(source) => Err(FolderError::Unreadable { path, source }),
    }
}

fn json<T: DeserializeOwned>(folder: &Path, file: &'static str) -> Result<T, FolderError> {
    require(folder, file, MAX_SMALL_BYTES)?;
    let path = folder.join(file);
    let bytes = read(&path)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| FolderError::damaged(&path, format!("is not as expected: {error}")))
}

fn optional<T: DeserializeOwned>(
    folder: &Path,
    file: &'static str,
) -> Result<Option<T>, FolderError> {
    match json(folder, file) {
        Ok(content) => Ok(Some(content)),
        Err(FolderError::Missing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FolderError> {
    fs::read(path).map_err(|source| FolderError::Unreadable { path: path.to_owned(), source })
}
