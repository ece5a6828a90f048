//! What a worker must not be able to do.

use std::{
    ffi::CString,
    io,
    ptr::null,
    sync::atomic::{AtomicU32, Ordering},
};

/// The host. To ask for it is forbidden later.
pub(crate) static PARENT: AtomicU32 = AtomicU32::new(0);

/// Tries it, and says what came of it, if it lived to tell.
pub(crate) fn attack(command: &str, rest: &str) -> String {
    let result = match command {
        "open" => std::fs::read_to_string(rest),
        "create" => std::fs::write(rest, "x").map(|()| String::new()),
        "list" => std::fs::read_dir(rest).map(|entries| format!("{} entries", entries.count())),
        "environment" => {
            let others =
                |(name, _): &(std::ffi::OsString, _)| *name != *toolgate_sandbox::WORKER_VARIABLE;
            Ok(format!("{} variables", std::env::vars_os().filter(others).count()))
        }
        "descriptors" => Ok(format!("{} open", open_descriptors())),
        "zone" => Ok(std::fs::read_link("/etc/localtime")
            .map_or_else(|e| e.to_string(), |_| String::from("read"))),
        "spawn" => std::process::Command::new(rest).status().map(|status| status.to_string()),
        "thread" => Ok(std::thread::spawn(|| String::from("ran")).join().unwrap()),
        "raw" => Ok(format!("{} bytes", write_all(&from_hexadecimal(rest)))),
        "forge-calls" => forge_calls(rest.parse().unwrap()),
        "hog" => hog(),
        "hog-once" => Ok(format!("{}", vec![1_u8; rest.parse().unwrap()].len())),
        "recurse" => Ok(format!("{}", recurse(0))),
        "ignore-signals" => {
            // SAFETY: sets two signals to be ignored.
            unsafe {
                libc::signal(libc::SIGTERM, libc::SIG_IGN);
                libc::signal(libc::SIGXCPU, libc::SIG_IGN);
            }
            Ok(String::from("ignored"))
        }
        "abort" => std::process::abort(),
        "exit" => std::process::exit(rest.parse().unwrap()),
        "segfault" => {
            // SAFETY: it is not; that is the point.
            unsafe { std::ptr::write_volatile(16 as *mut u8, 1) };
            Ok(String::new())
        }
        other => system_call(other, rest),
    };
    result.unwrap_or_else(|error| error.to_string())
}

/// System calls by name, most with arguments that would do something.
fn system_call(name: &str, rest: &str) -> io::Result<String> {
    let path = CString::new(rest).unwrap();
    let path = path.as_ptr();
    let nothing = null::<u8>();
    let page = 4096;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let executable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let parent = PARENT.load(Ordering::Relaxed);
    // SAFETY: whatever these do, they do to a process that is about to die.
    let result = unsafe {
        match name {
            "socket-tcp" => libc::syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0),
            "socket-udp" => libc::syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_DGRAM, 0),
            "socket-unix" => libc::syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0),
            "socket-netlink" => {
                libc::syscall(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, 0)
            }
            "connect" => libc::syscall(libc::SYS_connect, 0, nothing, 0),
            "sendmsg" => libc::syscall(libc::SYS_sendmsg, 0, nothing, 0),
            "fork" => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0),
            "clone3" => libc::syscall(libc::SYS_clone3, nothing, 0),
            "execve" => libc::syscall(libc::SYS_execve, path, nothing, nothing),
            "execveat" => {
                libc::syscall(libc::SYS_execveat, libc::AT_FDCWD, path, nothing, nothing, 0)
            }
            "ptrace" => libc::syscall(libc::SYS_ptrace, libc::PTRACE_ATTACH, parent, 0, 0),
            "kill-parent" => libc::syscall(libc::SYS_kill, parent, libc::SIGKILL),
            "tgkill-parent" => libc::syscall(libc::SYS_tgkill, parent, parent, libc::SIGKILL),
            "pidfd" => libc::syscall(libc::SYS_pidfd_open, parent, 0),
            "read-parent" => {
                libc::syscall(libc::SYS_process_vm_readv, parent, nothing, 0, nothing, 0, 0)
            }
            "limit-parent" => {
                libc::syscall(libc::SYS_prlimit64, parent, libc::RLIMIT_CPU, nothing, nothing)
            }
            "raise-limit" => raise_limit(),
            "map-executable" => {
                libc::syscall(libc::SYS_mmap, 0, page, executable, anonymous, -1, 0)
            }
            "protect-executable" => {
                let memory =
                    libc::mmap(std::ptr::null_mut(), page, libc::PROT_READ, anonymous, -1, 0);
                libc::syscall(libc::SYS_mprotect, memory, page, libc::PROT_READ | libc::PROT_EXEC)
            }
            "memfd" => libc::syscall(libc::SYS_memfd_create, path, 0),
            "duplicate" => libc::syscall(libc::SYS_dup, 0),
            "close" => libc::syscall(libc::SYS_close, 0),
            "pipe" => libc::syscall(libc::SYS_pipe2, nothing, 0),
            "unshare" => libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER),
            "mount" => libc::syscall(libc::SYS_mount, path, path, nothing, 0, nothing),
            "chroot" => libc::syscall(libc::SYS_chroot, path),
            "chdir" => libc::syscall(libc::SYS_chdir, path),
            "unlink" => libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0),
            "make-directory" => libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path, 0o700),
            "setuid" => libc::syscall(libc::SYS_setuid, 0),
            "prctl" => libc::syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0),
            "seccomp" => libc::syscall(libc::SYS_seccomp, 1, 0, nothing),
            "io-uring" => libc::syscall(libc::SYS_io_uring_setup, 1, nothing),
            "bpf" => libc::syscall(libc::SYS_bpf, 0, nothing, 0),
            "perf" => libc::syscall(libc::SYS_perf_event_open, nothing, 0, -1, -1, 0),
            "userfault" => libc::syscall(libc::SYS_userfaultfd, 0),
            "shared-memory" => libc::syscall(libc::SYS_shmget, 1, page, libc::IPC_CREAT),
            "keys" => libc::syscall(libc::SYS_keyctl, 0, -3, 0),
            "module" => libc::syscall(libc::SYS_init_module, nothing, 0, path),
            "reboot" => libc::syscall(libc::SYS_reboot, 0, 0, 0, nothing),
            other => return Err(io::Error::other(format!("unknown command {other}"))),
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(format!("it worked: {result}")) }
}

fn raise_limit() -> libc::c_long {
    let most = libc::rlimit64 { rlim_cur: 1 << 40, rlim_max: 1 << 40 };
    // SAFETY: reads one struct.
    unsafe {
        libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_DATA, &raw const most, null::<u8>())
    }
}

fn open_descriptors() -> usize {
    let mut nothing = [0_u8; 0];
    let is_open = |descriptor: &i32| {
        // SAFETY: reads nothing into nothing.
        let result = unsafe { libc::read(*descriptor, nothing.as_mut_ptr().cast(), 0) };
        result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EBADF)
    };
    (0..1024).filter(is_open).count()
}

fn hog() -> io::Result<String> {
    let mut kept = Vec::new();
    loop {
        kept.push(vec![1_u8; 1024 * 1024]);
        std::hint::black_box(&kept);
    }
}

#[expect(unconditional_recursion, reason = "until the stack is full")]
fn recurse(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 512]);
    recurse(here[0] + 1) + here[1]
}

/// Makes calls with arguments of so many bytes and never looks at an answer.
fn forge_calls(bytes: usize) -> ! {
    let text = "x".repeat(bytes);
    let mut id = 0_u64;
    loop {
        let call =
            format!(r#"{{"Call":{{"id":{id},"name":"echo","arguments":{{"a":"{text}"}}}}}}"#);
        // The kind of a JSON frame is 0.
        let body = format!("\0{call}");
        write_all(&u32::try_from(body.len()).unwrap().to_le_bytes());
        write_all(body.as_bytes());
        id += 1;
    }
}

/// Writes to the pipe, past whatever keeps order there.
fn write_all(mut bytes: &[u8]) -> usize {
    let all = bytes.len();
    while !bytes.is_empty() {
        // SAFETY: reads what is there.
        let written = unsafe { libc::write(0, bytes.as_ptr().cast(), bytes.len()) };
        if let Ok(written) = usize::try_from(written) {
            bytes = &bytes[written..];
        } else {
            // The pipe is full, and the host does not read any more, or not yet.
            let mut pipe = libc::pollfd { fd: 0, events: libc::POLLOUT, revents: 0 };
            // SAFETY: one descriptor, which outlives the call.
            unsafe { libc::poll(&raw mut pipe, 1, -1) };
        }
    }
    all
}

fn from_hexadecimal(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
