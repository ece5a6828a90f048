//! `toolgate serve`: what a model sees, finds and calls.

mod budget;
mod call;
mod details;
mod finding;
mod list;
mod passing;
mod search;
