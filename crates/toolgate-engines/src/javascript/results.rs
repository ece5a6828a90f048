//! Results that a script took for something else.

use rquickjs::{Ctx, Persistent, Value};

use super::{host::Host, prelude};
use crate::{
    engine::{EngineScript, ScriptFailure},
    results::{mentions, tools_behind},
};

/// The number of tools whose last results are remembered.
const MAX_TOOLS: usize = 8;
/// A result with more bytes is described at once instead of being kept.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// The number of tools that a hint mentions.
const MAX_SHOWN: usize = 3;

/// The last result of each tool, the latest last.
#[derive(Default)]
pub(super) struct LastResults(Vec<(String, LastResult)>);

enum LastResult {
    Kept(Persistent<Value<'static>>),
    Described(String),
}

impl LastResults {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Remembers the result of a call, whose JSON has this many bytes. It is only for hints, so a result
/// that cannot be described is not remembered.
pub(super) fn remember<'js>(
    ctx: &Ctx<'js>,
    host: &Host,
    tool: String,
    value: &Value<'js>,
    bytes: usize,
) {
    let result = if bytes <= MAX_KEPT_BYTES {
        LastResult::Kept(Persistent::save(ctx, value.clone()))
    } else {
        let described = prelude::shape(ctx, host).and_then(|shape| shape.call((value.clone(),)));
        let Ok(described) = described else {
            drop(ctx.catch());
            return;
        };
        LastResult::Described(described)
    };
    let results = &mut host.results.borrow_mut().0;
    results.retain(|(known, _)| *known != tool);
    if results.len() >= MAX_TOOLS {
        results.remove(0);
    }
    results.push((tool, result));
}

/// A hint for a failure that may come from a wrong idea of a result: what the results look like
/// that the failed line depends on.
pub(super) fn hint(
    ctx: &Ctx<'_>,
    host: &Host,
    script: &EngineScript<'_>,
    failure: &ScriptFailure,
) -> Option<String> {
    if !is_about_a_value(&failure.message) {
        return None;
    }
    let line = failure.stack.first()?.position.line;
    let tools = tools_behind(script, usize::try_from(line).ok()?.checked_sub(1)?);
    let results = std::mem::take(&mut host.results.borrow_mut().0);
    let mut told = Vec::new();
    for (tool, result) in results.into_iter().rev() {
        if told.len() < MAX_SHOWN && tools.contains(&tool) {
            let shape = match result {
                LastResult::Described(shape) => shape,
                LastResult::Kept(value) => {
                    let value = value.restore(ctx).ok()?;
                    prelude::shape(ctx, host).and_then(|shape| shape.call((value,))).ok()?
                }
            };
            told.push(format!("the last result of `{tool}` is {shape}"));
        }
    }
    if told.is_empty() {
        return None;
    }
    let text = script.source.split('\n').nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    if ["content", "structuredContent", "isError"].iter().any(|name| mentions(text, name)) {
        let envelope = "a call returns the data itself, without an MCP result around it";
        told.insert(0, envelope.to_owned());
    }
    Some(told.join("; "))
}

/// Whether an error may come from a value that is not what the script expects.
fn is_about_a_value(message: &str) -> bool {
    let type_error = message.strip_prefix("TypeError: ").unwrap_or_default().to_lowercase();
    type_error.starts_with("cannot read property")
        || type_error.contains("not a function")
        || type_error.contains("not iterable")
        || type_error.starts_with("cannot convert")
        || type_error.starts_with("cannot set property")
        || message.starts_with("SyntaxError: ")
}
