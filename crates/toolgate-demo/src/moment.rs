//! Points in time, without a clock.

use std::fmt;

/// The time at which the whole demo takes place. Data is from before it; what a client creates
/// is dated just after it.
pub const NOW: &str = "2026-10-15T09:30:00Z";

/// [`NOW`] as seconds; a test keeps the two together.
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

    /// This many seconds later, or earlier where negative.
    pub(crate) const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// This many days later.
    pub(crate) const fn plus_days(self, days: i64) -> Self {
        self.plus(days.saturating_mul(DAY))
    }

    /// Whole seconds from `earlier` until this.
    pub(crate) const fn seconds_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// The date alone, as `YYYY-MM-DD`.
    pub(crate) fn date(self) -> String {
        let (year, month, day) = civil(self.0.div_euclid(DAY));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Reads a date, or a date and time with `Z` or an offset, as programs write them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let year = digits(bytes, 0, 4)?;
        let month = digits(bytes, 5, 2)?;
        let day = digits(bytes, 8, 2)?;
        let separated = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
        if !separated || year < 1970 || !(1..=12).contains(&month) {
            return None;
        }
        let days = days_from_civil(year, month, day);
        if civil(days) != (year, month, day) {
            return None;
        }
        let Some(time) = bytes.get(10..).filter(|rest| !rest.is_empty()) else {
            return Some(Self(days * DAY));
        };
        let (hour, minute, second) =
            (digits(time, 1, 2)?, digits(time, 4, 2)?, digits(time, 7, 2)?);
        let separated = matches!(time[0], b'T' | b't' | b' ') && time[3] == b':' && time[6] == b':';
        if !separated || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let fraction = time[9..].first().is_some_and(|byte| *byte == b'.');
        let digits_of_fraction = if fraction {
            time[10..].iter().take_while(|byte| byte.is_ascii_digit()).count()
        } else {
            0
        };
        if fraction && digits_of_fraction == 0 {
            return None;
        }
        let zone = &time[9 + usize::from(fraction) + digits_of_fraction..];
        let offset = match zone {
            b"" | b"Z" | b"z" => 0,
            [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
                let seconds = digits(zone, 1, 2)? * 3_600 + digits(zone, 4, 2)? * 60;
                if *sign == b'+' { seconds } else { -seconds }
            }
            _ => return None,
        };
        Some(Self(days * DAY + hour * 3_600 + minute * 60 + second - offset))
    }

    /// Reads a moment, or a duration back from the demo's present: `90m`, `6h`, `2d`.
    pub(crate) fn parse_since(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| parse_duration(text).map(|seconds| Self::now().plus(-seconds)))
    }
}

/// Prints as `2026-10-15T09:30:00Z`.
impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.0.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(formatter, "{}T{hour:02}:{minute:02}:{second:02}Z", self.date())
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

fn digits(bytes: &[u8], start: usize, count: usize) -> Option<i64> {
    bytes.get(start..start + count)?.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// Days from 1970-01-01, with years that start in March so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    // An estimate of the March-based year that is at most one too high, then corrected.
    let shifted = days + 719_468;
    let mut year = (shifted * 400).div_euclid(146_097);
    let start =
        |year: i64| year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    while start(year) > shifted {
        year -= 1;
    }
    while start(year + 1) <= shifted {
        year += 1;
    }
    let day_of_year = shifted - start(year);
    let month = (day_of_year * 5 + 2) / 153;
    let day = day_of_year - (month * 153 + 2) / 5 + 1;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
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
