//! The library as a program uses it.

mod approvals;
mod builder;
mod docs;
mod examples;
mod functions;
mod loading;
