//! Scripts and what they print. The expected texts are `CPython`'s.

use super::run;

#[test]
fn the_language_is_there() {
    check(include_str!("cases/language.txt"));
}

#[test]
fn the_library_is_there() {
    check(include_str!("cases/library.txt"));
}

#[test]
fn waiting_is_there() {
    check(include_str!("cases/waiting.txt"));
}

/// Cases are `### name`, a script, `---`, and what it prints.
fn check(cases: &str) {
    let mut failed = Vec::new();
    for case in cases.split("### ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a case has a name");
        let (script, expected) = rest.split_once("\n---\n").expect("a case has its output");
        let run = run(script);
        if run.output.trim_end() != expected.trim_end() || run.outcome.is_err() {
            failed.push(format!(
                "## {name}\nexpected:\n{expected}\ngot:\n{}\n{:?}\n",
                run.output, run.outcome
            ));
        }
    }
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
}
