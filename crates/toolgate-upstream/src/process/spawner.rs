//! Where children are started.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{OnceLock, mpsc},
};

use parking_lot::Mutex;
use tokio::process::{Child, Command};

type Job = Box<dyn FnOnce() + Send>;

/// Starts `command` in a group of its own.
///
/// Linux sends the parent-death signal when the *thread* that started the child ends. So children
/// are started on one thread that never does.
pub(super) async fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Option<Mutex<mpsc::Sender<Job>>>> = OnceLock::new();
    isolate(&mut command);
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let run = move || {
            for job in queue {
                // A runtime that is being shut down panics. The thread serves others too.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        };
        let thread = std::thread::Builder::new().name("toolgate-spawner".into()).spawn(run);
        thread.ok().map(|_| Mutex::new(jobs))
    });
    let Some(spawner) = spawner else { return command.spawn() };
    let (answer, child) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        // Nobody waits any more: the child is dropped, which kills it.
        let _ = answer.send(command.spawn());
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    spawner.lock().send(job).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the parent-death signal can only be set in the child")]
fn isolate(command: &mut Command) {
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. This is one system
    // call; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        });
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn isolate(command: &mut Command) {
    command.process_group(0);
}

#[cfg(not(unix))]
fn isolate(_command: &mut Command) {}
