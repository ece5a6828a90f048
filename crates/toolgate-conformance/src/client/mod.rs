//! A client that does what a scenario wants.
use crate::Failure;
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    url: String,
}
pub(crate) async fn run(_: Arguments) -> Result<(), Failure> {
    Ok(())
}
