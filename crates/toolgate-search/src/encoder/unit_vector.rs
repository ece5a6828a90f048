//! A vector that can be trusted.

/// The longest vector that is taken. Encoders in use have 256 to 4,096 numbers.
pub const MAX_DIMENSIONS: usize = 8_192;

/// Finite numbers of length one: what a cosine needs.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitVector(Box<[f32]>);

impl UnitVector {
    /// The direction of these numbers. `None` where there is none: no numbers or too many, one that
    /// is not a number, or nothing but zeros.
    pub fn new(numbers: Vec<f32>) -> Option<Self> {
        if numbers.is_empty() || numbers.len() > MAX_DIMENSIONS {
            return None;
        }
        // The largest number first: squares of very large or very small ones have no room.
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

    /// How many there are.
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
    fn what_has_no_direction_is_none() {
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
