use super::*;
use crate::encoder::{QueryVector, UnitVector};

const DIMENSIONS: usize = 48;

/// A vector with one large component and small others.
fn towards(place: usize) -> UnitVector {
    let mut numbers = vec![0.01; DIMENSIONS];
    numbers[place] = 1.0;
    UnitVector::new(numbers).unwrap()
}

fn query(place: usize) -> QueryVector {
    QueryVector { text: towards(place), hint: None }
}

fn index(tools: &[(&str, &str)]) -> EmbeddingIndex {
    let mut index = EmbeddingIndex::default();
    let tools: Vec<_> = tools
        .iter()
        .map(|(key, description)| {
            (ToolKey::from(*key), ToolText { name: key, description, ..ToolText::default() })
        })
        .collect();
    index.replace_server("s", ServerText { name: "s", description: "" }, &tools);
    index
}

fn found(index: &EmbeddingIndex, text: &str, vector: Option<&QueryVector>) -> Vec<String> {
    let query = Query { vector, ..Query::new(text, 10) };
    index.search(&query).unwrap().iter().map(|hit| hit.key.to_string()).collect()
}

#[test]
fn the_encoder_decides_where_it_has_vectors() {
    let mut index = index(&[("rain", "Weather ahead"), ("mail", "Send a letter")]);
    let tools = vec![(ToolKey::from("rain"), towards(3)), (ToolKey::from("mail"), towards(7))];
    index.set_vectors("s", &ServerVectors { server: None, tools });
    assert_eq!(found(&index, "weather", None)[0], "rain", "without a vector the table decides");
    assert_eq!(found(&index, "weather", Some(&query(7)))[0], "mail");
    assert_eq!(found(&index, "qwrtz pfgh", Some(&query(3)))[0], "rain", "words it never saw");
}

#[test]
fn a_tool_without_a_vector_stays_to_be_found() {
    let mut index = index(&[("rain", "Weather ahead"), ("mail", "Send a letter"), ("sum", "Add")]);
    let tools = vec![(ToolKey::from("mail"), towards(7)), (ToolKey::from("sum"), towards(9))];
    index.set_vectors("s", &ServerVectors { server: None, tools });
    let found = found(&index, "weather", Some(&query(30)));
    assert_eq!(found[0], "rain", "{found:?}");
}

#[test]
fn vectors_of_another_length_are_ignored() {
    let mut index = index(&[("rain", "Weather ahead"), ("mail", "Send a letter")]);
    let other = UnitVector::new(vec![1.0, 2.0]).unwrap();
    let tools = vec![(ToolKey::from("mail"), other)];
    index.set_vectors("s", &ServerVectors { server: Some(towards(1)), tools });
    assert_eq!(found(&index, "weather", Some(&query(7)))[0], "rain");
    index.set_vectors("s", &ServerVectors::default());
    index.set_vectors("nobody", &ServerVectors::default());
    assert_eq!(found(&index, "weather", Some(&query(7)))[0], "rain");
}

#[test]
fn the_order_of_tools_and_vectors_does_not_matter() {
    let tools: Vec<String> = (0..40).map(|place| format!("tool{place:02}")).collect();
    let mut answers = Vec::new();
    for turn in [0, 13, 27] {
        let mut names: Vec<(&str, &str)> =
            tools.iter().map(|name| (name.as_str(), "Does a thing")).collect();
        names.rotate_left(turn);
        let mut index = index(&names);
        let mut vectors: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(place, name)| (ToolKey::from(name.as_str()), towards(place)))
            .collect();
        vectors.rotate_left(turn * 2 % 40);
        index.set_vectors("s", &ServerVectors { server: None, tools: vectors });
        let asked = QueryVector { text: towards(5), hint: Some(towards(8)) };
        let query = Query { vector: Some(&asked), ..Query::new("thing", 10) };
        answers.push(index.search(&query).unwrap());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0] && !answer.is_empty()));
}

#[test]
fn rounding_to_bytes_keeps_the_ranking_in_any_dimension() {
    for dimensions in [3_usize, 384, 1_536, 8_192] {
        let number = |seed: usize| {
            #[expect(clippy::cast_precision_loss, reason = "any number does")]
            let value = ((seed * 7_919 + 13) % 1_009) as f32;
            value / 500.0 - 1.0
        };
        let vector = |seed: usize| {
            UnitVector::new((0..dimensions).map(|i| number(i * seed)).collect()).unwrap()
        };
        let (left, right) = (vector(3), vector(5));
        let exact: f32 =
            left.as_slice().iter().zip(right.as_slice()).map(|(left, right)| left * right).sum();
        let mut index = index(&[("a", "Weather")]);
        let tools = vec![(ToolKey::from("a"), right)];
        index.set_vectors("s", &ServerVectors { server: None, tools });
        let asked = QueryVector { text: left, hint: None };
        let hits =
            index.search(&Query { vector: Some(&asked), ..Query::new("weather", 1) }).unwrap();
        assert!((hits[0].score - exact).abs() < 0.01, "{dimensions}: {} {exact}", hits[0].score);
    }
}
