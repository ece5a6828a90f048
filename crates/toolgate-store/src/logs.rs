//! The logs of servers: their stderr, in two files of limited size.

use std::{
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::PathBuf,
    time::Duration,
};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat};

use crate::{StoreError, files};

/// A log file is renamed when it reaches this size. One older file is kept.
pub const MAX_LOG_BYTES: u64 = 512 * 1024;

const MAX_LINE_CHARACTERS: usize = 4096;

/// The log of one server: at most two files of [`MAX_LOG_BYTES`].
#[derive(Debug, Clone)]
pub struct ServerLog {
    path: PathBuf,
}

/// The source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    /// The server's stderr.
    Stderr,
    /// A line on the server's stdout that is no message.
    Stdout,
    /// A message of toolgate's own, such as that the server stopped and why.
    Toolgate,
}

impl ServerLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds a line. Control characters are made visible, and a very long line is cut.
    pub fn append(&self, source: LogSource, line: &str) -> Result<(), StoreError> {
        self.write(&render(source, line)).map_err(|error| StoreError::new(&self.path, error))
    }

    /// Adds several lines, with few writes.
    pub(crate) fn append_all<'a>(&self, lines: impl Iterator<Item = (LogSource, &'a str)>) {
        const PIECE: usize = 64 * 1024;
        let mut piece = String::new();
        for (source, line) in lines {
            piece.push_str(&render(source, line));
            if piece.len() >= PIECE {
                // A line that cannot be written is lost; there is nowhere else to report it.
                let _ = self.write(&piece);
                piece.clear();
            }
        }
        let _ = self.write(&piece);
    }

    /// The last `lines` lines, oldest first.
    pub fn tail(&self, lines: usize) -> io::Result<Vec<String>> {
        let mut text = read_or_empty(&self.older())?;
        text.push_str(&read_or_empty(&self.path)?);
        let all: Vec<&str> = text.lines().collect();
        Ok(all[all.len().saturating_sub(lines)..].iter().map(ToString::to_string).collect())
    }

    /// Changes when the log does: how many bytes there are, and of which file.
    pub fn stamp(&self) -> (u64, u64) {
        let length = |path: &PathBuf| fs::metadata(path).map(|file| file.len()).unwrap_or_default();
        (length(&self.path), length(&self.older()))
    }

    fn write(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent()
            && !folder.exists()
        {
            files::make_folder(folder).map_err(|error| error.source)?;
        }
        let mut file = files::private_options().append(true).create(true).open(&self.path)?;
        if file.seek(SeekFrom::End(0))? + line.len() as u64 > MAX_LOG_BYTES {
            fs::rename(&self.path, self.older())?;
            file = files::private_options().append(true).create(true).open(&self.path)?;
        }
        // One write a line: lines of several processes do not mix.
        file.write_all(line.as_bytes())
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("log.1")
    }
}

fn read_or_empty(path: &PathBuf) -> io::Result<String> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES * 2).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn render(source: LogSource, line: &str) -> String {
    let mark = match source {
        LogSource::Stderr => "",
        LogSource::Stdout => "[stdout] ",
        LogSource::Toolgate => "[toolgate] ",
    };
    let mut text = format!("{} {mark}", utc(crate::since_epoch().as_secs()));
    for (index, character) in line.trim_end().chars().enumerate() {
        if index == MAX_LINE_CHARACTERS {
            text.push('…');
            break;
        }
        if character.is_control() && character != '\t' {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text.push('\n');
    text
}

/// Seconds since 1970 as `2026-11-15T22:06:11Z`.
pub fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.unwrap_or(DateTime::<chrono::Utc>::MAX_UTC).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The time that a person means, in seconds since 1970: how long ago it is (`30m`, `12h`, `7d`), a day, or a time, in UTC. A
/// day has a beginning and an end, any other time is both.
pub fn named_time(text: &str, now: u64) -> Option<Range<u64>> {
    const DAY: u64 = 24 * 60 * 60;
    let text = text.trim();
    if let Some(ago) = duration(text) {
        let time = now.saturating_sub(ago.as_secs());
        return Some(time..time);
    }
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        let start = u64::try_from(day.and_time(NaiveTime::MIN).and_utc().timestamp()).ok()?;
        return Some(start..start + DAY);
    }
    let text = text.replacen(' ', "T", 1);
    let formats = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let read =
        |format: &&str| NaiveDateTime::parse_from_str(text.trim_end_matches('Z'), format).ok();
    let time = formats.iter().find_map(read)?;
    let time = u64::try_from(time.and_utc().timestamp()).ok()?;
    Some(time..time)
}

/// A length of time: a number and `s`, `m`, `h` or `d`.
pub fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn times_are_in_utc() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_794_780_371), "2026-11-15T22:06:11Z");
        let named = |text: &str| named_time(text, 1_794_780_371);
        let at = |time: u64| Some(time..time);
        assert_eq!(named("2026-11-15T22:06:11Z"), at(1_794_780_371));
        assert_eq!(named("2026-11-15 22:06"), at(1_794_780_360));
        assert_eq!((named("30m"), named(" 1d")), (at(1_794_778_571), at(1_794_693_971)));
        let day = named("2026-11-15").unwrap();
        let ends = [utc(day.start), utc(day.end)];
        assert_eq!(ends, ["2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z"]);
        for wrong in
            ["yesterday", "", "7", "7w", "-5m", "1h30m", "ü", "2026-02-30", "99999999999999999d"]
        {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_come_back_in_order_and_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let log = Store::new(folder.path()).log("../../etc/passwd");
        assert!(log.tail(10).unwrap().is_empty());
        log.append(LogSource::Stderr, "first\u{1b}[31m").unwrap();
        log.append(LogSource::Toolgate, "stopped").unwrap();
        let tail = log.tail(10).unwrap();
        assert!(tail[0].ends_with(r"first\u{1b}[31m"), "{tail:?}");
        assert!(tail[1].ends_with("[toolgate] stopped"));
        assert_eq!(log.tail(1).unwrap().len(), 1);
        assert!(log.path.starts_with(folder.path()));
    }

    #[test]
    fn the_log_never_outgrows_its_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let log = Store::new(folder.path()).log("noisy");
        for index in 0..600 {
            log.append(LogSource::Stderr, &format!("{index} {}", "x".repeat(5000))).unwrap();
        }
        let total: u64 = fs::read_dir(log.path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(total <= 2 * MAX_LOG_BYTES, "{total}");
        assert!(log.tail(1).unwrap()[0].contains(" 599 x"));
    }
}
