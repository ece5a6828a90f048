//! Words that say nothing of where they are from: those of messages that every server sends, and
//! points in time.
//!
//! "No results found", a rate limit and the time of day are in the results of many tools and in
//! arguments that were written without reading any of them. A piece of a result that has hardly
//! anything else is not stored.

use std::{collections::HashSet, sync::LazyLock};

use crate::winnow::PIECE;

/// A piece is stored if so many of its bytes are of words that are not generic.
const SPECIFIC: usize = 5;

/// The words of messages, without those that name a thing.
const WORDS: &str = "\
    a about above according after again all allowed already also an and another any api are as at \
    available bad be because been before below between but by call can cannot check code complete \
    completed connection contact continue could created data deleted denied did disabled do does \
    done each empty enabled ended error errors every exceeded exception exist exists expired fail \
    failed failure false few first following for forbidden found from given got has have he her \
    here hit how http https id if in info internal into invalid is it item items its json key last \
    later less limit limited limits list loaded many match matched matches matching message \
    messages method missing more most must my name new next no none not nothing now null of ok on \
    once one only operation or other our out output over page pages parameter per permission \
    please previous processed processing query quota rate reached received record records refused \
    rejected remaining request requests required reset resource response result results retry \
    retrying return returned row rows saved search second seconds see sent server service she \
    should shown since some something started status stopped success successful successfully \
    temporarily than that the their them then there these they this those throttled time timed \
    timeout to too total true try type unable unauthorized unavailable undefined unexpected \
    unknown until up updated us use used user users using valid value values wait was we were what \
    when where which while will with within without wrong you your zero \
    minute minutes hour hours day days week weeks month months year years today yesterday tomorrow \
    millisecond milliseconds ms sec secs min mins am pm utc gmt est edt cst cdt mst mdt pst pdt cet \
    cest bst ist jst \
    mon tue tues wed thu thur thurs fri sat sun monday tuesday wednesday thursday friday saturday \
    sunday jan feb mar apr may jun jul aug sep sept oct nov dec january february march april june \
    july august september october november december 1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th";

static GENERIC: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split_whitespace().collect());

/// Whether a word says nothing of where it is from.
pub(crate) fn is_generic(word: &str) -> bool {
    const LONGEST: usize = 64;
    if word.len() > LONGEST || !word.is_ascii() {
        return false;
    }
    if is_time(word) {
        return true;
    }
    let lower = word.to_ascii_lowercase();
    let mut parts = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    parts.all(|part| part.is_empty() || GENERIC.contains(part) || is_small_number(part))
        // `1,234,567` is a number of its own.
        && lower.bytes().filter(u8::is_ascii_digit).count() <= 3
}

/// A number that counts things, and no number of a thing. A year is none either.
fn is_small_number(part: &str) -> bool {
    part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a point in time: a date, a time of day, both, a year, or seconds since 1970.
pub(crate) fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || digits > 27 {
        return false;
    }
    if is_unix_time(word) || is_year(word) {
        return true;
    }
    let is_part = |byte: u8| byte.is_ascii_digit() || b"-.:,+/TtZz".contains(&byte);
    if !word.bytes().all(is_part) {
        return false;
    }
    let groups: Vec<&str> = word
        .split(|letter: char| !letter.is_ascii_digit())
        .filter(|group| !group.is_empty())
        .collect();
    let is_clock = |groups: &[&str]| {
        groups.len() >= 2 && groups.iter().take(3).all(|group| group.len() <= 2 && below(group, 60))
    };
    match groups.as_slice() {
        // 2026-11-16, 2026-11-16T10:00:00.123+01:00
        [year, month, day, rest @ ..] if is_year(year) && word.contains('-') => {
            below(month, 13) && below(day, 32) && rest.len() <= 6
        }
        // 20261116T100000Z
        [date, time] if word.contains(['T', 't']) && date.len() == 8 => {
            is_year(&date[..4]) && matches!(time.len(), 4 | 6)
        }
        // 16.11.2026
        [day, month, year] if is_year(year) && !word.contains(':') => {
            below(day, 32) && below(month, 32)
        }
        groups => word.contains(':') && is_clock(groups),
    }
}

fn below(group: &str, limit: u32) -> bool {
    group.len() <= 2 && group.parse::<u32>().is_ok_and(|number| number < limit)
}

fn is_year(group: &str) -> bool {
    group.len() == 4
        && group.bytes().all(|byte| byte.is_ascii_digit())
        && (group.starts_with("19") || group.starts_with("20"))
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, from 2017 to 2036.
fn is_unix_time(word: &str) -> bool {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = matches!(whole.len(), 10 | 13 | 16 | 19);
    let is_whole = is_whole && is_number(whole) && is_number(fraction);
    let seconds = whole.get(..10).and_then(|seconds| seconds.parse::<u64>().ok());
    is_whole && seconds.is_some_and(|seconds| (1_480_000_000..2_100_000_000).contains(&seconds))
}

/// For each piece of a reduced text, whether it is to be stored. `specific` says which bytes are of
/// words that are not generic.
pub(crate) fn specific_pieces(specific: &[bool]) -> Vec<bool> {
    let mut count = 0;
    let mut pieces = Vec::with_capacity(specific.len());
    for (at, is_specific) in specific.iter().enumerate() {
        count += usize::from(*is_specific);
        if at >= PIECE {
            count -= usize::from(specific[at - PIECE]);
        }
        if at + 1 >= PIECE {
            pieces.push(count >= SPECIFIC);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_known() {
        for time in [
            "2026-11-16",
            "2026-11-16T10:00:00Z",
            "2026-11-16T10:00:00.123456+01:00",
            "20261116T100000Z",
            "16.11.2026",
            "10:42",
            "10:42:07.331",
            "1763287200",
            "1763287200123",
            "1763287200.5",
            "2026",
        ] {
            assert!(is_time(time) && is_generic(time), "{time}");
        }
        for other in ["DE-4471-9920", "48,200", "4471.9920", "9917632872", "7741-9920", "41.70"] {
            assert!(!is_time(other), "{other}");
        }
        assert!(!is_generic("48,200") && !is_generic("4471") && !is_generic("Lovelace"));
        assert!(is_generic("Not") && is_generic("rate-limit") && is_generic("60"));
    }
}
