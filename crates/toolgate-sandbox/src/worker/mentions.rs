//! The tools that a script of an unknown language mentions.

use std::collections::HashSet;

use serde_json::Value;
use toolgate_bindings::{check::LookupResult, first_takes_object, parameters};
use toolgate_engines::Function;

/// The most words that the host is asked for, and the longest name of a tool.
const MOST_WORDS: usize = 2_000;
const LONGEST_NAME: usize = 64;

/// The words of a text that could be names of tools, each of them once.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut known = HashSet::new();
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'))
        .filter(|word| word.len() <= LONGEST_NAME && known.insert(*word))
        .take(MOST_WORDS)
        .map(str::to_owned)
        .collect()
}

/// The function of a name that is a tool.
pub(super) fn function(found: LookupResult) -> Option<Function> {
    let LookupResult::Tool { name, input_schema, .. } = found else { return None };
    let schema: Value = serde_json::from_str(input_schema.get()).unwrap_or_default();
    let parameters = parameters(&schema);
    let first_takes_object = first_takes_object(&schema, &parameters);
    Some(Function { name, parameters, first_takes_object })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_once_and_numbers_are_none() {
        let text = "local r = shop_list{n=10}; shop_list(r, 'x-ray', 2_a, été)";
        assert_eq!(words(text), ["local", "r", "shop_list", "n", "x", "ray", "t"]);
        let many: Vec<String> = (0..3_000).map(|number| format!("w{number}")).collect();
        assert_eq!(words(&many.join(" ")).len(), MOST_WORDS);
        assert!(words(&"a".repeat(LONGEST_NAME + 1)).is_empty());
    }
}
