//! The `policy` key, and what servers say of who may call what.

use toolgate_policy::{
    Claims, Findings, FlowMode, Label, LabelSet, Mode, NewTools, PolicySettings, RuleOrigin,
    RuleTarget, ServerPolicy, ToolPolicySettings, Trust,
};

use super::report::Path;
use super::scope::Scope;
use super::{Context, rule};
use crate::choice::Choice;
use crate::document::{Member, Value};
use crate::keys::POLICY;
use crate::{ServerSettings, Severity};

/// What a policy builds on where there is none: whoever writes one wants to be asked, also where
/// they do not say so.
pub(super) fn base() -> PolicySettings {
    PolicySettings::of_mode(Mode::Ask)
}

/// Reads a policy that builds on another: its rules and labels come after those that are there, and
/// what else it says takes their place. A mistake in it never lets more through: what is not
/// understood denies, asks more often or holds back, and is an error.
pub(super) fn read(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
    mut inherited: PolicySettings,
) -> PolicySettings {
    let object = match &member.node.value {
        Value::String(word) if let Some(mode) = Mode::named(word) => {
            return PolicySettings { mode, ..inherited };
        }
        Value::Object(object) => object,
        _ => {
            let predicate = format!("must be {} or an object; every call is denied", Mode::names());
            let hint = "to be asked before a tool changes something, write `\"policy\": \"ask\"`";
            let offset = member.node.offset;
            context.report.add(Severity::Error, path, offset, &predicate, Some(hint.into()));
            let denial = rule::denial(context, path, &member.node, RuleTarget::default());
            inherited.rules.push(denial);
            return PolicySettings { mode: Mode::Deny, ..inherited };
        }
    };
    let mut scope = Scope::new(object, path, context);
    scope.refuse_replaced(object, path);
    scope.refuse_unknown(POLICY);
    // A misspelt `rules` must not be a policy without rules, nor one of two a policy without the other.
    let is_misspelt = scope.first_error.is_some();
    inherited.rules.extend(rule::read_all(&mut scope));
    if is_misspelt {
        inherited.rules.push(rule::denial(
            scope.context,
            path,
            &member.node,
            RuleTarget::default(),
        ));
    }
    inherited.labels.extend(labels(&mut scope));
    PolicySettings {
        mode: closed(&mut scope, "default", inherited.mode, Mode::Deny),
        claims: closed(&mut scope, "claims", inherited.claims, Claims::Trusted),
        flow: closed(&mut scope, "flow", inherited.flow, FlowMode::Labels),
        findings: closed(&mut scope, "findings", inherited.findings, Findings::Hold),
        new_tools: closed(&mut scope, "newTools", inherited.new_tools, NewTools::Hold),
        ..inherited
    }
}

/// What a server's entry says, if anything.
pub(super) fn of_server(
    context: &Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
    settings: &ServerSettings,
) -> Option<ServerPolicy> {
    let tools = settings.tools.iter().map(|(name, tool)| {
        let settings = ToolPolicySettings { approval: tool.approval, labels: tool.labels };
        (name.as_str().into(), settings)
    });
    let said = ServerPolicy {
        trust: settings.trust,
        labels: settings.labels,
        tools: tools.filter(|(_, tool)| *tool != ToolPolicySettings::default()).collect(),
        origin: None,
    };
    let is_silent = said.trust == Trust::Unknown && said.labels.is_empty() && said.tools.is_empty();
    let origin = || origin(context, path, member.key_offset);
    (!is_silent).then(|| ServerPolicy { origin: Some(origin()), ..said })
}

/// Where something is written.
pub(super) fn origin(context: &Context<'_>, path: &Path<'_>, offset: usize) -> RuleOrigin {
    let place = Some(context.report.place(offset).into());
    RuleOrigin::Configured { path: path.to_string().into(), place }
}

/// A choice with what holds where it is missing, and what where it is not understood.
fn closed<C: Choice>(scope: &mut Scope<'_, '_>, key: &str, missing: C, wrong: C) -> C {
    match scope.object.get(key) {
        None => missing,
        Some(_) => scope.choice(key, Severity::Error).unwrap_or(wrong),
    }
}

/// Labels by pattern. A tool whose labels cannot be read has them all.
fn labels(scope: &mut Scope<'_, '_>) -> Vec<(RuleTarget, LabelSet)> {
    let Some(member) = scope.object.get("labels") else { return Vec::new() };
    let all: LabelSet = Label::ALL.into_iter().collect();
    let hint = "write `\"labels\": { \"crm_*\": [\"private\"] }`";
    let Some(object) = scope.members(member, hint) else {
        return vec![(RuleTarget::default(), all)];
    };
    let path = Path::Key(scope.path, &member.key);
    let mut labels = Vec::with_capacity(object.members.len());
    for member in &object.members {
        let found = scope.within(object, &path, |inner| inner.choices::<Label>(&member.key));
        let found = found.map_or(all, |found| found.into_iter().collect());
        match RuleTarget::read(None, Some(&member.key)) {
            Ok(target) => labels.push((target, found)),
            Err(error) => {
                let path = Path::Key(&path, &member.key);
                let offset = member.key_offset;
                scope.complain(Severity::Error, &path, offset, &error.to_string(), None);
                labels.push((RuleTarget::default(), found));
            }
        }
    }
    labels
}
