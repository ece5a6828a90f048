//! Shortens the arguments of a call to a few lines that a person can read.
//!
//! Long values are shortened in place, so that no value can push another out of sight: a long text
//! keeps its beginning and its end, a list keeps its first elements, and every name stays.

use std::fmt::Write;

use serde_json::Value;

/// How much of long values is shown.
#[derive(Debug, Clone, Copy)]
struct Measure {
    /// Characters of a text.
    text: usize,
    /// Elements of a list.
    items: usize,
    /// Members of an object inside the arguments.
    members: usize,
    /// Levels of nesting.
    depth: usize,
}

/// From generous to the least that is still useful.
const MEASURES: [Measure; 6] = [
    Measure { text: 1_000, items: 100, members: usize::MAX, depth: 32 },
    Measure { text: 400, items: 20, members: usize::MAX, depth: 32 },
    Measure { text: 120, items: 8, members: usize::MAX, depth: 8 },
    Measure { text: 40, items: 4, members: 40, depth: 4 },
    Measure { text: 24, items: 2, members: 8, depth: 2 },
    Measure { text: 16, items: 0, members: 0, depth: 1 },
];
/// The longest name that is written in full.
const NAME: usize = 64;

/// The way to an argument: names of members and numbers of elements, `*` for all of them.
pub(super) type ArgumentRoute = Vec<String>;

/// The names on a JSON pointer.
pub(super) fn route(pointer: &str) -> ArgumentRoute {
    let names = pointer.strip_prefix('/').unwrap_or(pointer).split('/');
    names.map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

/// The same arguments, with those that matter first, in each object on the way to them.
pub(super) fn matter_first(arguments: &Value, routes: &[&[String]]) -> Value {
    let through = |name: &str| -> Vec<&[String]> {
        let goes = |route: &&&[String]| route.first().is_some_and(|it| it == name || it == "*");
        routes.iter().filter(goes).map(|route| &route[1..]).collect()
    };
    match arguments {
        _ if routes.iter().all(|route| route.is_empty()) => arguments.clone(),
        Value::Object(fields) => {
            let ordered = |(name, value): (&String, &Value)| {
                let routes = through(name);
                (!routes.is_empty(), name.clone(), matter_first(value, &routes))
            };
            let (first, last): (Vec<_>, Vec<_>) =
                fields.iter().map(ordered).partition(|(matters, ..)| *matters);
            first.into_iter().chain(last).map(|(_, name, value)| (name, value)).collect()
        }
        Value::Array(items) => {
            let ordered =
                |(index, value): (usize, &Value)| matter_first(value, &through(&index.to_string()));
            items.iter().enumerate().map(ordered).collect()
        }
        other => other.clone(),
    }
}

/// Shows the arguments in at most about `limit` characters; as JSON if they fit.
pub(super) fn overview(arguments: &Value, limit: usize) -> String {
    let whole = arguments.to_string();
    if characters(&whole) <= limit {
        return whole;
    }
    let texts = MEASURES.iter().map(|measure| {
        let mut text = String::new();
        measure.write(arguments, 0, &mut text);
        text
    });
    let mut shortest = String::new();
    for text in texts {
        if characters(&text) <= limit {
            return text;
        }
        shortest = text;
    }
    match arguments {
        Value::Object(fields) => as_many_as_fit(fields, limit),
        _ => shortest.chars().take(limit).chain(['…']).collect(),
    }
}

/// Shows as many arguments as fit, and the number of the others.
fn as_many_as_fit(fields: &serde_json::Map<String, Value>, limit: usize) -> String {
    let least = MEASURES[MEASURES.len() - 1];
    let mut shown = Vec::new();
    let mut length = 0;
    for (name, value) in fields {
        let mut text = String::new();
        least.member(name, value, 0, &mut text);
        length += characters(&text) + 1;
        if length > limit {
            break;
        }
        shown.push(text);
    }
    let left_out = fields.len() - shown.len();
    format!("{{{}}} and {left_out} more arguments, which are not shown", shown.join(","))
}

impl Measure {
    fn write(self, value: &Value, depth: usize, text: &mut String) {
        match value {
            Value::String(string) => self.text(string, text),
            Value::Array(items) if depth >= self.depth && !items.is_empty() => {
                let _ = write!(text, "[… {} elements]", items.len());
            }
            Value::Object(fields) if depth >= self.depth && !fields.is_empty() => {
                let _ = write!(text, "{{… {} members}}", fields.len());
            }
            Value::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().take(self.items).enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    self.write(item, depth + 1, text);
                }
                rest(items.len(), self.items, text);
                text.push(']');
            }
            Value::Object(fields) => {
                // All top-level arguments are named.
                let most = if depth == 0 { usize::MAX } else { self.members };
                text.push('{');
                for (index, (name, member)) in fields.iter().take(most).enumerate() {
                    text.push_str(if index > 0 { "," } else { "" });
                    self.member(name, member, depth, text);
                }
                rest(fields.len(), most, text);
                text.push('}');
            }
            // A number can have any number of digits.
            other => {
                let other = other.to_string();
                text.push_str(&shortened(&other, self.text.max(NAME)));
            }
        }
    }

    fn member(self, name: &str, value: &Value, depth: usize, text: &mut String) {
        let _ = write!(text, "{}:", Value::from(shortened(name, NAME)));
        self.write(value, depth + 1, text);
    }

    fn text(self, string: &str, text: &mut String) {
        let _ = write!(text, "{}", Value::from(shortened(string, self.text)));
    }
}

fn rest(all: usize, shown: usize, text: &mut String) {
    if let Some(more @ 1..) = all.checked_sub(shown) {
        let _ = write!(text, "{}… {more} more", if shown > 0 { "," } else { "" });
    }
}

/// The beginning and the end of a long text.
fn shortened(text: &str, limit: usize) -> String {
    let all = characters(text);
    if all <= limit {
        return text.to_owned();
    }
    let end = limit / 3;
    let start: String = text.chars().take(limit - end).collect();
    let end: String = text.chars().skip(all - end).collect();
    format!("{start}… {} characters …{end}", all - limit)
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_arguments_are_shown_unchanged() {
        let arguments = json!({ "path": "/a", "lines": [1, 2], "options": {} });
        assert_eq!(overview(&arguments, 1_500), arguments.to_string());
    }

    #[test]
    fn the_arguments_that_matter_come_first() {
        let arguments = json!({
            "a": 1, "list": [{ "x": 1, "to": "you" }], "options": { "b": 2, "force": true }, "path": "/a",
        });
        let routes = ["/path", "/options/force", "/list/*/to", "/absent"].map(route);
        let routes: Vec<&[String]> = routes.iter().map(Vec::as_slice).collect();
        let ordered = matter_first(&arguments, &routes);
        insta::assert_snapshot!(ordered, @r#"{"list":[{"to":"you","x":1}],"options":{"force":true,"b":2},"path":"/a","a":1}"#);
        assert_eq!(ordered, arguments, "nothing is lost");
        let many: serde_json::Map<_, _> =
            (0..2_000).map(|number| (format!("n{number}"), json!("x".repeat(50)))).collect();
        let text = overview(&matter_first(&json!(many), &[&route("/n1999")]), 1_500);
        assert!(text.starts_with(r#"{"n1999":"#), "{text}");
    }

    #[test]
    fn no_argument_hides_another() {
        let padding = "x".repeat(5_000);
        let many: Vec<u32> = (0..2_000).collect();
        for arguments in [
            json!({ "a": padding, "path": "/etc/passwd" }),
            json!({ "a": many, "path": "/etc/passwd" }),
            json!({ "a": { "b": [[[padding]]], "c": many }, "path": "/etc/passwd" }),
            json!({ "a": { "b": padding, "path": "/etc/passwd" } }),
            json!({ padding.clone(): 1, "path": "/etc/passwd" }),
            json!({ "command": format!("ls {padding}; cat /etc/passwd") }),
        ] {
            let text = overview(&arguments, 1_500);
            assert!(text.contains("/etc/passwd") && characters(&text) <= 1_500, "{text}");
        }
        let text = overview(&json!({ "a": padding, "n": many }), 300);
        insta::assert_snapshot!(text, @r#"{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… 4880 characters …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","n":[0,1,2,3,4,5,6,7,… 1992 more]}"#);
    }

    #[test]
    fn arguments_that_do_not_fit_are_counted() {
        let many: serde_json::Map<_, _> =
            (0..2_000).map(|number| (format!("argument{number}"), json!({ "a": 1 }))).collect();
        let text = overview(&Value::Object(many), 1_500);
        assert!(text.ends_with("more arguments, which are not shown"), "{text}");
        assert!(characters(&text) < 1_600, "{text}");
        let list = overview(&json!(vec!["x".repeat(100); 100]), 20);
        assert!(characters(&list) <= 21, "{list}");
    }
}
