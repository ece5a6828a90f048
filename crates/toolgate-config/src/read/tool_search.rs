//! The `toolSearch` key.

use super::report::Path;
use super::scope::Scope;
use super::{Context, embeddings, subagent};
use crate::document::{Member, Value};
use crate::keys::TOOL_SEARCH;
use crate::{Severity, ToolSearch, ToolSearchMode};

/// Reads the settings; what is not said or wrong is as in `defaults`, the latter with a warning.
pub(super) fn read(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
    defaults: ToolSearch,
) -> ToolSearch {
    let Value::Object(object) = &member.node.value else {
        let kind = member.node.value.kind();
        let predicate = format!("must be an object, but is {kind}; it is ignored");
        let hint =
            Some("to always defer tools, write `\"toolSearch\": { \"enabled\": true }`".into());
        let offset = member.node.offset;
        context.report.add(Severity::Warning, path, offset, &predicate, hint);
        return defaults;
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    let warning = Severity::Warning;
    let strategy = scope.choice("strategy", warning).unwrap_or(defaults.strategy);
    let settings = ToolSearch {
        enabled: mode(&mut scope).unwrap_or(defaults.enabled),
        deferred: scope.choice("deferred", warning).unwrap_or(defaults.deferred),
        context_window: scope
            .integer("contextWindow", 1_000, 100_000_000)
            .unwrap_or(defaults.context_window),
        threshold_percent: scope
            .number("thresholdPercent", 0.0, 100.0)
            .unwrap_or(defaults.threshold_percent),
        token_threshold: scope
            .integer("tokenThreshold", 0, 1_000_000_000)
            .or(defaults.token_threshold),
        tool_threshold: scope.integer("toolThreshold", 0, 1_000_000).or(defaults.tool_threshold),
        max_results: scope
            .integer("maxResults", 1, 100)
            .and_then(|results| usize::try_from(results).ok())
            .unwrap_or(defaults.max_results),
        keep_loaded_tools: scope
            .boolean("keepLoadedTools", warning)
            .unwrap_or(defaults.keep_loaded_tools),
        instructions_budget: scope
            .integer("instructionsBudget", 0, 100_000)
            .and_then(|tokens| usize::try_from(tokens).ok())
            .unwrap_or(defaults.instructions_budget),
        strategy,
        // It holds something back, so that what is not understood leaves it off.
        usage_memory: match object.get("usageMemory") {
            Some(_) => scope.boolean("usageMemory", Severity::Error).unwrap_or(false),
            None => defaults.usage_memory,
        },
        token_counter: scope.choice("tokenCounter", warning).unwrap_or(defaults.token_counter),
        subagent: subagent::read(&mut scope, strategy, defaults.subagent),
        embeddings: match object.get("embeddings") {
            Some(_) => embeddings::read(&mut scope),
            None => defaults.embeddings,
        },
    };
    scope.report_unknown(&[TOOL_SEARCH], TOOL_SEARCH);
    settings
}

fn mode(scope: &mut Scope<'_, '_>) -> Option<ToolSearchMode> {
    let member = scope.object.get("enabled")?;
    match &member.node.value {
        Value::Boolean(true) => Some(ToolSearchMode::On),
        Value::Boolean(false) => Some(ToolSearchMode::Off),
        Value::String(word) if word == "auto" => Some(ToolSearchMode::Auto),
        Value::String(word) if word == "code" => Some(ToolSearchMode::Code),
        _ => {
            let path = Path::Key(scope.path, &member.key);
            let expected = "\"auto\", true, false or \"code\"";
            scope.unfit(Severity::Warning, &path, &member.node, expected, None);
            None
        }
    }
}
