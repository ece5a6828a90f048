//! The built-in table of word vectors.
//!
//! ```text
//! bytes     what (numbers are little-endian)
//! 4         "TGST"
//! 4         version: 1
//! 4         d, numbers a row
//! 4         n, rows
//! 4         b, bytes of the vocabulary
//! n × 4     scale of each row, f32
//! n × d     rows, i8; a row is its scale times these
//! b         vocabulary, UTF-8, one token a line, sorted by bytes; line i belongs to row i
//! ```

use std::{ops::Range, sync::LazyLock};

use thiserror::Error;

use crate::spelling::{Letters, Misspelled};

/// The table in the binary. It is `None` only if the compiled file is damaged, which a test rules
/// out. Then only words count.
pub(super) fn built_in() -> Option<&'static Table<'static>> {
    static TABLE: LazyLock<Option<Table<'static>>> =
        LazyLock::new(|| Table::parse(include_bytes!("../../data/table.bin")).ok());
    TABLE.as_ref()
}

/// Whether the table has a word in lower case.
pub(crate) fn is_table_word(word: &str) -> bool {
    built_in().is_some_and(|table| table.token(word).is_some())
}

/// Calls `sink` with the words of the table that may be near to a misspelled one.
pub(crate) fn for_each_table_word_near(word: &Misspelled<'_>, sink: &mut dyn FnMut(&str)) {
    /// By their places. Counted once, because a word is compared with all of them.
    static LETTERS: LazyLock<Vec<Option<Letters>>> = LazyLock::new(|| {
        built_in().map_or_else(Vec::new, |table| {
            (0..table.len()).map(|place| Letters::of(table.text(place))).collect()
        })
    });
    let Some(table) = built_in() else { return };
    for (place, letters) in LETTERS.iter().enumerate() {
        if letters.is_some_and(|letters| word.may_be(letters)) {
            sink(table.text(place));
        }
    }
}

/// A table of word vectors, read in place.
#[derive(Debug)]
pub(super) struct Table<'b> {
    dimensions: usize,
    scales: &'b [u8],
    rows: &'b [u8],
    vocabulary: &'b str,
    /// Where each token begins in the vocabulary, and where the last one ends.
    starts: Vec<u32>,
}

/// Why bytes are not a table.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("these bytes are not a table of word vectors: {0}")]
pub(super) struct NotATable(&'static str);

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(usize);

/// The header's bytes.
const HEADER: usize = 20;
/// Sums over this many dimensions cannot overflow.
const MAX_DIMENSIONS: usize = 512;

impl<'b> Table<'b> {
    pub(super) fn parse(bytes: &'b [u8]) -> Result<Self, NotATable> {
        let number = |place: usize| -> Option<usize> {
            let bytes = bytes.get(4 * place..4 * place + 4)?;
            usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        if bytes.get(..4) != Some(b"TGST") || number(1) != Some(1) {
            return Err(NotATable("the header is another"));
        }
        let (Some(dimensions), Some(count), Some(letters)) = (number(2), number(3), number(4))
        else {
            return Err(NotATable("the header is cut"));
        };
        if dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return Err(NotATable("the number of dimensions makes no sense"));
        }
        let rest = &bytes[HEADER..];
        let (Some(scales), Some(rows)) = (count.checked_mul(4), count.checked_mul(dimensions))
        else {
            return Err(NotATable("it is too large"));
        };
        let (Some((scales, rest)), true) =
            (rest.split_at_checked(scales), rest.len() == scales + rows + letters)
        else {
            return Err(NotATable("its length is another"));
        };
        let (rows, vocabulary) = rest.split_at(rows);
        let vocabulary =
            str::from_utf8(vocabulary).map_err(|_| NotATable("the vocabulary is no text"))?;
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        let ends = memchr::memchr_iter(b'\n', vocabulary.as_bytes());
        starts.extend(ends.filter_map(|end| u32::try_from(end + 1).ok()));
        if starts.len() != count + 1 {
            return Err(NotATable("rows and tokens differ in number"));
        }
        Ok(Self { dimensions, scales, rows, vocabulary, starts })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds a row, times a weight, to a vector.
    pub(super) fn add(&self, token: Token, weight: f32, vector: &mut [f32]) {
        let mut scale = [0; 4];
        scale.copy_from_slice(&self.scales[4 * token.0..4 * token.0 + 4]);
        let factor = f32::from_le_bytes(scale) * weight;
        let row = &self.rows[self.dimensions * token.0..self.dimensions * (token.0 + 1)];
        for (sum, number) in vector.iter_mut().zip(row) {
            *sum += factor * f32::from(number.cast_signed());
        }
    }

    /// The row of a word.
    pub(super) fn token(&self, word: &str) -> Option<Token> {
        let place = self.first_not(0..self.len(), |token| token < word);
        (place < self.len() && self.text(place) == word).then_some(Token(place))
    }

    /// The longest token of `shortest` to `longest` characters with which a text begins, and how
    /// many bytes of the text it takes.
    pub(super) fn longest(
        &self,
        text: &str,
        shortest: usize,
        longest: usize,
    ) -> Option<(Token, usize)> {
        let mut found = None;
        // The tokens that begin as the text does, fewer with every character.
        let mut range = 0..self.len();
        for (count, (start, character)) in (1..=longest).zip(text.char_indices()) {
            let prefix = &text[..start + character.len_utf8()];
            let begin = self.first_not(range.clone(), |token| token < prefix);
            let end = self.first_not(begin..range.end, |token| token.starts_with(prefix));
            if begin == end {
                break;
            }
            if count >= shortest && self.text(begin) == prefix {
                found = Some((Token(begin), prefix.len()));
            }
            range = begin..end;
        }
        found
    }

    /// The token's text.
    pub(super) fn text(&self, place: usize) -> &str {
        let (start, end) = (self.starts[place] as usize, self.starts[place + 1] as usize);
        &self.vocabulary[start..end - 1]
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The first position of a range whose token does not meet the condition. Tokens that meet it
    /// come first.
    fn first_not(&self, range: Range<usize>, as_said: impl Fn(&str) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = usize::midpoint(low, high);
            if as_said(self.text(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Token {
    /// The position of the row.
    #[cfg(test)]
    pub(super) fn place(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<u8> {
        let vocabulary = "car\ncard\ncat\n";
        let mut bytes = b"TGST".to_vec();
        for number in [1, 2, 3, 13_u32] {
            bytes.extend(number.to_le_bytes());
        }
        for scale in [1.0, 0.5, 2.0_f32] {
            bytes.extend(scale.to_le_bytes());
        }
        bytes.extend([1_i8, -2, 3, -4, 5, -6].map(i8::cast_unsigned));
        bytes.extend(vocabulary.bytes());
        bytes
    }

    #[test]
    fn words_have_rows_and_prefixes_are_found() {
        let bytes = bytes();
        let table = Table::parse(&bytes).unwrap();
        let mut vector = [0.0; 2];
        table.add(table.token("card").unwrap(), 2.0, &mut vector);
        assert!((vector[0] - 3.0).abs() < 1e-6 && (vector[1] + 4.0).abs() < 1e-6);
        assert_eq!(table.token("ca"), None);
        assert_eq!(table.token("zebra"), None);
        assert_eq!(table.longest("cards", 3, 9), Some((Token(1), 4)));
        assert_eq!(table.longest("cards", 3, 3), Some((Token(0), 3)));
        assert_eq!(table.longest("ca", 1, 9), None);
        assert_eq!(table.longest("", 1, 9), None);
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let whole = bytes();
        assert!((0..whole.len()).all(|end| Table::parse(&whole[..end]).is_err()));
        for place in [0, 4, 8, 12, 16, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x80;
            assert!(Table::parse(&damaged).is_err(), "{place}");
        }
    }

    #[test]
    fn the_built_in_table_is_sound_and_sorted() {
        let table = built_in().unwrap();
        assert!(table.len() > 10_000);
        assert!((1..table.len()).all(|place| table.text(place - 1) < table.text(place)));
        assert!(include_bytes!("../../data/table.bin").len() <= 10_000_000);
    }
}
