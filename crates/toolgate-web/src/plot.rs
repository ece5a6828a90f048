//! Plots, as SVG that this program writes.

use maud::{Markup, html};

use crate::text::{grouped, percent};

/// The whole width. Places are parts of it, so that text has its size on a phone too.
const WHOLE: u64 = 10_000;
const HEIGHT: usize = 132;
/// Where the bars begin, below what the highest is.
const TOP: usize = 20;
const BOTTOM: usize = 20;

/// What the two parts of each bar are.
pub(crate) struct Parts<'p> {
    pub(crate) title: &'p str,
    /// What the lower part is.
    pub(crate) first: &'p str,
    /// What the part above it is.
    pub(crate) second: &'p str,
    /// What one bar is.
    pub(crate) each: &'p str,
    /// What a bar is for.
    pub(crate) unit: &'p str,
}

/// Bars of two parts, the oldest first.
pub(crate) fn bars(values: &[(u64, u64)], parts: &Parts<'_>) -> Markup {
    let Parts { title, first, second, each: bar, unit } = parts;
    let most = values.iter().map(|(below, above)| below + above).max().unwrap_or_default();
    let below: u64 = values.iter().map(|(below, _)| below).sum();
    let above: u64 = values.iter().map(|(_, above)| above).sum();
    let space = HEIGHT - BOTTOM - TOP;
    let height = |value: u64| {
        let height = u128::from(value) * space as u128 / u128::from(most.max(1));
        usize::try_from(height).unwrap_or(space).max(usize::from(value > 0))
    };
    let each = WHOLE / (values.len() as u64).max(1);
    // A fifth of its place is between a bar and the next.
    let width = percent((each * 4 / 5).max(1));
    let base = HEIGHT - BOTTOM;
    let words = format!(
        "{title}: {} {first}, {} {second}, at most {} in {bar}",
        grouped(below),
        grouped(above),
        grouped(most)
    );
    html! {
        svg.plot width="100%" height=(HEIGHT) role="img" aria-label=(words) {
            text.faint x="0" y="12" { "at most " (grouped(most)) }
            line.axis x1="0" y1=(base) x2="100%" y2=(base) {}
            @for (index, (lower, upper)) in values.iter().enumerate() {
                @let (x, below, above) = (percent(each * index as u64), height(*lower), height(*upper));
                @if *lower > 0 { rect.bar x=(x) y=(base - below) width=(width) height=(below) {} }
                @if *upper > 0 { rect.bar.second x=(x) y=(base.saturating_sub(below + above)) width=(width) height=(above) {} }
            }
            text.faint x="0" y=(HEIGHT - 4) { (values.len()) " " (unit) }
            text.faint x="100%" y=(HEIGHT - 4) text-anchor="end" { "now" }
        }
        p.quiet.small { (words) "." }
    }
}
