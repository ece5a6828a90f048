//! Plots, as SVG that this program writes.

use maud::{Markup, html};

const WIDTH: usize = 720;
const HEIGHT: usize = 120;
const LEFT: usize = 36;
const BOTTOM: usize = 20;

/// Bars of two parts: what went well, and above it the rest.
pub(crate) fn bars(values: &[(u64, u64)], title: &str, unit: &str) -> Markup {
    let most = values.iter().map(|(well, rest)| well + rest).max().unwrap_or_default().max(1);
    let all: u64 = values.iter().map(|(well, rest)| well + rest).sum();
    let failed: u64 = values.iter().map(|(_, rest)| rest).sum();
    let space = HEIGHT - BOTTOM - 8;
    let height = |value: u64| {
        let height = u128::from(value) * space as u128 / u128::from(most);
        usize::try_from(height).unwrap_or(space).max(usize::from(value > 0))
    };
    let step = (WIDTH - LEFT) / values.len().max(1);
    let base = HEIGHT - BOTTOM;
    let words =
        format!("{title}: {all} in all, {failed} refused or failed, at most {most} at once");
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="img" aria-label=(words) {
            text.faint x=(LEFT - 6) y="16" text-anchor="end" { (most) }
            text.faint x=(LEFT - 6) y=(base) text-anchor="end" { "0" }
            line.axis x1=(LEFT) y1=(base) x2=(WIDTH) y2=(base) {}
            @for (index, (well, rest)) in values.iter().enumerate() {
                @let (x, below, above) = (LEFT + index * step, height(*well), height(*rest));
                @if *well > 0 { rect.bar x=(x) y=(base - below) width=(step - 2) height=(below) {} }
                @if *rest > 0 { rect.bar.bad x=(x) y=(base.saturating_sub(below + above)) width=(step - 2) height=(above) {} }
            }
            text.faint x=(LEFT) y=(HEIGHT - 4) { (values.len()) " " (unit) }
            text.faint x=(WIDTH) y=(HEIGHT - 4) text-anchor="end" { "now" }
        }
        p.quiet.small { (words) "." }
    }
}
