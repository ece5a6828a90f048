//! A program with a mistake: it runs scripts and does not call `toolgate::init()`. A test runs it, and
//! sees that it is told so.

#![expect(clippy::print_stdout, reason = "an example prints")]

#[tokio::main]
async fn main() {
    match toolgate::Host::builder().start().await {
        Ok(_) => println!("it started"),
        Err(error) => println!("{error}"),
    }
}
