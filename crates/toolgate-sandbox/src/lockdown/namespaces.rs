//! Namespaces: what a zygote and its workers cannot even name.
//!
//! They are an addition. Many systems do not let a process without privileges have them.

use std::io;

use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    process::{Pid, WaitOptions, WaitStatus, chdir, pivot_root, waitpid},
    thread::UnshareFlags,
};

use crate::system::{
    descriptors::close_all,
    fork::{Forked, fork, unshare},
    stop::{exit_as, exit_now},
};

/// Moves this process to namespaces of its own, as far as the system allows it.
///
/// Afterwards this is another process: the first one of a PID namespace. The process that called
/// waits for the end of the other one and does not return.
pub(super) fn separate() -> io::Result<String> {
    if !may_try()? {
        return Err(io::Error::other("a filter of system calls around toolgate forbids them"));
    }
    let mut names = Vec::new();
    // The first one gives the right to the others. Its users and groups are those of nobody.
    let user = unshare(UnshareFlags::NEWUSER);
    if user.is_ok() {
        names.push("users");
    }
    for (namespace, name) in [
        (UnshareFlags::NEWNET, "network"),
        (UnshareFlags::NEWIPC, "IPC"),
        (UnshareFlags::NEWUTS, "host name"),
    ] {
        if unshare(namespace).is_ok() {
            names.push(name);
        }
    }
    if unshare(UnshareFlags::NEWNS).is_ok_and(|()| empty_root().is_ok()) {
        names.push("files");
    }
    if unshare(UnshareFlags::NEWPID).is_ok() {
        match fork() {
            Ok(Forked::Child) => names.push("processes"),
            Ok(Forked::Parent(first)) => wait_for(first),
            Err(error) => return Err(error),
        }
    }
    match user {
        Err(error) if names.is_empty() => Err(error),
        _ => Ok(names.join(", ")),
    }
}

/// Whether a copy of this process survives the attempt. A system call that is filtered may end the
/// process that makes it, as services and containers are often configured.
fn may_try() -> io::Result<bool> {
    match fork()? {
        Forked::Child => {
            let _ = unshare(UnshareFlags::NEWUSER);
            let _ = unshare(UnshareFlags::NEWNS).and_then(|()| empty_root());
            exit_now(0)
        }
        Forked::Parent(copy) => Ok(end_of(copy).is_some_and(rustix::process::WaitStatus::exited)),
    }
}

/// Makes an empty folder the root, so that no file has a name.
fn empty_root() -> io::Result<()> {
    // What is mounted here must not appear elsewhere.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::RDONLY | MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV;
    // Any folder that exists will do.
    mount("none", "/proc", "tmpfs", flags, None)?;
    chdir("/proc")?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// Waits until the first process of the namespace has ended, and ends in the same way.
fn wait_for(first: Pid) -> ! {
    // Otherwise the host would not notice the end.
    close_all();
    match end_of(first) {
        Some(status) => exit_as(status),
        None => exit_now(1),
    }
}

/// How a child ends.
fn end_of(child: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(ended) => return ended.map(|(_, status)| status),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
