//! Deprecated tools, which come after their successors.

use toolgate_catalog::{Catalog, Tool};
use toolgate_search::{Hit, ToolKey};

/// How much of a description is read.
const READ_CHARACTERS: usize = 2_000;
/// Words with which a description says that there is something better.
const MARKS: [&str; 4] = ["deprecated", "obsolete", "superseded", "replaced by"];

/// Moves each deprecated tool behind its successor, which is added if the ranking does not have it. One that
/// names no successor goes to the end. A tool that the query calls by its name stays where it is.
pub(crate) fn after_successors(hits: Vec<Hit>, query: &str, catalog: &Catalog) -> Vec<Hit> {
    let is_old = |hit: &Hit| {
        let tool = catalog.resolve(hit.key.as_str())?;
        let is_called = query.contains(&*tool.id.tool) || query.contains(tool.name.as_str());
        (!is_called && is_deprecated(tool)).then_some(tool)
    };
    if !hits.iter().any(|hit| is_old(hit).is_some()) {
        return hits;
    }
    let length = hits.len();
    let mut kept: Vec<Hit> = Vec::with_capacity(length);
    let mut last: Vec<Hit> = Vec::new();
    for hit in hits {
        if let Some(old) = is_old(&hit) {
            let successor = successor_of(old, catalog).map(|tool| ToolKey::new(tool.name.to_arc()));
            match successor {
                // It takes the place of the old one, which follows it.
                Some(key) => {
                    if !kept.iter().any(|kept| kept.key == key) {
                        kept.push(Hit { key, ..hit.clone() });
                    }
                    kept.push(hit);
                }
                None => last.push(hit),
            }
        } else if !kept.iter().any(|kept| kept.key == hit.key) {
            kept.push(hit);
        }
    }
    kept.extend(last);
    kept.truncate(length);
    kept
}

/// Whether a definition says that the tool should not be used any more.
fn is_deprecated(tool: &Tool) -> bool {
    let description = beginning(tool);
    let lower = description.to_lowercase();
    let says = MARKS.iter().any(|mark| marks(&lower, mark));
    says || (tool.definition.json().contains("\"deprecated\":true") && {
        let definition = tool.definition.to_value();
        let flag = |at: &str| definition.pointer(at).and_then(serde_json::Value::as_bool);
        ["/deprecated", "/annotations/deprecated", "/_meta/deprecated"]
            .into_iter()
            .any(|at| flag(at) == Some(true))
    })
}

/// Whether a mark is about the tool, and not about what the tool works on: `List deprecated APIs`.
fn marks(text: &str, mark: &str) -> bool {
    let mut from = 0;
    while let Some(found) = text[from..].find(mark) {
        let (start, end) = (from + found, from + found + mark.len());
        let before =
            text[..start].trim_end_matches(|character: char| "*_[(`\"".contains(character));
        let begins = before.trim_end().is_empty()
            || before.trim_end().ends_with(['.', '!', ':', ';', '—', '–', '⚠']);
        let is_said = ["this is", "tool is", "is now", "this tool", "been", "function is"]
            .iter()
            .any(|words| before.trim_end().ends_with(words));
        let after = text[end..].trim_start_matches(|character: char| "*_])`\"".contains(character));
        let ends = after.is_empty() || after.starts_with([':', '.', ',', ';', '!', '-', '—', '–']);
        let goes_on = [" use ", " in favor", " in favour", " since", " by ", " - ", " and will"]
            .iter()
            .any(|words| after.starts_with(words));
        let is_bracketed =
            text[..start].ends_with(['[', '(']) && text[end..].starts_with([']', ')']);
        if is_said || is_bracketed || (begins && (ends || goes_on)) {
            return true;
        }
        from = end;
    }
    false
}

/// The tool of the same server that the description names after `use`, or before `instead`.
fn successor_of<'c>(old: &Tool, catalog: &'c Catalog) -> Option<&'c Tool> {
    let description = beginning(old);
    let is_part = |character: char| character.is_alphanumeric() || "_-./".contains(character);
    let words: Vec<&str> = description
        .split(|character: char| !is_part(character))
        .map(|word| word.trim_matches(['.', '-', '/']))
        .filter(|word| !word.is_empty())
        .collect();
    let says = |word: &str| {
        ["use", "by", "with", "favor", "favour", "to", "prefer", "see"]
            .iter()
            .any(|lead| word.eq_ignore_ascii_case(lead))
    };
    let leads = |place: usize| {
        let from = place.saturating_sub(3);
        words[from..place].iter().any(|word| says(word))
            || words.get(place + 1).is_some_and(|next| next.eq_ignore_ascii_case("instead"))
    };
    let tools = catalog.tools_of(old.id.server.as_str());
    words.iter().enumerate().filter(|(place, _)| leads(*place)).find_map(|(_, word)| {
        let named =
            tools.iter().find(|tool| *tool.id.tool == **word || tool.name.as_str() == *word)?;
        (named.id != old.id && !is_deprecated(named)).then_some(named)
    })
}

fn beginning(tool: &Tool) -> String {
    tool.definition.description().chars().take(READ_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_catalog::{CatalogServer, Definition};

    use super::*;

    fn catalog(tools: &[(&str, &str)]) -> Catalog {
        let mut catalog = Catalog::new([CatalogServer::named("fs")]);
        let definitions = tools.iter().map(|(name, description)| {
            let tool = json!({ "name": name, "description": description, "inputSchema": {} });
            Definition::from_value(&tool).unwrap()
        });
        catalog.replace_server(&"fs".into(), definitions.collect());
        catalog
    }

    fn order(catalog: &Catalog, query: &str, names: &[&str]) -> Vec<String> {
        let hits = names.iter().map(|name| Hit::new(ToolKey::from(*name), 1.0)).collect();
        after_successors(hits, query, catalog).iter().map(|hit| hit.key.to_string()).collect()
    }

    #[test]
    fn a_successor_comes_before_the_tool_it_replaces() {
        let catalog = catalog(&[
            ("read_file", "Read a file as text. DEPRECATED: Use read_text_file instead."),
            ("read_text_file", "Read a file as text."),
            ("write_file", "Write a file."),
            ("old", "**Deprecated** since version 2."),
        ]);
        let names = ["fs_read_file", "fs_write_file", "fs_read_text_file"];
        assert_eq!(
            order(&catalog, "read a file", &names),
            ["fs_read_text_file", "fs_read_file", "fs_write_file"]
        );
        // The successor is found with it.
        let names = ["fs_read_file", "fs_write_file"];
        assert_eq!(order(&catalog, "read", &names), ["fs_read_text_file", "fs_read_file"]);
        assert_eq!(order(&catalog, "read_file", &names), names, "called by its name");
        let names = ["fs_old", "fs_write_file"];
        assert_eq!(order(&catalog, "write", &names), ["fs_write_file", "fs_old"]);
    }

    #[test]
    fn what_works_on_deprecated_things_is_not_deprecated() {
        for (description, expected) in [
            ("List deprecated APIs of a package.", false),
            ("Marks an API version as deprecated.", false),
            ("Find what was replaced by another order.", false),
            ("[DEPRECATED] Lists pods.", true),
            ("Lists pods. This tool is deprecated, use pods_list.", true),
            ("Obsolete: see list.", true),
            ("Superseded by list.", true),
            ("Deprecated in favour of list.", true),
        ] {
            let catalog = catalog(&[("it", description)]);
            assert_eq!(is_deprecated(&catalog.tools_of("fs")[0]), expected, "{description}");
        }
        let mut catalog = Catalog::new([CatalogServer::named("s")]);
        let tool = json!({ "name": "a", "inputSchema": {}, "annotations": { "deprecated": true } });
        catalog.replace_server(&"s".into(), vec![Definition::from_value(&tool).unwrap()]);
        assert!(is_deprecated(&catalog.tools_of("s")[0]));
    }
}
