//! `toolgate serve`

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{
    AggregateFactory, HttpSettings, NamespaceRoute, NodeHosts, PassthroughFactory, RouteTable,
    ServiceFactory,
};
use toolgate_host::{HostSettings, PassthroughGuard, ToolHost};
use toolgate_mcp::nesting;
use toolgate_web::Page;

use super::web;
use crate::{
    access,
    cli::{Globals, Serve},
    failure::{CommandResult, Failure},
    fleet, folders,
    load::{self, Loaded},
    memory, own_entry, print,
};

mod changes;
mod live;
mod reload;

use reload::Reloader;

/// How long a node that stops waits for the requests in progress, so that a rolling restart loses none.
const DRAIN: Duration = Duration::from_secs(25);
/// Each session of a server that is passed through is a connection to it, and maybe a process.
const PASSTHROUGH_SESSIONS: usize = 64;

pub(crate) async fn run(globals: &Globals, arguments: &Serve) -> CommandResult {
    let loaded = load::load(globals)?;
    own_entry::refuse_below_itself(&loaded.path, arguments.http.is_none())?;
    load::report(&loaded);
    // First, so that no server is started if this fails.
    let listener = match arguments.http {
        Some(address) => {
            let access = access::control(&loaded.configuration.gateway, address)?;
            let (listener, address) = listen(address).await?;
            Some((listener, address, access))
        }
        None => None,
    };
    if listener.is_some() {
        // Before the first request to a server, which may be this gateway.
        nesting::be_gateway();
    }
    // Before the servers: a node that the others reach may run those that run once.
    let mut link = if listener.is_some() { fleet::link(globals).await? } else { None };
    let Served { source, hosts, passthrough } = source(&loaded, arguments)?;
    if let Some(link) = &mut link {
        link.hosts = Some(Arc::new(hosts.clone()));
    }
    if let Some(line) = loaded.first_policy() {
        print::note(line);
    }
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let watch = |loaded: Loaded, routes: Option<ServedPaths>| {
        let (globals, mode) = (globals.clone(), arguments.mode);
        let (hosts, passthrough) = (hosts.clone(), passthrough.clone());
        let reloader = Reloader {
            globals,
            mode,
            loaded,
            hosts,
            routes,
            passthrough,
            reported: None,
            pins_are_gone: false,
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(reloader.run()))
    };
    let (store, path) = (loaded.writable_store().ok(), loaded.path.clone());
    // One server, unchanged, is not what clients share.
    let shared = listener.as_ref().filter(|_| passthrough.is_none() && globals.namespace.is_none());
    let address = shared.map(|(_, address, _)| *address);
    let publishing = live::publish(store, (path, address), hosts.clone(), passthrough.clone());
    let publishing = tokio::spawn(stop.clone().run_until_cancelled_owned(publishing));
    let watching;
    if let Some((listener, address, access)) = listener {
        let mut settings = HttpSettings::new(source);
        access::apply(&loaded.configuration.gateway, access, &mut settings);
        if let Some(link) = link {
            settings.fleet = Some(link);
            settings.drain = DRAIN;
        }
        access::serve_logins(&loaded, address)?;
        settings.logins = loaded.pending_logins().clone();
        settings.own_logins = Some(Arc::new(super::logins::LoginsOfCallers));
        if passthrough.is_some() {
            settings.limits.sessions = settings.limits.sessions.min(PASSTHROUGH_SESSIONS);
        }
        print::note(format!("toolgate listens on http://{address}/mcp"));
        let page = match &passthrough {
            None => page(globals, &loaded, &hosts, address)?,
            Some(_) => None,
        };
        settings.pages = page.as_ref().map(Page::router);
        // With `--namespace` nothing else is served.
        let serves_all = passthrough.is_none() && globals.namespace.is_none();
        let routes =
            serves_all.then(|| ServedPaths { table: settings.namespaces.clone(), address });
        if let Some(routes) = &routes {
            for (name, host_settings) in loaded.namespaces(arguments.mode) {
                routes.serve(&name, host_settings, &hosts);
            }
        }
        if !address.ip().is_loopback() {
            print::note("  hint: it speaks plain HTTP; put a proxy with TLS in front of it");
        }
        watching = watch(loaded, routes);
        let ending = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            ending.await;
            page.iter().for_each(Page::end);
        });
        toolgate_gateway::serve_http(listener, settings, stop.clone()).await;
    } else {
        if io::stdin().is_terminal() {
            explain(&loaded, arguments);
        }
        watching = watch(loaded, None);
        toolgate_gateway::serve_stdio(source, stop.clone()).await;
    }
    // No server is added to a host that shuts down.
    stop.cancel();
    let _ = tokio::join!(watching, publishing);
    join_all(hosts.all().iter().map(|(_, host)| host.shutdown())).await;
    if let Some(factory) = passthrough {
        let _ = tokio::task::spawn_blocking(move || factory.guard().broker().flush()).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows edits of the configuration of one host, until `stop`.
pub(super) fn follow(
    globals: &Globals,
    loaded: Loaded,
    host: &ToolHost,
    stop: &CancellationToken,
) -> JoinHandle<Option<()>> {
    let hosts = ServedHosts::default();
    hosts.push(loaded.namespace.clone(), host.clone());
    let reloader = Reloader {
        globals: globals.clone(),
        mode: None,
        loaded,
        hosts,
        routes: None,
        passthrough: None,
        reported: None,
        pins_are_gone: false,
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(reloader.run()))
}

/// The page beside the gateway, for the person on this machine or for administrators.
fn page(
    globals: &Globals,
    loaded: &Loaded,
    hosts: &ServedHosts,
    address: SocketAddr,
) -> Result<Option<Page>, Failure> {
    if address.ip().is_loopback() {
        Ok(web::beside_gateway(globals, loaded, &hosts.all(), address))
    } else {
        web::for_administrators(globals, loaded, &hosts.all(), address)
    }
}

/// The served factory, and what must be shut down.
struct Served {
    source: Arc<dyn ServiceFactory>,
    hosts: ServedHosts,
    /// The server that is passed through.
    passthrough: Option<Arc<PassthroughFactory>>,
}

/// The hosts that are served, by namespace. All clones share them: a reload may add some.
#[derive(Debug, Clone, Default)]
struct ServedHosts(Arc<Mutex<Vec<NamedHost>>>);

/// A host, and its namespace.
type NamedHost = (Option<String>, ToolHost);

/// The paths of an HTTP endpoint.
struct ServedPaths {
    table: RouteTable,
    address: SocketAddr,
}

impl ServedHosts {
    fn all(&self) -> Vec<NamedHost> {
        self.0.lock().clone()
    }

    fn has(&self, namespace: &str) -> bool {
        self.0.lock().iter().any(|(name, _)| name.as_deref() == Some(namespace))
    }

    fn push(&self, namespace: Option<String>, host: ToolHost) {
        self.0.lock().push((namespace, host));
    }
}

impl NodeHosts for ServedHosts {
    fn hosts(&self) -> Vec<ToolHost> {
        self.0.lock().iter().map(|(_, host)| host.clone()).collect()
    }
}

impl ServedPaths {
    /// Starts the host of a namespace, and serves it.
    fn serve(&self, name: &str, settings: HostSettings, hosts: &ServedHosts) {
        let host = ToolHost::start(settings);
        let path = format!("/mcp/{name}");
        print::note(format!("  namespace {name}: http://{}{path}", self.address));
        let factory = Arc::new(AggregateFactory::new(host.clone()));
        hosts.push(Some(name.to_owned()), host);
        self.table.push(NamespaceRoute { path, factory });
    }
}

/// The served factory: all servers of a host, or one server in pass-through. The policy applies to
/// both.
fn source(loaded: &Loaded, arguments: &Serve) -> Result<Served, Failure> {
    let settings = loaded.settings(arguments.mode);
    let Some(name) = &arguments.passthrough else {
        let host = ToolHost::start(settings);
        tokio::spawn(after_first_requests(host.clone()));
        let source = Arc::new(AggregateFactory::new(host.clone()));
        let hosts = ServedHosts::default();
        hosts.push(loaded.namespace.clone(), host);
        return Ok(Served { source, hosts, passthrough: None });
    };
    let Some(setup) = settings.servers.iter().find(|setup| setup.spec.name.as_str() == *name)
    else {
        let failure = Failure::usage(format!("there is no server `{name}`"));
        let is_empty = settings.servers.is_empty();
        let names = settings.servers.iter().map(|setup| setup.spec.name.as_str());
        let hint = is_empty.then_some("the configuration has no servers");
        return Err(failure.hint_if(hint).meaning(name, names));
    };
    let guard = Arc::new(PassthroughGuard::new(&settings, &setup.spec.name));
    let factory = Arc::new(PassthroughFactory::new(setup.spec.clone()).guarded_by(guard));
    let source = Arc::clone(&factory) as Arc<dyn ServiceFactory>;
    Ok(Served { source, hosts: ServedHosts::default(), passthrough: Some(factory) })
}

/// Prepares for scripts, and gives memory back that reading the cache and the lists of servers took for a moment.
async fn after_first_requests(host: ToolHost) {
    host.first_requests().await;
    host.code().warm_up();
    let _ = tokio::task::spawn_blocking(memory::give_back).await;
    host.started().await;
    let _ = tokio::task::spawn_blocking(memory::give_back).await;
}

/// Listens on an address. Returns the real one, since port 0 stands for a free port.
pub(super) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |error: io::Error| {
        let (failure, hint) = match error.kind() {
            io::ErrorKind::AddrInUse => (
                format!("{address} is in use by another program"),
                "choose another port; port 0 takes one that is free",
            ),
            io::ErrorKind::AddrNotAvailable => (
                format!("{} is not an address of this machine", address.ip()),
                "127.0.0.1 is for this machine alone, 0.0.0.0 for all of its addresses",
            ),
            io::ErrorKind::PermissionDenied => (
                format!("port {} is not for everybody", address.port()),
                "choose a port above 1023; port 0 takes one that is free",
            ),
            _ => (
                format!("{address} cannot be listened on: {error}"),
                "choose another address; 127.0.0.1:0 takes a port that is free",
            ),
        };
        Failure::new(failure).hint(hint)
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Explains the output to a person who started the command in a terminal.
fn explain(loaded: &Loaded, arguments: &Serve) {
    let what = match &arguments.passthrough {
        Some(name) => format!("server `{name}`"),
        None => format!("{} server(s)", loaded.settings(arguments.mode).servers.len()),
    };
    print::note(format!(
        "toolgate serves {what} of {} on stdin and stdout, and waits for an MCP client; Ctrl-C ends \
         it.\n  hint: an agent starts it by itself, for example: claude mcp add toolgate -- toolgate \
         serve --stdio --config FILE",
        folders::shown(&loaded.path)
    ));
}

/// Whatever signal ends the process, the servers are shut down first.
pub(super) async fn stop_on_signal(stop: CancellationToken) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        let listen = |kind| signal(kind).ok();
        let (Some(mut terminate), Some(mut interrupt), Some(mut hang_up)) = (
            listen(SignalKind::terminate()),
            listen(SignalKind::interrupt()),
            listen(SignalKind::hangup()),
        ) else {
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
    stop.cancel();
}
