//! The texts of tools and servers for an encoder.

use crate::{
    limits::{MAX_NAME_BYTES, cut},
    text::{ServerText, ToolText},
};

/// Bytes of a text that an encoder gets. Most read about 500 words and refuse or ignore the rest.
pub const MAX_DOCUMENT_BYTES: usize = 2_000;

/// The text of a tool: its name in words, its title and its description.
pub fn tool_document(tool: &ToolText<'_>) -> String {
    let mut text = in_words(cut(tool.name, MAX_NAME_BYTES));
    if let Some(title) = tool.title.filter(|title| !title.trim().is_empty()) {
        text.push_str(", ");
        text.push_str(cut(title, MAX_NAME_BYTES).trim());
    }
    finished(text, tool.description)
}

/// The text of a server: its name in words and its description.
pub fn server_document(server: ServerText<'_>) -> String {
    finished(in_words(cut(server.name, MAX_NAME_BYTES)), server.description)
}

fn finished(mut text: String, description: &str) -> String {
    let description = cut(description, MAX_DOCUMENT_BYTES).trim();
    if !description.is_empty() {
        text.push_str(": ");
        text.push_str(description);
    }
    text.truncate(text.floor_char_boundary(MAX_DOCUMENT_BYTES));
    text
}

/// `getHTTPResponse_now` as `get HTTP response now`, because encoders know words and not
/// identifiers.
fn in_words(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (place, character) in characters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(place + 1);
        let starts = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts {
            words.push(' ');
        }
        if matches!(character, '_' | '-' | '.' | '/') {
            words.push(' ');
        } else if starts && after.is_some_and(|after| after.is_lowercase()) {
            words.extend(character.to_lowercase());
        } else {
            words.push(*character);
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_tool_is_its_name_and_its_description() {
        let tool = ToolText {
            name: "getHTTPResponse_now",
            title: Some("Fetch"),
            description: " Gets it. ",
            ..ToolText::default()
        };
        assert_eq!(tool_document(&tool), "get HTTP response now, Fetch: Gets it.");
        let bare = ToolText { name: "list-all", title: Some(" "), ..ToolText::default() };
        assert_eq!(tool_document(&bare), "list all");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let description = "ü".repeat(5_000);
        let server = ServerText { name: "x", description: &description };
        assert!(
            (MAX_DOCUMENT_BYTES - 1..=MAX_DOCUMENT_BYTES).contains(&server_document(server).len())
        );
    }
}
