//! Points in time, without a clock.

use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

/// The time at which the whole demo takes place. Data is from before it; what a client creates
/// is dated just after it.
pub const NOW: &str = "2026-10-15T09:30:00Z";

/// [`NOW`] as seconds; a test compares the two.
const NOW_SECONDS: i64 = 1_792_056_600;
const DAY: i64 = 86_400;

/// Seconds since 1970 in UTC, for years 1970 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

impl Moment {
    /// The demo's present.
    pub(crate) const fn now() -> Self {
        Self(NOW_SECONDS)
    }

    /// The time so many seconds after 1970.
    pub(crate) const fn from_seconds(seconds: i64) -> Self {
        Self(seconds)
    }

    /// The reverse of [`from_seconds`](Self::from_seconds).
    pub(crate) const fn seconds(self) -> i64 {
        self.0
    }

    /// This many seconds later, or earlier where negative.
    pub(crate) const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// This many days later.
    pub(crate) const fn plus_days(self, days: i64) -> Self {
        self.plus(days.saturating_mul(DAY))
    }

    /// The date alone, as `YYYY-MM-DD`.
    pub(crate) fn date(self) -> String {
        self.formatted("%Y-%m-%d")
    }

    fn formatted(self, format: &str) -> String {
        let time: DateTime<Utc> = DateTime::from_timestamp(self.0, 0).unwrap_or_default();
        time.format(format).to_string()
    }

    /// Reads a date, or a date and time with `Z` or an offset, as programs write them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let seconds = if text.len() == 10 {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            date.and_time(NaiveTime::MIN).and_utc().timestamp()
        } else if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            time.timestamp()
        } else {
            let format =
                if text.contains('T') { "%Y-%m-%dT%H:%M:%S%.f" } else { "%Y-%m-%d %H:%M:%S%.f" };
            NaiveDateTime::parse_from_str(text, format).ok()?.and_utc().timestamp()
        };
        (seconds >= 0).then_some(Self(seconds))
    }

    /// Reads a moment, or a duration back from the demo's present: `90m`, `6h`, `2d`.
    pub(crate) fn parse_since(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| parse_duration(text).map(|seconds| Self::now().plus(-seconds)))
    }
}

/// Prints as `2026-10-15T09:30:00Z`.
impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.formatted("%Y-%m-%dT%H:%M:%SZ"))
    }
}

/// Reads `45s`, `90m`, `6h`, `2d` or `1w` as seconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        b'd' => DAY,
        b'w' => 7 * DAY,
        _ => return None,
    };
    let count: u32 = text[..text.len() - 1].parse().ok()?;
    // A century is more than any demo data goes back, and keeps the year in four digits.
    (count <= 36_500).then(|| i64::from(count).saturating_mul(unit).min(36_500 * DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_is_the_present() {
        assert_eq!(Moment::now().to_string(), NOW);
        assert_eq!(Moment::parse(NOW), Some(Moment::now()));
    }

    #[test]
    fn every_day_of_a_century_goes_there_and_back() {
        for day in 0..36_525 {
            let moment = Moment(day * DAY + 3_723);
            assert_eq!(Moment::parse(&moment.to_string()), Some(moment));
        }
        assert_eq!(Moment(951_782_400).date(), "2000-02-29");
    }

    #[test]
    fn reads_what_programs_write() {
        for text in ["2026-10-15T09:30:00.000Z", "2026-10-15T11:30:00+02:00", "2026-10-15 09:30:00"]
        {
            assert_eq!(Moment::parse(text), Some(Moment::now()), "{text}");
        }
        assert_eq!(
            Moment::parse("2026-10-15").map(|moment| moment.to_string()).as_deref(),
            Some("2026-10-15T00:00:00Z")
        );
        assert_eq!(Moment::parse_since("90m"), Some(Moment::now().plus(-5_400)));
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "x",
            "2026-13-01",
            "2026-02-30",
            "2026-10-15T",
            "2026-10-15T25:00:00Z",
            "1h",
            "é",
            "2026-10-15T09:30:00.Z",
            "2026-10-15T09:30:00+2",
            "2026-10-15T09:30",
            "２０２６-10-15",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        for text in ["", "h", "-1h", "1y", "99999999999h", "é"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
