//! Servers that are put to use: those of the configuration at once, others with a person's consent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolgate_broker::{Caller, Seat};
use toolgate_catalog::{ServerEntry, ServerName, nearest};
use toolgate_registry::{Plan, PlanTarget as Target};
use toolgate_store::{ApprovalRequest, Choices, Consent, SwitchedBy};
use toolgate_upstream::{
    CallOptions, Endpoint, HttpEndpoint, InputRequest, ServerSpec, StartMode, StateKind,
    StdioEndpoint,
};

use crate::{host::Host, settings::ServerSetup};

/// What came of enabling a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Enabled {
    /// It is connected.
    Connected,
    /// It is enabled and could not be connected.
    Failed { reason: String, action: String },
    /// A person was asked and did not agree.
    Declined,
    /// A person has to run `toolgate approve`.
    Waits { id: String },
    /// It can only be used once a person has done something about it.
    Unusable(String),
    /// There is no such server.
    Unknown { nearest: Vec<String> },
    /// Whoever asked for it is gone.
    Cancelled,
}

/// What a person said.
enum Answer {
    Yes,
    No,
    NobodyToAsk,
    Cancelled,
}

/// How long a person has to answer.
const ASKING_PATIENCE: Duration = Duration::from_mins(10);
/// After how long without a call a server of a registry is stopped.
const REST_AFTER: Duration = Duration::from_mins(30);

impl Host {
    /// Enables and connects a server: of the configuration, or of a registry as `name` or
    /// `name@version`, if a person consents.
    pub(crate) async fn enable(
        &self,
        name: &str,
        caller: &Caller,
        options: &CallOptions,
    ) -> Enabled {
        self.refresh_switches().await;
        let (name, version) = match name.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (name, None),
        };
        let server = ServerName::from(name);
        let configured = self.settings().servers.iter().any(|setup| setup.spec.name == server);
        if configured {
            return self.connect_enabled(&server, caller).await;
        }
        let listed = match &self.settings().supply.registry {
            Some(registry) => registry.entry(name, version).await,
            None => None,
        };
        let consented = self.inner.switches.consented(&server);
        let Some(entry) = listed else {
            // What a person once agreed to does not depend on a registry that answers.
            return match consented {
                Some(_) => self.connect_enabled(&server, caller).await,
                None => Enabled::Unknown { nearest: self.nearest_servers(name).await },
            };
        };
        let plan = match Plan::of(&entry) {
            Ok(plan) => plan,
            Err(reason) => return Enabled::Unusable(reason.to_string()),
        };
        if consented.as_deref() == Some(plan.fingerprint().as_str()) {
            return self.connect_enabled(&server, caller).await;
        }
        let missing = plan.missing(&*self.settings().supply.is_set);
        if !missing.is_empty() {
            return Enabled::Unusable(format!(
                "it needs the environment variable{} {}: a person sets {} where toolgate is started, \
                 or adds the server to `mcpServers` with its `env`; a value is nothing to ask for here",
                if missing.len() == 1 { "" } else { "s" },
                missing.join(", "),
                if missing.len() == 1 { "it" } else { "them" },
            ));
        }
        match self.ask(&plan, caller, options).await {
            Answer::Yes => {
                let (consent, key) = (consent_to(&plan), plan.server.clone());
                let record = move |choices: &mut Choices| choices.consent(key, consent);
                if let Some(Err(error)) = self.inner.switches.change(record).await {
                    tracing::warn!(%server, "the consent is not kept: {error}");
                }
                // Who agrees to it also wants it on.
                self.refresh_switches().await;
                let changing = self.inner.switches.changing.lock().await;
                self.use_plan(&plan).await;
                drop(changing);
                self.connect_enabled(&server, caller).await
            }
            Answer::No => Enabled::Declined,
            Answer::Cancelled => Enabled::Cancelled,
            Answer::NobodyToAsk => self.request_approval(&plan).await,
        }
    }

    async fn connect_enabled(&self, server: &ServerName, caller: &Caller) -> Enabled {
        match self.inner.switches.switched_off_by(server) {
            Some(SwitchedBy::Person) => {
                let reason = "a person switched it off, and switches it on: `toolgate enable";
                return Enabled::Unusable(format!("{reason} {server}`"));
            }
            // For them it would be on for all others too.
            Some(SwitchedBy::Model) if caller.seat == Seat::Elsewhere => {
                let reason = "it was disabled for all, and is enabled where toolgate runs";
                return Enabled::Unusable(format!("{reason}: `toolgate enable {server}`"));
            }
            Some(SwitchedBy::Model) => self.switch(server, true).await,
            None => {}
        }
        self.inner.upstream.retry(server.as_str());
        self.settled(server.as_str()).await;
        let state = self.state(server.as_str()).unwrap_or_default();
        match (state.kind, state.failure) {
            (StateKind::Ready, _) => Enabled::Connected,
            (_, Some(failure)) => {
                Enabled::Failed { reason: failure.reason, action: failure.action }
            }
            (_, None) => Enabled::Failed {
                reason: "it is not connected".to_owned(),
                action: "try again".to_owned(),
            },
        }
    }

    /// Asks the person at the other end, if there is a way to, and what they say is theirs to say: what
    /// is run is run with the rights of whoever runs this. Only an outright yes is one.
    async fn ask(&self, plan: &Plan, caller: &Caller, options: &CallOptions) -> Answer {
        if caller.seat == Seat::Elsewhere {
            return Answer::NobodyToAsk;
        }
        let Some(input_handler) = &options.input_handler else { return Answer::NobodyToAsk };
        let offered = input_handler.capabilities().get("elicitation");
        let takes_forms = offered.is_some_and(|offered| {
            offered.as_object().is_some_and(|kinds| kinds.is_empty() || kinds.contains_key("form"))
        });
        if !takes_forms {
            return Answer::NobodyToAsk;
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
            () = options.cancel.cancelled() => return Answer::Cancelled,
            () = tokio::time::sleep(ASKING_PATIENCE) => return Answer::NobodyToAsk,
        };
        let Ok(answer) = answer else { return Answer::NobodyToAsk };
        let said = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str);
        match (said("/action"), said("/content/decision")) {
            (Some("accept"), Some("allow")) => Answer::Yes,
            _ => Answer::No,
        }
    }

    async fn request_approval(&self, plan: &Plan) -> Enabled {
        let fingerprint = plan.fingerprint();
        let id: String = fingerprint.chars().take(8).collect();
        let json = serde_json::to_value(plan).unwrap_or_default();
        let request = ApprovalRequest::now(&plan.server, fingerprint, json, plan.shown());
        let key = id.clone();
        let change = move |choices: &mut Choices| {
            choices.requests.insert(key, request);
        };
        match self.inner.switches.change(change).await {
            Some(Ok(())) => Enabled::Waits { id },
            _ => Enabled::Unusable(
                "a person has to agree, and there is no way to ask one".to_owned(),
            ),
        }
    }

    /// Makes a server that a person has consented to one of this host's.
    pub(crate) async fn use_plan(&self, plan: &Plan) {
        let server = ServerName::from(plan.server.as_str());
        if self.inner.switches.consented(&server) == Some(plan.fingerprint()) {
            return;
        }
        self.drop_plan(&server).await;
        self.use_at_start(plan);
    }

    /// The same where nothing of it is in use yet.
    pub(crate) fn use_at_start(&self, plan: &Plan) {
        let mut setup = setup_of(plan);
        let (server, fingerprint) = (setup.spec.name.clone(), plan.fingerprint());
        let configured = self.settings().servers.iter().any(|setup| setup.spec.name == server);
        if configured || !self.inner.knowledge.add(&setup) {
            return;
        }
        if let Some(memory) = self.inner.knowledge.memory(&server) {
            setup.spec.remembered_era = Some(memory.era);
            self.inner.knowledge.recall(vec![server.clone()]);
        }
        self.inner.endpoints.set(server.clone(), setup.spec.fingerprint());
        self.inner.upstream.add(setup.spec);
        self.inner.switches.used(server.clone(), fingerprint);
        self.refuse_disabled(&server);
    }

    /// Ends the use of a server that a person no longer consents to, or only to something else of it.
    pub(crate) async fn drop_plan(&self, server: &ServerName) {
        if self.inner.switches.unused(server) {
            self.inner.upstream.remove(server.as_str()).await;
            self.inner.knowledge.remove(server);
        }
    }

    async fn nearest_servers(&self, name: &str) -> Vec<String> {
        let known = match &self.settings().supply.registry {
            Some(registry) => registry.servers().await.entries,
            None => Arc::default(),
        };
        let configured = self.settings().servers.iter().map(|setup| setup.spec.name.as_str());
        let all = configured.chain(known.iter().map(|entry| entry.name.as_str()));
        nearest(name, all, 3).into_iter().map(str::to_owned).collect()
    }
}

/// The plan that a consent is about, if it is what it was when it was given.
pub(crate) fn plan_of(server: &str, consent: &Consent) -> Option<Plan> {
    let plan: Plan = serde_json::from_value(consent.plan.clone()).ok()?;
    (plan.server == server && plan.fingerprint() == consent.fingerprint).then_some(plan)
}

/// That a person agreed to this plan, now.
fn consent_to(plan: &Plan) -> Consent {
    Consent::now(plan.fingerprint(), serde_json::to_value(plan).unwrap_or_default())
}

pub(crate) fn setup_of(plan: &Plan) -> ServerSetup {
    let endpoint = match plan.target.clone() {
        Target::Run { command, args, env, .. } => {
            Endpoint::Stdio(StdioEndpoint { command, args, env, cwd: None })
        }
        Target::Contact { url, headers } => {
            let headers: BTreeMap<String, String> = headers;
            Endpoint::Http(HttpEndpoint { headers, ..HttpEndpoint::new(url) })
        }
    };
    let spec = ServerSpec {
        start: StartMode::OnDemand,
        rest_after: Some(REST_AFTER),
        ..ServerSpec::new(plan.server.as_str(), endpoint)
    };
    let entry = ServerEntry {
        prefix: Some(plan.prefix.chars().take(32).collect()),
        description: Some(plan.description.clone()).filter(|text| !text.is_empty()),
        ..ServerEntry::named(plan.server.as_str())
    };
    ServerSetup { entry, lazy: true, ..ServerSetup::new(spec) }
}
