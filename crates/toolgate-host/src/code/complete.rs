//! Completes the names of tools, and the names and values of their arguments, in a script that somebody writes.
//!
//! The text is read as far as a completion needs it: brackets, texts and comments. It is not parsed, because it is
//! incomplete most of the time, and only a worker parses scripts.

use serde::Serialize;
use serde_json::Value;
use toolgate_catalog::Tool;
use toolgate_policy::CallPath;
use toolgate_sandbox::Language;

use super::argument::ArgumentKind;
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
    /// The name of the tool or of the argument, or the value.
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
            Expected::Argument(part) => {
                let known = catalog.resolve(part.tool).filter(|tool| self.offers(tool));
                known.map_or_else(Vec::new, |tool| arguments(tool, &part, &typed, language))
            }
            Expected::Value(part, quote) => {
                let known = catalog.resolve(part.tool).filter(|tool| self.offers(tool));
                let mut items = known
                    .map_or_else(Vec::new, |tool| values(tool, &part, (&typed, quote), language));
                if quote.is_none() && !typed.is_empty() {
                    let can_call =
                        |tool: &&Tool| self.offers(tool) && self.opens(tool, CallPath::Script);
                    items.extend(tools(catalog.tools().filter(can_call), &typed));
                }
                items
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

/// The part of the schema where a completion stands.
fn part_of<'s>(root: &'s Value, path: &[Step<'_>]) -> Option<&'s Value> {
    path.iter().try_fold(root, |part, step| {
        let kind = ArgumentKind::of(root, part);
        match step {
            Step::Key(key) => kind.object?.get("properties")?.get(*key),
            Step::Item => kind.items,
        }
    })
}

fn arguments(
    tool: &Tool,
    part: &ArgumentPart<'_>,
    typed: &str,
    language: Language,
) -> Vec<CodeCompletion> {
    let root = &tool.definition.input_schema();
    let Some(object) = part_of(root, &part.path) else { return Vec::new() };
    // The arguments themselves are an object whatever the schema says.
    let fields = if part.path.is_empty() {
        object.as_object()
    } else {
        ArgumentKind::of(root, object).object
    };
    let Some(fields) = fields else { return Vec::new() };
    let required = fields.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let typed = typed.to_ascii_lowercase();
    let fits = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with(&typed)
    };
    let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(bool, CodeCompletion)> = properties
        .filter(|(name, _)| fits(name) && !part.written.contains(&name.as_str()))
        .filter_map(|(name, property)| {
            let insert = match (language, is_identifier(name)) {
                (Language::TypeScript, true) => format!("{name}: "),
                (Language::Python, true) if part.path.is_empty() => format!("{name}="),
                (Language::Python, _) if part.path.is_empty() => return None,
                _ => format!("{}: ", Value::from(name.as_str())),
            };
            let is_required = required.contains(&name.as_str());
            let kind = ArgumentKind::of(root, property);
            let kind =
                if kind.types.is_empty() { "any".to_owned() } else { kind.types.join(" or ") };
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

/// The values that the schema lists. Within a text the rest of it is inserted, with its end.
fn values(
    tool: &Tool,
    part: &ArgumentPart<'_>,
    (typed, quote): (&str, Option<char>),
    language: Language,
) -> Vec<CodeCompletion> {
    let root = &tool.definition.input_schema();
    let Some(found) = part_of(root, &part.path) else { return Vec::new() };
    let kind = ArgumentKind::of(root, found);
    let flags = [Value::Bool(true), Value::Bool(false)];
    let is_flag = kind.types.contains(&"boolean") && kind.choices.is_empty();
    let choices = kind.choices.into_iter().chain(flags.iter().filter(|_| is_flag));
    let begins = typed.to_lowercase();
    let fitting = choices.filter_map(|value| {
        let name = ArgumentKind::written(value);
        let insert = match (value, quote) {
            (Value::String(text), Some(quote)) => within_quotes(text, quote)?,
            (_, Some(_)) => return None,
            (Value::Bool(true), None) if language == Language::Python => "True".to_owned(),
            (Value::Bool(false), None) if language == Language::Python => "False".to_owned(),
            (value, None) => value.to_string(),
        };
        let fits = name.to_lowercase().starts_with(&begins);
        fits.then(|| CodeCompletion { insert, name, about: "value".to_owned() })
    });
    fitting.take(MOST).collect()
}

/// A text as it stands before the closing quote, and this quote; `None` if it cannot stand there as it is.
fn within_quotes(text: &str, quote: char) -> Option<String> {
    let is_plain =
        |character: char| !character.is_control() && !['\\', '$', quote].contains(&character);
    text.chars().all(is_plain).then(|| format!("{text}{quote}"))
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
    /// A name of an argument, or of a field within one.
    Argument(ArgumentPart<'t>),
    /// A value of this argument, perhaps within this quote.
    Value(ArgumentPart<'t>, Option<char>),
    /// Any name.
    Name,
    /// The name of a tool, after `tools.`.
    Tool,
}

/// A part of the arguments of a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct ArgumentPart<'t> {
    tool: &'t str,
    path: Vec<Step<'t>>,
    /// The names that are there already.
    written: Vec<&'t str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<'t> {
    Key(&'t str),
    Item,
}

/// A bracket that is open.
#[derive(Debug)]
struct OpenBracket<'t> {
    bracket: char,
    /// The word before it.
    word: &'t str,
    /// The name of the argument or field whose value it begins.
    key: Option<&'t str>,
    /// The names in it so far.
    written: Vec<&'t str>,
}

/// What is open at the end of a text.
#[derive(Debug, Default)]
struct OpenParts<'t> {
    brackets: Vec<OpenBracket<'t>>,
    /// The quote of a text, and where it is.
    quote: Option<(&'t str, usize)>,
    is_comment: bool,
}

impl<'t> CursorPlace<'t> {
    fn of(before: &'t str, language: Language) -> Self {
        let open = open_parts(before, language);
        if let Some((quote, at)) = open.quote {
            let typed = &before[at + quote.len()..];
            let mark = quote.chars().next().filter(|_| quote.len() == 1 && !typed.contains('\n'));
            let part = mark.and_then(|_| open.argument(&before[..at], language));
            return match part {
                Some((part, true)) => Self { typed, expects: Expected::Value(part, mark) },
                _ => Self { typed, expects: Expected::Nothing },
            };
        }
        let rest = before.trim_end_matches(is_word);
        let typed = &before[rest.len()..];
        let nothing = Self { typed, expects: Expected::Nothing };
        if open.is_comment || typed.starts_with(|first: char| first.is_ascii_digit()) {
            return nothing;
        }
        let last = rest.trim_end();
        if let Some(object) = last.strip_suffix('.').filter(|_| !last.ends_with("...")) {
            let object = object.trim_end();
            let is_tools = object.strip_suffix("tools").is_some_and(|before| {
                !before.ends_with(is_word) && !before.trim_end().ends_with('.')
            });
            return if is_tools { Self { typed, expects: Expected::Tool } } else { nothing };
        }
        let expects = match open.argument(rest, language) {
            Some((part, true)) => Expected::Value(part, None),
            Some((part, false)) => Expected::Argument(part),
            None => Expected::Name,
        };
        Self { typed, expects }
    }
}

impl<'t> OpenParts<'t> {
    /// The part of the arguments of a call that stands at the end of this text, and whether it is a value; `None` if it is
    /// something else.
    fn argument(&self, rest: &'t str, language: Language) -> Option<(ArgumentPart<'t>, bool)> {
        let is_call = |open: &OpenBracket<'_>| open.bracket == '(' && !open.word.is_empty();
        let call = self.brackets.iter().rposition(is_call)?;
        let mut within = self.brackets[call + 1..].iter();
        let mut last = &self.brackets[call];
        if language == Language::TypeScript {
            last = within.next().filter(|open| open.bracket == '{' && open.key.is_none())?;
        }
        let mut path = Vec::new();
        for open in within {
            match (open.bracket, open.key, last.bracket) {
                ('{', Some(key), '{' | '(') => path.push(Step::Key(key)),
                ('[', Some(key), '{' | '(') => path.extend([Step::Key(key), Step::Item]),
                ('{', None, '[') => {}
                ('[', None, '[') => path.push(Step::Item),
                _ => return None,
            }
            last = open;
        }
        let key = key_before(rest, last.bracket);
        let begins_item = rest.trim_end().ends_with(['(', '{', '[', ',']);
        let is_value = match (last.bracket, key) {
            ('[', _) => begins_item,
            (_, Some(key)) => {
                path.push(Step::Key(key));
                true
            }
            (_, None) if begins_item => false,
            _ => return None,
        };
        if last.bracket == '[' && !begins_item {
            return None;
        }
        let written = if is_value { Vec::new() } else { last.written.clone() };
        Some((ArgumentPart { tool: self.brackets[call].word, path, written }, is_value))
    }
}

/// The name before the colon or the equals sign at the end of a text within this bracket.
fn key_before(text: &str, bracket: char) -> Option<&str> {
    let text = text.trim_end();
    let text = match bracket {
        '{' => text.strip_suffix(':')?,
        '(' => text.strip_suffix('=')?,
        _ => return None,
    };
    let text = text.trim_end();
    let bare = text.trim_end_matches(is_word);
    let (before, key) = if bare.len() < text.len() {
        text.split_at(bare.len())
    } else {
        let quote = text.chars().next_back().filter(|mark| ['"', '\''].contains(mark))?;
        let inner = &text[..text.len() - 1];
        let start = inner.rfind(quote)?;
        (&inner[..start], &inner[start + 1..])
    };
    // What is before it ends another item, and is no part of an expression.
    before.trim_end().ends_with(['{', '(', ',']).then_some(key)
}

/// The brackets that are open at the end of a text, and whether it ends within a text or a comment.
fn open_parts(text: &str, language: Language) -> OpenParts<'_> {
    let mut open = OpenParts::default();
    // The end of what is skipped, where it began, and whether it is a text.
    let mut skipped: Option<(&str, usize, bool)> = None;
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut step = character.len_utf8();
        if let Some((end, _, is_text)) = skipped {
            if character == '\\' && is_text {
                step += rest[1..].chars().next().map_or(0, char::len_utf8);
            } else if rest.starts_with(end) {
                (skipped, step) = (None, end.len());
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
            (Some((end, begin)), _) => (skipped, step) = (Some((end, at, false)), begin),
            (None, '"' | '\'' | '`') => {
                let triple = ["\"\"\"", "'''"].into_iter().find(|mark| rest.starts_with(mark));
                let mark = triple.filter(|_| language == Language::Python);
                let mark = mark.unwrap_or(match character {
                    '"' => "\"",
                    '\'' => "'",
                    _ => "`",
                });
                (skipped, step) = (Some((mark, at, true)), mark.len());
            }
            (None, '(' | '{' | '[') => {
                let before = text[..at].trim_end();
                let word = before.len() - before.trim_end_matches(is_word).len();
                let key = open.brackets.last().and_then(|last| key_before(before, last.bracket));
                open.brackets.push(OpenBracket {
                    bracket: character,
                    word: &before[before.len() - word..],
                    key,
                    written: Vec::new(),
                });
            }
            (None, ')' | '}' | ']') => _ = open.brackets.pop(),
            (None, ':' | '=') => {
                if let Some(last) = open.brackets.last_mut() {
                    last.written.extend(key_before(&text[..=at], last.bracket));
                }
            }
            _ => {}
        }
        at += step;
    }
    match skipped {
        Some((end, at, true)) => open.quote = Some((end, at)),
        Some(_) => open.is_comment = true,
        None => {}
    }
    open
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
        let argument = |typed, tool| {
            let part = ArgumentPart { tool, ..ArgumentPart::default() };
            CursorPlace { typed, expects: Expected::Argument(part) }
        };
        let after = |typed, tool, name| {
            let part = ArgumentPart { tool, written: vec![name], ..ArgumentPart::default() };
            CursorPlace { typed, expects: Expected::Argument(part) }
        };
        let value = |typed, tool, path: &[Step<'static>], quote| {
            let part = ArgumentPart { tool, path: path.to_vec(), ..ArgumentPart::default() };
            CursorPlace { typed, expects: Expected::Value(part, quote) }
        };
        let name = |typed| CursorPlace { typed, expects: Expected::Name };
        let nothing = |typed| CursorPlace { typed, expects: Expected::Nothing };
        assert_eq!(typescript("const a = await crm_li"), name("crm_li"));
        assert_eq!(typescript("await crm_list({ li"), argument("li", "crm_list"));
        assert_eq!(typescript("await crm_list({ a: { b: 1 }, "), after("", "crm_list", "a"));
        assert_eq!(
            typescript("await crm_list({ a: cr"),
            value("cr", "crm_list", &[Step::Key("a")], None)
        );
        let items = [Step::Key("a"), Step::Item];
        assert_eq!(typescript("f({ a: [g(1), \")\", "), value("", "f", &items, None));
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
        assert_eq!(python("await crm_list(limit=1, of"), after("of", "crm_list", "limit"));
        let path = [Step::Key("opts"), Step::Key("how")];
        assert_eq!(typescript("f({ opts: { how: "), value("", "f", &path, None));
        assert_eq!(typescript("f({ opts: { \"how\": \"a b"), value("a b", "f", &path, Some('"')));
        assert_eq!(python("f(1, opts={'how': 'lo"), value("lo", "f", &path, Some('\'')));
        assert_eq!(python("f(level="), value("", "f", &[Step::Key("level")], None));
        let tags = [Step::Key("tags"), Step::Item];
        assert_eq!(typescript("f({ tags: ['a', '"), value("", "f", &tags, Some('\'')));
        let inner = ArgumentPart { tool: "f", path: tags.to_vec(), written: Vec::new() };
        let inner = CursorPlace { typed: "", expects: Expected::Argument(inner) };
        assert_eq!(typescript("f({ tags: [{ "), inner);
        // Parts of an expression are no names.
        assert_eq!(typescript("f({ a: b ? c : "), name(""));
        assert_eq!(python("f(a == "), name(""));
        assert_eq!(typescript("f({ a: 1 + "), name(""));
        assert_eq!(typescript("if (x) { level: \""), nothing(""));
        assert_eq!(python("# crm\ncrm_"), name("crm_"));
        assert_eq!(python("'''it's (''' + crm"), name("crm"));
        assert_eq!(python("# crm"), nothing("crm"));
    }

    #[test]
    fn any_text_can_be_read() {
        for text in [
            "\\",
            "\"\\",
            "(((",
            ")))",
            "é\"ü\\",
            "/",
            "'''",
            "`${",
            "#",
            "f({:",
            "f(=",
            "f({'",
            "f({''",
            "f({ é: \"ü",
        ] {
            let _ = (typescript(text), python(text));
        }
    }
}
