//! Advice about conditions that compare a text where its meaning matters.

use serde_json::{Value, json};

use super::{ArgumentConditions, command_line};

/// A condition that lets more through than it seems to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionAdvice {
    /// The argument, as the condition names it.
    pub argument: String,
    /// The operator: `prefix` or `matches`.
    pub operator: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub instead: String,
}

/// What an argument is, by its name and by what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    CommandLine,
    Path,
    Url,
}

const COMMAND_LINES: &[&str] = &[
    "bash",
    "cmd",
    "cmdline",
    "command",
    "commandline",
    "commands",
    "powershell",
    "script",
    "sh",
    "shell",
];
const PATHS: &[&str] = &[
    "cwd",
    "dir",
    "directory",
    "file",
    "filename",
    "filepath",
    "files",
    "folder",
    "path",
    "paths",
];
const URLS: &[&str] = &["href", "link", "uri", "url", "urls"];
/// Tools that run what their `query` or `code` says.
const SHELLS: &[&str] =
    &["bash", "cmd", "exec", "execute", "powershell", "sh", "shell", "terminal"];
/// The longest operand that is shown.
const SHOWN: usize = 80;

impl ArgumentConditions {
    /// The conditions that compare the letters of a command line, a path or a URL. `tool` is the
    /// tool that they are about, as the rule names it.
    pub fn advice(&self, tool: Option<&str>) -> Vec<ConditionAdvice> {
        let mut all = Vec::new();
        for (argument, body) in &self.source {
            for operator in ["prefix", "matches"] {
                let Some(operand) = body.get(operator).and_then(Value::as_str) else { continue };
                let Some(meaning) = Meaning::of(argument, operand, tool) else { continue };
                let (problem, instead) = meaning.advice(operator, operand);
                all.push(ConditionAdvice {
                    argument: argument.clone(),
                    operator,
                    problem,
                    instead,
                });
            }
        }
        all
    }
}

impl Meaning {
    fn of(argument: &str, operand: &str, tool: Option<&str>) -> Option<Self> {
        // The last name of the path says what the argument is: `files.*.path`.
        let mut names = argument.rsplit(['.', '/']);
        let name = names.find(|name| !matches!(*name, "*" | ""))?;
        let words = words(name);
        let is = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let runs = || tool.is_some_and(|tool| has_any(tool, SHELLS));
        let scheme = operand.trim_start_matches(['^', '(', '?', ':']).split_once(':');
        let is_web = scheme.is_some_and(|(scheme, _)| {
            ["http", "ws", "ftp"].iter().any(|web| scheme.starts_with(web))
        });
        if is(COMMAND_LINES) || runs() && is(&["query", "code", "input"]) {
            Some(Self::CommandLine)
        } else if is_web || is(URLS) && scheme.is_none() {
            Some(Self::Url)
        } else if is(PATHS) && scheme.is_none() {
            Some(Self::Path)
        } else {
            None
        }
    }

    /// The problem, and what to write instead.
    fn advice(self, operator: &str, operand: &str) -> (String, String) {
        let short = operand.len() <= SHOWN && !operand.contains(char::is_control);
        let operand = Some(operand).filter(|_| operator == "prefix" && short);
        match self {
            Self::CommandLine => {
                let line = operand.unwrap_or("git status");
                let words = command_line::split(line).filter(|words| !words.is_empty());
                let words = words.unwrap_or_else(|| vec!["git".into(), "status".into()]);
                let list: Vec<String> = words.into_iter().chain(["*".to_owned()]).collect();
                (
                    format!(
                        "compares the letters of a command line, and does not see a second command \
                         in it: `{}; rm -rf x`",
                        line.trim_end()
                    ),
                    format!("`\"argv\": {}`", json!(list)),
                )
            }
            Self::Path => (
                "compares the letters of a path, and does not see where `..` and links lead"
                    .to_owned(),
                format!("`\"under\": {}`", json!(operand.unwrap_or("/srv/data"))),
            ),
            Self::Url => {
                let url = operand.and_then(|operand| url::Url::parse(operand).ok());
                let host = url.as_ref().and_then(url::Url::host_str).unwrap_or("example.com");
                (
                    format!(
                        "compares the letters of a URL, and does not see which host it leads to: \
                         `https://{host}@other.test/`"
                    ),
                    format!("`\"host\": {}`", json!(host)),
                )
            }
        }
    }
}

fn has_any(text: &str, known: &[&str]) -> bool {
    words(text).iter().any(|word| known.contains(&word.as_str()))
}

/// The words of a name in any of the usual spellings: `filePath`, `file_path`, `file-path`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (was_small && letter.is_uppercase()) {
            words.push(String::new());
        }
        was_small = letter.is_lowercase();
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase().filter(|letter| letter.is_alphanumeric()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(argument: &str, operator: &str, operand: &str) -> String {
        let conditions = json!({ argument: { operator: operand } });
        let conditions = ArgumentConditions::from_value(&conditions).unwrap();
        let all = conditions.advice(Some("shell_run"));
        let shown = all
            .into_iter()
            .map(|one| format!("{} {} {}", one.argument, one.operator, one.instead))
            .collect::<Vec<_>>();
        shown.join("; ")
    }

    #[test]
    fn the_operator_for_the_meaning_is_named() {
        let found = [
            advice("command", "prefix", "git status"),
            advice("options.shellCommand", "matches", "git .*"),
            advice("/steps/*/cmd", "prefix", "git log | "),
            advice("query", "prefix", "ls"),
            advice("file_path", "prefix", "/srv/data/"),
            advice("paths.*", "matches", "/srv/.*"),
            advice("url", "prefix", "https://api.example.com/v1"),
            advice("target", "matches", "https?://example[.]com/.*"),
        ];
        insta::assert_snapshot!(found.join("\n"), @r#"
        command prefix `"argv": ["git","status","*"]`
        options.shellCommand matches `"argv": ["git","status","*"]`
        /steps/*/cmd prefix `"argv": ["git","status","*"]`
        query prefix `"argv": ["ls","*"]`
        file_path prefix `"under": "/srv/data/"`
        paths.* matches `"under": "/srv/data"`
        url prefix `"host": "api.example.com"`
        target matches `"host": "example.com"`
        "#);
    }

    #[test]
    fn other_texts_are_compared_as_they_are() {
        for (argument, operand) in [
            ("repo", "ada/"),
            ("uri", "wiki://hr/"),
            ("description", "x"),
            ("profile", "x"),
            ("to", "a"),
        ] {
            assert_eq!(advice(argument, "prefix", operand), "", "{argument}");
        }
        let search =
            ArgumentConditions::from_value(&json!({ "query": { "prefix": "x" } })).unwrap();
        assert_eq!(search.advice(Some("web_search")), []);
        let exact = json!({ "command": { "equals": "ls" }, "path": { "under": "/srv" } });
        assert_eq!(ArgumentConditions::from_value(&exact).unwrap().advice(None), []);
    }
}
