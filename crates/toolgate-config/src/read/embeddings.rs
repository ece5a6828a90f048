//! The `embeddings` key of `toolSearch`.

use std::path::PathBuf;
use std::time::Duration;

use super::endpoint;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::keys::EMBEDDINGS;
use crate::{EmbeddingSource, Embeddings, Severity};

/// Reads the encoder. What is wrong costs the encoder, with an error: search goes on without it.
pub(super) fn read(scope: &mut Scope<'_, '_>) -> Option<Embeddings> {
    let member = scope.object.get("embeddings")?;
    let path = Path::Key(scope.path, &member.key);
    let object = match &member.node.value {
        Value::Null => return None,
        Value::Object(object) => object,
        _ => {
            let hint = "write `{ \"endpoint\": \"http://localhost:11434/v1\", \"model\": \"…\" }` \
                        or `{ \"folder\": \"…\" }`";
            scope.mismatch(Severity::Error, &path, &member.node, "an object", Some(hint.into()));
            return None;
        }
    };
    let outer_error = scope.first_error.take();
    let found = scope.within(object, &path, |inner| {
        inner.report_replaced(object, &path);
        inner.report_unknown(&[EMBEDDINGS], EMBEDDINGS);
        let source = source(inner, member.node.offset)?;
        let query_prefix = prefix(inner, "queryPrefix").unwrap_or_default();
        let document_prefix = prefix(inner, "documentPrefix").unwrap_or_default();
        let timeout = inner.number("timeoutSeconds", 0.1, 60.0);
        let timeout = timeout.map_or(Embeddings::TIMEOUT, Duration::from_secs_f64);
        let is_sound = inner.first_error.is_none();
        is_sound.then_some(Embeddings { source, query_prefix, document_prefix, timeout })
    });
    scope.first_error = outer_error;
    found
}

fn source(scope: &mut Scope<'_, '_>, offset: usize) -> Option<EmbeddingSource> {
    let object = scope.object;
    match (object.get("endpoint"), object.get("folder")) {
        (Some(_), Some(_)) => {
            let hint = Some("keep the one that makes the vectors".to_owned());
            let predicate = "has both an `endpoint` and a `folder`";
            scope.complain(Severity::Error, scope.path, offset, predicate, hint);
            None
        }
        (None, None) => {
            let hint = "add `\"endpoint\": \"http://localhost:11434/v1\"` and a `model`, or the \
                        `folder` of a model";
            let predicate = "has neither an `endpoint` nor a `folder`";
            scope.complain(Severity::Error, scope.path, offset, predicate, Some(hint.into()));
            None
        }
        (None, Some(folder)) => {
            for key in ["model", "apiKey", "dimensions"] {
                if let Some(member) = object.get(key) {
                    let path = Path::Key(scope.path, &member.key);
                    let predicate = "belongs to an `endpoint`; it is ignored";
                    scope.complain(Severity::Warning, &path, member.key_offset, predicate, None);
                }
            }
            Some(EmbeddingSource::Folder { path: PathBuf::from(scope.text(folder)?) })
        }
        (Some(endpoint), None) => read_endpoint(scope, endpoint, offset),
    }
}

fn read_endpoint<'r>(
    scope: &mut Scope<'r, '_>,
    member: &'r Member<'r>,
    offset: usize,
) -> Option<EmbeddingSource> {
    let url = endpoint::url(scope, member);
    let model = endpoint::model(scope, offset);
    let api_key = endpoint::api_key(scope);
    let dimensions =
        scope.integer("dimensions", 8, 8_192).and_then(|number| usize::try_from(number).ok());
    Some(EmbeddingSource::Endpoint { url: url?, model: model?, api_key, dimensions })
}

/// A prefix as it is written: the blank at its end belongs to it.
fn prefix(scope: &mut Scope<'_, '_>, key: &str) -> Option<String> {
    const LONGEST: usize = 1_000;
    let member = scope.object.get(key)?;
    if let Value::String(text) = &member.node.value
        && text.chars().nth(LONGEST).is_none()
    {
        return Some(text.to_string());
    }
    let path = Path::Key(scope.path, &member.key);
    let expected = "a string of at most 1,000 characters";
    scope.unfit(Severity::Warning, &path, &member.node, expected, None);
    None
}
