//! The learned types of results, by server.

use std::{fmt, path::PathBuf};

use crate::{StoreError, files};

/// Stores one small JSON text per server. Its content is the caller's business.
pub trait ShapeStore: fmt::Debug + Send + Sync {
    /// The last saved text; `None` if there is none or it cannot be read.
    fn load(&self, server: &str) -> Option<String>;

    /// Replaces the saved text. A text that is too long is not saved.
    fn save(&self, server: &str, text: &str) -> Result<(), StoreError>;
}

/// The texts of one folder.
#[derive(Debug, Clone)]
pub struct ShapeFolder {
    folder: PathBuf,
}

/// The longest text of one server.
pub const MAX_SHAPES_BYTES: usize = 4 * 1024 * 1024;

impl ShapeFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{}.json", files::slug(server)))
    }
}

impl ShapeStore for ShapeFolder {
    fn load(&self, server: &str) -> Option<String> {
        let text = files::read_bounded(&self.path(server), MAX_SHAPES_BYTES as u64).ok()?;
        String::from_utf8(text).ok()
    }

    fn save(&self, server: &str, text: &str) -> Result<(), StoreError> {
        if text.len() > MAX_SHAPES_BYTES {
            return Ok(());
        }
        files::replace(&self.path(server), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use crate::Store;

    #[test]
    fn the_last_saved_shape_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let shapes = Store::new(folder.path()).shapes();
        assert_eq!(shapes.load("a/b"), None);
        shapes.save("a/b", "{}").unwrap();
        shapes.save("a/b", "{\"x\":1}").unwrap();
        assert_eq!(shapes.load("a/b").as_deref(), Some("{\"x\":1}"));
        assert_eq!(shapes.load("a-b"), None);
    }

    #[test]
    fn shapes_that_are_too_large_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let shapes = Store::new(folder.path()).shapes();
        shapes.save("a", "{}").unwrap();
        shapes.save("a", &"x".repeat(super::MAX_SHAPES_BYTES + 1)).unwrap();
        assert_eq!(shapes.load("a").as_deref(), Some("{}"));
    }
}
