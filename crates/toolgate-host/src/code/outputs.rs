//! Stores texts that were too long to show, so that the rest can be read.

use std::{
    collections::{VecDeque, hash_map::RandomState},
    fmt::Write,
    hash::{BuildHasher, Hasher},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use toolgate_broker::{PriorRead, SessionContext};
use toolgate_store::{TimedKind, TimedValue, TimedValues};

use super::budget;
use crate::meta::one_line;

/// The long texts of the last runs. Each belongs to one caller.
#[derive(Debug, Default)]
pub(crate) struct OutputStore {
    stored: Mutex<VecDeque<StoredOutput>>,
    /// For the other nodes of a fleet, where the rest may be read.
    shared: Option<Arc<dyn TimedValues>>,
}

/// A text as other nodes get it.
#[derive(Serialize, Deserialize)]
struct SharedOutput {
    text: Arc<str>,
    session: Arc<str>,
    read: Arc<[PriorRead]>,
}

/// The texts of one caller.
#[derive(Clone, Copy)]
pub(crate) struct SessionOutputs<'o> {
    outputs: &'o OutputStore,
    session: &'o SessionContext,
}

#[derive(Debug)]
struct StoredOutput {
    owner: Arc<str>,
    id: String,
    text: Arc<str>,
    /// The session that made it, and what that session had read: the text may contain it.
    session: Arc<str>,
    read: Arc<[PriorRead]>,
}

/// How much of a text is read at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PageSize {
    /// What a model gets.
    Tokens(usize),
    /// What a script gets.
    Bytes(usize),
}

/// A part of a stored text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputPage {
    /// The text of the page.
    pub(crate) text: String,
    /// Where the next page begins; `None` for the last page.
    pub(crate) next: Option<usize>,
    /// The length of the whole text, in bytes.
    pub(crate) total: usize,
}

/// Why there is no page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputError {
    /// No text has this id, or it was dropped.
    Unknown,
    /// The regular expression is invalid or too large.
    Pattern(String),
}

/// How many bytes and texts are stored. The oldest is dropped first.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_STORED: usize = 200;
/// How long other nodes can read a text.
const SHARED_FOR: Duration = Duration::from_hours(1);
/// How many bytes of a line are shown around a match, if the line is longer.
const LINE_BYTES: usize = 400;
const PATTERN_SIZE: usize = 1 << 20;

impl PageSize {
    fn head(self, text: &str) -> &str {
        match self {
            Self::Tokens(tokens) => budget::head(text, tokens),
            Self::Bytes(bytes) => &text[..text.floor_char_boundary(bytes)],
        }
    }

    /// About how many bytes a page has at most.
    fn bytes(self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.saturating_mul(4),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl OutputError {
    /// What a model or a script is told.
    pub(crate) fn for_model(self, id: &str) -> String {
        match self {
            Self::Unknown => format!(
                "There is no output `{}`: only the latest outputs are kept. Repeat the call or the \
                 script with less output.",
                one_line(id, 64)
            ),
            Self::Pattern(problem) => problem,
        }
    }
}

impl OutputStore {
    /// The texts are also stored for other nodes.
    pub(crate) fn shared_in(shared: Option<Arc<dyn TimedValues>>) -> Self {
        Self { shared, ..Self::default() }
    }

    /// The texts of a session's caller.
    pub(crate) fn of<'o>(&'o self, session: &'o SessionContext) -> SessionOutputs<'o> {
        SessionOutputs { outputs: self, session }
    }
}

impl SessionOutputs<'_> {
    /// Stores a text and returns its id, which cannot be guessed.
    pub(crate) fn store(&self, text: &str) -> String {
        let id = format!("out_{:016x}", RandomState::new().build_hasher().finish());
        self.store_as(&id, text);
        id
    }

    /// Stores a text under an id, in place of the earlier one.
    pub(crate) fn store_as(&self, id: &str, text: &str) {
        let text: Arc<str> = text[..text.floor_char_boundary(MAX_BYTES)].into();
        let new = StoredOutput {
            owner: Arc::clone(&self.session.caller().identity),
            id: id.to_owned(),
            text,
            session: Arc::clone(self.session.id()),
            read: self.session.read().into(),
        };
        self.share(&new);
        self.keep(new);
    }

    /// Stores a text for other nodes. If that fails, it can be read at this one alone.
    fn share(&self, new: &StoredOutput) {
        let Some(shared) = &self.outputs.shared else { return };
        let StoredOutput { text, session, read, .. } = new;
        let output = SharedOutput {
            text: Arc::clone(text),
            session: Arc::clone(session),
            read: Arc::clone(read),
        };
        let Ok(content) = serde_json::to_string(&output) else { return };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let expires = u64::try_from((since + SHARED_FOR).as_millis()).unwrap_or(u64::MAX);
        let value = TimedValue { owner: new.owner.to_string(), content, expires };
        if let Err(error) = shared.put(TimedKind::Output, &new.id, &value) {
            tracing::debug!("{error}");
        }
    }

    /// A text that another node has stored.
    fn fetch(&self, id: &str) -> Option<Arc<str>> {
        let owner = &self.session.caller().identity;
        let content = self.outputs.shared.as_ref()?.get(TimedKind::Output, id, owner).ok()??;
        let SharedOutput { text, session, read } = serde_json::from_str(&content).ok()?;
        let (owner, id) = (Arc::clone(owner), id.to_owned());
        self.keep(StoredOutput { owner, id, text: Arc::clone(&text), session, read });
        Some(text)
    }

    fn keep(&self, new: StoredOutput) {
        let mut stored = self.outputs.stored.lock();
        stored.retain(|each| !self.has(each, &new.id));
        stored.push_back(new);
        let mut bytes: usize = stored.iter().map(|each| each.text.len()).sum();
        while (bytes > MAX_BYTES || stored.len() > MAX_STORED) && stored.len() > 1 {
            bytes -= stored.pop_front().map_or(0, |oldest| oldest.text.len());
        }
    }

    /// The page from `offset` on.
    pub(crate) fn page(
        &self,
        id: &str,
        offset: usize,
        size: PageSize,
    ) -> Result<OutputPage, OutputError> {
        let text = self.text(id)?;
        let start = text.ceil_char_boundary(offset.min(text.len()));
        let mut shown = size.head(&text[start..]);
        // At least one character is returned, so that reading makes progress.
        if shown.is_empty() {
            let end = text.ceil_char_boundary((start + 1).min(text.len()));
            shown = &text[start..end];
        }
        let end = start + shown.len();
        let next = (end < text.len()).then_some(end);
        Ok(OutputPage { text: shown.to_owned(), next, total: text.len() })
    }

    /// The lines from `offset` on that match the pattern, each with its offset. Of a long line, what is
    /// around each match.
    pub(crate) fn matches(
        &self,
        id: &str,
        pattern: &str,
        offset: usize,
        size: PageSize,
    ) -> Result<OutputPage, OutputError> {
        let text = self.text(id)?;
        let pattern = RegexBuilder::new(pattern)
            .size_limit(PATTERN_SIZE)
            .build()
            .map_err(|error| OutputError::Pattern(error.to_string()))?;
        let mut found = String::new();
        // Where each match that is shown begins: in the text, and in what is shown.
        let mut shown: Vec<(usize, usize)> = Vec::new();
        let mut next = None;
        let mut end = 0;
        'lines: for line in text.split_inclusive('\n') {
            let here = end;
            end += line.len();
            if end <= offset {
                continue;
            }
            let line = line.trim_end_matches(['\n', '\r']);
            for (at, part) in parts_with_matches(&pattern, line, offset.saturating_sub(here)) {
                if found.len() + part.len() > size.bytes() && !found.is_empty() {
                    next = Some(here + at);
                    break 'lines;
                }
                shown.push((here + at, found.len()));
                let _ = writeln!(found, "{}: {part}", here + at);
            }
        }
        // What does not fit is the beginning of the next page. The first match is shown in any case.
        let fits = size.head(&found).len();
        if fits < found.len() {
            let left_out = shown.iter().skip(1).take_while(|(_, begin)| *begin <= fits).last();
            if let Some((at, begin)) = left_out.or(shown.get(1)) {
                next = Some(*at);
                found.truncate(*begin);
            }
        }
        let text_length = text.len();
        Ok(OutputPage { text: size.head(&found).to_owned(), next, total: text_length })
    }

    /// Notes that the session reads a part of a text that another session may have made: what that
    /// session had read, this one has read too.
    pub(crate) fn mark_read(&self, id: &str, part: &str) {
        let stored = self.outputs.stored.lock();
        let found = stored.iter().find(|each| self.has(each, id));
        let elsewhere = found.filter(|each| each.session != *self.session.id());
        let read = elsewhere.map(|each| Arc::clone(&each.read));
        drop(stored);
        if let Some(read) = read {
            self.session.add_read(&read, part);
        }
    }

    /// What the session that made a text had read.
    pub(crate) fn read_before(&self, id: &str) -> Arc<[PriorRead]> {
        let stored = self.outputs.stored.lock();
        let found = stored.iter().find(|each| self.has(each, id));
        found.map(|each| Arc::clone(&each.read)).unwrap_or_default()
    }

    fn text(&self, id: &str) -> Result<Arc<str>, OutputError> {
        let stored = self.outputs.stored.lock();
        let found = stored.iter().find(|each| self.has(each, id));
        let found = found.map(|each| Arc::clone(&each.text));
        drop(stored);
        found.or_else(|| self.fetch(id)).ok_or(OutputError::Unknown)
    }

    fn has(&self, stored: &StoredOutput, id: &str) -> bool {
        stored.owner == self.session.caller().identity && stored.id == id
    }
}

/// The parts of a line that match, with their offsets in the line. A short line is one part. Of a long
/// one, from `offset` on, each part is what is around a match.
fn parts_with_matches<'t>(
    pattern: &'t Regex,
    line: &'t str,
    offset: usize,
) -> impl Iterator<Item = (usize, &'t str)> {
    let is_short = line.len() <= LINE_BYTES;
    let mut at = if is_short { 0 } else { line.ceil_char_boundary(offset.min(line.len())) };
    let mut is_done = false;
    std::iter::from_fn(move || {
        if is_done {
            return None;
        }
        let matched = pattern.find_at(line, at)?;
        if is_short {
            is_done = true;
            return Some((0, line));
        }
        let from = line.floor_char_boundary(matched.start().saturating_sub(LINE_BYTES / 2)).max(at);
        let to = line.ceil_char_boundary((from + LINE_BYTES).min(line.len()));
        is_done = to == line.len();
        at = to;
        Some((from, &line[from..to]))
    })
}

#[cfg(test)]
mod tests {
    use toolgate_broker::Caller;

    use super::*;

    fn session(identity: &str) -> SessionContext {
        SessionContext::new(Caller::model(identity))
    }

    #[test]
    fn pages_cover_all_of_it_once() {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let lines: Vec<String> = (0..2_000).map(|line| format!("line {line}: größe\n")).collect();
        let text = lines.concat();
        let id = outputs.store(&text);
        let (mut read, mut offset, mut pages) = (String::new(), 0, 0);
        loop {
            let page = outputs.page(&id, offset, PageSize::Tokens(500)).unwrap();
            assert_eq!(page.total, text.len());
            read.push_str(&page.text);
            pages += 1;
            match page.next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(read, text);
        assert!(pages > 5);
    }

    #[test]
    fn reading_always_goes_on() {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let id = outputs.store("äöü");
        assert_eq!(outputs.page(&id, 1, PageSize::Tokens(0)).unwrap().text, "ö");
        assert_eq!(outputs.page(&id, 99, PageSize::Tokens(0)).unwrap().next, None);
    }

    #[test]
    fn lines_are_found_and_say_where_they_are() {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let id = outputs.store("one\ntwo ERROR\nthree\nfour error\n");
        let page = outputs.matches(&id, "(?i)error", 0, PageSize::Tokens(100)).unwrap();
        assert_eq!(page.text, "4: two ERROR\n20: four error\n");
        let page = outputs.matches(&id, "(?i)error", 19, PageSize::Tokens(100)).unwrap();
        assert_eq!(page.text, "20: four error\n");
        assert_eq!(outputs.matches(&id, "nothing", 0, PageSize::Tokens(100)).unwrap().text, "");
        assert!(matches!(
            outputs.matches(&id, "(", 0, PageSize::Tokens(9)),
            Err(OutputError::Pattern(_))
        ));
    }

    #[test]
    fn many_matches_come_in_parts() {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let lines: Vec<String> = (0..500).map(|line| format!("error {line}\n")).collect();
        let text = lines.concat();
        let id = outputs.store(&text);
        let first = outputs.matches(&id, "error", 0, PageSize::Tokens(100)).unwrap();
        let next =
            outputs.matches(&id, "error", first.next.unwrap(), PageSize::Tokens(100)).unwrap();
        assert!(first.text.starts_with("0: error 0\n"));
        assert!(!first.text.contains(next.text.lines().next().unwrap()));
    }

    /// All matches of a text, page by page.
    fn all_matches(text: &str, pattern: &str, size: PageSize) -> (String, usize) {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let id = outputs.store(text);
        let (mut read, mut offset, mut pages) = (String::new(), 0, 0);
        loop {
            let page = outputs.matches(&id, pattern, offset, size).unwrap();
            read.push_str(&page.text);
            pages += 1;
            match page.next {
                Some(next) => assert!(std::mem::replace(&mut offset, next) < next, "no progress"),
                None => return (read, pages),
            }
        }
    }

    #[test]
    fn no_match_is_lost_between_pages() {
        // Digits and unusual letters have fewer bytes a token than the limit of a page assumes.
        let line =
            |n: usize| format!("{}\u{1e9e}ẞ ERROR {n:08} {}\n", n * 7_919, "5 3 1 ".repeat(n % 40));
        let text: String = (0..600).map(line).collect();
        for size in [PageSize::Tokens(300), PageSize::Tokens(1_000), PageSize::Bytes(2_000)] {
            let (read, pages) = all_matches(&text, "ERROR", size);
            assert_eq!(read.lines().count(), 600, "{size:?}");
            assert!((0..600).all(|n| read.contains(&format!("ERROR {n:08} "))), "{size:?}");
            assert!(pages > 5, "{size:?}");
        }
    }

    #[test]
    fn all_matches_of_one_long_line_are_shown() {
        let text = (0..300)
            .map(|n| format!("{{\"id\":{n:05},\"x\":\"{}\"}},", "-".repeat(500)))
            .collect::<Vec<_>>()
            .concat();
        let (read, pages) = all_matches(&text, r#""id":\d+"#, PageSize::Tokens(2_000));
        assert!((0..300).all(|n| read.contains(&format!("\"id\":{n:05}"))));
        assert!(pages > 3);
    }

    #[test]
    fn outputs_are_bounded_and_ids_differ() {
        let outputs = OutputStore::default();
        let me = session("me");
        let outputs = outputs.of(&me);
        let first = outputs.store("first");
        let ids: Vec<String> = (0..MAX_STORED).map(|_| outputs.store("x")).collect();
        assert_eq!(outputs.page(&first, 0, PageSize::Tokens(9)), Err(OutputError::Unknown));
        assert!(outputs.page(&ids[0], 0, PageSize::Tokens(9)).is_ok());
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn outputs_belong_to_their_caller() {
        let outputs = OutputStore::default();
        let (me, them) = (session("me"), session("them"));
        let (mine, theirs) = (outputs.of(&me), outputs.of(&them));
        mine.store_as("a", "mine");
        assert_eq!(theirs.page("a", 0, PageSize::Tokens(9)), Err(OutputError::Unknown));
        theirs.store_as("a", "theirs");
        assert_eq!(mine.page("a", 0, PageSize::Tokens(9)).unwrap().text, "mine");
    }
}
