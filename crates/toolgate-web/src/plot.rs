//! Plots, as SVG that this program writes.

use maud::{Markup, html};

use crate::text::grouped;

const WIDTH: usize = 720;
const HEIGHT: usize = 120;
const LEFT: usize = 64;
const BOTTOM: usize = 20;

/// What the two parts of each bar are.
pub(crate) struct Parts<'p> {
    pub(crate) title: &'p str,
    /// What the lower part is.
    pub(crate) first: &'p str,
    /// What the part above it is.
    pub(crate) second: &'p str,
    /// What a bar is for.
    pub(crate) unit: &'p str,
}

/// Bars of two parts, the oldest first.
pub(crate) fn bars(values: &[(u64, u64)], parts: &Parts<'_>) -> Markup {
    let Parts { title, first, second, unit } = parts;
    let most = values.iter().map(|(below, above)| below + above).max().unwrap_or_default().max(1);
    let below: u64 = values.iter().map(|(below, _)| below).sum();
    let above: u64 = values.iter().map(|(_, above)| above).sum();
    let space = HEIGHT - BOTTOM - 8;
    let height = |value: u64| {
        let height = u128::from(value) * space as u128 / u128::from(most);
        usize::try_from(height).unwrap_or(space).max(usize::from(value > 0))
    };
    let count = values.len().max(1);
    let at = |index: usize| LEFT + (WIDTH - LEFT) * index / count;
    let base = HEIGHT - BOTTOM;
    let words = format!(
        "{title}: {} {first}, {} {second}, at most {} at once",
        grouped(below),
        grouped(above),
        grouped(most)
    );
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="img" aria-label=(words) {
            text.faint x=(LEFT - 6) y="16" text-anchor="end" { (grouped(most)) }
            text.faint x=(LEFT - 6) y=(base) text-anchor="end" { "0" }
            line.axis x1=(LEFT) y1=(base) x2=(WIDTH) y2=(base) {}
            @for (index, (lower, upper)) in values.iter().enumerate() {
                @let (x, below, above) = (at(index), height(*lower), height(*upper));
                @let width = (at(index + 1) - x).saturating_sub(2).max(1);
                @if *lower > 0 { rect.bar x=(x) y=(base - below) width=(width) height=(below) {} }
                @if *upper > 0 { rect.bar.second x=(x) y=(base.saturating_sub(below + above)) width=(width) height=(above) {} }
            }
            text.faint x=(LEFT) y=(HEIGHT - 4) { (values.len()) " " (unit) }
            text.faint x=(WIDTH) y=(HEIGHT - 4) text-anchor="end" { "now" }
        }
        p.quiet.small { (words) "." }
    }
}
