//! Decides about calls, and watches them.

#![expect(clippy::print_stdout, reason = "an example prints")]

use toolgate::{Approval, Event, Host, Script, json};

/// Deletes a file.
#[toolgate::tool(destructive)]
async fn delete_file(path: String) -> String {
    format!("{path} is gone")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    toolgate::init();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::builder()
        .tool(delete_file)
        .on_approval(|question| async move {
            println!("asked: {} of {}", question.tool, question.server);
            // A real program shows the question to a person: `println!("{question}")`.
            let path = question.arguments.as_ref().and_then(|all| all["path"].as_str());
            match path {
                Some(path) if path.starts_with("/tmp/") => Approval::Session,
                _ => Approval::Deny,
            }
        })
        .start()
        .await?;
    let mut events = host.events();
    let session = host.session();

    match session.call("delete_file", json!({ "path": "/etc/passwd" })).await {
        Ok(result) => println!("{}", result.text()),
        Err(error) => println!("error: {error}"),
    }
    println!("{}", session.call("delete_file", json!({ "path": "/tmp/a" })).await?.text());
    // The answer holds for the session, and a script has no other way to a tool.
    let script = Script::typescript("return await delete_file({ path: '/tmp/b' })");
    println!("{}", session.run(script).await?.parse::<String>()?);

    let mut ended = 0;
    while ended < 3 {
        if let Some(Event::CallEnded { call, problem, .. }) = events.next().await {
            let how = problem.map_or("done", |_| "not done");
            println!("event: {} {how}", call.tool);
            ended += 1;
        }
    }
    host.shutdown().await;
    Ok(())
}
