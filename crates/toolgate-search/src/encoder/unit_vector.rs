//! Vectors of length one.

/// The largest number of dimensions. Common encoders have 256 to 4,096.
pub const MAX_DIMENSIONS: usize = 8_192;

/// A vector of finite numbers with the length one, as a cosine needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Box<[f32]>);

impl UnitVector {
    /// The vector with the direction of these numbers. `None` if there are no numbers or too many, if
    /// one is not finite, or if all are zero.
    pub fn new(numbers: Vec<f32>) -> Option<Self> {
        if numbers.is_empty() || numbers.len() > MAX_DIMENSIONS {
            return None;
        }
        // Scaled by the largest number, because squares of extreme numbers overflow.
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        if largest <= 0.0 || !numbers.iter().all(|number| number.is_finite()) {
            return None;
        }
        let mut numbers = numbers.into_boxed_slice();
        for number in &mut numbers {
            *number /= largest;
        }
        let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
        for number in &mut numbers {
            *number /= length;
        }
        Some(Self(numbers))
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_length_one() {
        for numbers in [vec![3.0, -4.0], vec![3e30, -4e30], vec![3e-40, -4e-40]] {
            let vector = UnitVector::new(numbers).unwrap();
            assert!((vector.as_slice()[0] - 0.6).abs() < 1e-3, "{vector:?}");
            assert!((vector.as_slice()[1] + 0.8).abs() < 1e-3, "{vector:?}");
        }
    }

    #[test]
    fn a_zero_vector_is_refused() {
        for numbers in [
            vec![],
            vec![0.0, 0.0],
            vec![f32::NAN, 1.0],
            vec![1.0, f32::INFINITY],
            vec![1.0; 8_193],
        ] {
            assert_eq!(UnitVector::new(numbers), None);
        }
    }
}
