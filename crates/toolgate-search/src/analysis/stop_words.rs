//! Words that do not distinguish tools.

/// Whether `word`, in lower case, is one of them.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Sorted, so that a lookup takes seven comparisons and needs no table.
///
/// These are common function words, and words of polite requests (`please`, `could you help me`).
/// Verbs of tool names (`get`, `show`, `find`) are not here, because the weights already account
/// for common words. `don` and similar words are left over from `don't`.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "aren", "as", "at", "be", "because", "been", "before", "being", "below", "between",
    "both", "but", "by", "can", "cannot", "could", "couldn", "did", "didn", "do", "does", "doesn",
    "doing", "don", "down", "during", "each", "eg", "either", "etc", "even", "ever", "every", "for",
    "from", "further", "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "hello",
    "help", "her", "here", "hers", "herself", "hi", "him", "himself", "his", "how", "however", "i",
    "ie", "if", "in", "into", "is", "isn", "it", "its", "itself", "just", "kindly", "let", "like",
    "ll", "looking", "may", "me", "might", "more", "most", "must", "mustn", "my", "myself", "need",
    "needed", "needs", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "onto", "or",
    "other", "ought", "our", "ours", "ourselves", "out", "over", "own", "per", "please", "really",
    "same", "shall", "shan", "she", "should", "shouldn", "so", "some", "such", "tell", "than",
    "thank", "thanks", "that", "the", "their", "theirs", "them", "themselves", "then", "there",
    "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us",
    "very", "via", "want", "wanted", "wants", "was", "wasn", "we", "were", "weren", "what",
    "whatever", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will",
    "with", "within", "without", "won", "would", "wouldn", "yet", "you", "your", "yours",
    "yourself", "yourselves",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_has_no_word_twice() {
        assert!(STOP_WORDS.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn stop_words_contain_no_verbs_of_tools() {
        for word in ["the", "please", "how", "could", "you", "don"] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in ["get", "list", "create", "find", "search", "show", "issue", ""] {
            assert!(!is_stop_word(word), "{word}");
        }
    }
}
