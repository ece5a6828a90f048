//! The tensors of a file, as numbers to calculate with.

use half::{bf16, f16};
use ndarray::{Array1, Array2};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::{FolderError, files::Folder};

/// The tensors of `model.safetensors`.
pub(super) struct Weights<'f> {
    folder: &'f Folder,
    tensors: SafeTensors<'f>,
    /// The prefix of the names of the tensors.
    prefix: String,
}

impl<'f> Weights<'f> {
    /// Reads the directory of `bytes`. If `anchor` has a prefix, all names have this prefix: models
    /// with a training head are saved like this.
    pub(super) fn new(
        folder: &'f Folder,
        bytes: &'f [u8],
        anchor: &str,
    ) -> Result<Self, FolderError> {
        let path = folder.weights_path();
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| FolderError::damaged(&path, format!("is damaged: {error}")))?;
        let prefix = tensors
            .names()
            .into_iter()
            .find_map(|name| name.strip_suffix(anchor))
            .filter(|prefix| prefix.is_empty() || prefix.ends_with('.'))
            .unwrap_or_default()
            .to_owned();
        Ok(Self { folder, tensors, prefix })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.tensor(&format!("{}{name}", self.prefix)).is_ok()
    }

    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, FolderError> {
        let view = self.view(name)?;
        if view.shape() != [length] {
            return Err(self.misshapen(name, &view));
        }
        Ok(Array1::from_vec(self.numbers(name, &view)?))
    }

    /// A table with this number of columns, and of rows if that is given.
    pub(super) fn matrix(
        &self,
        name: &str,
        rows: Option<usize>,
        columns: Option<usize>,
    ) -> Result<Array2<f32>, FolderError> {
        let view = self.view(name)?;
        let [height, width] = view.shape()[..] else { return Err(self.misshapen(name, &view)) };
        let fits = |said: Option<usize>, is: usize| is > 0 && said.is_none_or(|said| said == is);
        if !fits(rows, height) || !fits(columns, width) {
            return Err(self.misshapen(name, &view));
        }
        Array2::from_shape_vec((height, width), self.numbers(name, &view)?)
            .map_err(|_| self.misshapen(name, &view))
    }

    /// Whole numbers, such as places in another table.
    pub(super) fn places(&self, name: &str) -> Result<Vec<usize>, FolderError> {
        let view = self.view(name)?;
        let data = view.data();
        let place = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        match view.dtype() {
            Dtype::I64 => Ok(data
                .as_chunks()
                .0
                .iter()
                .map(|bytes| place(i64::from_le_bytes(*bytes)))
                .collect()),
            Dtype::I32 => Ok(data
                .as_chunks()
                .0
                .iter()
                .map(|bytes| place(i64::from(i32::from_le_bytes(*bytes))))
                .collect()),
            _ => Err(self.misshapen(name, &view)),
        }
    }

    fn view(&self, name: &str) -> Result<TensorView<'f>, FolderError> {
        self.tensors.tensor(&format!("{}{name}", self.prefix)).map_err(|_| {
            FolderError::damaged(&self.folder.weights_path(), format!("has no tensor `{name}`"))
        })
    }

    fn numbers(&self, name: &str, view: &TensorView<'_>) -> Result<Vec<f32>, FolderError> {
        let data = view.data();
        Ok(match view.dtype() {
            Dtype::F32 => data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => {
                data.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
            }
            Dtype::BF16 => {
                data.as_chunks().0.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect()
            }
            #[expect(clippy::cast_possible_truncation, reason = "32 bits are enough for a weight")]
            Dtype::F64 => {
                data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect()
            }
            Dtype::I8 => data.iter().map(|byte| f32::from(byte.cast_signed())).collect(),
            other => {
                let what = format!("a tensor `{name}` of {other:?}");
                return Err(FolderError::unsupported(self.folder.path(), what));
            }
        })
    }

    fn misshapen(&self, name: &str, view: &TensorView<'_>) -> FolderError {
        let reason = format!("the tensor `{name}` has the shape {:?}", view.shape());
        FolderError::damaged(&self.folder.weights_path(), reason)
    }
}
