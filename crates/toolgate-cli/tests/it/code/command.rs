//! Scripts from a shell.

use serde_json::json;

use super::workplace;
use crate::support::Workplace;

#[tokio::test]
async fn a_file_or_stdin_is_run() {
    let workplace = workplace(&json!({}));
    std::fs::write(workplace.path().join("sum.ts"), "return (await kit_add({ a: 1, b: 2 })).sum")
        .unwrap();
    std::fs::write(workplace.path().join("sum.py"), "print((await kit_add(1, 2))['sum'])").unwrap();
    insta::assert_snapshot!(workplace.run(&["run", "sum.ts"]).await.shown(), @r"
    exit code 0
    --- stdout
    3
    --- stderr
    ");
    insta::assert_snapshot!(workplace.run(&["run", "sum.py"]).await.shown(), @r"
    exit code 0
    --- stdout
    3
    --- stderr
    ");
    let outcome = workplace.run_with_input(&["run", "-", "-l", "python"], "print(1 + 1)").await;
    insta::assert_snapshot!(outcome.shown(), @r"
    exit code 0
    --- stdout
    2
    --- stderr
    ");
    let outcome =
        workplace.run_with_input(&["run", "-"], "console.log('a'); throw new Error('b')").await;
    insta::assert_snapshot!(outcome.shown(), @r"
    exit code 1
    --- stdout
    a
    --- stderr
    error: Error: b
      at line 1, column 25: console.log('a'); throw new Error('b')
    No call was made.
    ");
    insta::assert_snapshot!(workplace.run(&["run", "missing.ts"]).await.shown(), @r"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read missing.ts: No such file or directory (os error 2)
      hint: name a script, or `-` to read it from stdin
    ");
}

#[tokio::test]
async fn json_has_all_of_it() {
    let workplace = workplace(&json!({}));
    let code = "console.log('hello'); await kit_add({ a: 1, b: 2 }); return { a: [1] }";
    let outcome = workplace.run_with_input(&["run", "-", "--json"], code).await;
    let told = outcome.json();
    assert_eq!(told["value"], json!({ "a": [1] }));
    assert_eq!(told["output"], "hello\n");
    assert_eq!(told["error"], json!(null));
    assert_eq!(told["run"]["calls"][0]["name"], "kit_add");
    assert_eq!(told["run"]["calls"][0]["state"], "completed");
}

#[tokio::test]
async fn doctor_shows_what_confines_scripts() {
    let outcome = Workplace::empty().run(&["doctor"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = Workplace::empty().run(&["doctor", "--json"]).await.json();
    if cfg!(target_os = "linux") {
        assert!(outcome.stdout.contains("seccomp"), "{outcome:?}");
        assert_eq!(told["scriptsRun"], true, "{told}");
    }
}
