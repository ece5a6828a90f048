//! Converts JSON Schema to types.
//!
//! Reads drafts 3 to 2020-12 and `OpenAPI` 3.0. Keywords that no type can express (`not`, `if`,
//! `dependentSchemas`, `contains`, patterns) are ignored: the types help to write a call, and the
//! broker validates against the schema itself.

mod documentation;
mod object;
mod reference;

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    limits::{MAX_DEPTH, ReadBudget},
    model::{Arena, DefinitionId, NameHint, Node, NodeId},
    text::{pascal_case, singular},
};

/// Whether a schema describes the input or the output of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    /// An output may always have more properties than the schema declares.
    Output,
}

/// Reads the schemas of one tool.
pub(crate) struct SchemaReader<'a, 'm> {
    arena: &'m mut Arena,
    budget: &'m mut ReadBudget,
    root: &'a Value,
    direction: Direction,
    tool: usize,
    /// The number of schemas around the current one.
    depth: usize,
    /// The number of objects and arrays around the current schema. A type may contain itself only
    /// inside one of them.
    containers: usize,
    /// The targets of references that were read, by address.
    known: HashMap<usize, NodeId>,
    open: Vec<OpenReference>,
    names: Option<HashMap<String, &'a Value>>,
}

/// The target of a reference that is being read.
struct OpenReference {
    address: usize,
    hint: String,
    containers: usize,
    definition: Option<DefinitionId>,
}

impl<'a, 'm> SchemaReader<'a, 'm> {
    /// A reader for the schema document `root` of the tool at position `tool`.
    pub(crate) fn new(
        arena: &'m mut Arena,
        budget: &'m mut ReadBudget,
        root: &'a Value,
        direction: Direction,
        tool: usize,
    ) -> Self {
        Self {
            arena,
            budget,
            root,
            direction,
            tool,
            depth: 0,
            containers: 0,
            known: HashMap::new(),
            open: Vec::new(),
            names: None,
        }
    }

    /// The type of the whole document. `hint` is a possible name for it.
    pub(crate) fn read(mut self, hint: &str) -> NodeId {
        self.target(self.root, hint)
    }

    /// Reads the target of a reference, or the root, once.
    fn target(&mut self, schema: &'a Value, hint: &str) -> NodeId {
        let address = std::ptr::from_ref(schema).addr();
        if let Some(node) = self.known.get(&address) {
            return *node;
        }
        if let Some(position) = self.open.iter().position(|open| open.address == address) {
            return self.within_itself(position);
        }
        self.open.push(OpenReference {
            address,
            hint: hint.to_owned(),
            containers: self.containers,
            definition: None,
        });
        let body = self.described(schema, hint);
        let definition = self.open.pop().and_then(|open| open.definition);
        let node = match definition {
            Some(definition) => {
                let node = self.arena.close(definition, body);
                let text = self.arena.description(body).to_owned();
                self.arena.describe(node, text);
                node
            }
            None => body,
        };
        self.known.insert(address, node);
        node
    }

    fn within_itself(&mut self, position: usize) -> NodeId {
        let open = &mut self.open[position];
        let hint = NameHint { name: pascal_case(&open.hint), tool: self.tool };
        if open.containers == self.containers {
            // `A = A | B` is not a type in any language.
            return Arena::UNKNOWN;
        }
        let definition = *open.definition.get_or_insert_with(|| self.arena.define(hint));
        self.arena.add(Node::Recursive(definition))
    }

    fn schema(&mut self, schema: &'a Value, hint: &str) -> NodeId {
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return Arena::NEVER,
            _ => return Arena::UNKNOWN,
        };
        if self.depth >= MAX_DEPTH || !self.budget.step() {
            self.budget.exceed();
            return Arena::CUT;
        }
        self.depth += 1;
        let node = self.keywords(keywords, hint);
        self.depth -= 1;
        node
    }

    /// Reads a schema with a description that belongs to the type, because there is no property
    /// before it.
    fn described(&mut self, schema: &'a Value, hint: &str) -> NodeId {
        let node = self.schema(schema, hint);
        if let (Node::Object(_), Value::Object(keywords)) = (self.arena.node(node), schema) {
            let text = self.description(keywords);
            self.arena.describe(node, text);
        }
        node
    }

    /// The type of a schema: the intersection of what its keywords say.
    fn keywords(&mut self, keywords: &'a Map<String, Value>, hint: &str) -> NodeId {
        let mut parts = Vec::new();
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = keywords.get(key).and_then(Value::as_str) {
                parts.push(self.reference(reference, hint));
            }
        }
        parts.push(self.own_type(keywords, hint));
        for options in ["anyOf", "oneOf"].iter().filter_map(|key| array(keywords, key)) {
            let variants = options.iter().map(|option| self.variant(option, hint)).collect();
            parts.push(self.arena.union(variants));
        }
        for part in array(keywords, "allOf").into_iter().flatten() {
            parts.push(self.schema(part, hint));
        }
        let node = self.arena.intersection(parts, self.budget);
        let node = if keywords.get("nullable") == Some(&Value::Bool(true)) && node != Arena::UNKNOWN
        {
            self.arena.union(vec![node, Arena::NULL])
        } else {
            node
        };
        self.suggest(node, hint);
        node
    }

    /// The type from `type`, `enum`, `const` and the keywords of objects and arrays.
    fn own_type(&mut self, keywords: &'a Map<String, Value>, hint: &str) -> NodeId {
        if let Some(node) = self.literals(keywords) {
            return node;
        }
        match keywords.get("type") {
            Some(Value::String(name)) => self.named(name, keywords, hint),
            Some(Value::Array(names)) => {
                let options = names
                    .iter()
                    .take(8)
                    .map(|name| match name {
                        Value::String(name) => self.named(name, keywords, hint),
                        // Draft 3 allows schemas here.
                        _ => self.schema(name, hint),
                    })
                    .collect();
                self.arena.union(options)
            }
            _ if ["properties", "patternProperties", "additionalProperties"]
                .iter()
                .any(|key| keywords.contains_key(*key)) =>
            {
                self.object(keywords, hint)
            }
            _ if keywords.contains_key("items") || keywords.contains_key("prefixItems") => {
                self.array(keywords, hint)
            }
            _ => Arena::UNKNOWN,
        }
    }

    fn named(&mut self, name: &str, keywords: &'a Map<String, Value>, hint: &str) -> NodeId {
        match name {
            "object" | "dict" => self.object(keywords, hint),
            "array" | "list" => self.array(keywords, hint),
            _ => self.scalar(name),
        }
    }

    /// One of several alternatives. The value that distinguishes it gives the better name.
    fn variant(&mut self, option: &'a Value, hint: &str) -> NodeId {
        let title = option.get("title").and_then(Value::as_str).filter(|title| title.len() <= 40);
        let hint = match title.or_else(|| discriminator(option)) {
            Some(own) => own,
            None => hint,
        };
        self.described(option, hint)
    }

    fn array(&mut self, keywords: &'a Map<String, Value>, hint: &str) -> NodeId {
        let one = singular(hint);
        self.containers += 1;
        let (tuple, rest) = match (keywords.get("prefixItems"), keywords.get("items")) {
            (Some(Value::Array(tuple)), rest) => (Some(tuple), rest),
            (_, Some(Value::Array(tuple))) => (Some(tuple), keywords.get("additionalItems")),
            (_, items) => (None, items),
        };
        let node = if let Some(tuple) = tuple {
            self.tuple(tuple, rest, keywords, &one)
        } else {
            let item = rest.map_or(Arena::UNKNOWN, |items| self.described(items, &one));
            self.arena.array(item)
        };
        self.containers -= 1;
        node
    }

    fn tuple(
        &mut self,
        tuple: &'a [Value],
        rest: Option<&'a Value>,
        keywords: &Map<String, Value>,
        hint: &str,
    ) -> NodeId {
        const MAX_ITEMS: usize = 64;
        let items: Vec<_> =
            tuple.iter().take(MAX_ITEMS).map(|item| self.schema(item, hint)).collect();
        let mut rest = match rest {
            Some(schema @ Value::Object(_)) => Some(self.schema(schema, hint)),
            _ => None,
        };
        if tuple.len() > MAX_ITEMS {
            self.budget.exceed();
            rest = Some(Arena::CUT);
        }
        let required = keywords
            .get("minItems")
            .and_then(Value::as_u64)
            .and_then(|minimum| usize::try_from(minimum).ok())
            .map_or(items.len(), |minimum| minimum.min(items.len()));
        self.arena.add(Node::Tuple { items, required, rest })
    }

    fn suggest(&mut self, node: NodeId, hint: &str) {
        let hint = NameHint { name: pascal_case(hint), tool: self.tool };
        self.arena.suggest(node, hint);
    }
}

fn array<'v>(keywords: &'v Map<String, Value>, key: &str) -> Option<&'v Vec<Value>> {
    keywords.get(key).and_then(Value::as_array).filter(|options| !options.is_empty())
}

/// The value of the first property that has only one possible value.
fn discriminator(option: &Value) -> Option<&str> {
    let properties = option.get("properties")?.as_object()?;
    properties.values().take(4).find_map(|property| {
        let constant = property.get("const").or_else(|| match property.get("enum") {
            Some(Value::Array(values)) if values.len() == 1 => values.first(),
            _ => None,
        });
        constant.and_then(Value::as_str).filter(|text| !text.is_empty() && text.len() <= 40)
    })
}
