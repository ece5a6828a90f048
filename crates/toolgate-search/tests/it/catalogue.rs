//! Tools that are owned, so that tests can keep, shuffle and compare them.

use toolgate_search::{
    Hit, ParameterText, PreparedTools, Query, SearchIndex, ServerText, StrategyName, ToolKey,
    ToolText,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tools: Vec<Tool>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Vec<(String, String, Vec<String>)>,
}

impl Server {
    pub(crate) fn new(name: &str, description: &str, tools: &[(&str, &str)]) -> Self {
        let tools = tools.iter().map(|(name, description)| Tool {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            parameters: Vec::new(),
        });
        Self { name: name.to_owned(), description: description.to_owned(), tools: tools.collect() }
    }

    pub(crate) fn put_into(&self, index: &mut SearchIndex) {
        let text = ServerText { name: &self.name, description: &self.description };
        let tools: Vec<_> = self.tools.iter().map(|tool| (self.key(tool), tool.text())).collect();
        index.replace_server(&self.name, text, &tools);
    }

    /// The same by bytes that were prepared earlier, if the index takes them.
    pub(crate) fn put_prepared_into(&self, index: &mut SearchIndex) {
        if !index.takes_prepared() {
            return self.put_into(index);
        }
        let texts: Vec<_> = self.tools.iter().map(Tool::text).collect();
        let bytes = PreparedTools::of(&texts).to_bytes();
        let Some(prepared) = PreparedTools::from_bytes(&bytes) else {
            panic!("what was just written cannot be read");
        };
        let tools: Vec<_> =
            self.tools.iter().map(|tool| (self.key(tool), tool.name.as_str())).collect();
        let text = ServerText { name: &self.name, description: &self.description };
        index.replace_prepared(&self.name, text, &tools, &prepared);
    }

    fn key(&self, tool: &Tool) -> ToolKey {
        ToolKey::new(format!("{}_{}", self.name, tool.name))
    }
}

impl Tool {
    fn text(&self) -> ToolText<'_> {
        let parameters = self.parameters.iter().map(|(name, description, values)| ParameterText {
            name,
            description,
            values: values.iter().map(String::as_str).collect(),
        });
        ToolText {
            name: &self.name,
            title: None,
            description: &self.description,
            parameters: parameters.collect(),
        }
    }
}

/// An index with the default strategy.
pub(crate) fn index_of(servers: &[Server]) -> SearchIndex {
    index_ranked_by(StrategyName::default(), servers)
}

pub(crate) fn index_ranked_by(strategy: StrategyName, servers: &[Server]) -> SearchIndex {
    let mut index = SearchIndex::ranked_by(strategy);
    for server in servers {
        server.put_into(&mut index);
    }
    index
}

/// The hits of a query that no strategy refuses.
pub(crate) fn found(index: &SearchIndex, query: &Query<'_>) -> Vec<Hit> {
    index.search(query).unwrap_or_default()
}

pub(crate) fn keys(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.key.as_str()).collect()
}
