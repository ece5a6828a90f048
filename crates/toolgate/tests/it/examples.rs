//! The examples run as programs: their scripts need workers, which are the programs themselves.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use toolgate_testkit::installed_servers;

/// The program of an example, which is built with the tests.
fn program(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    if folder.ends_with("deps") {
        folder.pop();
    }
    folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

pub(crate) fn run(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(name)).args(arguments).stdin(Stdio::null()).output().unwrap();
    let Output { status, stdout, stderr } = output;
    let (said, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{said}{errors}");
    said.into_owned()
}

#[test]
fn embed() {
    let Some(servers) = installed_servers() else { return };
    let entry = servers.time().entry;
    let command: Vec<&str> =
        [&entry.command].into_iter().chain(&entry.args).map(String::as_str).collect();
    let said = run("embed", &command);
    let (mode, rest) = said.split_once('\n').unwrap();
    assert!(mode.starts_with("mode: Direct, because "), "{mode}");
    assert!(mode.ends_with(" tokens fit into the 10,000 allowed"), "{mode}");
    assert_eq!(
        rest,
        "loaded: time_get_current_time\n\
         loaded: time_convert_time\n\
         found: time_convert_time\n\
         required: [\"timezone\"]\n\
         asked for the time in Europe/Paris\n\
         error: there is no tool `time_get_current_tme`; did you mean `time_get_current_time`?\n\
         error: The arguments do not fit `time_get_current_time`, which was not called:\n"
    );
}

#[test]
fn functions() {
    assert_eq!(
        run("functions", &[]),
        "loaded: double: Doubles a number.\n\
         double: 42\n\
         found: write_note\n\
         script: {\"count\":1,\"note\":\"8\"}\n\
         python: 7\n\
         failed: `write_note` failed: a note needs a title\n"
    );
}

#[test]
fn approval() {
    assert_eq!(
        run("approval", &[]),
        "asked: delete_file of functions\n\
         error: `delete_file` was not called: a person denied it\n\
         asked: delete_file of functions\n\
         /tmp/a is gone\n\
         /tmp/b is gone\n\
         event: delete_file not done\n\
         event: delete_file done\n\
         event: delete_file done\n"
    );
}

/// A program whose `main` does not play its other roles is refused when it starts a host there, so that it
/// cannot start itself again and again.
#[cfg(unix)]
#[test]
fn a_program_that_was_started_as_a_worker_starts_no_host() {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(program("no_init"));
    let output = command.arg0("toolgate-worker").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("this process was started as a worker"), "{said}");
    // Its name may get lost on the way. The variable does not.
    let mut command = Command::new(program("no_init"));
    let output = command.env("TOOLGATE_WORKER", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("this process was started as a worker"), "{said}");
    // As the program itself it is told what is missing, and starts nothing.
    let said = run("no_init", &[]);
    assert!(said.contains("did not call `toolgate::init()`"), "{said}");
}
