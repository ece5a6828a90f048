//! Hearing of changes, and asking to.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_broker::{Admitted, BrokerError, CallContext, SessionContext};
use toolgate_catalog::ServerName;
use toolgate_mcp::Era;
use toolgate_upstream::CallOptions;

use super::{
    Kind, Offers, guarded,
    news::{Feed, Notification},
    requests,
    subscriptions::{TooMany, WatcherId},
    uri::Target,
};
use crate::{host::Host, session::CallFailure};

/// One who hears what servers tell: a session, or one of several streams of a session. What it
/// subscribed to ends with it.
pub struct Watcher {
    host: Host,
    context: Arc<SessionContext>,
    id: WatcherId,
    gone: CancellationToken,
}

/// The news for a [`Watcher`], from when it was asked for.
#[derive(Debug)]
pub struct News {
    feed: Feed,
    offers: Arc<Offers>,
    id: WatcherId,
    gone: CancellationToken,
}

/// What a server is told about a resource.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Subscribe,
    Unsubscribe,
}

impl Watcher {
    pub(crate) fn new(host: Host, context: Arc<SessionContext>) -> Self {
        let id = host.offers().subscriptions.watcher();
        Self { host, context, id, gone: CancellationToken::new() }
    }

    /// Wants to hear when a resource changes. The server is asked to tell, unless it does already.
    pub async fn subscribe(&self, uri: &str, options: CallOptions) -> Result<Value, CallFailure> {
        self.wish(uri, Wish::Subscribe, options).await
    }

    /// No longer wants to hear of it. The server is told where nobody else does.
    pub async fn unsubscribe(&self, uri: &str, options: CallOptions) -> Result<Value, CallFailure> {
        self.wish(uri, Wish::Unsubscribe, options).await
    }

    /// What happens from now on.
    pub fn news(&self) -> News {
        let offers = Arc::clone(self.host.offers());
        for kind in Kind::ALL {
            offers.given(kind);
        }
        let (feed, gone) = (offers.events.feed(self.id), self.gone.clone());
        News { feed, offers, id: self.id, gone }
    }

    async fn wish(
        &self,
        uri: &str,
        wish: Wish,
        options: CallOptions,
    ) -> Result<Value, CallFailure> {
        let (server, target) = requests::locate(&self.host, uri, &options).await?;
        let Target::Resource(theirs) = target else {
            return Err(requests::not_found(uri));
        };
        let admitted = match wish {
            Wish::Subscribe => Some(self.admit(&server, &theirs, uri, &options).await?),
            Wish::Unsubscribe => None,
        };
        let (host, id) = (self.host.clone(), self.id);
        // In a task of its own: who stops waiting must not leave it half done.
        let told = tokio::spawn(async move {
            let subscriptions = &host.offers().subscriptions;
            let _turn = subscriptions.turn(&server).await;
            let concerns_server = match wish {
                Wish::Subscribe => subscriptions.add(&server, &theirs, id).map_err(too_many)?,
                Wish::Unsubscribe => subscriptions.remove(&server, &theirs, id),
            };
            let told = if concerns_server {
                tell(&host, &server, &theirs, wish, options).await
            } else {
                Ok(json!({}))
            };
            if let Some(admitted) = admitted {
                admitted.finish(told.as_ref());
            }
            let told = told.map_err(|error| guarded::failure(&server, error));
            if told.is_err() && matches!(wish, Wish::Subscribe) {
                subscriptions.remove(&server, &theirs, id);
            }
            told
        });
        told.await.unwrap_or(Err(CallFailure::Cancelled))
    }

    /// Lets a subscription through: its address reaches the server, and its news come back.
    async fn admit(
        &self,
        server: &ServerName,
        theirs: &str,
        ours: &str,
        options: &CallOptions,
    ) -> Result<Admitted, CallFailure> {
        if guarded::is_hidden(&self.host, server, Kind::Resources) {
            return Err(requests::not_found(ours));
        }
        let (context, params) = (CallContext::direct(&self.context), json!({ "uri": theirs }));
        let method = Wish::Subscribe.method();
        guarded::admit(&self.host, &context, server, method, &params, options).await
    }
}

impl Wish {
    fn method(self) -> &'static str {
        match self {
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
        }
    }
}

impl News {
    /// The next piece of news; waits for it. `None` when the watcher is gone.
    pub async fn next(&mut self) -> Option<Notification> {
        let (subscriptions, id) = (&self.offers.subscriptions, self.id);
        tokio::select! {
            biased;
            () = self.gone.cancelled() => None,
            news = self.feed.next(|| subscriptions.uris_of(id)) => news,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.gone.cancel();
        let wishes = self.host.offers().subscriptions.of(self.id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if wishes.is_empty() {
            return;
        }
        let (host, id) = (self.host.clone(), self.id);
        runtime.spawn(async move {
            for (server, uri) in wishes {
                let subscriptions = &host.offers().subscriptions;
                let _turn = subscriptions.turn(&server).await;
                if subscriptions.remove(&server, &uri, id) {
                    // A server that is gone tells nothing any more.
                    let options = CallOptions::default();
                    let _ = tell(&host, &server, &uri, Wish::Unsubscribe, options).await;
                }
            }
        });
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Watcher").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Tells a server, in the way of its era.
async fn tell(
    host: &Host,
    server: &ServerName,
    uri: &str,
    wish: Wish,
    options: CallOptions,
) -> Result<Value, BrokerError> {
    let era = || host.state(server.as_str())?.handshake.map(|handshake| handshake.era);
    if era().is_none() {
        host.connect(server.as_str()).await;
    }
    if era() == Some(Era::Modern) {
        let (offers, upstream) = (host.offers(), host.upstream());
        offers.streams.listen(upstream, server, offers.subscriptions.on(server));
        return Ok(json!({}));
    }
    let params = Some(json!({ "uri": uri }));
    let told = host.upstream().request(server, wish.method(), params, options).await;
    told.map_err(BrokerError::from)
}

fn too_many(_: TooMany) -> CallFailure {
    let most = super::subscriptions::MAX_PER_WATCHER;
    requests::invalid(format!("no more than {most} subscriptions at once"))
}
