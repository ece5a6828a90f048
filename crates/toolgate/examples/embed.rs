//! Finds and calls the tools of a server, in a program of your own.
//!
//! `cargo run --example embed -- mcp-server-time --local-timezone UTC`

#![expect(clippy::print_stdout, reason = "an example prints")]

use toolgate::{Host, Stdio, json};

#[derive(serde::Deserialize)]
struct Time {
    timezone: String,
    datetime: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::init();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "mcp-server-time".to_owned());
    let server = Stdio::new("time", command).args(arguments);
    let host = Host::builder().server(server).start().await?;
    // A slow computer may need more than the three seconds of `start`.
    host.ready().await;

    let mut session = host.session();
    session.preload(["time_get_current_time"])?;
    let mode = session.mode().await;
    println!("mode: {:?}, because {}", mode.mode, mode.reason);
    for tool in session.loaded().await.iter().filter(|tool| !tool.is_meta_tool) {
        println!("loaded: {}", tool.name);
    }

    let hits = session.search("what time is it in another city").limit(1).await?;
    println!("found: {}", hits[0].name);
    let details = session.details("time_get_current_time").await?;
    println!("required: {}", details.input_schema["required"]);

    let time = json!({ "timezone": "Europe/Paris" });
    let time: Time = session.call("time_get_current_time", time).await?.parse()?;
    assert!(time.datetime.starts_with("20"), "{}", time.datetime);
    println!("asked for the time in {}", time.timezone);

    // A mistake is an error that says what to do.
    for (name, arguments) in [
        ("time_get_current_tme", json!({ "timezone": "UTC" })),
        ("time_get_current_time", json!({ "zone": "UTC" })),
    ] {
        if let Err(error) = session.call(name, arguments).await {
            println!("error: {}", error.to_string().lines().next().unwrap_or_default());
        }
    }

    session.unload(["time_get_current_time"])?;
    session.reset();
    host.shutdown().await;
    Ok(())
}
