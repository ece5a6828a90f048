//! Calls with a result that is available only after `await`, in either language.

use super::finding::FindingCollector;

/// How the promise or the coroutine of a call is used. `V` identifies a variable or a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AwaitableUse<V> {
    /// It is awaited, returned or passed on.
    PassedOn,
    /// It is not used.
    Dropped,
    /// It is used as if it were the result of the call.
    UsedAsValue {
        /// The accessed part: `.name` or `[…]`.
        part: Option<String>,
        /// Whether it is only tested or compared. A test of a variable may be intended.
        is_condition: bool,
    },
    /// It is assigned to a variable.
    Named(V),
    /// It is an argument of a function that the script does not define, such as a tool.
    Given(V),
}

impl<V> AwaitableUse<V> {
    pub(super) fn value() -> Self {
        Self::UsedAsValue { part: None, is_condition: false }
    }

    pub(super) fn condition() -> Self {
        Self::UsedAsValue { part: None, is_condition: true }
    }

    pub(super) fn part(part: impl Into<String>) -> Self {
        Self::UsedAsValue { part: Some(part.into()), is_condition: false }
    }

    pub(super) fn value_if(is_value: bool) -> Self {
        if is_value { Self::value() } else { Self::PassedOn }
    }
}

/// A call that must be awaited. The last argument of its methods is an addition to the hint, for a
/// function in which `await` alone would not work.
pub(super) struct AwaitableCall {
    /// The language's name for what the call returns.
    pub(super) noun: &'static str,
    /// The called function.
    pub(super) name: String,
    /// The call in short form.
    pub(super) text: String,
    /// The position of the call.
    pub(super) offset: usize,
}

impl AwaitableCall {
    pub(super) fn report_dropped(&self, report: &mut FindingCollector<'_>, addition: &str) {
        let message = format!("the call of `{}` is never awaited", self.name);
        report.error(self.offset, message, format!("write `await {}`{addition}", self.text));
    }

    pub(super) fn report_value(
        &self,
        part: Option<&str>,
        report: &mut FindingCollector<'_>,
        addition: &str,
    ) {
        let message = format!("this is the {} of `{}`, not its result", self.noun, self.name);
        let hint = match part {
            Some(part) => format!("write `(await {}){part}`{addition}", self.text),
            None => format!("write `await {}`{addition}", self.text),
        };
        report.error(self.offset, message, hint);
    }

    /// Reports a variable with the promise or coroutine, which is used as the result at `offset`.
    pub(super) fn report_variable(
        &self,
        variable: &str,
        offset: usize,
        report: &mut FindingCollector<'_>,
        addition: &str,
    ) {
        let message =
            format!("`{variable}` is the {} of `{}`, not its result", self.noun, self.name);
        report.error(
            offset,
            message,
            format!("write `{variable} = await {}`{addition}", self.text),
        );
    }
}
