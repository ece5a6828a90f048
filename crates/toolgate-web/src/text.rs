//! Text of servers, clients and scripts on a page.
//!
//! It is always text: maud escapes it, characters that hide or turn it are spelt out, and what is long is cut, with a
//! way to see more of it.

use maud::{Markup, html};
use toolgate_policy::definitions::{shown, spelled_out};

/// What is shown at once of a block.
const BLOCK: usize = 2_000;
/// What can be shown of a block.
const WHOLE: usize = 64 * 1024;

/// A short text on one line.
pub(crate) fn line(text: &str, limit: usize) -> Markup {
    html! { bdi { (shown(text, limit)) } }
}

/// A name in a table or a heading.
pub(crate) fn name(text: &str) -> Markup {
    line(text, 80)
}

/// A text of several lines, of which a reader may want to see all.
pub(crate) fn block(text: &str) -> Markup {
    let (start, rest) = split(text, BLOCK);
    if rest.is_empty() {
        return html! { pre tabindex="0" { (spelled_out(text)) } };
    }
    let (whole, left_out) = split(text, WHOLE);
    html! {
        pre tabindex="0" { (spelled_out(start)) "…" }
        details {
            summary { "Show all " (grouped(text.chars().count() as u64)) " characters" }
            pre tabindex="0" { (spelled_out(whole)) @if !left_out.is_empty() { "…" } }
            @if !left_out.is_empty() {
                p.quiet { "The page shows the first " (grouped(WHOLE as u64)) " characters." }
            }
        }
    }
}

/// The beginning of a text that is cut already, with the address of the whole.
pub(crate) fn beginning(start: &str, bytes: usize, whole: &str) -> Markup {
    html! {
        pre tabindex="0" { (spelled_out(split(start, BLOCK).0)) "…" }
        p.small { a href=(whole) { "All of it, " (grouped(bytes.div_ceil(1_000) as u64)) " kB" } }
    }
}

/// JSON, in lines if it is some.
pub(crate) fn json(text: &str) -> Markup {
    // Text that is long is not worth the time.
    let value = (text.len() <= WHOLE).then(|| serde_json::from_str::<serde_json::Value>(text));
    match value {
        Some(Ok(value)) => block(&serde_json::to_string_pretty(&value).unwrap_or_default()),
        _ => block(text),
    }
}

/// The beginning of a text, and the rest.
fn split(text: &str, characters: usize) -> (&str, &str) {
    let place = text.char_indices().nth(characters).map_or(text.len(), |(place, _)| place);
    text.split_at(place)
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A place in a picture, in hundredths of a percent.
pub(crate) fn percent(place: u64) -> String {
    format!("{}.{:02}%", place / 100, place % 100)
}

/// How long something took.
pub fn took(milliseconds: u64) -> String {
    match milliseconds {
        0..10_000 => format!("{} ms", grouped(milliseconds)),
        10_000..600_000 => format!("{} s", milliseconds / 1_000),
        _ => format!("{} min", grouped(milliseconds / 60_000)),
    }
}

/// A moment, in milliseconds since 1970.
pub(crate) fn moment(milliseconds: u64) -> Markup {
    let utc = toolgate_store::utc(milliseconds / 1_000);
    let words = utc.replace('T', " ").replace('Z', "");
    html! { time datetime=(utc) title=(format!("{words} UTC")) { (words) } }
}

/// `1 call`, `2 calls`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_servers_stays_text() {
        let hostile = "<script>alert(1)</script>\u{202e}evil\u{7}";
        insta::assert_snapshot!(line(hostile, 200).into_string(), @r"<bdi>&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}evil\u{7}</bdi>");
        insta::assert_snapshot!(block(hostile).into_string(), @r#"<pre tabindex="0">&lt;script&gt;alert(1)&lt;/script&gt;\u{202e}evil\u{7}</pre>"#);
    }

    #[test]
    fn a_long_text_is_cut_and_can_be_seen() {
        let long = block(&"x".repeat(1_000_000)).into_string();
        assert!(long.len() < 70_000, "{}", long.len());
        assert!(long.contains("Show all 1,000,000 characters") && long.contains("65,536"));
        assert_eq!(line(&"y".repeat(1_000_000), 10).into_string(), "<bdi>yyyyyyyyyy…</bdi>");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([9_999, 59_000, 3_600_000].map(took), ["9,999 ms", "59 s", "60 min"]);
    }
}
