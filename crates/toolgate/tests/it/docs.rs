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

/// Doubles a number.
#[toolgate::tool]
async fn my_function(
    /// The number.
    n: i64,
) -> i64 {
    n * 2
}

/// What the README shows. It is compiled, and not run.
#[expect(dead_code, unused_variables, reason = "it shows the shape of a program")]
async fn of_the_readme() -> Result<(), Box<dyn std::error::Error>> {
    use toolgate::Host;
    let host = Host::builder().config_file("mcp.json")?.tool(my_function).start().await?;
    let hits = host.session().search("create an issue").limit(3).await?;
    Ok(())
}

#[test]
fn the_readme_shows_code_that_compiles() {
    let readme = include_str!("../../../../README.md");
    let snippets: Vec<&str> = readme.split("```rust\n").skip(1).collect();
    assert_eq!(snippets.len(), 1);
    let (snippet, _) = snippets[0].split_once("```").unwrap();
    for line in snippet.lines() {
        assert!(include_str!("docs.rs").contains(&format!("    {line}\n")), "{line}");
    }
}
