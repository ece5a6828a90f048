//! An index depends only on its tools, not on its history.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, sample::select};
use toolgate_search::{Hit, Query, SearchIndex, StrategyName};

use crate::catalogue::{Server, Tool, found, index_ranked_by};

/// Few words, so that tools share them and scores tie.
const WORDS: &[&str] =
    &["read", "write", "file", "issue", "list", "user", "log", "mail", "天气", "search"];
const SERVERS: &[&str] = &["alpha", "beta", "gamma", "file", "user-mail"];
const QUERIES: &[&str] = &[
    "read file",
    "list the issues of a user",
    "alpha write",
    "user mail search",
    "天气",
    "read_file",
    "beta_list_issue log log",
];

#[derive(Debug, Clone)]
enum Change {
    Replace(Server),
    Remove(String),
}

fn words(most: usize, glue: &'static str) -> impl Strategy<Value = String> {
    vec(select(WORDS), 1..=most).prop_map(move |words| words.join(glue))
}

fn tool() -> impl Strategy<Value = Tool> {
    let parameter = (words(2, "_"), words(3, " "), vec(words(1, ""), 0..3));
    (words(2, "_"), words(6, " "), vec(parameter, 0..3))
        .prop_map(|(name, description, parameters)| Tool { name, description, parameters })
}

fn server() -> impl Strategy<Value = Server> {
    (select(SERVERS), words(3, " "), vec(tool(), 0..6)).prop_map(|(name, description, tools)| {
        // Within a server a name comes once, or the order of the list would count.
        let tools: BTreeMap<String, Tool> =
            tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        Server { name: name.to_owned(), description, tools: tools.into_values().collect() }
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => server().prop_map(Change::Replace),
        1 => select(SERVERS).prop_map(|name| Change::Remove(name.to_owned())),
    ]
}

/// The exact hits of all queries.
fn answers(index: &SearchIndex) -> Vec<Vec<(String, u32)>> {
    let exact = |hit: Hit| (hit.key.to_string(), hit.score.to_bits());
    let mut answers = Vec::new();
    for text in QUERIES {
        for limit in [3, 1_000] {
            let query = Query::new(text, limit);
            let queries =
                [query, query.with_hint("file user"), query.in_servers(&["beta", "file"])];
            answers
                .extend(queries.map(|query| found(index, &query).into_iter().map(exact).collect()));
        }
    }
    answers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_history_equals_a_fresh_build(changes in vec(change(), 0..24)) {
        for strategy in StrategyName::ALL {
            let mut index = index_ranked_by(*strategy, &[]);
            let mut present: BTreeMap<&str, Server> = BTreeMap::new();
            for change in &changes {
                match change {
                    Change::Replace(server) => {
                        server.put_into(&mut index);
                        present.insert(&server.name, server.clone());
                    }
                    Change::Remove(name) => {
                        index.remove_server(name);
                        present.remove(name.as_str());
                    }
                }
            }
            let present: Vec<Server> = present.into_values().collect();
            let fresh = index_ranked_by(*strategy, &present);
            let tools: usize = present.iter().map(|server| server.tools.len()).sum();
            prop_assert_eq!(index.tool_count(), tools);
            prop_assert_eq!(index.tool_count(), fresh.tool_count());
            prop_assert_eq!(answers(&index), answers(&fresh), "{}", strategy);
        }
    }

    #[test]
    fn prepared_texts_give_the_same_answers(servers in vec(server(), 1..6)) {
        for strategy in StrategyName::ALL {
            let by_texts = index_ranked_by(*strategy, &servers);
            let mut by_bytes = index_ranked_by(*strategy, &[]);
            for server in &servers {
                server.put_prepared_into(&mut by_bytes);
            }
            prop_assert_eq!(answers(&by_texts), answers(&by_bytes), "{}", strategy);
        }
    }

    #[test]
    fn the_order_of_insertion_does_not_matter(
        (servers, shuffled) in vec(server(), 1..5).prop_flat_map(|servers| {
            let servers: BTreeMap<String, Server> =
                servers.into_iter().map(|server| (server.name.clone(), server)).collect();
            let servers: Vec<Server> = servers.into_values().collect();
            (Just(servers.clone()), Just(servers).prop_shuffle())
        })
    ) {
        let mut shuffled: Vec<Server> = shuffled;
        for server in &mut shuffled {
            server.tools.reverse();
        }
        for strategy in StrategyName::ALL {
            let (ordered, other) =
                (index_ranked_by(*strategy, &servers), index_ranked_by(*strategy, &shuffled));
            prop_assert_eq!(answers(&ordered), answers(&other), "{}", strategy);
        }
    }
}
