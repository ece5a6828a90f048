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

/// The weighted sum of the vectors of several texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CommonMeaning {
    sum: Vec<f32>,
}

impl Meaning {
    /// The vector of a text; zero if the text has no known word.
    pub(crate) fn of(text: &str) -> Self {
        let Some(table) = built_in().filter(|_| says_something(text)) else {
            return Self::default();
        };
        Self { numbers: query_numbers(&embed(table, text).vector).collect() }
    }

    /// The cosine of the two; 0 if the table knows no word of one of them.
    pub(crate) fn nearness(&self, other: &Self) -> f32 {
        let mut alone = CommonMeaning::default();
        alone.add(self, 1.0);
        alone.nearness(other)
    }
}

impl CommonMeaning {
    pub(crate) fn add(&mut self, text: &Meaning, weight: f32) {
        self.sum.resize(self.sum.len().max(text.numbers.len()), 0.0);
        for (sum, number) in self.sum.iter_mut().zip(&text.numbers) {
            *sum += weight * f32::from(*number);
        }
    }

    /// The cosine of the two; 0 if the table knows no word of one of them.
    pub(crate) fn nearness(&self, text: &Meaning) -> f32 {
        let length = self.sum.iter().map(|sum| sum * sum).sum::<f32>().sqrt();
        if length <= 0.0 {
            return 0.0;
        }
        let pairs = self.sum.iter().zip(&text.numbers);
        pairs.map(|(sum, number)| sum * f32::from(*number)).sum::<f32>() / (length * QUERY_SCALE)
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
        common.add(&file, 1.0);
        assert!((common.nearness(&file) - 1.0).abs() < 1e-3);
        assert!((file.nearness(&file) - 1.0).abs() < 1e-3);
        common.add(&document, 0.5);
        assert!(common.nearness(&Meaning::of("erase documents")) > 0.5);
        assert!(common.nearness(&rain) < 0.3);
        assert!(CommonMeaning::default().nearness(&Meaning::of("the of")).abs() < 1e-6);
    }
}
