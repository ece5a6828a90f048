//! The forward pass of a transformer of the BERT family, one text at a time.
//!
//! Texts of tools are short and of different lengths. Without a batch there is no padding and no
//! mask. Threads replace the batch.

use ndarray::{Array1, Array2, Axis, Zip, s};

use super::{
    FolderError,
    files::{Activation, BertConfig, Folder, Pooling},
    weights::Weights,
};

/// A network and its weights.
#[derive(Debug)]
pub(super) struct Bert {
    config: BertConfig,
    words: Array2<f32>,
    positions: Array2<f32>,
    /// The embedding of the first segment. There is only one segment.
    kind: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    intermediate: Linear,
    output: Linear,
    output_norm: Norm,
}

/// Transposed weights, and a bias.
#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
}

impl Bert {
    pub(super) fn load(folder: &Folder, config: &BertConfig) -> Result<Self, FolderError> {
        const WORDS: &str = "embeddings.word_embeddings.weight";
        let bytes = folder.weights()?;
        let tensors = Weights::new(folder, &bytes, WORDS)?;
        let words = tensors.matrix(WORDS, None, None)?;
        let width = words.ncols();
        if !width.is_multiple_of(config.heads) {
            let reason = format!("{width} numbers cannot be shared by {} heads", config.heads);
            return Err(FolderError::damaged(folder.path(), reason));
        }
        let positions =
            tensors.matrix("embeddings.position_embeddings.weight", None, Some(width))?;
        if positions.nrows() < config.first_position + folder.max_tokens() {
            let reason = "has fewer positions than its config.json says";
            return Err(FolderError::damaged(&folder.weights_path(), reason));
        }
        let kinds = tensors.matrix("embeddings.token_type_embeddings.weight", None, Some(width))?;
        let layers = (0..config.layers)
            .map(|layer| Layer::load(&tensors, &format!("encoder.layer.{layer}"), width))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            config: config.clone(),
            words,
            positions,
            kind: kinds.row(0).to_owned(),
            norm: Norm::load(&tensors, "embeddings.LayerNorm", width)?,
            layers,
        })
    }

    /// The vector of a text's tokens.
    pub(super) fn forward(&self, ids: &[usize]) -> Vec<f32> {
        let mut states = Array2::<f32>::zeros((ids.len(), self.words.ncols()));
        for (place, (mut state, id)) in states.rows_mut().into_iter().zip(ids).enumerate() {
            // A tokenizer may know tokens that the weights do not have.
            let id = if *id < self.words.nrows() { *id } else { 0 };
            state += &self.words.row(id);
            state += &self.positions.row(self.config.first_position + place);
            state += &self.kind;
        }
        self.norm.apply(&mut states, self.config.epsilon);
        for layer in &self.layers {
            layer.apply(&mut states, &self.config);
        }
        let pooled = match self.config.pooling {
            Pooling::First => states.row(0).to_owned(),
            Pooling::Mean => states.sum_axis(Axis(0)),
            Pooling::Max => {
                states.fold_axis(Axis(0), f32::NEG_INFINITY, |most, number| most.max(*number))
            }
        };
        pooled.to_vec()
    }
}

impl Layer {
    fn load(tensors: &Weights<'_>, name: &str, width: usize) -> Result<Self, FolderError> {
        let linear = |part: &str, from: usize, to: Option<usize>| {
            Linear::load(tensors, &format!("{name}.{part}"), from, to)
        };
        let norm = |part: &str| Norm::load(tensors, &format!("{name}.{part}"), width);
        let intermediate = linear("intermediate.dense", width, None)?;
        let inner = intermediate.bias.len();
        Ok(Self {
            query: linear("attention.self.query", width, Some(width))?,
            key: linear("attention.self.key", width, Some(width))?,
            value: linear("attention.self.value", width, Some(width))?,
            attention_output: linear("attention.output.dense", width, Some(width))?,
            attention_norm: norm("attention.output.LayerNorm")?,
            intermediate,
            output: linear("output.dense", inner, Some(width))?,
            output_norm: norm("output.LayerNorm")?,
        })
    }

    fn apply(&self, states: &mut Array2<f32>, config: &BertConfig) {
        let attended = self.attend(states, config.heads);
        *states += &self.attention_output.apply(&attended);
        self.attention_norm.apply(states, config.epsilon);
        let mut inner = self.intermediate.apply(states);
        inner.mapv_inplace(|number| activate(number, config.activation));
        *states += &self.output.apply(&inner);
        self.output_norm.apply(states, config.epsilon);
    }

    fn attend(&self, states: &Array2<f32>, heads: usize) -> Array2<f32> {
        let query = self.query.apply(states);
        let key = self.key.apply(states);
        let value = self.value.apply(states);
        let size = states.ncols() / heads;
        #[expect(clippy::cast_precision_loss, reason = "a head has a few dozen numbers")]
        let scale = 1.0 / (size as f32).sqrt();
        let mut attended = Array2::zeros(states.raw_dim());
        for head in 0..heads {
            let part = s![.., head * size..(head + 1) * size];
            let mut weights = query.slice(part).dot(&key.slice(part).t());
            for mut row in weights.rows_mut() {
                let highest = row.fold(f32::NEG_INFINITY, |most, number| most.max(*number));
                row.mapv_inplace(|number| ((number - highest) * scale).exp());
                let sum = row.sum();
                row /= sum;
            }
            attended.slice_mut(part).assign(&weights.dot(&value.slice(part)));
        }
        attended
    }
}

impl Linear {
    fn load(
        tensors: &Weights<'_>,
        name: &str,
        from: usize,
        to: Option<usize>,
    ) -> Result<Self, FolderError> {
        let weight = tensors.matrix(&format!("{name}.weight"), to, Some(from))?;
        let bias = tensors.vector(&format!("{name}.bias"), weight.nrows())?;
        Ok(Self { weight: weight.reversed_axes(), bias })
    }

    fn apply(&self, input: &Array2<f32>) -> Array2<f32> {
        input.dot(&self.weight) + &self.bias
    }
}

impl Norm {
    fn load(tensors: &Weights<'_>, name: &str, width: usize) -> Result<Self, FolderError> {
        // Old conversions kept the names of the first implementation.
        let either = |new: &str, old: &str| {
            let name = |part: &str| format!("{name}.{part}");
            let chosen = if tensors.has(&name(new)) { new } else { old };
            tensors.vector(&name(chosen), width)
        };
        Ok(Self { weight: either("weight", "gamma")?, bias: either("bias", "beta")? })
    }

    fn apply(&self, states: &mut Array2<f32>, epsilon: f32) {
        for mut row in states.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.fold(0.0, |sum, number| sum + number * number);
            #[expect(clippy::cast_precision_loss, reason = "a row has a few hundred numbers")]
            let factor = 1.0 / (variance / row.len() as f32 + epsilon).sqrt();
            Zip::from(&mut row)
                .and(&self.weight)
                .and(&self.bias)
                .for_each(|number, weight, bias| *number = *number * factor * weight + bias);
        }
    }
}

fn activate(number: f32, activation: Activation) -> f32 {
    const HALF_PI_ROOT: f32 = 0.797_884_6;
    match activation {
        Activation::Gelu => 0.5 * number * (1.0 + erf(number * std::f32::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            let inner = HALF_PI_ROOT * (number + 0.044_715 * number * number * number);
            0.5 * number * (1.0 + inner.tanh())
        }
        Activation::Relu => number.max(0.0),
    }
}

/// The error function, to seven digits (Abramowitz and Stegun, 7.1.26).
fn erf(number: f32) -> f32 {
    const FACTORS: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];
    let place = 1.0 / (1.0 + 0.327_591_1 * number.abs());
    let sum = FACTORS.iter().rev().fold(0.0, |sum, factor| (sum + factor) * place);
    (1.0 - sum * (-number * number).exp()).copysign(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_close() {
        for (number, expected) in
            [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (-2.0, -0.995_322_3), (6.0, 1.0)]
        {
            assert!((erf(number) - expected).abs() < 1e-6, "{number}: {}", erf(number));
        }
    }
}
