//! Removes secrets from texts.

use std::{collections::VecDeque, fmt, sync::Arc};

use parking_lot::RwLock;
use serde_json::Value;

/// Removes a server's secrets from texts that are stored or shown.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    /// Secrets that became known later. All clones share them.
    later: Arc<RwLock<VecDeque<String>>>,
    /// Those of other redactors.
    others: Vec<Arc<RwLock<VecDeque<String>>>>,
}

/// Replaces a secret.
const HIDDEN: &str = "[hidden]";
/// How many later secrets are remembered. Tokens are renewed all the time, and the oldest are no
/// longer valid.
const LATER: usize = 32;
/// The longest text that is shown of an error.
const MAX_SHOWN: usize = 1000;

impl Redactor {
    /// Shorter values are settings, not secrets: hiding every `1` or `true` would make a log
    /// unreadable and protect nothing.
    const SHORTEST_SECRET: usize = 8;

    /// Hides `values`. Of a header such as `Bearer abc…` also hides the credential alone, and of a
    /// value of several lines each line, because logs have lines.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = values
            .into_iter()
            .flat_map(|value| {
                let credential = value.split_once(' ').map(|(_, rest)| rest.to_owned());
                let has_lines = value.trim().contains('\n');
                let lines: Vec<String> = value.lines().map(|line| line.trim().to_owned()).collect();
                let lines = lines.into_iter().filter(move |_| has_lines);
                lines.chain([value]).chain(credential)
            })
            .filter(|value| value.len() >= Self::SHORTEST_SECRET)
            .collect();
        // The longest first, so that a secret that contains another is hidden whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets, later: Arc::default(), others: Vec::new() }
    }

    /// Also hides what `other` hides, now and later.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.secrets.extend(other.secrets.iter().cloned());
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.others.extend([&other.later].into_iter().chain(&other.others).cloned());
        self
    }

    /// Hides `values` from now on, in all clones.
    pub fn hide(&self, values: impl IntoIterator<Item = String>) {
        let mut later = self.later.write();
        for value in values.into_iter().filter(|value| value.len() >= Self::SHORTEST_SECRET) {
            if !later.contains(&value) {
                later.push_back(value);
            }
        }
        while later.len() > LATER {
            later.pop_front();
        }
    }

    /// `text` without the secrets.
    pub fn clean(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
        let clean = self.secrets.iter().fold(text.to_owned(), hide);
        let later = std::iter::once(&self.later).chain(&self.others);
        later.fold(clean, |text, later| later.read().iter().fold(text, hide))
    }

    /// The length of the longest secret, in bytes. A text that was cut may end with a part of one, which nobody finds.
    pub fn longest(&self) -> usize {
        let later = std::iter::once(&self.later).chain(&self.others);
        let later = later.filter_map(|later| later.read().iter().map(String::len).max()).max();
        self.secrets.iter().map(String::len).max().max(later).unwrap_or_default()
    }

    /// Removes what became known later, such as the tokens of logins, from the result of a request. Everything else
    /// passes as it was sent: what a configuration has may be no secret, but a word that results contain.
    pub fn clean_result(&self, result: &mut Value) {
        let later = std::iter::once(&self.later).chain(&self.others);
        let secrets: Vec<String> =
            later.flat_map(|later| later.read().iter().cloned().collect::<Vec<_>>()).collect();
        if !secrets.is_empty() {
            hide_in(result, &secrets);
        }
    }

    /// `text` for one line of output: without secrets and control characters, and then cut, so that
    /// no part of a secret is left at the end.
    pub fn line(&self, text: &str) -> String {
        let clean = self.clean(text);
        let calm = |character: char| if character.is_control() { ' ' } else { character };
        clean.chars().map(calm).take(MAX_SHOWN).collect()
    }

    /// `value` without the secrets in its texts.
    pub fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn hide_in(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), HIDDEN);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| hide_in(field, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Redactor({} values)", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_everywhere_in_a_text() {
        let redactor = Redactor::new(["Bearer abcdefgh12".into(), "true".into()]);
        assert_eq!(redactor.clean("sent Bearer abcdefgh12"), "sent [hidden]");
        assert_eq!(redactor.clean("token=abcdefgh12 ok=true"), "token=[hidden] ok=true");
        let mut value = json!({"a": ["x abcdefgh12", 3]});
        redactor.clean_value(&mut value);
        assert_eq!(value, json!({"a": ["x [hidden]", 3]}));
    }

    #[test]
    fn results_lose_tokens_and_nothing_else() {
        let (tokens, settings) = (Redactor::default(), Redactor::new(["production".into()]));
        let both = settings.with(&tokens);
        tokens.hide(["token-of-a-login".into()]);
        let mut result = json!({ "content": [{ "text": "in production with token-of-a-login" }] });
        both.clean_result(&mut result);
        assert_eq!(result, json!({ "content": [{ "text": "in production with [hidden]" }] }));
    }

    #[test]
    fn every_line_of_a_secret_is_hidden() {
        let redactor = Redactor::new(["-----BEGIN KEY-----\r\nabcdefgh12\nshort\n".into()]);
        assert_eq!(redactor.clean("bad abcdefgh12"), "bad [hidden]");
        assert_eq!(redactor.clean("too short"), "too short");
    }

    #[test]
    fn secrets_added_later_are_hidden_by_all_clones() {
        let (tokens, headers) = (Redactor::default(), Redactor::new(["headersecret".into()]));
        let both = headers.with(&tokens);
        let clone = both.clone();
        tokens.hide((0..100).map(|number| format!("token-{number:04}")));
        assert_eq!(clone.clean("token-0099 headersecret"), "[hidden] [hidden]");
        assert_eq!(tokens.later.read().len(), LATER);
        let third = Redactor::default();
        let all = both.with(&third);
        third.hide(["value-of-a-command".into()]);
        assert_eq!(all.clean("token-0099 value-of-a-command"), "[hidden] [hidden]");
    }

    #[test]
    fn the_longest_secret_is_known() {
        let (tokens, settings) = (Redactor::default(), Redactor::new(["production".into()]));
        let both = settings.with(&tokens);
        assert_eq!((both.longest(), Redactor::default().longest()), (10, 0));
        tokens.hide(["token-of-a-login".into()]);
        assert_eq!(both.longest(), 16);
    }

    #[test]
    fn a_cut_text_contains_no_part_of_a_secret() {
        let redactor = Redactor::new(["abcdefgh12".into()]);
        let line = redactor.line(&format!("{}\u{1b}abcdefgh12", "x".repeat(MAX_SHOWN - 5)));
        assert!(line.ends_with("[hid") && !line.contains("abc"), "{line}");
    }
}
