//! Completes the names of tools and of their arguments in a script that somebody writes.
//!
//! The text is read as far as a completion needs it: brackets, texts and comments. It is not parsed, because it is
//! incomplete most of the time, and only a worker parses scripts.

use serde::Serialize;
use serde_json::Value;
use toolgate_catalog::Tool;
use toolgate_policy::CallPath;
use toolgate_sandbox::Language;

use crate::session::ToolSession;

/// What can stand at a place of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeCompletions {
    /// What was typed of the word. A completion replaces it.
    pub typed: String,
    /// The completions, best first.
    pub items: Vec<CodeCompletion>,
}

/// A word that can stand at a place of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeCompletion {
    /// What is inserted.
    pub insert: String,
    /// The name of the tool or of the argument.
    pub name: String,
    /// What it is, in a line. It may be text of a server.
    pub about: String,
}

/// How much of the text before the place is read.
const READ_CHARACTERS: usize = 8_000;
/// How many completions there are at most.
const MOST: usize = 20;

impl ToolSession {
    /// What can stand after this text: tools that scripts of the session can call, or arguments of a tool.
    pub fn completions(&self, before: &str, language: Language) -> CodeCompletions {
        let skipped = before.chars().count().saturating_sub(READ_CHARACTERS);
        let start = before.char_indices().nth(skipped).map_or(before.len(), |(at, _)| at);
        let place = CursorPlace::of(&before[start..], language);
        let typed = place.typed.to_owned();
        let catalog = self.host().catalog().read();
        let items = match place.expects {
            Expected::Nothing => Vec::new(),
            Expected::Argument(tool) => {
                let known = catalog.resolve(tool).filter(|tool| self.offers(tool));
                known.map_or_else(Vec::new, |tool| arguments(tool, &typed, language))
            }
            Expected::Name if typed.is_empty() => Vec::new(),
            Expected::Name | Expected::Tool => {
                let can_call =
                    |tool: &&Tool| self.offers(tool) && self.opens(tool, CallPath::Script);
                tools(catalog.tools().filter(can_call), &typed)
            }
        };
        CodeCompletions { typed, items }
    }
}

fn tools<'t>(known: impl Iterator<Item = &'t Tool>, typed: &str) -> Vec<CodeCompletion> {
    let typed = typed.to_ascii_lowercase();
    let mut found: Vec<(bool, &Tool)> = known
        .filter_map(|tool| {
            let name = tool.name.as_str().to_ascii_lowercase();
            let place = name.find(&typed).filter(|_| name != typed)?;
            Some((place > 0, tool))
        })
        .collect();
    found.sort_by(|(one, left), (other, right)| {
        one.cmp(other).then_with(|| left.name.as_str().cmp(right.name.as_str()))
    });
    let shown = found.into_iter().take(MOST).map(|(_, tool)| CodeCompletion {
        insert: tool.name.to_string(),
        name: tool.name.to_string(),
        about: tool.definition.description().lines().next().unwrap_or_default().to_owned(),
    });
    shown.collect()
}

fn arguments(tool: &Tool, typed: &str, language: Language) -> Vec<CodeCompletion> {
    let schema = tool.definition.input_schema();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let typed = typed.to_ascii_lowercase();
    let fits = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with(&typed)
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut found: Vec<(bool, CodeCompletion)> = properties
        .filter(|(name, _)| fits(name))
        .filter_map(|(name, property)| {
            let insert = match (language, is_identifier(name)) {
                (Language::TypeScript, true) => format!("{name}: "),
                (Language::TypeScript, false) => format!("{}: ", Value::from(name.as_str())),
                (Language::Python, true) => format!("{name}="),
                (Language::Python, false) => return None,
            };
            let is_required = required.contains(&name.as_str());
            let kind = property["type"].as_str().unwrap_or("any");
            let needed = if is_required { ", required" } else { "" };
            let text = property["description"].as_str().unwrap_or_default();
            let text = text.lines().next().unwrap_or_default();
            let colon = if text.is_empty() { "" } else { ": " };
            let about = format!("{kind}{needed}{colon}{text}");
            Some((!is_required, CodeCompletion { insert, name: name.clone(), about }))
        })
        .collect();
    found.sort_by_key(|(is_optional, _)| *is_optional);
    found.into_iter().take(MOST).map(|(_, completion)| completion).collect()
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(is_word)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '$'
}

/// A place in a script.
#[derive(Debug, PartialEq, Eq)]
struct CursorPlace<'t> {
    /// The word that ends there.
    typed: &'t str,
    expects: Expected<'t>,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected<'t> {
    /// A text, a comment, or a part of another value.
    Nothing,
    /// A name of an argument of this tool.
    Argument(&'t str),
    /// Any name.
    Name,
    /// The name of a tool, after `tools.`.
    Tool,
}

impl<'t> CursorPlace<'t> {
    fn of(before: &'t str, language: Language) -> Self {
        let rest = before.trim_end_matches(is_word);
        let typed = &before[rest.len()..];
        let nothing = Self { typed, expects: Expected::Nothing };
        if typed.starts_with(|first: char| first.is_ascii_digit()) {
            return nothing;
        }
        let Some(open) = open_brackets(rest, language) else { return nothing };
        let last = rest.trim_end();
        if let Some(object) = last.strip_suffix('.').filter(|_| !last.ends_with("...")) {
            let object = object.trim_end();
            let is_tools = object.strip_suffix("tools").is_some_and(|before| {
                !before.ends_with(is_word) && !before.trim_end().ends_with('.')
            });
            return if is_tools { Self { typed, expects: Expected::Tool } } else { nothing };
        }
        let begins_item = last.ends_with(['(', '{', ',']);
        let call = match (language, &*open) {
            (Language::TypeScript, [.., (call, '('), (_, '{')])
            | (Language::Python, [.., (call, '(')]) => Some(*call),
            _ => None,
        };
        match call.filter(|call| begins_item && !call.is_empty()) {
            Some(tool) => Self { typed, expects: Expected::Argument(tool) },
            None => Self { typed, expects: Expected::Name },
        }
    }
}

/// The brackets that are open at the end of a text, each with the word before it; `None` within a text or a comment.
fn open_brackets(text: &str, language: Language) -> Option<Vec<(&str, char)>> {
    let mut open: Vec<(&str, char)> = Vec::new();
    let mut quote: Option<&str> = None;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut step = character.len_utf8();
        if let Some(end) = quote {
            if character == '\\' {
                step += rest[1..].chars().next().map_or(0, char::len_utf8);
            } else if rest.starts_with(end) {
                (quote, step) = (None, end.len());
            }
            at += step;
            continue;
        }
        let comment = match language {
            Language::TypeScript if rest.starts_with("//") => Some(("\n", 2)),
            Language::TypeScript if rest.starts_with("/*") => Some(("*/", 2)),
            Language::Python if character == '#' => Some(("\n", 1)),
            _ => None,
        };
        match (comment, character) {
            (Some((end, begin)), _) => (quote, step) = (Some(end), begin),
            (None, '"' | '\'' | '`') => {
                let triple = ["\"\"\"", "'''"].into_iter().find(|mark| rest.starts_with(mark));
                let mark = triple.filter(|_| language == Language::Python);
                let mark = mark.unwrap_or(match character {
                    '"' => "\"",
                    '\'' => "'",
                    _ => "`",
                });
                (quote, step) = (Some(mark), mark.len());
            }
            (None, '(' | '{' | '[') => {
                let before = text[..at].trim_end();
                let word = before.len() - before.trim_end_matches(is_word).len();
                open.push((&before[before.len() - word..], character));
            }
            (None, ')' | '}' | ']') => _ = open.pop(),
            _ => {}
        }
        at += step;
    }
    quote.is_none().then_some(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typescript(before: &str) -> CursorPlace<'_> {
        CursorPlace::of(before, Language::TypeScript)
    }

    fn python(before: &str) -> CursorPlace<'_> {
        CursorPlace::of(before, Language::Python)
    }

    #[test]
    fn places_of_a_script_are_told_apart() {
        let argument = |typed, tool| CursorPlace { typed, expects: Expected::Argument(tool) };
        let name = |typed| CursorPlace { typed, expects: Expected::Name };
        let nothing = |typed| CursorPlace { typed, expects: Expected::Nothing };
        assert_eq!(typescript("const a = await crm_li"), name("crm_li"));
        assert_eq!(typescript("await crm_list({ li"), argument("li", "crm_list"));
        assert_eq!(typescript("await crm_list({ a: { b: 1 }, "), argument("", "crm_list"));
        assert_eq!(typescript("await crm_list({ a: cr"), name("cr"));
        assert_eq!(typescript("f({ a: [g(1), \")\", "), name(""));
        assert_eq!(typescript("result.con"), nothing("con"));
        let tool = |typed| CursorPlace { typed, expects: Expected::Tool };
        assert_eq!(typescript("await tools."), tool(""));
        assert_eq!(python("await tools.crm_li"), tool("crm_li"));
        assert_eq!(typescript("await my_tools.crm_li"), nothing("crm_li"));
        assert_eq!(typescript("await my.tools.crm_li"), nothing("crm_li"));
        assert_eq!(typescript("[...crm"), name("crm"));
        assert_eq!(typescript("log(\"crm_li"), nothing("crm_li"));
        assert_eq!(typescript("// crm_li"), nothing("crm_li"));
        assert_eq!(typescript("/* { ( */ crm_li"), name("crm_li"));
        assert_eq!(typescript("x = 12"), nothing("12"));
        assert_eq!(python("await crm_list(limit=1, of"), argument("of", "crm_list"));
        assert_eq!(python("# crm\ncrm_"), name("crm_"));
        assert_eq!(python("'''it's (''' + crm"), name("crm"));
        assert_eq!(python("# crm"), nothing("crm"));
    }

    #[test]
    fn any_text_can_be_read() {
        for text in ["\\", "\"\\", "(((", ")))", "é\"ü\\", "/", "'''", "`${", "#"] {
            let _ = (typescript(text), python(text));
        }
    }
}
