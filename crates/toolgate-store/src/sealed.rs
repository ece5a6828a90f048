//! Files of a cache that are believed as they are, because a checksum covers their content and what
//! they are for. A file that is damaged, cut, or renamed from another one counts as missing.

use std::path::Path;

use crate::{StoreError, files};

const CHECKSUM: usize = blake3::OUT_LEN;

/// The content of a file that [`replace`] wrote for the same purpose.
pub(crate) fn read(path: &Path, purpose: &str, limit: u64) -> Option<Sealed> {
    let bytes = files::read_bounded(path, limit).ok()?;
    let (sum, content) = bytes.split_at_checked(CHECKSUM)?;
    (*checksum(purpose, content).as_bytes() == *sum).then_some(Sealed(bytes))
}

/// Replaces a file in one step.
pub(crate) fn replace(path: &Path, purpose: &str, content: &[u8]) -> Result<(), StoreError> {
    let sum = checksum(purpose, content);
    files::replace(path, &[sum.as_bytes(), content].concat())
}

/// A file with a checksum that is right.
#[derive(Debug)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// What was written.
    pub fn content(&self) -> &[u8] {
        &self.0[CHECKSUM..]
    }
}

fn checksum(purpose: &str, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(purpose.len() as u64).to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_was_written_for_the_purpose_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content = |purpose| read(&path, purpose, 1_000).map(|file| file.content().to_vec());
        assert_eq!(content("words"), None);
        replace(&path, "words", b"some content").unwrap();
        assert_eq!(content("words").as_deref(), Some(&b"some content"[..]));
        assert_eq!(content("others"), None, "it is of something else");
        assert!(read(&path, "words", 20).is_none(), "it is too long");

        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(content("words"), None, "cut to {end} bytes");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(content("words"), None, "another byte {place}");
        }
    }
}
