//! The images and other media of one run, which scripts pass on without holding the data.
//!
//! A script gets a short handle instead of the data. If it passes the handle to another tool, the
//! data is put back. If it returns or emits the block, the client gets the data as content. So
//! media neither crosses the sandbox's pipe nor becomes text in a model's context.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::journal::RunJournal;
use crate::resources::each_text;

/// The media of one run.
#[derive(Debug, Default)]
pub(super) struct Media {
    stored: Mutex<StoredMedia>,
    /// Stores the data for a resumed run.
    journal: Option<Arc<RunJournal>>,
}

#[derive(Debug, Default)]
struct StoredMedia {
    data: HashMap<String, String>,
    bytes: usize,
}

/// The prefix of every handle.
const HANDLE: &str = "toolgate-media:";
/// The most bytes of media in one run. Further media is left out.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The smallest image has more base64 than this.
const SHORTEST_DATA: usize = 32;
/// How deep values are searched. The sandbox lets nothing deeper through.
const MAX_DEPTH: usize = 128;

impl Media {
    /// Starts with the media of the earlier part of a run.
    pub(super) fn new(journal: Option<Arc<RunJournal>>, before: Vec<(String, String)>) -> Self {
        let bytes = before.iter().map(|(_, data)| data.len()).sum();
        let stored = Mutex::new(StoredMedia { data: before.into_iter().collect(), bytes });
        Self { stored, journal }
    }

    /// Replaces the data of media blocks with handles.
    pub(super) fn put_away(&self, block: &mut Value) {
        let Some(fields) = block.as_object_mut() else { return };
        match fields.get("type").and_then(Value::as_str) {
            Some("image" | "audio") => self.put_away_field(fields, "data"),
            Some("resource") => {
                if let Some(resource) = fields.get_mut("resource").and_then(Value::as_object_mut) {
                    self.put_away_field(resource, "blob");
                }
            }
            _ => {}
        }
    }

    fn put_away_field(&self, fields: &mut Map<String, Value>, field: &str) {
        let Some(Value::String(data)) = fields.get_mut(field) else { return };
        let size = data.len();
        let mut stored = self.stored.lock();
        let handle = format!("{HANDLE}{}", stored.data.len() + 1);
        if stored.bytes + size <= MAX_BYTES {
            stored.bytes += size;
            if let Some(journal) = &self.journal {
                journal.media(&handle, data);
            }
            stored.data.insert(handle.clone(), std::mem::replace(data, handle));
        } else {
            *data = format!("{HANDLE}left-out");
        }
        drop(stored);
        fields.insert("bytes".to_owned(), json!(size / 4 * 3));
    }

    /// Replaces handles with the data.
    pub(super) fn put_back(&self, value: &mut Value) {
        let stored = self.stored.lock();
        if !stored.data.is_empty() {
            each_text(value, 0, &mut |text| {
                if let Some(data) = stored.data.get(text.as_str()) {
                    text.clone_from(data);
                }
            });
        }
    }

    /// Removes media blocks from a value that becomes text, and leaves a note in their place. The
    /// blocks become content for the client.
    pub(super) fn take_out(&self, value: &mut Value) -> Vec<Value> {
        let mut taken = Vec::new();
        self.take_out_into(value, 0, &mut taken);
        taken
    }

    /// The note for a media block; `None` for any other value. A record that only looks like one,
    /// such as a row of type `image` with a file name in `data`, is no media.
    fn note(&self, value: &Value) -> Option<String> {
        let field =
            |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let (kind, holder, data) = match value.get("type").and_then(Value::as_str)? {
            kind @ ("image" | "audio") => (kind, value, field(value, "data")?),
            "resource" => {
                let holder = value.get("resource")?;
                ("resource", holder, field(holder, "blob")?)
            }
            _ => return None,
        };
        let mime = field(holder, "mimeType").unwrap_or_default();
        let fits = kind == "resource" || mime.starts_with(&format!("{kind}/"));
        let is_media = if data.starts_with(HANDLE) {
            self.stored.lock().data.contains_key(&data)
        } else {
            data.len() >= SHORTEST_DATA && BASE64.decode(data.as_bytes()).is_ok()
        };
        let mime: String = mime.chars().filter(|each| !each.is_control()).take(80).collect();
        (fits && is_media).then(|| format!("[{kind} {mime}]"))
    }

    fn take_out_into(&self, value: &mut Value, depth: usize, taken: &mut Vec<Value>) {
        if depth > MAX_DEPTH {
            return;
        }
        if let Some(note) = self.note(value) {
            let mut block = std::mem::replace(value, Value::String(note));
            self.put_back(&mut block);
            if let Some(fields) = block.as_object_mut() {
                fields.remove("bytes");
            }
            taken.push(block);
            return;
        }
        match value {
            Value::Array(items) => {
                for item in items {
                    self.take_out_into(item, depth + 1, taken);
                }
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.take_out_into(field, depth + 1, taken);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static OWN: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "aGVs".repeat(20));

    fn image(data: &str) -> Value {
        json!({"type": "image", "mimeType": "image/png", "data": data})
    }

    #[test]
    fn media_becomes_a_handle_and_back() {
        let media = Media::default();
        let mut block = image("aGVsbG8=");
        media.put_away(&mut block);
        assert_eq!(block["data"], "toolgate-media:1");
        assert_eq!(block["bytes"], 6);

        let mut arguments =
            json!({"files": [{"content": block["data"]}], "note": "toolgate-media:9"});
        media.put_back(&mut arguments);
        assert_eq!(
            arguments,
            json!({"files": [{"content": "aGVsbG8="}], "note": "toolgate-media:9"})
        );
    }

    #[test]
    fn media_in_a_value_becomes_content_and_a_note() {
        let media = Media::default();
        let mut block = image("aGVsbG8=");
        media.put_away(&mut block);
        let mut value = json!({"title": "chart", "picture": block, "own": image(&OWN)});
        let taken = media.take_out(&mut value);
        assert_eq!(taken, [image("aGVsbG8="), image(&OWN)]);
        assert_eq!(value["picture"], "[image image/png]");
        assert_eq!(value["own"], "[image image/png]");
    }

    #[test]
    fn values_that_look_like_media_stay() {
        let media = Media::default();
        let mut value = json!([
            {"type": "image", "url": "x"}, {"type": "text", "text": "y"},
            {"type": "image", "mimeType": "image/png", "data": "logo"},
            {"type": "image", "mimeType": "image/png", "data": "toolgate-media:9"},
            {"type": "image", "mimeType": "text/html", "data": *OWN},
        ]);
        let before = value.clone();
        assert!(media.take_out(&mut value).is_empty());
        assert_eq!(value, before);
    }

    #[test]
    fn a_blob_of_a_resource_is_media_too() {
        let media = Media::default();
        let resource = json!({"uri": "file:///a", "mimeType": "a/b", "blob": "eA=="});
        let mut block = json!({"type": "resource", "resource": resource});
        media.put_away(&mut block);
        assert_eq!(block["resource"]["blob"], "toolgate-media:1");
        assert_eq!(media.take_out(&mut block)[0]["resource"]["blob"], "eA==");
    }
}
