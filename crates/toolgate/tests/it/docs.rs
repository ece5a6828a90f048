//! `docs/embedding.md` shows the examples as they are.

use std::{fs, path::Path};

const LINT: &str = "#![expect(clippy::print_stdout, reason = \"an example prints\")]\n\n";

#[test]
fn the_page_shows_the_examples_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/embedding.md")).unwrap();
    let mut shown = 0;
    for part in page.split("<!-- ").skip(1) {
        let (path, rest) = part.split_once(" -->\n```rust\n").unwrap();
        let (snippet, _) = rest.split_once("\n```\n").unwrap();
        let example = fs::read_to_string(root.join(path)).unwrap();
        // What the lints of this project need is no part of the example.
        let example = example.replace(LINT, "");
        assert_eq!(snippet, example.trim_end(), "{path} and docs/embedding.md differ");
        shown += 1;
    }
    assert_eq!(shown, 4, "embed, functions, approval and chat");
}
