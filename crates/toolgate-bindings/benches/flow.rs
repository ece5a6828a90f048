//! What it costs to follow the data of a script, and how the cost grows with its length.
//!
//! The whole check is timed, because the analysis has no other entrance. `steps` prints the work of
//! the analysis alone, which does not depend on the machine.
//!
//!     cargo bench -p toolgate-bindings --bench flow

#![expect(clippy::print_stdout, reason = "a benchmark prints figures")]

#[path = "scripts/mod.rs"]
mod scripts;

use serde_json::{json, value::to_raw_value};
use toolgate_bindings::check::{Checked, Language, Lookup, LookupResult, check};

use self::scripts::{SHAPES, Shape, script};

const LINES: [usize; 4] = [10, 100, 1_000, 5_000];

fn main() {
    println!("steps of the analysis, for 10, 100, 1,000 and 5,000 lines (* unknown flows)");
    for shape in SHAPES {
        for language in [Language::TypeScript, Language::Python] {
            let steps = LINES.map(|lines| {
                let checked = run(language, &script(shape, language, lines));
                let mark = if checked.flow.is_none() { "*" } else { "" };
                format!("{:>9}{mark:1}", checked.flow_steps)
            });
            println!(
                "{:<10} {:<10} {}",
                format!("{shape:?}"),
                format!("{language:?}"),
                steps.concat()
            );
        }
    }
    divan::main();
}

struct AllTools;

impl Lookup for AllTools {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        let input_schema = to_raw_value(&json!({ "type": "object" })).ok();
        let tool = |name: &String| {
            Some(LookupResult::Tool {
                name: name.clone(),
                input_schema: input_schema.clone()?,
                output_schema: None,
            })
        };
        names
            .iter()
            .filter(|name| ["page", "send"].contains(&name.as_str()))
            .filter_map(tool)
            .collect()
    }
}

fn run(language: Language, source: &str) -> Checked {
    let checked = check(language, source, &[], &[], &mut AllTools);
    assert!(!checked.has_errors(), "{:?}", checked.findings);
    checked
}

macro_rules! measure {
    ($($name:ident: $shape:ident),*) => {
        $(mod $name {
            use super::{LINES, Language, Shape, run, script};

            #[divan::bench(args = LINES, sample_count = 10)]
            fn typescript(bencher: divan::Bencher<'_, '_>, lines: usize) {
                let source = script(Shape::$shape, Language::TypeScript, lines);
                bencher.bench(|| run(Language::TypeScript, &source).flow_steps);
            }

            #[divan::bench(args = LINES, sample_count = 10)]
            fn python(bencher: divan::Bencher<'_, '_>, lines: usize) {
                let source = script(Shape::$shape, Language::Python, lines);
                bencher.bench(|| run(Language::Python, &source).flow_steps);
            }
        })*
    };
}

measure!(
    calls: Calls, nesting: Nesting, functions: Functions, closures: Closures, aliases: Aliases,
    mixing: Mixing
);
