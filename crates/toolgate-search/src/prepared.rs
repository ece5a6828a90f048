//! What an index needs of a server's tools, as far as it depends on their texts alone.
//!
//! To split texts into words, to stem the words and to sum their vectors takes most of the time of
//! indexing. The result depends on the texts and on the code of this crate, and on nothing else. So
//! a caller can keep the bytes and give them back later:
//!
//! ```text
//! bytes       what (numbers are little-endian)
//! 4           t, distinct terms
//! 4           n, tools
//! 4           d, numbers of a vector; 0 without the table
//! 4           b, bytes of all terms
//! t × 4       where each term ends
//! b           the terms, UTF-8
//! n × 4       where the terms of each tool end, in the next two
//! p × 4       the terms of all tools, in each tool in ascending order
//! p × 4       their impacts, f32
//! n × d       the vectors, i8
//! ```

use std::collections::HashMap;

use crate::{
    bm25::{Bm25Parameters, tool_terms},
    dense::{table_dimensions, tool_codes},
    text::ToolText,
};

/// The terms and the vectors of a server's tools, without those that depend on the names that the
/// server and the tools have here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreparedTools {
    pub(crate) words: PreparedWords,
    pub(crate) vectors: PreparedVectors,
}

/// The terms of tools with their impacts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PreparedWords {
    /// All terms, one after the other.
    text: String,
    /// Where each term ends in the text.
    ends: Vec<u32>,
    /// Where each tool's terms end in the next two.
    tools: Vec<u32>,
    terms: Vec<u32>,
    impacts: Vec<f32>,
}

/// The vectors of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PreparedVectors {
    dimensions: usize,
    codes: Vec<i8>,
}

impl PreparedTools {
    /// Identifies the code that makes these bytes. A change of it that makes other bytes of the
    /// same texts changes this too; a test holds them against each other.
    pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

    /// Prepares the texts of tools.
    pub fn of(tools: &[ToolText<'_>]) -> Self {
        let words = PreparedWords::of(&Bm25Parameters::default(), tools);
        Self { words, vectors: PreparedVectors::of(tools) }
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.words.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, for [`Self::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let PreparedWords { text, ends, tools, terms, impacts } = &self.words;
        let PreparedVectors { dimensions, codes } = &self.vectors;
        let numbers = 4 + ends.len() + tools.len() + terms.len() + impacts.len();
        let mut bytes = Vec::with_capacity(4 * numbers + text.len() + codes.len());
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        for count in [ends.len(), tools.len(), *dimensions, text.len()] {
            put(small(count));
        }
        ends.iter().copied().for_each(&mut put);
        bytes.extend(text.as_bytes());
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        tools.iter().chain(terms).copied().for_each(&mut put);
        impacts.iter().map(|impact| impact.to_bits()).for_each(put);
        bytes.extend(codes.iter().map(|code| code.cast_unsigned()));
        bytes
    }

    /// Reads bytes that [`Self::to_bytes`] made; `None` if they are others. Whatever the bytes are,
    /// an index can take the result.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [terms, tools, dimensions, letters] = [(); 4].map(|()| rest.number());
        let (terms, tools) = (terms?, tools?);
        let (dimensions, letters) = (dimensions?, letters?);
        let ends = rest.numbers(terms)?;
        let text = String::from_utf8(rest.take(letters)?.to_vec()).ok()?;
        let tool_ends = rest.numbers(tools)?;
        let count = tool_ends.last().map_or(0, |end| *end as usize);
        let words = PreparedWords {
            text,
            ends,
            tools: tool_ends,
            terms: rest.numbers(count)?,
            impacts: rest.numbers(count)?.into_iter().map(f32::from_bits).collect(),
        };
        let codes = rest.take(tools.checked_mul(dimensions)?)?;
        let codes = codes.iter().map(|code| code.cast_signed()).collect();
        let vectors = PreparedVectors { dimensions, codes };
        let is_known_length = dimensions == table_dimensions();
        (rest.0.is_empty() && is_known_length && words.is_sound())
            .then_some(Self { words, vectors })
    }
}

impl PreparedWords {
    pub(crate) fn of(parameters: &Bm25Parameters, tools: &[ToolText<'_>]) -> Self {
        let mut words = Self::default();
        let mut known: HashMap<String, u32> = HashMap::new();
        for tool in tools {
            let mut terms: Vec<(u32, f32)> = tool_terms(parameters, tool)
                .into_iter()
                .map(|(term, impact)| {
                    let next = small(known.len());
                    (*known.entry(term).or_insert(next), impact)
                })
                .collect();
            terms.sort_unstable_by_key(|(term, _)| *term);
            words.terms.extend(terms.iter().map(|(term, _)| *term));
            words.impacts.extend(terms.iter().map(|(_, impact)| *impact));
            words.tools.push(small(words.terms.len()));
        }
        words.name_by_text(known);
        words
    }

    /// Numbers the terms in the order of their texts: equal tools give equal bytes.
    fn name_by_text(&mut self, known: HashMap<String, u32>) {
        let mut sorted: Vec<(String, u32)> = known.into_iter().collect();
        sorted.sort_unstable();
        let mut renamed = vec![0; sorted.len()];
        for (place, (term, before)) in sorted.into_iter().enumerate() {
            renamed[before as usize] = small(place);
            self.text.push_str(&term);
            self.ends.push(small(self.text.len()));
        }
        let mut start = 0;
        for end in self.tools.iter().map(|end| *end as usize) {
            let (terms, impacts) = (&mut self.terms[start..end], &mut self.impacts[start..end]);
            let mut pairs: Vec<(u32, f32)> = terms
                .iter()
                .zip(&*impacts)
                .map(|(term, impact)| (renamed[*term as usize], *impact))
                .collect();
            pairs.sort_unstable_by_key(|(term, _)| *term);
            for (place, (term, impact)) in pairs.into_iter().enumerate() {
                (terms[place], impacts[place]) = (term, impact);
            }
            start = end;
        }
    }

    /// The terms, by their numbers.
    pub(crate) fn dictionary(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let term = &self.text[start..*end as usize];
            start = *end as usize;
            term
        })
    }

    /// The terms of a tool with their impacts; nothing if there is no such tool.
    pub(crate) fn tool(&self, place: usize) -> impl Iterator<Item = (u32, f32)> {
        let end = |place: usize| self.tools.get(place).map(|end| *end as usize);
        let start = place.checked_sub(1).map_or(Some(0), end).unwrap_or_default();
        let range = start..end(place).unwrap_or(start);
        let terms = self.terms[range.clone()].iter().copied();
        terms.zip(self.impacts[range].iter().copied())
    }

    /// Whether every number is within what it refers to, and no tool has a term twice.
    fn is_sound(&self) -> bool {
        let ascending = |numbers: &[u32]| numbers.is_sorted();
        let ends = self.ends.iter().all(|end| self.text.is_char_boundary(*end as usize));
        let last = self.ends.last().map_or(0, |end| *end as usize);
        if !ends || last != self.text.len() || !ascending(&self.ends) || !ascending(&self.tools) {
            return false;
        }
        let terms = self.ends.len();
        (0..self.tools.len()).all(|tool| {
            let mut before = None;
            self.tool(tool).all(|(term, impact)| {
                let is_next = before.replace(term).is_none_or(|before| before < term);
                is_next && (term as usize) < terms && impact.is_finite() && impact >= 0.0
            })
        })
    }
}

impl PreparedVectors {
    pub(crate) fn of(tools: &[ToolText<'_>]) -> Self {
        let codes = tools.iter().flat_map(tool_codes).collect();
        Self { dimensions: table_dimensions(), codes }
    }

    /// The vector of a tool; empty if there is none.
    pub(crate) fn tool(&self, place: usize) -> &[i8] {
        let start = place.saturating_mul(self.dimensions);
        self.codes.get(start..start.saturating_add(self.dimensions)).unwrap_or_default()
    }
}

/// Bytes that are still to be read.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<u32>> {
        let (chunks, _) = self.take(count.checked_mul(4)?)?.as_chunks::<4>();
        Some(chunks.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }
}

/// Limits keep all counts of one server far below this.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::ParameterText;

    fn prepared() -> PreparedTools {
        let parameter = ParameterText {
            name: "path",
            description: "Which file to read, über alles",
            values: vec!["utf8"],
        };
        let read = ToolText {
            name: "read_file",
            title: Some("Read a file"),
            description: "Reads the whole file",
            parameters: vec![parameter],
        };
        let write = ToolText { name: "write_file", ..ToolText::default() };
        PreparedTools::of(&[read, write, ToolText::default()])
    }

    #[test]
    fn bytes_come_back_equal() {
        let prepared = prepared();
        assert_eq!(PreparedTools::from_bytes(&prepared.to_bytes()), Some(prepared.clone()));
        assert_eq!((prepared.len(), prepared.is_empty()), (3, false));
        let none = PreparedTools::of(&[]);
        assert_eq!(PreparedTools::from_bytes(&none.to_bytes()), Some(none));
    }

    #[test]
    fn cut_bytes_are_refused() {
        let bytes = prepared().to_bytes();
        assert!((0..bytes.len()).all(|end| PreparedTools::from_bytes(&bytes[..end]).is_none()));
        assert!(PreparedTools::from_bytes(&[&bytes[..], &[0]].concat()).is_none());
    }

    proptest! {
        /// Damage may go unnoticed here (a checksum notices it), but never does harm.
        #[test]
        fn any_bytes_can_be_read_and_indexed(place in 0_usize..2_000, to in any::<u8>()) {
            use crate::{HybridIndex, Query, Strategy as _, ServerText, ToolKey};
            let mut bytes = prepared().to_bytes();
            let place = place % bytes.len();
            bytes[place] = to;
            if let Some(read) = PreparedTools::from_bytes(&bytes) {
                let mut index = HybridIndex::default();
                let tools: Vec<(ToolKey, &str)> =
                    ["a", "b", "c", "d"].map(|name| (ToolKey::from(name), name)).to_vec();
                index.replace_prepared("s", ServerText::default(), &tools, &read);
                prop_assert!(index.search(&Query::new("read the file path", 5)).is_ok());
            }
        }
    }

    /// If this fails, texts are prepared in another way than before. Then stored bytes are old:
    /// change [`PreparedTools::VERSION`], and the number here.
    #[test]
    fn the_version_belongs_to_these_bytes() {
        let sum = |bytes: &[u8]| {
            bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        let cases: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("../tests/data/table_reference.json")).unwrap();
        let texts: Vec<&str> = cases.iter().filter_map(|case| case["text"].as_str()).collect();
        let tools: Vec<ToolText<'_>> = texts
            .windows(3)
            .map(|window| ToolText {
                name: window[0],
                title: Some(window[1]),
                description: window[2],
                parameters: vec![ParameterText {
                    name: window[1],
                    description: window[0],
                    values: vec![window[2]],
                }],
            })
            .collect();
        assert!(tools.len() >= 38);
        let bytes = [PreparedTools::of(&tools).to_bytes(), prepared().to_bytes()].concat();
        assert_eq!((PreparedTools::VERSION, sum(&bytes)), ("0.1.0-1", 17_433_824_385_380_809_612));
    }
}
