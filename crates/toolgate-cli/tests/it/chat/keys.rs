//! Keys of models, and what a person is told if there is none or a wrong one.

use serde_json::json;
use toolgate_agent::WireApi;

use super::{KEY, Lab, command, finish, says};
use crate::endpoint::Play;

#[tokio::test]
async fn problems_with_the_model_are_one_sentence_and_what_to_do() {
    let lab = Lab::new(vec![]).await;
    let told = |arguments: &'static [&'static str]| {
        let command = command(&lab.place, &[&["-p", "Hi"], arguments].concat());
        async move { finish(command, "").await.shown() }
    };
    insta::assert_snapshot!(told(&[]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: no model is named
      hint: name one, such as --model anthropic/NAME, openai/NAME, gemini/NAME or ollama/NAME; TOOLGATE_MODEL, or `chat.model` of the configuration, sets the default
    "#);
    insta::assert_snapshot!(told(&["--model", "gpt-5"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: the settings of the model cannot be used: `gpt-5` is not a model: write provider/name; providers are anthropic, openai, openai-chat, gemini, google, openrouter, ollama, vllm
    "#);
    insta::assert_snapshot!(told(&["--model", "nobody/gpt-5"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: the settings of the model cannot be used: `nobody/gpt-5` is not a model: the provider is not one of anthropic, openai, openai-chat, gemini, google, openrouter, ollama, vllm
    "#);
    insta::assert_snapshot!(told(&["--model", "anthropic/claude"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: there is no key for anthropic/claude
      hint: set ANTHROPIC_API_KEY or TOOLGATE_MODEL_KEY, or store the key encrypted: toolgate chat --save-key --model anthropic/claude
    "#);
    insta::assert_snapshot!(told(&["--model", "anthropic/m", "--url", "localhost:80"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: the settings of the model cannot be used: the URL of the endpoint must begin with http:// or https://
    "#);
    insta::assert_snapshot!(told(&["--model", "gemini/m", "--url", "http://127.0.0.1:1", "--mode", "search"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: Gemini has no mode `search`
      hint: choose another --mode: stable, code or direct
    "#);
    insta::assert_snapshot!(told(&["--resume", "../x"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: there is no chat `../x`
      hint: `toolgate chat --list` lists the stored ones
    "#);
    insta::assert_snapshot!(told(&["--continue"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: no chat is stored
      hint: begin one with `toolgate chat`
    "#);
}

#[tokio::test]
async fn refusals_of_the_provider_are_one_sentence_and_what_to_do() {
    let refused = |status: u16, kind: &str, message: String| {
        Play::Status(status, vec![], json!({ "error": { "type": kind, "message": message } }))
    };
    let api = WireApi::Anthropic;
    let plays = vec![
        refused(401, "authentication_error", format!("invalid x-api-key {KEY}")),
        refused(404, "not_found_error", "model: m".to_owned()),
        refused(400, "invalid_request_error", "max_tokens: too large".to_owned()),
    ];
    let lab = Lab::new(plays).await;
    insta::assert_snapshot!(lab.run(api, &["-p", "Hi"]).await.shown(), @r#"
    exit code 1
    --- stdout
    --- stderr
    error: the provider refused the request (401, authentication_error): invalid x-api-key …
      hint: check the key in TOOLGATE_MODEL_KEY, and that it may use this model
    "#);
    insta::assert_snapshot!(lab.run(api, &["-p", "Hi"]).await.shown(), @r#"
    exit code 1
    --- stdout
    --- stderr
    error: the provider refused the request (404, not_found_error): model: m
      hint: check the name after --model (`anthropic/m`) and the path of --url
    "#);
    insta::assert_snapshot!(lab.run(api, &["-p", "Hi"]).await.shown(), @r#"
    exit code 1
    --- stdout
    --- stderr
    error: the provider refused the request (400, invalid_request_error): max_tokens: too large
    "#);
}

#[tokio::test]
async fn a_dead_endpoint_is_one_sentence_and_what_to_do() {
    let lab = Lab::new(vec![]).await;
    let arguments = ["-p", "Hi", "--model", "openai-chat/m", "--url", "http://127.0.0.1:1"];
    let outcome = finish(command(&lab.place, &arguments), "").await;
    let last: Vec<&str> = outcome.stderr.lines().rev().take(2).collect();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(last[0], "  hint: check --url, and that the server there runs", "{outcome:?}");
    assert!(
        last[1].starts_with("error: the endpoint of the model cannot be reached: "),
        "{outcome:?}"
    );
}

/// The key of a provider is for that provider. Another URL gets only a key that is meant for it.
#[tokio::test]
async fn a_providers_key_is_not_sent_to_another_url() {
    let api = WireApi::Anthropic;
    let lab = Lab::new(vec![says(api, "Hi."), says(api, "Hi.")]).await;
    let arguments = ["-p", "Hi", "--model", "anthropic/m", "--url", &lab.endpoint.url];
    let mut own = command(&lab.place, &arguments);
    own.env("ANTHROPIC_API_KEY", KEY);
    assert_eq!(finish(own, "").await.code, Some(0));
    let mut meant = command(&lab.place, &arguments);
    meant.env("TOOLGATE_MODEL_KEY", KEY);
    assert_eq!(finish(meant, "").await.code, Some(0));
    let received = lab.endpoint.received();
    assert_eq!(
        (received[0].header("x-api-key"), received[1].header("x-api-key")),
        (None, Some(KEY))
    );
}

#[tokio::test]
async fn a_key_is_stored_without_a_configuration() {
    let empty = crate::support::Workplace::empty();
    let mut save = command(&empty, &["--save-key"]);
    save.env("TOOLGATE_MODEL", "gemini/m");
    let outcome = finish(save, KEY).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stderr, "The key for gemini is stored, encrypted.\n");
}

#[tokio::test]
async fn a_stored_key_is_encrypted_and_used() {
    let api = WireApi::Responses;
    let lab = Lab::new(vec![says(api, "Hi."), says(api, "Hi.")]).await;
    let arguments = ["--model", "openai/m", "--url", &lab.endpoint.url];
    let save = command(&lab.place, &[&["--save-key"], &arguments[..]].concat());
    let outcome = finish(save, &format!("{KEY}\n")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let ask = || command(&lab.place, &[&["-p", "Hi"], &arguments[..]].concat());
    assert_eq!(finish(ask(), "").await.stdout, "Hi.\n");
    let bearer = format!("Bearer {KEY}");
    assert_eq!(lab.endpoint.received()[0].header("authorization"), Some(bearer.as_str()));
    for file in files(&lab.place.path().join("state")) {
        let content = std::fs::read(&file).unwrap();
        assert!(!String::from_utf8_lossy(&content).contains(KEY), "{}", file.display());
    }
    let forget = command(&lab.place, &[&["--forget-key"], &arguments[..]].concat());
    assert_eq!(finish(forget, "").await.code, Some(0));
    assert_eq!(finish(ask(), "").await.stdout, "Hi.\n");
    assert_eq!(lab.endpoint.received()[1].header("authorization"), None);
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut all): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|folder| files(folder)));
    all
}
