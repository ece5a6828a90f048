//! The words that tell what a tool does, and what its data is about.

/// Words that mean the same here.
pub(super) type WordSet = &'static [&'static str];

/// The words of a name or a text, in order: lower case, without the `s` of a plural.
#[derive(Debug, Clone, Default)]
pub(super) struct Words(pub(super) Vec<String>);

/// What a verb says of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Changes,
    Computes,
    Sends,
}

pub(super) const READS: WordSet = &[
    "get",
    "list",
    "read",
    "search",
    "find",
    "query",
    "describe",
    "show",
    "fetch",
    "view",
    "retrieve",
    "lookup",
    "browse",
    "inspect",
    "scan",
    "count",
    "status",
    "diff",
    "log",
    "open",
    "export",
    "download",
    "review",
    "select",
    "resolve",
    "explain",
    "history",
    "head",
    "tail",
    "range",
    "lrange",
    "hget",
    "hgetall",
    "smember",
    "pop",
    "arrpop",
    "observe",
    "extract",
    "screenshot",
    "snapshot",
    "capture",
    "graph",
    "info",
    "detail",
    "summary",
    "console",
    "troubleshooting",
    "diagnose",
    "diagnostic",
    "monitor",
    "summarize",
    "return",
    "report",
];
pub(super) const CHANGES: WordSet = &[
    "create",
    "update",
    "delete",
    "add",
    "set",
    "remove",
    "insert",
    "write",
    "edit",
    "modify",
    "patch",
    "apply",
    "move",
    "rename",
    "cancel",
    "stop",
    "start",
    "put",
    "upload",
    "import",
    "merge",
    "drop",
    "clear",
    "reset",
    "enable",
    "disable",
    "toggle",
    "assign",
    "unassign",
    "approve",
    "close",
    "resize",
    "click",
    "drag",
    "install",
    "uninstall",
    "rollback",
    "configure",
    "deploy",
    "register",
    "archive",
    "restore",
    "trim",
    "push",
    "lpush",
    "rpush",
    "rem",
    "destroy",
    "save",
    "append",
    "commit",
    "invoke",
    "migrate",
    "emulate",
    "disconnect",
    "connect",
    "reconnect",
    "activate",
    "optimize",
    "wait",
    "ping",
];
pub(super) const COMPUTES: WordSet = &[
    "convert",
    "calculate",
    "compute",
    "validate",
    "verify",
    "simplify",
    "format",
    "parse",
    "generate",
    "simulate",
    "think",
    "thought",
    "estimate",
    "snap",
    "echo",
    "demonstrate",
];
pub(super) const SENDS: WordSet = &[
    "send",
    "post",
    "publish",
    "broadcast",
    "reply",
    "notify",
    "share",
    "tweet",
    "announce",
    "invite",
    "feedback",
    "forward",
];
/// What people write to each other.
pub(super) const MESSAGES: WordSet = &[
    "message",
    "email",
    "mail",
    "sms",
    "comment",
    "worklog",
    "review",
    "announcement",
    "reply",
    "notification",
];
pub(super) const MANAGES: WordSet =
    &["manage", "managing", "management", "operation", "admin", "request"];
/// What everybody can see.
pub(super) const PUBLIC: WordSet = &[
    "documentation",
    "doc",
    "docs",
    "web",
    "internet",
    "news",
    "weather",
    "timezone",
    "time",
    "guidance",
    "guide",
    "tutorial",
    "practice",
    "instruction",
    "prompt",
    "help",
    "registry",
    "library",
    "package",
    "market",
    "stock",
    "crypto",
    "currency",
    "quote",
    "wikipedia",
    "arxiv",
    "place",
    "map",
    "geocode",
    "direction",
    "elevation",
    "distance",
    "route",
    "isochrone",
    "kernel",
    "webpage",
    "website",
];
/// What people outside can write.
pub(super) const STRANGERS: WordSet = &[
    "web",
    "internet",
    "news",
    "mail",
    "email",
    "message",
    "inbox",
    "chat",
    "conversation",
    "comment",
    "issue",
    "ticket",
    "review",
    "pull",
    "tweet",
    "feed",
    "rss",
    "forum",
    "thread",
    "browser",
    "website",
    "webpage",
    "log",
    "calendar",
    "contact",
    "crm",
    "replay",
    "transcript",
    "article",
    "console",
];
/// Settings and numbers, which nobody outside writes.
pub(super) const QUIET: WordSet =
    &["quota", "count", "setting", "config", "status", "template", "schema", "field", "column"];
/// Settings, and what the user's own people make. The last word of a name counts.
pub(super) const SETTINGS: WordSet = &[
    "type",
    "label",
    "priority",
    "tag",
    "permission",
    "role",
    "property",
    "team",
    "member",
    "project",
    "organization",
    "organisation",
    "workspace",
    "owner",
    "folder",
    "board",
    "sprint",
    "cycle",
    "milestone",
    "branch",
    "release",
    "dsn",
    "token",
    "key",
    "webhook",
    "rule",
    "tip",
    "limit",
    "plan",
    "feature",
    "flag",
    "definition",
    "category",
    "transition",
    "watcher",
    "sla",
    "date",
    "metric",
    "dashboard",
    "me",
    "whoami",
    "account",
    "profile",
];
/// Services where people outside write.
pub(super) const PLATFORMS: WordSet = &[
    "github",
    "gitlab",
    "bitbucket",
    "gitea",
    "reddit",
    "twitter",
    "bluesky",
    "mastodon",
    "facebook",
    "instagram",
    "linkedin",
    "youtube",
    "tiktok",
    "wikipedia",
    "hackernews",
    "stackoverflow",
    "discourse",
    "medium",
    "slack",
    "discord",
    "telegram",
    "whatsapp",
    "signal",
    "gmail",
    "outlook",
    "imap",
    "mail",
    "zendesk",
    "intercom",
    "freshdesk",
    "helpscout",
    "front",
    "hubspot",
    "salesforce",
    "pipedrive",
    "sentry",
    "bugsnag",
    "rollbar",
    "jira",
    "trello",
    "asana",
    "youtrack",
];
/// More of what people outside write, in a name.
pub(super) const WRITTEN: WordSet = &[
    "feedback",
    "submission",
    "attachment",
    "mention",
    "notification",
    "discussion",
    "answer",
    "post",
    "engagement",
    "exception",
    "crash",
];
/// The same at the beginning of a description, where a word means less.
pub(super) const WRITTEN_TEXTS: WordSet = &[
    "comment",
    "email",
    "message",
    "inbox",
    "conversation",
    "issue",
    "ticket",
    "tweet",
    "post",
    "forum",
    "thread",
    "article",
    "feed",
    "transcript",
    "feedback",
    "reply",
    "webpage",
    "website",
    "attachment",
];
/// Tools that look for the cause of a problem.
pub(super) const DIAGNOSES: WordSet =
    &["troubleshoot", "troubleshooting", "diagnose", "diagnostic", "diagnosis", "debug"];
/// Tools that show another page.
pub(super) const NAVIGATES: WordSet = &["navigate", "back", "forward", "reload", "goto"];
pub(super) const RUNS: WordSet = &[
    "exec", "execute", "eval", "evaluate", "shell", "command", "bash", "terminal", "repl", "code",
    "script", "run",
];
/// Arguments that are code.
pub(super) const CODE: WordSet = &["code", "command", "script", "function", "expression", "cmd"];
/// What outside services make or know.
pub(super) const OUTSIDE: WordSet = &[
    "documentation",
    "doc",
    "docs",
    "web",
    "internet",
    "website",
    "webpage",
    "map",
    "geocode",
    "direction",
    "elevation",
    "distance",
    "isochrone",
    "matrix",
    "place",
    "music",
    "speech",
    "voice",
    "image",
    "picture",
    "video",
    "sound",
    "chart",
    "diagram",
    "translate",
];
pub(super) const BROWSER: WordSet = &[
    "browser",
    "browserbase",
    "navigate",
    "tab",
    "dom",
    "chrome",
    "playwright",
    "puppeteer",
    "selenium",
    "website",
];

impl Kind {
    /// What a word says, if it is a verb that is known.
    pub(super) fn of(word: &str) -> Option<Self> {
        let kinds = [
            (READS, Self::Reads),
            (CHANGES, Self::Changes),
            (COMPUTES, Self::Computes),
            (SENDS, Self::Sends),
        ];
        kinds.into_iter().find(|(set, _)| set.contains(&word)).map(|(_, kind)| kind)
    }
}

impl Words {
    /// The first word that is in the set.
    pub(super) fn any(&self, set: &[&str]) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|word| set.contains(word))
    }

    /// The last word of what a name is about: `type` in `list_issue_types_by_project`.
    pub(super) fn head(&self) -> Option<&str> {
        const ENDS: WordSet = &["by", "from", "for", "of", "in", "with", "on", "to"];
        self.0.iter().map(String::as_str).take_while(|word| !ENDS.contains(word)).last()
    }

    /// The first words.
    pub(super) fn first(&self, count: usize) -> First<'_> {
        First(&self.0[..self.0.len().min(count)])
    }
}

/// Some words of a text.
pub(super) struct First<'w>(&'w [String]);

impl<'w> First<'w> {
    pub(super) fn any(&self, set: &[&str]) -> Option<&'w str> {
        self.0.iter().map(String::as_str).find(|word| set.contains(word))
    }
}

/// Splits at everything but letters and digits, and where a capital letter begins a word.
pub(super) fn words(text: &str) -> Words {
    let mut found = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = text.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let next = letters.get(at + 1);
        let begins = letter.is_ascii_uppercase()
            && (before
                .is_some_and(|before| before.is_ascii_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(|before| before.is_ascii_uppercase())
                    && next.is_some_and(char::is_ascii_lowercase)));
        if begins || !letter.is_ascii_alphanumeric() {
            found.extend(stem(&std::mem::take(&mut word)));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    found.extend(stem(&word));
    Words(found)
}

/// The word in the singular; `None` if it is empty.
fn stem(word: &str) -> Option<String> {
    if word.is_empty() {
        return None;
    }
    let length = word.len();
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    Some(if ["news", "hackernews", "dns", "sms", "aws"].contains(&word) {
        word.to_owned()
    } else if length > 4 && ends(&["ies"]) {
        format!("{}y", &word[..length - 3])
    } else if length > 4 && ends(&["sses", "ches", "shes", "xes"]) {
        word[..length - 2].to_owned()
    } else if length > 3 && ends(&["s"]) && !ends(&["ss", "us", "is"]) {
        word[..length - 1].to_owned()
    } else {
        word.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let split = |text: &str| words(text).0.join(" ");
        assert_eq!(split("get_issueComments"), "get issue comment");
        assert_eq!(split("API-listItems2"), "api list items2");
        assert_eq!(split("queries boxes classes news"), "query box class news");
    }

    #[test]
    fn the_last_word_says_what_a_name_is_about() {
        let head = |text: &str| words(text).head().map(str::to_owned);
        assert_eq!(head("list_mail_folders").as_deref(), Some("folder"));
        assert_eq!(head("list_mail_folder_messages").as_deref(), Some("message"));
        assert_eq!(head("getIssueTypesByProject").as_deref(), Some("type"));
        assert_eq!(head("by"), None);
    }
}
