//! The response of an embeddings endpoint.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::Value;
use toolgate_search::encoder::UnitVector;

use super::request::EndpointRefusal;

#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: Option<usize>,
    embedding: Numbers,
}

/// Numbers, or their bytes in base64: some endpoints ignore the requested format.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    Written(Vec<Option<f32>>),
    Packed(String),
}

/// The vectors of an answer to `count` texts, in the order of the texts.
pub(super) fn vectors(bytes: &[u8], count: usize) -> Result<Vec<UnitVector>, EndpointRefusal> {
    let lasting = |reason: &str| EndpointRefusal::Lasting(reason.to_owned());
    let answer: EmbeddingsResponse = serde_json::from_slice(bytes).map_err(|_| {
        lasting("does not answer as an embeddings endpoint does; check the endpoint's path")
    })?;
    if answer.data.len() != count {
        let got = answer.data.len();
        return Err(EndpointRefusal::Lasting(format!(
            "answers with {got} vectors for {count} texts"
        )));
    }
    let mut vectors: Vec<Option<UnitVector>> = vec![None; count];
    for (place, item) in answer.data.into_iter().enumerate() {
        let slot = vectors
            .get_mut(item.index.unwrap_or(place))
            .ok_or_else(|| lasting("numbers its vectors in a way that makes no sense"))?;
        let vector = numbers(item.embedding).and_then(UnitVector::new);
        *slot = Some(vector.ok_or_else(|| {
            lasting("answers with a vector that is empty, zero, too long or not made of numbers")
        })?);
    }
    let all: Option<Vec<UnitVector>> = vectors.into_iter().collect();
    all.ok_or_else(|| lasting("leaves out the vector of a text"))
}

/// The message of an error response.
pub(super) fn message(bytes: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    let said = value.as_ref().and_then(|value| {
        let places = ["/error/message", "/error", "/message", "/detail"];
        places.iter().find_map(|place| value.pointer(place)?.as_str())
    });
    said.map(str::to_owned).unwrap_or_default()
}

fn numbers(numbers: Numbers) -> Option<Vec<f32>> {
    match numbers {
        Numbers::Written(numbers) => numbers.into_iter().collect(),
        Numbers::Packed(text) => {
            let bytes = BASE64_STANDARD.decode(text).ok()?;
            let (numbers, rest) = bytes.as_chunks();
            rest.is_empty().then(|| numbers.iter().map(|b| f32::from_le_bytes(*b)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, count: usize) -> Option<Vec<UnitVector>> {
        vectors(text.as_bytes(), count).ok()
    }

    #[test]
    fn numbers_and_base64_are_read_in_the_order_of_the_texts() {
        // The bytes of 0.0 and 2.0.
        let text = r#"{"data": [{"index": 1, "embedding": "AAAAAAAAAEA="},
                                {"index": 0, "embedding": [3.0, 0]}]}"#;
        let vectors = made(text, 2).unwrap();
        assert_eq!(vectors[0].as_slice(), [1.0, 0.0]);
        assert_eq!(vectors[1].as_slice(), [0.0, 1.0]);
    }

    #[test]
    fn an_invalid_response_is_refused() {
        for text in [
            "",
            "<html>",
            "{}",
            r#"{"data": []}"#,
            r#"{"data": [{"embedding": []}]}"#,
            r#"{"data": [{"embedding": [0, 0]}]}"#,
            r#"{"data": [{"embedding": [1, null]}]}"#,
            r#"{"data": [{"embedding": [1e99, 1]}]}"#,
            r#"{"data": [{"embedding": "AAA"}]}"#,
            r#"{"data": [{"embedding": "AADAfw=="}]}"#,
            r#"{"data": [{"index": 9, "embedding": [1]}]}"#,
            r#"{"data": [{"embedding": [1]}, {"embedding": [1]}]}"#,
        ] {
            assert!(made(text, 1).is_none(), "{text}");
        }
        let twice = r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#;
        assert!(made(twice, 2).is_none());
    }

    #[test]
    fn an_error_is_found_in_several_places() {
        assert_eq!(message(br#"{"error": {"message": "too long"}}"#), "too long");
        assert_eq!(message(br#"{"error": "no model"}"#), "no model");
        assert_eq!(message(b"<html>"), "");
    }
}
