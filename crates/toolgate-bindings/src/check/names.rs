//! Names that a script uses and does not declare, in either language.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Language,
    finding::FindingCollector,
    lookup::{ResolvedName, ToolTable},
    wording::{cut, nearest, quoted_list},
};

/// One misspelt name is reported so often, not for each of its uses.
const MAX_REPORTED_USES: usize = 3;
/// How many uses of a name are kept.
const MAX_USES: usize = 100;

/// All names that a script does not declare.
#[derive(Default)]
pub(super) struct UndeclaredNames {
    pub(super) free: BTreeMap<String, UndeclaredName>,
    /// Properties of the object of all tools that are called, with where.
    pub(super) members: BTreeMap<String, Vec<usize>>,
    /// Names that may be tools, and are no mistake if they are not: `globalThis.name(…)`.
    pub(super) mentions: BTreeSet<String>,
    /// Whether names may come into being in ways that cannot be seen.
    pub(super) is_dynamic: bool,
}

/// A name and what is done with it.
pub(super) struct UndeclaredName {
    uses: Vec<NameUse>,
    /// Given by the engine.
    is_global: bool,
    /// Asked for with `typeof`, or assigned to: the script knows what it does.
    pub(super) is_intentional: bool,
}

struct NameUse {
    offset: usize,
    role: NameRole,
}

/// What is done with a name.
pub(super) enum NameRole {
    Called,
    /// A property of it is called: `name.property(…)`.
    MethodCalled(String),
    Read,
}

/// What to say about a name that is known from elsewhere.
#[derive(Clone, Copy)]
pub(super) struct Advice {
    pub(super) message: &'static str,
    pub(super) hint: &'static str,
    /// Whether an engine has it only to say that it is not there.
    pub(super) is_stub: bool,
    /// Whether it is there once it is imported.
    pub(super) is_import: bool,
}

/// What a language knows about names.
pub(super) struct NameContext<'k> {
    pub(super) language: Language,
    pub(super) advice: fn(&str, &NameRole) -> Option<Advice>,
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
    /// The names that somebody has to be asked for.
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

    /// Reports the names that turned out to be nothing.
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
        let advice = (knowledge.advice)(text, &one.role);
        // `from module import *` may have brought it.
        if let Some(advice) = advice.filter(|advice| !(advice.is_import && self.is_dynamic)) {
            report.error(one.offset, advice.message, advice.hint.to_owned());
            return;
        }
        if self.is_dynamic {
            return;
        }
        let own = nearest(text, knowledge.own.iter().copied());
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
                let hint = meant.map_or_else(|| knowledge.declare().to_owned(), did_you_mean);
                report.error(one.offset, format!("`{}` is not defined", cut(text)), hint);
            }
        }
    }
}

impl NameContext<'_> {
    /// Which names are like the one that is not there.
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

/// A variable that is assigned from the tool of its own name, which it hides.
pub(super) struct HidingVariable {
    pub(super) name: String,
    /// Where the variable is written.
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

fn no_tool(name: &str) -> String {
    format!("there is no tool `{}`", cut(name))
}

/// The tools that `object.method(…)` may have been meant to be.
fn possible_tools(object: &str, method: &str) -> [String; 2] {
    [format!("{object}_{method}"), method.to_owned()]
}
