# What a worker gives up before it sees a script. What children inherit is given up once, by the
# process that forks them.
import functools
import resource

RLIMIT_DATA = resource.RLIMIT_DATA
real_setrlimit = resource.setrlimit

libc = ctypes.PyDLL(None, use_errno=True)
raw_fork = libc.fork
prctl = libc.prctl
system_call = libc.syscall

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_SET_MDWE = 38, 47, 65
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_RESTRICT_SELF = 444, 446
# Memory that a worker needs beside the values of the script: its own data, and free parts of what the
# allocator has taken from the system.
HEADROOM = 4 << 20
# A result exists several times while it becomes a value, and a value while it becomes the result of the
# script. This is more memory for it, as a multiple of the largest result.
HEADROOM_FOR_RESULTS = 4


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class Filter:
    """A filter of system calls."""

    def __init__(self, digits):
        code = bytes.fromhex(digits)
        self.code = ctypes.create_string_buffer(code, len(code))
        self.program = Program(len(code) // 8, ctypes.addressof(self.code))
        self.install = functools.partial(prctl, PR_SET_SECCOMP, 2, ctypes.byref(self.program), 0, 0)


class Lockdown:
    """The measures, and the report about them that the host reads."""

    def __init__(self, lock):
        self.zygote_filter = Filter(lock["zygote_filter"])
        self.worker_filter = Filter(lock["worker_filter"])
        self.pivot_root = lock["pivot_root"]
        self.measures = []
        self.allowed = lock["allowed"]
        # The size of what is written to, at the fork.
        self.data = 0
        # How much a script may take from the system, and how much the worker may while it has to do
        # with results.
        self.least = self.most = None

    def note(self, kind, problem, detail=""):
        state = {"InForce": detail} if problem is None else {"Missing": problem}
        self.measures.append({"kind": kind, "state": state})

    def lock_zygote(self):
        """Gives up what no worker needs. Nothing can be imported from files after this."""
        # What is free now must not count as used.
        gc.collect()
        libc.malloc_trim(0)
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmData:"):
                    self.data = int(line.split()[1]) << 10
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("1000")
        except OSError:
            pass
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        self.note("Namespaces", *namespaces(self.pivot_root))
        # This may be another process now.
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        self.process = libc.getpid()
        self.note("Undumpable", asked(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0))
        self.note("NoNewPrivileges", asked(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        self.note("Capabilities", no_capabilities())
        # Not every kernel has it, and seccomp refuses the same.
        prctl(PR_SET_MDWE, 1, 0, 0, 0)
        for limit in ("RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
            if hasattr(resource, limit):
                resource.setrlimit(getattr(resource, limit), (0, 0))
        self.note("Landlock", *no_files())
        # What workers do themselves. If something fails, they say so instead.
        self.note("ParentDeath", None)
        self.note("Descriptors", None)
        self.note("Resources", None, "files, processes, memory, CPU")
        # The long filter is installed once. A worker adds a short one, which forbids what only the zygote
        # needs: the system tries a new filter with every possible call, which takes its time.
        self.note("SystemCalls", asked(self.zygote_filter.install), f"{self.allowed} allowed")
        self.ready = framed(self.report())
        self.lock_system_calls = self.worker_filter.install
        self.end_with_parent = functools.partial(prctl, PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    def report(self):
        report = {"measures": self.measures}
        if store.problems:
            report["packages"] = store.problems
        return b'{"Ready":%b}' % strict.encode(report).encode()

    def lock_worker(self, stream):
        """Gives up the rest and returns the frame that says so.

        Each object that this uses costs the copy of a page, so it uses few.
        """
        missing = []
        if self.end_with_parent():
            missing.append("ParentDeath")
        if real_getppid() != self.process:
            # The zygote has ended before that was in force.
            posix_exit(LOST)
        posix.dup2(stream, 0)
        posix.closerange(1, 0x7FFFFFFF)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, ONE)
            resource.setrlimit(resource.RLIMIT_NPROC, NONE)
        except (OSError, ValueError):
            missing.append("Resources")
        if self.lock_system_calls():
            missing.append("SystemCalls")
        if not missing:
            return self.ready
        for measure in self.measures:
            if measure["kind"] in missing:
                measure["state"] = {"Missing": "refused by the system"}
        return framed(self.report())

    def bound_run(self, start):
        """Sets the limits of one script. The host counts time itself, and more exactly."""
        least = self.data + start["memory_bytes"] + HEADROOM
        most = least + start["value_bytes"] * HEADROOM_FOR_RESULTS
        seconds = start["cpu_seconds"]
        try:
            real_setrlimit(RLIMIT_DATA, (least, most))
            self.least, self.most = (least, most), (most, most)
            real_setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        except (OSError, ValueError):
            pass

    def widen(self):
        """Lets the worker use the memory for results."""
        if self.most is not None:
            real_setrlimit(RLIMIT_DATA, self.most)

    def narrow(self):
        """Lets the script go on with its own memory."""
        if self.least is not None:
            real_setrlimit(RLIMIT_DATA, self.least)


ONE, NONE = (1, 1), (0, 0)


def framed(body):
    return (len(body) + 1).to_bytes(4, "little") + b"\0" + body


def namespaces(pivot_root):
    """Moves this process to namespaces of its own, as far as the system allows it.

    Afterwards this is another process: the first one of a PID namespace.
    """
    if not may_try(pivot_root):
        return "a filter of system calls around toolgate forbids them", ""
    names = []
    problem = asked(libc.unshare, NEW_USERS)
    if problem is None:
        names.append("users")
    for flag, name in ((NEW_NETWORK, "network"), (NEW_IPC, "IPC"), (NEW_HOST_NAME, "host name")):
        if not libc.unshare(flag):
            names.append(name)
    if not libc.unshare(NEW_FILES) and empty_root(pivot_root):
        names.append("files")
    if not libc.unshare(NEW_PROCESSES):
        process = raw_fork()
        if process > 0:
            wait_for(process)
        if process == 0:
            names.append("processes")
    return (problem if not names else None), ", ".join(names)


NEW_FILES, NEW_HOST_NAME, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USERS, NEW_PROCESSES, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000


def may_try(pivot_root):
    """Whether a copy of this process survives the attempt, which a filter may end."""
    process = raw_fork()
    if process == 0:
        libc.unshare(NEW_USERS)
        libc.unshare(NEW_FILES) or empty_root(pivot_root)
        posix_exit(0)
    return process > 0 and posix.WIFEXITED(posix.waitpid(process, 0)[1])


def empty_root(pivot_root):
    """Makes an empty folder the root, so that no file has a name."""
    private, read_only, detach = 1 << 18 | 1 << 14, 1 | 2 | 4 | 8, 2
    return (
        libc.mount(None, b"/", None, ctypes.c_ulong(private), None) == 0
        and libc.mount(b"none", b"/proc", b"tmpfs", ctypes.c_ulong(read_only), None) == 0
        and libc.chdir(b"/proc") == 0
        and system_call(pivot_root, b".", b".") == 0
        and libc.umount2(b".", detach) == 0
        and libc.chdir(b"/") == 0
    )


def wait_for(process):
    """Waits until the first process of the namespace has ended, and ends in the same way."""
    # Otherwise the host would not notice the end.
    posix.closerange(0, 0x7FFFFFFF)
    _, status = posix.waitpid(process, 0)
    if posix.WIFSIGNALED(status):
        signal.signal(posix.WTERMSIG(status), signal.SIG_DFL) if posix.WTERMSIG(status) != 9 else None
        posix.kill(libc.getpid(), posix.WTERMSIG(status))
    posix_exit(posix.waitstatus_to_exitcode(status) & 0xFF)


def no_capabilities():
    for capability in range(64):
        if prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    return asked(libc.capset, header, bytes(24))


def asked(function, *arguments):
    """Calls the system. Returns what went wrong."""
    if function(*arguments) == 0:
        return None
    return os.strerror(ctypes.get_errno())


def no_files():
    """Restricts every access that the kernel's Landlock version knows, and allows none."""
    version = system_call(SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if version < 1:
        return "not in this kernel", ""
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    rules = struct.pack("QQQ", files, 3, 3)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = system_call(SYS_LANDLOCK_CREATE_RULESET, rules, ctypes.c_size_t(size), ctypes.c_uint(0))
    if ruleset < 0:
        return os.strerror(ctypes.get_errno()), ""
    problem = asked(system_call, SYS_LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint(0))
    posix.close(ruleset)
    return problem, f"version {version}"
