//! The encodings that are taken off. Each decoder is linear in the text, and gives nothing longer.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::text::is_invisible;

/// A run of this many characters of an encoding is tried.
const SHORTEST_RUN: usize = 16;
/// So many numbers in a row are tried as characters.
const SHORTEST_CODES: usize = 12;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
pub(super) const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The runs of a text whose bytes are all of an encoding.
pub(super) fn runs(text: &str, belongs: impl Fn(u8) -> bool + Copy) -> impl Iterator<Item = &str> {
    text.split(move |character: char| {
        u8::try_from(character).is_ok_and(|byte| !byte.is_ascii() || !belongs(byte))
            || !character.is_ascii()
    })
    .filter(|run| run.len() >= SHORTEST_RUN)
}

/// The same, with runs joined that only a line break parts, as encoders write them.
pub(super) fn joined(text: &str, belongs: impl Fn(u8) -> bool + Copy) -> Vec<String> {
    if !text.contains(['\n', '\r']) {
        return runs(text, belongs).map(str::to_owned).collect();
    }
    let whole: String =
        text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
    runs(&whole, belongs).map(str::to_owned).collect()
}

/// Pairs of hexadecimal digits with something between them, as `48:65`, `48 65`, `0x48, 0x65` and `\x48\x65`.
pub(super) fn pairs(text: &str) -> Vec<String> {
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

pub(super) fn base64_text(run: &str) -> Option<String> {
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

/// The bytes of pairs of hexadecimal digits, without a digit that is left over.
pub fn hexadecimal(run: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = run.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

pub(super) fn hexadecimal_text(run: &str) -> Option<String> {
    readable(hexadecimal(run)?)
}

/// The text without its percent signs, if it has enough of them to be encoded.
pub(super) fn percent(text: &str) -> Option<String> {
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

pub(super) fn base32_text(run: &str) -> Option<String> {
    readable(base32(run)?)
}

/// The bytes of base32 digits, in capital or small letters, with or without `=` at the end.
pub fn base32(run: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(run.len() * 5 / 8));
    for byte in run.trim_end_matches('=').bytes() {
        let digit = match byte.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5 | u32::from(digit)) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    Some(bytes)
}

/// The text without the entities of HTML, if it has any.
pub(super) fn entities(text: &str) -> Option<String> {
    const NAMED: [(&str, &str); 7] = [
        ("amp", "&"),
        ("lt", "<"),
        ("gt", ">"),
        ("quot", "\""),
        ("apos", "'"),
        ("nbsp", " "),
        ("shy", ""),
    ];
    const LONGEST: usize = 10;
    let mut decoded = String::new();
    let (mut rest, mut changed) = (text, false);
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(LONGEST).position(|byte| byte == b';');
        let name = end.and_then(|end| rest.get(..end)).unwrap_or_default();
        let number = name.strip_prefix('#').and_then(|digits| {
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            char::from_u32(code.ok()?)
        });
        let named = NAMED.iter().find(|(known, _)| *known == name);
        match (number, named) {
            (Some(character), _) => decoded.push(character),
            (None, Some((_, plain))) => decoded.push_str(plain),
            (None, None) => {
                decoded.push('&');
                continue;
            }
        }
        changed = true;
        rest = &rest[name.len() + 1..];
    }
    decoded.push_str(rest);
    changed.then_some(decoded)
}

/// The text without the signs of quoted-printable, if it has any: `=C3=A9`, and `=` at the end of a
/// line that goes on.
pub(super) fn quoted_printable(text: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let (mut decoded, mut at, mut changed) = (Vec::new(), 0, false);
    while at < bytes.len() {
        let next = (bytes.get(at + 1), bytes.get(at + 2));
        let length = match (bytes[at], next, digit(next.0), digit(next.1)) {
            (b'=', _, Some(high), Some(low)) => {
                decoded.push(u8::try_from(high << 4 | low).unwrap_or_default());
                3
            }
            (b'=', (Some(b'\n'), _), ..) => 2,
            (b'=', (Some(b'\r'), Some(b'\n')), ..) => 3,
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
                continue;
            }
        };
        at += length;
        changed = true;
    }
    changed.then(|| String::from_utf8_lossy(&decoded).into_owned())
}

/// The texts that lists of numbers stand for: decimal, octal or binary codes of characters.
pub(super) fn character_codes(text: &str) -> Vec<String> {
    let mut lists: Vec<Vec<&str>> = vec![Vec::new()];
    // `String.fromCharCode(72)` and `chr(72) + chr(101)` have a word before each number.
    let is_call =
        |word: &str| matches!(word, "chr" | "char" | "fromCharCode" | "String" | "CHAR" | "CHR");
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let is_number = !word.is_empty() && word.len() <= 8;
        let is_number = is_number && word.bytes().all(|byte| byte.is_ascii_digit());
        match lists.last_mut() {
            _ if word.is_empty() || is_call(word) => {}
            Some(list) if is_number => list.push(word),
            Some(list) if list.len() < SHORTEST_CODES => list.clear(),
            _ => lists.push(Vec::new()),
        }
    }
    lists.retain(|list| list.len() >= SHORTEST_CODES);
    let mut texts = Vec::new();
    for list in lists {
        let is_binary = list.iter().all(|word| {
            matches!(word.len(), 7 | 8) && word.bytes().all(|digit| matches!(digit, b'0' | b'1'))
        });
        let radixes: &[u32] = if is_binary { &[2] } else { &[10, 8] };
        texts.extend(radixes.iter().filter_map(|radix| {
            let characters = list.iter().map(|word| {
                let code = u32::from_str_radix(word, *radix).ok()?;
                char::from_u32(code).filter(|letter| !letter.is_control() || letter.is_whitespace())
            });
            characters.collect::<Option<String>>()
        }));
    }
    texts
}

/// The texts that characters which nobody sees stand for: tag characters repeat ASCII, variation
/// selectors stand for bytes, and two characters without a width for bits.
pub(super) fn invisible(text: &str) -> Vec<String> {
    if text.is_ascii() {
        return Vec::new();
    }
    let hidden: Vec<char> = text.chars().filter(|letter| is_invisible(*letter)).collect();
    if hidden.len() < SHORTEST_RUN {
        return Vec::new();
    }
    let tags: String = hidden
        .iter()
        .filter_map(|letter| char::from_u32(u32::from(*letter).checked_sub(0xe_0000)?))
        .filter(char::is_ascii_graphic)
        .collect();
    let selected = hidden.iter().filter_map(|letter| match u32::from(*letter) {
        code @ 0xfe00..=0xfe0f => u8::try_from(code - 0xfe00).ok(),
        code @ 0xe0100..=0xe01ef => u8::try_from(code - 0xe0100 + 16).ok(),
        _ => None,
    });
    let mut found: Vec<String> = readable(selected.collect()).into_iter().collect();
    found.push(tags);
    let mut kinds: Vec<(char, usize)> = Vec::new();
    let is_bit = |letter: &&char| !matches!(u32::from(**letter), 0xe_0000.. | 0xfe00..=0xfe0f);
    for letter in hidden.iter().filter(is_bit) {
        match kinds.iter_mut().find(|(known, _)| known == letter) {
            Some((_, count)) => *count += 1,
            None => kinds.push((*letter, 1)),
        }
    }
    // A third kind, which is rarer, separates characters.
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if let [(one, _), (other, _), ..] = kinds.as_slice() {
        let bits: Vec<bool> = hidden
            .iter()
            .filter(|letter| *letter == one || *letter == other)
            .map(|letter| letter == one)
            .collect();
        for (set, width) in [(true, 8), (false, 8), (true, 7), (false, 7)] {
            let byte = |bits: &[bool]| {
                bits.iter().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit == set))
            };
            found.extend(readable(bits.chunks_exact(width).map(byte).collect()));
        }
    }
    found.retain(|text| text.len() >= SHORTEST_RUN);
    found
}
