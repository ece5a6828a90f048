//! No process of a server survives toolgate, and none can read its memory.

use std::{fs, os::unix::fs::MetadataExt, path::Path, process::Stdio};

use serde_json::json;
use tokio::process::Command;
use toolgate_testkit::{Builtin, Fixture};

use crate::support::{Gateway, Workplace, entry, until};

/// Ends at some time even if nobody ends it.
const DAEMON: &str = "n=0; while [ $n -lt 600 ]; do sleep 1; n=$((n+1)); done";

/// Starts itself again in another session, and ends, again and again. `$1` counts.
const MOVER: &str = r#"echo $$ >> "$0.log"; sleep 0.02
if [ "$1" -lt 3000 ]; then setsid env -i PATH="$PATH" sh "$0" $(($1+1)) </dev/null >/dev/null 2>&1 & fi"#;

/// A server that starts daemons in sessions of their own: with all variables, without any, and one
/// that moves on all the time.
fn workplace() -> Workplace {
    let workplace = Workplace::empty();
    let path = workplace.path().display().to_string();
    fs::write(workplace.path().join("daemon.sh"), DAEMON).unwrap();
    fs::write(workplace.path().join("mover.sh"), MOVER).unwrap();
    let fixture = Fixture::new("family").with_builtins([Builtin::Add, Builtin::Crash]);
    let fixture = entry(&fixture);
    let script = format!(
        "for before in '' 'env -i'; do\n\
         ($before setsid sh '{path}/daemon.sh' </dev/null >/dev/null 2>&1 &)\n\
         done\n\
         (setsid sh '{path}/mover.sh' 0 </dev/null >/dev/null 2>&1 &)\n\
         exec \"$0\" \"$@\""
    );
    let mut args = vec![json!("-c"), json!(script), fixture["command"].clone()];
    args.extend(fixture["args"].as_array().into_iter().flatten().cloned());
    let server = json!({ "command": "/bin/sh", "args": args });
    workplace.rewrite(&json!({ "mcpServers": { "family": server } }).to_string());
    workplace
}

/// The processes that run the daemons of a workplace.
fn daemons(folder: &Path) -> Vec<String> {
    let names = ["daemon.sh", "mover.sh"].map(|name| folder.join(name).display().to_string());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let runs_one = |number: &String| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        // Not the server itself, whose script names them too.
        words.nth(1).is_some_and(|word| names.iter().any(|name| word == *name))
    };
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(runs_one).collect()
}

async fn start(workplace: &Workplace) -> Gateway {
    let mut gateway = workplace.connect(&[]).await;
    let sum = gateway.call("family_add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(sum["result"]["structuredContent"]["sum"], 3, "{sum}");
    let trace = workplace.path().join("mover.sh.log");
    until("the daemons", async || {
        let moves = fs::read_to_string(&trace).unwrap_or_default().lines().count();
        (daemons(workplace.path()).len() >= 2 && moves > 2).then_some(())
    })
    .await;
    gateway
}

/// Waits until no daemon is found, again and again: one that moves can be missed once.
async fn all_gone(workplace: &Workplace) {
    let trace = workplace.path().join("mover.sh.log");
    until("the end of the daemons", async || {
        let moves = fs::read_to_string(&trace).unwrap_or_default();
        let found = (0..10).any(|_| !daemons(workplace.path()).is_empty());
        (!found && fs::read_to_string(&trace).unwrap_or_default() == moves).then_some(())
    })
    .await;
}

#[tokio::test]
async fn no_process_survives_a_normal_end() {
    let workplace = workplace();
    let mut gateway = start(&workplace).await;
    gateway.close_stdin();
    gateway.wait().await.unwrap();
    all_gone(&workplace).await;
}

#[tokio::test]
async fn no_process_survives_a_killed_toolgate() {
    let workplace = workplace();
    let mut gateway = start(&workplace).await;
    send("-KILL", &gateway.pid().unwrap().to_string()).await;
    gateway.wait().await.unwrap();
    all_gone(&workplace).await;
}

#[tokio::test]
async fn no_process_survives_the_crash_of_its_server() {
    let workplace = workplace();
    let mut gateway = start(&workplace).await;
    let before = daemons(workplace.path());
    let crash = gateway.call("family_crash", json!({})).await.unwrap();
    assert_eq!(crash["result"]["isError"], true, "{crash}");
    until("the end of the first daemons", async || {
        let now = daemons(workplace.path());
        (!before.iter().any(|number| now.contains(number))).then_some(())
    })
    .await;
    gateway.close_stdin();
    gateway.wait().await.unwrap();
    all_gone(&workplace).await;
}

#[tokio::test]
async fn no_process_survives_if_the_launcher_was_stopped() {
    for how in ["a normal end", "a kill"] {
        let workplace = workplace();
        let mut gateway = start(&workplace).await;
        let launcher = launcher(workplace.path());
        send("-STOP", &launcher).await;
        if how == "a kill" {
            send("-KILL", &gateway.pid().unwrap().to_string()).await;
        } else {
            gateway.close_stdin();
        }
        gateway.wait().await.unwrap();
        all_gone(&workplace).await;
    }
}

/// The process that ends what the server of a workplace has started.
fn launcher(folder: &Path) -> String {
    let folder = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let found = numbers.find(|number| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("toolgate-launcher") && line.contains(&folder)
    });
    found.unwrap()
}

async fn send(signal: &str, process: &str) {
    assert!(Command::new("kill").args([signal, process]).status().await.unwrap().success());
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_named_by_the_launcher_too() {
    let server = json!({ "command": "no-such-command-here" });
    let workplace = Workplace::new(&json!({ "mcpServers": { "lost": server } }));
    let shown = workplace.run(&["status"]).await.shown();
    assert!(shown.contains("no-such-command-here"), "{shown}");
    assert!(shown.contains("not found") || shown.contains("is not"), "{shown}");
}

/// The system decides by the owner of the files in `/proc` who may read them. A process whose memory
/// is hidden has files of root. So this test lets another user than root run toolgate and the reader.
#[tokio::test]
async fn the_environment_of_toolgate_cannot_be_read() {
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root { 65534 } else { rustix::process::geteuid().as_raw() };
    let as_user = |command: &mut Command| {
        if is_root {
            command.uid(user).gid(user);
        }
    };
    let workplace = Workplace::new(&json!({ "mcpServers": {} }));
    if is_root {
        use std::os::unix::fs::chown;
        chown(workplace.path(), Some(user), Some(user)).unwrap();
        chown(workplace.config(), Some(user), Some(user)).unwrap();
    }
    let mut command = workplace.command(&["serve", "--stdio"]);
    command.env("OTHER_SECRET", "hunter2");
    as_user(&mut command);
    let mut toolgate = command.spawn().unwrap();
    let number = toolgate.id().unwrap();
    let environment = format!("/proc/{number}/environ");
    // It has begun once it answers.
    let mut stdin = toolgate.stdin.take().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{hello}\n").as_bytes()).await.unwrap();
    let mut answer = [0];
    let mut stdout = toolgate.stdout.take().unwrap();
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut answer).await.unwrap();
    assert_ne!(fs::metadata(&environment).unwrap().uid(), user, "the memory is not hidden");
    let mut reader = Command::new("cat");
    reader.arg(&environment).current_dir("/").stdin(Stdio::null());
    as_user(&mut reader);
    let read = reader.output().await.unwrap();
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
    drop(stdin);
    toolgate.wait().await.unwrap();
}
