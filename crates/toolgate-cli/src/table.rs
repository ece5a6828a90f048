//! Tables for people.

pub(crate) use toolgate_catalog::grouped;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// The narrowest last column that can be read.
const LAST_COLUMN: usize = 32;

/// A table without borders, at most as wide as the terminal. A heading that begins with `>` aligns its
/// column right, for numbers. Where the last column would be too narrow, its cells are lines below their rows.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    // Without a terminal there is no width limit, and no cell is cut.
    let width = console::Term::stdout().size_checked().map(|(_, width)| width);
    in_width(headings, rows.into_iter().collect(), width)
}

fn in_width(headings: &[&str], mut rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    let columns = headings.len();
    let longest = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index)).flat_map(|cell| cell.lines());
        cells.map(console::measure_text_width).chain([headings[index].len()]).max().unwrap_or(0)
    };
    let others: usize = (0..columns.saturating_sub(1)).map(|index| longest(index) + 2).sum();
    let last = columns.checked_sub(1).map_or(0, longest);
    let width_left = width.map(|width| usize::from(width).saturating_sub(others + 2));
    if columns > 2 && width_left.is_some_and(|left| left < LAST_COLUMN && left < last) {
        let below: Vec<String> = rows.iter_mut().map(|row| row.pop().unwrap_or_default()).collect();
        let table = in_width(&headings[..columns - 1], rows, width);
        let mut lines = table.lines();
        let mut shown: Vec<String> = lines.by_ref().take(1).map(str::to_owned).collect();
        for (row, below) in lines.zip(below) {
            shown.push(row.to_owned());
            shown.extend(wrapped(&below, usize::from(width.unwrap_or(u16::MAX))));
        }
        return shown.join("\n");
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = width {
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

/// The lines of a text, indented, and broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "    ";
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = INDENT.to_owned();
        for word in paragraph.split_whitespace() {
            let is_first = line.len() == INDENT.len();
            let length = console::measure_text_width(&line) + console::measure_text_width(word);
            if !is_first && length + 1 > width {
                lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
            } else if !is_first {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// A share in percent, with one decimal.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_cuts_no_word() {
        let remark = "the command `no-such-program-anywhere` was not found; install it, or write its full path";
        let headings = ["server", "state", ">tools", ">loaded", ">deferred", "protocol", "remarks"];
        let row = |name: &str, remark: &str| {
            let cells = [name, "connecting", "1,234", "1,234", "1,234", "2025-11-25", remark];
            cells.map(str::to_owned).to_vec()
        };
        let rows = vec![row("filesystem", remark), row("b", "")];
        let shown = in_width(&headings, rows.clone(), Some(80));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert_eq!(shown.lines().count(), 5, "{shown}");
        for word in remark.split_whitespace() {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        assert!(in_width(&headings, rows, None).contains(remark));
    }
}
