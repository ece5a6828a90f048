//! What is wrong with a script, found without running it.
