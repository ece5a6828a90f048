//! Python's own interpreter: the machine's `CPython`, as a zygote.
//!
//! The program of the zygote is written in Python, in the files of this folder. The interpreter gets
//! it over the control socket. It imports what scripts use, gives up what the other zygote gives up,
//! and forks a worker for each run. A worker of the other zygote checks each script first.

mod find;
mod names;

use std::io;

pub(crate) use self::{
    find::{NoInterpreter, find},
    names::{GLOBALS, MODULES},
};
use crate::{lockdown, pool::WorkerProgram};

pub use self::find::{MachinePython, PythonChoice, PythonEngine, PythonPackage, PythonSettings};

/// The parts of the program, in their order. They share their variables.
const PROGRAM: &str = concat!(
    include_str!("world.py"),
    include_str!("modules.py"),
    include_str!("pipe.py"),
    include_str!("values.py"),
    include_str!("tools.py"),
    include_str!("loop.py"),
    include_str!("failure.py"),
    include_str!("script.py"),
    include_str!("wrapping.py"),
    include_str!("zygote.py"),
    include_str!("lock.py"),
    include_str!("sharing.py"),
    include_str!("serve.py"),
);

/// The program that the interpreter starts with. It reads the other one from the control socket.
const FIRST_PROGRAM: &str = "import _socket
exec(compile(_socket.socket(fileno=_socket.dup(0)).recv(1 << 20), '<toolgate>', 'exec'))";

/// The whole environment of the interpreter.
const VARIABLES: &[(&str, &str)] = &[
    // Sets have the same order in every run.
    ("PYTHONHASHSEED", "0"),
    ("TZ", "UTC"),
    // A process with threads cannot be forked.
    ("OPENBLAS_NUM_THREADS", "1"),
    ("OMP_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
];

/// The zygote of an interpreter.
pub(crate) fn worker_program(python: &MachinePython) -> io::Result<WorkerProgram> {
    let lock = lockdown::interpreter_lock()?;
    let packages: Vec<&str> = python.usable_packages().collect();
    let settings = serde_json::json!({ "packages": packages, "lock": lock });
    // No user's packages, no automatic ones, nothing from the current folder, no compiled files.
    let arguments = ["-s", "-S", "-P", "-B", "-X", "utf8", "-c", FIRST_PROGRAM];
    Ok(WorkerProgram {
        program: python.program.clone(),
        // It finds its library by this name.
        name: python.program.clone().into(),
        arguments: arguments.into_iter().map(Into::into).collect(),
        variables: VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        messages: vec![PROGRAM.as_bytes().to_vec(), settings.to_string().into_bytes()],
    })
}
