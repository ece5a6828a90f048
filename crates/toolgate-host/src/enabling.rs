//! Enables servers: configured ones at once, others with the consent of a person.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolgate_broker::{Caller, CallerLocation, ClientForms, new_id};
use toolgate_catalog::{CatalogServer, ServerName, nearest};
use toolgate_registry::{Plan, PlanTarget};
use toolgate_store::{Choices, Consent, QuestionReference, ServerConsentRequest, SwitchedBy};
use toolgate_upstream::{
    CallError, CallOptions, Endpoint, HttpEndpoint, InputRequest, ServerSpec, StartMode, StateKind,
    StdioEndpoint,
};

use crate::{host::ToolHost, settings::ServerSetup};

/// The outcome of enabling a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnableOutcome {
    /// It is connected.
    Connected,
    /// It is enabled, and the person has to log in: they open this link.
    LoginNeeded { link: String },
    /// It is enabled, but could not be connected.
    Failed { reason: String, action: String },
    /// A person was asked and denied it.
    Declined,
    /// A person has to run `toolgate approve`.
    Waits { question: QuestionReference },
    /// A person has to do something first.
    Unusable(String),
    /// No server has this name.
    Unknown { nearest: Vec<String> },
    /// The caller cancelled.
    Cancelled,
}

/// The answer of a person.
enum ConsentAnswer {
    Yes,
    No,
    NobodyToAsk,
    Cancelled,
}

/// How long a person has to answer.
const CONSENT_TIMEOUT: Duration = Duration::from_mins(10);
/// After how long without a call a server of a registry is stopped.
const STOP_IDLE_AFTER: Duration = Duration::from_mins(30);

impl ToolHost {
    /// Enables and connects a server: one of the configuration, or one of a registry as `name` or
    /// `name@version` if a person consents.
    pub(crate) async fn enable(
        &self,
        name: &str,
        caller: &Caller,
        options: &CallOptions,
    ) -> EnableOutcome {
        self.refresh_choices().await;
        let (name, version) = match name.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (name, None),
        };
        let server = ServerName::from(name);
        let configured = self.settings().servers.iter().any(|setup| setup.spec.name == server);
        if configured {
            return self.connect_enabled(&server, caller, options).await;
        }
        let listed = match &self.settings().directory.registry {
            Some(registry) => registry.entry(name, version).await,
            None => None,
        };
        let consented = self.inner.enabled.consented(&server);
        let Some(entry) = listed else {
            // A consent does not depend on whether the registry answers.
            return match consented {
                Some(_) => self.connect_enabled(&server, caller, options).await,
                None => EnableOutcome::Unknown { nearest: self.nearest_servers(name).await },
            };
        };
        let plan = match Plan::of(&entry) {
            Ok(plan) => plan,
            Err(reason) => return EnableOutcome::Unusable(reason.to_string()),
        };
        if consented.as_deref() == Some(plan.fingerprint().as_str()) {
            return self.connect_enabled(&server, caller, options).await;
        }
        let missing = plan.missing(&*self.settings().directory.is_set);
        if !missing.is_empty() {
            return EnableOutcome::Unusable(format!(
                "it needs the environment variable{} {}: a person sets {} where toolgate is started, \
                 or adds the server to `mcpServers` with its `env`; a value is nothing to ask for here",
                if missing.len() == 1 { "" } else { "s" },
                missing.join(", "),
                if missing.len() == 1 { "it" } else { "them" },
            ));
        }
        match self.ask(&plan, caller, options).await {
            ConsentAnswer::Yes => {
                let (consent, key) = (consent_to(&plan), plan.server.clone());
                let record = move |choices: &mut Choices| choices.consent(key, consent);
                if let Some(Err(error)) = self.inner.enabled.change(record).await {
                    tracing::warn!(%server, "the consent is not kept: {error}");
                }
                // A consent also enables the server.
                self.refresh_choices().await;
                let changing = self.inner.enabled.changing.lock().await;
                self.use_plan(&plan).await;
                drop(changing);
                self.connect_enabled(&server, caller, options).await
            }
            ConsentAnswer::No => EnableOutcome::Declined,
            ConsentAnswer::Cancelled => EnableOutcome::Cancelled,
            ConsentAnswer::NobodyToAsk => self.request_approval(&plan).await,
        }
    }

    async fn connect_enabled(
        &self,
        server: &ServerName,
        caller: &Caller,
        options: &CallOptions,
    ) -> EnableOutcome {
        match self.inner.enabled.switched_off_by(server) {
            Some(SwitchedBy::Person) => {
                let reason = "a person switched it off, and switches it on: `toolgate enable";
                return EnableOutcome::Unusable(format!("{reason} {server}`"));
            }
            // It would be enabled for all other callers too.
            Some(SwitchedBy::Model) if caller.location == CallerLocation::Remote => {
                let reason = "it was disabled for all, and is enabled where toolgate runs";
                return EnableOutcome::Unusable(format!("{reason}: `toolgate enable {server}`"));
            }
            Some(SwitchedBy::Model) => self.switch(server, true).await,
            None => {}
        }
        if self.servers().is_per_caller(server.as_str()) {
            return self.connect_for(server, caller, options).await;
        }
        self.servers().retry(server.as_str());
        self.servers().settled(server.as_str()).await;
        let state = self.servers().state(server.as_str()).unwrap_or_default();
        match (state.kind, state.failure) {
            (StateKind::Ready, _) => EnableOutcome::Connected,
            (_, Some(failure)) => {
                EnableOutcome::Failed { reason: failure.reason, action: failure.action }
            }
            (_, None) => EnableOutcome::Failed {
                reason: "it is not connected".to_owned(),
                action: "try again".to_owned(),
            },
        }
    }

    /// Connects a server as a caller, who has their own login there.
    async fn connect_for(
        &self,
        server: &ServerName,
        caller: &Caller,
        options: &CallOptions,
    ) -> EnableOutcome {
        let options = CallOptions { caller: Some(caller.login_owner()), ..options.clone() };
        match self.servers().connect_for(server.as_str(), &options).await {
            Ok(()) => EnableOutcome::Connected,
            Err(CallError::Cancelled) => EnableOutcome::Cancelled,
            Err(CallError::LoginNeeded { link, .. }) => EnableOutcome::LoginNeeded { link },
            Err(CallError::NotConnected { failure, .. }) => {
                EnableOutcome::Failed { reason: failure.reason, action: failure.action }
            }
            Err(error) => {
                let action = "try again".to_owned();
                EnableOutcome::Failed { reason: error.to_string(), action }
            }
        }
    }

    /// Asks the person at the client. Only a local caller may consent, because the server runs with
    /// the rights of this process. Anything but an explicit "allow" is a denial.
    async fn ask(&self, plan: &Plan, caller: &Caller, options: &CallOptions) -> ConsentAnswer {
        let is_asked = self.settings().forms == ClientForms::Sent;
        if caller.location == CallerLocation::Remote || !is_asked {
            return ConsentAnswer::NobodyToAsk;
        }
        let Some(input_handler) = &options.input_handler else { return ConsentAnswer::NobodyToAsk };
        let offered = input_handler.capabilities().get("elicitation");
        let takes_forms = offered.is_some_and(|offered| {
            offered.as_object().is_some_and(|kinds| kinds.is_empty() || kinds.contains_key("form"))
        });
        if !takes_forms || !input_handler.may_decide().await {
            return ConsentAnswer::NobodyToAsk;
        }
        let message = format!(
            "An agent wants to use a server that is not in your configuration.\n\n{}\nAllow this, and \
             nothing else?",
            plan.shown()
        );
        let schema = json!({
            "type": "object",
            "properties": { "decision": {
                "type": "string", "title": "Decision", "enum": ["deny", "allow"],
                "description": "allow: it is used now and later, until something about it changes",
            } },
            "required": ["decision"],
        });
        let params = Some(json!({ "message": message, "requestedSchema": schema }));
        let question = InputRequest { method: "elicitation/create".to_owned(), params };
        let answer = tokio::select! {
            answer = input_handler.answer(question) => answer,
            () = options.cancel.cancelled() => return ConsentAnswer::Cancelled,
            () = tokio::time::sleep(CONSENT_TIMEOUT) => return ConsentAnswer::NobodyToAsk,
        };
        let Ok(answer) = answer else { return ConsentAnswer::NobodyToAsk };
        let said = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        match (said("/action"), said("/content/decision")) {
            (Some("accept"), Some("allow")) => ConsentAnswer::Yes,
            _ => ConsentAnswer::No,
        }
    }

    async fn request_approval(&self, plan: &Plan) -> EnableOutcome {
        let fingerprint = plan.fingerprint();
        let json = serde_json::to_value(plan).unwrap_or_default();
        let presence = json!(self.settings().policy.presence);
        let shown = plan.shown();
        let request = ServerConsentRequest::now(&plan.server, fingerprint, json, shown, presence);
        let change = move |choices: &mut Choices| {
            let mut asked = choices.requests.iter();
            let asked = asked.find(|(_, asked)| asked.fingerprint == request.fingerprint);
            // Nobody can compute the id that approves from what the registry says.
            let id = asked.map_or_else(|| new_id("c").to_string(), |(id, _)| id.clone());
            choices.requests.insert(id.clone(), request);
            QuestionReference::of(&id)
        };
        match self.inner.enabled.change(change).await {
            Some(Ok(question)) => EnableOutcome::Waits { question },
            _ => EnableOutcome::Unusable(
                "a person has to agree, and there is no way to ask one".to_owned(),
            ),
        }
    }

    /// Adds a server that a person has consented to.
    pub(crate) async fn use_plan(&self, plan: &Plan) {
        let server = ServerName::from(plan.server.as_str());
        if self.inner.enabled.consented(&server) == Some(plan.fingerprint()) {
            return;
        }
        self.drop_plan(&server).await;
        self.use_at_start(plan);
    }

    /// The same at the start, when no server is in use yet.
    pub(crate) fn use_at_start(&self, plan: &Plan) {
        let mut setup = setup_of(plan);
        let (server, fingerprint) = (setup.spec.name.clone(), plan.fingerprint());
        let configured = self.settings().servers.iter().any(|setup| setup.spec.name == server);
        if configured || !self.inner.live_catalog.add(&setup) {
            return;
        }
        setup.spec.asks = self.inner.live_catalog.asks(&server);
        if let Some(memory) = self.inner.live_catalog.memory(&server) {
            setup.spec.remembered_era.get_or_insert(memory.era);
            self.inner.live_catalog.recall(vec![server.clone()]);
        }
        self.inner.endpoints.set(server.clone(), setup.spec.fingerprint());
        self.servers().add(setup.spec);
        self.inner.enabled.used(server.clone(), fingerprint);
        self.refuse_disabled(&server);
    }

    /// Removes a server whose consent was withdrawn or replaced.
    pub(crate) async fn drop_plan(&self, server: &ServerName) {
        if self.inner.enabled.unused(server) {
            self.servers().remove(server.as_str()).await;
            self.inner.live_catalog.remove(server);
        }
    }

    async fn nearest_servers(&self, name: &str) -> Vec<String> {
        let settings = self.settings();
        let known = match &settings.directory.registry {
            Some(registry) => registry.servers().await.entries,
            None => Arc::default(),
        };
        let configured = settings.servers.iter().map(|setup| setup.spec.name.as_str());
        let all = configured.chain(known.iter().map(|entry| entry.name.as_str()));
        nearest(name, all, 3).into_iter().map(str::to_owned).collect()
    }
}

/// The plan of a consent, if it has not been changed since.
pub(crate) fn plan_of(server: &str, consent: &Consent) -> Option<Plan> {
    let plan: Plan = serde_json::from_value(consent.plan.clone()).ok()?;
    (plan.server == server && plan.fingerprint() == consent.fingerprint).then_some(plan)
}

/// The consent of a person to this plan, given now.
fn consent_to(plan: &Plan) -> Consent {
    Consent::now(plan.fingerprint(), serde_json::to_value(plan).unwrap_or_default())
}

pub(crate) fn setup_of(plan: &Plan) -> ServerSetup {
    let endpoint = match plan.target.clone() {
        PlanTarget::Run { command, args, env, .. } => {
            Endpoint::Stdio(StdioEndpoint { command, args, env, cwd: None })
        }
        PlanTarget::Contact { url, headers } => {
            let headers: BTreeMap<String, String> = headers;
            Endpoint::Http(HttpEndpoint { headers, ..HttpEndpoint::new(url) })
        }
    };
    let spec = ServerSpec {
        start: StartMode::OnDemand,
        rest_after: Some(STOP_IDLE_AFTER),
        ..ServerSpec::new(plan.server.as_str(), endpoint)
    };
    let entry = CatalogServer {
        prefix: Some(plan.prefix.chars().take(32).collect()),
        description: Some(plan.description.clone()).filter(|text| !text.is_empty()),
        ..CatalogServer::named(plan.server.as_str())
    };
    ServerSetup { entry, lazy: true, ..ServerSetup::new(spec) }
}
