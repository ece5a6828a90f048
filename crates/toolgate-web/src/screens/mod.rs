//! The screens, one file each. Each of them has a command that shows the same.

mod access;
mod adding;
mod approvals;
mod audit;
mod overview;
mod playground;
mod policy;
mod runs;
mod servers;
mod tools;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use maud::html;

use crate::{
    PageState,
    guard::PageRequest,
    layout::{self, Screen},
};

/// The state of the page, as handlers get it.
type Shared = State<Arc<PageState>>;
/// The request, as [`crate::guard`] has let it through.
type Asked = Extension<PageRequest>;

pub(crate) fn routes() -> Router<Arc<PageState>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/overview/live", get(overview::live))
        .route("/servers", get(servers::show))
        .route("/servers-live", get(servers::live_list))
        .route("/servers/{name}", get(servers::show_one).post(servers::change))
        .route("/servers/{name}/live", get(servers::live_one))
        .route("/servers/{name}/tools", get(servers::tools_of_one))
        .route("/runs", get(runs::show))
        .route("/runs-live", get(runs::live_list))
        .route("/runs/{id}", get(runs::show_one).post(runs::change))
        .route("/runs/{id}/live", get(runs::live_one))
        .route("/runs/{id}/calls/{number}/{part}", get(runs::show_whole))
        .route("/tools", get(tools::show))
        .route("/tools/found", get(tools::found))
        .route("/tools/{name}", get(tools::show_one).post(tools::call))
        .route("/playground", get(playground::show).post(playground::act))
        .route("/playground/findings", post(playground::findings))
        .route("/playground/complete", post(playground::complete))
        .route("/policy", get(policy::show))
        .route("/policy/what-if", get(policy::show_trial).post(policy::try_out))
        .route("/audit", get(audit::show))
        .route("/audit/live", get(audit::live))
        .route("/audit/export", get(audit::export))
        .route("/access", get(access::show).post(access::change))
        .route("/servers-add", get(adding::show).post(adding::add))
        .route("/approvals", get(approvals::show))
        .route("/approvals/live", get(approvals::live))
        .route("/approvals/waiting", get(approvals::live_count))
        .route("/approvals/{reference}", get(approvals::show_one).post(approvals::answer))
}

/// Says that there is no such screen.
pub(crate) async fn nothing_here(State(page): Shared, Extension(request): Asked) -> Response {
    let content = html! { p { "There is nothing at this address." } };
    let shown = layout::page(&page, &request, Screen::Overview, "Nothing here", &content);
    (StatusCode::NOT_FOUND, shown).into_response()
}

/// Leads to another page after something was done, and lets it say what.
fn done(page: &PageState, request: &PageRequest, path: &str, notice: String) -> Response {
    if !notice.is_empty() {
        page.access.leave_notice(&request.visit, notice);
    }
    (StatusCode::SEE_OTHER, [(header::LOCATION, path.to_owned())]).into_response()
}

/// Runs work that touches the disk on another thread.
async fn in_background<R: Send + 'static>(
    page: &Arc<PageState>,
    work: impl FnOnce(&PageState) -> R + Send + 'static,
) -> Option<R> {
    let page = Arc::clone(page);
    tokio::task::spawn_blocking(move || work(&page)).await.ok()
}
