//! Splits identifiers, and compares their spellings.

use super::{
    characters::{self, Class},
    fold::fold,
};
use crate::limits::{MAX_NAME_BYTES, cut};

/// The parts of a run of letters and digits: `getHTTPResponse2` is get, HTTP, Response, 2.
pub(super) fn split(run: &[char]) -> impl Iterator<Item = &[char]> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        if start == run.len() {
            return None;
        }
        next = (start + 1..run.len()).find(|end| is_boundary(run, *end)).unwrap_or(run.len());
        Some(&run[start..next])
    })
}

/// The name with nothing left but its letters and digits, in lower case and without accents, so
/// that `Create-Issue`, `create_issue` and `create issue` are one.
pub(crate) fn canonical_name(name: &str) -> String {
    let letters: Vec<char> = cut(name, MAX_NAME_BYTES)
        .chars()
        .filter(|character| {
            matches!(characters::classify(*character), Class::Word | Class::Unsegmented)
        })
        .map(characters::narrow)
        .collect();
    fold(&letters)
}

/// Whether a part begins at `position`, which is neither the first nor past the last.
fn is_boundary(run: &[char], position: usize) -> bool {
    let (before, here) = (run[position - 1], run[position]);
    if before.is_numeric() != here.is_numeric() {
        return true;
    }
    if !here.is_uppercase() {
        return false;
    }
    if before.is_lowercase() {
        return true;
    }
    // The last capital of `HTTPResponse` belongs to the word after it, but the one of `URLs` does
    // not.
    before.is_uppercase()
        && run.get(position + 1).is_some_and(|next| next.is_lowercase())
        && !is_plural(run, position + 1)
}

/// Whether the letter at `position` is an `s` after capitals with which the word ends.
fn is_plural(run: &[char], position: usize) -> bool {
    run[position] == 's' && run.get(position + 1).is_none_or(|next| !next.is_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(run: &str) -> Vec<String> {
        let run: Vec<char> = run.chars().collect();
        split(&run).map(|part| part.iter().collect()).collect()
    }

    #[test]
    fn parts_begin_at_capitals_and_digits() {
        assert_eq!(parts("getHTTPResponse2"), ["get", "HTTP", "Response", "2"]);
        assert_eq!(parts("ListPullRequests"), ["List", "Pull", "Requests"]);
        assert_eq!(parts("listURLs"), ["list", "URLs"]);
        assert_eq!(parts("getIDsByName"), ["get", "IDs", "By", "Name"]);
        assert_eq!(parts("s3"), ["s", "3"]);
        assert_eq!(parts("ABC"), ["ABC"]);
        assert_eq!(parts("éÉtat"), ["é", "État"]);
        assert!(parts("").is_empty());
    }

    #[test]
    fn separators_and_case_do_not_make_another_name() {
        for spelling in
            ["create_issue", "createIssue", "Create-Issue", "CREATE.ISSUE", "creáte issue"]
        {
            assert_eq!(canonical_name(spelling), "createissue", "{spelling}");
        }
        assert_eq!(canonical_name("取得_リスト"), "取得リスト");
        assert_eq!(canonical_name("___"), "");
        assert!(canonical_name(&"a".repeat(100_000)).len() <= MAX_NAME_BYTES);
    }
}
