//! What a client presents.

use axum::http::{HeaderMap, header::AUTHORIZATION};

/// What is in `Authorization`.
#[derive(PartialEq, Eq)]
pub(super) enum Presented<'h> {
    /// The header is not there.
    Nothing,
    /// A bearer token.
    Bearer(&'h str),
    /// Another scheme, two headers, or characters that no token has.
    Unreadable,
}

/// The longest token that is looked at.
const LONGEST: usize = 16 * 1024;

pub(super) fn read(headers: &HeaderMap) -> Presented<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Presented::Nothing };
    if values.next().is_some() || value.len() > LONGEST {
        return Presented::Unreadable;
    }
    let Ok(text) = value.to_str() else { return Presented::Unreadable };
    let Some((scheme, token)) = text.split_once(' ') else { return Presented::Unreadable };
    let token = token.trim_matches(' ');
    // The characters of RFC 6750, of which JWTs and our own tokens use a part.
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.bytes().all(fits) {
        Presented::Bearer(token)
    } else {
        Presented::Unreadable
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn shown(values: &[&[u8]]) -> &'static str {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        match read(&headers) {
            Presented::Nothing => "nothing",
            Presented::Bearer("tgt_a-b") => "bearer",
            Presented::Bearer(_) => "another bearer",
            Presented::Unreadable => "unreadable",
        }
    }

    #[test]
    fn a_bearer_token_is_read_and_nothing_else() {
        assert_eq!(shown(&[]), "nothing");
        assert_eq!(shown(&[b"Bearer tgt_a-b"]), "bearer");
        assert_eq!(shown(&[b"bearer  tgt_a-b "]), "bearer");
        for wrong in [
            &b"Bearer"[..],
            b"Bearer ",
            b"tgt_a-b",
            b"Basic dGd0Om5v",
            b"Bearer a b",
            b"Bearer \xff",
            b"Bearer a,b",
        ] {
            assert_eq!(shown(&[wrong]), "unreadable", "{wrong:?}");
        }
        assert_eq!(shown(&[b"Bearer tgt_a-b", b"Bearer tgt_a-b"]), "unreadable");
        let long = [b"Bearer ".to_vec(), vec![b'a'; LONGEST]].concat();
        assert_eq!(shown(&[&long]), "unreadable");
    }
}
