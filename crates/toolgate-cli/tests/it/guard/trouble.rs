//! State folders that cannot be written or read.

use serde_json::json;
use toolgate_testkit::Fixture;

use super::{records, workplace};
use crate::support::{Outcome, Workplace, entry, program};

const DELETE: [&str; 3] = ["call", "records_delete", r#"{"id":"1"}"#];

/// Runs a command with other variables than usual.
async fn run_with(workplace: &Workplace, arguments: &[&str], home: Option<&str>) -> Outcome {
    let mut command = workplace.command(arguments);
    command.env_remove("HOME").env_remove("TOOLGATE_HOME");
    if let Some(home) = home {
        command.env("TOOLGATE_HOME", home);
    }
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).unwrap().replace(&workplace.path().display().to_string(), "HERE")
    };
    Outcome { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// A state folder that cannot be made, whoever runs the tests.
fn impossible(workplace: &Workplace) -> String {
    std::fs::write(workplace.path().join("file"), "").unwrap();
    workplace.path().join("file/state").display().to_string()
}

fn recorded(fixture: &Fixture) -> Workplace {
    let servers = json!({ "records": entry(fixture) });
    Workplace::new(&json!({ "mcpServers": servers, "audit": { "required": true } }))
}

#[tokio::test]
async fn a_required_audit_log_without_a_folder_prevents_the_start() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let workplace = recorded(&records().with_call_log(log.path().to_owned()));
    insta::assert_snapshot!(run_with(&workplace, &DELETE, None).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: `audit.required` is set, and there is no folder to write to
      hint: set TOOLGATE_HOME to a folder that you can write
    ");
    let home = impossible(&workplace);
    insta::assert_snapshot!(run_with(&workplace, &["serve", "--stdio"], Some(&home)).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: `audit.required` is set, and cannot write HERE/file/state: Not a directory (os error 20)
      hint: set TOOLGATE_HOME to a folder that you can write
    ");
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "", "nothing was called");
}

#[tokio::test]
async fn a_missing_state_folder_is_reported_once_with_a_hint() {
    let workplace = workplace(&json!("ask"));
    let list = ["call", "records_list"];
    insta::assert_snapshot!(run_with(&workplace, &list, None).await.stderr, @"
    warning: there is no folder to write to; nothing is stored: no call is recorded, and no approval can be given later
      hint: set TOOLGATE_HOME to a folder that you can write
    ");
    let home = impossible(&workplace);
    insta::assert_snapshot!(run_with(&workplace, &list, Some(&home)).await.stderr, @"
    warning: cannot write HERE/file/state: Not a directory (os error 20); nothing is stored: no call is recorded, and no approval can be given later
      hint: set TOOLGATE_HOME to a folder that you can write
    ");
    let served = run_with(&workplace, &["serve", "--stdio"], Some(&home)).await;
    assert_eq!(served.stderr.matches("TOOLGATE_HOME").count(), 1, "{served:?}");
    assert_eq!(served.stderr.lines().count(), 2, "{served:?}");
    let asked = run_with(&workplace, &DELETE, Some(&home)).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    insta::assert_snapshot!(asked.stderr, @"
    warning: cannot write HERE/file/state: Not a directory (os error 20); nothing is stored: no call is recorded, and no approval can be given later
      hint: set TOOLGATE_HOME to a folder that you can write
    error: `records_delete` was not called: it needs an approval, and no question can be kept: there is no folder for it; set TOOLGATE_HOME to a folder that you can write
    ");
}

#[tokio::test]
async fn a_broken_journal_is_reported_with_a_hint() {
    let workplace = workplace(&json!("ask"));
    let state = workplace.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("journal.db"), "no database at all".repeat(300)).unwrap();
    let home = state.display().to_string();
    for command in ["runs", "approve", "grants"] {
        let outcome = run_with(&workplace, &[command], Some(&home)).await;
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(outcome.stderr, @"
            error: the journal HERE/state/journal.db cannot be used: file is not a database
              hint: move the file away: a new one is made, without its runs, open questions and grants
            ");
        }
    }
    let asked = run_with(&workplace, &DELETE, Some(&home)).await;
    insta::assert_snapshot!(asked.stderr, @"
     WARN the journal HERE/state/journal.db cannot be used: file is not a database; move the file away: a new one is made, without its runs, open questions and grants
    error: `records_delete` was not called: it needs an approval, and no question can be kept: the journal HERE/state/journal.db cannot be used: file is not a database; move the file away: a new one is made, without its runs, open questions and grants
    ");
    std::fs::remove_file(state.join("journal.db")).unwrap();
    assert_eq!(workplace.run(&["grants"]).await.code, Some(0), "the way out is one");
}

#[tokio::test]
async fn a_damaged_state_file_enables_no_server() {
    let workplace = workplace(&json!("allow"));
    assert_eq!(workplace.run(&["disable", "records"]).await.code, Some(0));
    let folder = workplace.path().join("state/choices");
    let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|it| it == "json")).unwrap();
    std::fs::write(&file, r#"{ "disabled": "#).unwrap();
    for command in [&["status"] as &[&str], &DELETE, &["serve", "--stdio"], &["enable", "records"]]
    {
        let outcome = workplace.run(command).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
        let named = format!("error: {} cannot be read", file.display());
        assert!(outcome.stderr.starts_with(&named), "{outcome:?}");
        assert!(outcome.stderr.contains("hint: correct it, or remove it"), "{outcome:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), r#"{ "disabled": "#);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(workplace.run(&DELETE).await.code, Some(0), "the way out is one");
}

#[tokio::test]
async fn the_hint_for_a_broken_lock_file_works() {
    let workplace = workplace(&json!("allow"));
    let lock = workplace.path().join("toolgate.lock");
    std::fs::write(&lock, "{").unwrap();
    let approve = ["definitions", "approve", "--all"];
    insta::assert_snapshot!(workplace.run(&approve).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.lock: the lock file is broken: EOF while parsing an object at line 1 column 1
      hint: restore the file, or remove it and run `toolgate definitions approve --all`, which approves every tool as it is then
    ");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(workplace.run(&approve).await.code, Some(0));
    assert!(lock.exists());
    assert_eq!(workplace.run(&DELETE).await.code, Some(0));
}

/// A file that is always full replaces the log.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn records_lost_on_a_full_disk_are_counted_and_shown() {
    let workplace = workplace(&json!("allow"));
    let folder = workplace.path().join("state/audit");
    let list = ["call", "records_list"];
    assert_eq!(workplace.run(&list).await.code, Some(0));
    let (log, aside) = (folder.join("audit.jsonl"), folder.join("aside"));
    std::fs::rename(&log, &aside).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    for _ in 0..3 {
        assert_eq!(workplace.run(&list).await.code, Some(0), "the record is not required");
    }
    // The disk has space again.
    std::fs::remove_file(&log).unwrap();
    std::fs::rename(&aside, &log).unwrap();
    let verified = workplace.run(&["audit", "--verify"]).await;
    insta::assert_snapshot!(verified.shown(), @r"
    exit code 1
    --- stdout
    --- stderr
    error: at the end of the log 3 records are missing: they could not be written
    ");
    assert_eq!(workplace.run(&list).await.code, Some(0));
    let verified = workplace.run(&["audit", "--verify"]).await;
    insta::assert_snapshot!(verified.shown(), @r"
    exit code 1
    --- stdout
    --- stderr
    error: before line 2 of audit.jsonl 3 records are missing: they could not be written
    ");
    let status = workplace.run(&["status"]).await.stdout;
    let told =
        "3 records of the audit log could not be written: `toolgate audit --verify` shows where.";
    assert!(status.contains(told), "{status}");
    assert_eq!(workplace.run(&["status", "--json"]).await.json()["unrecorded"], 3);

    std::fs::remove_dir_all(&folder).unwrap();
    let gone = workplace.run(&["audit", "--verify"]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("the log is gone: there was one"), "{gone:?}");
    let status = workplace.run(&["status"]).await.stdout;
    assert!(status.contains("the log is gone: there was one"), "{status}");
    std::fs::remove_file(workplace.path().join("state/audit.began")).unwrap();
    let gone = workplace.run(&["audit", "--verify"]).await;
    assert!(gone.stderr.contains("the log is gone: there was one"), "{gone:?}");
}

/// Nothing can be written to a file from the start. The signal of such a limit (SIGXFSZ) ends nothing.
#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_was_full_from_the_start_is_shown() {
    let workplace = workplace(&json!("allow"));
    let script = format!("ulimit -f 0; exec '{}' call records_list", program());
    let mut command = workplace.command(&[]);
    let mut full = tokio::process::Command::new("sh");
    full.args(["-c", &script]).current_dir(workplace.path());
    full.envs(command.as_std_mut().get_envs().filter_map(|(name, value)| Some((name, value?))));
    let called = full.stdin(std::process::Stdio::null()).output().await.unwrap();
    assert!(called.status.success(), "{called:?}");
    let verified = workplace.run(&["audit", "--verify"]).await;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stderr.contains("records are missing"), "{verified:?}");
    let status = workplace.run(&["status"]).await.stdout;
    assert!(status.contains("of the audit log could not be written"), "{status}");
}
