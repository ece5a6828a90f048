//! Vectors of an encoder.
//!
//! Numbers are bytes with a scale for each vector, because vectors with more dimensions have
//! smaller numbers. The table ranks a tool that has no vector yet.

use std::collections::HashMap;

use super::vectors::{HINT_SHARE, Nearness, SERVER_SHARE, dot};
use crate::{
    encoder::{QueryVector, ServerVectors, UnitVector},
    text::ToolKey,
};

/// One server's vectors.
#[derive(Debug, Default)]
pub(super) struct External {
    dimensions: usize,
    /// The position of each tool's vector.
    rows: Vec<Option<u32>>,
    /// The vectors, one after the other.
    codes: Vec<i8>,
    /// The scale of each vector.
    units: Vec<f32>,
    server: Option<(Vec<i8>, f32)>,
}

/// A query's vector, scaled for the comparison with bytes.
struct Probe {
    numbers: Vec<i16>,
    unit: f32,
}

/// A tool is related to a query if its score is this many standard deviations above the mean. The
/// meaning of a cosine of 0.5 differs between encoders, but the rank of a tool does not.
const RELATED_DEVIATIONS: f64 = 0.5;

/// If the spread is smaller, scores count as equal.
const LEAST_SPREAD: f32 = 1e-3;

/// A query's largest number. With it the product over [`MAX_DIMENSIONS`] fits into 32 bits.
///
/// [`MAX_DIMENSIONS`]: crate::encoder::MAX_DIMENSIONS
const QUERY_LARGEST: f32 = 2_047.0;
const TOOL_LARGEST: f32 = 127.0;

/// Scores are summed as whole numbers of this scale, so that the sum does not depend on the order.
const FIXED: f64 = 4_294_967_296.0;

impl External {
    /// The vectors of a server with the tools `keys`, if they have the same length.
    pub(super) fn new(keys: &[ToolKey], vectors: &ServerVectors) -> Option<Self> {
        let dimensions = vectors.tools.first()?.1.dimensions();
        let fits = |vector: &&UnitVector| vector.dimensions() == dimensions;
        let known: HashMap<&ToolKey, &UnitVector> =
            vectors.tools.iter().map(|(key, vector)| (key, vector)).collect();
        let mut external = Self { dimensions, ..Self::default() };
        for key in keys {
            let row = known.get(key).copied().filter(fits).and_then(|vector| {
                let row = u32::try_from(external.units.len()).ok()?;
                external.units.push(bytes(vector, &mut external.codes));
                Some(row)
            });
            external.rows.push(row);
        }
        external.server = vectors.server.as_ref().filter(fits).map(|vector| {
            let mut codes = Vec::with_capacity(dimensions);
            let unit = bytes(vector, &mut codes);
            (codes, unit)
        });
        Some(external)
    }

    /// How many tools have a vector.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    fn server_nearness(&self, probe: &Probe) -> f32 {
        self.server.as_ref().map_or(0.0, |(codes, unit)| probe.cosine(codes, *unit))
    }
}

impl Probe {
    #[expect(clippy::cast_possible_truncation, reason = "no number is above the largest")]
    fn new(vector: &UnitVector) -> Self {
        let scale = QUERY_LARGEST / largest(vector);
        let numbers = vector.as_slice().iter().map(|number| (number * scale).round() as i16);
        Self { numbers: numbers.collect(), unit: 1.0 / scale }
    }

    #[expect(clippy::cast_precision_loss, reason = "a score does not need the last digits")]
    fn cosine(&self, codes: &[i8], unit: f32) -> f32 {
        dot(&self.numbers, codes) as f32 * self.unit * unit
    }
}

/// Replaces the similarities of the table by those of the encoder. For tools without a vector,
/// scales the table's similarity to the encoder. Does nothing if no tool has a vector of the
/// query's length.
pub(super) fn refine(nearness: &mut Nearness<'_>, query: &QueryVector) {
    let text = Probe::new(&query.text);
    let dimensions = text.numbers.len();
    let hint = query.hint.as_ref().filter(|hint| hint.dimensions() == dimensions).map(Probe::new);
    let mut scores: Vec<Option<f32>> = vec![None; nearness.scores.len()];
    let mut lifts = vec![0.0; nearness.spans.len()];
    let mut sums = Sums::default();
    for (span, lift) in nearness.spans.iter().zip(&mut lifts) {
        let Some(external) = span.external().filter(|held| held.dimensions == dimensions) else {
            continue;
        };
        *lift = hint.as_ref().map_or(0.0, |hint| HINT_SHARE * external.server_nearness(hint));
        let base = SERVER_SHARE * external.server_nearness(&text) + *lift;
        for (score, row) in scores[span.range.clone()].iter_mut().zip(&external.rows) {
            if let Some(row) = row.map(|row| row as usize) {
                let codes = &external.codes[row * dimensions..(row + 1) * dimensions];
                let found = base + text.cosine(codes, external.units[row]);
                sums.add(found);
                *score = Some(found);
            }
        }
    }
    let Some((mean, deviation)) = sums.mean_and_deviation() else { return };
    let (spread, own_spread) = (nearness.highest - nearness.mean, sums.highest - mean);
    // If all scores of the encoder are equal, they give no scale.
    let factor = if spread > 0.0 && own_spread > LEAST_SPREAD { own_spread / spread } else { 1.0 };
    for (score, own) in nearness.scores.iter_mut().zip(scores) {
        *score = own.unwrap_or(mean + (*score - nearness.mean) * factor);
    }
    for (span, lift) in nearness.spans.iter_mut().zip(lifts) {
        // Rounding must not exclude a single tool.
        span.least = mean + deviation + lift - 1e-6;
    }
    (nearness.highest, nearness.mean) = (sums.highest.max(mean + spread * factor), mean);
}

/// The sums of scores, whole and squared.
#[derive(Debug)]
struct Sums {
    count: u32,
    sum: i128,
    squares: i128,
    highest: f32,
}

impl Default for Sums {
    fn default() -> Self {
        Self { count: 0, sum: 0, squares: 0, highest: f32::NEG_INFINITY }
    }
}

impl Sums {
    #[expect(clippy::cast_possible_truncation, reason = "a score is between −2 and 2")]
    fn add(&mut self, score: f32) {
        self.count += 1;
        self.sum += (f64::from(score) * FIXED) as i128;
        self.squares += (f64::from(score) * f64::from(score) * FIXED) as i128;
        self.highest = self.highest.max(score);
    }

    /// The mean, and the distance above it at which a tool is related to the query.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a mean does not need the last digits"
    )]
    fn mean_and_deviation(&self) -> Option<(f32, f32)> {
        if self.count == 0 {
            return None;
        }
        let count = f64::from(self.count) * FIXED;
        let mean = self.sum as f64 / count;
        let variance = (self.squares as f64 / count - mean * mean).max(0.0);
        Some((mean as f32, (RELATED_DEVIATIONS * variance.sqrt()) as f32))
    }
}

/// Appends a vector as bytes. Returns the value of one unit.
#[expect(clippy::cast_possible_truncation, reason = "no number is above the largest")]
fn bytes(vector: &UnitVector, into: &mut Vec<i8>) -> f32 {
    let scale = TOOL_LARGEST / largest(vector);
    into.extend(vector.as_slice().iter().map(|number| (number * scale).round() as i8));
    1.0 / scale
}

/// The largest number, which is never zero in a unit vector.
fn largest(vector: &UnitVector) -> f32 {
    vector.as_slice().iter().fold(0.0, |largest, number| largest.max(number.abs()))
}
