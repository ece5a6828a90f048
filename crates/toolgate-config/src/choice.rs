//! Settings that take one word of a few.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A setting whose values have names.
///
/// The reader, its messages and the JSON Schema all use the one table, so that a new value is one
/// line.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// The names and what they mean; several names may mean the same.
    const CHOICES: &'static [(&'static str, Self)];

    /// The value of a name.
    fn named(name: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// The first name of this value.
    fn name(self) -> &'static str {
        Self::CHOICES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }

    /// The names for a message: `` `a`, `b` or `c` ``.
    fn names() -> String {
        let names: Vec<_> = Self::CHOICES.iter().map(|(name, _)| format!("`{name}`")).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        }
    }

    /// The JSON Schema that allows these names.
    fn schema() -> Schema {
        let names: Vec<_> = Self::CHOICES.iter().map(|(name, _)| Cow::Borrowed(*name)).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// Stands in the JSON Schema for a choice of another crate.
pub(crate) struct Named<C>(PhantomData<C>);

impl<C: Choice> JsonSchema for Named<C> {
    fn schema_name() -> Cow<'static, str> {
        "Named".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        C::schema()
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Gives a [`Choice`] its `Serialize` and `JsonSchema` from its table.
macro_rules! choice {
    ($type:ident, $($name:literal => $value:ident),+ $(,)?) => {
        impl crate::choice::Choice for $type {
            const CHOICES: &'static [(&'static str, Self)] = &[$(($name, Self::$value)),+];
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(crate::choice::Choice::name(*self))
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <Self as crate::choice::Choice>::schema()
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

pub(crate) use choice;
