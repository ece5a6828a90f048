//! What the rest of the program may rely on, tested through the public interface.

mod catalogue;
mod equivalence;
mod hostile;
mod labelled_sets;
mod quality;
mod ranking;
