//! Bytes and texts: encodings and digests, for `Buffer`, `TextDecoder` and `node:crypto`.

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};
use md5::Md5;
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// Adds the functions to those of the host. They take bytes as texts with a character for each
/// byte, because reading the memory of the engine would not be safe.
pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>) -> Result<()> {
    let bytes_of = |ctx: Ctx<'js>, text: String, encoding: String| match encode(&text, &encoding) {
        Some(bytes) => TypedArray::new_copy(ctx, bytes),
        None => Err(unknown(&ctx, &encoding)),
    };
    host.set("bytesOf", Function::new(ctx.clone(), bytes_of)?)?;
    let text_of = |ctx: Ctx<'js>, bytes: String, encoding: String| {
        let bytes = bytes_in(&bytes);
        match encoding.as_str() {
            "utf8 only" => Ok(String::from_utf8(bytes).ok()),
            _ => decode(&bytes, &encoding).map(Some).ok_or_else(|| unknown(&ctx, &encoding)),
        }
    };
    host.set("textOf", Function::new(ctx.clone(), text_of)?)?;
    let unfinished = |bytes: String| unfinished(&bytes_in(&bytes));
    host.set("unfinished", Function::new(ctx.clone(), unfinished)?)?;
    let digest = |ctx: Ctx<'js>, name: String, bytes: String| match digest(&name, &bytes_in(&bytes))
    {
        Some(digest) => TypedArray::new_copy(ctx, digest),
        None => Err(unknown(&ctx, &name)),
    };
    host.set("digest", Function::new(ctx.clone(), digest)?)
}

/// The bytes in a text of characters up to 255.
#[expect(clippy::cast_possible_truncation, reason = "there are no larger ones")]
fn bytes_in(text: &str) -> Vec<u8> {
    text.chars().map(|character| u32::from(character) as u8).collect()
}

fn unknown(ctx: &Ctx<'_>, name: &str) -> rquickjs::Error {
    Exception::throw_type(ctx, &format!("{name} is not known here"))
}

/// Accepts what Node accepts: the last character may have bits that no byte needs.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// The bytes of a text. Like in Node, what is no hexadecimal or base64 is left out.
fn encode(text: &str, encoding: &str) -> Option<Vec<u8>> {
    Some(match encoding {
        "utf8" => text.as_bytes().to_vec(),
        #[expect(clippy::cast_possible_truncation, reason = "the rest is cut off, as in Node")]
        "latin1" => text.encode_utf16().map(|unit| unit as u8).collect(),
        "utf16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "hex" => {
            let digits = text.bytes().map_while(|byte| char::from(byte).to_digit(16));
            let digits: Vec<u8> = digits.filter_map(|digit| u8::try_from(digit).ok()).collect();
            digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
        "base64" | "base64url" => {
            let characters = text.bytes().take_while(|byte| *byte != b'=').map(|byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                other => other,
            });
            let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            let mut digits: Vec<u8> = characters.filter(is_digit).collect();
            if digits.len() % 4 == 1 {
                digits.pop();
            }
            BASE64.decode(digits).unwrap_or_default()
        }
        _ => return None,
    })
}

/// The text of bytes.
fn decode(bytes: &[u8], encoding: &str) -> Option<String> {
    Some(match encoding {
        "utf8" => String::from_utf8_lossy(bytes).into_owned(),
        "utf16le" => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            let characters = char::decode_utf16(units);
            characters.map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        "hex" => {
            let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
            bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
        }
        "base64" => base64::engine::general_purpose::STANDARD.encode(bytes),
        "base64url" => base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes),
        _ => return None,
    })
}

/// The number of bytes at the end that are the start of a character.
fn unfinished(bytes: &[u8]) -> usize {
    // A character has at most four bytes.
    let start = bytes.len().saturating_sub(3);
    (start..bytes.len())
        .find(|at| {
            let rest = &bytes[*at..];
            bytes[*at] >= 0xc0
                && std::str::from_utf8(rest)
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .map_or(0, |at| bytes.len() - at)
}

fn digest(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    Some(match name {
        "md5" => Md5::digest(bytes).to_vec(),
        "sha1" => Sha1::digest(bytes).to_vec(),
        "sha224" => Sha224::digest(bytes).to_vec(),
        "sha256" => Sha256::digest(bytes).to_vec(),
        "sha384" => Sha384::digest(bytes).to_vec(),
        "sha512" => Sha512::digest(bytes).to_vec(),
        _ => return None,
    })
}
