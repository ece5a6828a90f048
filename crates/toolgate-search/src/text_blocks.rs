//! The texts of tools in lower case, for the strategies that must see parts of words.
//!
//! One block for each server, so that a change costs no more than the server's own tools. A block
//! is one long string with the texts of all tools, because searching one string is faster than
//! many.

use std::{collections::BTreeMap, collections::HashSet};

use memchr::memmem::Finder;

use crate::{
    limits::{MAX_KEPT_BYTES, MAX_NAME_BYTES, MAX_PARAMETERS, cut},
    query::Query,
    text::{ToolKey, ToolText},
};

/// The texts of all servers, by the servers' identities.
#[derive(Debug, Default)]
pub(crate) struct TextBlocks {
    blocks: BTreeMap<Box<str>, TextBlock>,
    tools: usize,
}

/// The texts of one server's tools.
#[derive(Debug, Default)]
pub(crate) struct TextBlock {
    pub(crate) keys: Vec<ToolKey>,
    /// The names as the server spells them.
    pub(crate) names: Column,
    /// The exposed names.
    pub(crate) exposed: Column,
    pub(crate) descriptions: Column,
    /// The names of each tool's parameters.
    pub(crate) parameters: Column,
}

/// One text of each tool, each ended by a line break, which no text contains.
#[derive(Debug, Default)]
pub(crate) struct Column {
    text: String,
    /// Where each text's line break is.
    ends: Vec<usize>,
}

impl TextBlocks {
    pub(crate) fn replace(&mut self, server: &str, tools: &[(ToolKey, ToolText<'_>)]) {
        self.remove(server);
        let mut block = TextBlock::default();
        let mut seen = HashSet::new();
        for (key, tool) in tools.iter().filter(|(key, _)| seen.insert(key)) {
            let listed = tool.parameters.iter().take(MAX_PARAMETERS);
            block.keys.push(key.clone());
            block.names.push([cut(tool.name, MAX_NAME_BYTES)]);
            block.exposed.push([cut(key.as_str(), MAX_NAME_BYTES)]);
            block.descriptions.push([cut(tool.description, MAX_KEPT_BYTES)]);
            block.parameters.push(listed.map(|listed| cut(listed.name, MAX_NAME_BYTES)));
        }
        self.tools += block.keys.len();
        self.blocks.insert(Box::from(server), block);
    }

    pub(crate) fn remove(&mut self, server: &str) {
        if let Some(block) = self.blocks.remove(server) {
            self.tools -= block.keys.len();
        }
    }

    pub(crate) fn tool_count(&self) -> usize {
        self.tools
    }

    /// The blocks of the wanted servers, in the order of their identities.
    pub(crate) fn wanted<'s>(
        &'s self,
        query: &Query<'_>,
    ) -> impl Iterator<Item = (&'s str, &'s TextBlock)> {
        let servers = query.servers.map(|names| names.iter().copied().collect::<HashSet<&str>>());
        self.blocks.iter().map(|(server, block)| (&**server, block)).filter(move |(server, _)| {
            servers.as_ref().is_none_or(|wanted| wanted.contains(server))
        })
    }
}

impl Column {
    /// Adds the text of the next tool, in lower case and with single blanks.
    fn push<'t>(&mut self, parts: impl IntoIterator<Item = &'t str>) {
        let start = self.text.len();
        for word in parts.into_iter().flat_map(str::split_whitespace) {
            if self.text.len() > start {
                self.text.push(' ');
            }
            lower_into(word, &mut self.text);
        }
        self.ends.push(self.text.len());
        self.text.push('\n');
    }

    /// The text of a tool.
    pub(crate) fn get(&self, tool: usize) -> &str {
        let start = tool.checked_sub(1).map_or(0, |before| self.ends[before] + 1);
        &self.text[start..self.ends[tool]]
    }

    /// The tools whose texts contain the needle of `finder`, which has no line break.
    pub(crate) fn containing(&self, finder: &Finder<'_>) -> impl Iterator<Item = usize> {
        let mut tool = 0;
        std::iter::from_fn(move || {
            let start = if tool == 0 { 0 } else { self.ends.get(tool - 1)? + 1 };
            let found = start + finder.find(&self.text.as_bytes()[start..])?;
            let here = tool + self.ends[tool..].partition_point(|end| *end < found);
            tool = here + 1;
            Some(here)
        })
    }
}

/// The text in lower case with single blanks, as a column has it.
pub(crate) fn normalised(text: &str) -> String {
    let mut lower = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !lower.is_empty() {
            lower.push(' ');
        }
        lower_into(word, &mut lower);
    }
    lower
}

fn lower_into(word: &str, text: &mut String) {
    if word.is_ascii() {
        text.extend(word.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        text.push_str(&word.to_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_finds_each_tool_once() {
        let mut column = Column::default();
        for text in ["Read a File", "", "file FILE\nfile", "write"] {
            column.push([text]);
        }
        let containing = |needle: &str| column.containing(&Finder::new(needle)).collect::<Vec<_>>();
        assert_eq!(containing("file"), [0, 2]);
        assert_eq!(containing("e"), [0, 2, 3]);
        assert_eq!(containing("file file file"), [2]);
        assert!(containing("filewrite").is_empty());
        assert_eq!((column.get(0), column.get(1), column.get(3)), ("read a file", "", "write"));
    }

    #[test]
    fn an_empty_block_has_no_matches() {
        assert_eq!(Column::default().containing(&Finder::new("a")).count(), 0);
        assert_eq!(normalised(" Ä  b\tC "), "ä b c");
    }
}
