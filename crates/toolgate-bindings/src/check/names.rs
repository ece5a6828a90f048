//! Names that a script uses but does not declare, in either language.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Language,
    finding::FindingCollector,
    lookup::{ResolvedName, ToolTable},
    wording::{cut, nearest, quoted_list},
};

/// The number of uses of one misspelt name that are reported.
const MAX_REPORTED_USES: usize = 3;
/// The number of uses of a name that are stored.
const MAX_USES: usize = 100;

/// All names that a script does not declare.
#[derive(Default)]
pub(super) struct UndeclaredNames {
    pub(super) free: BTreeMap<String, UndeclaredName>,
    /// The properties of `tools` that are called, with their positions.
    pub(super) members: BTreeMap<String, Vec<usize>>,
    /// Names that may be tools, without a finding if they are not: `globalThis.name(…)`.
    pub(super) mentions: BTreeSet<String>,
    /// Whether the script may create names dynamically.
    pub(super) is_dynamic: bool,
}

/// A name and its uses.
pub(super) struct UndeclaredName {
    uses: Vec<NameUse>,
    /// Whether the engine provides the name.
    is_global: bool,
    /// Whether the script tests the name with `typeof` or assigns to it, and so handles its
    /// absence.
    pub(super) is_intentional: bool,
}

struct NameUse {
    offset: usize,
    role: NameRole,
}

/// How a name is used.
pub(super) enum NameRole {
    Called,
    /// A property of it is called: `name.property(…)`.
    MethodCalled(String),
    Read,
}

/// Advice about a name that is known from other environments.
#[derive(Clone, Copy)]
pub(super) struct Advice {
    pub(super) message: &'static str,
    pub(super) hint: &'static str,
    /// Whether the engine has the name only to report that it is not supported.
    pub(super) is_stub: bool,
    /// Whether the name exists after an import.
    pub(super) is_import: bool,
}

/// The names that a language and a script know.
pub(super) struct NameContext<'k> {
    pub(super) language: Language,
    pub(super) advice: fn(&str, &NameRole) -> Option<Advice>,
    /// The modules that a script only has to import.
    pub(super) modules: &'k [&'k str],
    /// The names that the script declares.
    pub(super) own: Vec<&'k str>,
}

impl UndeclaredName {
    pub(super) fn new(is_global: bool) -> Self {
        Self { uses: Vec::new(), is_global, is_intentional: false }
    }

    pub(super) fn add(&mut self, offset: usize, role: NameRole) {
        if self.uses.len() < MAX_USES {
            self.uses.push(NameUse { offset, role });
        }
    }

    pub(super) fn is_used(&self) -> bool {
        !self.uses.is_empty()
    }
}

impl UndeclaredNames {
    /// The names that have to be looked up.
    pub(super) fn names_to_look_up(&self, knowledge: &NameContext<'_>) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.members.keys().cloned().collect();
        names.extend(self.mentions.iter().cloned());
        for (text, name) in &self.free {
            let advice = (knowledge.advice)(text, &NameRole::Read);
            if name.is_global && !advice.is_some_and(|advice| advice.is_stub) {
                continue;
            }
            names.insert(text.clone());
            for one in &name.uses {
                if let NameRole::MethodCalled(method) = &one.role {
                    names.extend(possible_tools(text, method));
                }
            }
        }
        names
    }

    /// The names that may be tools.
    pub(super) fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.free.keys().chain(self.members.keys()).chain(&self.mentions).map(String::as_str)
    }

    /// Reports the names that do not exist.
    pub(super) fn report(
        &self,
        knowledge: &NameContext<'_>,
        tools: &ToolTable,
        report: &mut FindingCollector<'_>,
    ) {
        for (text, offsets) in &self.members {
            if let Some(ResolvedName::Unknown { nearest }) = tools.get(text) {
                for offset in offsets.iter().take(MAX_REPORTED_USES) {
                    report.error(*offset, no_tool(text), knowledge.like(nearest));
                }
            }
        }
        for (text, name) in &self.free {
            let Some(ResolvedName::Unknown { nearest }) = tools.get(text) else { continue };
            if name.is_intentional {
                continue;
            }
            if report.is_full() {
                return;
            }
            for one in name.uses.iter().take(MAX_REPORTED_USES) {
                self.report_use(text, one, nearest, knowledge, tools, report);
            }
        }
    }

    fn report_use(
        &self,
        text: &str,
        one: &NameUse,
        like_it: &[String],
        knowledge: &NameContext<'_>,
        tools: &ToolTable,
        report: &mut FindingCollector<'_>,
    ) {
        if let NameRole::MethodCalled(method) = &one.role {
            let meant = possible_tools(text, method);
            if let Some(tool) = meant.iter().find(|name| tools.tool(name).is_some()) {
                let message = format!("there is no `{}`", cut(text));
                let hint = format!("the tool is a function: write `{}`", knowledge.call(tool));
                report.error(one.offset, message, hint);
                return;
            }
        }
        if knowledge.modules.contains(&text) && !self.is_dynamic && !is_known_import(text) {
            let message = format!("`{}` is not imported", cut(text));
            report.error(one.offset, message, format!("write `import {}`", cut(text)));
            return;
        }
        let advice = (knowledge.advice)(text, &one.role);
        // `from module import *` may define it.
        if let Some(advice) = advice.filter(|advice| !(advice.is_import && self.is_dynamic)) {
            report.error(one.offset, advice.message, advice.hint.to_owned());
            return;
        }
        if self.is_dynamic {
            return;
        }
        let own = nearest(text, knowledge.own.iter().copied().filter(|own| *own != text));
        let is_elsewhere = knowledge.own.contains(&text);
        let did_you_mean = |name: &str| format!("did you mean `{}`?", cut(name));
        match &one.role {
            NameRole::Called => {
                let hint = match own {
                    Some(own) if like_it.is_empty() => did_you_mean(own),
                    _ => knowledge.like(like_it),
                };
                report.error(one.offset, no_tool(text), hint);
            }
            NameRole::MethodCalled(_) | NameRole::Read => {
                let meant = own.or_else(|| nearest(text, like_it.iter().map(String::as_str)));
                let hint = match meant {
                    _ if is_elsewhere => {
                        "another scope declares it, which this place does not see".to_owned()
                    }
                    Some(meant) => did_you_mean(meant),
                    None => knowledge.declare().to_owned(),
                };
                report.error(one.offset, format!("`{}` is not defined", cut(text)), hint);
            }
        }
    }
}

impl NameContext<'_> {
    /// The hint with the names that are similar to a missing one.
    fn like(&self, nearest: &[String]) -> String {
        match nearest {
            [] => match self.language {
                Language::TypeScript => "`await search_tools({ query })` finds tools".to_owned(),
                Language::Python => "`await search_tools(query)` finds tools".to_owned(),
            },
            [one] => format!("did you mean `{}`?", cut(one)),
            several => {
                let shown = &several[..several.len().min(5)];
                format!("the nearest are {}", quoted_list(shown, "and"))
            }
        }
    }

    fn call(&self, tool: &str) -> String {
        match self.language {
            Language::TypeScript => format!("{tool}({{ … }})"),
            Language::Python => format!("{tool}(…)"),
        }
    }

    fn declare(&self) -> &'static str {
        match self.language {
            Language::TypeScript => "declare it with `const`",
            Language::Python => "assign it first",
        }
    }
}

/// A variable that hides the tool of the same name, from which it is assigned.
pub(super) struct HidingVariable {
    pub(super) name: String,
    /// The position of the variable.
    pub(super) offset: usize,
}

/// Reports the variables that hide a tool.
pub(super) fn report_hiding_variables(
    hidings: &[HidingVariable],
    tools: &ToolTable,
    report: &mut FindingCollector<'_>,
) {
    for hiding in hidings.iter().filter(|hiding| tools.tool(&hiding.name).is_some()) {
        let message = format!("the variable `{}` hides the tool of that name", cut(&hiding.name));
        report.error(hiding.offset, message, "give it another name".to_owned());
    }
}

/// Whether there is better advice than to import the module of that name.
fn is_known_import(name: &str) -> bool {
    matches!(name, "datetime" | "asyncio" | "json" | "re" | "math")
}

fn no_tool(name: &str) -> String {
    format!("there is no tool `{}`", cut(name))
}

/// The tools that `object.method(…)` may refer to.
fn possible_tools(object: &str, method: &str) -> [String; 2] {
    [format!("{object}_{method}"), method.to_owned()]
}
