//! `tools/list`, in pages if a fault requires them.

use serde_json::{Value, json};

use super::{Engine, Generation, Request};
use crate::Cursors;
use crate::reply::{Reply, code};

/// The cursor that leads back to the page it came with.
const REPEATING_CURSOR: &str = "again";

impl Engine {
    /// Answers `tools/list`.
    pub(super) fn list_tools(&self, request: &Request) -> Reply {
        let tools = self.state.lock().tools.clone();
        let Some((page, next)) = self.page(tools, &request.params["cursor"]) else {
            return Reply::error(code::INVALID_PARAMS, "Unknown cursor");
        };
        let mut result = json!({ "tools": page });
        if let Some(cursor) = next {
            result["nextCursor"] = json!(cursor);
        }
        if request.generation == Generation::Modern {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        Reply::Result(result)
    }

    /// The page at a cursor and the cursor of the next one.
    pub(super) fn page(
        &self,
        tools: Vec<Value>,
        cursor: &Value,
    ) -> Option<(Vec<Value>, Option<String>)> {
        let Some(pages) = self.fixture.faults.pages else { return Some((tools, None)) };
        let size = pages.size.max(1);
        let start = match cursor.as_str() {
            None | Some(REPEATING_CURSOR) => 0,
            Some(text) => text.strip_prefix("from-")?.parse::<usize>().ok()?,
        };
        let mut page: Vec<Value> = tools.iter().skip(start).take(size).cloned().collect();
        let end = start.saturating_add(size);
        let next = match pages.cursors {
            Cursors::Honest => (end < tools.len()).then(|| format!("from-{end}")),
            Cursors::Repeating => Some(REPEATING_CURSOR.to_owned()),
            Cursors::Endless => {
                if page.is_empty() {
                    page.push(json!({
                        "name": format!("endless_{start}"),
                        "inputSchema": { "type": "object" },
                    }));
                }
                Some(format!("from-{end}"))
            }
        };
        Some((page, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builtin, Faults, Fixture, Pages};
    use std::sync::Arc;

    fn paged(cursors: Cursors) -> Arc<Engine> {
        let faults = Faults { pages: Some(Pages { size: 2, cursors }), ..Faults::default() };
        let builtins = [Builtin::Echo, Builtin::Add, Builtin::Fail];
        Engine::new(Fixture::new("paged").with_builtins(builtins).with_faults(faults))
    }

    fn page(engine: &Engine, cursor: &Value) -> Option<(Vec<Value>, Option<String>)> {
        engine.page(engine.state.lock().tools.clone(), cursor)
    }

    #[test]
    fn honest_cursors_end_with_the_list() {
        let engine = paged(Cursors::Honest);
        let (first, next) = page(&engine, &Value::Null).unwrap();
        assert_eq!((first.len(), next.as_deref()), (2, Some("from-2")));
        let (second, next) = page(&engine, &json!(next)).unwrap();
        assert_eq!((second.len(), next), (1, None));
        assert_eq!(page(&engine, &json!("made up")), None);
    }

    #[test]
    fn repeating_cursors_return_the_same_page() {
        let engine = paged(Cursors::Repeating);
        let (first, next) = page(&engine, &Value::Null).unwrap();
        assert_eq!(page(&engine, &json!(next)).unwrap(), (first, next));
    }

    #[test]
    fn endless_cursors_are_fresh_and_bring_new_tools() {
        let engine = paged(Cursors::Endless);
        let (page, next) = page(&engine, &json!("from-4")).unwrap();
        assert_eq!(page[0]["name"], "endless_4");
        assert_eq!(next.as_deref(), Some("from-6"));
    }
}
