//! Lists the tools of a server, page by page and within limits.

use std::{collections::HashSet, fmt};

use serde_json::{Value, json};
use toolgate_catalog::{Definition, Fingerprint, Rejected, read_list};
use toolgate_mcp::{
    client::{RawConnection, RequestError},
    codes, json_size, methods,
};

mod groups;

const MAX_PAGES: usize = 1_000;
const MAX_TOOLS: usize = 50_000;
/// The limit for all pages together.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What a server listed.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The tools that can be used, in the server's order.
    pub definitions: Vec<Definition>,
    /// Problems of the list. The definitions can still be used.
    pub problems: Vec<ListingProblem>,
}

/// Something wrong with a tool list that leaves the rest of it usable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingProblem {
    /// One tool was skipped.
    Tool(Rejected),
    /// A cursor occurred twice. The list ends there.
    CursorLoop {
        /// How many pages there had been.
        pages: usize,
    },
    /// The list was cut.
    TooLong {
        /// How many tools were kept.
        kept: usize,
    },
    /// Some groups could not be read, or there are too many.
    Groups,
    /// Tools of groups were skipped: listed tools have their names, and other definitions.
    GroupedTools {
        /// How many.
        skipped: usize,
    },
    /// A page has no list of tools.
    NoList {
        /// Which page, from 1.
        page: usize,
    },
}

/// Lists all tools, with those in groups if the server has groups. A server that does not know the method has none.
pub(crate) async fn list(
    connection: &RawConnection,
    groups: bool,
) -> Result<Listing, RequestError> {
    let mut entries: Vec<Value> = Vec::new();
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0_usize;
    for page in 1.. {
        let params = cursor.take().map(|cursor| json!({ "cursor": cursor }));
        let mut request = connection.begin(Value::Null, methods::TOOLS_LIST, params)?;
        let result = match request.response().await {
            Err(RequestError::Refused(error)) if error.code == codes::METHOD_NOT_FOUND => break,
            other => other?,
        };
        let Value::Object(mut fields) = result else {
            problems.push(ListingProblem::NoList { page });
            break;
        };
        match fields.remove("tools") {
            Some(Value::Array(tools)) => {
                for tool in tools {
                    bytes = bytes.saturating_add(json_size(&tool));
                    if bytes > MAX_BYTES || entries.len() == MAX_TOOLS {
                        problems.push(ListingProblem::TooLong { kept: entries.len() });
                        break;
                    }
                    entries.push(tool);
                }
            }
            _ => problems.push(ListingProblem::NoList { page }),
        }
        if matches!(problems.last(), Some(ListingProblem::TooLong { .. })) {
            break;
        }
        let Some(Value::String(next)) = fields.remove("nextCursor") else { break };
        if page >= MAX_PAGES {
            problems.push(ListingProblem::TooLong { kept: entries.len() });
            break;
        }
        if !seen.insert(next.clone()) {
            problems.push(ListingProblem::CursorLoop { pages: page });
            break;
        }
        cursor = Some(next);
    }
    if groups {
        let left = (MAX_TOOLS - entries.len(), MAX_BYTES.saturating_sub(bytes));
        let (mut tools, is_whole) = groups::crawl(connection, left).await;
        // A tool may be in several groups, with the same definition.
        let mut known: HashSet<Fingerprint> = entries.iter().map(Fingerprint::of).collect();
        tools.retain(|tool| known.insert(Fingerprint::of(tool)));
        // What is listed counts: it would be called by that name without groups too.
        let listed: HashSet<&str> = entries.iter().filter_map(name_of).collect();
        let found = tools.len();
        tools.retain(|tool| name_of(tool).is_none_or(|name| !listed.contains(name)));
        let skipped = found - tools.len();
        if skipped > 0 {
            problems.push(ListingProblem::GroupedTools { skipped });
        }
        entries.extend(tools);
        if !is_whole {
            problems.push(ListingProblem::Groups);
        }
    }
    let (definitions, rejected) = read_list(&entries);
    problems.extend(rejected.into_iter().map(ListingProblem::Tool));
    Ok(Listing { definitions, problems })
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name")?.as_str()
}

impl fmt::Display for ListingProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(rejected) => {
                write!(formatter, "tool `{}` is left out: {}", rejected.label, rejected.reason)
            }
            Self::CursorLoop { pages } => write!(
                formatter,
                "the list of tools repeats itself after page {pages}; the tools up to there are used"
            ),
            Self::TooLong { kept } => {
                write!(formatter, "the list of tools does not end; the first {kept} are used")
            }
            Self::Groups => formatter.write_str(
                "some of its groups could not be read, or there are too many; the others are used",
            ),
            Self::GroupedTools { skipped } => write!(
                formatter,
                "{skipped} tools of its groups are left out, because listed tools have their names"
            ),
            Self::NoList { page } => {
                write!(formatter, "page {page} of the list of tools has no `tools`")
            }
        }
    }
}
