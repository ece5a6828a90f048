//! The parameters of the ranking.

use serde::{Deserialize, Serialize};

/// The parameters of a [`Bm25Index`](crate::Bm25Index).
///
/// The defaults are round numbers that are nearly optimal on several labelled sets, in both halves
/// of each. The example `evaluate` measures others. Invalid numbers (negative, not finite) count as
/// zero.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bm25Parameters {
    /// How fast further mentions of a word lose weight; a lower number is faster.
    pub saturation: f32,
    /// The weight of a mention in each field.
    pub weights: FieldWeights,
    /// How much a long field is discounted, from 0 (not at all) to 1 (in full).
    pub length_discount: f32,
    /// The share of the server's score that is added to the score of its tools.
    pub server_share: f32,
    /// The share of the server's score for the hint that is added to the score of its tools.
    pub hint_share: f32,
    /// The addition for tools of a server that the query names, times the rarity of the name.
    pub server_name_lift: f32,
    /// The weight of a word that a phrase of the query stands for, relative to the query's own.
    pub paraphrase_share: f32,
}

impl Default for Bm25Parameters {
    fn default() -> Self {
        Self {
            saturation: 1.5,
            weights: FieldWeights::default(),
            length_discount: 0.5,
            server_share: 0.3,
            hint_share: 1.0,
            server_name_lift: 1.0,
            paraphrase_share: 0.4,
        }
    }
}

/// The weight of a word in each field.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FieldWeights {
    /// The tool's name.
    pub name: f32,
    /// The tool's title.
    pub title: f32,
    /// The tool's description.
    pub description: f32,
    /// The names of its parameters.
    pub parameter_names: f32,
    /// The descriptions of its parameters.
    pub parameter_descriptions: f32,
    /// The values that its parameters may take.
    pub values: f32,
    /// The server's name, among servers.
    pub server_name: f32,
    /// The server's description, among servers.
    pub server_description: f32,
}

impl Default for FieldWeights {
    fn default() -> Self {
        Self {
            name: 3.0,
            title: 2.0,
            description: 1.0,
            parameter_names: 0.5,
            parameter_descriptions: 0.3,
            values: 0.3,
            server_name: 3.0,
            server_description: 1.0,
        }
    }
}

impl Bm25Parameters {
    /// The same parameters, with invalid numbers replaced.
    pub(super) fn sound(self) -> Self {
        let weights = self.weights;
        Self {
            saturation: sound(self.saturation),
            weights: FieldWeights {
                name: sound(weights.name),
                title: sound(weights.title),
                description: sound(weights.description),
                parameter_names: sound(weights.parameter_names),
                parameter_descriptions: sound(weights.parameter_descriptions),
                values: sound(weights.values),
                server_name: sound(weights.server_name),
                server_description: sound(weights.server_description),
            },
            length_discount: sound(self.length_discount).min(1.0),
            server_share: sound(self.server_share),
            hint_share: sound(self.hint_share),
            server_name_lift: sound(self.server_name_lift),
            paraphrase_share: sound(self.paraphrase_share),
        }
    }
}

/// A limit that keeps sums far from overflow.
const LARGEST: f32 = 1_000.0;

fn sound(number: f32) -> f32 {
    if number.is_finite() { number.clamp(0.0, LARGEST) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound() {
        assert_eq!(Bm25Parameters::default().sound(), Bm25Parameters::default());
    }

    #[test]
    fn invalid_parameters_become_valid() {
        let nonsense = Bm25Parameters {
            saturation: f32::NAN,
            length_discount: 7.0,
            server_share: f32::INFINITY,
            hint_share: -1.0,
            ..Bm25Parameters::default()
        };
        let harmless = Bm25Parameters {
            saturation: 0.0,
            length_discount: 1.0,
            server_share: 0.0,
            hint_share: 0.0,
            ..Bm25Parameters::default()
        };
        assert_eq!(nonsense.sound(), harmless);
    }

    #[test]
    fn a_part_of_the_numbers_can_be_given() {
        let parsed: Bm25Parameters =
            serde_json::from_str(r#"{"saturation": 0.9, "weights": {"name": 4}}"#).unwrap();
        let weights = FieldWeights { name: 4.0, ..FieldWeights::default() };
        assert_eq!(parsed, Bm25Parameters { saturation: 0.9, weights, ..Default::default() });
    }
}
