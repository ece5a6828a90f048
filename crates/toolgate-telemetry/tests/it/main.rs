//! What a collector gets, and what it costs when there is none.

mod export;
