//! Fields: the one description behind a parameter, a table's column and a part of a result.
//!
//! A [`Field`] becomes JSON Schema for the client and checks what the client sends. Servers
//! build their tools with the short functions below: `text("title", "…")`.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use crate::error::Failure;
use crate::moment::Moment;

/// A JSON object: a row, or a call's arguments.
pub(crate) type Object = Map<String, Value>;

/// More than any text of the demo needs; state stays small whatever a client sends.
const MAX_TEXT_CHARACTERS: usize = 20_000;
const MAX_LIST_ITEMS: usize = 200;

/// What a value may be.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Text,
    Choice(&'static [&'static str]),
    /// Bounds are for parameters; a result's integers have none.
    Integer(Option<RangeInclusive<i64>>),
    Number,
    /// A number that is not negative.
    Amount,
    Flag,
    Date,
    Moment,
    /// A moment, or a duration back from the demo's present.
    Since,
    List(Box<Kind>),
    /// Any names, with values of one kind.
    Map(Box<Kind>),
    Object(Vec<Field>),
}

/// Whether a value must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

/// Whether an object's schema forbids names that it does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    Forbidden,
    Unmentioned,
}

/// A named value with a description.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
    pub(crate) presence: Presence,
    pub(crate) default: Option<Value>,
    pub(crate) example: Option<Value>,
}

impl Field {
    pub(crate) fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        let presence = Presence::Required;
        Self { name, kind, about, presence, default: None, example: None }
    }

    /// May be left out.
    pub(crate) fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }

    /// May be left out, and is then this.
    pub(crate) fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self.optional()
    }

    /// A value that works against the demo's data.
    pub(crate) fn example(mut self, example: impl Into<Value>) -> Self {
        self.example = Some(example.into());
        self
    }

    fn schema(&self, extra: Extra) -> Value {
        let mut schema = self.kind.schema(extra);
        if !self.about.is_empty() {
            schema["description"] = self.about.into();
        }
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
    /// The JSON Schema.
    pub(crate) fn schema(&self, extra: Extra) -> Value {
        match self {
            Self::Text | Self::Since => json!({ "type": "string" }),
            Self::Choice(choices) => json!({ "type": "string", "enum": choices }),
            Self::Integer(None) => json!({ "type": "integer" }),
            Self::Integer(Some(range)) => {
                json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
            }
            Self::Number => json!({ "type": "number" }),
            Self::Amount => json!({ "type": "number", "minimum": 0 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Date => json!({ "type": "string", "format": "date" }),
            Self::Moment => json!({ "type": "string", "format": "date-time" }),
            Self::List(kind) => json!({ "type": "array", "items": kind.schema(extra) }),
            Self::Map(kind) => {
                json!({ "type": "object", "additionalProperties": kind.schema(extra) })
            }
            Self::Object(fields) => object_schema(fields, extra),
        }
    }

    /// Checks a value; `path` says where it is for the message.
    fn check(&self, value: &Value, path: &str) -> Result<(), Failure> {
        let must = |fits: bool, expected: &str| {
            if fits { Ok(()) } else { Err(Failure::argument(path, format!("must be {expected}"))) }
        };
        let text = value.as_str();
        match self {
            Self::Text => must(
                text.is_some_and(|text| {
                    text.chars().take(MAX_TEXT_CHARACTERS + 1).count() <= MAX_TEXT_CHARACTERS
                }),
                "a string of at most 20000 characters",
            ),
            Self::Choice(choices) => must(
                text.is_some_and(|text| choices.contains(&text)),
                &format!("one of {}", choices.join(", ")),
            ),
            Self::Integer(None) => must(value.is_i64(), "an integer"),
            Self::Integer(Some(range)) => must(
                value.as_i64().is_some_and(|number| range.contains(&number)),
                &format!("an integer from {} to {}", range.start(), range.end()),
            ),
            Self::Number => must(value.is_number(), "a number"),
            Self::Amount => {
                must(value.as_f64().is_some_and(|number| number >= 0.0), "a number of at least 0")
            }
            Self::Flag => must(value.is_boolean(), "true or false"),
            Self::Date => must(
                text.is_some_and(|text| text.len() == 10 && Moment::parse(text).is_some()),
                "a date such as 2026-10-15",
            ),
            Self::Moment => must(
                text.is_some_and(|text| Moment::parse(text).is_some()),
                "a date and time such as 2026-10-15T09:30:00Z",
            ),
            Self::Since => must(
                text.is_some_and(|text| Moment::parse_since(text).is_some()),
                "a date and time such as 2026-10-15T09:30:00Z, or a duration such as 90m, 6h or 2d",
            ),
            Self::List(kind) => {
                let items = value.as_array().filter(|items| items.len() <= MAX_LIST_ITEMS);
                must(items.is_some(), "an array of at most 200 items")?;
                let mut items = items.into_iter().flatten().enumerate();
                items.try_for_each(|(index, item)| kind.check(item, &format!("{path}[{index}]")))
            }
            Self::Map(kind) => {
                let map = value.as_object().filter(|map| map.len() <= MAX_LIST_ITEMS);
                must(map.is_some(), "an object of at most 200 properties")?;
                map.into_iter().flatten().try_for_each(|(_, item)| kind.check(item, path))
            }
            Self::Object(fields) => {
                must(value.is_object(), "an object")?;
                value.as_object().map_or(Ok(()), |object| check_object(fields, object, path))
            }
        }
    }

    /// The value of a required column that nobody has set.
    pub(crate) fn empty(&self) -> Value {
        match self {
            Self::Text | Self::Since => json!(""),
            Self::Choice(choices) => json!(choices.first()),
            Self::Integer(_) | Self::Number | Self::Amount => json!(0),
            Self::Flag => json!(false),
            Self::Date => json!(Moment::now().date()),
            Self::Moment => json!(Moment::now().to_string()),
            Self::List(_) => json!([]),
            Self::Map(_) | Self::Object(_) => json!({}),
        }
    }
}

/// The schema of an object of these fields.
pub(crate) fn object_schema(fields: &[Field], extra: Extra) -> Value {
    let properties: Object =
        fields.iter().map(|field| (field.name.to_owned(), field.schema(extra))).collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.presence == Presence::Required)
        .map(|field| field.name)
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if extra == Extra::Forbidden {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

/// Checks a call's arguments and fills in the defaults.
pub(crate) fn read_arguments(fields: &[Field], arguments: Value) -> Result<Object, Failure> {
    let mut arguments = match arguments {
        Value::Object(arguments) => arguments,
        Value::Null => Object::new(),
        _ => return Err(Failure::argument("arguments", "must be an object")),
    };
    // Many callers send null for what they leave out.
    arguments.retain(|name, value| {
        !value.is_null()
            || fields.iter().any(|field| field.name == name && field.presence == Presence::Required)
    });
    check_object(fields, &arguments, "")?;
    for field in fields {
        if let Some(default) = &field.default {
            arguments.entry(field.name).or_insert_with(|| default.clone());
        }
    }
    Ok(arguments)
}

fn check_object(fields: &[Field], object: &Object, path: &str) -> Result<(), Failure> {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(name) = object.keys().find(|name| fields.iter().all(|field| field.name != *name)) {
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let shown: String = name.chars().take(80).collect();
        let problem = format!("is not known; there are: {}", known.join(", "));
        return Err(Failure::argument(at(&shown), problem));
    }
    for field in fields {
        match object.get(field.name) {
            Some(value) => field.kind.check(value, &at(field.name))?,
            None if field.presence == Presence::Required => {
                return Err(Failure::argument(at(field.name), "is required"));
            }
            None => {}
        }
    }
    Ok(())
}

/// A string.
pub(crate) fn text(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Text, about)
}

/// One of a few strings.
pub(crate) fn choice(
    name: &'static str,
    choices: &'static [&'static str],
    about: &'static str,
) -> Field {
    Field::new(name, Kind::Choice(choices), about)
}

/// An integer within bounds.
pub(crate) fn integer(
    name: &'static str,
    range: RangeInclusive<i64>,
    about: &'static str,
) -> Field {
    Field::new(name, Kind::Integer(Some(range)), about)
}

/// An integer without bounds.
pub(crate) fn count(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Integer(None), about)
}

/// A number.
pub(crate) fn number(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Number, about)
}

/// A number that is not negative.
pub(crate) fn amount(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Amount, about)
}

/// A boolean.
pub(crate) fn flag(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Flag, about)
}

/// A date.
pub(crate) fn date(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Date, about)
}

/// A date and time.
pub(crate) fn moment(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Moment, about)
}

/// A date and time, or a duration back from the demo's present.
pub(crate) fn since(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::Since, about)
}

/// A list of strings.
pub(crate) fn texts(name: &'static str, about: &'static str) -> Field {
    Field::new(name, Kind::List(Box::new(Kind::Text)), about)
}

/// A list of some of a few strings.
pub(crate) fn choices(
    name: &'static str,
    choices: &'static [&'static str],
    about: &'static str,
) -> Field {
    Field::new(name, Kind::List(Box::new(Kind::Choice(choices))), about)
}

/// A nested object.
pub(crate) fn object(name: &'static str, fields: Vec<Field>, about: &'static str) -> Field {
    Field::new(name, Kind::Object(fields), about)
}

/// A list of nested objects.
pub(crate) fn objects(name: &'static str, fields: Vec<Field>, about: &'static str) -> Field {
    Field::new(name, Kind::List(Box::new(Kind::Object(fields))), about)
}

/// An object with any names and values of one kind.
pub(crate) fn map(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field::new(name, Kind::Map(Box::new(kind)), about)
}

/// The usual limit of a list.
pub(crate) fn limit(default: i64, maximum: i64) -> Field {
    integer(
        "limit",
        1..=maximum,
        "Maximum number of results to return; the first ones in order are kept.",
    )
    .or(default)
}

/// The usual offset of a list.
pub(crate) fn offset() -> Field {
    integer(
        "offset",
        0..=100_000,
        "Number of results to skip before the first one returned, for paging.",
    )
    .or(0)
}
