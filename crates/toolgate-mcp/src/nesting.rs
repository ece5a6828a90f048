//! How a toolgate recognises itself behind itself.
//!
//! A file may contain the toolgate that reads it, and a URL may be that of the gateway that connects to
//! it. Both would go on without end. So every process that toolgate starts gets a variable with the
//! configurations above it, and every request over HTTP a header with the gateways before it. A request to
//! this machine also has the configurations of its sender: a gateway with the same one is that entry of the
//! file which means itself.

use std::{
    collections::{BTreeSet, VecDeque, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

/// The variable with the configurations of the toolgates above a process.
pub const ABOVE: &str = "TOOLGATE_ABOVE";
/// The header with the gateways that a request has passed.
pub const VIA: &str = "toolgate-via";

/// The header with the configurations of the sender.
pub const CONFIGURATIONS: &str = "toolgate-configurations";

/// How many gateways before this one are remembered.
const MOST_BEFORE: usize = 64;
/// The longest id that is remembered.
const LONGEST_ID: usize = 64;

/// The configurations that this process uses.
static OWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// The id of this gateway, once it serves over HTTP.
static GATEWAY: OnceLock<String> = OnceLock::new();
/// The gateways that have sent requests to this one.
static BEFORE: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Notes that this process uses a configuration. The processes that it starts get its name.
pub fn note_configuration(name: &str) {
    let name = plain(name);
    locked(&OWN).insert(name);
}

/// Whether a toolgate above this process uses the same configuration.
pub fn is_above(name: &str) -> bool {
    let name = plain(name);
    std::env::var(ABOVE).is_ok_and(|above| above.split(',').any(|known| known == name))
}

/// The value of [`ABOVE`] for a process that this one starts.
pub fn above() -> String {
    let inherited = std::env::var(ABOVE).unwrap_or_default();
    let mut names: BTreeSet<String> =
        inherited.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.extend(locked(&OWN).iter().cloned());
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// The value of [`CONFIGURATIONS`] for a request to this machine. Others have nothing to do with it.
pub fn configurations() -> Option<String> {
    let own = locked(&OWN);
    (!own.is_empty()).then(|| own.iter().cloned().collect::<Vec<_>>().join(","))
}

/// Whether a request comes from a process with a configuration that this gateway serves.
pub fn is_of_same_configuration(names: &str) -> bool {
    let own = locked(&OWN);
    GATEWAY.get().is_some() && names.split(',').any(|name| own.contains(name.trim()))
}

/// Makes this process a gateway that recognises its own requests.
pub fn be_gateway() {
    let part = || RandomState::new().hash_one(std::process::id());
    GATEWAY.get_or_init(|| format!("{:016x}{:016x}", part(), part()));
}

/// The value of [`VIA`] for a request of this process: this gateway and those before it.
pub fn via() -> Option<String> {
    let own = GATEWAY.get()?;
    let before = locked(&BEFORE);
    let ids: Vec<&str> =
        std::iter::once(own.as_str()).chain(before.iter().map(String::as_str)).collect();
    Some(ids.join(","))
}

/// Reads the [`VIA`] of a request. Returns whether this gateway has sent it, directly or through others.
pub fn is_own_request(via: &str) -> bool {
    let Some(own) = GATEWAY.get() else { return false };
    let ids =
        || via.split(',').map(str::trim).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
    if ids().take(MOST_BEFORE + 1).any(|id| id == own) {
        return true;
    }
    let mut before = locked(&BEFORE);
    for id in ids().take(MOST_BEFORE).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        if !before.iter().any(|known| known == id) {
            before.push_back(id.to_owned());
        }
    }
    let excess = before.len().saturating_sub(MOST_BEFORE);
    before.drain(..excess);
    false
}

/// A name without the separator.
fn plain(name: &str) -> String {
    name.replace(',', "_")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds the lock can panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_comes_back_is_recognised() {
        assert_eq!(via(), None, "no gateway");
        assert!(!is_own_request("abc"));
        be_gateway();
        let own = via().unwrap();
        assert!(is_own_request(&format!("abc, {own}")));
        assert!(!is_own_request("beef"));
        assert_eq!(via().unwrap(), format!("{own},beef"), "so the one before recognises it");
        for index in 0..1_000 {
            assert!(!is_own_request(&format!("{index:x}")));
        }
        assert!(!is_own_request("no id at all, or one with\nline breaks"));
        assert_eq!(via().unwrap().split(',').count(), MOST_BEFORE + 1);
    }

    #[test]
    fn a_child_gets_all_configurations() {
        note_configuration("one");
        note_configuration("a,b");
        assert_eq!(above(), "a_b,one");
        assert!(!is_above("one"), "it is not above itself");
        assert_eq!(configurations().as_deref(), Some("a_b,one"));
        be_gateway();
        assert!(is_of_same_configuration("two, one") && !is_of_same_configuration("two"));
    }
}
