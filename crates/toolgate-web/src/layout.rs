//! What all screens have in common.

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use crate::{
    PAGE_PATH, PagePlace, PageState,
    assets::{Asset, HTMX, ICON, STYLE},
    guard::PageRequest,
};

/// A screen in the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Overview,
    Approvals,
    Servers,
    Runs,
    Tools,
    Playground,
    Policy,
    Audit,
    Access,
}

impl Screen {
    const ALL: [Self; 9] = [
        Self::Overview,
        Self::Approvals,
        Self::Servers,
        Self::Runs,
        Self::Tools,
        Self::Playground,
        Self::Policy,
        Self::Audit,
        Self::Access,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Approvals => "Approvals",
            Self::Servers => "Servers",
            Self::Runs => "Runs",
            Self::Tools => "Tools",
            Self::Playground => "Playground",
            Self::Policy => "Policy",
            Self::Audit => "Audit log",
            Self::Access => "Access",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Overview => PAGE_PATH,
            Self::Approvals => "/ui/approvals",
            Self::Servers => "/ui/servers",
            Self::Runs => "/ui/runs",
            Self::Tools => "/ui/tools",
            Self::Playground => "/ui/playground",
            Self::Policy => "/ui/policy",
            Self::Audit => "/ui/audit",
            Self::Access => "/ui/access",
        }
    }
}

/// How htmx works here. It evaluates nothing, remembers no pages, and leaves a question alone that somebody reads.
const CONFIG: &str = r#"{"extensions":"hx-csp,sse","history":false,"includeIndicatorCSS":false,"sse":{"reconnectMaxDelay":5000},"morphSkip":"article.question"}"#;

/// A screen.
pub(crate) fn page(
    page: &PageState,
    request: &PageRequest,
    screen: Screen,
    title: &str,
    content: &Markup,
) -> Html<String> {
    page_with(page, request, screen, title, content, &[])
}

/// A screen with further scripts.
pub(crate) fn page_with(
    page: &PageState,
    request: &PageRequest,
    screen: Screen,
    title: &str,
    content: &Markup,
    scripts: &[&Asset],
) -> Html<String> {
    // A browser has few connections, so a tab has one stream: that of a live part brings this number too. Text of others
    // has no quotes on a page.
    let is_live = content.0.contains("hx-sse:connect=\"");
    let waiting = page.waiting().len();
    let own = || stream_of("/ui/approvals/waiting", waiting, request, &html! {});
    let badge = html! {
        span id="waiting" hx-sse:connect=[(!is_live).then(own)] hx-nonce=(request.nonce) {
            span.count hidden[waiting == 0] { (waiting) span.skip { " waiting" } }
        }
    };
    let (lost, closed) = connection_words(page);
    let notice = page.access.take_notice(&request.visit);
    let body = html! {
        a.skip href="#content" { "Skip to the content" }
        div.frame {
            header.side {
                a.brand href=(PAGE_PATH) { img src=(path(&ICON)) alt="" width="18" height="18"; "toolgate" }
                nav aria-label="Screens" {
                    ul {
                        @for item in Screen::ALL {
                            li {
                                a href=(item.path()) aria-current=[(item == screen).then_some("page")] {
                                    (item.name())
                                    @if item == Screen::Approvals { (badge) }
                                }
                            }
                        }
                    }
                }
            }
            main id="content" tabindex="-1" {
                h1 { (title) }
                p.notice.bad.alarm id="connection" role="alert" data-lost=(lost) data-closed=(closed) {}
                @if let Some(notice) = notice {
                    p.notice role="status" { (crate::text::line(&notice, 2_000)) }
                }
                (content)
            }
        }
    };
    document(&request.nonce, title, &[&[&HTMX], scripts].concat(), &body)
}

/// What the page says when it has lost its connection, and when toolgate does not know its browser any more.
fn connection_words(page: &PageState) -> (&'static str, &'static str) {
    let lost = "The connection to toolgate is lost, and what you see may be old. The page connects again by itself; if \
                you have ended toolgate, start it again.";
    let closed = match page.place {
        PagePlace::Loopback(_) => {
            "toolgate was restarted: open a new link with `toolgate web`, or press Enter in its terminal."
        }
        PagePlace::Public(_) => {
            "toolgate was restarted, or your token has ended: open the page again."
        }
    };
    (lost, closed)
}

/// A page that says one thing, for a browser that has no cookie.
pub(crate) fn notice(nonce: &str, title: &str, text: &str) -> Html<String> {
    let body = html! {
        main id="content" { h1 { (title) } p { (text) } }
    };
    document(nonce, title, &[], &body)
}

/// The form for the token of an administrator.
pub(crate) fn token_form(nonce: &str, scope: &str, why: Option<&str>) -> Html<String> {
    let body = html! {
        main id="content" {
            h1 { "Open the page" }
            @if let Some(why) = why { p.notice.bad role="alert" { (why) } }
            p { "Show an access token of your authorization server with the scope " code { (scope) } ". The page ends with the token." }
            form.panel method="post" action="/ui/open" {
                p { label { "Access token" input type="password" name="token" required autocomplete="off"; } }
                button.main { "Open" }
            }
        }
    };
    document(nonce, "Open the page", &[], &body)
}

fn document(nonce: &str, title: &str, scripts: &[&Asset], body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · toolgate" }
                link rel="stylesheet" href=(path(&STYLE));
                link rel="icon" href=(path(&ICON));
                @if !scripts.is_empty() {
                    meta name="htmx-config" content=(CONFIG);
                    @for script in scripts {
                        script src=(path(script)) integrity=(script.integrity) nonce=(nonce) defer {}
                    }
                }
            }
            body { (body) }
        }
    };
    Html(page.into_string())
}

fn path(asset: &Asset) -> String {
    format!("{PAGE_PATH}/assets/{}", asset.name)
}

/// The hidden field that every form has.
pub(crate) fn form_token(request: &PageRequest) -> Markup {
    html! { input type="hidden" name="form_token" value=(request.form_token); }
}

/// A part of a screen that a stream replaces whenever it has changed. `stream` is a path, perhaps with a query.
pub(crate) fn live(
    page: &PageState,
    request: &PageRequest,
    id: &str,
    stream: &str,
    content: &Markup,
) -> Markup {
    let stream = stream_of(stream, page.waiting().len(), request, content);
    html! {
        div id=(id) hx-sse:connect=(stream) hx-swap="innerMorph" hx-nonce=(request.nonce) { (content) }
    }
}

/// The address of a stream. It says what the page has, so that this is not sent again.
fn stream_of(stream: &str, waiting: usize, request: &PageRequest, content: &Markup) -> String {
    let joint = if stream.contains('?') { '&' } else { '?' };
    format!("{stream}{joint}seen={}&waiting={waiting}", request.fingerprint(&content.0))
}
