//! Ends child processes after toolgate was killed, where no launcher does.
//!
//! A process that gets SIGKILL cannot clean up. The parent-death signal reaches the child but not
//! its children: `npx` dies, and the server that it started lives on. So one small process for all
//! servers waits until toolgate closes a pipe, and then kills the groups of the servers. It is a
//! shell script, so that it also works in programs that embed this library.

use std::{
    io::Write,
    process::{ChildStdin, Command, Stdio},
};

use parking_lot::Mutex;

/// One for all connections: it costs a process.
static PIPE: Mutex<Pipe> = Mutex::new(Pipe::NotStarted);

#[derive(Debug)]
enum Pipe {
    NotStarted,
    Open(ChildStdin),
    Unavailable,
}

/// Lines are `+ GROUP` and `- GROUP`. Groups that are left when the pipe closes are killed.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
  case "$group" in ''|*[!0-9]*) continue ;; esac
  case "$sign" in
    +) groups="$groups$group " ;;
    -) case "$groups" in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
  esac
done
# Shells differ in what they take: the first form is the standard, the second is older.
for group in $groups; do
  kill -s KILL -- "-$group" 2>/dev/null || kill -KILL "-$group" 2>/dev/null
done
"#;

/// Lets the watchdog kill the group when this process ends.
pub(super) fn watch(group: u32) {
    write(&format!("+ {group}\n"), true);
}

/// Forgets a group.
pub(super) fn release(group: u32) {
    write(&format!("- {group}\n"), false);
}

fn write(line: &str, start: bool) {
    let mut pipe = PIPE.lock();
    if start && matches!(*pipe, Pipe::NotStarted) {
        *pipe = spawn().map_or(Pipe::Unavailable, Pipe::Open);
    }
    if let Pipe::Open(stdin) = &mut *pipe
        && stdin.write_all(line.as_bytes()).is_err()
    {
        tracing::warn!("the watchdog is gone; servers may outlive a killed toolgate");
        *pipe = Pipe::Unavailable;
    }
}

#[cfg(unix)]
fn spawn() -> Option<ChildStdin> {
    use std::os::unix::process::CommandExt;

    let child = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        // It needs no variables, some of which are secrets, and must not keep a folder busy.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Its own group, so that Ctrl-C in the terminal does not end it first.
        .process_group(0)
        .spawn();
    match child {
        // It ends when the pipe closes, at the end of toolgate. So nothing waits for it.
        Ok(child) => child.stdin,
        Err(error) => {
            tracing::warn!(%error, "no watchdog; servers may outlive a killed toolgate");
            None
        }
    }
}

#[cfg(not(unix))]
fn spawn() -> Option<ChildStdin> {
    let _ = (SCRIPT, Command::new("").stdin(Stdio::null()));
    None
}
