//! `anyOf` and `oneOf`: enough that one branch does not speak against it.

use serde_json::Value;

use super::{
    Checker, Place, Violation,
    scalar::{fits, types},
};
use crate::check::{CheckSeverity, literal::Literal};

/// With more branches than this nothing is said.
const MAX_BRANCHES: usize = 64;

impl Checker<'_> {
    pub(super) fn check_branches(
        &self,
        branches: &[Value],
        literal: &Literal,
        place: &Place<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        if branches.len() > MAX_BRANCHES {
            return;
        }
        let mut refused = Vec::new();
        for branch in branches {
            let mut violations = Vec::new();
            self.walk(branch, literal, place, depth + 1, &mut violations);
            violations.retain(|violation| violation.severity == CheckSeverity::Error);
            if violations.is_empty() {
                return;
            }
            refused.push((self.behind_references(branch), violations));
        }
        if let Some(values) = values(&refused) {
            out.push(self.not_one_of(&values, literal, place));
            return;
        }
        let types_of = |schema: &Value| -> Vec<String> {
            let keywords = schema.as_object();
            let names = keywords.map(types).unwrap_or_default();
            names.into_iter().map(str::to_owned).collect()
        };
        let mut near: Vec<&(&Value, Vec<Violation>)> = refused
            .iter()
            .filter(|(schema, _)| {
                let names = types_of(schema);
                names.is_empty() || names.iter().any(|name| fits(name, literal))
            })
            .collect();
        let distance = |violations: &[Violation]| {
            let others = violations.iter().filter(|violation| violation.is_other_value).count();
            (others, violations.len())
        };
        near.sort_by_key(|(_, violations)| distance(violations));
        match near.as_slice() {
            // Nothing is of the right type: say which types there are.
            [] => {
                let mut names: Vec<String> = Vec::new();
                for name in refused.iter().flat_map(|(schema, _)| types_of(schema)) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let wanted = self.wanted(&names);
                let message = format!("{place} takes {wanted}, not {}", self.noun(literal));
                out.push(Violation::error(literal.offset, message, None));
            }
            [(_, violations)] => out.extend(violations.iter().cloned()),
            // One is nearer than the others: most likely the one that was meant.
            [(_, first), (_, second), ..] if distance(first) < distance(second) => {
                out.extend(first.iter().cloned());
            }
            [(_, first), ..] => {
                let message = format!("{place} fits none of the {} forms it may have", near.len());
                let hint =
                    first.first().map(|violation| format!("in the first, {}", violation.message));
                out.push(Violation::error(literal.offset, message, hint));
            }
        }
    }

    /// What a schema that does nothing but refer refers to.
    fn behind_references<'v>(&'v self, mut schema: &'v Value) -> &'v Value {
        for _ in 0..8 {
            let pointer = schema.get("$ref").and_then(Value::as_str);
            match pointer.and_then(|pointer| self.resolve(pointer)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }
}

/// The values of branches that are nothing but enumerations.
fn values<'v>(refused: &[(&'v Value, Vec<Violation>)]) -> Option<Vec<&'v Value>> {
    let mut values = Vec::new();
    for (schema, _) in refused {
        match (schema.get("const"), schema.get("enum")) {
            (Some(value), None) => values.push(value),
            (None, Some(Value::Array(several))) => values.extend(several),
            _ => return None,
        }
    }
    Some(values)
}
