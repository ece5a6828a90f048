//! The files of the page. They are part of the program, and no other place is asked for any.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

/// A file.
pub(crate) struct Asset {
    /// Its name in the address. A file with other content has another name.
    pub(crate) name: &'static str,
    kind: &'static str,
    content: &'static str,
    /// The hash that a browser compares the content with.
    pub(crate) integrity: &'static str,
}

/// htmx 4.0.0, as npm has it.
pub(crate) const HTMX: Asset = Asset {
    name: "htmx-4.0.0.js",
    kind: "text/javascript",
    content: include_str!("../assets/htmx/htmx.min.js"),
    integrity: "sha384-BvJpBiO8Kh31EqtJe5DRIeWrHWnCGkwytKs9NKFi86Hhw96dEqdEMzZDeK9iEGTc",
};

/// Its extension for nonces and Trusted Types.
pub(crate) const HX_CSP: Asset = Asset {
    name: "hx-csp-4.0.0.js",
    kind: "text/javascript",
    content: include_str!("../assets/htmx/hx-csp.min.js"),
    integrity: "sha384-Piutxrda3Z2GQWKK+t7oyVxt570uY+Sz51FLvTRjZaFW/LPt8NNvOcg15ner1JQI",
};

/// Its extension for streams.
pub(crate) const HX_SSE: Asset = Asset {
    name: "hx-sse-4.0.0.js",
    kind: "text/javascript",
    content: include_str!("../assets/htmx/hx-sse.min.js"),
    integrity: "sha384-VZD0TLKqhJ26ayBUgQg3ud6DsOLMJvtcz0ANpNc9WSbgIuQTnlXI2IfsF5jhBjT6",
};

/// The editor of the playground, which is toolgate's own.
pub(crate) const EDITOR: Asset = Asset {
    name: "editor-1.js",
    kind: "text/javascript",
    content: include_str!("../assets/editor.js"),
    integrity: "sha384-Gb1B2HBafUSZ8zBfVIbbr3au0bagzK2uyA3xNaXQ+GMrmA0ajTL7QBUueVLXnQ67",
};

/// The style of all screens.
pub(crate) const STYLE: Asset = Asset {
    name: "page.css",
    kind: "text/css",
    content: include_str!("../assets/page.css"),
    integrity: "",
};

/// The sign of the page in a tab.
pub(crate) const ICON: Asset = Asset {
    name: "icon.svg",
    kind: "image/svg+xml",
    content: include_str!("../assets/icon.svg"),
    integrity: "",
};

/// Answers with a file. Everybody may have it.
pub(crate) fn serve(name: &str) -> Response {
    let all = [&HTMX, &HX_CSP, &HX_SSE, &EDITOR, &STYLE, &ICON];
    let Some(asset) = all.into_iter().find(|asset| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let kind = format!("{}; charset=utf-8", asset.kind);
    // Another version of the program has the same address, and perhaps another style.
    let kept = if asset.integrity.is_empty() { "no-cache" } else { "max-age=31536000, immutable" };
    ([(header::CONTENT_TYPE, kind.as_str()), (header::CACHE_CONTROL, kept)], asset.content)
        .into_response()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha2::{Digest as _, Sha384};

    use super::*;

    #[test]
    fn the_scripts_are_those_whose_hashes_the_pages_name() {
        for asset in [HTMX, HX_CSP, HX_SSE, EDITOR] {
            let hash = STANDARD.encode(Sha384::digest(asset.content));
            assert_eq!(asset.integrity, format!("sha384-{hash}"), "{}", asset.name);
        }
    }
}
