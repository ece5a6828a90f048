//! Runs scripts in worker processes that can reach nothing but their host.
