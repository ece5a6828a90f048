//! Large texts: each content is stored once, outside of the rows that refer to it.
//!
//! A row with a large text would be written again with its checksum, and read again by every query
//! that passes it. So such a column has the hash of the text, as a blob, and the text is in a table
//! of its own. The hash is also the checksum of the text.

use rusqlite::{
    Connection, OptionalExtension, ToSql, params,
    types::{ToSqlOutput, ValueRef},
};

/// Longer texts are stored by content.
const INLINE_BYTES: usize = 4 * 1024;

/// The value of a column: a text, or the hash of one.
#[derive(Debug)]
pub(super) enum StoredText<'a> {
    Inline(&'a str),
    Content([u8; 32]),
}

impl ToSql for StoredText<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Inline(text) => ValueRef::Text(text.as_bytes()),
            Self::Content(hash) => ValueRef::Blob(hash),
        }))
    }
}

/// Stores a text of a run, if it is large. Returns the value of its column.
pub(super) fn store<'a>(
    connection: &Connection,
    run: &str,
    text: &'a str,
) -> rusqlite::Result<StoredText<'a>> {
    if text.len() <= INLINE_BYTES {
        return Ok(StoredText::Inline(text));
    }
    let hash = *blake3::hash(text.as_bytes()).as_bytes();
    let insert = "INSERT OR IGNORE INTO contents (hash, data) VALUES (?1, ?2)";
    connection.prepare_cached(insert)?.execute(params![hash, text])?;
    let uses = "INSERT OR IGNORE INTO content_uses (run, hash) VALUES (?1, ?2)";
    connection.prepare_cached(uses)?.execute(params![run, hash])?;
    Ok(StoredText::Content(hash))
}

/// The text of a column; `None` if its content is missing or damaged.
pub(super) fn load(
    connection: &Connection,
    column: ValueRef<'_>,
) -> rusqlite::Result<Option<String>> {
    let hash = match column {
        ValueRef::Blob(hash) => hash,
        other => return Ok(other.as_str().map(|text| Some(text.to_owned()))?),
    };
    let select = "SELECT data FROM contents WHERE hash = ?1";
    let text: Option<String> =
        connection.prepare_cached(select)?.query_row([hash], |row| row.get(0)).optional()?;
    Ok(text.filter(|text| blake3::hash(text.as_bytes()).as_bytes() == hash))
}

/// Removes the contents that only this run refers to.
pub(super) fn forget(connection: &Connection, run: &str) -> rusqlite::Result<()> {
    let contents =
        "DELETE FROM contents WHERE hash IN (SELECT hash FROM content_uses WHERE run = ?1)
         AND NOT EXISTS (SELECT 1 FROM content_uses WHERE hash = contents.hash AND run <> ?1)";
    connection.prepare_cached(contents)?.execute([run])?;
    let uses = "DELETE FROM content_uses WHERE run = ?1";
    connection.prepare_cached(uses)?.execute([run])?;
    Ok(())
}
