//! Scripts and what is found in them.

mod fixture;
mod hostile;
mod property;
mod python;
mod rendered;
mod strip;
mod typescript;
