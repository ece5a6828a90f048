//! Tools, and queries with known answers.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{
    search_index::SearchIndex,
    text::{ParameterText, ServerText, ToolKey, ToolText},
};

/// A catalogue and queries to it. Fields that are not listed here are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelledSet {
    /// All tools, each once.
    pub corpus: Vec<LabelledTool>,
    /// The queries; a set for scale has none.
    #[serde(default)]
    pub queries: Vec<LabelledQuery>,
}

/// A tool of a set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelledTool {
    /// Its name in the labels.
    pub id: String,
    /// Its server.
    pub server: String,
    /// The description of the server.
    #[serde(default)]
    pub server_desc: String,
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub desc: String,
    /// The names of its parameters and their descriptions.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
}

/// A query of a set, and what answers it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelledQuery {
    /// The query.
    pub q: String,
    /// Words about the kind of server wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How the query is written, such as `terse` or `typos`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// The needs of the query. Any one of its tools meets a need.
    pub labels: Vec<Vec<String>>,
    /// The gain of each tool. Without it, each labelled tool has the gain 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains: Option<BTreeMap<String, f64>>,
}

impl LabelledSet {
    /// The servers and their tools, as the input of an index.
    pub fn servers(&self) -> Vec<(ServerText<'_>, Vec<(ToolKey, ToolText<'_>)>)> {
        let mut servers: BTreeMap<&str, Vec<&LabelledTool>> = BTreeMap::new();
        for tool in &self.corpus {
            servers.entry(&tool.server).or_default().push(tool);
        }
        let taken = servers.into_iter().map(|(name, tools)| {
            let description = tools.first().map_or("", |tool| tool.server_desc.as_str());
            let tools = tools.iter().map(|tool| (ToolKey::from(tool.id.as_str()), tool.text()));
            (ServerText { name, description }, tools.collect())
        });
        taken.collect()
    }

    /// Adds all tools to an index.
    pub fn put_into(&self, index: &mut SearchIndex) {
        for (server, tools) in self.servers() {
            index.replace_server(server.name, server, &tools);
        }
    }

    /// The labels without a tool in the set, each once.
    pub fn unknown_labels(&self) -> Vec<&str> {
        let known: HashSet<&str> = self.corpus.iter().map(|tool| tool.id.as_str()).collect();
        let labels = self.queries.iter().flat_map(|query| query.labels.iter().flatten());
        let mut seen = HashSet::new();
        labels
            .map(String::as_str)
            .filter(|label| !known.contains(label) && seen.insert(*label))
            .collect()
    }
}

impl LabelledTool {
    /// The tool as the input of an index.
    pub fn text(&self) -> ToolText<'_> {
        let parameters = self.params.iter().map(|(name, description)| ParameterText {
            name,
            description,
            values: Vec::new(),
        });
        ToolText {
            name: &self.name,
            title: None,
            description: &self.desc,
            parameters: parameters.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_not_in_the_corpus_are_named() {
        let tool = LabelledTool { id: "a".into(), ..LabelledTool::default() };
        let needs = vec![vec!["a".into(), "x".into()], vec!["x".into()]];
        let query = LabelledQuery { labels: needs, ..LabelledQuery::default() };
        let set = LabelledSet { corpus: vec![tool], queries: vec![query] };
        assert_eq!(set.unknown_labels(), ["x"]);
    }
}
