//! A host with a registry, and a person who answers.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_host::{HostSettings, ServerDirectory, ToolHost, ToolSession};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_registry::{Registry, RegistrySettings, ServerSource};
use toolgate_store::{ChoiceStore, Store};
use toolgate_testkit::{Builtin, Fixture, RegistryEndpoint, RunningHttp};
use toolgate_upstream::{CallOptions, InputHandler, InputRequest};

/// Answers every question alike, and remembers them.
#[derive(Debug)]
pub(crate) struct Person {
    capabilities: JsonObject,
    answer: Value,
    asked: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn who_says(answer: Value) -> Arc<Self> {
        Self::with(&json!({ "elicitation": {} }), answer)
    }

    pub(crate) fn with(capabilities: &Value, answer: Value) -> Arc<Self> {
        let capabilities = capabilities.as_object().unwrap().clone();
        Arc::new(Self { capabilities, answer, asked: Mutex::default() })
    }

    /// What was asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl InputHandler for Person {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn answer(&self, question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        assert_eq!(question.method, "elicitation/create");
        let params = question.params.unwrap();
        assert_eq!(params["requestedSchema"]["required"], json!(["decision"]));
        self.asked.lock().push(params["message"].as_str().unwrap().to_owned());
        async { Ok(self.answer.clone()) }.boxed()
    }
}

/// A registry with one server, which runs, and a folder for what is kept.
pub(crate) struct Place {
    pub(crate) registry: RegistryEndpoint,
    pub(crate) folder: TempDir,
    server: RunningHttp,
}

pub(crate) const NAME: &str = "io.github.acme/sums";

impl Place {
    pub(crate) async fn new() -> Self {
        let fixture = Fixture::new("sums").with_builtins([Builtin::Add]);
        let server = fixture.serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
        let registry = RegistryEndpoint::start(Vec::new()).await.unwrap();
        let place = Self { registry, folder: tempfile::tempdir().unwrap(), server };
        place.list("1.0.0", "");
        place
    }

    /// Lists the server in this version, with `more` at the end of its URL.
    pub(crate) fn list(&self, version: &str, more: &str) {
        let url = format!("{}{more}", self.server.url());
        self.registry.replace(vec![json!({
            "name": NAME, "version": version, "description": "Adds numbers up",
            "remotes": [{ "type": "streamable-http", "url": url }],
        })]);
    }

    pub(crate) fn choices(&self) -> std::sync::Arc<dyn ChoiceStore> {
        Store::new(self.folder.path()).choices("test")
    }

    pub(crate) fn host(&self) -> ToolHost {
        let sources = vec![ServerSource::Url(self.registry.url().to_owned())];
        let settings = RegistrySettings { sources, max_age: Duration::ZERO, cache: None };
        let registry = Some(Arc::new(Registry::new(settings)));
        ToolHost::start(HostSettings {
            choices: Some(self.choices()),
            directory: ServerDirectory { registry, ..ServerDirectory::default() },
            ..HostSettings::new(Vec::new())
        })
    }

    /// A text with what differs from run to run left out.
    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(self.server.url(), "http://SERVER")
            .replace(self.registry.url(), "http://REGISTRY")
    }
}

/// Calls a tool for this person; gives the text of the result, and whether it is an error.
pub(crate) async fn call(
    session: &ToolSession,
    person: Option<&Arc<Person>>,
    tool: &str,
    arguments: Value,
) -> (String, bool) {
    let input_handler = person.map(|person| Arc::clone(person) as Arc<dyn InputHandler>);
    let options = CallOptions { input_handler, ..CallOptions::default() };
    let arguments = arguments.as_object().unwrap().clone();
    let result = session.call(tool, arguments, options).await.unwrap();
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    (text, result["isError"] == true)
}

pub(crate) async fn enable(session: &ToolSession, person: Option<&Arc<Person>>) -> (String, bool) {
    call(session, person, "enable_server", json!({ "name": NAME })).await
}
