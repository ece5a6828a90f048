//! Functions of this program as tools, also for scripts.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use toolgate::{FunctionTool, Host, Script, SessionMode, json};

/// Doubles a number.
#[toolgate::tool(read_only)]
async fn double(
    /// The number.
    n: i64,
) -> i64 {
    n * 2
}

/// The notes of the program.
type Notes = Arc<Mutex<BTreeMap<String, String>>>;

/// Writes a note, and returns how many there are.
#[toolgate::tool(deferred)]
fn write_note(
    #[state] notes: Notes,
    /// What the note is about.
    title: String,
    text: String,
) -> Result<usize, String> {
    if title.is_empty() {
        return Err("a note needs a title".to_owned());
    }
    let mut notes = notes.lock().map_err(|_| "the notes are lost")?;
    notes.insert(title, text);
    Ok(notes.len())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Read {
    title: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::init();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let notes = Notes::default();
    let shelf = Arc::clone(&notes);
    // The same without the attribute: a closure that holds its state.
    let read_note = FunctionTool::new("read_note", "Reads a note.", move |read: Read| {
        let found = shelf.lock().ok().and_then(|notes| notes.get(&read.title).cloned());
        async move { found.ok_or("there is no such note") }
    });
    let host = Host::builder()
        .mode(SessionMode::Stable)
        .tool(double.tool().always_loaded())
        .tool(write_note.with(Arc::clone(&notes)))
        .tool(read_note.read_only())
        .start()
        .await?;
    let session = host.session();
    for tool in session.loaded().await.iter().filter(|tool| !tool.is_meta_tool) {
        println!("loaded: {}: {}", tool.name, tool.description);
    }
    println!("double: {}", session.call("double", json!({ "n": 21 })).await?.parse::<i64>()?);
    println!("found: {}", session.search("write something down").limit(1).await?[0].name);

    let script = Script::typescript(
        "const count = await write_note({ title: 'a', text: String(await double({ n: 4 })) });
         return { count, note: await read_note({ title: 'a' }) };",
    );
    let run = session.run(script).await?;
    println!("script: {}", run.parse::<toolgate::Value>()?);
    let run = session.run(Script::python("await double(n=3) + 1")).await?;
    println!("python: {}", run.parse::<i64>()?);

    let failed = session.call("write_note", json!({ "title": "", "text": "x" })).await?;
    if let Err(error) = failed.parse::<usize>() {
        println!("failed: {error}");
    }
    host.shutdown().await;
    Ok(())
}
