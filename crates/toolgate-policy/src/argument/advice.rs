//! Advice about conditions that compare a text where its meaning matters.

mod words;

use serde_json::{Value, json};

use self::words::{
    COMMAND_LINES, INTERPRETERS, PATHS, PROGRAMS, RUN, SHELLS, STARTERS, STARTING_COMMANDS, URLS,
};
use super::{
    ArgumentConditions,
    command_line::{self, WRAPPERS, program},
};

/// A condition that lets more through than it seems to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionAdvice {
    /// The argument, as the condition names it.
    pub argument: String,
    /// The operator.
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

/// The longest operand that is shown.
const SHOWN: usize = 80;

impl ArgumentConditions {
    /// The conditions that mean something else than they seem to: those that compare the letters of
    /// a command line, a path or a URL, and words and hosts that are too wide or never match.
    ///
    /// `tool` is the tool that they are about, as the rule names it. `allows` says whether the rule
    /// allows calls.
    pub fn advice(&self, tool: Option<&str>, allows: bool) -> Vec<ConditionAdvice> {
        let mut all = Vec::new();
        for (argument, body) in &self.source {
            let mut add = |operator, (problem, instead)| {
                let argument = argument.clone();
                all.push(ConditionAdvice { argument, operator, problem, instead });
            };
            for operator in ["prefix", "matches"] {
                let Some(operand) = body.get(operator).and_then(Value::as_str) else { continue };
                if let Some(meaning) = Meaning::of(argument, operand, tool) {
                    add(operator, meaning.advice(operator, operand));
                }
            }
            if let Some(advice) = body.get("argv").and_then(|words| of_words(words, allows)) {
                add("argv", advice);
            }
            if let Some(advice) = body.get("host").and_then(of_hosts) {
                add("host", advice);
            }
        }
        all
    }
}

/// Advice about `argv`.
fn of_words(words: &Value, allows: bool) -> Option<(String, String)> {
    let words: Vec<&str> = words.as_array()?.iter().filter_map(Value::as_str).collect();
    let first = *words.first()?;
    if words.len() == 1 && first.contains(char::is_whitespace) {
        let split: Vec<&str> = first.split_whitespace().collect();
        return Some((
            format!(
                "is one word with a blank, so it only matches a program with the name `{first}`"
            ),
            format!("`\"argv\": {}`", json!(split)),
        ));
    }
    let instead =
        || "the programs and words that are needed: `\"argv\": [\"git\",\"status\",\"*\"]`";
    if allows && first == "*" {
        return Some(("matches every program".to_owned(), instead().to_owned()));
    }
    let problem = if words.contains(&"*") {
        starter(&words).map(|it| format!("lets `{it}` run anything that stands in place of `*`"))
    } else {
        let last = words.last().filter(|last| is_interpreter(last) && words.len() <= 2);
        let reads = last.filter(|_| words.len() == 1 || WRAPPERS.contains(&program(first)));
        reads.map(|it| format!("lets `{}` run anything that it reads", program(it)))
    };
    problem.filter(|_| allows).map(|problem| (problem, instead().to_owned()))
}

/// The program that can start any other program, in words with a `*`.
fn starter<'w>(words: &[&'w str]) -> Option<&'w str> {
    let first = program(words.first()?);
    let starts = |(name, commands): &(&str, &[&str])| {
        let second = words.get(1).copied().unwrap_or_default();
        *name == first && (second == "*" || commands.contains(&second))
    };
    let is_starter = WRAPPERS.contains(&first)
        || STARTERS.contains(&first)
        || is_interpreter(first)
        || STARTING_COMMANDS.iter().any(starts);
    is_starter.then_some(first)
}

/// Whether a program is an interpreter, of any version: `python3.12`.
fn is_interpreter(word: &str) -> bool {
    let name =
        program(word).trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name)
}

/// Advice about `host`.
fn of_hosts(hosts: &Value) -> Option<(String, String)> {
    let listed = hosts.as_array().map_or(std::slice::from_ref(hosts), Vec::as_slice);
    let wild = listed.iter().filter_map(Value::as_str).find(|host| host.contains('*'))?;
    let domain = wild.trim_start_matches(['*', '.']);
    let problem = format!("compares `{wild}` letter by letter: the `*` has no meaning in a host");
    Some((problem, format!("`\"host\": {}, \"subdomains\": true`", json!(domain))))
}

impl Meaning {
    fn of(argument: &str, operand: &str, tool: Option<&str>) -> Option<Self> {
        // The last name of the path says what the argument is: `files.*.path`.
        let mut names = argument.rsplit(['.', '/']);
        let name = names.find(|name| !matches!(*name, "*" | ""))?;
        let words = words_of(name);
        let is = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let runs = || tool.is_some_and(|tool| has_any(tool, SHELLS));
        let scheme = operand.trim_start_matches(['^', '(', '?', ':']).split_once(':');
        let is_web = scheme.is_some_and(|(scheme, _)| {
            ["http", "ws", "ftp"].iter().any(|web| scheme.starts_with(web))
        });
        let runs_last = words.last().is_some_and(|word| RUN.contains(&word.as_str()));
        if is(COMMAND_LINES) || runs_last || runs() && is(&["query", "code", "input"]) {
            Some(Self::CommandLine)
        } else if is_web || is(URLS) && scheme.is_none() {
            Some(Self::Url)
        } else if is(PATHS) && scheme.is_none() {
            Some(Self::Path)
        } else {
            Self::of_operand(operand)
        }
    }

    /// What the operand looks like, whatever the name of the argument is.
    fn of_operand(operand: &str) -> Option<Self> {
        let text = operand.trim_start_matches(['^', '(', '?', ':']);
        let is_path =
            ["/", "~/", "./", "../", "file:/"].iter().any(|start| text.starts_with(start))
                || text.get(1..3).is_some_and(|after| matches!(after, ":\\" | ":/"));
        let first = text.split_once(char::is_whitespace).map(|(first, _)| program(first));
        let runs = |first: &str| PROGRAMS.contains(&first) || WRAPPERS.contains(&first);
        if first.is_some_and(runs) {
            Some(Self::CommandLine)
        } else {
            is_path.then_some(Self::Path)
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
    words_of(text).iter().any(|word| known.contains(&word.as_str()))
}

/// The words of a name in any of the usual spellings: `filePath`, `file_path`, `file-path`.
fn words_of(name: &str) -> Vec<String> {
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
        let all = conditions.advice(Some("shell_run"), true);
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
            advice("x", "prefix", "/srv/data"),
            advice("Befehl", "prefix", "git status"),
            advice("cmds.*", "prefix", "git "),
            advice("y", "matches", "^/usr/bin/git log.*"),
            advice("z", "prefix", "~/notes"),
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
        x prefix `"under": "/srv/data"`
        Befehl prefix `"argv": ["git","status","*"]`
        cmds.* prefix `"argv": ["git","*"]`
        y matches `"argv": ["git","status","*"]`
        z prefix `"under": "~/notes"`
        "#);
    }

    #[test]
    fn words_and_hosts_that_are_too_wide_are_named() {
        let advice = |operand: Value, allows: bool| {
            let conditions = ArgumentConditions::from_value(&json!({ "a": operand })).unwrap();
            let all = conditions.advice(None, allows);
            all.into_iter().map(|one| one.instead).collect::<Vec<_>>().join("; ")
        };
        for wide in [json!(["*"]), json!(["sh", "-c", "*"]), json!(["/usr/bin/python3", "*"])] {
            assert!(advice(json!({ "argv": wide }), true).contains("argv"), "{wide}");
            assert_eq!(advice(json!({ "argv": wide }), false), "", "{wide}");
        }
        let one = json!({ "argv": ["git status"] });
        assert_eq!(advice(one.clone(), true), r#"`"argv": ["git","status"]`"#);
        assert_eq!(advice(one, false), r#"`"argv": ["git","status"]`"#);
        let host = json!({ "host": ["a.test", "*.example.com"] });
        assert_eq!(advice(host, false), r#"`"host": "example.com", "subdomains": true`"#);
        assert_eq!(advice(json!({ "argv": ["git", "log", "*"], "host": "a.test" }), true), "");
    }

    #[test]
    fn words_that_start_other_programs_are_named() {
        let advice = |words: &[&str], allows: bool| {
            let operand = json!({ "a": { "argv": words } });
            let conditions = ArgumentConditions::from_value(&operand).unwrap();
            let all = conditions.advice(None, allows);
            all.into_iter().map(|one| one.problem).collect::<Vec<_>>().join("; ")
        };
        for wide in [
            &["npx", "*"] as &[&str],
            &["npx", "-y", "*"],
            &["find", "*"],
            &["find", "/srv", "*"],
            &["env", "*"],
            &["xargs", "*"],
            &["uvx", "*"],
            &["pipx", "run", "*"],
            &["bunx", "*"],
            &["python", "*"],
            &["python3.12", "*"],
            &["/usr/bin/python3", "-m", "*"],
            &["sh"],
            &["sudo", "bash"],
            &["python3"],
            &["awk", "*"],
            &["make", "*"],
            &["ssh", "host", "*"],
            &["vim", "*"],
            &["tar", "*"],
            &["sed", "*"],
            &["npm", "*"],
            &["npm", "exec", "*"],
            &["npm", "run", "*"],
            &["pnpm", "dlx", "*"],
            &["yarn", "*"],
            &["uv", "run", "*"],
            &["cargo", "run", "*"],
            &["cargo", "*"],
            &["go", "run", "*"],
            &["docker", "run", "*"],
            &["docker", "*"],
            &["kubectl", "exec", "*"],
            &["git", "*"],
            &["git", "-c", "*"],
            &["git", "*", "x"],
        ] {
            assert_ne!(advice(wide, true), "", "{wide:?}");
            assert_eq!(advice(wide, false), "", "{wide:?}");
        }
        for plain in [
            &["git", "status", "*"] as &[&str],
            &["git", "log"],
            &["npm", "--version"],
            &["npm", "run", "test"],
            &["npm", "view", "*"],
            &["docker", "ps", "*"],
            &["kubectl", "get", "*"],
            &["cargo", "check", "*"],
            &["ls", "*"],
            &["cat", "*"],
            &["grep", "*"],
            &["make", "test"],
            &["python3", "check.py"],
            &["find", "/srv"],
        ] {
            assert_eq!(advice(plain, true), "", "{plain:?}");
        }
    }

    #[test]
    fn arguments_that_run_or_reach_something_are_known_by_their_names() {
        for (argument, operator) in [
            ("exec", "argv"),
            ("run", "argv"),
            ("args", "argv"),
            ("args.*", "argv"),
            ("options.argv", "argv"),
            ("preRun", "argv"),
            ("program", "argv"),
            ("executable", "argv"),
            ("arguments", "argv"),
            ("endpoint", "host"),
            ("apiEndpoint", "host"),
            ("webhook", "host"),
            ("callback_url", "host"),
            ("workdir", "under"),
            ("directories.*", "under"),
        ] {
            for compared in ["prefix", "matches"] {
                let said = advice(argument, compared, "x");
                assert!(said.contains(&format!("`\"{operator}\":")), "{argument}: {said}");
            }
        }
        for argument in ["run_id", "runner", "argument_count", "program_id", "executionTime"] {
            assert_eq!(advice(argument, "prefix", "x"), "", "{argument}");
        }
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
        assert_eq!(search.advice(Some("web_search"), true), []);
        let exact = json!({ "command": { "equals": "ls" }, "path": { "under": "/srv" } });
        assert_eq!(ArgumentConditions::from_value(&exact).unwrap().advice(None, true), []);
    }
}
