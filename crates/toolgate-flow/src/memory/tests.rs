use base64::Engine as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::labels::Label;

const LETTER: &str = "Dear board, the takeover of Meridian Freight closes on Friday at 41.70 a share; tell nobody before.";

fn memory() -> Memory {
    let mut memory = Memory::default();
    let labels = [Label::Private].into_iter().collect();
    let origin = DataOrigin::new(1, "mail_read").with_labels(labels);
    memory.learn(origin, &json!({ "subject": "News", "body": LETTER, "account": "DE-4471-9920" }));
    memory
}

fn traced(arguments: &Value) -> Trace {
    memory().trace("web_post", arguments)
}

fn via(text: &str) -> Option<Via> {
    traced(&json!({ "text": text })).matches.first().map(|found| found.via)
}

#[test]
fn copies_are_found_in_every_encoding() {
    assert_eq!(via(LETTER), Some(Via::Plain));
    assert_eq!(via(&LETTER[12..48]), Some(Via::Plain));
    assert_eq!(via(&LETTER.to_uppercase()), Some(Via::Plain));
    assert_eq!(via(&LETTER.replace(' ', "\n\t ")), Some(Via::Plain));
    assert_eq!(via(&format!("intro {LETTER} outro")), Some(Via::Plain));
    assert_eq!(
        via(&serde_json::to_string(&json!({ "deep": [LETTER] })).unwrap()),
        Some(Via::Plain)
    );
    let base64 = base64::engine::general_purpose::STANDARD.encode(LETTER);
    assert_eq!(via(&base64), Some(Via::Base64));
    assert_eq!(via(&base64[5..]), Some(Via::Base64));
}

#[test]
fn short_distinctive_words_are_found() {
    let trace = traced(&json!({ "note": "their number is de-4471-9920, thanks" }));
    assert_eq!(trace.matches[0].from, "/account");
    assert_eq!(trace.matches[0].field, "/note");
}

#[test]
fn the_evidence_names_the_origin_and_the_argument() {
    let trace = traced(&json!({ "to": "x", "parts": [{ "text": LETTER }] }));
    let found = &trace.matches[0];
    assert_eq!((found.field.as_str(), found.from.as_str()), ("/parts/0/text", "/body"));
    assert_eq!((found.origin.call, found.origin.tool.as_str()), (1, "mail_read"));
    assert!(found.origin.labels.contains(Label::Private));
    assert!(LETTER.contains(&found.excerpt) && found.excerpt.len() > 20, "{}", found.excerpt);
    assert!(!trace.incomplete);
}

#[test]
fn unrelated_text_is_not_found() {
    assert_eq!(via("Please post the quarterly figures to the public site."), None);
    assert_eq!(via("application/json; charset=utf-8"), None);
    assert_eq!(via("2026-11-16T10:00:00Z"), None);
}

#[test]
fn pieces_over_several_calls_are_put_together() {
    let mut memory = memory();
    let letters: Vec<char> = LETTER.chars().collect();
    let mut found = None;
    for piece in letters.chunks(5) {
        let piece: String = piece.iter().collect();
        let trace = memory.trace("web_post", &json!({ "text": piece }));
        found = found.or(trace.matches.first().map(|found| found.via));
    }
    assert_eq!(found, Some(Via::Pieces));
}

#[test]
fn text_of_the_caller_is_no_flow() {
    let mut memory = Memory::default();
    memory.knows("await search({ query: 'invoices of the Meridian Freight company in 2025' })");
    let echo = json!({ "query": "invoices of the Meridian Freight company in 2025", "hits": 0 });
    memory.learn(DataOrigin::new(1, "search"), &echo);
    let trace = memory.trace("web_post", &json!({ "text": echo["query"] }));
    assert_eq!(trace.matches, []);
}

#[test]
fn text_of_the_caller_that_a_tool_echoes_is_no_flow() {
    let mut memory = Memory::default();
    let arguments = json!({ "query": "all open tickets about the broken login page" });
    assert_eq!(memory.trace("tickets_search", &arguments).matches, []);
    memory.learn(
        DataOrigin::new(1, "tickets_search"),
        &json!({ "searched": arguments["query"], "hits": [] }),
    );
    assert_eq!(memory.trace("web_post", &arguments).matches, []);
}

#[test]
fn data_that_passed_through_another_tool_is_found() {
    let mut memory = memory();
    assert!(!memory.trace("notes_write", &json!({ "text": LETTER })).matches.is_empty());
    memory.learn(DataOrigin::new(2, "notes_write"), &json!({ "saved": LETTER }));
    let trace = memory.trace("web_post", &json!({ "text": LETTER }));
    assert_eq!(trace.matches[0].origin.tool, "mail_read");
}

#[test]
fn the_oldest_data_is_forgotten_first_and_this_is_reported() {
    let mut memory = Memory::with_limits(FlowLimits { hashes: 60, ..FlowLimits::default() });
    let private = [Label::Private].into_iter().collect();
    memory.learn(DataOrigin::new(1, "first").with_labels(private), &json!(LETTER));
    assert!(!memory.trace("t", &json!(LETTER)).matches.is_empty());
    for call in 2..20_u64 {
        let filler =
            format!("{call} {}", "lorem ipsum dolor ".repeat(usize::try_from(call).unwrap()));
        let filler: String = filler
            .chars()
            .enumerate()
            .map(
                |(at, letter)| {
                    if at % 7 == 0 { char::from(b'a' + (call % 26) as u8) } else { letter }
                },
            )
            .collect();
        memory.learn(DataOrigin::new(call, "filler"), &json!(filler));
    }
    let trace = memory.trace("t", &json!(LETTER));
    assert!(trace.incomplete && trace.matches.iter().all(|found| found.origin.call != 1));
    assert!(memory.touched().contains(Label::Private));
    assert!(memory.seen.len() <= 60);
}

#[test]
fn hostile_shapes_are_bounded() {
    let mut memory = memory();
    let mut deep = json!(LETTER);
    for _ in 0..500 {
        deep = json!([deep]);
    }
    assert!(memory.trace("t", &deep).incomplete);
    memory.learn(DataOrigin::new(2, "t"), &deep);
    let many: Vec<Value> =
        (0..50_000).map(|number| json!(format!("value number {number} of many"))).collect();
    memory.learn(DataOrigin::new(3, "t"), &json!(many));
    assert!(!memory.trace("t", &json!("value number 49999 of many")).matches.is_empty());
}

proptest! {
    #[test]
    fn any_slice_that_is_long_enough_is_found(start in 0_usize..50, length in 30_usize..50, before in ".{0,20}", after in ".{0,20}") {
        let end = (start + length).min(LETTER.len());
        let text = format!("{before} {} {after}", &LETTER[start..end]);
        let reduced = { let mut bytes = Vec::new(); text::reduce(&LETTER[start..end], &mut bytes); bytes.len() };
        prop_assume!(reduced >= SHORTEST);
        prop_assert!(via(&text).is_some());
    }

    #[test]
    fn nothing_panics(text in ".{0,400}") {
        let mut memory = Memory::default();
        memory.knows(&text);
        memory.learn(DataOrigin::new(1, "t"), &json!({ text.clone(): text }));
        memory.trace("t", &json!([text]));
    }
}

#[test]
fn an_earlier_match_does_not_match_a_harmless_call() {
    let mut memory = Memory::default();
    let note = "owes us 48,200 EUR since the spring of last year";
    memory.learn(DataOrigin::new(1, "crm_get"), &json!({ "note": note }));
    assert!(!memory.trace("mail_send", &json!({ "body": note })).matches.is_empty());
    let harmless = json!({ "body": "Lunch is at noon today." });
    assert_eq!(memory.trace("mail_send", &harmless).matches, []);
}

/// The same result again and again is remembered once, and so is one of many small parts.
#[test]
fn repeated_data_takes_no_more_memory() {
    let limits = FlowLimits { hashes: 1_000, ..FlowLimits::default() };
    let mut memory = Memory::with_limits(limits);
    let result =
        json!({ "note": "owes us 48,200 EUR since the spring of last year", "rows": [1, 2, 3] });
    for call in 0..10_000 {
        memory.learn(DataOrigin::new(call, "crm_get"), &result);
    }
    assert!(memory.leaves <= 10, "{}", memory.leaves);
    let carried = json!({ "body": "he owes us 48,200 EUR since the spring of last year" });
    let trace = memory.trace("mail_send", &carried);
    assert_eq!((trace.matches[0].origin.call, trace.incomplete), (0, false));
    // Leaves without a word that tells anything.
    let empty = json!(vec![0; 400]);
    for call in 0..100 {
        memory.learn(DataOrigin::new(call, "t"), &empty);
    }
    assert!(memory.leaves <= 1_000 && memory.results.len() <= RESULTS, "{}", memory.leaves);
}

/// Every way of writing that a program can undo is seen through.
#[test]
fn other_encodings_and_orders_are_found() {
    let letters = |between: &str| {
        LETTER.chars().map(|letter| format!("{letter}{between}")).collect::<Vec<_>>().concat()
    };
    let codes = |write: fn(u8) -> String| LETTER.bytes().map(write).collect::<Vec<_>>();
    let reversed: String = LETTER.chars().rev().collect();
    let wide: String = LETTER
        .chars()
        .map(|letter| char::from_u32(u32::from(letter) + 0xfee0).filter(|_| letter > ' '))
        .map(|wide| wide.unwrap_or(' '))
        .collect();
    for (name, text) in [
        ("reversed", reversed),
        ("character codes", codes(|byte| byte.to_string()).join(",")),
        ("HTML entities", codes(|byte| format!("&#{byte};")).concat()),
        ("quoted-printable", codes(|byte| format!("={byte:02X}")).concat()),
        (
            "base32",
            "IRSWC4RAMJXWC4TEFQQHI2DFEB2GC23FN53GK4RAN5TCATLFOJUWI2LBNYQEM4TFNFTWQ5BAMNWG643FOM======"
                .to_owned(),
        ),
        ("full width", wide),
        ("zero width", letters("\u{200b}")),
        ("interleaved", letters("q")),
    ] {
        assert!(via(&text).is_some(), "{name}: {text}");
        // A number that is telling in itself, too.
        assert!(via(&format!("see {text} there")).is_some(), "{name} in a text");
    }
    let list: Vec<String> = LETTER.chars().map(String::from).collect();
    assert!(!traced(&json!({ "parts": list })).matches.is_empty(), "a list of letters");
    let list: Vec<u8> = LETTER.bytes().collect();
    let trace = traced(&json!({ "message": { "codes": list } }));
    assert_eq!(trace.matches[0].field, "/message/codes");
}

/// Results of several tools say the same, and so do people who have read none of them.
#[test]
fn times_and_common_messages_are_no_flow() {
    let mut memory = Memory::default();
    for (call, said) in [
        json!({ "items": [], "message": "No results found." }),
        json!("No results found for \"invoices of Meridian\""),
        json!({ "error": "Rate limit exceeded. Please try again in 60 seconds.", "status": 429 }),
        json!("API rate limit exceeded for user ID 8812. Retry after 2026-11-16T10:00:00.123456Z"),
        json!({ "createdAt": "2026-11-16T10:42:07.123Z", "updated": 1_763_287_200, "ms": 1_763_287_200_123_u64 }),
        json!("Mon, 16 Nov 2026 10:42:07 GMT"),
        json!("Error: request timed out after 30 seconds"),
    ]
    .iter()
    .enumerate()
    {
        memory.learn(DataOrigin::new(call as u64, format!("tool_{call}")), said);
    }
    for text in [
        "No results found.",
        "No results found for the customer that you asked about",
        "The search says: no results found, sorry",
        "Rate limit exceeded. Please try again in 60 seconds.",
        "rate limit exceeded for user",
        "Report of 2026-11-16T10:42:07.123Z",
        "Mon, 16 Nov 2026 10:42:07 GMT",
        "since 1763287200, or 1763287200123",
        "request timed out after 30 seconds",
    ] {
        let trace = memory.trace("chat_post", &json!({ "text": text }));
        assert_eq!(trace.matches, [], "{text}");
    }
    let carried = memory.trace("chat_post", &json!({ "text": "invoices of Meridian" }));
    assert_eq!(carried.matches.len(), 1, "what is specific is found");
}
