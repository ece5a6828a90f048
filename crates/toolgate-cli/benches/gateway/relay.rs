//! A program between a client and a server that only copies bytes. What it costs is the least that a gateway can cost on
//! this machine, because the kernel wakes one more process for each message.

use std::{
    env,
    io::{self, Read, Write},
    process::{Command, Stdio},
    thread,
};

use toolgate_testkit::FixtureEntry;

const ARGUMENT: &str = "--relay";

/// Starts this program as a relay before a server.
pub(crate) fn command(server: &FixtureEntry) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.arg(ARGUMENT).arg(&server.command).args(&server.args);
    command
}

/// The server that this process is asked to start, if it is a relay.
pub(crate) fn asked() -> Option<Vec<String>> {
    let mut arguments = env::args().skip(1);
    (arguments.next()? == ARGUMENT).then(|| arguments.collect())
}

/// Starts a server, and copies bytes until one of both ends.
pub(crate) fn run(command: &[String]) {
    let (program, arguments) = command.split_first().expect("a command");
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let input = server.stdin.take().expect("a pipe");
    let output = server.stdout.take().expect("a pipe");
    let requests = thread::spawn(move || copy(io::stdin().lock(), input));
    let _ = copy(output, io::stdout().lock());
    drop(requests);
    let _ = server.wait();
}

fn copy(mut from: impl Read, mut into: impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        into.write_all(bytes.get(..count).unwrap_or_default())?;
        into.flush()?;
    }
}
