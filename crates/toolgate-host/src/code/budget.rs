//! Cuts long texts to a number of tokens: the head and the tail stay.

use std::ops::Range;

use toolgate_catalog::TokenCounter;

/// The share of the head. The tail, where results and errors are, gets the rest.
const HEAD_SHARE: (usize, usize) = (2, 3);
/// A token of ordinary text has about four bytes. Longer candidates are not tried, because a run of
/// blanks may be one token of any length.
const MAX_BYTES_A_TOKEN: usize = 16;

/// The part of a text to leave out so that the rest costs at most `tokens`; `None` if all of it
/// fits.
pub(super) fn left_out(text: &str, tokens: usize) -> Option<Range<usize>> {
    if fits(text, tokens) {
        return None;
    }
    let head_tokens = tokens * HEAD_SHARE.0 / HEAD_SHARE.1;
    let head = longest(text, head_tokens, |end| &text[..end]);
    let rest = &text[head..];
    let tail = longest(rest, tokens - head_tokens, |size| {
        let start = rest.len() - size;
        &rest[rest.ceil_char_boundary(start)..]
    });
    let tail_start = text.ceil_char_boundary(text.len() - tail);
    (head < tail_start).then_some(head..tail_start)
}

/// The longest beginning of a text that costs at most `tokens`.
pub(crate) fn head(text: &str, tokens: usize) -> &str {
    if fits(text, tokens) {
        return text;
    }
    &text[..longest(text, tokens, |end| &text[..end])]
}

/// Whether a text costs at most `tokens`.
pub(super) fn fits(text: &str, tokens: usize) -> bool {
    // A token has at least one byte.
    text.len() <= tokens
        || (text.len() <= tokens.saturating_mul(MAX_BYTES_A_TOKEN)
            && TokenCounter::shared().count(text) <= tokens)
}

/// How many bytes of a text, taken by `part`, cost at most `tokens`.
fn longest<'t>(text: &'t str, tokens: usize, part: impl Fn(usize) -> &'t str) -> usize {
    let counter = TokenCounter::shared();
    let (mut low, mut high) = (0, text.len().min(tokens.saturating_mul(MAX_BYTES_A_TOKEN)));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let size = text.floor_char_boundary(middle);
        if size > low && counter.count(part(size)) <= tokens {
            low = size;
        } else if size <= low {
            // Inside one character: try the next boundary.
            let next = text.ceil_char_boundary(low + 1);
            if next > high || counter.count(part(next)) > tokens {
                break;
            }
            low = next;
        } else {
            high = middle - 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, tokens: usize) -> (String, usize) {
        match left_out(text, tokens) {
            None => (text.to_owned(), 0),
            Some(gap) => (format!("{}{}", &text[..gap.start], &text[gap.end..]), gap.len()),
        }
    }

    #[test]
    fn what_fits_is_whole() {
        assert_eq!(left_out("hello world", 2), None);
        assert_eq!(left_out("", 0), None);
    }

    #[test]
    fn head_and_tail_stay_within_the_budget() {
        let lines: Vec<String> = (0..5_000).map(|line| format!("line {line} of many")).collect();
        let text = lines.join("\n");
        let (kept, bytes) = shown(&text, 300);
        assert!(kept.starts_with("line 0 of many\n") && kept.ends_with("line 4999 of many"));
        assert_eq!(kept.len() + bytes, text.len());
        let cost = TokenCounter::shared().count(&kept);
        assert!((250..=310).contains(&cost), "{cost}");
    }

    #[test]
    fn any_text_is_cut_at_characters() {
        for text in
            ["é".repeat(3_000), "漢字".repeat(3_000), " ".repeat(9_000), "\u{1f600}".repeat(999)]
        {
            let (kept, bytes) = shown(&text, 50);
            assert_eq!(kept.len() + bytes, text.len());
            assert!(TokenCounter::shared().count(&kept) <= 60);
            assert!(TokenCounter::shared().count(head(&text, 10)) <= 10);
        }
        assert_eq!(head("anything", 0), "");
    }
}
