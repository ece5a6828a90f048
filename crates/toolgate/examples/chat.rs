//! A model that answers with the tools of a session.
//!
//! `cargo run --example chat -- ollama/qwen3 "What is twice 21?"`

#![expect(clippy::print_stdout, reason = "an example prints")]

use toolgate::{Chat, ChatEvent, Host, Model};

/// Doubles a number.
#[toolgate::tool(read_only, always_loaded)]
async fn double(
    /// The number.
    n: i64,
) -> i64 {
    n * 2
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::init();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("name a model: provider/name")?;
    let question = arguments.next().ok_or("ask something")?;
    let mut model = Model::new(&address)?.instructions("Use the tools for arithmetic.");
    if let Some(url) = arguments.next() {
        model = model.url(url);
    }
    if let Ok(key) = std::env::var("MODEL_KEY") {
        model = model.key(key);
    }
    let host = Host::builder().tool(double).start().await?;
    let mut chat = Chat::new(model, host.session());
    let answer = chat.ask_watching(&question, |event| {
        if let ChatEvent::Call { tool, arguments } = event {
            println!("calls {tool} with {arguments}");
        }
    });
    println!("{}", answer.await?);
    host.shutdown().await;
    Ok(())
}
