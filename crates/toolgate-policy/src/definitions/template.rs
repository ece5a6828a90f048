//! Whether a resource template names a URI.

/// How much a template is taken to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateReading {
    /// Everything that some server may take for it: any text for each expression, without regard to
    /// case and percent escapes.
    Loose,
    /// What it expands to (RFC 6570).
    Strict,
}

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(Vec<u8>),
    /// Nothing; or the letter, and any others but those that end it.
    Expression {
        first: Option<u8>,
        ends: &'static [u8],
    },
}

/// Longer URIs are named by every template if it is read loosely, and else by none.
const LONGEST: usize = 8 * 1024;
/// How often escapes are decoded: a server may decode what another one has decoded.
const DECODINGS: usize = 3;

/// Whether some of these templates name a URI, and none of the others does. In case of doubt, they do.
pub fn is_only_named_by<'t>(
    templates: impl IntoIterator<Item = &'t str>,
    others: impl IntoIterator<Item = &'t str>,
    uri: &str,
) -> bool {
    let names = |template, reading| template_names(template, uri, reading);
    templates.into_iter().any(|template| names(template, TemplateReading::Loose))
        && !others.into_iter().any(|template| names(template, TemplateReading::Strict))
}

/// Whether a template names a URI.
pub fn template_names(template: &str, uri: &str, reading: TemplateReading) -> bool {
    let is_loose = reading == TemplateReading::Loose;
    if uri.len() > LONGEST || template.len() > LONGEST {
        return is_loose;
    }
    let Some(parts) = parts(template, is_loose) else { return is_loose };
    let uri = if is_loose { plain(uri) } else { uri.as_bytes().to_vec() };
    let mut reached = vec![false; uri.len() + 1];
    reached[0] = true;
    for part in &parts {
        reached = part.after(&reached, &uri);
    }
    reached.last().copied().unwrap_or_default()
}

/// The parts of a template; `None` if it is not well-formed.
fn parts(template: &str, is_loose: bool) -> Option<Vec<TemplatePart>> {
    let literal = |text: &str| {
        TemplatePart::Literal(if is_loose { plain(text) } else { text.as_bytes().to_vec() })
    };
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (expression, next) = after.split_once('}')?;
        parts.push(literal(before));
        let operator = if is_loose { b'+' } else { *expression.as_bytes().first()? };
        let (first, ends): (_, &'static [u8]) = match operator {
            b'+' => (None, b""),
            b'#' => (Some(b'#'), b""),
            b'/' => (Some(b'/'), b"?#"),
            b'.' => (Some(b'.'), b"/?#"),
            b';' => (Some(b';'), b"/?#"),
            b'?' => (Some(b'?'), b"#"),
            b'&' => (Some(b'&'), b"#"),
            _ => (None, b"/?#"),
        };
        parts.push(TemplatePart::Expression { first, ends });
        rest = next;
    }
    parts.push(literal(rest));
    Some(parts)
}

impl TemplatePart {
    /// The positions in the URI that are reached after this part, from those before it.
    fn after(&self, reached: &[bool], uri: &[u8]) -> Vec<bool> {
        let mut next = vec![false; reached.len()];
        match self {
            Self::Literal(text) => {
                for at in (0..reached.len()).filter(|at| reached[*at]) {
                    if uri[at..].starts_with(text) {
                        next[at + text.len()] = true;
                    }
                }
            }
            Self::Expression { first, ends } => {
                let mut is_within = false;
                for at in 0..reached.len() {
                    is_within |= reached[at] && first.is_none();
                    next[at] = is_within || reached[at];
                    let Some(letter) = uri.get(at) else { break };
                    let begins = reached[at] && *first == Some(*letter);
                    is_within = begins || is_within && !ends.contains(letter);
                }
            }
        }
        next
    }
}

/// The text without escapes and upper case.
fn plain(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..DECODINGS {
        bytes = decoded(&bytes);
    }
    bytes.make_ascii_lowercase();
    bytes
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let escaped = digit(at + 1).zip(digit(at + 2)).filter(|_| *byte == b'%');
        let escaped = escaped.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_names_what_it_expands_to() {
        let strict = |template, uri| template_names(template, uri, TemplateReading::Strict);
        for (template, uri) in [
            ("note:{id}", "note:7"),
            ("note:{id}", "note:"),
            ("file:///{+path}", "file:///etc/passwd"),
            ("day:{year}/{month}{?zone,x}", "day:2026/11"),
            ("day:{year}/{month}{?zone,x}", "day:2026/11?zone=UTC"),
            ("a{/path*}/b", "a/x/y/b"),
            ("a{.ext}", "a.txt"),
            ("a{#part}", "a#b/c"),
            ("a-{x}-{y}", "a-1-2-3"),
            ("plain", "plain"),
        ] {
            assert!(strict(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("note:{id}", "note:7/8"),
            ("note:{id}", "NOTE:7"),
            ("note:{id}", "other:7"),
            ("day:{year}/{month}{?zone}", "day:2026/11/12"),
            ("a{.ext}", "a/txt"),
            ("plain", "plain2"),
            ("broken{", "broken"),
            ("empty{}", "empty"),
        ] {
            assert!(!strict(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn read_loosely_it_names_other_spellings_too() {
        let loose = |template, uri| template_names(template, uri, TemplateReading::Loose);
        for (template, uri) in [
            ("note:{id}", "note:7/8?x"),
            ("note:{id}", "NOTE:7"),
            ("note:{id}", "%6eote:7"),
            ("note:{id}", "%256eote:7"),
            ("broken{", "anything"),
            ("ä:{id}", "%C3%A4:7"),
        ] {
            assert!(loose(template, uri), "{template} {uri}");
        }
        assert!(!loose("note:{id}", "other:7"));
        let long = "x".repeat(1_000_000);
        assert!(loose("note:{id}", &long));
        assert!(!template_names("note:{id}", &long, TemplateReading::Strict));
    }

    #[test]
    fn a_hostile_template_takes_no_time() {
        let template = "{a}x".repeat(1_000);
        let uri = "x".repeat(LONGEST - 1) + "y";
        assert!(!template_names(&template, &uri, TemplateReading::Strict));
    }
}
