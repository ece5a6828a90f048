//! Tables for people.

pub(crate) use toolgate_catalog::grouped;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// A table without borders, at most as wide as the terminal. A heading that begins with `>` aligns its
/// column right, for numbers.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Without a terminal there is no width limit, and no cell is cut.
    if let Some((_, width)) = console::Term::stdout().size_checked() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.set_header(headings.iter().map(|heading| heading.trim_start_matches('>')));
    for row in rows {
        table.add_row(row);
    }
    for (heading, column) in headings.iter().zip(table.column_iter_mut()) {
        if heading.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The preset pads the ends of lines, which shows in every diff and copy.
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A share in percent, with one decimal.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}
