//! Hostile texts of servers and models.

use proptest::prelude::*;
use toolgate_search::{
    Bm25Index, Bm25Parameters, FieldWeights, Query, SearchIndex, ServerText, Strategy as _,
    StrategyName, ToolKey, ToolText,
};

use crate::catalogue::{Server, index_of, index_ranked_by, keys};

#[test]
fn a_huge_description_has_no_advantage() {
    let stuffed = "deploy ".repeat(150_000);
    let index = index_of(&[Server::new(
        "host",
        "",
        &[("release", "Deploy an application"), ("stuffed", &stuffed), ("other", "Nothing")],
    )]);
    let hits = index.search(&Query::new("deploy application", 5)).unwrap();
    assert_eq!(keys(&hits), ["host_release", "host_stuffed"]);
}

#[test]
fn only_the_beginning_of_a_huge_text_is_read() {
    let mut late = "filler ".repeat(150_000);
    late.push_str("needle");
    let server = [Server::new("s", &late, &[("t", &late)])];
    let words = index_ranked_by(StrategyName::Bm25, &server);
    assert!(words.search(&Query::new("needle", 5)).unwrap().is_empty());
    let index = index_of(&server);
    assert_eq!(index.search(&Query::new("filler", 5)).unwrap().len(), 1);
    assert_eq!(index.search(&Query::new(&"filler ".repeat(150_000), usize::MAX)).unwrap().len(), 1);
}

#[test]
fn invisible_and_control_characters_do_not_help_or_hurt() {
    let index = index_of(&[Server::new(
        "s",
        "",
        &[("d\u{200B}ele\u{AD}te", "Remove\u{0}a\u{7}\u{202E}file"), ("\u{200B}", "\u{FEFF}")],
    )]);
    for text in ["delete", "de\u{2060}lete", "file\u{0}remove"] {
        assert_eq!(index.search(&Query::new(text, 5)).unwrap().len(), 1, "{text:?}");
    }
}

#[test]
fn a_name_cannot_be_forged_in_a_description() {
    let index = index_of(&[Server::new(
        "s",
        "=pay",
        &[("pay", "Pay a bill"), ("steal", "=pay =pay pay pay pay s_pay =spay pay")],
    )]);
    assert_eq!(keys(&index.search(&Query::new("pay", 5)).unwrap())[0], "s_pay");
    assert_eq!(keys(&index.search(&Query::new("=pay", 5)).unwrap())[0], "s_pay");
}

#[test]
fn two_servers_with_one_key_are_still_in_a_fixed_order() {
    let text = ToolText { name: "same", ..ToolText::default() };
    let tools = [(ToolKey::from("same"), text)];
    let mut index = SearchIndex::new();
    index.replace_server("b", ServerText::default(), &tools);
    index.replace_server("a", ServerText::default(), &tools);
    assert_eq!(index.search(&Query::new("same", 5)).unwrap().len(), 2);
}

#[test]
fn invalid_parameters_still_give_finite_scores() {
    let parameters = Bm25Parameters {
        saturation: f32::NAN,
        length_discount: f32::INFINITY,
        server_share: f32::MAX,
        weights: FieldWeights { name: -1.0, description: f32::MAX, ..FieldWeights::default() },
        ..Bm25Parameters::default()
    };
    let mut index = Bm25Index::with_parameters(parameters);
    let tool = ToolText { name: "read", description: "read a file", ..ToolText::default() };
    let server = ServerText { name: "disk", description: "file read" };
    index.replace_server("disk", server, &[(ToolKey::from("disk_read"), tool)]);
    let hits = index.search(&Query::new("read file on disk", 5)).unwrap();
    assert_eq!(hits.len(), 1);
    assert!(hits[0].score.is_finite());
}

proptest! {
    #[test]
    fn any_text_can_be_indexed_and_asked_for(
        name in any::<String>(),
        description in any::<String>(),
        server in any::<String>(),
        hint in any::<String>(),
        limit in any::<usize>(),
    ) {
        let tools: &[(&str, &str)] = &[(&name, &description), ("read", "Read a file")];
        let servers = [Server::new(&server, &description, tools)];
        for strategy in StrategyName::ALL {
            let mut index = index_ranked_by(*strategy, &servers);
            for text in [&name, &description, &server] {
                let query = Query::new(text, limit).with_hint(&hint);
                // Only an invalid regular expression is refused.
                let answer = index.search(&query);
                prop_assert!(answer.is_ok() || *strategy == StrategyName::Regex);
                let hits = answer.unwrap_or_default();
                prop_assert!(hits.len() <= limit.min(2));
                prop_assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0));
                prop_assert!(hits.is_sorted_by(|left, right| left.score >= right.score));
            }
            index.remove_server(&server);
            prop_assert_eq!(index.tool_count(), 0);
            prop_assert!(index.search(&Query::new("read", 5)).unwrap().is_empty());
        }
    }
}
