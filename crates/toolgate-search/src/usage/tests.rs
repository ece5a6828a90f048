use super::*;
use crate::query::Hit;

fn key(name: &str) -> ToolKey {
    ToolKey::from(name)
}

fn ranking(list: &[(&str, f32)]) -> Vec<Hit> {
    list.iter().map(|(name, score)| Hit::new(key(name), *score)).collect()
}

fn lifted(memory: &UsageMemory, query: &str, list: &[(&str, f32)]) -> Vec<String> {
    lifted_for("", memory, query, list)
}

fn lifted_for(
    caller: &str,
    memory: &UsageMemory,
    query: &str,
    list: &[(&str, f32)],
) -> Vec<String> {
    let recall = Recall { memory, tools: &(), caller };
    recall.lift(query, ranking(list)).iter().map(|hit| hit.key.to_string()).collect()
}

#[test]
fn a_useful_tool_moves_up_for_similar_queries_only() {
    let mut memory = UsageMemory::default();
    memory.record("book a table at a restaurant", &key("dining_reserve"));
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
    for _ in 0..2 {
        memory.record("book a table for two", &key("DINING"));
        memory.record("book a table for two", &key("GONE"));
    }
    let recall = Recall { memory: &memory, tools: &Capitals, caller: "" };
    let hits = |query| -> Vec<String> {
        let found = recall.lift(query, ranking(&[("other", 1.0)]));
        found.iter().map(|hit| hit.key.to_string()).collect()
    };
    assert_eq!(hits("book a table for four"), ["dining", "other"]);
    assert_eq!(hits("weather of tomorrow"), ["other"]);
    let found = recall.lift("book a table", ranking(&[("x", 1.0), ("dining", 0.8)]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].key.as_str(), "dining");
}

#[test]
fn other_scripts_are_remembered_too() {
    let mut memory = UsageMemory::default();
    memory.record("明天北京的天气", &key("w"));
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
        r#"{"tools":{"a":[{"query":"delete a file","good":1,"last_used":1}],"b":[{"query":"list my files","good":1,"last_used":0}]}}"#
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
    assert!(lifted(&memory, "x", &[]).is_empty());
    assert_eq!(lifted(&memory, "", &[("a", 2.0), ("b", 1.0)]), ["a", "b"]);
}

/// Tools that are far enough apart to be ranked well without a memory.
const PLAIN: &[(&str, f32)] = &[
    ("sms_send", 1.0),
    ("mail_send", 0.8),
    ("chat_send", 0.7),
    ("search_custom", 0.5),
    ("note_add", 0.4),
];

#[test]
fn one_use_pushes_no_tool_down_for_its_plain_query() {
    let mut memory = UsageMemory::default();
    memory.record("text the number of my landlord", &key("sms_send"));
    memory.record("drop a line to the accountant", &key("mail_send"));
    let names: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).collect();
    for query in ["send sms", "weather of tomorrow", "add a note"] {
        assert_eq!(lifted(&memory, query, PLAIN), names, "{query}");
    }
}

#[test]
fn one_wrong_call_puts_no_tool_first() {
    let mut memory = UsageMemory::default();
    memory.record("send sms", &key("note_add"));
    assert_eq!(lifted(&memory, "send sms", PLAIN)[0], "sms_send");
    assert_eq!(lifted(&memory, "send an email", PLAIN)[0], "sms_send");
    let mail_first = [("mail_send", 1.0), ("sms_send", 0.8), ("note_add", 0.3)];
    assert_eq!(lifted(&memory, "send an email", &mail_first)[..2], ["mail_send", "sms_send"]);
    // A second good call is no accident.
    memory.record("send sms", &key("note_add"));
    assert_eq!(lifted(&memory, "send sms", PLAIN)[0], "note_add");
}

#[test]
fn calls_of_no_use_count_against() {
    let mut memory = UsageMemory::default();
    for _ in 0..2 {
        memory.record("send sms to Ada", &key("note_add"));
    }
    assert_eq!(lifted(&memory, "send sms to Ada", PLAIN)[0], "note_add");
    memory.record_calls(&PastCalls::against("send sms to Ada"), &key("note_add"));
    assert_eq!(lifted(&memory, "send sms to Ada", PLAIN)[0], "sms_send");
    memory.record_calls(&PastCalls::against("send sms to Ada"), &key("note_add"));
    let names: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).collect();
    assert_eq!(lifted(&memory, "send sms to Ada", PLAIN), names, "as if there were no past");
}

#[test]
fn vague_queries_teach_little() {
    let mut memory = UsageMemory::default();
    for query in ["search", "search something", "find", "search for data"] {
        for _ in 0..5 {
            memory.record(query, &key("search_custom"));
        }
    }
    let names: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).collect();
    for query in ["search for hotels in Rome", "search", "find a file", "send sms"] {
        assert_eq!(lifted(&memory, query, PLAIN)[0], names[0], "{query}");
    }
}

#[test]
fn one_caller_does_not_decide_for_others() {
    let mut memory = UsageMemory::default();
    for number in 0..50 {
        let query = format!("send sms to customer {number}");
        memory.record_calls(&PastCalls::good(&query).by("mallory"), &key("note_add"));
    }
    let query = "send sms to customer 7";
    assert_eq!(lifted_for("mallory", &memory, query, PLAIN)[0], "note_add");
    assert_eq!(lifted_for("alice", &memory, query, PLAIN)[0], "sms_send");
    let unchanged: Vec<&str> = PLAIN.iter().map(|(name, _)| *name).collect();
    assert_eq!(lifted_for("alice", &memory, query, PLAIN), unchanged);
    // Several others may know better.
    for _ in 0..2 {
        memory.record_calls(&PastCalls::good(query).by("bob"), &key("note_add"));
    }
    assert_eq!(lifted_for("alice", &memory, query, PLAIN)[0], "note_add");
}

#[test]
fn one_caller_pushes_out_nothing_of_others() {
    let mut memory = UsageMemory::default();
    memory.record_calls(&PastCalls::good("write to Ada").by("alice"), &key("mail_send"));
    for number in 0..UsageMemory::MAX_TOTAL + 10 {
        let query = format!("query number{number}x");
        let tool = key(&format!("tool{}", number / 8));
        memory.record_calls(&PastCalls::good(&query).by("mallory"), &tool);
        memory.record_calls(&PastCalls::good(&query).by("mallory"), &key("mail_send"));
    }
    assert_eq!(memory.len(), UsageMemory::MAX_TOTAL);
    let (_, past) = memory.tools().find(|(tool, _)| tool.as_str() == "mail_send").unwrap();
    assert!(past.iter().any(|past| past.caller() == "alice"), "{past:?}");
}

#[test]
fn what_past_use_has_raised_is_marked() {
    let mut memory = UsageMemory::default();
    memory.record("tell Ada the news", &key("chat_send"));
    let recall = Recall { memory: &memory, tools: &(), caller: "" };
    let hits = recall.lift("tell Ada all the news", ranking(PLAIN));
    let marked: Vec<&str> =
        hits.iter().filter(|hit| hit.is_remembered).map(|hit| hit.key.as_str()).collect();
    assert_eq!(marked, ["chat_send"]);
}
