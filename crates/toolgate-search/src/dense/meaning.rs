//! Vectors of single texts, for comparison with others.

use super::{
    embedding::embed,
    table::built_in,
    vectors::{QUERY_SCALE, query_numbers, says_something},
};

/// The vector of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Meaning {
    /// A unit vector in whole numbers, or nothing.
    numbers: Vec<i16>,
}

/// The sum of the vectors of several texts. It consists of whole numbers, so that a text can be
/// removed exactly.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CommonMeaning {
    sum: Vec<i32>,
}

impl Meaning {
    /// The vector of a text; zero if the text has no known word.
    pub(crate) fn of(text: &str) -> Self {
        let Some(table) = built_in().filter(|_| says_something(text)) else {
            return Self::default();
        };
        Self { numbers: query_numbers(&embed(table, text).vector).collect() }
    }
}

impl CommonMeaning {
    pub(crate) fn add(&mut self, text: &Meaning) {
        self.sum.resize(self.sum.len().max(text.numbers.len()), 0);
        for (sum, number) in self.sum.iter_mut().zip(&text.numbers) {
            *sum += i32::from(*number);
        }
    }

    /// Removes a text that was added before.
    pub(crate) fn remove(&mut self, text: &Meaning) {
        for (sum, number) in self.sum.iter_mut().zip(&text.numbers) {
            *sum -= i32::from(*number);
        }
    }

    /// The cosine of the two; 0 if the table knows no word of one of them.
    #[expect(clippy::cast_precision_loss, reason = "a nearness does not need the last digits")]
    pub(crate) fn nearness(&self, text: &Meaning) -> f32 {
        let length = self.sum.iter().map(|sum| (*sum as f32).powi(2)).sum::<f32>().sqrt();
        if length <= 0.0 {
            return 0.0;
        }
        let pairs = self.sum.iter().zip(&text.numbers);
        pairs.map(|(sum, number)| *sum as f32 * f32::from(*number)).sum::<f32>()
            / (length * QUERY_SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_vector_of_texts_is_similar_to_like_texts() {
        let mut common = CommonMeaning::default();
        let [file, document, rain] =
            ["delete a file", "remove the document", "will it rain tomorrow"].map(Meaning::of);
        common.add(&file);
        assert!((common.nearness(&file) - 1.0).abs() < 1e-3);
        common.add(&document);
        assert!(common.nearness(&Meaning::of("erase documents")) > 0.5);
        assert!(common.nearness(&rain) < 0.3);
        common.remove(&document);
        assert!((common.nearness(&file) - 1.0).abs() < 1e-3, "as if it had never been there");
        common.remove(&file);
        assert!(common.nearness(&file).abs() < 1e-6);
        assert!(CommonMeaning::default().nearness(&Meaning::of("the of")).abs() < 1e-6);
    }
}
