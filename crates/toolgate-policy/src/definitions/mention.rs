//! Instructions about the tools of other servers.
//!
//! A server cannot know which other servers are configured. A text that tells the model what to do
//! with `send_email` of another server is therefore about more than its own tool: "before you call
//! `send_email`, call this first", "use this instead of `github_create_issue`".

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value;
use toolgate_catalog::{Definition, HOST_TOOL_NAMES, ServerName};

use super::{
    scan::{DefinitionFinding, FindingKind, LONGEST_EXCERPT, excerpt},
    shown,
};

/// The names of all servers' tools. Updating one server costs time in proportion to that server's
/// definitions.
#[derive(Debug, Default)]
pub struct ToolNames {
    /// By spelling.
    owners: HashMap<String, BTreeMap<ServerName, NameKind>>,
    servers: HashMap<ServerName, ServerTexts>,
    /// The servers with texts that contain a word, by its spelling.
    mentioning: HashMap<String, BTreeSet<ServerName>>,
}

#[derive(Debug, Default)]
struct ServerTexts {
    names: BTreeMap<String, NameKind>,
    words: BTreeSet<String>,
}

/// How sure it is that a word is meant as the name of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameKind {
    /// An ordinary word: `search`.
    Word,
    /// Several words: `send_email`.
    Compound,
    /// The name that toolgate gives it: `mail_send_email`.
    Exposed,
}

/// The longest text that is read, in bytes.
const LONGEST: usize = 256 * 1024;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;
/// The number of words of one server that are kept.
const MAX_WORDS: usize = 20_000;
/// The largest number of findings for one definition.
const MAX_FINDINGS: usize = 4;
/// The longest part of a sentence on each side of a name, in bytes.
const LONGEST_PART: usize = 160;
/// Stands for the name in a sentence. Regular expressions write it as `@`.
const NAME: char = '\u{e000}';

static WORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[A-Za-z][A-Za-z0-9]*(?:[_\-./:]+[A-Za-z0-9]+)*").ok());

/// What is said about a tool that is meant to be used in another way. `@` is the name.
static INSTRUCTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verb = "(?:call|us|invok|run|execut|trigger)(?:n?ing|es?|s|ed)?";
    let lead =
        r"(?:the\s+|your\s+|any\s+|every\s+|each\s+|all\s+|this\s+tool\s+or\s+)?(?:tools?\s+)?";
    let patterns = [
        // "Before you call @", "whenever you are using @".
        format!(r"\b(?:before|prior to|after|when|whenever|while|once|if|each time|every time|any time|as soon as)\b[^.!?\n]{{0,30}}?\b{verb}\s+(?:to\s+)?{lead}@"),
        // "When @ is called", "if @ is available".
        format!(r"\b(?:before|after|when|whenever|once|if|each time|every time|any time)\s+{lead}@\s*(?:tool\s+)?(?:is|was|are|has|gets|runs|returns|fails|exists)\b"),
        // "Instead of @", "replaces @".
        format!(r"\b(?:instead of|rather than|in place of|in preference to|in favou?r of|over|substitutes?(?: for)?|replacements? (?:for|of)|replac(?:es?|ing)|supersed(?:es?|ing)|overrid(?:es?|ing)|deprecat(?:es?|ing)|before|prior to)\s+(?:{verb}\s+(?:to\s+)?)?{lead}@"),
        // "Always call @", "do not use @". More than a comparison: "than calling @".
        format!(r"(?:^|[,;:(—–-]\s*|\b(?:must|should|shall|always|never|not|don't|first|then|also|only|please|now|and|to|you|instead)\s+)(?:call|use|invoke|run|execute|trigger|prefer|avoid|disable|skip|bypass|ignore|forget|replace|distrust)\s+(?:only\s+)?{lead}@"),
        format!(r"\b(?:stop|quit|avoid|refrain from|from)\s+{verb}\s+{lead}@"),
        // "@ must always", "@ is deprecated".
        r"@\s*(?:tool\s+|calls?\s+)?(?:must|should|shall|cannot|can't|has to|have to|needs? to|always|never|no longer|(?:is|was|are|has been)\s+(?:now\s+)?(?:broken|deprecated|unsafe|insecure|outdated|obsolete|disabled|replaced|superseded|unreliable|compromised|no longer|not (?:safe|reliable|available|working)|forbidden|removed))\b".to_owned(),
        // "Every call of @", "the recipient of @".
        r"\b(?:every|each|all|any)\s+(?:calls?|uses?|invocations?|requests?)\s+(?:of|to|for|with|through)\s+(?:the\s+)?@".to_owned(),
        r"\b(?:arguments?|parameters?|recipients?|fields?|inputs?)\s+(?:of|for|to|in)\s+(?:the\s+)?@".to_owned(),
        // "Pass the result of @".
        r"\b(?:pass|send|forward|give|feed|include|copy|put|add|append)\b[^.!?\n]{0,40}?\b(?:outputs?|results?|contents?|responses?|data|returns?)\s+(?:of|from)\s+(?:the\s+)?@".to_owned(),
        // Some other languages.
        r"(?:statt|anstelle von|anstatt|bevor du|rufe?|verwende|benutze|au lieu de|avant d['’]appeler|appelle[zr]?|utilise[zr]?|en lugar de|en vez de|antes de|llama a|usa|invece di|prima di|chiama|em vez de|chame|вместо|перед|вызови|используй|代替|而不是|不要使用|不要调用|调用|使用|先用|बजाय|بدلا من|قبل|استدع|استخدم)[^.!?\n]{0,15}?@|@[^.!?\n]{0,8}?(?:的?之前|的?代わりに|を呼|を使|を実行|대신|전에|के बजाय|से पहले|को कॉल)".to_owned(),
    ];
    Regex::new(&format!(
        "(?i){}",
        patterns.join("|").replace('@', r#"[`'"“”‘’*]{0,3}\x{e000}[`'"“”‘’*]{0,3}(?:\(\))?"#)
    ))
    .ok()
});

/// Signs of an instruction about a tool whose exposed name is written out.
static ABOUT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "call|calling|use|using|invoke|invoking|run|running|execute|before|after|instead|when|whenever|must|always|never|first|tool|not|don't|rather";
    Regex::new(&format!(r"(?i)\b(?:{words})\b|[^\x00-\x7f\x{{e000}}–—“”‘’…]")).ok()
});

impl ToolNames {
    /// Replaces the tools of a server. Returns the other servers with texts that may now be about
    /// its tools, or no longer are.
    pub fn replace(
        &mut self,
        server: &ServerName,
        prefix: Option<&str>,
        definitions: &[Definition],
    ) -> BTreeSet<ServerName> {
        let before = self.servers.remove(server).unwrap_or_default();
        for name in before.names.keys() {
            if let Some(owners) = self.owners.get_mut(name) {
                owners.remove(server);
                if owners.is_empty() {
                    self.owners.remove(name);
                }
            }
        }
        for word in &before.words {
            if let Some(servers) = self.mentioning.get_mut(word) {
                servers.remove(server);
                if servers.is_empty() {
                    self.mentioning.remove(word);
                }
            }
        }
        let after = ServerTexts::new(server, prefix, definitions);
        for (name, kind) in &after.names {
            self.owners.entry(name.clone()).or_default().insert(server.clone(), *kind);
        }
        for word in &after.words {
            self.mentioning.entry(word.clone()).or_default().insert(server.clone());
        }
        let names = |texts: &ServerTexts| texts.names.keys().cloned().collect::<BTreeSet<String>>();
        let (old, new) = (names(&before), names(&after));
        let changed = old.symmetric_difference(&new).filter_map(|name| self.mentioning.get(name));
        let touched = changed.flatten().filter(|other| *other != server).cloned().collect();
        self.servers.insert(server.clone(), after);
        touched
    }

    /// Finds instructions about tools of other servers in everything that a server sent.
    pub fn scan(&self, server: &ServerName, value: &Value) -> Vec<DefinitionFinding> {
        let mut findings = Vec::new();
        texts(value, "", &mut |path, text| {
            if findings.len() < MAX_FINDINGS
                && let Some(at) = self.find(server, text)
            {
                let path = shown(if path.is_empty() { "text" } else { path }, LONGEST_EXCERPT);
                let excerpt = excerpt(text, at);
                findings.push(DefinitionFinding { kind: FindingKind::OtherTool, path, excerpt });
            }
        });
        findings
    }

    /// Where a text instructs about a tool of another server.
    fn find(&self, server: &ServerName, text: &str) -> Option<usize> {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        words(text).find_map(|word| {
            let kind = self.kind_for(server, &word.spelling)?;
            let is_meant = match kind {
                NameKind::Word => word.is_called_tool && instructs(text, &word.range),
                NameKind::Compound => instructs(text, &word.range),
                NameKind::Exposed => is_about(text, &word.range) || instructs(text, &word.range),
            };
            is_meant.then_some(word.range.start)
        })
    }

    /// What a word names on another server; `None` if the server has such a tool itself.
    fn kind_for(&self, server: &ServerName, spelling: &str) -> Option<NameKind> {
        let owners = self.owners.get(spelling);
        if owners.is_some_and(|owners| owners.contains_key(server)) {
            return None;
        }
        let of_host = || {
            let mut names = HOST_TOOL_NAMES.iter();
            names.any(|name| spelled(name) == spelling).then_some(NameKind::Compound)
        };
        owners.and_then(|owners| owners.values().max().copied()).or_else(of_host)
    }
}

impl ServerTexts {
    fn new(server: &ServerName, prefix: Option<&str>, definitions: &[Definition]) -> Self {
        let mut own = Self::default();
        for definition in definitions {
            let name: &str = definition.name();
            let kind = if is_compound(name) { NameKind::Compound } else { NameKind::Word };
            let spelling = spelled(name);
            for prefix in prefix.into_iter().chain([server.as_str()]).filter(|it| !it.is_empty()) {
                own.names.insert(format!("{}{spelling}", spelled(prefix)), NameKind::Exposed);
            }
            own.names.entry(spelling).or_insert(kind);
            texts(&definition.to_value(), "", &mut |_, text| {
                let text = &text[..text.floor_char_boundary(LONGEST)];
                let left = MAX_WORDS.saturating_sub(own.words.len());
                own.words.extend(words(text).take(left).map(|word| word.spelling));
            });
        }
        own
    }
}

/// A word that may be the name of a tool.
struct NameInText {
    range: Range<usize>,
    spelling: String,
    /// Whether it is in quotes, beside the word "tool".
    is_called_tool: bool,
}

/// The words of a text that may be names of tools: several words in one, or called a tool.
fn words(text: &str) -> impl Iterator<Item = NameInText> {
    let found = WORD.as_ref().into_iter().flat_map(move |word| word.find_iter(text));
    found.flat_map(move |word| {
        let (range, word) = (word.range(), word.as_str());
        let is_called_tool = is_called_tool(text, &range);
        // `mcp__toolgate__mail_send_email` and `mail.send_email` end with a name.
        let end =
            word.rfind("__").map(|at| at + 2).or_else(|| Some(word.rfind(['.', '/', ':'])? + 1));
        let last = end.map(|at| (range.clone(), &word[at..]));
        let candidates = [Some((range, word)), last].into_iter().flatten();
        let usable = candidates.filter(move |(_, word)| {
            word.len() <= LONGEST_NAME && (is_compound(word) || is_called_tool)
        });
        usable.map(move |(range, word)| NameInText {
            range,
            spelling: spelled(word),
            is_called_tool,
        })
    })
}

/// Whether a name has several words: `send_email`, `sendEmail`.
fn is_compound(name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    letters.windows(2).any(|pair| pair[0].is_lowercase() && pair[1].is_uppercase())
        || letters.iter().any(|letter| !letter.is_alphanumeric())
}

/// Whether a word is in quotes, beside the word "tool".
fn is_called_tool(text: &str, range: &Range<usize>) -> bool {
    let is_quote = |letter: char| "`'\"“”‘’".contains(letter);
    let (before, after) = (&text[..range.start], &text[range.end..]);
    if !before.ends_with(is_quote) || !after.starts_with(is_quote) {
        return false;
    }
    let before = before.trim_end_matches(is_quote).trim_end();
    let after = after.trim_start_matches(is_quote).trim_start();
    let ends = |text: &str, word: &str| {
        let at = text.len().checked_sub(word.len());
        at.and_then(|at| text.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    let begins = after.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("tool"));
    begins || ends(before, "tool") || ends(before, "function")
}

/// Whether the sentence around a name is an instruction about it.
fn instructs(text: &str, name: &Range<usize>) -> bool {
    INSTRUCTION.as_ref().is_some_and(|regex| regex.is_match(&sentence(text, name)))
}

/// Whether the sentence around an exposed name is about its tool.
fn is_about(text: &str, name: &Range<usize>) -> bool {
    ABOUT.as_ref().is_some_and(|regex| regex.is_match(&sentence(text, name)))
}

/// The sentence around a name, with a sign in place of the name.
fn sentence(text: &str, name: &Range<usize>) -> String {
    let (before, after) = (&text[..name.start], &text[name.end..]);
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(LONGEST_PART))..];
    let after = &after[..after.floor_char_boundary(LONGEST_PART)];
    let is_end = |letter: char| matches!(letter, '.' | '!' | '?' | '\n' | '。');
    let before = before.rsplit(is_end).next().unwrap_or_default().trim_start();
    let after = after.split(is_end).next().unwrap_or_default();
    format!("{before}{NAME}{after}")
}

/// A name without case and separators.
fn spelled(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// All texts in a value. The parser that made the value has limited its depth.
fn texts<'v>(value: &'v Value, path: &str, see: &mut impl FnMut(&str, &'v str)) {
    match value {
        Value::String(text) => see(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &format!("{path}[{index}]"), see);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                texts(field, &path, see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
