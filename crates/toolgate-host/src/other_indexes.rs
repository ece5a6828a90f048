//! Indexes of other strategies than the configured one, for queries that choose theirs.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolgate_broker::SharedCatalog;
use toolgate_catalog::Tool;
use toolgate_search::{SearchIndex, ServerText, StrategyName, ToolKey};

use crate::tool_text::DefinitionText;

/// An index for each strategy that a query has chosen, with the version of the catalog it was made of.
#[derive(Debug, Default)]
pub(crate) struct OtherIndexes {
    made: Mutex<HashMap<StrategyName, (u64, Arc<SearchIndex>)>>,
}

impl OtherIndexes {
    /// The index of a strategy over all tools of the catalog. It is made at the first query after a change.
    pub(crate) fn get(
        &self,
        strategy: StrategyName,
        version: u64,
        catalog: &SharedCatalog,
    ) -> Arc<SearchIndex> {
        // Locked while it is made: who wants the same one would make it again.
        let mut made = self.made.lock();
        match made.get(&strategy) {
            Some((of, index)) if *of == version => Arc::clone(index),
            _ => {
                let index = Arc::new(index_of(strategy, catalog));
                made.insert(strategy, (version, Arc::clone(&index)));
                index
            }
        }
    }
}

fn index_of(strategy: StrategyName, catalog: &SharedCatalog) -> SearchIndex {
    let servers: Vec<(String, String, Vec<Tool>)> = {
        let catalog = catalog.read();
        let of = |entry: &toolgate_catalog::CatalogServer| {
            let description = entry.description.clone().unwrap_or_default();
            (entry.name.to_string(), description, catalog.tools_of(entry.name.as_str()).to_vec())
        };
        catalog.servers().map(of).collect()
    };
    let mut index = SearchIndex::ranked_by(strategy);
    for (name, description, tools) in &servers {
        let parsed: Vec<DefinitionText> =
            tools.iter().map(|tool| DefinitionText::new(tool.definition.to_value())).collect();
        let texts = tools.iter().zip(&parsed);
        let texts: Vec<_> =
            texts.map(|(tool, parsed)| (ToolKey::new(tool.name.to_arc()), parsed.text())).collect();
        index.replace_server(name, ServerText { name, description }, &texts);
    }
    index
}
