//! Merges rankings.

use std::collections::HashSet;

use crate::query::Hit;

/// Takes the first hit of each list, then the second of each, and so on, until there are `limit`
/// distinct tools.
///
/// If the hit of a list is already taken, the list adds nothing at that rank, because the tool
/// serves both queries.
pub fn round_robin(lists: Vec<Vec<Hit>>, limit: usize) -> Vec<Hit> {
    let mut seen = HashSet::new();
    let mut merged = Vec::new();
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    while merged.len() < limit {
        let mut exhausted = true;
        for hit in lists.iter_mut().filter_map(Iterator::next) {
            exhausted = false;
            if merged.len() < limit && seen.insert(hit.key.clone()) {
                merged.push(hit);
            }
        }
        if exhausted {
            break;
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ToolKey;

    fn list(keys: &[&str]) -> Vec<Hit> {
        keys.iter().map(|key| Hit::new(ToolKey::from(*key), 1.0)).collect()
    }

    fn merged(lists: &[&[&str]], limit: usize) -> Vec<String> {
        let lists = lists.iter().map(|keys| list(keys)).collect();
        round_robin(lists, limit).iter().map(|hit| hit.key.to_string()).collect()
    }

    #[test]
    fn ranks_alternate_and_nothing_comes_twice() {
        assert_eq!(merged(&[&["a", "b", "c"], &["x", "a", "y"]], 9), ["a", "x", "b", "c", "y"]);
    }

    #[test]
    fn a_long_list_does_not_crowd_out_a_short_one() {
        assert_eq!(merged(&[&["a", "b", "c", "d"], &["x"]], 3), ["a", "x", "b"]);
    }

    #[test]
    fn no_lists_no_limit_no_hits() {
        assert!(merged(&[], 5).is_empty());
        assert!(merged(&[&["a"]], 0).is_empty());
        assert!(merged(&[&[], &[]], 5).is_empty());
    }
}
