//! Conditions about paths and hosts, which servers parse in different ways.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use serde_json::Value;
use url::{Host, Url};

use super::Truth;

const MAX_HOSTS: usize = 1_000;
/// What a shell expands in a path.
const EXPANDED: [char; 6] = ['*', '?', '[', '{', '$', '`'];

/// A path with `.` and `..` resolved. [`real`] resolves symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgumentLocation {
    absolute: bool,
    names: Vec<String>,
}

/// Hosts that a URL may have.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    names: Vec<String>,
    subdomains: bool,
    schemes: Vec<String>,
}

/// Why the symbolic links of a path could not be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfollowed {
    /// The path is relative, and the folder of the server is not known.
    Relative,
    /// The path does not exist on this machine.
    Absent,
    /// This machine does not say where the path leads.
    Failed,
}

impl ArgumentLocation {
    /// Whether a path is the folder or inside it.
    ///
    /// The result is unclear where servers may differ: a relative path for an absolute folder, `~`,
    /// backslashes, URL escapes, a difference in case alone. It is unclear too where symbolic links
    /// of this machine lead into the folder or out of it.
    ///
    /// A shell or a server may expand `*`, `?`, `[`, `{`, `$` and a backtick, and find what a link leads
    /// to. So a path with one of them is clear only if a file of this machine has this name, or if only
    /// the last name outside of the folder has them.
    pub(super) fn holds(&self, path: &str) -> Truth {
        let Some(path) = without_scheme(path) else { return Truth::Unclear };
        let written = match self.holds_written(path) {
            Truth::Yes if path.contains(EXPANDED) && !is_there(path) => Truth::Unclear,
            Truth::No if is_expanded_early(path) && !is_there(path) => Truth::Unclear,
            written => written,
        };
        if !self.absolute || !path.starts_with('/') || written == Truth::Unclear {
            return written;
        }
        // Some servers resolve `..` before they follow links, others after.
        let normal = Self::read(path).map(|place| place.to_string()).unwrap_or_default();
        let Ok(folder) = real(&self.to_string()) else { return Truth::Unclear };
        let is_inside = |path: &str| real(path).map(|(path, _)| path.starts_with(&folder.0));
        match (is_inside(path), is_inside(&normal)) {
            (Ok(one), Ok(two)) if one == two && Truth::from(one) == written => written,
            _ => Truth::Unclear,
        }
    }

    /// Why the symbolic links of a path cannot be followed, if so.
    pub(super) fn unfollowed(&self, path: &str) -> Option<Unfollowed> {
        let path = without_scheme(path)?;
        if !self.absolute || !path.starts_with('/') {
            return Some(Unfollowed::Relative);
        }
        match real(path) {
            Ok((_, true)) => None,
            Ok((_, false)) => Some(Unfollowed::Absent),
            Err(_) => Some(Unfollowed::Failed),
        }
    }

    /// Like [`Self::holds`], by the letters alone.
    fn holds_written(&self, path: &str) -> Truth {
        let odd = |character: char| matches!(character, '\\' | '%') || character.is_control();
        if path.is_empty() || path.starts_with('~') || path.contains(odd) {
            return Truth::Unclear;
        }
        let location = Self::read(path).filter(|location| location.absolute == self.absolute);
        let Some(location) = location else {
            return Truth::Unclear;
        };
        let pairs = || self.names.iter().zip(&location.names);
        // A shell or a server may replace `/e?c` with `/etc`.
        let differs = pairs().find(|(wanted, found)| wanted != found);
        if differs.is_some_and(|(_, found)| found.contains(EXPANDED)) {
            return Truth::Unclear;
        }
        if location.names.len() < self.names.len() {
            return Truth::No;
        }
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

impl std::fmt::Display for ArgumentLocation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let root = if self.absolute { "/" } else { "" };
        write!(formatter, "{root}{}", self.names.join("/"))
    }
}

impl std::fmt::Display for Unfollowed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Relative => {
                "is relative to a folder that toolgate does not know, so its links were not followed"
            }
            Self::Absent => {
                "is not on this machine, so links that the server finds there were not followed"
            }
            Self::Failed => "has links that toolgate cannot follow",
        })
    }
}

/// The path of a `file` URL of this machine, or the path itself. `None` is another URL.
fn without_scheme(path: &str) -> Option<&str> {
    let is_letter =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
    let Some((scheme, rest)) = path.split_once(':') else { return Some(path) };
    if !scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        || !scheme.chars().all(is_letter)
    {
        return Some(path);
    }
    let rest = rest.strip_prefix("//").filter(|_| scheme == "file")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    Some(rest).filter(|rest| rest.starts_with('/') && !rest.contains(['?', '#']))
}

/// Whether a file of this machine has this name, letter by letter.
fn is_there(path: &str) -> bool {
    path.starts_with('/') && real(path).is_ok_and(|(_, exists)| exists)
}

/// Whether something before the last name of a path is expanded, so that it may lead elsewhere.
fn is_expanded_early(path: &str) -> bool {
    let before = path.trim_end_matches('/').rsplit_once('/').map_or("", |(before, _)| before);
    before.contains(EXPANDED)
}

/// Where an absolute path leads on this machine, with all symbolic links followed, and whether it
/// exists. The part that does not exist stays as it is written.
fn real(path: &str) -> io::Result<(PathBuf, bool)> {
    let (mut found, mut exists) = (PathBuf::from("/"), true);
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => {
                found.pop();
                continue;
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => continue,
        }
        match fs::symlink_metadata(&found) {
            // A link to nothing is an error: a server may create what it leads to.
            Ok(metadata) if metadata.is_symlink() => found = fs::canonicalize(&found)?,
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                exists = false;
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, exists))
}

impl Hosts {
    /// Reads a host or a list of hosts.
    pub(super) fn new(operand: &Value, subdomains: bool, schemes: Vec<String>) -> Option<Self> {
        let one = std::slice::from_ref(operand);
        let listed = operand.as_array().map_or(one, Vec::as_slice);
        if !(1..=MAX_HOSTS).contains(&listed.len()) {
            return None;
        }
        let names = listed
            .iter()
            .map(|host| Some(normal(&Host::parse(host.as_str()?).ok()?).0))
            .collect::<Option<_>>()?;
        Some(Self { names, subdomains, schemes })
    }

    /// Whether a text is a URL with one of the hosts.
    ///
    /// Parsers disagree on user names, backslashes and blanks in URLs, so these are unclear. A text
    /// that is no URL is unclear too, and so is a URL with another scheme.
    pub(super) fn judge(&self, text: &str) -> Truth {
        let odd = |character: char| {
            character == '\\' || character.is_whitespace() || character.is_control()
        };
        let Ok(url) = Url::parse(text) else { return Truth::Unclear };
        let plain = url.username().is_empty() && url.password().is_none() && !text.contains(odd);
        let Some(host) = url.host().filter(|_| plain) else { return Truth::Unclear };
        let (host, is_mapped) = normal(&host);
        // Some programs make several hosts of `{one,two}.test`.
        let is_host = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
        if !host.chars().all(is_host) {
            return Truth::Unclear;
        }
        let is_meant = self.schemes.iter().any(|scheme| scheme == url.scheme());
        // `example.com` can be written with `%` or in full-width letters, which only some programs
        // decode.
        let certain = is_meant && !is_mapped && text.to_lowercase().contains(&host);
        if !self.names.iter().any(|wanted| self.fits(wanted, &host)) {
            return Truth::No;
        }
        if certain { Truth::Yes } else { Truth::Unclear }
    }

    fn fits(&self, wanted: &str, host: &str) -> bool {
        let below = || host.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'));
        host == wanted || (self.subdomains && below())
    }
}

/// The host in one spelling, and whether it is an IPv4 address that is written as an IPv6 address.
fn normal<S: AsRef<str>>(host: &Host<S>) -> (String, bool) {
    match host {
        Host::Domain(name) => {
            let name = name.as_ref();
            (name.strip_suffix('.').unwrap_or(name).to_lowercase(), false)
        }
        Host::Ipv4(address) => (address.to_string(), false),
        Host::Ipv6(address) => match address.to_ipv4_mapped() {
            Some(address) => (address.to_string(), true),
            None => (format!("[{address}]"), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_worked_out() {
        let folder = ArgumentLocation::read("/home/ada/./project/").unwrap();
        for inside in [
            "/home/ada/project",
            "/home/ada/project/a/../b",
            "file:///home/ada/project/x",
            "file://localhost/home/ada/project/x",
        ] {
            assert_eq!(folder.holds(inside), Truth::Yes, "{inside}");
        }
        for outside in [
            "/home/ada/project/../secret",
            "/home/ada/project2",
            "/",
            "/home/ada//x",
            "/srv/[id].ts",
            "file:///etc/passwd",
        ] {
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
            "file://localhost.test/home/ada/project",
            "FILE:///home/ada/project",
            "ftp:///home/ada/project",
            "/h?me/ada/project/x",
            "/{home,x}/ada/project",
            "/home/*/project",
            "/home/ada/project\0",
            "/home/ada/project/[id].ts",
            "/home/ada/project/et?/x",
            "/home/ada/project/$HOME/x",
            "/home/ada/project/{a,../../../etc}/passwd",
            "/srv/{a,../home/ada/project}/x",
            "/srv/l?nk/x",
        ] {
            assert_eq!(folder.holds(unclear), Truth::Unclear, "{unclear}");
        }
    }

    /// A shell or a server that expands patterns would find something else than what was judged.
    #[cfg(unix)]
    #[test]
    fn a_path_with_a_pattern_is_inside_only_if_a_file_has_this_name() {
        let base = std::env::temp_dir().join(format!("toolgate-pattern-{}", std::process::id()));
        let inside = base.join("inside");
        fs::create_dir_all(&inside).unwrap();
        std::os::unix::fs::symlink("/etc", inside.join("etc")).unwrap();
        fs::write(inside.join("[id].ts"), "").unwrap();
        fs::write(inside.join("Foo$Bar.class"), "").unwrap();
        let folder = ArgumentLocation::read(inside.to_str().unwrap()).unwrap();
        let judge = |name: &str| folder.holds(inside.join(name).to_str().unwrap());
        let found: Vec<(&str, Truth)> = [
            "[id].ts",
            "Foo$Bar.class",
            "[slug].ts",
            "et?/passwd",
            "[e]tc/passwd",
            "e*/passwd",
            "{etc,x}/passwd",
            "$HOME",
            "`pwd`",
            "plain.ts",
        ]
        .map(|name| (name, judge(name)))
        .to_vec();
        fs::remove_dir_all(&base).unwrap();
        for (name, truth) in found {
            let is_literal = ["[id].ts", "Foo$Bar.class", "plain.ts"].contains(&name);
            assert_eq!(truth, if is_literal { Truth::Yes } else { Truth::Unclear }, "{name}");
        }
        let relative = ArgumentLocation::read("docs").unwrap();
        assert_eq!(relative.holds("docs/*/x"), Truth::Unclear);
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
        let hosts = |subdomains| {
            let schemes = vec!["http".to_owned(), "https".to_owned()];
            Hosts::new(&json!(["Example.com", "10.0.0.1"]), subdomains, schemes).unwrap()
        };
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
            "ftp://example.com/x",
            "gopher://example.com/",
            "file://example.com/etc/passwd",
            "http://{evil.test,example.com}/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::ffff:a00:1]/",
        ] {
            assert_eq!(judge(unclear), Truth::Unclear, "{unclear}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_of_this_machine_are_followed() {
        let base = std::env::temp_dir().join(format!("toolgate-under-{}", std::process::id()));
        let (inside, outside) = (base.join("inside"), base.join("outside"));
        for folder in [inside.join("deep"), outside.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        let link = |to: &Path, at: PathBuf| std::os::unix::fs::symlink(to, at).unwrap();
        link(&outside, inside.join("out"));
        link(&inside.join("deep"), inside.join("in"));
        link(&inside, base.join("alias"));
        link(&base.join("nothing"), inside.join("dangling"));
        let folder = ArgumentLocation::read(inside.to_str().unwrap()).unwrap();
        let judge = |path: &str| folder.holds(base.join(path).to_str().unwrap());
        let found = [
            "inside/a",
            "inside/new/a",
            "inside/in/a",
            "inside/in/../a",
            "outside/a",
            "inside/out",
            "inside/out/id_rsa",
            "inside/out/../x",
            "alias/a",
            "inside/dangling",
            "inside/dangling/a",
        ]
        .map(|path| format!("{path}: {:?}", judge(path)));
        let through = ArgumentLocation::read(base.join("alias").to_str().unwrap()).unwrap();
        assert_eq!(through.holds(base.join("alias/a").to_str().unwrap()), Truth::Yes);
        assert_eq!(folder.unfollowed(inside.to_str().unwrap()), None);
        assert_eq!(folder.unfollowed(inside.join("a").to_str().unwrap()), Some(Unfollowed::Absent));
        assert_eq!(folder.unfollowed("inside"), Some(Unfollowed::Relative));
        assert_eq!(
            folder.unfollowed(inside.join("dangling").to_str().unwrap()),
            Some(Unfollowed::Failed)
        );
        fs::remove_dir_all(&base).unwrap();
        insta::assert_snapshot!(found.join("\n"), @"
        inside/a: Yes
        inside/new/a: Yes
        inside/in/a: Yes
        inside/in/../a: Yes
        outside/a: No
        inside/out: Unclear
        inside/out/id_rsa: Unclear
        inside/out/../x: Unclear
        alias/a: Unclear
        inside/dangling: Unclear
        inside/dangling/a: Unclear
        ");
    }

    proptest! {
        #[test]
        fn a_path_that_is_certainly_inside_stays_inside_when_joined(
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
