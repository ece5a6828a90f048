//! Compresses responses.

use std::io::{self, Write as _};

use flate2::{Compression, write::GzEncoder};

/// Shorter texts gain nothing.
pub(crate) const SHORTEST: usize = 600;

/// The text as a gzip file.
pub(crate) fn gzip(text: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    encoder.finish()
}
