//! Chat models.

use std::sync::Arc;

use toolgate_models::chat::{
    ChatApi, ChatEndpoint, ChatError, ChatProvider as _, ChatQuestion, ChatSettings, ModelChooser,
};
use toolgate_search::{ChoiceCandidate, ChoiceRequest, Chooser as _};
use toolgate_testkit::{ModelEndpoint, ModelScript};

const KEY: &str = "s3cr3t-k3y";

fn settings(api: ChatApi, endpoint: &str) -> ChatSettings {
    let (model, api_key) = ("small".to_owned(), Some(KEY.to_owned()));
    ChatSettings { api, endpoint: endpoint.to_owned(), model, api_key }
}

fn question() -> ChatQuestion {
    ChatQuestion { instructions: "Be short.".into(), text: "Which?".into(), max_tokens: 7 }
}

async fn ask(api: ChatApi, script: ModelScript) -> Result<String, ChatError> {
    let model = ModelEndpoint::start(script, Some(KEY)).await.unwrap();
    ChatEndpoint::new(settings(api, model.url())).unwrap().ask(&question()).await
}

#[tokio::test]
async fn both_apis_are_spoken() {
    for api in [ChatApi::OpenAi, ChatApi::Anthropic] {
        let model = ModelEndpoint::start(ModelScript::Say("this".into()), Some(KEY)).await.unwrap();
        let endpoint = ChatEndpoint::new(settings(api, &format!("{}/", model.url()))).unwrap();
        assert_eq!(endpoint.ask(&question()).await.unwrap(), "this", "{api:?}");
        let asked = model.questions().remove(0);
        assert_eq!(asked["model"], "small");
        assert_eq!(asked.get("max_tokens").is_some(), api == ChatApi::Anthropic);
        assert!(asked.to_string().contains("Which?") && asked.to_string().contains("Be short."));
    }
}

#[tokio::test]
async fn errors_contain_neither_the_key_nor_the_url() {
    let elsewhere = ModelEndpoint::start(ModelScript::Say("x".into()), None).await.unwrap();
    let away = ModelScript::Redirect(format!("{}/chat/completions", elsewhere.url()));
    for (script, expected) in [
        (ModelScript::Status(500), ChatError::Status(500)),
        (away, ChatError::Status(307)),
        (ModelScript::Flood(10_000_000), ChatError::TooLarge),
        (ModelScript::Body("<html>".into()), ChatError::Unreadable),
        (ModelScript::Body("{\"choices\": []}".into()), ChatError::Unreadable),
        (ModelScript::Body("{\"content\": {}}".into()), ChatError::Unreadable),
    ] {
        assert_eq!(ask(ChatApi::OpenAi, script).await.unwrap_err(), expected);
    }
    assert!(elsewhere.questions().is_empty(), "a key is not carried to another host");

    let model = ModelEndpoint::start(ModelScript::Say("x".into()), Some("another")).await.unwrap();
    for api in [ChatApi::OpenAi, ChatApi::Anthropic] {
        let endpoint = ChatEndpoint::new(settings(api, model.url())).unwrap();
        let error = endpoint.ask(&question()).await.unwrap_err();
        assert_eq!(error, ChatError::Unauthorized(401));
        assert!(!format!("{error} {endpoint:?}").contains(KEY));
    }
    let url = model.url().to_owned();
    drop(model);
    let gone = ChatEndpoint::new(settings(ChatApi::OpenAi, &url)).unwrap();
    let error = gone.ask(&question()).await.unwrap_err().to_string();
    assert!(error.contains("cannot be reached") && !error.contains("127.0.0.1"), "{error}");
    assert!(ChatEndpoint::new(settings(ChatApi::OpenAi, "nowhere")).is_err());
}

#[tokio::test]
async fn a_model_chooses() {
    let say = |text: &str| ModelScript::Say(text.to_owned());
    let model = ModelEndpoint::start(say("Sure: [\"b\", \"ghost\"]"), None).await.unwrap();
    let endpoint = ChatEndpoint::new(settings(ChatApi::OpenAi, model.url())).unwrap();
    let chooser = ModelChooser::new(Arc::new(endpoint));
    let candidate =
        |name: &str| ChoiceCandidate { name: name.into(), ..ChoiceCandidate::default() };
    let request = ChoiceRequest {
        queries: vec!["the second".into()],
        candidates: vec![candidate("a"), candidate("b")],
        limit: 1,
    };
    let chosen = chooser.choose(&request).await.unwrap();
    assert_eq!(request.order(&chosen), Some(vec![1, 0]));
    for (script, reason) in [
        (say("I would take b."), "its answer is not a list of names"),
        (ModelScript::Status(503), "the endpoint of the model answered with HTTP 503"),
    ] {
        model.script(script);
        assert_eq!(chooser.choose(&request).await.unwrap_err().to_string(), reason);
    }
}
