//! The way to an argument.

use serde_json::Value;

/// How deep an argument may be named.
pub const MAX_SEGMENTS: usize = 32;

/// The longest way, in bytes.
const MAX_BYTES: usize = 1_024;

/// A JSON pointer, or names with dots between; `*` stands for every element or member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentPath(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Each,
    Name { key: Box<str>, index: Option<usize> },
}

impl ArgumentPath {
    /// Reads a way; none where it is empty or too long.
    pub fn new(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > MAX_BYTES {
            return None;
        }
        let segments: Vec<Segment> = match text.strip_prefix('/') {
            Some(pointer) => pointer
                .split('/')
                .map(|part| Segment::new(part.replace("~1", "/").replace("~0", "~")))
                .collect::<Option<_>>()?,
            None => {
                text.split('.').map(|part| Segment::new(part.to_owned())).collect::<Option<_>>()?
            }
        };
        (segments.len() <= MAX_SEGMENTS).then_some(Self(segments))
    }

    /// Gathers the values at the end of the way. False if there are more than `limit`.
    pub(super) fn select<'v>(
        &self,
        arguments: &'v Value,
        limit: usize,
        found: &mut Vec<&'v Value>,
    ) -> bool {
        let mut current = vec![arguments];
        for segment in &self.0 {
            let mut next = Vec::new();
            for value in current {
                match (segment, value) {
                    (Segment::Each, Value::Array(items)) => next.extend(items),
                    (Segment::Each, Value::Object(fields)) => next.extend(fields.values()),
                    (Segment::Name { key, .. }, Value::Object(fields)) => {
                        next.extend(fields.get(&**key));
                    }
                    (Segment::Name { index: Some(index), .. }, Value::Array(items)) => {
                        next.extend(items.get(*index));
                    }
                    _ => {}
                }
                if next.len() > limit {
                    return false;
                }
            }
            current = next;
        }
        found.extend(current);
        true
    }
}

impl Segment {
    fn new(key: String) -> Option<Self> {
        if key.is_empty() {
            return None;
        }
        if key == "*" {
            return Some(Self::Each);
        }
        let index = key.parse().ok();
        Some(Self::Name { key: key.into(), index })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn select(path: &str, value: &Value) -> Vec<Value> {
        let mut found = Vec::new();
        assert!(ArgumentPath::new(path).unwrap().select(value, 100, &mut found));
        found.into_iter().cloned().collect()
    }

    #[test]
    fn pointers_dots_and_stars() {
        let value = json!({"a": {"b.c": 1, "d/e": 2, "l": [{"n": 3}, {"n": 4}, 5]}, "0": 6});
        assert_eq!(select("/a/b.c", &value), [json!(1)]);
        assert_eq!(select("/a/d~1e", &value), [json!(2)]);
        assert_eq!(select("a.l.1.n", &value), [json!(4)]);
        assert_eq!(select("a.l.*.n", &value), [json!(3), json!(4)]);
        assert_eq!(select("0", &value), [json!(6)]);
        assert!(select("a.x.y", &value).is_empty() && select("a.l.n", &value).is_empty());
    }

    #[test]
    fn a_way_has_names_and_an_end() {
        for wrong in ["", "/", "a..b", "a.", &"a.".repeat(40), &"a".repeat(1_025)] {
            assert_eq!(ArgumentPath::new(wrong), None, "{wrong}");
        }
    }
}
