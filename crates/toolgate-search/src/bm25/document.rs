//! Converts the texts of a tool or a server to terms with impacts.
//!
//! This is BM25F: mentions are weighted by field and field length, summed over the fields, and then
//! saturated. So a word in both name and description does not count twice. Lengths are compared
//! with fixed typical lengths instead of averages of the catalog. So an impact depends only on the
//! tool: it is computed once, and other servers do not change it.

use std::collections::HashMap;

use super::parameters::Bm25Parameters;
use crate::{
    analysis::{TermKind, canonical_name, for_each_term},
    limits::{MAX_FIELD_TOKENS, MAX_NAME_BYTES, MAX_PARAMETERS, MAX_TEXT_BYTES, MAX_VALUES, cut},
    text::{ServerText, ToolKey, ToolText},
};

/// A whole name as one term. Its marker occurs in no word, so no word matches it.
pub(super) fn name_term(canonical: &str) -> String {
    format!("={canonical}")
}

/// The terms of a tool's texts with their impacts.
pub(crate) fn tool_terms(parameters: &Bm25Parameters, tool: &ToolText<'_>) -> HashMap<String, f32> {
    let mut terms = Terms::new(parameters);
    let weights = &parameters.weights;
    let listed = || tool.parameters.iter().take(MAX_PARAMETERS);
    let values = listed().flat_map(|parameter| parameter.values.iter().take(MAX_VALUES).copied());

    terms.field(&NAME, weights.name, [tool.name]);
    terms.field(&TITLE, weights.title, tool.title);
    terms.field(&DESCRIPTION, weights.description, [tool.description]);
    terms.field(&PARAMETER_NAMES, weights.parameter_names, listed().map(|listed| listed.name));
    terms.field(
        &PARAMETER_DESCRIPTIONS,
        weights.parameter_descriptions,
        listed().map(|listed| listed.description),
    );
    terms.field(&VALUES, weights.values, values);
    terms.saturated()
}

/// The names of a tool as terms, each of them once.
pub(super) fn tool_name_terms(server: &str, key: &ToolKey, name: &str) -> Vec<String> {
    let name = canonical_name(name);
    let prefixed = format!("{}{name}", canonical_name(server));
    let mut terms: Vec<String> = [name, prefixed, canonical_name(key.as_str())]
        .iter()
        .filter(|spelling| !spelling.is_empty())
        .map(|spelling| name_term(spelling))
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The terms of a server with their impacts.
pub(super) fn server_terms(
    parameters: &Bm25Parameters,
    server: &str,
    text: ServerText<'_>,
) -> HashMap<String, f32> {
    let mut terms = Terms::new(parameters);
    let weights = &parameters.weights;
    // The two are often the same, and must not count twice.
    let other = Some(text.name).filter(|name| canonical_name(name) != canonical_name(server));
    terms.field(&SERVER_NAME, weights.server_name, [server].into_iter().chain(other));
    terms.field(&SERVER_DESCRIPTION, weights.server_description, [text.description]);
    let mut terms = terms.saturated();
    for name in [server, text.name] {
        let canonical = canonical_name(name);
        let bare = canonical_name(&significant_part(name));
        for spelling in [canonical, bare] {
            if !spelling.is_empty() {
                terms.insert(name_term(&spelling), 1.0);
            }
        }
    }
    terms
}

/// The name without the common parts of server names: `github` of `mcp-server-github`.
fn significant_part(name: &str) -> String {
    let parts = name.split(|character: char| !character.is_alphanumeric());
    let common =
        |part: &&str| ["mcp", "server"].iter().any(|common| part.eq_ignore_ascii_case(common));
    parts.filter(|part| !common(part)).collect()
}

/// The properties of a field.
struct DocumentField {
    /// The typical number of words. A field of this length is neither favoured nor discounted.
    typical_length: f32,
    /// How many bytes of a text are read.
    bytes: usize,
    /// Whether stop words count: in `what_is_new` they do, in a sentence they do not.
    stop_words: bool,
}

const NAME: DocumentField =
    DocumentField { typical_length: 3.0, bytes: MAX_NAME_BYTES, stop_words: true };
const TITLE: DocumentField =
    DocumentField { typical_length: 3.0, bytes: MAX_NAME_BYTES, stop_words: false };
const DESCRIPTION: DocumentField =
    DocumentField { typical_length: 20.0, bytes: MAX_TEXT_BYTES, stop_words: false };
const PARAMETER_NAMES: DocumentField =
    DocumentField { typical_length: 6.0, bytes: MAX_NAME_BYTES, stop_words: false };
const PARAMETER_DESCRIPTIONS: DocumentField =
    DocumentField { typical_length: 30.0, bytes: MAX_TEXT_BYTES, stop_words: false };
const VALUES: DocumentField =
    DocumentField { typical_length: 10.0, bytes: MAX_NAME_BYTES, stop_words: false };
const SERVER_NAME: DocumentField =
    DocumentField { typical_length: 2.0, bytes: MAX_NAME_BYTES, stop_words: false };
const SERVER_DESCRIPTION: DocumentField =
    DocumentField { typical_length: 20.0, bytes: MAX_TEXT_BYTES, stop_words: false };

/// Sums weighted mentions over fields.
struct Terms<'p> {
    parameters: &'p Bm25Parameters,
    sums: HashMap<String, f32>,
}

impl<'p> Terms<'p> {
    fn new(parameters: &'p Bm25Parameters) -> Self {
        Self { parameters, sums: HashMap::new() }
    }

    fn field<'t>(
        &mut self,
        field: &DocumentField,
        weight: f32,
        texts: impl IntoIterator<Item = &'t str>,
    ) {
        if weight <= 0.0 {
            return;
        }
        let mut mentions: HashMap<String, f32> = HashMap::new();
        let mut remaining = MAX_FIELD_TOKENS;
        let mut length = 0.0_f32;
        for text in texts {
            for_each_term(cut(text, field.bytes), remaining, &mut |term, kind| {
                remaining -= 1;
                if kind == TermKind::StopWord && !field.stop_words {
                    return;
                }
                // A joined form is another spelling of words already counted.
                if kind != TermKind::Joined {
                    length += 1.0;
                }
                match mentions.get_mut(term) {
                    Some(count) => *count += 1.0,
                    None => {
                        mentions.insert(term.to_owned(), 1.0);
                    }
                }
            });
        }
        let discount = self.parameters.length_discount;
        let norm = 1.0 - discount + discount * length / field.typical_length;
        // With the full discount, a field with only joined forms would have length zero.
        let scale = weight / norm.max(0.1);
        for (term, count) in mentions {
            *self.sums.entry(term).or_default() += count * scale;
        }
    }

    /// The first mention counts most. All mentions together count at most `saturation + 1`.
    fn saturated(self) -> HashMap<String, f32> {
        let saturation = self.parameters.saturation;
        let mut terms = self.sums;
        for sum in terms.values_mut() {
            *sum = *sum * (saturation + 1.0) / (*sum + saturation);
        }
        terms
    }
}
