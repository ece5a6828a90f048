//! The shape of results, learned from the results themselves.

mod complete;
mod declare;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The depth to which a result is read.
const MAX_DEPTH: usize = 10;
/// The number of values of a result that are read.
const MAX_VALUES: usize = 20_000;
/// The number of items at the start of an array that are read.
const MAX_ITEMS: usize = 200;
/// An object with more keys than this is a map.
const MAX_KEYS: usize = 64;
/// The longest key that can be the name of a field.
const MAX_KEY: usize = 64;
/// The largest number of fields in a shape.
const MAX_FIELDS: usize = 1_000;

/// The shape of a tool's results so far.
///
/// A shape only grows: after a merge it allows everything that it allowed before. Its size is
/// limited. The order of merges matters only where a limit is reached.
///
/// ```
/// use serde_json::json;
/// use toolgate_bindings::Shape;
///
/// let mut shape = Shape::of(&json!({ "id": 1, "name": "a" }));
/// shape.observe(&json!({ "id": 2, "name": null }));
/// assert_eq!(shape, Shape::of(&json!({ "id": 7, "name": null })).with(Shape::of(&json!({ "id": 1, "name": "b" }))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    kinds: BTreeSet<ScalarKind>,
    /// The items of arrays, all merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    array: Option<Box<Shape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ShapeMembers>,
}

/// Values without parts, or without known parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScalarKind {
    Boolean,
    Integer,
    Number,
    String,
    Null,
    /// A value beyond the limits.
    Anything,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShapeMembers {
    /// The names that occurred.
    Fields(BTreeMap<String, ShapeField>),
    /// Any names, with values of this shape.
    Map(Box<Shape>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShapeField {
    #[serde(default, skip_serializing_if = "is_false")]
    optional: bool,
    #[serde(flatten)]
    shape: Shape,
}

impl Shape {
    /// The shape of one result.
    pub fn of(value: &Value) -> Self {
        let mut shape = Self::read(value, 0, &mut { MAX_VALUES });
        shape.shrink();
        shape
    }

    /// Whether it allows a result already, so that the result adds nothing. Does not copy anything, as most results of a
    /// tool are like the earlier ones.
    pub fn allows(&self, value: &Value) -> bool {
        self.allows_within(value, 0, &mut { MAX_VALUES })
    }

    /// Adds one more result.
    pub fn observe(&mut self, value: &Value) {
        self.merge(Self::of(value));
    }

    /// Adds everything that `other` allows.
    pub fn merge(&mut self, other: Self) {
        self.absorb(other);
        self.shrink();
    }

    /// This shape merged with another.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.merge(other);
        self
    }

    fn read(value: &Value, depth: usize, left: &mut usize) -> Self {
        let Some(rest) = left.checked_sub(1).filter(|_| depth <= MAX_DEPTH) else {
            return Self::only(ScalarKind::Anything);
        };
        *left = rest;
        match value {
            Value::Array(items) => {
                let mut merged = Self::default();
                for item in items.iter().take(MAX_ITEMS) {
                    merged.absorb(Self::read(item, depth + 1, left));
                }
                Self { array: Some(Box::new(merged)), ..Self::default() }
            }
            Value::Object(members) => {
                let is_map =
                    members.len() > MAX_KEYS || members.keys().any(|key| key.len() > MAX_KEY);
                let mut known = if is_map {
                    ShapeMembers::Map(Box::default())
                } else {
                    ShapeMembers::Fields(BTreeMap::new())
                };
                for (key, value) in members.iter().take(MAX_ITEMS) {
                    let value = Self::read(value, depth + 1, left);
                    match &mut known {
                        ShapeMembers::Map(merged) => merged.absorb(value),
                        ShapeMembers::Fields(fields) => {
                            fields
                                .insert(key.clone(), ShapeField { optional: false, shape: value });
                        }
                    }
                }
                Self { object: Some(known), ..Self::default() }
            }
            scalar => ScalarKind::of(scalar).map_or_else(Self::default, Self::only),
        }
    }

    fn allows_within(&self, value: &Value, depth: usize, left: &mut usize) -> bool {
        // What is beyond the limits has another shape.
        let Some(rest) = left.checked_sub(1).filter(|_| depth <= MAX_DEPTH) else { return false };
        *left = rest;
        match value {
            Value::Array(items) => self.array.as_ref().is_some_and(|known| {
                let mut items = items.iter().take(MAX_ITEMS);
                items.all(|item| known.allows_within(item, depth + 1, left))
            }),
            Value::Object(members) => match &self.object {
                None => false,
                Some(ShapeMembers::Map(known)) => {
                    let mut values = members.values().take(MAX_ITEMS);
                    values.all(|value| known.allows_within(value, depth + 1, left))
                }
                Some(ShapeMembers::Fields(known)) => {
                    known.iter().all(|(name, field)| field.optional || members.contains_key(name))
                        && members.iter().all(|(name, value)| {
                            let field = known.get(name);
                            field.is_some_and(|it| it.shape.allows_within(value, depth + 1, left))
                        })
                }
            },
            scalar => ScalarKind::of(scalar).is_some_and(|kind| self.kinds.contains(&kind)),
        }
    }

    fn only(kind: ScalarKind) -> Self {
        Self { kinds: BTreeSet::from([kind]), ..Self::default() }
    }

    fn absorb(&mut self, other: Self) {
        self.kinds.extend(other.kinds);
        match (&mut self.array, other.array) {
            (Some(mine), Some(other)) => mine.absorb(*other),
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
        self.object = match (self.object.take(), other.object) {
            (Some(mine), Some(other)) => Some(mine.merged(other)),
            (mine, other) => mine.or(other),
        };
    }

    /// Removes the deepest levels until the number of fields is within the limit.
    fn shrink(&mut self) {
        let mut depth = MAX_DEPTH;
        while self.fields() > MAX_FIELDS {
            self.cut(depth);
            depth = depth.saturating_sub(1);
        }
    }

    fn fields(&self) -> usize {
        let items = self.array.as_ref().map_or(0, |items| items.fields() + 1);
        let members = match &self.object {
            None => 0,
            Some(ShapeMembers::Map(value)) => value.fields() + 1,
            Some(ShapeMembers::Fields(fields)) => {
                fields.values().map(|field| field.shape.fields() + 1).sum()
            }
        };
        items + members
    }

    /// Replaces everything deeper than `depth` by `Anything`.
    fn cut(&mut self, depth: usize) {
        let Some(rest) = depth.checked_sub(1) else {
            if self.array.is_some() || self.object.is_some() {
                *self = Self::only(ScalarKind::Anything);
            }
            return;
        };
        if let Some(items) = &mut self.array {
            items.cut(rest);
        }
        match &mut self.object {
            None => {}
            Some(ShapeMembers::Map(value)) => value.cut(rest),
            Some(ShapeMembers::Fields(fields)) => {
                for field in fields.values_mut() {
                    field.shape.cut(rest);
                }
            }
        }
    }
}

impl ScalarKind {
    /// The kind of a value; `None` if it has parts.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(_) => Some(Self::Boolean),
            Value::Number(number) if number.is_f64() => Some(Self::Number),
            Value::Number(_) => Some(Self::Integer),
            Value::String(_) => Some(Self::String),
            Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl ShapeMembers {
    fn merged(self, other: Self) -> Self {
        let (mut mine, other) = match (self, other) {
            (Self::Fields(mine), Self::Fields(other)) => (mine, other),
            (mine, other) => {
                let mut value = mine.into_value();
                value.absorb(other.into_value());
                return Self::Map(Box::new(value));
            }
        };
        for (name, field) in &mut mine {
            field.optional |= !other.contains_key(name);
        }
        for (name, field) in other {
            match mine.get_mut(&name) {
                None => {
                    mine.insert(name, ShapeField { optional: true, ..field });
                }
                Some(known) => {
                    known.optional |= field.optional;
                    known.shape.absorb(field.shape);
                }
            }
        }
        let fields = Self::Fields(mine);
        if fields.count() > MAX_KEYS { Self::Map(Box::new(fields.into_value())) } else { fields }
    }

    fn count(&self) -> usize {
        match self {
            Self::Fields(fields) => fields.len(),
            Self::Map(_) => 0,
        }
    }

    /// The merged shape of all values.
    fn into_value(self) -> Shape {
        match self {
            Self::Map(value) => *value,
            Self::Fields(fields) => {
                fields.into_values().fold(Shape::default(), |mut all, field| {
                    all.absorb(field.shape);
                    all
                })
            }
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Few names and kinds, so that results are often alike.
    fn results() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            Just(json!(1)),
            Just(json!(1.5)),
            Just(json!("a")),
        ];
        scalar.prop_recursive(4, 24, 3, |part| {
            prop_oneof![
                proptest::collection::vec(part.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::btree_map("[ab]", part, 0..3)
                    .prop_map(|members| json!(members)),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_a_shape_allows_adds_nothing_and_what_it_has_seen_it_allows(
            seen in proptest::collection::vec(results(), 1..4), next in results(),
        ) {
            let mut shape = Shape::default();
            for result in &seen {
                shape.observe(result);
            }
            for result in seen.iter().chain([&next]) {
                let mut after = shape.clone();
                after.observe(result);
                prop_assert_eq!(shape.allows(result), after == shape, "{}", result);
            }
        }
    }

    #[test]
    fn a_map_allows_its_values_under_any_name() {
        let numbers = |range: std::ops::Range<i32>| {
            Value::Object(range.map(|number| (number.to_string(), json!(number))).collect())
        };
        let shape = Shape::of(&numbers(0..100));
        assert!(shape.allows(&numbers(200..300)) && shape.allows(&json!({ "x": 7 })));
        assert!(!shape.allows(&json!({ "x": "y" })));
    }

    #[test]
    fn what_is_beyond_the_limits_is_not_allowed_unseen() {
        let deep = (0..MAX_DEPTH + 2).fold(json!(1), |value, _| json!([value]));
        assert!(!Shape::of(&deep).allows(&deep));
    }
}
