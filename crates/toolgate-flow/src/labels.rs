//! Labels of the data that tools return and take.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mark on a tool's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// The results are for the organisation only.
    Private,
    /// The results were written by strangers and may contain instructions.
    Untrusted,
    /// The arguments can leave the organisation.
    Egress,
}

/// Several labels, each at most once.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<Label>", into = "Vec<Label>")]
pub struct LabelSet(u8);

impl Label {
    /// All labels.
    pub const ALL: [Self; 3] = [Self::Private, Self::Untrusted, Self::Egress];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Untrusted => "untrusted",
            Self::Egress => "egress",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl LabelSet {
    /// No label.
    pub const EMPTY: Self = Self(0);

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the label is one of them.
    pub fn contains(self, label: Label) -> bool {
        self.0 & label.bit() != 0
    }

    /// The labels of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The labels that both have.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether every label of the other is here.
    pub fn is_superset(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The labels, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.contains(*label))
    }
}

impl FromIterator<Label> for LabelSet {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        Self(labels.into_iter().fold(0, |bits, label| bits | label.bit()))
    }
}

impl From<Vec<Label>> for LabelSet {
    fn from(labels: Vec<Label>) -> Self {
        labels.into_iter().collect()
    }
}

impl From<Label> for LabelSet {
    fn from(label: Label) -> Self {
        Self(label.bit())
    }
}

impl From<LabelSet> for Vec<Label> {
    fn from(labels: LabelSet) -> Self {
        labels.iter().collect()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for LabelSet {
    /// The labels with commas between.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, label) in self.iter().enumerate() {
            if index > 0 {
                formatter.write_str(", ")?;
            }
            formatter.write_str(label.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for LabelSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_a_set() {
        let both: LabelSet = [Label::Egress, Label::Private, Label::Egress].into_iter().collect();
        assert_eq!(both.to_string(), "private, egress");
        assert!(both.is_superset(Label::Egress.into()) && !both.contains(Label::Untrusted));
        assert_eq!(both.intersection(Label::Private.into()), Label::Private.into());
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"["private","egress"]"#);
        assert_eq!(serde_json::from_str::<LabelSet>(&text).unwrap(), both);
    }
}
