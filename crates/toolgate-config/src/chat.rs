//! The `chat` key.

use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::section::{Definitions, custom, number, section, text, whole};

section! {
    /// The model of `toolgate chat`, and the limits of chats: the `chat` key.
    pub struct ChatConfig as "Chat" {
        /// The model, as `provider/name`, if neither `--model` nor `TOOLGATE_MODEL` names one.
        "model" => model: Option<String> = None, text();
        /// The context window of the model, in tokens, if toolgate does not know it by the model's
        /// name.
        "contextWindow" => context_window: Option<u64> = None, whole::<u64>(1_000, 100_000_000);
        /// How many requests to the model one turn may make. The default is 50.
        "maxRequests" => max_requests: Option<u32> = None, whole::<u32>(1, 10_000);
        /// How many tokens one chat may use, input and output of all requests. The default is no
        /// limit.
        "maxTokens" => max_tokens: Option<u64> = None, whole::<u64>(1, 4_000_000_000);
        /// How many US dollars one chat may cost. It needs `prices`. The default is no limit.
        "maxCost" => max_cost: Option<f64> = None, number(0.0, 1_000_000.0);
        /// The prices of the model. toolgate knows none, since they change.
        "prices" => prices: Option<ChatPrices> = None, custom(
            Definitions::reference::<ChatPrices>,
            |scope, member| scope.sound_section::<ChatPrices>(member, PRICES_HINT, |scope| {
                scope.require("input", PRICES_HINT);
                scope.require("output", PRICES_HINT);
            }),
        );
    }
}

section! {
    /// What a million tokens of the model cost, in US dollars.
    pub struct ChatPrices as "ChatPrices" {
        /// New input tokens.
        "input" => input: f64 = 0.0, number(0.0, 1_000_000.0);
        /// Input tokens that the provider reads from its cache. The default is the price of `input`.
        "cached" => cached: Option<f64> = None, number(0.0, 1_000_000.0);
        /// Input tokens that the provider writes to its cache. The default is the price of `input`.
        "cacheWritten" => cache_written: Option<f64> = None, number(0.0, 1_000_000.0);
        /// Output tokens.
        "output" => output: f64 = 0.0, number(0.0, 1_000_000.0);
    }
}

const PRICES_HINT: &str = "write `{ \"input\": 3, \"output\": 15 }`";

impl ChatConfig {
    /// The settings of a folder's file, within the limits of the user's own.
    #[must_use]
    pub fn under(self, own: &Self) -> Self {
        /// The smaller one; one that is missing is no limit.
        fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(if other < one { other } else { one }),
                (one, other) => one.or(other),
            }
        }
        Self {
            model: self.model.or_else(|| own.model.clone()),
            context_window: self.context_window.or(own.context_window),
            max_requests: least(self.max_requests, own.max_requests),
            max_tokens: least(self.max_tokens, own.max_tokens),
            max_cost: least(self.max_cost, own.max_cost),
            prices: own.prices.clone().or(self.prices),
        }
    }
}

/// Reads the section. `None` if something in it cannot be read: a limit that is not understood is not left out.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<ChatConfig> {
    let hint = "write `{ \"model\": \"anthropic/NAME\" }`";
    let settings: ChatConfig = scope.sound_section(member, hint, |_| {})?;
    let Value::Object(object) = &member.node.value else { return None };
    let is_lost = |key: &str, is_read: bool| object.get(key).is_some() && !is_read;
    let lost = is_lost("maxRequests", settings.max_requests.is_some())
        || is_lost("maxTokens", settings.max_tokens.is_some())
        || is_lost("maxCost", settings.max_cost.is_some())
        || is_lost("prices", settings.prices.is_some());
    (!lost).then_some(settings)
}
