//! Scripts and what is found in them.

mod extract_types;
mod fixture;
mod flow;
mod flow_corpus;
mod flow_exceptions;
mod flow_library;
mod flow_oracle;
mod hostile;
mod property;
mod python;
mod rendered;
mod strip;
mod typescript;
