//! The assignment of exposed names to tools.
//!
//! The name depends only on the identity, unless two tools would have the same name. Then *both*
//! get a hash. If the first tool kept the plain name, the name would mean another tool after a
//! restart in another order.

use std::collections::{BTreeMap, HashSet};

use crate::identity::{ExposedName, ToolId};

/// The longest name that every model provider accepts.
pub const MAX_NAME_CHARACTERS: usize = 64;

/// Names of the host's own tools, now and planned. No upstream tool ever gets one of these.
pub const HOST_TOOL_NAMES: [&str; 10] = [
    "search_tools",
    "get_tool_details",
    "call_tool",
    "run_code",
    "search_available_servers",
    "enable_server",
    "disable_server",
    "load_skill",
    "read_output",
    "resume_run",
];

/// Functions that scripts have besides the tools. No tool ever gets one of these names either.
pub const SCRIPT_FUNCTION_NAMES: [&str; 3] = ["emit", "extract", "read_resource"];

const HASH_CHARACTERS: usize = 8;

/// The names of all items, in their order, each with the prefix of its server if there is one. Names
/// prompts, which are named like tools, except that a doubled prefix stays.
pub fn expose<'a>(all: impl IntoIterator<Item = (ToolId, Option<&'a str>)>) -> Vec<ExposedName> {
    let claims: Vec<(ToolId, PreferredName)> = all
        .into_iter()
        .map(|(id, prefix)| {
            let preferred = PreferredName::of(&id, prefix);
            (id, preferred)
        })
        .collect();
    // Sorted, so that the result does not depend on the order.
    let mut positions_by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, (_, preferred)) in claims.iter().enumerate() {
        positions_by_name.entry(&preferred.plain).or_default().push(position);
    }
    let mut taken: HashSet<ExposedName> = HashSet::new();
    let mut names = vec![ExposedName::new(""); claims.len()];
    for mut positions in positions_by_name.into_values() {
        positions.sort_by(|left, right| claims[*left].0.cmp(&claims[*right].0));
        let contested = positions.len() > 1;
        for position in positions {
            let (id, preferred) = &claims[position];
            let mut name = preferred.assign(id, contested);
            let mut attempt = 0;
            while !taken.insert(name.clone()) {
                attempt += 1;
                name = preferred.hashed(id, attempt);
            }
            names[position] = name;
        }
    }
    names
}

/// The exposed name that a tool has unless another one prefers it too. `prefix` replaces the server's name if it is set.
pub fn preferred_name(id: &ToolId, prefix: Option<&str>) -> String {
    PreferredName::of(id, prefix).alone(id).to_string()
}

/// The names that a tool may have. Other tools decide which one it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PossibleNames {
    /// The server and the tool, even if that is too long.
    pub plain: String,
    /// The plain name with a hash.
    pub hashed: String,
    /// The plain name without a doubled prefix. The plain name still means the tool.
    pub short: Option<String>,
}

/// The names that a tool may have.
pub fn possible_names(id: &ToolId, prefix: Option<&str>) -> PossibleNames {
    let preferred = PreferredName::of(id, prefix);
    let hashed = preferred.hashed(id, 0).to_string();
    PossibleNames { plain: preferred.plain, hashed, short: preferred.short }
}

/// The name that a tool gets unless another one prefers it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreferredName {
    /// Identifier characters only; may be longer than allowed.
    pub(crate) plain: String,
    /// Whether the plain name does not identify the tool: it was cut, has no readable character, or
    /// is the name of a meta-tool.
    pub(crate) needs_hash: bool,
    /// The plain name without the prefix that the tool repeats: `git_commit` for `git_git_commit`. The
    /// tool gets it if no other tool prefers it.
    pub(crate) short: Option<String>,
}

impl PreferredName {
    /// `server_tool`, or `prefix_tool` if there is a prefix.
    pub(crate) fn of(id: &ToolId, prefix: Option<&str>) -> Self {
        let server = identifier_characters(prefix.unwrap_or(id.server.as_str()));
        let tool = identifier_characters(&id.tool);
        let short = short_name(&server, &tool);
        let mut plain = if server.is_empty() { tool } else { format!("{server}_{tool}") };
        let unreadable = !plain.chars().any(|character| character.is_ascii_alphanumeric());
        if plain.is_empty() || plain.starts_with(|character: char| character.is_ascii_digit()) {
            plain.insert(0, '_');
        }
        if is_keyword(&plain) {
            plain.push('_');
        }
        let needs_hash = unreadable
            || plain.len() > MAX_NAME_CHARACTERS
            || HOST_TOOL_NAMES.contains(&plain.as_str())
            || SCRIPT_FUNCTION_NAMES.contains(&plain.as_str());
        Self { plain, needs_hash, short }
    }

    /// The name of a tool beside which there is no other.
    pub(crate) fn alone(&self, id: &ToolId) -> ExposedName {
        match &self.short {
            Some(short) => ExposedName::new(short.as_str()),
            None => self.assign(id, false),
        }
    }

    /// The name for the identity; `contested` where another identity has the same preferred.
    pub(crate) fn assign(&self, id: &ToolId, contested: bool) -> ExposedName {
        if contested || self.needs_hash {
            self.hashed(id, 0)
        } else {
            ExposedName::new(self.plain.as_str())
        }
    }

    /// The plain name, shortened, with a short hash of the identity. `attempt` gives further names
    /// if the hashed one is taken.
    pub(crate) fn hashed(&self, id: &ToolId, attempt: u32) -> ExposedName {
        let mut hasher = blake3::Hasher::new();
        hasher.update(id.server.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(id.tool.as_bytes());
        if attempt > 0 {
            hasher.update(&attempt.to_le_bytes());
        }
        let digest = hasher.finalize().to_hex();
        // Only ASCII is left in the plain name, so bytes are characters.
        let kept = self.plain.len().min(MAX_NAME_CHARACTERS - HASH_CHARACTERS - 1);
        let stem = self.plain[..kept].trim_end_matches('_');
        ExposedName::new(format!("{stem}_{}", &digest[..HASH_CHARACTERS]))
    }
}

/// The beginning of the names of a server's tools, unless they are cut; empty if the prefix is
/// empty.
pub(crate) fn beginning(server: &str, prefix: Option<&str>) -> Option<String> {
    let mut beginning = identifier_characters(prefix.unwrap_or(server));
    if beginning.is_empty() {
        return None;
    }
    if beginning.starts_with(|character: char| character.is_ascii_digit()) {
        beginning.insert(0, '_');
    }
    beginning.push('_');
    Some(beginning)
}

/// The name without a doubled prefix, where the tool repeats it and the rest is a name.
fn short_name(server: &str, tool: &str) -> Option<String> {
    let (beginning, rest) = tool.split_at_checked(server.len())?;
    let rest = rest.strip_prefix('_')?;
    let is_doubled = !server.is_empty() && beginning.eq_ignore_ascii_case(server);
    let is_name = rest.chars().any(|character| character.is_ascii_alphanumeric());
    if !is_doubled || !is_name {
        return None;
    }
    let mut short = format!("{server}_{rest}");
    if short.starts_with(|character: char| character.is_ascii_digit()) {
        short.insert(0, '_');
    }
    let is_taken = HOST_TOOL_NAMES.contains(&short.as_str())
        || SCRIPT_FUNCTION_NAMES.contains(&short.as_str());
    (short.len() <= MAX_NAME_CHARACTERS && !is_taken).then_some(short)
}

fn identifier_characters(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .collect()
}

/// Words that are no identifiers in TypeScript or in Python. A prefix hides most of them; with an
/// empty prefix a tool called `delete` or `import` is common.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "False",
        "None",
        "True",
        "and",
        "arguments",
        "as",
        "assert",
        "async",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "def",
        "default",
        "del",
        "delete",
        "do",
        "elif",
        "else",
        "enum",
        "eval",
        "except",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "from",
        "function",
        "global",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "is",
        "lambda",
        "let",
        "new",
        "nonlocal",
        "not",
        "null",
        "or",
        "package",
        "pass",
        "private",
        "protected",
        "public",
        "raise",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "with",
        "yield",
    ];
    KEYWORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(server: &str, tool: &str, prefix: Option<&str>) -> String {
        let id = ToolId::new(server, tool);
        PreferredName::of(&id, prefix).alone(&id).to_string()
    }

    #[test]
    fn a_doubled_prefix_goes() {
        assert_eq!(name("git", "git_commit", None), "git_commit");
        assert_eq!(name("Notion", "notion-search", None), "Notion_search");
        assert_eq!(name("3d", "3d_print", None), "_3d_print");
        assert_eq!(name("my-crm", "my_crm.find", Some("crm")), "crm_my_crm_find");
        for (server, tool, whole) in [
            ("git", "gitlab_list", "git_gitlab_list"),
            ("git", "git_", "git_git_"),
            ("git", "git", "git_git"),
            ("search", "search_tools", "search_search_tools"),
        ] {
            assert_eq!(name(server, tool, None), whole);
        }
        assert_eq!(name("any", "any_delete", Some("")), "any_delete");
    }

    #[test]
    fn plain_names_are_server_and_tool() {
        assert_eq!(name("github", "create_issue", None), "github_create_issue");
        assert_eq!(name("my-server.io", "list/all", None), "my_server_io_list_all");
        assert_eq!(name("github", "create_issue", Some("gh")), "gh_create_issue");
        assert_eq!(name("team", "get_expenses", Some("")), "get_expenses");
    }

    #[test]
    fn every_name_becomes_an_identifier() {
        assert_eq!(name("3scale", "list", None), "_3scale_list");
        assert_eq!(name("any", "delete", Some("")), "delete_");
        assert_eq!(name("any", "match", Some("")), "match", "a soft keyword is a fine name");
    }

    #[test]
    fn no_tool_gets_the_name_of_a_meta_tool() {
        let given = name("evil", "search_tools", Some(""));
        assert!(given.starts_with("search_tools_"), "{given}");
        assert_eq!(given.len(), "search_tools_".len() + HASH_CHARACTERS);
    }

    #[test]
    fn names_in_another_script_stay_apart() {
        let weather = name("天气", "查询", Some(""));
        let other = name("天气", "搜索", Some(""));
        assert_ne!(weather, other);
        assert!(weather.starts_with('_'));
    }

    #[test]
    fn a_cut_name_keeps_its_start_and_gets_a_hash() {
        let long = "a_tool_with_a_name_that_goes_on_and_on_until_nobody_can_read_it_any_more";
        let given = name("server", long, None);
        assert_eq!(given.len(), MAX_NAME_CHARACTERS);
        assert!(given.starts_with("server_a_tool_with_a_name"));
        assert_ne!(given, name("server", &format!("{long}_2"), None));
    }

    #[test]
    fn names_computed_together_equal_those_of_the_catalog() {
        let ids = [("b", "pay"), ("a", "pay"), ("a", "get-it"), ("a", "get_it"), ("c", "one")];
        let exposed = |ids: &[(&str, &str)]| {
            expose(ids.iter().map(|(server, tool)| (ToolId::new(*server, *tool), Some(""))))
        };
        let names = exposed(&ids);
        assert_eq!(names[4].as_str(), "one");
        let entries = ["a", "b", "c"].map(|name| crate::CatalogServer {
            prefix: Some(String::new()),
            ..crate::CatalogServer::named(name)
        });
        let mut catalog = crate::Catalog::new(entries);
        for server in ["a", "b", "c"] {
            let own = ids.iter().filter(|(owner, _)| *owner == server);
            let definitions = own.map(|(_, tool)| {
                let value = serde_json::json!({"name": tool, "inputSchema": {}});
                crate::Definition::from_value(&value).unwrap()
            });
            catalog.replace_server(&server.into(), definitions.collect());
        }
        for ((server, tool), name) in ids.iter().zip(&names) {
            let id = ToolId::new(*server, *tool);
            assert_eq!(catalog.by_id(&id).unwrap().name, *name);
        }
        let mut turned = ids;
        turned.reverse();
        let mut again = exposed(&turned);
        again.reverse();
        assert_eq!(again, names);
    }

    #[test]
    fn the_keyword_table_is_sorted() {
        // `binary_search` needs it, and a new word is easily put in the wrong position.
        assert!(is_keyword("False") && is_keyword("yield") && is_keyword("as"));
        assert!(!is_keyword("list"));
    }

    proptest! {
        #[test]
        fn every_name_is_an_identifier(server in ".{0,90}", tool in ".{0,90}", empty: bool) {
            let given = name(&server, &tool, empty.then_some(""));
            prop_assert!(given.len() <= MAX_NAME_CHARACTERS);
            prop_assert!(given.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
            prop_assert!(!given.starts_with(|c: char| c.is_ascii_digit()));
            prop_assert!(!given.is_empty() && !is_keyword(&given));
        }
    }
}
