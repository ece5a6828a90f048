//! Names that somebody may have meant.

/// The `limit` candidates most like `wanted`, best first; ties in the order of the alphabet.
///
/// Candidates that share too little with it are left out: a wrong suggestion is worse than none.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    const LIKE_ENOUGH: f64 = 0.6;
    // A hostile name could be megabytes long; no sensible one is longer than this.
    let wanted: String = wanted.chars().take(128).collect::<String>().to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= LIKE_ENOUGH)
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    scored.into_iter().take(limit).map(|(_, candidate)| candidate).collect()
}

/// Bigrams find swapped words, edit distance finds typing errors, and a model most often leaves
/// out the server's part of the name.
fn likeness(wanted: &str, candidate: &str) -> f64 {
    let typed = strsim::normalized_damerau_levenshtein(wanted, candidate);
    let swapped = strsim::sorensen_dice(wanted, candidate);
    let contained = if wanted.len() >= 3 && candidate.ends_with(wanted) { 0.9 } else { 0.0 };
    typed.max(swapped).max(contained)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] =
        ["github_create_issue", "github_list_issues", "jira_create_issue", "time_now"];

    #[test]
    fn finds_a_typing_error_and_a_missing_server() {
        assert_eq!(nearest("github_create_isue", NAMES, 1), ["github_create_issue"]);
        assert_eq!(nearest("create_issue", NAMES, 2), ["github_create_issue", "jira_create_issue"]);
    }

    #[test]
    fn suggests_nothing_if_no_name_is_similar() {
        assert!(nearest("zzzzqqq", NAMES, 3).is_empty());
        assert!(nearest("", NAMES, 3).is_empty());
    }
}
