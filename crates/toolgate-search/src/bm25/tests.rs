use super::*;

fn put(index: &mut Bm25Index, server: &str, tools: usize) {
    let names: Vec<String> = (0..tools).map(|number| format!("tool_{number}")).collect();
    let tools: Vec<_> = names
        .iter()
        .map(|name| {
            let text = ToolText { name, description: "Read a file", ..ToolText::default() };
            (ToolKey::new(format!("{server}_{name}")), text)
        })
        .collect();
    index.replace_server(server, ServerText { name: server, description: "Files" }, &tools);
}

#[test]
fn removed_documents_take_at_most_a_quarter() {
    let mut index = Bm25Index::default();
    for round in 0..200 {
        put(&mut index, ["a", "b", "c"][round % 3], round % 17);
        let dead = index.tools.dead() + index.servers.dead();
        let places = index.tools.places() + index.servers.places();
        assert!(dead * 4 <= places, "{dead} of {places} in round {round}");
        assert_eq!(index.keys.len(), index.tools.places());
        assert_eq!(index.owners.len(), index.tools.places());
        assert_eq!(index.identities.len(), index.servers.places());
    }
    for server in ["a", "b", "c"] {
        index.remove_server(server);
    }
    assert_eq!((index.tools.places(), index.servers.places()), (0, 0));
}

#[test]
fn a_small_server_beside_a_large_one_does_not_pay_for_it_each_time() {
    let mut index = Bm25Index::default();
    put(&mut index, "large", 1_000);
    put(&mut index, "small", 1);
    let mut sweeps = 0;
    for _ in 0..1_000 {
        let before = index.tools.places();
        put(&mut index, "small", 1);
        sweeps += usize::from(index.tools.places() < before);
    }
    // Each change leaves a tool and a server behind; a quarter of a thousand is some 170 changes.
    assert!((1..=8).contains(&sweeps), "{sweeps}");
    assert_eq!(index.tool_count(), 1_001);
}

#[test]
fn a_tool_has_a_bounded_number_of_terms() {
    let words: Vec<String> = (0..200_000).map(|number| format!("w{number}x")).collect();
    let description = words.join(" ");
    let tool = ToolText { name: &description, description: &description, ..ToolText::default() };
    let terms = document::tool_terms(&Bm25Parameters::default(), &tool);
    assert!(terms.len() <= 2 * crate::limits::MAX_FIELD_TOKENS, "{}", terms.len());
}
