//! Protocol versions.

/// The first version without `initialize`.
pub const MODERN: &str = "2026-07-28";
/// The newest version with `initialize`.
pub const LATEST_LEGACY: &str = "2025-11-25";
/// The version with the HTTP+SSE transport.
pub const HTTP_SSE: &str = "2024-11-05";
/// The only version with batches.
pub const BATCHES: &str = "2025-03-26";
/// All versions that toolgate speaks, oldest first.
pub const KNOWN: [&str; 5] = [HTTP_SSE, BATCHES, "2025-06-18", LATEST_LEGACY, MODERN];

/// Whether toolgate speaks `version`.
pub fn is_known(version: &str) -> bool {
    KNOWN.contains(&version)
}

/// The version that `initialize` agrees on: the requested one where it is a known legacy version,
/// else the newest legacy version.
pub fn negotiate_legacy(requested: &str) -> &'static str {
    let mut legacy = KNOWN.into_iter().filter(|version| *version < MODERN);
    legacy.find(|version| *version == requested).unwrap_or(LATEST_LEGACY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_agrees_on_a_legacy_version() {
        assert_eq!(negotiate_legacy("2025-03-26"), "2025-03-26");
        assert_eq!(negotiate_legacy(MODERN), LATEST_LEGACY);
        assert_eq!(negotiate_legacy("1.0"), LATEST_LEGACY);
        assert!(is_known(MODERN) && !is_known("2030-01-01"));
    }
}
