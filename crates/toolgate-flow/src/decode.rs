//! A text, and the texts that are encoded in it.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::memory::Via;

/// How many encodings, one inside the other, are taken off.
const DEEPEST: usize = 4;
/// A run of this many characters of an encoding is tried.
const SHORTEST_RUN: usize = 16;
/// How many bytes of decoded text a text may give, as a multiple of its own: each layer is shorter
/// than what it is in, but there are several ways to read one.
const SHARE: usize = 6;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Calls `seen` with the text and each text that is encoded in it.
pub(crate) fn views(text: &str, seen: &mut impl FnMut(&str, Via)) {
    let mut room = text.len().saturating_mul(SHARE);
    seen(text, Via::Plain);
    inner(text, Via::Plain, DEEPEST, &mut room, seen);
}

fn inner(text: &str, outer: Via, depth: usize, room: &mut usize, seen: &mut impl FnMut(&str, Via)) {
    if depth == 0 {
        return;
    }
    let mut found = |decoded: String, via: Via| {
        let Some(left) = room.checked_sub(decoded.len()) else { return };
        *room = left;
        let via = if outer == Via::Plain { via } else { outer };
        seen(&decoded, via);
        inner(&decoded, via, depth - 1, room, seen);
    };
    if let Some(plain) = percent(text) {
        found(plain, Via::Percent);
    }
    for run in runs(text, |byte| byte.is_ascii_hexdigit()) {
        // Of a slice the first digit may be the second half of a byte.
        for start in [run, &run[1..]] {
            if let Some(plain) = hexadecimal(start) {
                found(plain, Via::Hexadecimal);
            }
        }
    }
    for run in pairs(text) {
        if let Some(plain) = hexadecimal(&run) {
            found(plain, Via::Hexadecimal);
        }
    }
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    for run in joined(text, base64) {
        // A slice may start anywhere in a group of four.
        for start in 0..4 {
            if let Some(plain) = run.get(start..).and_then(base64_text) {
                found(plain, Via::Base64);
                break;
            }
        }
    }
}

/// The runs of a text whose bytes are all of an encoding.
fn runs(text: &str, belongs: impl Fn(u8) -> bool + Copy) -> impl Iterator<Item = &str> {
    text.split(move |character: char| {
        u8::try_from(character).is_ok_and(|byte| !byte.is_ascii() || !belongs(byte))
            || !character.is_ascii()
    })
    .filter(|run| run.len() >= SHORTEST_RUN)
}

/// The same, with runs joined that only a line break parts, as encoders write them.
fn joined(text: &str, belongs: impl Fn(u8) -> bool + Copy) -> Vec<String> {
    if !text.contains(['\n', '\r']) {
        return runs(text, belongs).map(str::to_owned).collect();
    }
    let whole: String =
        text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
    runs(&whole, belongs).map(str::to_owned).collect()
}

/// Pairs of hexadecimal digits with something between them, as `48:65`, `48 65`, `0x48, 0x65` and `\x48\x65`.
fn pairs(text: &str) -> Vec<String> {
    let is_between =
        |character: char| character.is_ascii_whitespace() || ":-,;.|_\\".contains(character);
    let mut found = vec![String::new()];
    for part in text.split(is_between).filter(|part| !part.is_empty()) {
        let digits = ["0x", "0X", "x"].iter().find_map(|prefix| part.strip_prefix(prefix));
        let digits = digits.unwrap_or(part);
        let is_pair = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match found.last_mut() {
            Some(run) if is_pair => run.push_str(digits),
            Some(run) if run.len() < SHORTEST_RUN => run.clear(),
            _ => found.push(String::new()),
        }
    }
    found.retain(|run| run.len() >= SHORTEST_RUN);
    found
}

fn base64_text(run: &str) -> Option<String> {
    let run = run.trim_end_matches('=');
    // A last character alone holds no byte.
    let run = if run.len() % 4 == 1 { &run[..run.len() - 1] } else { run };
    let url_safe = run.contains(['-', '_']);
    if url_safe && run.contains(['+', '/']) {
        return None;
    }
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    readable(engine.decode(run).ok()?)
}

fn hexadecimal(run: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = run.as_bytes().chunks_exact(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect();
    readable(bytes?)
}

/// The text without its percent signs, if it has enough of them to be encoded.
fn percent(text: &str) -> Option<String> {
    let signs = text.bytes().filter(|byte| *byte == b'%').count();
    if signs == 0 {
        return None;
    }
    let digit = |byte: Option<&u8>| {
        byte.and_then(|byte| char::from(*byte).to_digit(16))
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut changed = false;
    while at < bytes.len() {
        if bytes[at] == b'%'
            && let (Some(high), Some(low)) = (digit(bytes.get(at + 1)), digit(bytes.get(at + 2)))
        {
            decoded.push(high << 4 | low);
            at += 3;
            changed = true;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    changed.then(|| String::from_utf8_lossy(&decoded).into_owned())
}

/// The text, if it is one: the slice of a longer one may have a broken character at either end.
fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let length = text.chars().count();
    let odd = |character: &char| {
        *character == '\u{fffd}' || (character.is_control() && !character.is_whitespace())
    };
    let oddities = text.chars().filter(odd).count();
    (length > 0 && oddities * 16 <= length + 16).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn values_that_are_not_encoded_text_are_unchanged() {
        let mut views_seen = 0;
        views(&"/+aZ09".repeat(1_000), &mut |_, _| views_seen += 1);
        assert!(views_seen <= 2, "{views_seen}");
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
    }
}
