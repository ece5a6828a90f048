//! Proposes labels and rules for a tool, by its annotations, its names and its schema.
//!
//! A definition does not say what data a tool has, so that this is a guess, with a reason that a
//! person can judge. Nothing uses a proposal before a person has accepted it.

mod words;

use serde::Serialize;
use serde_json::Value;
use toolgate_catalog::Definition;

use crate::{Annotations, Claims, Hint, Label, Trust, Verdict};
use words::{
    BROWSER, CHANGES, CODE, COMPUTES, DIAGNOSES, Kind, MANAGES, MESSAGES, NAVIGATES, OUTSIDE,
    PLATFORMS, PUBLIC, QUIET, READS, RUNS, SENDS, SETTINGS, STRANGERS, WRITTEN, WRITTEN_TEXTS,
    WordSet, Words, words,
};

/// What is proposed for one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The labels.
    pub labels: Vec<SuggestedLabel>,
    /// A verdict for a rule about the tool.
    pub rule: Option<SuggestedRule>,
}

/// A label, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuggestedLabel {
    /// The label.
    pub label: Label,
    /// The reason, as a part of a sentence about the tool.
    pub reason: String,
}

/// The verdict of a rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuggestedRule {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, as a part of a sentence about the tool.
    pub reason: String,
}

/// The most characters of a description that are read. The first sentence says what a tool does.
const DESCRIPTION: usize = 200;
/// The most properties of a schema that are read.
const PROPERTIES: usize = 200;
/// How many words of the description are close to its beginning.
const NEAR: usize = 14;

/// What a definition says.
struct Facts {
    server: Words,
    name: Words,
    description: Words,
    properties: Words,
    has_text: bool,
    annotations: Annotations,
    /// The word for what the tool does.
    verb: Option<String>,
    is_verb_in_name: bool,
}

/// Proposes labels and a rule for a tool of this server.
pub fn suggest(server: &str, definition: &Definition) -> Suggestion {
    let facts = Facts::of(server, definition);
    let mut labels = Vec::new();
    let mut add = |label, reason: Option<String>| {
        labels.extend(reason.map(|reason| SuggestedLabel { label, reason }));
    };
    let untrusted = facts.untrusted();
    let comes_from_the_web = facts.reaches_the_web() || facts.runs_in_a_browser();
    add(Label::Private, facts.private().filter(|_| !comes_from_the_web));
    add(Label::Untrusted, untrusted);
    add(Label::Egress, facts.egress());
    Suggestion { labels, rule: facts.rule() }
}

impl Facts {
    fn of(server: &str, definition: &Definition) -> Self {
        let server = words(server);
        let mut name = words(definition.name());
        let own: Vec<String> =
            name.0.iter().filter(|word| !server.0.contains(word)).cloned().collect();
        if !own.is_empty() {
            name = Words(own);
        }
        let description = words(&first_sentence(definition.description()));
        let schema = definition.input_schema();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = || properties.into_iter().flatten().take(PROPERTIES);
        let is_text = |schema: &Value| {
            let is = |kind: &Value| matches!(kind.as_str(), Some("string" | "array" | "object"));
            match schema.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().any(is),
                Some(kind) => is(kind),
                None => false,
            }
        };
        let has_text = properties().any(|(_, schema)| is_text(schema));
        let properties = Words(properties().flat_map(|(key, _)| words(key).0).collect());
        let mut verbs = name.0.iter().filter(|word| Kind::of(word).is_some());
        // `post` may be the method of a request that only searches.
        let searches = name.any(&["search", "query", "list", "read"]).is_some();
        let in_name = verbs.find(|word| !(searches && word.as_str() == "post")).cloned();
        let is_verb_in_name = in_name.is_some();
        let in_description = || description.0.iter().take(4).find(|word| Kind::of(word).is_some());
        let verb = in_name.or_else(|| in_description().cloned());
        let annotations = Annotations::of(definition);
        Self { server, name, description, properties, has_text, annotations, verb, is_verb_in_name }
    }

    fn claims(&self, hint: Hint) -> bool {
        match hint {
            // Without a claim these would be assumed.
            Hint::DestructiveHint => self.annotations.declares_destructive(),
            Hint::OpenWorldHint => self.annotations.declares_open_world(),
            Hint::ReadOnlyHint | Hint::IdempotentHint => {
                self.annotations.holds(hint, Claims::All, Trust::Unknown)
            }
        }
    }

    fn does(&self, kind: WordSet) -> bool {
        self.verb.as_deref().is_some_and(|verb| kind.contains(&verb))
    }

    fn changes(&self) -> bool {
        self.does(CHANGES) || self.does(SENDS)
    }

    fn computes(&self) -> bool {
        self.does(COMPUTES) || (self.name.any(COMPUTES).is_some() && !self.does(READS))
    }

    fn reads(&self) -> bool {
        if self.claims(Hint::DestructiveHint) && !self.does(READS) {
            return false;
        }
        let is_said = self.claims(Hint::ReadOnlyHint) && !self.changes() && !self.computes();
        self.does(READS) || (is_said && self.verb.is_some())
    }

    /// A word of the name, the server or the beginning of the description.
    fn near(&self, set: WordSet) -> Option<&str> {
        let description = || self.description.first(NEAR).any(set);
        self.name.any(set).or_else(|| self.server.any(set)).or_else(description)
    }

    fn manages(&self) -> bool {
        let begins = || self.description.first(10).any(MANAGES).is_some();
        let in_name = self.name.any(MANAGES).is_some();
        let is_open = !self.is_verb_in_name && !self.claims(Hint::ReadOnlyHint);
        (is_open && (in_name || begins())) || (in_name && !self.changes())
    }

    fn runs_code(&self) -> bool {
        self.name.any(RUNS).is_some() && self.properties.any(CODE).is_some()
    }

    fn is_in_browser(&self) -> bool {
        let named = self.name.any(BROWSER).or_else(|| self.server.any(BROWSER)).is_some();
        let is_page = || {
            self.name.any(&["page"]).is_some()
                && self.description.any(&["browser", "tab", "window"]).is_some()
        };
        named || is_page()
    }

    fn runs_in_a_browser(&self) -> bool {
        self.runs_code() && self.is_in_browser()
    }

    fn is_of_the_web(&self) -> bool {
        self.near(&["web", "internet", "website", "webpage"]).is_some()
    }

    /// Whether an argument names what is fetched from elsewhere.
    fn fetches(&self) -> bool {
        let is_named = self.properties.any(&["url", "uri", "href", "link"]).is_some();
        let does = self
            .does(&["fetch", "navigate", "open", "browse", "download", "read", "scrape", "crawl"])
            || self.name.any(&["fetch", "navigate", "scrape", "crawl"]).is_some();
        let is_outside = self.is_of_the_web()
            || self.is_in_browser()
            || !self.claims(Hint::ReadOnlyHint)
            || self.claims(Hint::OpenWorldHint);
        is_named && does && is_outside
    }

    fn searches_the_web(&self) -> bool {
        let asks = self.properties.any(&["query", "q", "search", "keyword"]).is_some();
        self.reads() && self.is_of_the_web() && asks
    }

    /// Whether what it returns is of the web, and not of the user.
    fn reaches_the_web(&self) -> bool {
        (self.fetches() && !self.is_documentation()) || self.searches_the_web()
    }

    fn is_documentation(&self) -> bool {
        let set = &["documentation", "doc", "docs"];
        self.name.any(set).is_some() || self.description.first(NEAR).any(set).is_some()
    }

    fn private(&self) -> Option<String> {
        if self.runs_code() {
            return Some("it runs code, which can read everything that its server can".to_owned());
        }
        if self.near(PUBLIC).is_some() || self.is_in_browser() {
            return None;
        }
        let verb = self.verb.as_deref().unwrap_or_default();
        if self.reads() {
            let how =
                if self.does(READS) { format!("it reads (`{verb}`)") } else { "it reads".into() };
            return Some(format!("{how}, and nothing says that the data is public"));
        }
        self.manages().then(|| "it manages things of an account, and so shows them too".to_owned())
    }

    fn untrusted(&self) -> Option<String> {
        if self.reaches_the_web() || self.runs_in_a_browser() {
            return Some("it returns what is on the web, which anybody can write".to_owned());
        }
        let is_own_log =
            self.name.any(&["log"]).is_some() && self.description.any(&["commit"]).is_some();
        if self.name.any(QUIET).is_some() || is_own_log {
            return None;
        }
        // Folders, types and members of what strangers write are the user's own.
        let is_setting = self.name.head().is_some_and(|head| SETTINGS.contains(&head));
        let written = |word: &str| format!("it returns what other people write (`{word}`)");
        let of_page = || "it returns what a page has, which anybody can write".to_owned();
        if self.reads() {
            if let Some(word) = self.name.any(STRANGERS) {
                return (!is_setting).then(|| written(word));
            }
            if self.is_in_browser() {
                return Some(of_page());
            }
            if ["owner", "repo"].iter().all(|it| self.properties.any(&[it]).is_some()) {
                return Some("it returns what the contributors of a repository write".to_owned());
            }
        }
        if is_setting {
            return None;
        }
        if self.is_in_browser() && self.name.any(NAVIGATES).is_some() {
            return Some(of_page());
        }
        if self.name.any(DIAGNOSES).is_some() {
            return Some("it shows logs and events, which may quote strangers".to_owned());
        }
        if !self.reads() {
            return None;
        }
        if let Some(place) = self.server.any(PLATFORMS) {
            return Some(format!("it reads from `{place}`, where other people write"));
        }
        let word = self.name.any(WRITTEN).or_else(|| self.description.first(8).any(WRITTEN_TEXTS));
        if let Some(word) = word {
            return Some(written(word));
        }
        let meets = &["calendar", "meeting", "invitation", "attendee"];
        if self.name.any(&["event"]).is_some() && self.near(meets).is_some() {
            return Some("it returns meetings, to which other people invite".to_owned());
        }
        let tells = |set| self.name.any(set).or_else(|| self.description.first(NEAR).any(set));
        let is_documented = tells(&["doc", "docs", "documentation", "readme"]).is_some();
        let word = tells(&["library", "package"]).filter(|_| is_documented)?;
        Some(format!("it returns what the authors of any {word} write"))
    }

    fn egress(&self) -> Option<String> {
        if self.runs_code() {
            return Some("it runs code, which can send anything anywhere".to_owned());
        }
        if self.fetches() {
            return Some("it fetches an address that its arguments name".to_owned());
        }
        if self.searches_the_web() {
            return Some("it sends its query to the web".to_owned());
        }
        if self.does(SENDS) || (!self.reads() && self.description.first(1).any(SENDS).is_some()) {
            return Some("it sends its arguments to others".to_owned());
        }
        if self.changes() && !self.does(&["delete", "remove"]) {
            let message = self.name.any(MESSAGES);
            if let Some(word) = message.filter(|_| self.name.any(&["reaction"]).is_none()) {
                return Some(format!("it writes what other people read (`{word}`)"));
            }
            let word = self.name.any(&["issue", "ticket", "discussion", "pr"]);
            let writes = self.does(&["create", "update", "add", "edit"]);
            if let Some(word) = word.filter(|_| writes && self.name.any(&["link"]).is_none()) {
                return Some(format!("it writes what other people read (`{word}`)"));
            }
        }
        let outside = self.name.any(OUTSIDE).or_else(|| self.server.any(OUTSIDE));
        let hands_over = self.computes() || self.reads() || !self.is_verb_in_name;
        if let Some(word) = outside
            && self.has_text
            && !self.changes()
            && hands_over
            && self.private().is_none()
        {
            return Some(format!("it hands its arguments to an outside service (`{word}`)"));
        }
        let asks_outside = self.claims(Hint::OpenWorldHint) && self.claims(Hint::ReadOnlyHint);
        (asks_outside && self.has_text && self.near(PUBLIC).is_some())
            .then(|| "it claims to reach the outside (`openWorldHint`)".to_owned())
    }

    fn rule(&self) -> Option<SuggestedRule> {
        let ask =
            |reason: &str| Some(SuggestedRule { verdict: Verdict::Ask, reason: reason.into() });
        if self.runs_code() {
            return ask("it runs whatever code or command its arguments have");
        }
        if self.reads() && !self.claims(Hint::DestructiveHint) {
            return None;
        }
        let access = &["role", "permission", "access", "credential", "member", "collaborator"];
        if self.changes() && self.name.any(access).is_some() {
            return ask("it changes who has access");
        }
        let money = &["order", "payment", "pay", "purchase", "transfer", "trade", "refund"];
        let spends = self.does(&["create", "place", "submit", "send", "post", "make"]);
        if spends && self.name.any(money).is_some() {
            return ask("it may spend money");
        }
        let destroys = &["delete", "drop", "destroy", "remove", "purge", "uninstall", "cleanup"];
        if self.claims(Hint::DestructiveHint) {
            return ask("it declares itself destructive");
        }
        if self.does(destroys) { ask("it removes something") } else { None }
    }
}

/// The first sentence of a description, without what is not ASCII.
fn first_sentence(description: &str) -> String {
    let ascii = description.chars().take(DESCRIPTION * 4);
    let ascii: String =
        ascii.filter(|letter| letter.is_ascii() || letter.is_whitespace()).collect();
    let line = ascii.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = [". ", "! ", "? ", "Args", "Returns", "Parameters", "Usage", "When to use"];
    // A heading at the beginning is no end.
    let end = ends.iter().filter_map(|end| line.find(end)).filter(|at| *at > 0).min();
    line.chars().take(end.unwrap_or(DESCRIPTION).min(DESCRIPTION)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn suggested(server: &str, definition: &Value) -> String {
        let definition = Definition::from_value(definition).unwrap();
        let Suggestion { labels, rule } = suggest(server, &definition);
        let labels = labels.iter().map(|it| format!("{}: {}", it.label.as_str(), it.reason));
        let rule = rule.map(|it| format!("{}: {}", it.verdict, it.reason));
        labels.chain(rule).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_label_has_its_reason() {
        let text =
            |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
        let tools = [
            ("crm", json!({ "name": "list_customers", "inputSchema": {} })),
            ("mail", json!({ "name": "read_inbox", "inputSchema": {} })),
            ("mail", json!({ "name": "send_mail", "inputSchema": text("body") })),
            ("web", json!({ "name": "fetch", "inputSchema": text("url") })),
            ("box", json!({ "name": "run_command", "inputSchema": text("command") })),
            ("crm", json!({ "name": "delete_customer", "inputSchema": text("id") })),
            ("clock", json!({ "name": "get_current_time", "inputSchema": text("timezone") })),
        ];
        let told: Vec<String> =
            tools.iter().map(|(server, tool)| suggested(server, tool)).collect();
        insta::assert_snapshot!(told.join("\n--\n"));
    }

    #[test]
    fn what_other_people_write_is_untrusted() {
        let is_untrusted = |server: &str, name: &str, description: &str| {
            let tool = json!({ "name": name, "description": description, "inputSchema": {} });
            suggested(server, &tool).contains("untrusted")
        };
        for (server, name, description) in [
            ("github", "search_users", "Search for users"),
            ("slack", "history", "Read a channel"),
            ("desk", "search", "Search tickets of customers"),
            ("shop", "list_submissions", "List what visitors sent"),
            ("cloud", "troubleshoot_service", "Find out why a service fails"),
            ("plan", "list_events", "List events of a calendar"),
            ("browser", "navigate_back", "Go back"),
            ("libraries", "get_docs", "Fetch documentation of a package"),
            ("mail", "list_mail_folder_messages", "List messages"),
        ] {
            assert!(is_untrusted(server, name, description), "{server}/{name}");
        }
        for (server, name, description) in [
            ("jira", "list_issue_types", "List types"),
            ("mail", "list_mail_folders", "List folders"),
            ("github", "get_me", "Get the user"),
            ("github", "create_branch", "Create a branch"),
            ("cloud", "list_events", "List events of a cluster"),
            ("crm", "create_ticket", "Create a ticket"),
            ("browser", "resize", "Resize the window"),
        ] {
            assert!(!is_untrusted(server, name, description), "{server}/{name}");
        }
    }

    #[test]
    fn hostile_definitions_are_read_in_bounded_time() {
        let mut properties = serde_json::Map::new();
        for number in 0..5_000 {
            properties.insert(format!("p{number}"), json!({ "type": ["string", {}] }));
        }
        let definition = json!({
            "name": "get_".repeat(100), "description": "é. ".repeat(100_000),
            "inputSchema": { "type": "object", "properties": properties },
        });
        assert!(suggested("s", &definition).contains("private"));
    }
}
