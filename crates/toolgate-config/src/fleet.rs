//! The `fleet` key.

use std::{net::SocketAddr, time::Duration};

use url::Url;

use crate::Secret;
use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::section::{Section as _, custom, seconds, section, text_schema};

section! {
    /// The PostgreSQL that several toolgates share: the `fleet` key.
    pub struct FleetConfig as "Fleet" {
        /// The URL of the database, as `${NAME}`, because it has a password.
        "database" => database: Option<Secret> = None, custom(text_schema, reference);
        /// The `https` URL at which the other nodes reach this one, with its port. toolgate listens there for them
        /// alone. Without it, this node takes nothing over for the others.
        "advertise" => advertise: Option<String> = None, custom(text_schema, advertised);
        /// Where toolgate listens for the other nodes, such as `0.0.0.0:8443`, if not at the address in `advertise`.
        "listen" => listen: Option<SocketAddr> = None, custom(text_schema, listened);
        /// What the nodes know of each other by: at least 32 characters, the same on all of them, as `${NAME}`.
        "secret" => secret: Option<Secret> = None, custom(text_schema, shared_secret);
        /// After how many seconds without a sign of life a node counts as dead.
        "leaseSeconds" => lease: Duration = Duration::from_secs(15), seconds(1.0, 3_600.0).refused();
    }
}

const HINT: &str = "write `\"fleet\": { \"database\": \"${DATABASE_URL}\" }`";
/// Shorter secrets can be guessed.
const SHORTEST_SECRET: usize = 32;

/// Reads the section. With a mistake in it there is no database, and nothing is served: a node that keeps its records
/// for itself is no node.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> FleetConfig {
    let at = scope.at.value(member);
    let Value::Object(object) = &member.node.value else {
        let kind = member.node.value.kind();
        scope.error(member, &format!("must be an object, but is {kind}"), HINT);
        return FleetConfig::default();
    };
    let mut scope = Scope::new(object, at, scope.file);
    scope.refuse_replaced();
    scope.refuse_unknown::<FleetConfig>();
    scope.require("database", HINT);
    let mut settings = FleetConfig::default();
    settings.read_keys(&mut scope);
    if scope.first_error.is_none() { settings } else { FleetConfig::default() }
}

/// A secret that is not written in the file.
fn reference(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Secret> {
    if let Value::String(written) = &member.node.value
        && !written.contains("${")
    {
        scope.error(
            member,
            "is a secret, and must not be written here",
            "write `${NAME}`, and set the variable NAME",
        );
        return None;
    }
    scope.text(member).map(Secret::new)
}

fn listened(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<SocketAddr> {
    let text = scope.text(member)?;
    let address = text.parse().ok();
    if address.is_none() {
        let hint = "write an IP address and a port, such as `0.0.0.0:8443`";
        scope.error(member, "must be an IP address and a port", hint);
    }
    address
}

fn shared_secret(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Secret> {
    let secret = reference(scope, member)?;
    if secret.expose().len() < SHORTEST_SECRET {
        let predicate = format!("is shorter than {SHORTEST_SECRET} characters");
        scope.error(member, &predicate, "`openssl rand -hex 32` makes one");
        return None;
    }
    Some(secret)
}

fn advertised(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
    let text = scope.text(member)?;
    let url = Url::parse(&text).ok().filter(|url| url.scheme() == "https" && url.has_host());
    if url.is_none() {
        scope.error(member, "is not an `https` URL", "write such as `https://10.0.0.3:8443`");
    }
    url.map(|_| text)
}
