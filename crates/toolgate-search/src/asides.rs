//! Finds paths of files and URLs in a request, which need a tool that reads, writes or fetches them.
//!
//! "Compare the three papers and save the report to notes/papers.md" is about papers, but it also
//! needs a tool that writes files. The words of the path do not show that, and match unrelated
//! tools. So the path is removed from the request, and a separate query (an aside) searches for the
//! tool.

use crate::{
    limits::{MAX_QUERY_BYTES, cut},
    query::Hit,
};

/// A request, split into its main query and the queries for its files.
#[derive(Debug, PartialEq)]
pub(crate) struct SplitRequest {
    /// The main query: the request without its paths.
    pub(crate) matter: String,
    /// The additional queries.
    pub(crate) asides: Vec<&'static str>,
}

/// How many kinds of files of one request are looked for.
const MAX_ASIDES: usize = 2;
/// A request with fewer words beside the path is only about the file, and what it needs is added to
/// its words.
const FEWEST_WORDS: usize = 3;
/// The lowest rank of the first hit for a file: within the first five, but below the main hits.
const PLACE: usize = 3;

/// Whether a file is read or written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Direction {
    Unsaid,
    Read,
    Write,
}

impl SplitRequest {
    /// Splits a request; `None` if it contains no such path.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text = cut(text, MAX_QUERY_BYTES);
        // Most queries have neither.
        if !text.contains(['/', '\\', '.']) {
            return None;
        }
        let (mut matter, mut words) = (String::new(), 0);
        let mut asides: Vec<&'static str> = Vec::new();
        let mut direction = Direction::Unsaid;
        for raw in text.split_whitespace() {
            let quotes: &[char] = &['"', '\'', '`', '(', ')', '[', ']', '<', '>', ',', ';', ':'];
            let word = raw.trim_matches(quotes).trim_end_matches(['.', '?', '!']);
            let word = word.trim_matches(quotes);
            let found = if is_url(word) {
                Some(FETCH)
            } else {
                extension_of_path(word).map(|extension| aside(direction, &extension))
            };
            if let Some(aside) = found {
                if !asides.contains(&aside) && asides.len() < MAX_ASIDES {
                    asides.push(aside);
                }
                continue;
            }
            direction = direction_after(word).unwrap_or(direction);
            if !matter.is_empty() {
                matter.push(' ');
            }
            matter.push_str(raw);
            words += 1;
        }
        if asides.is_empty() {
            return None;
        }
        if words < FEWEST_WORDS {
            for aside in asides.drain(..) {
                matter.push(' ');
                matter.push_str(aside);
            }
        }
        Some(Self { matter, asides })
    }
}

/// Inserts the hits for files among the main hits, near the top and below the best.
pub(crate) fn join(mut hits: Vec<Hit>, asides: Vec<Hit>, limit: usize) -> Vec<Hit> {
    for (number, aside) in asides.into_iter().enumerate() {
        let place = (PLACE + number).min(hits.len());
        let known = hits.iter().position(|hit| hit.key == aside.key);
        let hit = match known {
            Some(known) if known <= place => continue,
            Some(known) => hits.remove(known),
            None => aside,
        };
        hits.insert(place, hit);
    }
    hits.truncate(limit);
    hits
}

/// What a URL needs.
const FETCH: &str = "fetch url web page";

fn is_url(word: &str) -> bool {
    let rest = word.strip_prefix("https://").or_else(|| word.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
}

/// The extension of a path to a file, in lower case: `notes/papers.md`, `~/x.csv`, `C:\x.docx`.
/// URLs and paths without an extension (`/login`) do not count.
fn extension_of_path(word: &str) -> Option<String> {
    if word.contains("://") {
        return None;
    }
    let (folder, name) = match word.rfind(['/', '\\']) {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let (stem, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    let plausible = !stem.is_empty()
        && (1..=5).contains(&extension.len())
        && extension.starts_with(|first: char| first.is_ascii_alphabetic())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let rooted = folder.starts_with(['/', '\\', '~', '.']) || folder.get(1..2) == Some(":");
    // Without a folder, `Next.js` and `example.com` could be files. So only known extensions count.
    (plausible && (rooted || DOCUMENTS.contains(&extension.as_str()))).then_some(extension)
}

#[rustfmt::skip]
const DOCUMENTS: &[&str] = &[
    "csv", "doc", "docx", "jpeg", "jpg", "json", "log", "md", "pdf", "png", "ppt", "pptx", "svg", "tsv", "txt",
    "xls", "xlsx", "xml", "yaml", "yml",
];

const WRITE: &[&str] = &[
    "create", "created", "document", "download", "draft", "export", "generate", "output",
    "produce", "report", "save", "saved", "saving", "store", "write", "writes", "writing",
];

const READ: &[&str] = &[
    "analyse",
    "analyze",
    "compare",
    "convert",
    "find",
    "load",
    "open",
    "parse",
    "read",
    "show",
    "summarise",
    "summarize",
];

/// The last verb before a path shows whether the file is read or written.
fn direction_after(word: &str) -> Option<Direction> {
    let word = word.to_ascii_lowercase();
    if WRITE.contains(&word.as_str()) {
        Some(Direction::Write)
    } else if READ.contains(&word.as_str()) {
        Some(Direction::Read)
    } else {
        None
    }
}

fn aside(direction: Direction, extension: &str) -> &'static str {
    use Direction::{Read, Unsaid, Write};
    match (extension, direction) {
        ("ppt" | "pptx", Write) => "create presentation",
        ("ppt" | "pptx", _) => "open presentation",
        ("doc" | "docx", Write) => "create word document",
        ("doc" | "docx", _) => "read word document",
        ("xls" | "xlsx", Write) => "create excel workbook",
        ("xls" | "xlsx", _) => "read excel workbook",
        ("pdf", Write) => "create pdf",
        ("pdf", _) => "read pdf",
        (_, Write) => "write file",
        (_, Read | Unsaid) => "read file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ToolKey;

    fn asides(text: &str) -> Vec<&'static str> {
        SplitRequest::read(text).map(|request| request.asides).unwrap_or_default()
    }

    #[test]
    fn a_path_becomes_a_query_for_file_tools() {
        for (text, expected) in [
            ("compare the papers and save the report to notes/papers.md", &["write file"][..]),
            ("read (/srv/logs/today.log), then count the errors", &["read file"]),
            (
                "turn ~/a.docx, ~/b.docx into one and save it as `C:\\out\\all.pdf`.",
                &["read word document", "create pdf"],
            ),
            ("what changed in figures.xlsx since yesterday?", &["read excel workbook"]),
            ("summarise the quarter as a talk, save it: ./talk.pptx", &["create presentation"]),
        ] {
            assert_eq!(asides(text), expected, "{text}");
        }
    }

    #[test]
    fn a_query_without_a_path_is_unchanged() {
        for text in [
            "who owns example.com and when did it expire",
            "write a Next.js page that sends people to /login first",
            "version 1.2.3 of the package please",
            "send_message",
            "",
        ] {
            assert_eq!(SplitRequest::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_url_becomes_a_query_for_what_fetches_it() {
        let request = "summarise https://example.com/a/b.md and count the words";
        assert_eq!(asides(request), [FETCH]);
        assert_eq!(asides("explain the scheme of http:// to me"), Vec::<&str>::new());
    }

    #[test]
    fn a_short_query_is_about_its_path() {
        for (text, expected) in [
            ("read /srv/x.md", "read read file"),
            ("save notes/today.txt", "save write file"),
            ("https://example.com", " fetch url web page"),
        ] {
            let request = SplitRequest::read(text).unwrap();
            assert_eq!((request.matter.as_str(), request.asides.len()), (expected, 0), "{text}");
        }
    }

    #[test]
    fn the_main_query_contains_no_path() {
        let request = SplitRequest::read("chart the sales of ./data/2024.csv by month").unwrap();
        assert_eq!(request.matter, "chart the sales of by month");
    }

    #[test]
    fn hits_for_a_path_rank_near_the_top_but_not_first() {
        let list = |keys: &[&str]| -> Vec<Hit> {
            keys.iter().map(|key| Hit::new(ToolKey::from(*key), 1.0)).collect()
        };
        let joined = |hits: &[&str], asides: &[&str]| -> Vec<String> {
            let joined = join(list(hits), list(asides), 5);
            joined.iter().map(|hit| hit.key.to_string()).collect()
        };
        assert_eq!(joined(&["a", "b", "c", "d", "e"], &["x", "y"]), ["a", "b", "c", "x", "y"]);
        assert_eq!(joined(&["a", "b", "c", "d", "e"], &["e"]), ["a", "b", "c", "e", "d"]);
        assert_eq!(joined(&["a", "b"], &["a", "x"]), ["a", "b", "x"]);
        assert_eq!(joined(&[], &["x"]), ["x"]);
    }
}
