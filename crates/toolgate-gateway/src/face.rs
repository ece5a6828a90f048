//! Requests of one client, answered by one session.

use std::{borrow::Cow, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, Service,
    model::{
        CallToolRequestParams, ClientNotification, ClientRequest, CustomResult, DiscoverResult,
        ErrorCode, Implementation, InitializeResult, ProgressNotification,
        ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerCapabilities,
        ServerNotification, ServerResult,
    },
    service::{NotificationContext, Peer, RequestContext},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_host::{CallFailure, Session};
use toolgate_upstream::{CallOptions, Progress};

use crate::{
    instructions::instructions,
    watch_list::{self, Given},
};

/// The service that rmcp runs. What it does not answer itself goes to [`Manners`].
#[derive(Debug)]
pub(crate) struct Face {
    session: Arc<Session>,
    given: Arc<Given>,
    manners: Manners,
}

/// Handshake, ping, and a polite refusal of everything else: rmcp's own handler does these.
#[derive(Debug)]
struct Manners {
    session: Arc<Session>,
}

/// Progress that waits to be sent to a slow client. More is lost; a result never is.
const QUEUED_PROGRESS: usize = 256;

impl Face {
    pub(crate) fn new(session: Session) -> Self {
        let session = Arc::new(session);
        let manners = Manners { session: Arc::clone(&session) };
        Self { session, given: Arc::default(), manners }
    }

    async fn list(&self, context: &RequestContext<RoleServer>) -> Value {
        if is_modern(context) {
            self.session.fix_list();
        }
        let tools = self.session.list_tools().await;
        self.given.note(&tools);
        let mut result = json!({ "tools": tools });
        if is_modern(context) {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result
    }

    async fn call(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let modern = is_modern(&context);
        if modern {
            self.session.fix_list();
        }
        let meta = serde_json::to_value(&context.meta).ok();
        let mut options = CallOptions {
            meta: meta.and_then(|meta| meta.as_object().cloned()).filter(|meta| !meta.is_empty()),
            progress: None,
            cancel: context.ct.clone(),
            respondent: None,
        };
        let forwarding = context.meta.get_progress_token().map(|token| {
            let (sender, reports) = mpsc::channel(QUEUED_PROGRESS);
            options.progress = Some(sender);
            tokio::spawn(forward_progress(context.peer.clone(), token, reports))
        });
        let arguments = params.arguments.unwrap_or_default();
        let outcome = self.session.call(&params.name, arguments, options).await;
        if let Some(forwarding) = forwarding {
            // Its sender is gone by now: this waits for what is still to be sent, so that no
            // report comes after the result.
            let _ = forwarding.await;
        }
        let mut result = outcome.map_err(refusal)?;
        if modern && let Some(fields) = result.as_object_mut() {
            fields.entry("resultType").or_insert_with(|| json!("complete"));
        }
        Ok(result)
    }
}

impl Service<RoleServer> for Face {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let raw = match request {
            ClientRequest::ListToolsRequest(_) => {
                check_metadata(&context)?;
                self.list(&context).await
            }
            ClientRequest::CallToolRequest(request) => {
                check_metadata(&context)?;
                self.call(request.params, context).await?
            }
            other => return self.manners.handle_request(other, context).await,
        };
        Ok(ServerResult::CustomResult(CustomResult(raw)))
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if matches!(notification, ClientNotification::InitializedNotification(_)) {
            let (session, given) = (Arc::downgrade(&self.session), Arc::clone(&self.given));
            tokio::spawn(watch_list::watch(session, given, context.peer));
            return Ok(());
        }
        self.manners.handle_notification(notification, context).await
    }

    fn get_info(&self) -> InitializeResult {
        ServerHandler::get_info(&self.manners)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.manners)
    }
}

impl ServerHandler for Manners {
    fn get_info(&self) -> InitializeResult {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(self.session.host()))
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let mut info = ServerHandler::get_info(self);
        // In this era the list is the same for the whole session.
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }
}

async fn forward_progress(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut reports: mpsc::Receiver<Progress>,
) {
    while let Some(report) = reports.recv().await {
        let mut params = ProgressNotificationParam::new(token.clone(), report.progress);
        params.total = report.total;
        params.message = report.message;
        let notification = ProgressNotification::new(params);
        let sent =
            peer.send_notification(ServerNotification::ProgressNotification(notification)).await;
        if sent.is_err() {
            return;
        }
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// A client that has not greeted us has to say with every request who it is.
fn check_metadata(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let declared = context.meta.protocol_version();
    if let Some(version) = &declared
        && !ProtocolVersion::KNOWN_VERSIONS.contains(version)
    {
        let known = ProtocolVersion::KNOWN_VERSIONS;
        return Err(ErrorData::unsupported_protocol_version(version.clone(), known));
    }
    let stateless = context.peer.peer_info().is_none();
    if stateless || declared.is_some_and(|version| !version.has_initialize()) {
        let missing = context.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
        if !missing.is_empty() {
            return Err(ErrorData::invalid_params(
                format!("request _meta lacks {}", missing.join(", ")),
                None,
            ));
        }
    }
    Ok(())
}

fn refusal(failure: CallFailure) -> ErrorData {
    match failure {
        CallFailure::UnknownTool(message) => ErrorData::invalid_params(message, None),
        CallFailure::Refused { code, message, data } => {
            ErrorData::new(ErrorCode(code), message, data)
        }
        CallFailure::Cancelled => ErrorData::internal_error("the call was cancelled", None),
    }
}
