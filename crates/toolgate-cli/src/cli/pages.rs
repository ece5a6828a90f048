//! Every snippet of the pages is what it says: commands exist, configurations are read, scripts pass the
//! check.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::CommandFactory as _;
use toolgate_bindings::check::{Language, Lookup, LookupResult, check};
use toolgate_config::{ConfigError, Configuration, Format, Problem};

use super::{Cli, contents};

/// A block of code of a page.
#[derive(Debug)]
struct Snippet {
    page: PathBuf,
    line: usize,
    /// What follows the fence; empty for an indented block.
    language: String,
    text: String,
}

/// The README and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The fenced and the indented blocks of all pages.
fn snippets() -> Vec<Snippet> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let mut fenced: Option<Snippet> = None;
        let mut indented: Option<Snippet> = None;
        let mut follows_blank = true;
        for (index, line) in text.lines().enumerate() {
            let start = |language: &str| Snippet {
                page: page.clone(),
                line: index + 1,
                language: language.to_owned(),
                text: String::new(),
            };
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                match fenced.take() {
                    Some(snippet) => found.push(snippet),
                    None => fenced = Some(start(fence.trim())),
                }
                continue;
            }
            if let Some(snippet) = &mut fenced {
                snippet.text += line;
                snippet.text.push('\n');
                continue;
            }
            match (line.strip_prefix("    "), &mut indented) {
                (Some(code), Some(snippet)) => {
                    snippet.text += code;
                    snippet.text.push('\n');
                }
                (Some(code), None) if follows_blank => {
                    let mut snippet = start("");
                    snippet.text = format!("{code}\n");
                    indented = Some(snippet);
                }
                _ => found.extend(indented.take()),
            }
            follows_blank = line.trim().is_empty();
        }
        assert!(fenced.is_none(), "{}: a fence is not closed", page.display());
        found.extend(indented);
    }
    found
}

/// The words of a command of a shell, up to a pipe, a redirection or a comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_word, mut quote) = (String::new(), false, None);
    for letter in line.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            (letter, Some(_)) => word.push(letter),
            ('\'' | '"', None) => (quote, is_word) = (Some(letter), true),
            ('|' | '>' | ';' | '&', None) => break,
            ('#', None) if !is_word => break,
            (letter, None) if letter.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (letter, None) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// What follows `toolgate` in the lines of a snippet.
fn commands(snippet: &Snippet) -> Vec<String> {
    let whole = snippet.text.replace("\\\n", " ");
    let lines = whole.lines().map(|line| line.trim().trim_start_matches("$ ").to_owned());
    let lines: Vec<String> = lines.collect();
    let of_line = |line: &String| {
        // After a pipe too.
        let part = line.split(" | ").find(|part| part.starts_with("toolgate "));
        let cargo = line.strip_prefix("cargo run").and_then(|rest| rest.split_once(" -- "));
        part.map(str::to_owned).or_else(|| {
            let is_own =
                line.starts_with("cargo run --release --") || line.starts_with("cargo run --");
            cargo.filter(|_| is_own).map(|(_, rest)| format!("toolgate {rest}"))
        })
    };
    lines.iter().filter_map(of_line).collect()
}

#[test]
fn the_commands_of_all_pages_can_be_read() {
    let mut read = 0;
    for snippet in
        snippets().iter().filter(|it| matches!(&*it.language, "" | "sh" | "bash" | "shell"))
    {
        for line in commands(snippet) {
            let place = format!("{}:{}: `{line}`", snippet.page.display(), snippet.line);
            // What a person may leave out or choose is written as `[FILE]` or `A|B`.
            let line = line.replace(['[', ']'], "");
            let mut words = words(&line);
            // A place where a number belongs.
            for word in
                words.iter_mut().filter(|word| matches!(word.as_str(), "CALL" | "N" | "DAYS"))
            {
                "7".clone_into(word);
            }
            let parsed = contents::command().try_get_matches_from(&words);
            if let Err(error) = parsed {
                let is_help = !error.use_stderr();
                assert!(is_help || is_elsewhere(&words), "{place}: {error}");
            }
            read += 1;
        }
    }
    assert!(read > 40, "only {read} commands were found");
}

/// Whether a command is named that this build does not have.
fn is_elsewhere(words: &[String]) -> bool {
    const LATER: [&str; 5] = ["setup", "add", "remove", "list", "service"];
    words.get(1).is_some_and(|name| {
        LATER.contains(&name.as_str()) && Cli::command().find_subcommand(name).is_none()
    })
}

#[test]
fn the_configurations_of_all_pages_can_be_read() {
    let mut read = 0;
    for snippet in snippets() {
        let text = snippet.text.trim();
        let is_json = matches!(&*snippet.language, "json" | "jsonc");
        let looks_like_json =
            snippet.language.is_empty() && (text.starts_with("{ \"") || text.starts_with('"'));
        if !is_json && !looks_like_json {
            continue;
        }
        let place = format!("{}:{}", snippet.page.display(), snippet.line);
        // Some blocks have one example a line.
        if parse(text).is_ok() {
            look_at(&place, text);
        } else {
            text.lines()
                .filter(|line| !line.trim().is_empty())
                .for_each(|line| look_at(&place, line));
        }
        read += 1;
    }
    assert!(read > 10, "only {read} configurations were found");
}

/// Reads a file, or a part of one without its braces.
fn parse(text: &str) -> Result<Configuration, ConfigError> {
    // What is left out is written as `…`.
    let text =
        text.replace("{ … }", "{}").replace("[ … ]", "[]").replace(", …", "").replace(" … }", " }");
    let text = text.trim();
    let whole = if text.starts_with('"') { format!("{{ {text}\n}}") } else { text.to_owned() };
    // Some secrets must be long.
    toolgate_config::parse(&whole, Format::Jsonc, "snippet", &|_| Some("value".repeat(8)))
}

fn look_at(place: &str, text: &str) {
    let parsed = parse(text).unwrap_or_else(|error| panic!("{place}: {error}"));
    // One entry of a section is no file.
    let schema = toolgate_config::json_schema();
    let mut keys = schema["properties"].as_object().unwrap().keys();
    let start = text.trim().trim_start_matches('{').trim_start();
    if !keys.any(|key| start.starts_with(&format!("\"{key}\""))) {
        return;
    }
    // A part of a file has no servers.
    let is_part = |problem: &Problem| {
        ["has no MCP servers", "names no server of this file", "cannot be read"]
            .iter()
            .any(|known| problem.message.contains(known))
    };
    if let Some(wrong) = parsed.problems.iter().find(|problem| !is_part(problem)) {
        panic!("{place}: {wrong}");
    }
}

/// Knows nothing of any tool, so that the check has nothing to say about calls.
struct NoTools;

impl Lookup for NoTools {
    fn look_up(&mut self, _: &[String]) -> Vec<LookupResult> {
        Vec::new()
    }
}

#[test]
fn the_scripts_of_all_pages_can_be_parsed() {
    let mut read = 0;
    for snippet in snippets() {
        let language = match &*snippet.language {
            "ts" | "typescript" | "js" | "javascript" => Language::TypeScript,
            "python" | "py" => Language::Python,
            _ => continue,
        };
        let checked = check(language, &snippet.text, &[], &[], &mut NoTools);
        let place = format!("{}:{}", snippet.page.display(), snippet.line);
        assert!(!checked.has_errors(), "{place}: {:?}", checked.findings);
        read += 1;
    }
    assert!(read >= 5, "only {read} scripts were found");
}
