//! The variables that every server gets.
//!
//! A server does not inherit toolgate's variables, because they contain secrets of other servers
//! and of the user.

/// What a program needs to find its files, the network and its language.
const BASE: &[&str] = &[
    // The user, and where programs and files are.
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    // The language and the time zone; those that begin with `LC_` come with them.
    "LANG",
    "LANGUAGE",
    "TZ",
    // Proxies, in both spellings.
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // Certificates.
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Windows cannot start a program without some of these.
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Whether every server gets this variable, if it is set.
pub fn is_base_variable(name: &str) -> bool {
    let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    name.starts_with("LC_") || BASE.contains(&name.as_str())
}

/// The variables that every server gets, as far as they are set.
#[cfg(feature = "client")]
pub(crate) fn base() -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_base_variable))
}
