//! Who has opened the page: links that work once, and the cookies that they became.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;

/// The links that were not used yet, and the browsers that have used one. Secrets are kept as hashes.
#[derive(Debug, Default)]
pub(crate) struct PageAccess {
    links: Mutex<Vec<SecretHash>>,
    visits: Mutex<HashMap<SecretHash, Visit>>,
    /// What the next page of a browser says, by its visit.
    notices: Mutex<HashMap<Arc<str>, String>>,
}

/// A browser that has opened the page.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// What each form of its pages sends along, masked.
    token: Token,
    /// What it is known by within the page.
    pub(crate) id: Arc<str>,
    /// Who it is; `None` for the person at the terminal that showed the link.
    pub(crate) person: Option<Arc<str>>,
    seen: Instant,
    ends: Option<Instant>,
}

type SecretHash = [u8; 32];
type Token = [u8; 32];

/// More unused links than this are not kept.
const MAX_LINKS: usize = 8;
/// More browsers than this are not kept.
const MAX_VISITS: usize = 32;
/// A browser that has asked for nothing in this time opens a new link.
const IDLE: Duration = Duration::from_hours(12);
/// A cookie of an administrator ends after this time at the latest, and with the token that it was made of.
const LONGEST: Duration = Duration::from_hours(12);

impl PageAccess {
    /// The token of a new link.
    pub(crate) fn new_link(&self) -> String {
        let token = secret();
        let mut links = self.links.lock();
        links.push(hash(&token));
        let excess = links.len().saturating_sub(MAX_LINKS);
        links.drain(..excess);
        token
    }

    /// Uses up a link. Returns the cookie that it becomes.
    pub(crate) fn open(&self, token: &str) -> Option<String> {
        let used = hash(token);
        let mut links = self.links.lock();
        let place = links.iter().position(|link| *link == used)?;
        links.remove(place);
        drop(links);
        Some(self.admit(None, None))
    }

    /// Lets a browser in. Returns its cookie.
    pub(crate) fn admit(&self, person: Option<Arc<str>>, lasts: Option<Duration>) -> String {
        let cookie = secret();
        let mut visits = self.visits.lock();
        let now = Instant::now();
        visits.retain(|_, visit| now.duration_since(visit.seen) < IDLE);
        while visits.len() >= MAX_VISITS {
            let oldest = visits.iter().min_by_key(|(_, visit)| visit.seen).map(|(key, _)| *key);
            let Some(oldest) = oldest else { break };
            visits.remove(&oldest);
        }
        let ends = lasts.map(|lasts| now + lasts.min(LONGEST));
        let visit = Visit { token: random(), id: secret().into(), person, seen: now, ends };
        visits.insert(hash(&cookie), visit);
        cookie
    }

    /// The browser with this cookie.
    pub(crate) fn visit(&self, cookie: &str) -> Option<Visit> {
        let mut visits = self.visits.lock();
        let key = hash(cookie);
        let visit = visits.get_mut(&key)?;
        let now = Instant::now();
        if now.duration_since(visit.seen) >= IDLE || visit.ends.is_some_and(|end| now >= end) {
            visits.remove(&key);
            return None;
        }
        visit.seen = now;
        Some(visit.clone())
    }
}

impl PageAccess {
    /// Lets the next page of this browser say what a form did.
    pub(crate) fn leave_notice(&self, visit: &Arc<str>, notice: String) {
        let mut notices = self.notices.lock();
        if notices.len() >= MAX_VISITS {
            notices.clear();
        }
        notices.insert(Arc::clone(visit), notice);
    }

    pub(crate) fn take_notice(&self, visit: &str) -> Option<String> {
        self.notices.lock().remove(visit)
    }
}

impl Visit {
    /// The token for the forms of one response. It is another text each time: pages are compressed, and their size would
    /// tell somebody who chooses a part of them whether it is alike.
    pub(crate) fn masked_token(&self) -> String {
        let pad = random();
        let masked: Vec<u8> = self.token.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect();
        URL_SAFE_NO_PAD.encode([&pad[..], &masked].concat())
    }

    /// Whether a form of a page of this browser was sent.
    pub(crate) fn has_sent(&self, masked: &str) -> bool {
        let Ok(sent) = URL_SAFE_NO_PAD.decode(masked) else { return false };
        let Some((pad, masked)) = sent.split_at_checked(self.token.len()) else { return false };
        if masked.len() != pad.len() {
            return false;
        }
        let sent: Vec<u8> = masked.iter().zip(pad).map(|(byte, pad)| byte ^ pad).collect();
        // Of hashes: the time that it takes says nothing about the token.
        blake3::hash(&sent) == blake3::hash(&self.token)
    }
}

/// A random text that nobody guesses.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode(random())
}

fn random() -> Token {
    let mut bytes = [0; 32];
    // Without random numbers there is no page: an empty text would be a known one.
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}

fn hash(secret: &str) -> SecretHash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_the_page_once() {
        let access = PageAccess::default();
        let token = access.new_link();
        assert_eq!(access.open("guessed"), None);
        let cookie = access.open(&token).unwrap();
        assert_eq!(access.open(&token), None, "it is used up");
        let visit = access.visit(&cookie).unwrap();
        let (first, second) = (visit.masked_token(), visit.masked_token());
        assert_ne!(first, second, "each page has another text");
        assert!(visit.has_sent(&first) && visit.has_sent(&second));
        let own = URL_SAFE_NO_PAD.encode(visit.token);
        for wrong in ["", "x", &own, &secret(), &[first.as_str(), "AAAA"].concat()] {
            assert!(!visit.has_sent(wrong), "{wrong}");
        }
        assert!(access.visit(&token).is_none(), "the link is not the cookie");
    }

    #[test]
    fn links_and_browsers_are_limited() {
        let access = PageAccess::default();
        let links: Vec<String> = (0..=MAX_LINKS).map(|_| access.new_link()).collect();
        assert_eq!(access.open(&links[0]), None, "the oldest link is gone");
        let first = access.open(&links[1]).unwrap();
        for _ in 0..MAX_VISITS {
            let link = access.new_link();
            access.open(&link).unwrap();
        }
        assert!(access.visit(&first).is_none());
        assert_eq!(access.visits.lock().len(), MAX_VISITS);
    }
}
