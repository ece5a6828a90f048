//! What is held back until a person approves it: tools, and entries of servers.

use toolgate_host::{HeldReason, HiddenReason, HiddenTool, JudgedEntry, ToolHost};
use toolgate_policy::definitions::{
    ChangeKind, DefinitionFinding, Differences, Lock, ServerEntry, ToolNames, scan, scan_value,
    shown,
};

use crate::failure::Failure;

/// How much of a definition is shown.
const LONGEST_DEFINITION: usize = 20_000;

/// A tool or an entry that is held back.
#[derive(Debug)]
pub(super) enum Held {
    Tool(HiddenTool),
    Entry(ServerEntry, HeldReason),
}

/// Everything that is held back: tools, then entries.
pub(super) fn all(host: &ToolHost, entries: &[JudgedEntry]) -> Vec<Held> {
    let tools = host.hidden_tools().into_iter().filter(is_held).map(Held::Tool);
    let entries = entries
        .iter()
        .filter_map(|judged| Some(Held::Entry(judged.entry.clone(), judged.held.clone()?)));
    tools.chain(entries).collect()
}

/// Whether somebody can approve it.
pub(super) fn is_held(tool: &HiddenTool) -> bool {
    !matches!(tool.why, HiddenReason::Denied)
}

/// The one with this name.
pub(super) fn find<'h>(held: &'h [Held], name: &str) -> Result<&'h Held, Failure> {
    held.iter().find(|held| held.name() == name).ok_or_else(|| {
        Failure::usage(format!("nothing with the name `{name}` is held back"))
            .hint("`toolgate definitions` lists what is")
    })
}

/// The names of all tools, to find instructions about tools of other servers.
pub(super) fn tool_names(host: &ToolHost) -> ToolNames {
    let mut names = ToolNames::default();
    let hidden = host.hidden_tools();
    let catalog = host.catalog().read();
    for server in catalog.servers() {
        let used = catalog.tools_of(server.name.as_str()).iter().map(|tool| &tool.definition);
        let hidden = hidden.iter().filter(|tool| tool.id.server == server.name);
        let all = used.chain(hidden.map(|tool| &tool.definition));
        let all: Vec<_> = all.map(|definition| (**definition).clone()).collect();
        names.replace(&server.name, server.prefix.as_deref(), &all);
    }
    names
}

/// The findings in an entry.
pub(super) fn entry_findings(entry: &ServerEntry, names: &ToolNames) -> Vec<DefinitionFinding> {
    let mut found = scan_value(&entry.value);
    found.extend(names.scan(&entry.server, &entry.value));
    found
}

impl Held {
    /// The exposed name of a tool, or `SERVER/prompts/NAME`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Tool(tool) => tool.name.clone(),
            Self::Entry(entry, _) => entry.to_string(),
        }
    }

    pub(super) fn server(&self) -> &str {
        match self {
            Self::Tool(tool) => tool.id.server.as_str(),
            Self::Entry(entry, _) => entry.server.as_str(),
        }
    }

    /// How it differs from its approved definition.
    pub(super) fn differences(&self) -> Option<&Differences> {
        match self.change()? {
            ChangeKind::Changed(differences) => Some(differences),
            _ => None,
        }
    }

    /// The change, if that is why it is held back.
    pub(super) fn change(&self) -> Option<&ChangeKind> {
        match self {
            Self::Tool(HiddenTool { why: HiddenReason::Held(change), .. }) => Some(&change.kind),
            Self::Entry(_, HeldReason::Changed(change)) => Some(change),
            _ => None,
        }
    }

    /// What is suspicious about it.
    pub(super) fn findings(&self, names: &ToolNames) -> Vec<String> {
        let found = match self {
            Self::Tool(HiddenTool { why: HiddenReason::Suspicious(found), .. })
            | Self::Entry(_, HeldReason::Suspicious(found)) => return found.clone(),
            Self::Tool(tool) => {
                let mut found = scan(&tool.definition);
                found.extend(names.scan(&tool.id.server, &tool.definition.to_value()));
                found
            }
            Self::Entry(entry, _) => entry_findings(entry, names),
        };
        found.iter().map(ToString::to_string).collect()
    }

    /// `changed in 2 places`, `new` or `suspicious`.
    pub(super) fn summary(&self) -> String {
        match self.change() {
            Some(ChangeKind::Changed(differences)) => {
                let count = differences.listed.len() + differences.left_out;
                format!("changed in {count} place{}", if count == 1 { "" } else { "s" })
            }
            Some(_) => "new".to_owned(),
            None => "suspicious".to_owned(),
        }
    }

    /// What a person sees who decides: how it differs, or all of it.
    pub(super) fn shown(&self) -> String {
        self.differences().map_or_else(|| self.definition(), ToString::to_string)
    }

    /// Changes when anything of it does, also what is too long to be shown.
    pub(super) fn digest(&self) -> String {
        let whole = match self {
            Self::Tool(tool) => tool.definition.to_value().to_string(),
            Self::Entry(entry, _) => entry.value.to_string(),
        };
        blake3::hash(format!("{}\n{}\n{whole}", self.name(), self.shown()).as_bytes())
            .to_hex()
            .to_string()
    }

    /// The definition as it is now.
    pub(super) fn definition(&self) -> String {
        let text = match self {
            Self::Tool(tool) => tool.definition.to_value().to_string(),
            Self::Entry(entry, _) => entry.value.to_string(),
        };
        shown(&text, LONGEST_DEFINITION)
    }

    /// Approves it; after a person has seen its findings, in spite of them.
    pub(super) fn approve(&self, lock: &mut Lock, has_findings: bool) {
        match self {
            Self::Tool(tool) if has_findings => lock.review(&tool.id.server, &tool.definition),
            Self::Tool(tool) => lock.approve(&tool.id.server, &tool.definition),
            Self::Entry(entry, _) if has_findings => lock.review_entry(entry),
            Self::Entry(entry, _) => lock.approve_entry(entry),
        }
    }

    /// What the audit log says about an approval.
    pub(super) fn record(&self) -> String {
        match self {
            Self::Tool(tool) => format!("definition {} approved", tool.definition.fingerprint()),
            Self::Entry(entry, _) => format!("definition of {entry} approved"),
        }
    }
}
