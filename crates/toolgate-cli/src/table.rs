//! Tables for people.

pub(crate) use toolgate_catalog::grouped;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// A column with its heading; numbers are aligned right.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    Text(&'static str),
    Number(&'static str),
}

/// A table without borders, at most as wide as the terminal.
pub(crate) fn table(columns: &[Column], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // Without a terminal there is no width to fit into, and a cut cell is a lost one.
    if let Some((_, width)) = console::Term::stdout().size_checked() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    let align = |index: usize, text: String| match columns.get(index) {
        Some(Column::Number(_)) => Cell::new(text).set_alignment(CellAlignment::Right),
        _ => Cell::new(text),
    };
    table.set_header(columns.iter().enumerate().map(|(index, column)| match column {
        Column::Text(name) | Column::Number(name) => align(index, (*name).to_owned()),
    }));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(index, text)| align(index, text)));
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
