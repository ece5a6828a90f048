//! Several windows of one browser, which has six connections to an address.

use serde_json::{Value, json};
use toolgate_testkit::within;

use super::{OpenPage, browser::Browser, ended, references, waiting_call, workplace};
use crate::support::text;

/// All of them show a question, and the last one answers it.
#[tokio::test]
async fn seven_windows_are_live_and_can_act() {
    let place = workplace();
    let Some(mut browser) = Browser::open(&place).await else { return };
    let hidden = browser.does("windows", json!([7, "/ui/approvals"])).await;
    assert_eq!(hidden, json!(vec![false; 7]));
    let mut agent = place.serve(&["--mode", "direct"]);
    let task = waiting_call(&mut agent, "4711").await;
    for window in 0..7 {
        browser.does("window", json!(window)).await;
        let seen = browser.does("see", json!("article.question")).await;
        assert!(seen.as_str().unwrap().contains("4711"), "window {window}: {seen}");
    }
    browser.does("allow once", Value::Null).await;
    let seen = ended(&mut agent, &task).await;
    assert_eq!(text(&seen["result"]), "gone", "{seen}");
    for window in 0..7 {
        browser.does("window", json!(window)).await;
        browser.does("see", json!("#questions:not(:has(article))")).await;
    }
    assert_eq!(references(&place).await, Vec::<String>::new());
    assert_eq!(browser.complaints().await, json!([]));
}

#[tokio::test]
async fn a_fifth_stream_says_what_is_new_and_ends() {
    let place = workplace();
    let page = OpenPage::start(&place).await;
    let path = format!("{}/ui/approvals/live", page.origin);
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = page.ask(page.http.get(&path)).await;
        within("the first part", stream.chunk()).await.unwrap().unwrap();
        open.push(stream);
    }
    let fifth = page.ask(page.http.get(&path)).await;
    let said = within("the end of the stream", fifth.text()).await.unwrap();
    assert!(
        said.contains("No call waits for a decision.") && said.contains("retry: 2000"),
        "{said}"
    );
    // The browser asks again, and gets only what it does not have.
    let mut agent = place.serve(&["--mode", "direct"]);
    let again = async |said: &str| {
        let id = said.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap();
        let stream = page.ask(page.http.get(&path).header("last-event-id", id)).await;
        within("the end of the stream", stream.text()).await.unwrap()
    };
    let nothing = again(&said).await;
    assert!(!nothing.contains("No call waits") && !nothing.contains("event: waiting"), "{nothing}");
    waiting_call(&mut agent, "4711").await;
    let news = again(&nothing).await;
    assert!(news.contains("4711") && news.contains("event: waiting"), "{news}");
    // One ends, and the next stream stays open in its place.
    drop(open.pop());
    crate::support::until("a stream that stays open", async || {
        let mut stream = page.ask(page.http.get(&path)).await;
        let mut said = String::new();
        while let Some(chunk) = within("the stream", stream.chunk()).await.unwrap() {
            said.push_str(&String::from_utf8_lossy(&chunk));
            if said.contains("event: waiting") {
                break;
            }
        }
        let rest = tokio::time::timeout(std::time::Duration::from_secs(1), stream.chunk()).await;
        rest.is_err().then_some(())
    })
    .await;
}
