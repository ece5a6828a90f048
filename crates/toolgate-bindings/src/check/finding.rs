//! Findings about a script, and how they are displayed.

use std::{collections::BTreeSet, fmt, ops::Range};

use serde::{Deserialize, Serialize};

/// A problem that the check found in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFinding {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The line, or the part of it around the column.
    pub source_line: String,
    /// The number of characters of `source_line` before the column.
    pub caret: u32,
    /// The problem.
    pub message: String,
    /// How to solve the problem, if that is known.
    pub hint: Option<String>,
    /// Whether the script can run in spite of the finding.
    pub severity: CheckSeverity,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckSeverity {
    /// The script cannot work and is not run.
    Error,
    /// The script is most likely wrong, but it is run.
    Warning,
}

impl fmt::Display for CheckFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.severity {
            CheckSeverity::Error => "",
            CheckSeverity::Warning => "warning: ",
        };
        write!(formatter, "{}:{} {kind}{}", self.line, self.column, self.message)?;
        if !self.source_line.trim().is_empty() {
            write!(formatter, "\n  | {}", self.source_line)?;
            write!(formatter, "\n  | {:1$}^", "", self.caret as usize)?;
        }
        if let Some(hint) = &self.hint {
            write!(formatter, "\n  = {hint}")?;
        }
        Ok(())
    }
}

/// The number of characters of a long line that are shown.
const SHOWN_CHARACTERS: usize = 160;
/// The number of shown characters before the column in a long line.
const CHARACTERS_BEFORE: usize = 100;
/// The number of findings that are stored before they are sorted. Further ones are only counted.
const MAX_HELD: usize = 200;

/// Collects the findings of one script.
pub(super) struct FindingCollector<'a> {
    text: &'a str,
    /// The byte offsets of the line starts.
    starts: Vec<usize>,
    findings: Vec<CheckFinding>,
    beyond: usize,
    /// Where the checked text has more than this one, and how much.
    pub(super) inserted: Option<(usize, usize)>,
    /// Where the functions are that nothing calls: what is wrong there does no harm.
    pub(super) unused: Vec<Range<usize>>,
    /// Where the parts are that may never run: what is wrong there is only a warning.
    pub(super) undecided: Vec<Range<usize>>,
}

impl<'a> FindingCollector<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(offset, _)| offset + 1)).collect();
        Self {
            text,
            starts,
            findings: Vec::new(),
            beyond: 0,
            inserted: None,
            unused: Vec::new(),
            undecided: Vec::new(),
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == CheckSeverity::Error)
    }

    pub(super) fn error(
        &mut self,
        offset: usize,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.add(CheckSeverity::Error, offset, message.into(), hint.into());
    }

    pub(super) fn add(
        &mut self,
        severity: CheckSeverity,
        offset: usize,
        message: String,
        hint: Option<String>,
    ) {
        if self.unused.iter().any(|range| range.contains(&offset)) {
            return;
        }
        if self.is_full() {
            self.beyond += 1;
            return;
        }
        let is_undecided = self.undecided.iter().any(|range| range.contains(&offset));
        let severity = if is_undecided { CheckSeverity::Warning } else { severity };
        let offset = match self.inserted {
            Some((at, by)) if offset > at => at.max(offset.saturating_sub(by)),
            _ => offset,
        };
        let offset = self.text.floor_char_boundary(offset);
        let index = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(index).copied().unwrap_or_default();
        let line = self.text[start..].lines().next().unwrap_or_default();
        let before = self.text[start..offset].chars().count();
        let (source_line, caret) = excerpt(line, before);
        self.findings.push(CheckFinding {
            line: number(index + 1),
            column: number(before + 1),
            source_line,
            caret,
            message,
            hint,
            severity,
        });
    }

    /// Whether further findings are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.findings.len() >= MAX_HELD
    }

    /// The first `most` findings, and the number of further ones.
    pub(super) fn finish(mut self, most: usize) -> (Vec<CheckFinding>, usize) {
        self.findings.sort_by_key(|finding| (finding.line, finding.column, finding.severity));
        let mut seen = BTreeSet::new();
        self.findings
            .retain(|finding| seen.insert((finding.line, finding.column, finding.message.clone())));
        let beyond = self.beyond + self.findings.len().saturating_sub(most);
        self.findings.truncate(most);
        (self.findings, beyond)
    }
}

/// The part of a line that is shown, and the number of its characters before the column.
fn excerpt(line: &str, before: usize) -> (String, u32) {
    // A tab or an escape sequence would move the caret or control the terminal.
    let clean = |character: char| if character.is_control() { ' ' } else { character };
    let length = line.chars().count();
    if length <= SHOWN_CHARACTERS {
        return (line.chars().map(clean).collect::<String>().trim_end().to_owned(), number(before));
    }
    let skipped = before.saturating_sub(CHARACTERS_BEFORE).min(length - SHOWN_CHARACTERS);
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    shown.extend(line.chars().skip(skipped).take(SHOWN_CHARACTERS).map(clean));
    if skipped + SHOWN_CHARACTERS < length {
        shown.push('…');
    }
    (shown, number(before.saturating_sub(skipped) + usize::from(skipped > 0)))
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, offset: usize) -> CheckFinding {
        let mut report = FindingCollector::new(text);
        report.error(offset, "no", None);
        report.finish(1).0.remove(0)
    }

    #[test]
    fn columns_count_characters_and_the_caret_is_below() {
        insta::assert_snapshot!(shown("a\nconst ä = \t\"ü\" + oops;\r\nb", 20), @r#"
        2:17 no
          | const ä =  "ü" + oops;
          |                 ^
        "#);
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let finding = shown(&text, 500);
        assert_eq!((finding.line, finding.column), (1, 501));
        assert_eq!(finding.source_line.chars().count(), SHOWN_CHARACTERS + 2);
        assert_eq!(finding.source_line.chars().nth(finding.caret as usize), Some('!'));
        let start = shown(&text, 3);
        assert_eq!(start.caret, 3);
        let end = shown(&text, 1000);
        assert_eq!(end.source_line.chars().nth(end.caret as usize), Some('b'));
    }

    #[test]
    fn any_offset_will_do() {
        for offset in 0..20 {
            let finding = shown("é\n\nü", offset);
            assert!(finding.line >= 1 && finding.line <= 3);
        }
    }
}
