//! What the rest of the program may rely on, tested through the public interface.

mod catalogue;
mod equivalence;
mod hostile;
mod quality;
mod ranking;
