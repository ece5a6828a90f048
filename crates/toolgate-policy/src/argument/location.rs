//! Conditions about paths and hosts, which servers parse in different ways.

use serde_json::Value;
use url::{Host, Url};

use super::Truth;

const MAX_HOSTS: usize = 1_000;

/// A path with `.` and `..` resolved. Symbolic links are not resolved, because this crate does not
/// access files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgumentLocation {
    absolute: bool,
    names: Vec<String>,
}

/// Hosts that a URL may have.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    hosts: Vec<String>,
    subdomains: bool,
}

impl ArgumentLocation {
    /// Whether a path is the folder or inside it.
    ///
    /// The result is unclear where servers may differ: a relative path for an absolute folder, `~`,
    /// backslashes, URL escapes, a difference in case alone.
    pub(super) fn holds(&self, path: &str) -> Truth {
        let path = match path.strip_prefix("file://") {
            Some(rest) if rest.starts_with('/') && !rest.contains(['?', '#']) => rest,
            Some(_) => return Truth::Unclear,
            None => path,
        };
        let odd = |character: char| matches!(character, '\\' | '%') || character.is_control();
        if path.is_empty() || path.starts_with('~') || path.contains(odd) {
            return Truth::Unclear;
        }
        let location = Self::read(path).filter(|location| location.absolute == self.absolute);
        let Some(location) = location else {
            return Truth::Unclear;
        };
        if location.names.len() < self.names.len() {
            return Truth::No;
        }
        let pairs = || self.names.iter().zip(&location.names);
        if pairs().all(|(wanted, found)| wanted == found) {
            Truth::Yes
        } else if pairs().all(|(wanted, found)| wanted.to_lowercase() == found.to_lowercase()) {
            Truth::Unclear
        } else {
            Truth::No
        }
    }

    /// Reads a path, or `None` if it leads out of its own start.
    pub(super) fn read(text: &str) -> Option<Self> {
        let absolute = text.starts_with('/');
        let mut names: Vec<String> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                // Above the root is the root. Above a relative start is unknown.
                ".." => {
                    if names.pop().is_none() && !absolute {
                        return None;
                    }
                }
                name => names.push(name.to_owned()),
            }
        }
        Some(Self { absolute, names })
    }
}

impl Hosts {
    /// Reads a host or a list of hosts.
    pub(super) fn new(operand: &Value, subdomains: bool) -> Option<Self> {
        let one = std::slice::from_ref(operand);
        let listed = operand.as_array().map_or(one, Vec::as_slice);
        if !(1..=MAX_HOSTS).contains(&listed.len()) {
            return None;
        }
        let hosts = listed
            .iter()
            .map(|host| Some(normal(&Host::parse(host.as_str()?).ok()?.to_string())))
            .collect::<Option<_>>()?;
        Some(Self { hosts, subdomains })
    }

    /// Whether a text is a URL with one of the hosts.
    ///
    /// Parsers disagree on user names, backslashes and blanks in URLs, so these are unclear. A text
    /// that is no URL is unclear too.
    pub(super) fn judge(&self, text: &str) -> Truth {
        let odd = |character: char| {
            character == '\\' || character.is_whitespace() || character.is_control()
        };
        let Ok(url) = Url::parse(text) else { return Truth::Unclear };
        let plain = url.username().is_empty() && url.password().is_none() && !text.contains(odd);
        let Some(host) = url.host_str().filter(|_| plain) else { return Truth::Unclear };
        // `example.com` can be written with `%` or in full-width letters, which only some programs
        // decode.
        let host = normal(host);
        let certain = text.to_lowercase().contains(&host);
        if !self.hosts.iter().any(|wanted| self.fits(wanted, &host)) {
            return Truth::No;
        }
        if certain { Truth::Yes } else { Truth::Unclear }
    }

    fn fits(&self, wanted: &str, host: &str) -> bool {
        let below = || host.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'));
        host == wanted || (self.subdomains && below())
    }
}

fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_worked_out() {
        let folder = ArgumentLocation::read("/home/ada/./project/").unwrap();
        for inside in
            ["/home/ada/project", "/home/ada/project/a/../b", "file:///home/ada/project/x"]
        {
            assert_eq!(folder.holds(inside), Truth::Yes, "{inside}");
        }
        for outside in ["/home/ada/project/../secret", "/home/ada/project2", "/", "/home/ada//x"] {
            assert_eq!(folder.holds(outside), Truth::No, "{outside}");
        }
        for unclear in [
            "project/x",
            "~/project",
            "../home/ada/project",
            "/HOME/ada/project",
            "",
            "/home\\ada",
            "file:///home/ada/project/%2e%2e/x",
            "/home/ada/project/%2e%2e/%2e%2e/x",
            "file://host/home/ada/project",
            "/home/ada/project\0",
        ] {
            assert_eq!(folder.holds(unclear), Truth::Unclear, "{unclear}");
        }
    }

    #[test]
    fn a_relative_folder_holds_relative_paths() {
        let folder = ArgumentLocation::read("docs").unwrap();
        assert_eq!(folder.holds("./docs/a"), Truth::Yes);
        assert_eq!(folder.holds("docs/../src"), Truth::No);
        assert_eq!(folder.holds("../docs"), Truth::Unclear);
        assert_eq!(folder.holds("/docs"), Truth::Unclear);
        assert_eq!(ArgumentLocation::read("a/../.."), None);
    }

    #[test]
    fn hosts_are_those_of_the_url() {
        let hosts =
            |subdomains| Hosts::new(&json!(["Example.com", "10.0.0.1"]), subdomains).unwrap();
        let judge = |text: &str| hosts(false).judge(text);
        assert_eq!(judge("https://EXAMPLE.com:8443/x?y"), Truth::Yes);
        assert_eq!(judge("https://example.com./"), Truth::Yes);
        assert_eq!(judge("http://10.0.0.1/"), Truth::Yes);
        assert_eq!(judge("https://api.example.com/"), Truth::No);
        assert_eq!(judge("https://evil.test/example.com"), Truth::No);
        assert_eq!(hosts(true).judge("https://api.example.com/"), Truth::Yes);
        assert_eq!(hosts(true).judge("https://notexample.com/"), Truth::No);
        for unclear in [
            "https://example.com@evil.test/",
            "https://example.com\\@evil.test/",
            "example.com/x",
            "https://exa\nmple.com/",
            "http://167772161/",
            "https://ex%61mple.com/",
            "mailto:a@example.com",
        ] {
            assert_eq!(judge(unclear), Truth::Unclear, "{unclear}");
        }
    }

    proptest! {
        #[test]
        fn what_is_certainly_inside_stays_inside_however_it_is_joined(
            parts in proptest::collection::vec(prop_oneof![Just(".."), Just("."), Just("a"), Just("")], 0..12)
        ) {
            // Compare with the standard library, which walks the components itself.
            let path = format!("/base/{}", parts.join("/"));
            let mut walked = std::path::PathBuf::new();
            for part in std::path::Path::new(&path).components() {
                match part {
                    std::path::Component::ParentDir => { walked.pop(); }
                    other => walked.push(other),
                }
            }
            let inside = walked.starts_with("/base");
            let truth = ArgumentLocation::read("/base").unwrap().holds(&path);
            prop_assert_eq!(truth, Truth::from(inside), "{}", path);
        }
    }
}
