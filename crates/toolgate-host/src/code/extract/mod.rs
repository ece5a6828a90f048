//! `extract` in scripts: a model turns a text into data of a declared type.
//!
//! The call goes through the broker like a call of a tool named `extract`. So rules, labels, limits,
//! approvals, the audit log and the journal apply to it, and its result has the labels of its value.

mod answer;
mod cache;
mod model;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use thiserror::Error;
use toolgate_broker::{BrokerError, CallContext, Unfit, ValueSchema};
use toolgate_catalog::{Definition, Fingerprint, ServerName, TokenCounter, Tool};
use toolgate_models::chat::{ChatError, ChatProvider, ChatQuestion};
use toolgate_upstream::{CallError, CallOptions, InputHandler};

pub(super) use self::cache::ExtractCache;
use self::{answer::Question, model::Model};
use crate::host::ToolHost;

/// The name of the function.
pub(crate) const EXTRACT: &str = "extract";

/// Which model `extract` asks, and how much a run may ask it.
#[derive(Debug, Clone)]
pub struct ExtractSettings {
    /// The model; `None` for the client's own.
    pub model: Option<ExtractModel>,
    /// How long a script waits for one answer.
    pub timeout: Duration,
    /// How many questions a run may ask. An answer from the cache is none.
    pub max_calls: u32,
    /// How many tokens the questions and answers of a run may have together.
    pub max_tokens: usize,
}

/// A model that is configured.
#[derive(Debug, Clone)]
pub struct ExtractModel {
    /// Where it answers.
    pub provider: Arc<dyn ChatProvider>,
    /// Its name and its endpoint, which tell its answers from those of others.
    pub identity: String,
}

/// What a run has used of its budget.
#[derive(Debug, Default)]
pub(super) struct ExtractBudget(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    calls: u32,
    tokens: usize,
}

/// What one call of `extract` needs besides its arguments.
pub(super) struct Extraction<'a> {
    pub(super) host: &'a ToolHost,
    pub(super) settings: &'a ExtractSettings,
    pub(super) budget: &'a ExtractBudget,
    pub(super) cache: &'a ExtractCache,
    pub(super) context: CallContext,
    pub(super) options: CallOptions,
}

/// The arguments, which have been read.
struct Request {
    value: Value,
    schema: Value,
    compiled: ValueSchema,
    hint: Option<String>,
}

/// The longest value, type and hint, as JSON.
const MAX_VALUE_BYTES: usize = 1024 * 1024;
const MAX_TYPE_BYTES: usize = 64 * 1024;
const MAX_HINT_BYTES: usize = 4 * 1024;
/// The types that have a name of their own.
const NAMED_TYPES: [&str; 4] = ["string", "number", "integer", "boolean"];
/// How to get a model.
const NO_MODEL: &str = "there is no model to ask: this client does not offer sampling. Name a model in \
                        the configuration: \"codeMode\": { \"extract\": { \"endpoint\": \
                        \"http://localhost:11434/v1\", \"model\": \"…\" } }";

/// The function as a tool, so that the policy can judge it.
static TOOL: LazyLock<Option<Tool>> = LazyLock::new(|| {
    let definition = json!({
        "name": EXTRACT,
        "description": "Turns a text into data of a type, with a model.",
        "inputSchema": input_schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": true },
    });
    let definition = Definition::from_value(&definition).ok()?;
    Some(Tool::of_method(&ServerName::from("toolgate"), None, Arc::new(definition)))
});

/// The schema of the arguments, in the order in which they are passed.
pub(crate) fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "value": {},
            "type": { "type": ["object", "string"] },
            "hint": { "type": "string" },
        },
        "required": ["value", "type"],
        "additionalProperties": false,
    })
}

impl Default for ExtractSettings {
    fn default() -> Self {
        Self { model: None, timeout: Duration::from_secs(20), max_calls: 50, max_tokens: 100_000 }
    }
}

impl ExtractBudget {
    /// Counts a question, or says which limit it would exceed.
    fn take(&self, settings: &ExtractSettings, tokens: usize) -> Result<(), NoAnswer> {
        let mut used = self.0.lock();
        if used.calls >= settings.max_calls {
            return Err(NoAnswer::Calls(settings.max_calls));
        }
        let sum = used.tokens.saturating_add(tokens);
        if sum > settings.max_tokens {
            return Err(NoAnswer::Tokens { most: settings.max_tokens, used: used.tokens, tokens });
        }
        used.calls += 1;
        used.tokens = sum;
        Ok(())
    }

    fn add(&self, tokens: usize) {
        let mut used = self.0.lock();
        used.tokens = used.tokens.saturating_add(tokens);
    }

    /// Counts a question of an earlier part of the run.
    pub(super) fn recall(&self, arguments: &str, answer: &str) {
        let tokens = tokens(arguments) + tokens(answer);
        let mut used = self.0.lock();
        used.calls = used.calls.saturating_add(1);
        used.tokens = used.tokens.saturating_add(tokens);
    }
}

impl Extraction<'_> {
    /// Admits the call, asks the model unless the answer is known, and records the outcome.
    pub(super) async fn run(&self, arguments: Map<String, Value>) -> Result<Value, ExtractError> {
        let request = Request::read(&arguments)?;
        let handler = self.options.input_handler.as_ref();
        let model = Model::choose(self.settings, handler, &self.context.session)
            .ok_or_else(|| ExtractError::Refused(NO_MODEL.to_owned()))?;
        let tool = TOOL.as_ref().ok_or_else(|| ExtractError::Refused(NO_MODEL.to_owned()))?;
        let broker = self.host.broker();
        let given = Value::Object(arguments);
        let admitted = broker.admit(tool, given, &self.context, &self.options).await?;
        let key = Fingerprint::of(&json!([
            model.identity(),
            request.schema,
            request.hint,
            request.value
        ]));
        if let Some(known) = self.cache.get(&key) {
            admitted.end_unsent(Ok(&known)).await;
            return Ok(known);
        }
        let asked = tokio::select! {
            asked = self.ask(&model, &request) => asked,
            () = self.options.cancel.cancelled() => {
                let error = BrokerError::from(CallError::Cancelled);
                admitted.end_unsent(Err(&error)).await;
                return Err(error.into());
            }
        };
        match asked {
            Ok(value) => {
                admitted.end_unsent(Ok(&value)).await;
                self.cache.put(key, &value);
                Ok(value)
            }
            Err(why) => {
                let error =
                    BrokerError::NoAnswer { tool: EXTRACT.to_owned(), why: why.to_string() };
                admitted.end_unsent(Err(&error)).await;
                Err(error.into())
            }
        }
    }

    /// Asks once, and once more if the answer cannot be used.
    async fn ask(&self, model: &Model<'_>, request: &Request) -> Result<Value, NoAnswer> {
        let question = Question { request, wrong: None };
        let (said, why) = match self.answer(model, request, &question).await? {
            Ok(value) => return Ok(value),
            Err(wrong) => wrong,
        };
        let question = Question { request, wrong: Some((&said, &why)) };
        match self.answer(model, request, &question).await? {
            Ok(value) => Ok(value),
            Err((_, why)) => Err(NoAnswer::Type(why)),
        }
    }

    /// One question. The outer error ends the call; the inner one is an answer, and what is wrong
    /// with it.
    async fn answer(
        &self,
        model: &Model<'_>,
        request: &Request,
        question: &Question<'_>,
    ) -> Result<Result<Value, (String, String)>, NoAnswer> {
        let question = question.to_chat();
        let ChatQuestion { instructions, text, .. } = &question;
        self.budget.take(self.settings, tokens(instructions) + tokens(text))?;
        let timeout = self.settings.timeout;
        let said = match tokio::time::timeout(timeout, model.ask(&question)).await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => return Err(NoAnswer::Model(error.to_string())),
            Err(_) => return Err(NoAnswer::Time(timeout)),
        };
        self.budget.add(tokens(&said));
        let Some(value) = answer::json_of(&said) else {
            return Ok(Err((said, "the answer is not JSON".to_owned())));
        };
        match request.compiled.check(value).await {
            Ok(value) => Ok(Ok(value)),
            Err(unfit) => Ok(Err((said, unfit.to_string()))),
        }
    }
}

impl Request {
    fn read(arguments: &Map<String, Value>) -> Result<Self, ExtractError> {
        let refused = ExtractError::Refused;
        let value = arguments.get("value").filter(|value| !value.is_null()).cloned();
        let value = value.ok_or_else(|| refused("there is no value".to_owned()))?;
        let schema = match arguments.get("type") {
            Some(Value::String(name)) if NAMED_TYPES.contains(&name.as_str()) => {
                json!({ "type": name })
            }
            Some(schema @ Value::Object(_)) => schema.clone(),
            _ => {
                return Err(refused(
                    "the type is a JSON Schema, such as { type: \"object\", properties: { … } }, \
                     a type that the script declares and JSON can have, or \"string\", \"number\", \
                     \"integer\" or \"boolean\""
                        .to_owned(),
                ));
            }
        };
        let hint = match arguments.get("hint") {
            None | Some(Value::Null) => None,
            Some(Value::String(hint)) => Some(hint.clone()),
            Some(_) => return Err(refused("the hint is no text".to_owned())),
        };
        for (name, bytes, most) in [
            ("value", value.to_string().len(), MAX_VALUE_BYTES),
            ("type", schema.to_string().len(), MAX_TYPE_BYTES),
            ("hint", hint.as_ref().map_or(0, String::len), MAX_HINT_BYTES),
        ] {
            if bytes > most {
                return Err(refused(format!(
                    "the {name} has {bytes} bytes, and {most} are the most"
                )));
            }
        }
        let compiled = ValueSchema::compile(&schema);
        let compiled =
            compiled.map_err(|Unfit(why)| refused(format!("the type is no JSON Schema: {why}")))?;
        Ok(Self { value, schema, compiled, hint })
    }
}

/// Why the model gave no answer that can be used.
#[derive(Debug, Error)]
enum NoAnswer {
    #[error("a run may ask {0} times (codeMode.extract.maxCalls)")]
    Calls(u32),
    #[error(
        "a run may use {most} tokens for it (codeMode.extract.maxTokens): {used} are used, and this \
         question has {tokens}"
    )]
    Tokens { most: usize, used: usize, tokens: usize },
    #[error("the model gave no answer: {0}")]
    Model(String),
    #[error("the model gave no answer in {} s (codeMode.extract.timeoutSeconds)", .0.as_secs_f64())]
    Time(Duration),
    #[error("the model gave no answer of the type, also at the second try: {0}")]
    Type(String),
}

/// Why `extract` has no value.
#[derive(Debug)]
pub(super) enum ExtractError {
    /// Nothing was asked.
    Refused(String),
    /// The broker refused it, or the model did not answer as it should.
    Broker(BrokerError),
}

impl From<BrokerError> for ExtractError {
    fn from(error: BrokerError) -> Self {
        Self::Broker(error)
    }
}

fn tokens(text: &str) -> usize {
    TokenCounter::shared().count(text)
}
