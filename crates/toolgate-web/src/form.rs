//! What a form or a query sends.

use toolgate_store::MAX_LIFETIME_DAYS;
use url::form_urlencoded;

use crate::text::grouped;

/// The fields of a form, or of the query of an address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

/// Longer values of a query are cut: they are words that somebody looks for.
const MAX_QUERY_VALUE: usize = 2_000;

impl Fields {
    /// The fields of a form.
    pub(crate) fn read(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    /// The fields of a query.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(
            pairs
                .map(|(name, value)| {
                    (name.into_owned(), value.chars().take(MAX_QUERY_VALUE).collect())
                })
                .collect(),
        )
    }

    /// A field; empty if it is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether there is such a field, even if it is empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    /// A field that says something.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    /// After how many days something ends; `None` if it does not. A browser is not the only one that sends forms.
    pub(crate) fn days(&self) -> Result<Option<u32>, String> {
        let days = self.some("days").map(|days| days.trim().parse::<u32>()).transpose();
        match days {
            Ok(days) if days.is_none_or(|days| (1..=MAX_LIFETIME_DAYS).contains(&days)) => Ok(days),
            _ => Err(format!(
                "the number of days is not from 1 to {}",
                grouped(MAX_LIFETIME_DAYS.into())
            )),
        }
    }

    /// All fields whose names begin so, with the rest of their names.
    pub(crate) fn beginning<'f>(
        &'f self,
        start: &'f str,
    ) -> impl Iterator<Item = (&'f str, &'f str)> {
        self.0.iter().filter_map(move |(key, value)| Some((key.strip_prefix(start)?, &**value)))
    }
}

/// A query of these fields, without those that say nothing.
pub(crate) fn query(fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A text as a part of a path.
pub(crate) fn path_part(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_limited() {
        let days = |days: &str| Fields::read(format!("days={days}").as_bytes()).days();
        assert_eq!((days(""), days("1"), days("3650")), (Ok(None), Ok(Some(1)), Ok(Some(3_650))));
        for wrong in ["0", "3651", "4000000000", "99999999999999", "-1", "x"] {
            assert_eq!(days(wrong).unwrap_err(), "the number of days is not from 1 to 3,650");
        }
    }
}
