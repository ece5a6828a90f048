//! Ends child processes after toolgate was killed.
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

/// Lines are `+ GROUP TAG` and `- GROUP`. Groups that are left when the pipe closes are killed, and
/// with them every process that has one of the tags among its variables, where the system shows them.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
tags=''
while read -r sign group tag; do
  case "$group" in ''|*[!0-9]*) continue ;; esac
  case "$sign" in
    +) groups="$groups$group "; case "$tag" in ''|*[!0-9a-f-]*) ;; *) tags="$tags $group:$tag" ;; esac ;;
    -) case "$groups" in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac
       case "$tags " in *" $group:"*) rest="${tags#*" $group:"}"; case "$rest" in *' '*) rest=" ${rest#* }" ;; *) rest='' ;; esac
         tags="${tags%%" $group:"*}$rest" ;; esac ;;
  esac
done
# Shells differ in what they take: the first form is the standard, the second is older.
for group in $groups; do
  kill -s KILL -- "-$group" 2>/dev/null || kill -KILL "-$group" 2>/dev/null
done
PATH=/usr/bin:/bin:/usr/sbin:/sbin
for round in 1 2 3; do
  for tag in $tags; do
    for found in $(grep -l -s -F "TOOLGATE_SERVER_TAG=${tag#*:}" /proc/[0-9]*/environ 2>/dev/null); do
      found="${found#/proc/}"; kill -KILL "${found%/environ}" 2>/dev/null
    done
  done
done
"#;

/// Lets the watchdog kill the group, and the processes with the tag, when this process ends.
pub(super) fn watch(group: u32, tag: &str) {
    write(&format!("+ {group} {tag}\n"), true);
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
