//! Command lines, split into words as a shell splits them.

use serde_json::Value;

use super::Truth;

const MAX_WORDS: usize = 100;

/// Programs that run the program that follows.
pub(super) const WRAPPERS: &[&str] = &[
    "bash", "busybox", "chroot", "command", "dash", "doas", "env", "eval", "exec", "fish", "flock",
    "ionice", "ksh", "nice", "nohup", "nsenter", "parallel", "setsid", "sh", "ssh", "stdbuf", "su",
    "sudo", "time", "timeout", "unshare", "watch", "xargs", "zsh",
];

/// The words that a command line may have.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    /// `None` stands for any word.
    words: Vec<Option<Box<str>>>,
    /// Any number of words may follow.
    open: bool,
}

impl CommandPattern {
    /// Reads a list of words. `*` is any word, and at the end any number of words.
    pub(super) fn new(operand: &Value) -> Option<Self> {
        let listed = operand.as_array().filter(|words| (1..=MAX_WORDS).contains(&words.len()))?;
        let mut words: Vec<Option<Box<str>>> = listed
            .iter()
            .map(|word| match word.as_str()? {
                "*" => Some(None),
                // `*.txt` would look like a pattern and be none.
                word if word.contains('*') => None,
                word => Some(Some(word.into())),
            })
            .collect::<Option<_>>()?;
        let open = words.last().is_some_and(Option::is_none);
        if open {
            words.pop();
        }
        Some(Self { words, open })
    }

    /// Whether a command line has these words.
    ///
    /// Everything that is not plain words is unclear, because it can do more than it shows: a
    /// second command, a substitution, a redirection, a variable. A list is the words themselves.
    /// A server may still join them for a shell, so each must be one plain word there too.
    ///
    /// It is unclear too whether `/bin/rm` is `rm`, and what `sudo rm` runs.
    pub(super) fn judge(&self, value: &Value) -> Truth {
        let words = match value {
            Value::Null => return Truth::No,
            Value::String(line) => split(line),
            Value::Array(listed) => {
                let word = |(index, one): (usize, &Value)| {
                    let word = one.as_str()?;
                    // Only before the program does `A=b` set a variable.
                    let line = if index == 0 { word.to_owned() } else { format!("x {word}") };
                    (split(&line)?.get(usize::from(index > 0)..)? == [word])
                        .then(|| word.to_owned())
                };
                listed.iter().enumerate().map(word).collect()
            }
            _ => None,
        };
        match words {
            None => Truth::Unclear,
            Some(words) if self.fits(&words) => Truth::Yes,
            Some(words) if self.may_be(&words) => Truth::Unclear,
            Some(_) => Truth::No,
        }
    }

    fn fits(&self, words: &[String]) -> bool {
        let fits = |(wanted, found): (&Option<Box<str>>, &String)| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        let enough = words.len() == self.words.len() || self.open && words.len() > self.words.len();
        enough && self.words.iter().zip(words).all(fits)
    }

    /// Whether another spelling of the program, or a program before it, may hide these words.
    fn may_be(&self, words: &[String]) -> bool {
        let (Some(Some(wanted)), Some(found)) = (self.words.first(), words.first()) else {
            return false;
        };
        let wanted = program(wanted);
        if WRAPPERS.contains(&program(found)) && program(found) != wanted {
            let is_part = |letter: char| letter.is_alphanumeric() || "_-./+".contains(letter);
            let mut parts = words[1..].iter().flat_map(|word| word.split(|it| !is_part(it)));
            return parts.any(|part| program(part) == wanted);
        }
        // The same words with another spelling of the program.
        let mut same = self.clone();
        same.words[0] = None;
        program(found) == wanted && same.fits(words)
    }
}

/// The name of a program without its folder.
pub(super) fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Splits a line into words. Returns `None` if a shell would see more in it than plain words.
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        other => word.push(printable(other)?),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '$' | '`' | '!' => return None,
                        // Before other letters the backslash stays.
                        '\\' => {
                            word.push(
                                letters.next_if(|next| "$`\"\\".contains(*next)).unwrap_or('\\'),
                            );
                        }
                        other => word.push(printable(other)?),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(printable(letters.next()?)?),
            // `HEAD~1` is plain, `~ada` and `a=~` are not.
            '~' if word.as_ref().is_some_and(|word| word.ends_with(char::is_alphanumeric)) => {
                word.get_or_insert_default().push('~');
            }
            // Some shells replace `=ls` with a path.
            '=' if word.is_none() => return None,
            other if other.is_alphanumeric() || "_-./:=,@%+".contains(other) => {
                word.get_or_insert_default().push(other);
            }
            _ => return None,
        }
    }
    words.extend(word);
    // `A=b command` sets a variable for the command.
    words.first().is_none_or(|command| !command.contains('=')).then_some(words)
}

fn printable(letter: char) -> Option<char> {
    (!letter.is_control()).then_some(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge(pattern: &Value, value: &Value) -> Truth {
        CommandPattern::new(pattern).unwrap().judge(value)
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let found = |line: &str| split(line).unwrap().join("|");
        assert_eq!(found("git  status\t-s "), "git|status|-s");
        assert_eq!(
            found(r#"git log --format=%H 'a b'"c d"\ e HEAD~1"#),
            "git|log|--format=%H|a bc d e|HEAD~1"
        );
        assert_eq!(found("echo '' \"\""), "echo||");
        assert_eq!(found(r#"echo "\$5 \"a\" \n""#), r#"echo|$5 "a" \n"#);
        assert_eq!(found(""), "");
        assert_eq!(found("grep 'a;b $x `y`' ."), "grep|a;b $x `y`|.");
    }

    #[test]
    fn a_command_line_with_shell_syntax_is_unclear() {
        for line in [
            "git status; rm -rf x",
            "git status;rm -rf x",
            "git status && rm x",
            "git status || rm x",
            "git status & rm x",
            "git status | sh",
            "git status > /etc/passwd",
            "git status < x",
            "git status 2>&1",
            "git status $(rm x)",
            "git status `rm x`",
            "git status \"$(rm x)\"",
            "git status \"`rm x`\"",
            "git status $HOME",
            "git status ${HOME}",
            "git status \"$HOME\"",
            "git status $'a'",
            "git status\nrm x",
            "git status\rrm x",
            "git status 'a\nb'",
            "git status \\\nx",
            "git status \0",
            "git status *",
            "git status a?",
            "git status [ab]",
            "git status {a,b}",
            "git status ~/x",
            "git status ~ada",
            "git status x=~",
            "git status !!",
            "git status \"!x\"",
            "git status \"\\\\$HOME\"",
            "git status # x",
            "git status 'x",
            "git status \"x",
            "git status x\\",
            "git status (x)",
            "git status \u{a0}x",
            "GIT_PAGER=x git status",
            "git status =ls",
            "git status ^a^b",
        ] {
            assert_eq!(
                judge(&json!(["git", "status", "*"]), &json!(line)),
                Truth::Unclear,
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_star_is_one_word_and_at_the_end_any_number() {
        let status = json!(["git", "status", "*"]);
        for line in ["git status", "git status -s", "git 'status' -s \"a b\"", "g\\it status"] {
            assert_eq!(judge(&status, &json!(line)), Truth::Yes, "{line}");
        }
        for line in ["git", "git push", "git statusx", "'git status'", "rm git status", ""] {
            assert_eq!(judge(&status, &json!(line)), Truth::No, "{line}");
        }
        let remote = json!(["git", "*", "origin"]);
        assert_eq!(judge(&remote, &json!("git fetch origin")), Truth::Yes);
        assert_eq!(judge(&remote, &json!("git fetch -f origin")), Truth::No);
        assert_eq!(judge(&json!(["ls"]), &json!("ls -l")), Truth::No);
        assert_eq!(judge(&json!(["*"]), &json!("ls -l")), Truth::Yes);
    }

    #[test]
    fn a_program_in_another_spelling_or_behind_another_is_unclear() {
        let remove = json!(["rm", "*"]);
        for line in [
            "/bin/rm x",
            "./rm x",
            "sudo rm x",
            "sudo -u root /bin/rm x",
            "env A=b rm x",
            "/usr/bin/env rm x",
            "xargs rm",
            "sh -c 'rm x'",
            "bash -c 'true;rm x'",
            "nohup nice -n 5 rm x",
        ] {
            assert_eq!(judge(&remove, &json!(line)), Truth::Unclear, "{line}");
        }
        for line in ["ls rm", "git rm x", "sudo ls", "/bin/ls x", "sh -c 'format x'"] {
            assert_eq!(judge(&remove, &json!(line)), Truth::No, "{line}");
        }
        assert_eq!(judge(&json!(["rm", "-r", "*"]), &json!("/bin/rm x")), Truth::No);
        assert_eq!(judge(&json!(["/bin/rm", "*"]), &json!("rm x")), Truth::Unclear);
        assert_eq!(judge(&json!(["sudo", "ls"]), &json!("sudo ls")), Truth::Yes);
    }

    #[test]
    fn a_list_is_the_words() {
        let status = json!(["git", "status", "*"]);
        assert_eq!(judge(&status, &json!(["git", "status", "-s"])), Truth::Yes);
        assert_eq!(judge(&status, &json!(["git", "push"])), Truth::No);
        for joined in [json!(["git", "status", "; rm x"]), json!(["git", "status", 1]), json!({})] {
            assert_eq!(judge(&status, &joined), Truth::Unclear, "{joined}");
        }
        assert_eq!(judge(&status, &json!(null)), Truth::No);
        // No element is split again, and none is more than it says.
        let log = json!(["git", "log", "*"]);
        assert_eq!(judge(&log, &json!(["git", "log", "--format=%H", "a=b"])), Truth::Yes);
        for odd in [["git", "log -p"], ["git log", "x"], ["git", "'log'"], ["git", ""]] {
            assert_ne!(judge(&log, &json!(odd)), Truth::Yes, "{odd:?}");
        }
        assert_eq!(judge(&json!(["*"]), &json!(["A=b", "git"])), Truth::Unclear);
    }

    #[test]
    fn a_pattern_has_only_whole_stars() {
        for wrong in [json!([]), json!("git status"), json!(["git", 7]), json!(["git", "sta*"])] {
            assert!(CommandPattern::new(&wrong).is_none(), "{wrong}");
        }
    }
}
