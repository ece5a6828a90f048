//! Unions, intersections and equality of types.

use super::{Arena, DefinitionId, Doc, Literal, Node, NodeId, Object, Property};
use crate::limits::{MAX_DEPTH, MAX_PARTS, MAX_PROPERTIES, MAX_VALUES, ReadBudget};

impl Arena {
    /// The union of `options`.
    pub(crate) fn union(&mut self, options: Vec<NodeId>) -> NodeId {
        let mut flat: Vec<NodeId> = Vec::new();
        for option in options {
            let parts = match self.node(option) {
                Node::Union(parts) => parts.clone(),
                _ => vec![option],
            };
            for part in parts {
                if part != Self::NEVER && !flat.contains(&part) {
                    flat.push(part);
                }
                if flat.len() > MAX_VALUES {
                    flat.retain(|part| *part != Self::CUT);
                    flat.truncate(MAX_VALUES - 1);
                    flat.push(Self::CUT);
                    self.overflowed = true;
                }
            }
        }
        if flat.contains(&Self::UNKNOWN) {
            return Self::UNKNOWN;
        }
        let [yes, no] = [true, false].map(|value| self.add(Node::Literal(Literal::Boolean(value))));
        if flat.contains(&yes) && flat.contains(&no) {
            flat.push(self.add(Node::Boolean));
        }
        let boolean = self.add(Node::Boolean);
        if flat.contains(&boolean) {
            flat.retain(|part| *part != yes && *part != no);
        }
        let (integer, number) = (self.add(Node::Integer), self.add(Node::Number));
        if flat.contains(&number) {
            flat.retain(|part| *part != integer);
        }
        flat.sort_by_key(|part| (*part == Self::CUT, *part == Self::NULL));
        match flat[..] {
            [] => Self::NEVER,
            [only] => only,
            _ => self.add(Node::Union(flat)),
        }
    }

    /// The intersection of `parts`. Objects are merged, which costs one step per property.
    pub(crate) fn intersection(&mut self, parts: Vec<NodeId>, budget: &mut ReadBudget) -> NodeId {
        let mut flat: Vec<NodeId> = Vec::new();
        for part in parts {
            match self.node(part) {
                Node::Unknown => {}
                Node::Intersection { parts, .. } => flat.extend(parts.clone()),
                _ if flat.contains(&part) => {}
                _ => flat.push(part),
            }
        }
        let mut kept: Vec<NodeId> = Vec::new();
        for mut part in self.with_objects_merged(flat, budget) {
            // Every merge removes one of the parts, so this terminates.
            let mut position = 0;
            while let Some(other) = kept.get(position).copied() {
                if let Some(merged) = self.merge(other, part, budget) {
                    kept.remove(position);
                    part = merged;
                    position = 0;
                } else {
                    position += 1;
                }
            }
            if kept.len() < MAX_PARTS {
                kept.push(part);
            } else {
                budget.exceed();
            }
        }
        match kept[..] {
            [] => Self::UNKNOWN,
            [only] => only,
            _ => {
                let outline =
                    self.outline_of(&kept, budget, 0).map(|object| self.add(Node::Object(object)));
                self.add(Node::Intersection { parts: kept, outline })
            }
        }
    }

    /// An object with the properties of all objects in this type: the parameters of a function with
    /// this type of arguments. `None` if the type is not about objects.
    pub(crate) fn outline(&mut self, id: NodeId, budget: &mut ReadBudget) -> Option<Object> {
        self.outline_at(id, budget, 0)
    }

    fn outline_at(&mut self, id: NodeId, budget: &mut ReadBudget, depth: usize) -> Option<Object> {
        if depth > MAX_DEPTH || !budget.step() {
            return None;
        }
        match self.node(id) {
            Node::Object(object) if budget.steps(object.properties.len()) => {
                Some(copied(object, budget))
            }
            Node::Recursive(definition) => {
                self.outline_at(self.body(*definition), budget, depth + 1)
            }
            Node::Intersection { parts, .. } => {
                let parts = parts.clone();
                self.outline_of(&parts, budget, depth + 1)
            }
            Node::Union(parts) => {
                let parts = parts.clone();
                let mut objects = Vec::new();
                for part in parts.into_iter().filter(|part| *part != Self::NULL) {
                    objects.push(self.outline_at(part, budget, depth + 1)?);
                }
                self.common(objects)
            }
            _ => None,
        }
    }

    /// The intersection of two types, if one type can express it.
    fn merge(&mut self, left: NodeId, right: NodeId, budget: &mut ReadBudget) -> Option<NodeId> {
        if left == right || right == Self::CUT {
            return Some(left);
        }
        match (self.node(left), self.node(right)) {
            (Node::Never, _) | (_, Node::Never) => Some(Self::NEVER),
            (Node::Cut, _) => Some(right),
            (Node::Object(_), Node::Object(_)) => {
                self.with_objects_merged(vec![left, right], budget).first().copied()
            }
            // `type: object` beside alternatives that are objects adds nothing.
            (Node::Object(object), _) if object.says_nothing() && self.is_objects(right) => {
                Some(right)
            }
            (_, Node::Object(object)) if object.says_nothing() && self.is_objects(left) => {
                Some(left)
            }
            _ if self.covers(left, right) => Some(right),
            _ if self.covers(right, left) => Some(left),
            _ => None,
        }
    }

    /// The parts with all objects merged into one, at the position of the first.
    fn with_objects_merged(&mut self, parts: Vec<NodeId>, budget: &mut ReadBudget) -> Vec<NodeId> {
        let is_object = |part: &&NodeId| matches!(self.node(**part), Node::Object(_));
        if parts.iter().filter(is_object).count() < 2 {
            return parts;
        }
        let mut merged: Option<(usize, Object)> = None;
        let mut others = Vec::new();
        for part in parts {
            match (self.node(part), &mut merged) {
                (Node::Object(object), None) => {
                    merged = Some((others.len(), copied(object, budget)));
                }
                (Node::Object(object), Some((_, merged))) => {
                    let object = copied(object, budget);
                    self.merge_object(merged, object, budget);
                }
                _ => others.push(part),
            }
        }
        if let Some((position, object)) = merged {
            let object = self.add(Node::Object(object));
            others.insert(position, object);
        }
        others
    }

    fn merge_object(&mut self, merged: &mut Object, second: Object, budget: &mut ReadBudget) {
        for property in second.properties {
            if !budget.step() || merged.properties.len() >= MAX_PROPERTIES {
                budget.exceed();
                break;
            }
            match merged.properties.iter().position(|known| known.name == property.name) {
                None => merged.properties.push(property),
                Some(position) => {
                    let known = merged.properties[position].clone();
                    let node = self.intersection(vec![known.node, property.node], budget);
                    let doc = if known.doc.text.is_empty() { property.doc } else { known.doc };
                    let required = known.required || property.required;
                    merged.properties[position] = Property { node, required, doc, ..known };
                }
            }
        }
        merged.rest = match (merged.rest, second.rest) {
            (Some(one), Some(other)) => Some(self.intersection(vec![one, other], budget)),
            (one, other) => one.or(other),
        };
    }

    /// Whether the scalar type `wide` includes `narrow`.
    fn covers(&self, wide: NodeId, narrow: NodeId) -> bool {
        match (self.node(wide), self.node(narrow)) {
            (Node::Number, Node::Integer | Node::Literal(Literal::Number(_)))
            | (Node::String, Node::Literal(Literal::String(_)))
            | (Node::Boolean, Node::Literal(Literal::Boolean(_))) => true,
            (Node::Integer, Node::Literal(Literal::Number(number))) => !number.is_f64(),
            (Node::Array(item), Node::Array(_) | Node::Tuple { .. }) => *item == Self::UNKNOWN,
            (Node::Union(options), _) if options.contains(&narrow) => true,
            (_, Node::Union(parts)) => {
                parts.iter().all(|part| *part == wide || self.covers(wide, *part))
            }
            _ => false,
        }
    }

    fn is_objects(&self, id: NodeId) -> bool {
        match self.node(id) {
            Node::Object(_) => true,
            Node::Union(parts) => parts.iter().all(|part| self.is_objects(*part)),
            Node::Intersection { outline, .. } => outline.is_some(),
            Node::Recursive(definition) => {
                matches!(self.node(self.body(*definition)), Node::Object(_))
            }
            _ => false,
        }
    }

    fn outline_of(
        &mut self,
        parts: &[NodeId],
        budget: &mut ReadBudget,
        depth: usize,
    ) -> Option<Object> {
        let mut whole = Object::default();
        for part in parts {
            let object = self.outline_at(*part, budget, depth)?;
            for property in object.properties {
                let is_full = whole.properties.len() >= MAX_PROPERTIES;
                match whole.properties.iter_mut().find(|known| known.name == property.name) {
                    Some(known) => known.required |= property.required,
                    None if is_full => budget.exceed(),
                    None => whole.properties.push(property),
                }
            }
            whole.rest = whole.rest.or(object.rest);
        }
        Some(whole)
    }

    /// All properties of the alternatives. A property is required if all of them require it.
    fn common(&mut self, objects: Vec<Object>) -> Option<Object> {
        let mut objects = objects.into_iter();
        let mut whole = objects.next()?;
        for object in objects {
            for known in &mut whole.properties {
                known.required &= object
                    .properties
                    .iter()
                    .any(|property| property.name == known.name && property.required);
            }
            for mut property in object.properties {
                let known = whole.properties.iter().position(|known| known.name == property.name);
                if let Some(position) = known {
                    let node = self.union(vec![whole.properties[position].node, property.node]);
                    whole.properties[position].node = node;
                } else if whole.properties.len() < MAX_PROPERTIES {
                    property.required = false;
                    whole.properties.push(property);
                }
            }
            whole.rest = whole.rest.or(object.rest);
        }
        Some(whole)
    }

    /// Whether two types are equal, assuming that the pairs in `assumed` are. Gives up after
    /// `steps`: types that are not found equal get separate names, which does no harm.
    pub(super) fn equal(
        &self,
        left: NodeId,
        right: NodeId,
        assumed: &mut Vec<(DefinitionId, DefinitionId)>,
        steps: &mut usize,
    ) -> bool {
        if left == right {
            return true;
        }
        let Some(left_over) = steps.checked_sub(1) else { return false };
        *steps = left_over;
        match (self.node(left), self.node(right)) {
            (Node::Recursive(one), Node::Recursive(other)) => {
                if one == other || assumed.contains(&(*one, *other)) {
                    return true;
                }
                assumed.push((*one, *other));
                self.equal(self.body(*one), self.body(*other), assumed, steps)
            }
            (Node::Object(one), Node::Object(other)) => {
                one.properties.len() == other.properties.len()
                    && one.rest.is_some() == other.rest.is_some()
                    && one.properties.iter().zip(&other.properties).all(|(one, other)| {
                        one.name == other.name
                            && one.required == other.required
                            && one.doc == other.doc
                    })
                    && self.all_equal(left, right, assumed, steps)
            }
            (Node::Array(_), Node::Array(_)) => self.all_equal(left, right, assumed, steps),
            (Node::Union(one), Node::Union(other)) if one.len() == other.len() => {
                self.all_equal(left, right, assumed, steps)
            }
            _ => false,
        }
    }

    fn all_equal(
        &self,
        left: NodeId,
        right: NodeId,
        assumed: &mut Vec<(DefinitionId, DefinitionId)>,
        steps: &mut usize,
    ) -> bool {
        let pairs = self.children(left).into_iter().zip(self.children(right));
        pairs.into_iter().all(|(one, other)| self.equal(one, other, assumed, steps))
    }
}

impl Object {
    /// Whether this is any object.
    pub(crate) fn says_nothing(&self) -> bool {
        self.properties.is_empty() && self.rest.is_none_or(|rest| rest == Arena::UNKNOWN)
    }
}

/// Copies an object and charges the budget, because the documentation of its properties could
/// otherwise be repeated endlessly.
fn copied(object: &Object, budget: &mut ReadBudget) -> Object {
    budget.steps(object.properties.len() / 16);
    let mut copy = object.clone();
    for property in &mut copy.properties {
        if !budget.text(property.name.len() + property.doc.text.len()) {
            property.doc = Doc::default();
        }
    }
    copy
}
