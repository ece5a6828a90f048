//! Tables of `Model2Vec`: a text is the mean of its tokens' rows.

use ndarray::{Array1, Array2};

use super::{FolderError, files::Folder, weights::Weights};

/// The rows of all tokens.
#[derive(Debug)]
pub(super) struct StaticTable {
    rows: Array2<f32>,
    /// The weight of each token; `None` if all are equal.
    weights: Option<Array1<f32>>,
    /// The row of each token; `None` if it is the number of the token.
    mapping: Option<Vec<usize>>,
}

impl StaticTable {
    pub(super) fn load(folder: &Folder) -> Result<Self, FolderError> {
        let bytes = folder.weights()?;
        let tensors = Weights::new(folder, &bytes, "embeddings")?;
        let rows = tensors.matrix("embeddings", None, None)?;
        let mapping = tensors.has("mapping").then(|| tensors.places("mapping")).transpose()?;
        let tokens = mapping.as_ref().map_or(rows.nrows(), Vec::len);
        let weights =
            tensors.has("weights").then(|| tensors.vector("weights", tokens)).transpose()?;
        Ok(Self { rows, weights, mapping })
    }

    pub(super) fn mean(&self, ids: &[usize]) -> Vec<f32> {
        let mut sum = Array1::<f32>::zeros(self.rows.ncols());
        for id in ids {
            let place = match &self.mapping {
                Some(mapping) => mapping.get(*id).copied().unwrap_or(usize::MAX),
                None => *id,
            };
            if place < self.rows.nrows() {
                let weight = self.weights.as_ref().and_then(|weights| weights.get(*id));
                sum.scaled_add(weight.copied().unwrap_or(1.0), &self.rows.row(place));
            }
        }
        sum.to_vec()
    }
}
