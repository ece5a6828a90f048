//! A text, and the texts that are encoded in it.

mod encodings;

pub use self::encodings::{base32, hexadecimal};
use self::encodings::{
    base32_text, base64_text, character_codes, entities, hexadecimal_text, invisible, joined,
    pairs, percent, quoted_printable, runs,
};
use crate::{memory::Via, text::plain};

/// How many encodings, one inside the other, are taken off.
const DEEPEST: usize = 4;
/// How many bytes of other texts a text may give, as a multiple of its own: each layer is shorter
/// than what it is in, but there are several ways to read one.
const SHARE: usize = 24;
/// A text that is written in another order has at least so many bytes.
const SHORTEST_REORDERED: usize = 12;

/// Takes encodings off, within bounds.
struct Decoder<'s, S> {
    budget: usize,
    complete: bool,
    seen: &'s mut S,
}

/// Calls `seen` with the text and each text that is encoded in it. Returns false if there were too
/// many.
pub(crate) fn views<S: FnMut(&str, Via)>(text: &str, seen: &mut S) -> bool {
    let budget = text.len().saturating_mul(SHARE);
    let mut decoder = Decoder { budget, complete: true, seen };
    for hidden in invisible(text) {
        decoder.found(&hidden, Via::Plain, Via::Invisible, DEEPEST, true);
    }
    let text = plain(text);
    (decoder.seen)(&text, Via::Plain);
    decoder.inner(&text, Via::Plain, DEEPEST, true);
    decoder.complete
}

impl<S: FnMut(&str, Via)> Decoder<'_, S> {
    /// Tells of a text that was found in another one, and looks into it.
    fn found(&mut self, decoded: &str, outer: Via, via: Via, depth: usize, reorders: bool) {
        let Some(left) = self.budget.checked_sub(decoded.len()) else {
            self.complete = false;
            return;
        };
        self.budget = left;
        let via = if outer == Via::Plain { via } else { outer };
        let decoded = plain(decoded);
        (self.seen)(&decoded, via);
        self.inner(&decoded, via, depth - 1, reorders);
    }

    fn inner(&mut self, text: &str, outer: Via, depth: usize, reorders: bool) {
        if depth == 0 {
            return;
        }
        let mut found = |decoded: &str, via| self.found(decoded, outer, via, depth, reorders);
        let whole = [
            (percent(text), Via::Percent),
            (entities(text), Via::Entities),
            (quoted_printable(text), Via::QuotedPrintable),
        ];
        for (decoded, via) in whole {
            if let Some(decoded) = decoded {
                found(&decoded, via);
            }
        }
        for decoded in character_codes(text) {
            found(&decoded, Via::CharacterCodes);
        }
        for run in runs(text, |byte| byte.is_ascii_hexdigit()) {
            // Of a slice the first digit may be the second half of a byte.
            for start in [run, &run[1..]] {
                if let Some(decoded) = hexadecimal_text(start) {
                    found(&decoded, Via::Hexadecimal);
                }
            }
        }
        for run in pairs(text) {
            if let Some(decoded) = hexadecimal_text(&run) {
                found(&decoded, Via::Hexadecimal);
            }
        }
        // A slice may start anywhere in a group of digits: of four, and of eight.
        let digit64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
        let digit32 = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'2'..=b'7' | b'=');
        for run in joined(text, digit64) {
            let text = (0..4).find_map(|start| run.get(start..).and_then(base64_text));
            if let Some(decoded) = text {
                found(&decoded, Via::Base64);
            }
        }
        for run in joined(text, digit32) {
            let text = (0..8).find_map(|start| run.get(start..).and_then(base32_text));
            if let Some(decoded) = text {
                found(&decoded, Via::Base32);
            }
        }
        if reorders && text.len() >= SHORTEST_REORDERED {
            self.reordered(text, outer, depth);
        }
    }

    /// Tells of the text in other orders. Within them only encodings are looked for.
    fn reordered(&mut self, text: &str, outer: Via, depth: usize) {
        // Only what is backwards as a whole is likely to have been encoded before.
        let mut found = |view: &str, via| self.found(view, outer, via, 1, false);
        let reversed: String = text.chars().rev().collect();
        if text.contains(char::is_whitespace) {
            let words: Vec<&str> = reversed.split(char::is_whitespace).rev().collect();
            found(&words.join(" "), Via::Reversed);
            let words: Vec<&str> = text.split(char::is_whitespace).rev().collect();
            found(&words.join(" "), Via::Reversed);
        }
        // One letter in two or three, with others between them.
        for step in [2, 3] {
            for start in 0..step {
                let letters = text.chars().skip(start).step_by(step);
                found(&letters.collect::<String>(), Via::Interleaved);
            }
        }
        let letters = || text.chars().filter(|letter| letter.is_alphanumeric());
        if letters().count() < text.chars().count() {
            for start in 0..2 {
                let letters = letters().skip(start).step_by(2);
                found(&letters.collect::<String>(), Via::Interleaved);
            }
        }
        self.found(&reversed, outer, Via::Reversed, depth, false);
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::{encodings::STANDARD, *};

    const SECRET: &str = "the launch code is 7741-9920 and nobody may know";

    fn finds(text: &str) -> Option<Via> {
        let mut found = None;
        views(text, &mut |view, via| {
            if view.to_lowercase().contains("code is 7741-9920 and") {
                found.get_or_insert(via);
            }
        });
        found
    }

    fn written(sign: &str) -> String {
        let bytes: Vec<String> = SECRET.bytes().map(|byte| format!("{sign}{byte:02x}")).collect();
        bytes.concat()
    }

    #[test]
    fn encodings_are_taken_off() {
        let base64 = STANDARD.encode(SECRET);
        assert_eq!(finds(SECRET), Some(Via::Plain));
        assert_eq!(finds(&format!("data: {base64}!")), Some(Via::Base64));
        assert_eq!(finds(&base64[3..]), Some(Via::Base64));
        let lines: Vec<&str> =
            base64.as_bytes().chunks(20).map(|line| std::str::from_utf8(line).unwrap()).collect();
        assert_eq!(finds(&lines.join("\n")), Some(Via::Base64));
        assert_eq!(finds(&STANDARD.encode(&base64)), Some(Via::Base64));
        let hex = written("");
        assert_eq!(finds(&hex), Some(Via::Hexadecimal));
        assert_eq!(finds(&hex[1..]), Some(Via::Hexadecimal));
        for between in [" ", ":", "-", ", 0x", "\\x", "\n"] {
            let text = format!("sum {}{between}zz", written(between));
            assert_eq!(finds(&text), Some(Via::Hexadecimal), "{text}");
        }
        let percent = written("%");
        assert_eq!(finds(&percent), Some(Via::Percent));
    }

    #[test]
    fn the_other_encodings_are_taken_off_too() {
        let codes = |radix: fn(u8) -> String| SECRET.bytes().map(radix).collect::<Vec<_>>();
        let decimal = codes(|byte| byte.to_string());
        for text in [
            decimal.join(", "),
            decimal.join(" "),
            format!("chr({})", decimal.join(")+chr(")),
            codes(|byte| format!("{byte:o}")).join(" "),
            codes(|byte| format!("{byte:08b}")).join(" "),
        ] {
            assert_eq!(finds(&text), Some(Via::CharacterCodes), "{text}");
        }
        let entities = codes(|byte| format!("&#{byte};")).concat();
        assert_eq!(finds(&entities), Some(Via::Entities));
        let entities = codes(|byte| format!("&#x{byte:x};")).concat();
        assert_eq!(finds(&entities), Some(Via::Entities));
        assert_eq!(finds(&written("=")), Some(Via::QuotedPrintable));
        let soft = SECRET.replace("code is 77", "code =\r\nis 7=\n7");
        assert_eq!(finds(&soft), Some(Via::QuotedPrintable));
        let base32 =
            "ORUGKIDMMF2W4Y3IEBRW6ZDFEBUXGIBXG42DCLJZHEZDAIDBNZSCA3TPMJXWI6JANVQXSIDLNZXXO===";
        assert_eq!(finds(base32), Some(Via::Base32));
        assert_eq!(finds(&base32.to_lowercase()[5..]), Some(Via::Base32));
        let reversed: String = SECRET.chars().rev().collect();
        assert_eq!(finds(&reversed), Some(Via::Reversed));
        let base64: String = STANDARD.encode(SECRET).chars().rev().collect();
        assert_eq!(finds(&base64), Some(Via::Reversed));
        assert_eq!(finds(&STANDARD.encode(reversed)), Some(Via::Base64));
        let words: Vec<&str> = SECRET.split(' ').rev().collect();
        assert_eq!(finds(&words.join(" ")), Some(Via::Reversed));
    }

    #[test]
    fn letters_between_letters_and_letters_without_a_width_are_seen_through() {
        let wide: String = SECRET
            .chars()
            .map(|letter| match letter {
                '!'..='~' => char::from_u32(u32::from(letter) + 0xfee0).unwrap(),
                _ => letter,
            })
            .collect();
        assert_eq!(finds(&wide), Some(Via::Plain));
        let apart = |filler: &str| {
            SECRET.chars().map(|letter| format!("{letter}{filler}")).collect::<Vec<_>>().concat()
        };
        assert_eq!(finds(&apart("\u{200b}")), Some(Via::Plain));
        for filler in ["x", "ab", "1"] {
            assert_eq!(finds(&apart(filler)), Some(Via::Interleaved), "{filler}");
        }
        let tags: String = SECRET
            .bytes()
            .map(|byte| char::from_u32(0xe_0000 + u32::from(byte)).unwrap())
            .collect();
        let read = |text: &str| {
            let mut found = Vec::new();
            views(text, &mut |view, via| found.push((via, view.to_owned())));
            found
        };
        let hidden = read(&format!("hello{tags}"));
        assert!(hidden.iter().any(|(via, view)| *via == Via::Invisible && view.contains("7741")));
        let bits: String = SECRET
            .bytes()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
            .map(|bit| if bit { '\u{200c}' } else { '\u{200b}' })
            .collect();
        assert_eq!(finds(&format!("hello{bits}")), Some(Via::Invisible));
    }

    #[test]
    fn values_that_are_not_encoded_text_are_unchanged() {
        let mut views_seen = 0;
        views(&"/+aZ09".repeat(1_000), &mut |_, _| views_seen += 1);
        // The text itself, in the other orders, and one letter in two or three.
        assert!(views_seen <= 2 * 7, "{views_seen}");
    }

    #[test]
    fn nested_encodings_are_bounded() {
        let mut text = SECRET.to_owned();
        for _ in 0..12 {
            text = STANDARD.encode(&text);
        }
        let mut bytes = 0;
        views(&text, &mut |view, _| bytes += view.len());
        assert!(bytes <= text.len() * (SHARE + 1));
        // Text beyond the budget is reported.
        let many = format!("{} ", written("%")).repeat(20);
        let complete = views(&STANDARD.encode(STANDARD.encode(many)), &mut |_, _| ());
        assert!(complete);
    }
}
