//! From a text to the numbers of its tokens.

use tokenizers::{Tokenizer, TruncationParams};

use super::{
    FolderError,
    files::{Architecture, Folder},
};

/// A model's tokenizer.
#[derive(Debug)]
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    /// Whether the tokens around a text belong to it.
    with_special: bool,
    /// The token for unknown words, which a table has no vector for.
    left_out: Option<u32>,
}

/// Bytes of a text that are looked at. No model reads as many tokens.
const MAX_TEXT_BYTES: usize = 16 * 1024;

impl Tokens {
    pub(super) fn load(folder: &Folder) -> Result<Self, FolderError> {
        let path = folder.path().join("tokenizer.json");
        let damaged = |error: tokenizers::Error| {
            let error: String = error.to_string().chars().take(200).collect();
            FolderError::damaged(&path, format!("is not a tokenizer: {error}"))
        };
        let mut tokenizer = Tokenizer::from_bytes(folder.tokenizer()?).map_err(damaged)?;
        tokenizer.with_padding(None);
        let truncation =
            TruncationParams { max_length: folder.max_tokens(), ..TruncationParams::default() };
        tokenizer.with_truncation(Some(truncation)).map_err(damaged)?;
        let is_static = matches!(folder.architecture(), Architecture::Static);
        let left_out = ["[UNK]", "<unk>"].iter().find_map(|unknown| tokenizer.token_to_id(unknown));
        Ok(Self { tokenizer, with_special: !is_static, left_out: left_out.filter(|_| is_static) })
    }

    /// The tokens, never none.
    pub(super) fn ids(&self, text: &str) -> Result<Vec<usize>, &'static str> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let encoding = self
            .tokenizer
            .encode_fast(text, self.with_special)
            .map_err(|_| "the tokenizer refuses a text")?;
        let all = encoding.get_ids();
        let mut ids: Vec<usize> =
            all.iter().filter(|id| Some(**id) != self.left_out).map(|id| *id as usize).collect();
        if ids.is_empty() {
            // Nothing is known of the text: the vector of the unknown is as good as any.
            ids.push(self.left_out.or(all.first().copied()).unwrap_or_default() as usize);
        }
        Ok(ids)
    }
}
