//! `toolSearch.embeddings`: an endpoint, or a model in a folder.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_testkit::{EmbeddingsEndpoint, EmbeddingsFault};

use crate::{
    fixtures::{notes, weather},
    support::{Outcome, Workplace, call, entry, text, until},
};

const KEY: &str = "sk-very-secret-4711";

/// Two servers, ranked by meaning alone, by what `embeddings` says.
fn configuration(embeddings: &Value) -> Value {
    json!({
        "mcpServers": { "notes": entry(&notes()), "weather": entry(&weather()) },
        "toolSearch": { "enabled": true, "strategy": "embedding", "embeddings": embeddings },
    })
}

fn asking(endpoint: &EmbeddingsEndpoint) -> Value {
    json!({ "endpoint": endpoint.url(), "model": "tiny", "apiKey": KEY })
}

/// An endpoint to which an umbrella is a matter of throwing things away.
async fn endpoint() -> EmbeddingsEndpoint {
    let endpoint = EmbeddingsEndpoint::start().await.unwrap();
    endpoint.same("umbrella", "throw");
    endpoint
}

async fn run(workplace: &Workplace, arguments: &[&str]) -> Outcome {
    let outcome = workplace.run(arguments).await;
    assert!(!format!("{outcome:?}").contains(KEY), "{outcome:?}");
    outcome
}

async fn first_found(workplace: &Workplace) -> (String, Value) {
    let outcome = run(workplace, &["search", "umbrella", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = outcome.json();
    (told["servers"][0]["tools"][0]["name"].as_str().unwrap().to_owned(), told["notes"].clone())
}

#[tokio::test]
async fn the_order_follows_the_endpoint_and_a_restart_asks_for_no_tool_again() {
    let endpoint = endpoint().await;
    let workplace = Workplace::new(&configuration(&asking(&endpoint)));
    let (first, notes) = first_found(&workplace).await;
    assert_eq!(first, "notes_delete_note");
    assert_eq!(notes.as_array().unwrap().len(), 1, "nothing to tell of the encoder: {notes}");
    let texts = endpoint.take_texts();
    assert_eq!(texts.len(), 6 + 2 + 1, "the tools, the servers and the query: {texts:?}");
    assert!(texts.contains(&"delete note: Throw a note away for good.".to_owned()), "{texts:?}");
    assert_eq!(endpoint.keys()[0], format!("Bearer {KEY}"));

    assert_eq!(first_found(&workplace).await.0, "notes_delete_note");
    assert_eq!(endpoint.take_texts(), ["umbrella"], "only the query");

    let changed = notes_fixture_with_other_words();
    let mut configuration = configuration(&asking(&endpoint));
    configuration["mcpServers"]["notes"] = changed;
    workplace.rewrite(&configuration.to_string());
    assert_eq!(first_found(&workplace).await.0, "notes_delete_note");
    let mut texts = endpoint.take_texts();
    texts.sort();
    assert_eq!(texts, ["find notes: Look for a note by its words.", "umbrella"]);
}

/// The notes, with another description of one tool.
fn notes_fixture_with_other_words() -> Value {
    let text = serde_json::to_string(&entry(&notes())).unwrap();
    serde_json::from_str(
        &text.replace("Look for notes by their words", "Look for a note by its words"),
    )
    .unwrap()
}

#[tokio::test]
async fn a_gateway_encodes_in_the_background_and_reports_progress() {
    let endpoint = endpoint().await;
    endpoint.next([EmbeddingsFault::Status(429)]);
    let workplace = Workplace::new(&configuration(&asking(&endpoint)));
    let mut client = workplace.connect(&[]).await;
    let query = json!({ "query": "umbrella" });
    let found = until("vectors", async || {
        let result = call(&mut client, "search_tools", query.clone()).await;
        (!text(&result).contains("word vectors")).then_some(result)
    });
    let found = found.await;
    assert!(text(&found).contains("- notes_delete_note"), "{found}");
    drop(client);
    let status = run(&workplace, &["status"]).await;
    assert!(status.stdout.contains("Search by meaning is tiny's: vectors 6 of 6."), "{status:?}");
    assert_eq!(run(&workplace, &["status", "--json"]).await.json()["vectors"]["known"], 6);
}

#[tokio::test]
async fn without_the_endpoint_the_table_ranks_and_the_result_says_so() {
    let endpoint = endpoint().await;
    let workplace = Workplace::new(&configuration(&asking(&endpoint)));
    let ask = ["search", "how is the weather today", "--detail", "name"];
    assert_eq!(run(&workplace, &ask).await.code, Some(0));
    for (fault, expected) in [
        (EmbeddingsFault::Status(401), "refuses the API key"),
        (EmbeddingsFault::Status(500), "answers with 500"),
        (EmbeddingsFault::NotANumber, "does not answer as an embeddings endpoint does"),
        (EmbeddingsFault::Silence, "no answer within 2 s"),
    ] {
        endpoint.always(Some(fault));
        let outcome = run(&workplace, &ask).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let note = outcome.stdout.lines().find(|line| line.starts_with("Ranked by the built-in"));
        let note = note.unwrap_or_else(|| panic!("{fault:?}: {outcome:?}"));
        assert!(note.contains(expected), "{fault:?}: {note}");
        assert!(outcome.stdout.contains("- weather_"), "{outcome:?}");
    }
    let url = endpoint.url().replace("http://", "");
    drop(endpoint);
    let outcome = run(&workplace, &ask).await;
    let note = outcome.stdout.lines().find(|line| line.starts_with("Ranked by"));
    let shown = url.trim_end_matches("/v1");
    assert_eq!(
        note,
        Some(&*format!(
            "Ranked by the built-in word vectors, without tiny: {shown} cannot be reached."
        ))
    );
}

#[tokio::test]
async fn vectors_of_another_length_are_encoded_again() {
    let endpoint = endpoint().await;
    let workplace = Workplace::new(&configuration(&asking(&endpoint)));
    assert_eq!(first_found(&workplace).await.0, "notes_delete_note");
    endpoint.take_texts();
    endpoint.always(Some(EmbeddingsFault::Longer));
    // The query shows that the endpoint is another; a gateway has the time to see to the rest.
    let mut client = workplace.connect(&[]).await;
    let before = endpoint.requests();
    call(&mut client, "search_tools", json!({ "query": "umbrella" })).await;
    until("the tools are asked for again", async || {
        (endpoint.requests() > before + 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_model_in_a_folder() {
    let model =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toolgate-models/tests/data/bert");
    let workplace = Workplace::new(&configuration(&json!({ "folder": model })));
    let (_, notes) = first_found(&workplace).await;
    assert!(!notes.to_string().contains("built-in"), "{notes}");
    let status = run(&workplace, &["status"]).await;
    assert!(status.stdout.contains("Search by meaning is bert's: vectors 6 of 6."), "{status:?}");

    let set = json!({
        "corpus": [{ "id": "a", "server": "s", "name": "send_letter", "desc": "Send a letter" },
                   { "id": "b", "server": "s", "name": "list_files", "desc": "List files" }],
        "queries": [{ "q": "send a letter", "labels": [["a"]] }, { "q": "", "labels": [["b"]] }],
    });
    std::fs::write(workplace.path().join("set.json"), set.to_string()).unwrap();
    let arguments =
        ["eval", "set.json", "--strategy", "embedding", "--json", "--config", "toolgate.json"];
    let told = run(&workplace, &arguments).await.json();
    assert_eq!(told[0]["strategies"][0]["recallAt1"], 0.5, "{told}");
}

#[tokio::test]
async fn an_unusable_encoder_folder_affects_nothing_else() {
    let workplace = Workplace::new(&configuration(&json!({ "folder": "models/none" })));
    let outcome = run(&workplace, &["search", "weather"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let warning = "`toolSearch.embeddings` cannot be used, the built-in word vectors are: ";
    assert!(outcome.stderr.contains(warning), "{outcome:?}");
    assert!(outcome.stderr.contains("models/none has no config.json"), "{outcome:?}");
    std::fs::write(workplace.path().join("set.json"), r#"{"corpus": []}"#).unwrap();
    let outcome = run(&workplace, &["eval", "set.json", "--config", "toolgate.json"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
}
