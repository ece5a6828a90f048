use toolgate_testkit::{EmbeddingsEndpoint, EmbeddingsFault};

use super::*;

const KEY: &str = "sk-very-secret-4711";

fn settings(url: &str) -> EndpointSettings {
    EndpointSettings {
        base_url: url.to_owned(),
        model: "tiny".to_owned(),
        api_key: Some(ApiKey::new(KEY)),
        dimensions: None,
        prefixes: Prefixes::default(),
        timeout: Duration::from_secs(30),
    }
}

async fn endpoint() -> (EmbeddingsEndpoint, EndpointEncoder) {
    let endpoint = EmbeddingsEndpoint::start().await.unwrap();
    let encoder = EndpointEncoder::new(settings(endpoint.url())).unwrap();
    (endpoint, encoder)
}

/// The result of a query if every request meets a fault.
async fn met(fault: EmbeddingsFault) -> EncodeError {
    let (endpoint, encoder) = endpoint().await;
    endpoint.always(Some(fault));
    let error = encoder.encode(&["one", "two"], TextKind::Query).await.unwrap_err();
    let said = format!("{error} {error:?} {encoder:?}");
    assert!(!said.contains(KEY), "{said}");
    error
}

#[tokio::test]
async fn many_texts_go_out_in_batches_and_come_back_in_order() {
    let (endpoint, encoder) = endpoint().await;
    let texts: Vec<String> = (0..200).map(|number| format!("text number {number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = encoder.encode(&texts, TextKind::Document).await.unwrap();
    assert_eq!(endpoint.requests(), 4);
    assert_eq!(endpoint.keys()[0], format!("Bearer {KEY}"));
    for place in [0, 63, 64, 199] {
        let alone = encoder.encode(&[texts[place]], TextKind::Query).await.unwrap();
        assert_eq!(alone[0], vectors[place]);
    }
    assert!(encoder.encode(&[], TextKind::Query).await.unwrap().is_empty());
}

#[tokio::test]
async fn base64_is_as_good_as_numbers() {
    let (endpoint, encoder) = endpoint().await;
    let written = encoder.encode(&["one two three"], TextKind::Query).await.unwrap();
    endpoint.next([EmbeddingsFault::Base64]);
    assert_eq!(encoder.encode(&["one two three"], TextKind::Query).await.unwrap(), written);
}

#[tokio::test]
async fn prefixes_go_before_texts() {
    let endpoint = EmbeddingsEndpoint::start().await.unwrap();
    let prefixes = Prefixes { query: "query: ".into(), document: "passage: ".into() };
    let with = EndpointSettings { prefixes, ..settings(endpoint.url()) };
    let encoder = EndpointEncoder::new(with).unwrap();
    encoder.encode(&["a"], TextKind::Query).await.unwrap();
    encoder.encode(&["b"], TextKind::Document).await.unwrap();
    assert_eq!(endpoint.take_texts(), ["query: a", "passage: b"]);
    assert_ne!(encoder.id(), EndpointEncoder::new(settings(endpoint.url())).unwrap().id());
}

#[tokio::test]
async fn a_temporary_failure_is_retried_after_a_pause() {
    let (endpoint, encoder) = endpoint().await;
    let encoder = EndpointEncoder { first_pause: Duration::from_millis(1), ..encoder };
    endpoint.next([EmbeddingsFault::Status(429), EmbeddingsFault::Status(503)]);
    encoder.encode(&["a"], TextKind::Document).await.unwrap();
    assert_eq!(endpoint.requests(), 3);
    endpoint.always(Some(EmbeddingsFault::Status(500)));
    let error = encoder.encode(&["a"], TextKind::Document).await.unwrap_err();
    assert!(matches!(&error, EncodeError::Passing(text) if text.ends_with("answers with 500")));
    assert_eq!(endpoint.requests(), 7, "four attempts");
    let error = encoder.encode(&["a"], TextKind::Query).await.unwrap_err();
    assert!(matches!(error, EncodeError::Passing(_)));
    assert_eq!(endpoint.requests(), 8, "a query has no time for a second attempt");
}

#[tokio::test]
async fn every_fault_is_an_error_that_says_what_and_not_the_key() {
    for (fault, expected) in [
        (EmbeddingsFault::Status(401), "refuses the API key"),
        (EmbeddingsFault::Status(400), "answers with 400: it is so; you sent Bearer [secret]"),
        (EmbeddingsFault::Status(404), "check the endpoint's path and the model's name"),
        (EmbeddingsFault::Status(302), "write the URL that it redirects to"),
        (EmbeddingsFault::NotANumber, "does not answer as an embeddings endpoint does"),
        (EmbeddingsFault::TooFew, "1 vectors for 2 texts"),
        (EmbeddingsFault::Endless, "answers with more than 33554432 bytes"),
    ] {
        let error = met(fault).await;
        let EncodeError::Lasting(text) = &error else { panic!("{fault:?}: {error:?}") };
        assert!(text.contains(expected), "{fault:?}: {text}");
        assert!(text.starts_with("127.0.0.1:"), "{text}");
    }
}

#[tokio::test]
async fn silence_ends_in_time_and_a_closed_port_at_once() {
    let (endpoint, _) = endpoint().await;
    endpoint.always(Some(EmbeddingsFault::Silence));
    let short = EndpointSettings { timeout: Duration::from_millis(50), ..settings(endpoint.url()) };
    let encoder = EndpointEncoder::new(short).unwrap();
    let error = encoder.encode(&["a"], TextKind::Query).await.unwrap_err();
    assert!(error.to_string().ends_with("does not answer in time"), "{error}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:{KEY}@{}/{KEY}", listener.local_addr().unwrap());
    drop(listener);
    let encoder = EndpointEncoder::new(settings(&url)).unwrap();
    let error = encoder.encode(&["a"], TextKind::Query).await.unwrap_err();
    assert!(matches!(&error, EncodeError::Passing(text) if text.ends_with("cannot be reached")));
    assert!(!error.to_string().contains(KEY) && !encoder.id().contains(KEY), "{error}");
}

#[tokio::test]
async fn another_length_than_was_asked_for_is_an_error() {
    let endpoint = EmbeddingsEndpoint::start().await.unwrap();
    let with = EndpointSettings { dimensions: Some(256), ..settings(endpoint.url()) };
    let encoder = EndpointEncoder::new(with).unwrap();
    encoder.encode(&["a"], TextKind::Query).await.unwrap();
    endpoint.next([EmbeddingsFault::Longer]);
    let error = encoder.encode(&["a"], TextKind::Query).await.unwrap_err();
    assert!(
        error.to_string().contains("vectors of 257 numbers where 256 were expected"),
        "{error}"
    );
}

#[tokio::test]
async fn a_text_that_is_too_long_is_cut_and_holds_up_no_other() {
    let (endpoint, encoder) = endpoint().await;
    endpoint.always(Some(EmbeddingsFault::RefuseLonger(600)));
    let long = "word ".repeat(300);
    let vectors = encoder.encode(&["a", "b", &long, "c"], TextKind::Document).await.unwrap();
    assert_eq!(vectors.len(), 4);
    let texts = endpoint.take_texts();
    assert_eq!(texts.iter().map(String::len).max(), Some(SHORT_BYTES), "{texts:?}");
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let with = |url: &str, key: &str| {
        let key = Some(ApiKey::new(key));
        EndpointEncoder::new(EndpointSettings { api_key: key, ..settings(url) }).err()
    };
    assert_eq!(with("localhost:11434", "k"), Some(EndpointError::Url));
    assert_eq!(with("file:///etc/passwd", "k"), Some(EndpointError::Url));
    assert_eq!(with("http://localhost/v1", "two\nlines"), Some(EndpointError::ApiKey));
    assert_eq!(with("http://localhost/v1/", "k"), None);
}

#[test]
fn batches_are_bounded_in_texts_and_bytes() {
    let texts = vec!["x".repeat(40_000); 3];
    assert_eq!(batches(&texts).iter().map(|batch| batch.len()).collect::<Vec<_>>(), [1, 1, 1]);
    let texts = vec![String::new(); 65];
    assert_eq!(batches(&texts).iter().map(|batch| batch.len()).collect::<Vec<_>>(), [64, 1]);
    assert!(batches(&[]).is_empty());
}
