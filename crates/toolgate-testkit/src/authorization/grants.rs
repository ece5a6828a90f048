//! Clients, codes and tokens.

use std::collections::{BTreeMap, HashMap, HashSet};

/// The clients, codes and tokens that exist.
#[derive(Debug, Default)]
pub(super) struct IssuedGrants {
    given: u64,
    /// The secrets of clients by id; `None` for clients without a secret.
    pub(super) clients: HashMap<String, Option<String>>,
    codes: HashMap<String, PendingAuthorization>,
    access: HashMap<String, PendingAuthorization>,
    refresh: HashMap<String, PendingAuthorization>,
    used: HashSet<String>,
}

/// The request at the login page that a code was issued for.
#[derive(Debug, Clone)]
pub(super) struct PendingAuthorization {
    pub(super) client: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    /// Who logged in.
    pub(super) person: String,
}

/// An access token and a refresh token.
pub(super) struct IssuedTokens {
    pub(super) access: String,
    pub(super) refresh: String,
    pub(super) scopes: Vec<String>,
}

/// The result of using a refresh token.
pub(super) enum Renewal {
    Given(IssuedTokens),
    Unknown,
    /// It was used before, so all tokens of the client are revoked.
    Reused,
}

impl IssuedGrants {
    pub(super) fn register(&mut self, with_secret: bool) -> (String, Option<String>) {
        let id = self.name("client");
        let secret = with_secret.then(|| self.name("client-secret"));
        self.clients.insert(id.clone(), secret.clone());
        (id, secret)
    }

    pub(super) fn code(&mut self, asked: PendingAuthorization) -> String {
        let code = self.name("code-secret");
        self.codes.insert(code.clone(), asked);
        code
    }

    /// The request that a code was issued for. A code is valid once.
    pub(super) fn redeem(&mut self, code: &str) -> Option<PendingAuthorization> {
        self.codes.remove(code)
    }

    pub(super) fn tokens(&mut self, asked: PendingAuthorization) -> IssuedTokens {
        let (access, refresh) = (self.name("access-secret"), self.name("refresh-secret"));
        let scopes = asked.scopes.clone();
        self.access.insert(access.clone(), asked.clone());
        self.refresh.insert(refresh.clone(), asked);
        IssuedTokens { access, refresh, scopes }
    }

    pub(super) fn renew(&mut self, refresh: &str) -> Renewal {
        match self.refresh.remove(refresh) {
            Some(asked) => {
                self.used.insert(refresh.to_owned());
                self.access.retain(|_, given| given.client != asked.client);
                Renewal::Given(self.tokens(asked))
            }
            None if self.used.contains(refresh) => {
                self.expire();
                self.refresh.clear();
                Renewal::Reused
            }
            None => Renewal::Unknown,
        }
    }

    pub(super) fn revoke(&mut self, token: &str) {
        self.access.remove(token);
        self.refresh.remove(token);
    }

    pub(super) fn expire(&mut self) {
        self.access.clear();
    }

    pub(super) fn access_tokens(&self) -> Vec<String> {
        self.access.keys().cloned().collect()
    }

    /// The scopes of a valid access token.
    pub(super) fn scopes(&self, access: &str) -> Option<&[String]> {
        self.access.get(access).map(|given| given.scopes.as_slice())
    }

    /// Who a valid access token belongs to.
    pub(super) fn person(&self, access: &str) -> Option<&str> {
        self.access.get(access).map(|given| given.person.as_str())
    }

    /// Expires the access tokens of a person.
    pub(super) fn expire_of(&mut self, person: &str) {
        self.access.retain(|_, given| given.person != person);
    }

    fn name(&mut self, kind: &str) -> String {
        self.given += 1;
        format!("{kind}-{:04}", self.given)
    }
}

/// The pairs of a query or a form.
pub(super) fn pairs(text: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text).into_owned().collect()
}
