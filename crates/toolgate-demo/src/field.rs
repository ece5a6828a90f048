//! Fields: the one description behind a parameter, a table's column and a part of a result.
//!
//! A [`Field`] becomes JSON Schema for the client and checks what the client sends.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{DemoError, invalid_argument};
use crate::moment::Moment;

/// A JSON object: a row, or a call's arguments.
pub(crate) type Object = Map<String, Value>;

/// More than any text of the demo needs; state stays small whatever a client sends.
const MAX_TEXT_CHARACTERS: usize = 20_000;
const MAX_LIST_ITEMS: usize = 200;

/// What a value may be.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Kind {
    Text,
    Choice {
        of: Vec<String>,
    },
    /// Bounds are for parameters; a result's integers have none.
    Integer {
        range: Option<(i64, i64)>,
    },
    Number,
    /// A number that is not negative.
    Amount,
    Boolean,
    Date,
    Time,
    /// A time, or a duration back from the demo's present.
    Since,
    List {
        of: Box<Kind>,
    },
    /// Any names, with values of one kind.
    Map {
        of: Box<Kind>,
    },
    Object {
        fields: Vec<Field>,
    },
}

/// A named value with a description.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) kind: Kind,
    about: String,
    #[serde(default)]
    optional: bool,
    /// The value where the field is left out, which it then may be.
    pub(crate) default: Option<Value>,
    /// A value that works with the demo's data.
    example: Option<Value>,
}

impl Field {
    pub(crate) fn is_required(&self) -> bool {
        !self.optional && self.default.is_none()
    }

    fn schema(&self, closed: bool) -> Value {
        let mut schema = self.kind.schema(closed);
        schema["description"] = json!(self.about);
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        if let Some(example) = &self.example {
            schema["examples"] = json!([example]);
        }
        schema
    }
}

impl Kind {
    /// The JSON Schema. A closed one forbids properties that it does not list.
    pub(crate) fn schema(&self, closed: bool) -> Value {
        match self {
            Self::Text | Self::Since => json!({ "type": "string" }),
            Self::Choice { of } => json!({ "type": "string", "enum": of }),
            Self::Integer { range: None } => json!({ "type": "integer" }),
            Self::Integer { range: Some((low, high)) } => {
                json!({ "type": "integer", "minimum": low, "maximum": high })
            }
            Self::Number => json!({ "type": "number" }),
            Self::Amount => json!({ "type": "number", "minimum": 0 }),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::Date => json!({ "type": "string", "format": "date" }),
            Self::Time => json!({ "type": "string", "format": "date-time" }),
            Self::List { of } => json!({ "type": "array", "items": of.schema(closed) }),
            Self::Map { of } => {
                json!({ "type": "object", "additionalProperties": of.schema(closed) })
            }
            Self::Object { fields } => object_schema(fields, closed),
        }
    }

    /// Checks a value; the message says where it is by `path`.
    fn check(&self, value: &Value, path: &str) -> Result<(), DemoError> {
        let must = |fits: bool, expected: &str| {
            if fits { Ok(()) } else { Err(invalid_argument(path, &format!("must be {expected}"))) }
        };
        let text = value.as_str();
        let is_text = |test: &dyn Fn(&str) -> bool| text.is_some_and(test);
        match self {
            Self::Text => must(
                is_text(&|text| text.chars().nth(MAX_TEXT_CHARACTERS).is_none()),
                "a string of at most 20000 characters",
            ),
            Self::Choice { of } => must(
                is_text(&|text| of.iter().any(|choice| choice == text)),
                &format!("one of {}", of.join(", ")),
            ),
            Self::Integer { range: None } => must(value.is_i64(), "an integer"),
            Self::Integer { range: Some((low, high)) } => must(
                value.as_i64().is_some_and(|number| (*low..=*high).contains(&number)),
                &format!("an integer from {low} to {high}"),
            ),
            Self::Number => must(value.is_number(), "a number"),
            Self::Amount => {
                must(value.as_f64().is_some_and(|number| number >= 0.0), "a number of at least 0")
            }
            Self::Boolean => must(value.is_boolean(), "true or false"),
            Self::Date => must(
                is_text(&|text| text.len() == 10 && Moment::parse(text).is_some()),
                "a date such as 2026-10-15",
            ),
            Self::Time => must(
                is_text(&|text| Moment::parse(text).is_some()),
                "a date and time such as 2026-10-15T09:30:00Z",
            ),
            Self::Since => must(
                is_text(&|text| Moment::parse_since(text).is_some()),
                "a date and time such as 2026-10-15T09:30:00Z, or a duration such as 90m, 6h or 2d",
            ),
            Self::List { of } => {
                let items = value.as_array().filter(|items| items.len() <= MAX_LIST_ITEMS);
                must(items.is_some(), "an array of at most 200 items")?;
                let mut items = items.into_iter().flatten().enumerate();
                items.try_for_each(|(index, item)| of.check(item, &format!("{path}[{index}]")))
            }
            Self::Map { of } => {
                let map = value.as_object().filter(|map| map.len() <= MAX_LIST_ITEMS);
                must(map.is_some(), "an object of at most 200 properties")?;
                map.into_iter().flatten().try_for_each(|(_, item)| of.check(item, path))
            }
            Self::Object { fields } => {
                must(value.is_object(), "an object")?;
                value.as_object().map_or(Ok(()), |object| check_object(fields, object, path))
            }
        }
    }

    /// The value of a required column that nobody has set.
    pub(crate) fn empty(&self) -> Value {
        match self {
            Self::Text | Self::Since => json!(""),
            Self::Choice { of } => json!(of.first()),
            Self::Integer { .. } | Self::Number | Self::Amount => json!(0),
            Self::Boolean => json!(false),
            Self::Date => json!(Moment::now().date()),
            Self::Time => json!(Moment::now().to_string()),
            Self::List { .. } => json!([]),
            Self::Map { .. } | Self::Object { .. } => json!({}),
        }
    }
}

/// The schema of an object of these fields.
pub(crate) fn object_schema(fields: &[Field], closed: bool) -> Value {
    let properties: Object =
        fields.iter().map(|field| (field.name.clone(), field.schema(closed))).collect();
    let required = fields.iter().filter(|field| field.is_required());
    let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if closed {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// Checks a call's arguments and fills in the defaults.
pub(crate) fn read_arguments(fields: &[Field], arguments: Value) -> Result<Object, DemoError> {
    let mut arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => Object::new(),
        _ => return Err(invalid_argument("arguments", "must be an object")),
    };
    // Many callers send null for what they leave out.
    arguments.retain(|name, value| {
        !value.is_null() || fields.iter().any(|field| field.name == *name && field.is_required())
    });
    check_object(fields, &arguments, "")?;
    for field in fields {
        if let Some(default) = &field.default {
            arguments.entry(&field.name).or_insert_with(|| default.clone());
        }
    }
    Ok(arguments)
}

fn check_object(fields: &[Field], object: &Object, path: &str) -> Result<(), DemoError> {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(name) = object.keys().find(|name| fields.iter().all(|field| field.name != **name)) {
        let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let shown: String = name.chars().take(80).collect();
        let problem = format!("is not known; there are: {}", known.join(", "));
        return Err(invalid_argument(&at(&shown), &problem));
    }
    for field in fields {
        match object.get(&field.name) {
            Some(value) => field.kind.check(value, &at(&field.name))?,
            None if field.is_required() => {
                return Err(invalid_argument(&at(&field.name), "is required"));
            }
            None => {}
        }
    }
    Ok(())
}
