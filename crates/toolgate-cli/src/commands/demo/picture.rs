//! The effect of toolgate as a picture, for the README.

use std::{fmt::Write as _, fs, path::Path};

use crate::{failure::Failure, table::grouped};

/// Two bars: tokens without and with toolgate.
pub(super) struct Bars {
    what: String,
    without: u64,
    with: u64,
}

impl Bars {
    pub(super) fn new(what: String, without: u64, with: u64) -> Self {
        Self { what, without, with }
    }
}

/// The colours of a picture.
struct Theme {
    file: &'static str,
    text: &'static str,
    faint: &'static str,
    without: &'static str,
    with: &'static str,
}

const THEMES: [Theme; 2] = [
    Theme {
        file: "effect-light.svg",
        text: "#1f2328",
        faint: "#59636e",
        without: "#c9d1d9",
        with: "#1a7f37",
    },
    Theme {
        file: "effect-dark.svg",
        text: "#f0f6fc",
        faint: "#9198a1",
        without: "#3d444d",
        with: "#3fb950",
    },
];

const WIDTH: u64 = 720;
/// Where bars begin.
const LEFT: u64 = 232;
/// The length of the longest bar.
const LONGEST: u64 = 380;
const BAR: u64 = 16;
/// The height of a pair of bars.
const PAIR: u64 = 58;
const TOP: u64 = 44;

/// Writes the picture in light and in dark colours.
pub(super) fn write(folder: &Path, bars: &[Bars]) -> Result<(), Failure> {
    for theme in &THEMES {
        let path = folder.join(theme.file);
        fs::write(&path, svg(theme, bars))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(())
}

/// The picture. Each pair of bars has its own scale.
fn svg(theme: &Theme, all: &[Bars]) -> String {
    let Theme { text, faint, without, with, .. } = theme;
    let height = TOP + PAIR * all.len() as u64 + 8;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"14\">\n\
         <title>Tokens in the context of a model, without and with toolgate</title>\n\
         <text x=\"0\" y=\"20\" fill=\"{faint}\">Tokens in the context of the model</text>\n"
    );
    for (index, bars) in all.iter().enumerate() {
        let top = TOP + PAIR * index as u64;
        let longest = bars.without.max(bars.with).max(1);
        let length = |tokens: u64| (LONGEST * tokens / longest).max(2);
        let _ =
            writeln!(svg, "<text x=\"0\" y=\"{}\" fill=\"{text}\">{}</text>", top + 13, bars.what);
        for (row, tokens, fill, name) in
            [(0, bars.without, without, "without"), (1, bars.with, with, "with toolgate")]
        {
            let y = top + row * (BAR + 4);
            let width = length(tokens);
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\" rx=\"3\" fill=\"{fill}\"/>\n\
                 <text x=\"{}\" y=\"{}\" fill=\"{faint}\" font-size=\"12\">{} {name}</text>",
                LEFT + width + 6,
                y + 12,
                grouped(tokens)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}
