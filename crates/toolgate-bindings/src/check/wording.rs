//! Formats lists of names, and finds the name that was meant.

use super::Language;

/// The names in backticks: `` `a`, `b` and `c` ``.
pub(super) fn quoted_list<S: AsRef<str>>(names: &[S], last: &str) -> String {
    let quoted: Vec<String> =
        names.iter().map(|name| format!("`{}`", cut(name.as_ref()))).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The candidate that `name` was most likely meant to be, if one is likely.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = fold(name);
    // The comparison takes quadratic time, and the lengths are not ours to choose.
    if folded.len() > 100 || folded.is_empty() {
        return None;
    }
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates.filter(|candidate| candidate.len() <= 100).take(500) {
        let other = fold(candidate);
        let distance = strsim::damerau_levenshtein(&folded, &other);
        let longer = folded.chars().count().max(other.chars().count());
        #[expect(clippy::cast_precision_loss, reason = "both are at most 100")]
        let likeness = 1.0 - distance as f64 / longer.max(1) as f64;
        // One wrong letter in a short word, or about a third of a long one.
        let close = distance <= 1 && longer >= 3 || likeness >= 0.66;
        // `repoName` for `repo`, `q` for `query`.
        let starts = other.starts_with(&folded) && folded.len() * 2 >= other.len()
            || folded.starts_with(&other) && other.len() * 2 >= folded.len();
        if (close || starts) && best.is_none_or(|(known, _)| likeness > known) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// At most 80 characters of a foreign name, without control characters.
pub(super) fn cut(name: &str) -> String {
    let clean = name.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = clean.take(80).collect();
    if shown.len() < name.len() && name.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}

/// The arguments of a call in Python. Those whose names are no identifiers are passed as
/// `**{"user-id": …}`.
pub(super) fn python_arguments(names: &[&str], show: impl Fn(&str) -> String) -> Vec<String> {
    let (plain, others): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| crate::python::is_parameter(name));
    let mut shown: Vec<String> = plain.into_iter().map(show).collect();
    if !others.is_empty() {
        let parts: Vec<String> =
            others.iter().map(|name| format!("\"{}\": …", cut(name))).collect();
        shown.push(format!("**{{{}}}", parts.join(", ")));
    }
    shown
}

/// Folds case and separators, so that `issueNumber`, `issue_number` and `issue-number` are equal.
fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The name of a language in the `language` parameter.
pub(super) fn name(language: Language) -> &'static str {
    match language {
        Language::TypeScript => "typescript",
        Language::Python => "python",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        let names = ["owner", "repo", "issue_number", "labels", "query", "id"];
        let meant = |name| nearest(name, names.into_iter());
        assert_eq!(meant("issueNumber"), Some("issue_number"));
        assert_eq!(meant("ownr"), Some("owner"));
        assert_eq!(meant("label"), Some("labels"));
        assert_eq!(meant("repoName"), Some("repo"));
        assert_eq!(meant("IDs"), Some("id"));
        assert_eq!(meant("colour"), None);
        assert_eq!(meant(""), None);
        assert_eq!(meant(&"x".repeat(5000)), None);
    }

    #[test]
    fn lists() {
        assert_eq!(quoted_list(&["a"], "and"), "`a`");
        assert_eq!(quoted_list(&["a", "b", "c"], "or"), "`a`, `b` or `c`");
        assert_eq!(cut(&"ä".repeat(100)).chars().count(), 81);
    }
}
