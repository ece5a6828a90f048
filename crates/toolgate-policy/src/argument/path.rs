//! Paths to arguments.

use serde_json::Value;

/// The largest number of segments in a path.
pub const MAX_SEGMENTS: usize = 32;

/// The longest path, in bytes.
const MAX_BYTES: usize = 1_024;

/// A JSON pointer, or names with dots; `*` stands for every element or member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentPath(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Each,
    Name { key: Box<str>, index: Option<usize> },
}

/// The end of one branch of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PathTarget<'v> {
    Value(&'v Value),
    /// The argument is left out.
    Nothing,
    /// There is a value in which the path cannot continue.
    Else,
}

impl ArgumentPath {
    /// Reads a path. Returns `None` if it is empty or too long.
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

    /// The names on the path, `*` for every element or member.
    pub(super) fn names(&self) -> Vec<&str> {
        let name = |segment| match segment {
            &Segment::Each => "*",
            Segment::Name { key, .. } => &**key,
        };
        self.0.iter().map(name).collect()
    }

    /// The ends of all branches of the path. Returns `None` if there are more than `limit`.
    pub(super) fn select<'v>(
        &self,
        arguments: &'v Value,
        limit: usize,
    ) -> Option<Vec<PathTarget<'v>>> {
        let mut current = vec![PathTarget::Value(arguments)];
        for segment in &self.0 {
            let mut next = Vec::new();
            for reached in current {
                match reached {
                    PathTarget::Value(value) => segment.follow(value, &mut next),
                    nowhere => next.push(nowhere),
                }
                if next.len() > limit {
                    return None;
                }
            }
            current = next;
        }
        Some(current)
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

    fn follow<'v>(&self, value: &'v Value, next: &mut Vec<PathTarget<'v>>) {
        let one = |found: Option<&'v Value>| found.map_or(PathTarget::Nothing, PathTarget::Value);
        match (self, value) {
            (Self::Each, Value::Array(items)) => next.extend(items.iter().map(PathTarget::Value)),
            (Self::Each, Value::Object(fields)) => {
                next.extend(fields.values().map(PathTarget::Value));
            }
            (Self::Name { key, .. }, Value::Object(fields)) => next.push(one(fields.get(&**key))),
            (Self::Name { index: Some(index), .. }, Value::Array(items)) => {
                next.push(one(items.get(*index)));
            }
            // Many clients send `null` for an argument that they leave out.
            (_, Value::Null) => next.push(PathTarget::Nothing),
            _ => next.push(PathTarget::Else),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn select(path: &str, value: &Value) -> Vec<Value> {
        let found = ArgumentPath::new(path).unwrap().select(value, 100).unwrap();
        let in_words = |reached| match reached {
            PathTarget::Value(value) => value.clone(),
            PathTarget::Nothing => json!("nothing"),
            PathTarget::Else => json!("else"),
        };
        found.into_iter().map(in_words).collect()
    }

    #[test]
    fn pointers_dots_and_stars() {
        let value = json!({"a": {"b.c": 1, "d/e": 2, "l": [{"n": 3}, {"n": 4}, 5]}, "0": 6});
        assert_eq!(select("/a/b.c", &value), [json!(1)]);
        assert_eq!(select("/a/d~1e", &value), [json!(2)]);
        assert_eq!(select("a.l.1.n", &value), [json!(4)]);
        assert_eq!(select("a.l.*.n", &value), [json!(3), json!(4), json!("else")]);
        assert_eq!(select("0", &value), [json!(6)]);
        assert_eq!(select("a.x.y", &value), ["nothing"]);
        assert_eq!(select("a.l.n", &value), ["else"]);
        assert_eq!(select("0.n", &value), ["else"]);
        assert_eq!(select("a.l.7", &value), ["nothing"]);
        assert!(select("*.n", &json!({})).is_empty());
    }

    #[test]
    fn argument_paths_are_read_and_limited() {
        for wrong in ["", "/", "a..b", "a.", &"a.".repeat(40), &"a".repeat(1_025)] {
            assert_eq!(ArgumentPath::new(wrong), None, "{wrong}");
        }
    }
}
