use super::*;
use crate::query::Hit;

fn key(name: &str) -> ToolKey {
    ToolKey::from(name)
}

fn ranking(list: &[(&str, f32)]) -> Vec<Hit> {
    list.iter().map(|(name, score)| Hit { key: key(name), score: *score }).collect()
}

fn lifted(memory: &UsageMemory, query: &str, list: &[(&str, f32)]) -> Vec<String> {
    memory.lift(query, ranking(list), &()).iter().map(|hit| hit.key.to_string()).collect()
}

#[test]
fn a_useful_tool_moves_up_for_similar_queries_only() {
    let mut memory = UsageMemory::default();
    memory.record("book a table at a restaurant", &key("dining_reserve"));
    let list = [("calendar_create", 0.9), ("dining_reserve", 0.5), ("dining_list", 0.4)];
    assert_eq!(lifted(&memory, "reserve a restaurant table", &list)[0], "dining_reserve");
    assert_eq!(lifted(&memory, "add an appointment", &list)[0], "calendar_create");
}

#[test]
fn a_new_tool_keeps_its_rank() {
    let mut memory = UsageMemory::default();
    for round in 0..500 {
        memory.record(&format!("send a message to room {round}"), &key("chat_send"));
    }
    let list = [("weather_forecast", 1.0), ("chat_send", 0.9)];
    assert_eq!(lifted(&memory, "weather of tomorrow", &list)[0], "weather_forecast");
    // Nor by a tool that was of use for something a little like it.
    let list = [("mail_send", 1.0), ("chat_send", 0.9)];
    assert_eq!(lifted(&memory, "send an invoice by mail", &list)[0], "mail_send");
}

/// Every tool is remembered under its key in capitals; one is gone.
struct Capitals;

impl KnownTools for Capitals {
    fn remembered(&self, found: &ToolKey) -> ToolKey {
        key(&found.as_str().to_uppercase())
    }

    fn wanted(&self, remembered: &ToolKey) -> Option<ToolKey> {
        (remembered.as_str() != "GONE").then(|| key(&remembered.as_str().to_lowercase()))
    }
}

#[test]
fn a_useful_tool_is_added_under_its_current_name() {
    let mut memory = UsageMemory::default();
    memory.record("book a table for two", &key("DINING"));
    memory.record("book a table for two", &key("GONE"));
    let hits = |query| -> Vec<String> {
        let found = memory.lift(query, ranking(&[("other", 1.0)]), &Capitals);
        found.iter().map(|hit| hit.key.to_string()).collect()
    };
    assert_eq!(hits("book a table for four"), ["dining", "other"]);
    assert_eq!(hits("weather of tomorrow"), ["other"]);
    let found = memory.lift("book a table", ranking(&[("x", 1.0), ("dining", 0.8)]), &Capitals);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].key.as_str(), "dining");
}

#[test]
fn other_scripts_are_remembered_too() {
    let mut memory = UsageMemory::default();
    memory.record("明天北京的天气", &key("w"));
    assert_eq!(lifted(&memory, "后天北京的天气", &[("x", 1.0), ("w", 0.8)])[0], "w");
}

#[test]
fn the_memory_is_bounded_and_removes_the_oldest() {
    let mut memory = UsageMemory::default();
    for number in 0..UsageMemory::MAX_FOR_TOOL + 5 {
        memory.record(&format!("query number{number}x"), &key("tool"));
        memory.record("query number0x", &key("tool"));
    }
    let (_, past) = memory.tools().next().unwrap();
    assert_eq!((memory.len(), past.len()), (UsageMemory::MAX_FOR_TOOL, UsageMemory::MAX_FOR_TOOL));
    assert!(past.iter().any(|past| past.text() == "query number0x"));
    assert!(past.iter().all(|past| past.text() != "query number1x"));

    for number in 0..UsageMemory::MAX_TOTAL + 10 {
        memory.record("a query", &key(&format!("tool{number}")));
    }
    assert_eq!(memory.len(), UsageMemory::MAX_TOTAL);
    assert_eq!(memory.tools().map(|(_, past)| past.len()).sum::<usize>(), UsageMemory::MAX_TOTAL);
    assert!(memory.tools().all(|(name, _)| name.as_str() != "tool"));
}

#[test]
fn the_memory_is_stored_listed_and_erased() {
    let mut memory = UsageMemory::default();
    memory.record("  list my files ", &key("b"));
    memory.record("delete a file", &key("a"));
    memory.record("?!", &key("a"));
    memory.record("x", &key(&"k".repeat(10_000)));
    let json = serde_json::to_string(&memory).unwrap();
    assert_eq!(
        json,
        r#"{"tools":{"a":[{"query":"delete a file","last_used":1}],"b":[{"query":"list my files","last_used":0}]}}"#
    );
    let mut read: UsageMemory = serde_json::from_str(&json).unwrap();
    assert_eq!(read, memory);
    assert!(read.forget("a") && !read.forget("a"));
    assert_eq!(read.len(), 1);
    let nothing: UsageMemory = serde_json::from_str("{}").unwrap();
    assert!(nothing.is_empty());
}

#[test]
fn an_edited_file_cannot_break_the_bounds() {
    let many: Vec<String> = (0..50)
        .map(|number| format!(r#"{{"query": "word{number}x {}"}}"#, "long ".repeat(500)))
        .collect();
    let json = format!(r#"{{"tools": {{"t": [{}], "u": []}}}}"#, many.join(","));
    let memory: UsageMemory = serde_json::from_str(&json).unwrap();
    assert_eq!(memory.len(), UsageMemory::MAX_FOR_TOOL);
    assert!(
        memory
            .tools()
            .all(|(_, past)| { past.iter().all(|past| past.text().len() <= MAX_PAST_QUERY_BYTES) })
    );
}

#[test]
fn an_empty_list_of_hits_stays_empty() {
    let memory = UsageMemory::default();
    assert!(memory.lift("x", Vec::new(), &()).is_empty());
    assert_eq!(lifted(&memory, "", &[("a", 2.0), ("b", 1.0)]), ["a", "b"]);
}
