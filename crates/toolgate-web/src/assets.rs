//! The files of the page. They are part of the program, and no other place is asked for any.

use std::sync::OnceLock;

use axum::{
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::compress::gzip;

/// A file.
pub(crate) struct Asset {
    /// Its name in the address. A file with other content has another name.
    pub(crate) name: &'static str,
    kind: &'static str,
    content: &'static str,
    /// The hash that a browser compares the content with.
    pub(crate) integrity: &'static str,
}

/// htmx 4.0.0 and its extensions for Trusted Types and for streams, as npm has them, and the script of every screen.
///
/// One file: htmx starts when its own script has run, and an extension whose file comes later is not used.
pub(crate) const HTMX: Asset = Asset {
    name: "htmx-4.0.0-csp-sse-page-1.js",
    kind: "text/javascript",
    content: concat!(
        "/* htmx 4.0.0 with hx-csp and hx-sse. Zero-Clause BSD. */\n",
        include_str!("../assets/htmx/htmx.min.js"),
        "\n",
        include_str!("../assets/htmx/hx-csp.min.js"),
        "\n",
        include_str!("../assets/htmx/hx-sse.min.js"),
        "\n",
        include_str!("../assets/page.js"),
    ),
    integrity: "sha384-pFzIInu3K3gO95YyxuLVmt862zdooMIsFnvntHxWh6y4oEW4PGj+k7cJ3c5NN1Fb",
};

/// The editor of the playground, which is toolgate's own.
pub(crate) const EDITOR: Asset = Asset {
    name: "editor-2.js",
    kind: "text/javascript",
    content: include_str!("../assets/editor.js"),
    integrity: "sha384-t2nZNH5ZVRQW2o+dCCmnPnxH0rZfDuVKt6Eg+AyFbGYDd1msB4jOSgF6Wa3oQY/8",
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

const ALL: [&Asset; 4] = [&HTMX, &EDITOR, &STYLE, &ICON];

/// Answers with a file, compressed if the browser takes that. Everybody may have it.
pub(crate) fn serve(name: &str, takes_gzip: bool) -> Response {
    static PACKED: [OnceLock<Option<Bytes>>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];
    let Some(place) = ALL.iter().position(|asset| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let asset = ALL[place];
    let kind = format!("{}; charset=utf-8", asset.kind);
    // Another version of the program has the same address, and perhaps another style.
    let kept = if asset.integrity.is_empty() { "no-cache" } else { "max-age=31536000, immutable" };
    let headers = [
        (header::CONTENT_TYPE, kind.as_str()),
        (header::CACHE_CONTROL, kept),
        (header::VARY, "accept-encoding"),
    ];
    let packed =
        || PACKED[place].get_or_init(|| gzip(asset.content.as_bytes()).ok().map(Into::into));
    match takes_gzip.then(packed) {
        Some(Some(packed)) => {
            (headers, [(header::CONTENT_ENCODING, "gzip")], packed.clone()).into_response()
        }
        _ => (headers, asset.content).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use sha2::{Digest as _, Sha384};

    use super::*;

    #[test]
    fn the_scripts_are_those_whose_hashes_the_pages_name() {
        for asset in [HTMX, EDITOR] {
            let hash = STANDARD.encode(Sha384::digest(asset.content));
            assert_eq!(asset.integrity, format!("sha384-{hash}"), "{}", asset.name);
        }
    }
}
