//! What another policy would have decided about the last calls.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
};

use serde::Serialize;
use serde_json::Value;
use toolgate_catalog::{Fingerprint, Tool};
use toolgate_policy::{
    CallPath, CallerFacts, Decision, Evidence, Flow, Ground, Policy, PolicySettings, Verdict,
};
use toolgate_store::{AuditError, AuditLog, AuditRecord, Journal, NumberedRecord, RunCall};

use crate::{host::ToolHost, tool_filter::HiddenTool};

/// The last calls under the policy that holds and under another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyWhatIf {
    /// How many calls were judged.
    pub calls: usize,
    /// How many of them have arguments that nobody has stored. They were judged without arguments.
    pub without_arguments: usize,
    /// How many calls were left out, because their tools are not known now.
    pub unknown_tools: usize,
    /// The calls about which the policies disagree, those with the same decisions together, the newest first.
    pub changes: Vec<ChangedDecision>,
}

/// Calls of a tool about which two policies disagree in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedDecision {
    /// The tool.
    pub tool: String,
    /// What the policy that holds decides.
    pub before: Verdict,
    /// What the other one decides.
    pub after: Verdict,
    /// Why the policy that holds decides so.
    pub rule_before: String,
    /// Why the other one decides so.
    pub rule_after: String,
    /// The calls, the newest first; of many not all.
    pub examples: Vec<JudgedCall>,
    /// How many calls there are.
    pub count: usize,
}

/// A call of the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedCall {
    /// When it was recorded, in milliseconds since 1970.
    pub time: u64,
    /// Who made it.
    pub caller: String,
    /// The run that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The arguments, if they are stored. They may contain secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// How many calls are judged.
pub const WHAT_IF_CALLS: usize = 1_000;
/// How many records are looked at for them.
const LOOKED_AT: usize = 20_000;
/// How many calls of a change are kept.
const EXAMPLES: usize = 20;
/// How many runs are read for arguments.
const READ_RUNS: usize = 200;

impl ToolHost {
    /// What other settings would have decided about the last [`WHAT_IF_CALLS`] calls in the log. Reads the log and the
    /// journal; changes nothing. Rules about callers see only what the log says of a caller: the name that its client
    /// gives itself. Grants do not count.
    pub fn what_if(
        &self,
        settings: &PolicySettings,
        log: &dyn AuditLog,
    ) -> Result<PolicyWhatIf, AuditError> {
        let records = last_calls(log)?;
        let (now, then) = (self.broker().policy(), Policy::new(settings.clone()));
        let mut runs =
            StoredRuns { journal: self.journal().map(|it| &**it), known: HashMap::new() };
        let hidden = self.hidden_tools();
        let catalog = self.catalog().read();
        let mut found = PolicyWhatIf::default();
        let mut changes: BTreeMap<_, ChangedDecision> = BTreeMap::new();
        for NumberedRecord { time, record, .. } in records {
            let known = catalog.resolve(&record.tool).cloned();
            let of_hidden =
                || hidden.iter().find(|it| it.name == record.tool).map(HiddenTool::tool);
            let Some(tool) = known.or_else(of_hidden) else {
                found.unknown_tools += 1;
                continue;
            };
            found.calls += 1;
            let stored = runs.call(&record);
            let flow = stored.and_then(|call| call.flow.as_deref());
            let flow: Vec<Evidence> =
                flow.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
            let of_run = || serde_json::from_str(&stored?.arguments).ok();
            let arguments: Option<Value> = record.arguments.clone().or_else(of_run);
            found.without_arguments += usize::from(arguments.is_none());
            let call = JudgedRecord { tool: &tool, record: &record, flow: Flow { evidence: flow } };
            let (before, after) =
                (call.decide(&now, arguments.as_ref()), call.decide(&then, arguments.as_ref()));
            if before.verdict == after.verdict {
                continue;
            }
            let (rule_before, rule_after) = (ground(&before), ground(&after));
            let key = (record.tool.clone(), rule_before.clone(), rule_after.clone());
            let change = changes.entry(key).or_insert_with(|| ChangedDecision {
                tool: record.tool.clone(),
                before: before.verdict,
                after: after.verdict,
                rule_before,
                rule_after,
                examples: Vec::new(),
                count: 0,
            });
            change.count += 1;
            if change.examples.len() < EXAMPLES {
                let AuditRecord { caller, run, .. } = record;
                change.examples.push(JudgedCall { time, caller, run, arguments });
            }
        }
        found.changes = changes.into_values().collect();
        let newest = |change: &ChangedDecision| change.examples.first().map(|call| call.time);
        found.changes.sort_by_key(|change| std::cmp::Reverse(newest(change)));
        Ok(found)
    }
}

/// The last calls of tools, the newest first.
fn last_calls(log: &dyn AuditLog) -> Result<Vec<NumberedRecord>, AuditError> {
    let (mut calls, mut looked_at) = (Vec::new(), 0);
    log.read_back(None, &mut |seen| {
        looked_at += 1;
        if seen.record.kind == "call" && !seen.record.tool.is_empty() {
            calls.push(seen);
        }
        if calls.len() < WHAT_IF_CALLS && looked_at < LOOKED_AT {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(calls)
}

/// A call of the past, as a policy sees it.
struct JudgedRecord<'r> {
    tool: &'r Tool,
    record: &'r AuditRecord,
    flow: Flow,
}

impl JudgedRecord<'_> {
    fn decide(&self, policy: &Policy, arguments: Option<&Value>) -> Decision {
        let from = if self.record.run.is_some() { CallPath::Script } else { CallPath::Direct };
        let none = Value::Object(serde_json::Map::new());
        let arguments = arguments.unwrap_or(&none);
        policy.of(self.tool).decide_for(&caller(&self.record.caller), from, arguments, &self.flow)
    }
}

/// What the name of a caller in the log says: `"client" (identity)`, or an identity alone.
fn caller(name: &str) -> CallerFacts {
    let client = name.strip_prefix('"').and_then(|rest| rest.rsplit_once("\" ("));
    CallerFacts { client: client.map(|(client, _)| client.into()), ..CallerFacts::default() }
}

fn ground(decision: &Decision) -> String {
    match &decision.ground {
        Ground::Rule(rule) => {
            let reason = rule.reason.as_ref().map(|reason| format!(": {reason}"));
            format!("{}{}", rule.origin, reason.unwrap_or_default())
        }
        Ground::Mode(mode) => format!("default {mode}"),
    }
}

/// The calls of runs, which have their arguments.
struct StoredRuns<'j> {
    journal: Option<&'j dyn Journal>,
    known: HashMap<String, Vec<(Fingerprint, RunCall)>>,
}

impl StoredRuns<'_> {
    /// The call of a run that a record is about.
    fn call(&mut self, record: &AuditRecord) -> Option<&RunCall> {
        let run = record.run.as_deref()?;
        if !self.known.contains_key(run) {
            if self.known.len() >= READ_RUNS {
                return None;
            }
            let detail = self.journal.and_then(|journal| journal.run(run).ok()).flatten();
            let calls = detail.map(|detail| detail.calls).unwrap_or_default();
            let with_hash = |call: RunCall| {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
                (Fingerprint::of(&arguments), call)
            };
            self.known.insert(run.to_owned(), calls.into_iter().map(with_hash).collect());
        }
        let calls = self.known.get(run)?;
        let is_it = |(hash, call): &&(Fingerprint, RunCall)| {
            call.name == record.tool && hash.to_string() == record.arguments_hash
        };
        calls.iter().find(is_it).map(|(_, call)| call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_of_a_caller_is_read_from_its_name() {
        assert_eq!(caller("local").client, None);
        assert_eq!(
            caller("\"claude \"x\" (1)\" (local)").client.as_deref(),
            Some("claude \"x\" (1)")
        );
    }
}
