//! Finds secrets within texts, by their names and by how they look.

use std::{cmp::Reverse, ops::Range};

/// Words in the name of a variable, a header, an option or a parameter whose value is a secret.
const NAMES: [&str; 16] = [
    "token",
    "secret",
    "pass",
    "pwd",
    "key",
    "credential",
    "auth",
    "cookie",
    "bearer",
    "dsn",
    "databaseurl",
    "webhook",
    "signature",
    "connectionstring",
    "headers",
    "jwt",
];
/// Parts of a name that say the same, if they stand alone.
const PARTS: [&str; 13] = [
    "pat", "sig", "code", "cred", "creds", "access", "pin", "license", "licence", "hook", "hooks",
    "session", "tok",
];
/// The parts of a path after which a secret stands, and those that are none.
const BEFORE_SECRETS: [&str; 10] =
    ["s", "t", "u", "token", "key", "secret", "hook", "hooks", "webhook", "webhooks"];
const PLAIN_PARTS: [&str; 8] = ["mcp", "sse", "api", "message", "messages", "v1", "v2", "v3"];
/// Values that are no secrets, whatever their names are.
const WORDS: [&str; 8] = ["true", "false", "0", "1", "yes", "no", "none", "null"];
/// Words before a secret.
const SCHEMES: [&str; 4] = ["Bearer ", "bearer ", "Basic ", "token "];
/// Beginnings of well-known tokens.
const BEGINNINGS: [&str; 21] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "glpat-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
    "eyJ",
    "lin_api_",
    "ntn_",
    "sntrys_",
    "shpat_",
    "pplx-",
];
/// What ends a value within a text.
const ENDS: &[char] = &['&', ';', '#', ',', '"', '\'', '`', ' ', '\t', '\n', '\r', '\\', '}', ')'];

/// A secret within a text, and the name under which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) range: Range<usize>,
    pub(crate) name: String,
}

/// The secrets within the value of this name.
pub(crate) fn found(name: &str, text: &str) -> Vec<Found> {
    let references = references(text);
    let is_free = |range: &Range<usize>| {
        range.len() >= 3
            && !references.iter().any(|it| it.start < range.end && range.start < it.end)
            && !WORDS.contains(&text[range.clone()].to_ascii_lowercase().as_str())
    };
    let own = clean_name(name);
    // It is a port, a path or a project as often as a password.
    let is_short = name == "-p" && is_password(text);
    if is_secret_name(name) || is_short {
        let whole = after_scheme(text, 0)..text.len();
        if references.is_empty() {
            return if is_free(&whole)
                || (!whole.is_empty() && whole.len() < 3 && !WORDS.contains(&text))
            {
                vec![Found { range: whole, name: own }]
            } else {
                Vec::new()
            };
        }
    }
    let mut all = Vec::new();
    pairs(text, &mut all);
    urls(text, &mut all);
    words(text, &mut all);
    all.retain(|it| is_free(&it.range));
    if is_secret_name(name) && all.is_empty() && !text.contains("://") {
        // What stands beside references.
        let mut start = after_scheme(text, 0);
        for end in references.iter().chain([&(text.len()..text.len())]) {
            let beside = start..end.start.max(start);
            if beside.len() >= 6 && !text[beside.clone()].trim().is_empty() {
                all.push(Found { range: beside, name: own.clone() });
            }
            start = end.end;
        }
    }
    defaults(name, text, &references, &mut all);
    // Of secrets that overlap the one that begins first counts, and of these the longest.
    all.sort_by_key(|it| (it.range.start, Reverse(it.range.end)));
    let mut last = 0;
    all.retain(|it| {
        let is_first = it.range.start >= last;
        if is_first {
            last = it.range.end;
        }
        is_first
    });
    for it in &mut all {
        if it.name.is_empty() {
            it.name = if own.is_empty() { "argument".to_owned() } else { own.clone() };
        }
    }
    all
}

/// `NAME=VALUE`, `NAME: VALUE` and `--NAME VALUE` with a name of a secret.
fn pairs(text: &str, all: &mut Vec<Found>) {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    for (at, mark) in text.match_indices(['=', ':', ' ']) {
        // A name may be quoted, and a value too.
        let before = text[..at].trim_end_matches(['"', '\'', ' ']);
        let begin = before
            .rfind(|it: char| !is_part(it))
            .map_or(0, |it| it + before[it..].chars().next().map_or(1, char::len_utf8));
        let name = &before[begin..];
        let is_option = name.starts_with('-');
        let is_wanted = match mark {
            " " => is_option,
            ":" => !text[at + 1..].starts_with("//"),
            _ => true,
        };
        if !is_wanted || !is_secret_name(name) {
            continue;
        }
        let rest = &text[at + 1..];
        let opened = rest.trim_start_matches([' ', '[']);
        let quote = opened.chars().next().filter(|it| *it == '"' || *it == '\'');
        let value = &opened[quote.map_or(0, char::len_utf8)..];
        let start = after_scheme(text, text.len() - value.len());
        if mark == " "
            && (text[start..].starts_with('-')
                || quote.is_none() && value.contains("://") && !value.contains('@'))
        {
            continue;
        }
        let end = match quote {
            Some(quote) => text[start..].find(quote),
            // A pair that is the whole text has a value to its end.
            None if mark != " " && begin == 0 && !text[start..].contains([';', '\n']) => None,
            None => text[start..].find(ENDS),
        };
        let end = end.map_or(text.len(), |it| start + it);
        all.push(Found { range: start..end, name: clean_name(name) });
    }
    for scheme in ["Bearer ", "bearer "] {
        for (at, _) in text.match_indices(scheme) {
            let start = at + scheme.len();
            let end = text[start..].find(ENDS).map_or(text.len(), |it| start + it);
            all.push(Found { range: start..end, name: String::new() });
        }
    }
}

/// The passwords of URLs, and the parts of their paths that nobody can guess.
fn urls(text: &str, all: &mut Vec<Found>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let rest = &text[start..];
        let rest = &rest[..rest
            .find(|it: char| it.is_whitespace() || "\"'`".contains(it))
            .unwrap_or(rest.len())];
        let mut length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        // A password may have such characters too; a port is a number.
        let port = rest[..length].rsplit_once(':').map(|(_, port)| port);
        if !rest[..length].contains('@')
            && port
                .is_some_and(|it| !it.chars().all(|it| it.is_ascii_digit()) && !it.ends_with(']'))
        {
            length = rest.rfind('@').map_or(length, |it| it + 1);
        }
        if let Some(end) = rest[..length].rfind('@') {
            let begin = rest[..end].find(':').map_or(0, |it| it + 1);
            all.push(Found { range: start + begin..start + end, name: "password".to_owned() });
        }
        let path = rest[length..].split(['?', '#']).next().unwrap_or_default();
        let is_hook = rest[..length].split('.').any(|label| label.contains("hook"));
        let mut begin = start + length;
        let mut before = "";
        for (index, part) in path.split('/').enumerate() {
            let is_after = BEFORE_SECRETS.contains(&before.to_ascii_lowercase().as_str())
                && !PLAIN_PARTS.contains(&part)
                && !BEFORE_SECRETS.contains(&part);
            if is_random(part) || is_after || (is_hook && index > 1) {
                all.push(Found { range: begin..begin + part.len(), name: "url".to_owned() });
            }
            begin += part.len() + 1;
            before = part;
        }
        if let Some(fragment) = rest.find('#').filter(|it| *it >= length) {
            let range = start + fragment + 1..start + rest.len();
            all.push(Found { range, name: "url".to_owned() });
        }
    }
}

/// Well-known tokens.
fn words(text: &str, all: &mut Vec<Found>) {
    let mut start = 0;
    for word in text.split(|it: char| !(it.is_ascii_alphanumeric() || "_-.+".contains(it))) {
        if word.len() >= 16 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)) {
            all.push(Found { range: start..start + word.len(), name: String::new() });
        }
        start += word.len();
        start += text[start..].chars().next().map_or(0, char::len_utf8);
    }
}

/// Whether nobody can guess a text.
pub(crate) fn is_random(part: &str) -> bool {
    let count = |is: fn(&char) -> bool| part.chars().filter(is).count();
    let is_mixed = count(char::is_ascii_uppercase) >= 3
        && count(char::is_ascii_lowercase) >= 3
        && !part.contains(['-', '_', ' ']);
    part.len() >= 20
        && !part.contains(['.', '@', '$', '{', '/', ' ', ':'])
        && ((count(char::is_ascii_digit) >= 3 && count(char::is_ascii_alphabetic) >= 3) || is_mixed)
}

/// Whether the value of `-p` can be a password.
fn is_password(text: &str) -> bool {
    !text.contains(['/', '.', '\\']) && text.chars().any(|it| it.is_ascii_alphabetic())
}

/// Where a secret begins after a word such as `Bearer`.
fn after_scheme(text: &str, start: usize) -> usize {
    let length = SCHEMES.iter().find(|it| text[start..].starts_with(**it)).map_or(0, |it| it.len());
    start + length
}

/// The defaults of references that are secrets: `${TOKEN:-SECRET}`.
fn defaults(name: &str, text: &str, references: &[Range<usize>], all: &mut Vec<Found>) {
    for reference in references {
        let inner = &text[reference.start + 2..reference.end - 1];
        let Some((variable, default)) = inner.split_once(":-") else { continue };
        if default.contains("${") || WORDS.contains(&default.to_ascii_lowercase().as_str()) {
            continue;
        }
        let start = reference.end - 1 - default.len();
        let variable = variable.strip_prefix("env:").unwrap_or(variable);
        let named = if variable.is_empty() { name } else { variable };
        if is_secret_name(name) || is_secret_name(variable) {
            let whole = after_scheme(text, start)..reference.end - 1;
            if whole.len() >= 3 {
                all.push(Found { range: whole, name: clean_name(named) });
            }
            continue;
        }
        let within = found("", default).into_iter();
        all.extend(within.map(|it| Found {
            range: start + it.range.start..start + it.range.end,
            name: it.name,
        }));
    }
}

/// The places of `${…}`.
pub(crate) fn references(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (start, _) in text.match_indices("${") {
        if let Some(length) = text[start..].find('}')
            && all.last().is_none_or(|last| last.end <= start)
        {
            all.push(start..start + length + 1);
        }
    }
    all
}

fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    NAMES.iter().any(|word| plain.contains(word))
        || lower.split(|it: char| !it.is_ascii_alphanumeric()).any(|part| PARTS.contains(&part))
        || plain.ends_with("pat")
        || name == "-k"
}

/// A name for the vault.
pub(crate) fn clean_name(name: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    let name = name.trim_start_matches('-');
    name.chars().map(|it| if fits(it) { it } else { '_' }).collect()
}
