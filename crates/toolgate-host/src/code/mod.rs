//! Scripts that call tools.

mod budget;
mod media;
mod outputs;
mod value;
