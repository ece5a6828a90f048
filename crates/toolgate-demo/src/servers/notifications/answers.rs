//! The answers of `notifications` that need code.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::Object;
use crate::store::{Read, Store};

pub(super) fn render(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let template = store.find("templates", &arguments["template_id"])?;
    let mut rendered = template.text("body").to_owned();
    let mut missing = Vec::new();
    let values = arguments.get("values").and_then(Value::as_object);
    for placeholder in template.items("placeholders").iter().filter_map(Value::as_str) {
        match values.and_then(|values| values.get(placeholder)).and_then(Value::as_str) {
            Some(value) => rendered = rendered.replace(&format!("{{{{{placeholder}}}}}"), value),
            None => missing.push(placeholder),
        }
    }
    Ok(json!({ "text": rendered, "missing": missing }))
}
