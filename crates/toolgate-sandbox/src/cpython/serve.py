class Rehearsal:
    """A pipe without a host. The scripts that run with it leave nothing behind but warm code."""

    def __init__(self):
        self.stop_code = None
        self.is_busy = False

    def has_frame(self):
        return False

    def send(self, body):
        pass

    def write(self, kind, text):
        pass

    def flush(self):
        pass

    def receive(self):
        if world.calls:
            number = min(world.calls)
            completion = {"id": number, "outcome": {"Ok": {"items": [{"id": 1, "name": "a"}]}}}
            return {"Completed": {"completion": completion, "at": world.now + 5, "more": False}}
        return {"Time": world.time_requested or world.now + 1}


REHEARSED = '''
import asyncio, json
from collections import defaultdict
class Row:
    def __init__(self, name): self.name = name
    def total(self): return len(self.name)
async def load(n):
    r = await tool(n=n, text="a")
    return [Row(item["name"]) for item in r["items"]]
groups = defaultdict(list)
for n in range(3):
    for row in await load(n):
        groups[row.name].append(row.total())
print(f"{len(groups)} groups", json.dumps(groups))
await asyncio.sleep(0.01)
x = await asyncio.gather(*(load(n) for n in range(3)))
try:
    raise ValueError("x")
except ValueError as error:
    print(error)
'''


def start_of(source, value, functions=()):
    return {
        "began": 0, "seed": 1, "value_bytes": 1 << 20, "reports_waits": False, "text": source, "source": source,
        "value": value, "returns": False, "looks_up": False, "functions": list(functions), "places": [],
        "memory_bytes": 1 << 30, "cpu_seconds": 10,
    }


TOOL = {"name": "tool", "parameters": ["n", "text"], "first_takes_object": False}
SMALL = start_of("print(1)\n[2]", [9, 12])
LARGE = start_of(REHEARSED + "[1, {'a': 2.5}]", [len(REHEARSED), len(REHEARSED) + 14], [TOOL])


def rehearse(start):
    """Runs a script without a host, so that what every run uses is prepared."""
    world.reset(0, 0)
    world.pipe = Rehearsal()
    last_frame(run_script(start))
    forget()


def forget():
    global has_named_tuples
    has_named_tuples = False
    made.clear()
    forgotten.clear()
    ScriptLoop.has_run = False
    Task.made, Task.names = itertools.count(), itertools.count(1)
    events.set_event_loop(None)
    # Otherwise `get_event_loop` would not make one.
    local = getattr(getattr(events, "_event_loop_policy", None), "_local", None)
    if hasattr(local, "_set_called"):
        local._set_called = False
    linecache.cache.pop(SCRIPT, None)
    sys.modules.pop("__main__", None)
    tools.__dict__["_known"] = {}
    world.reset(0, 0)


def work(lockdown, pipe, stream, reserve):
    """A worker: runs one script."""
    try:
        posix.write(0, lockdown.lock_worker(stream))
        # As long as no script waits, the pages are copied that scripts change.
        if not pipe.poll.poll(0):
            rehearse(SMALL)
            if not pipe.poll.poll(IDLE):
                rehearse(LARGE)
        world.pipe = pipe
        start = pipe.receive()["Run"]
        start |= start.pop("bounds") | start.pop("script")
        lockdown.bound_run(start)
        world.lockdown = lockdown
        gc.enable()
        finish(run_script(start))
    except MemoryError:
        reserve.clear()
        pipe.send(OUT_OF_MEMORY)
        pipe.flush()
        while True:
            pipe.receive()
    except BaseException as error:
        pipe.send(b'{"Panicked":"%b"}' % type(error).__name__.encode("ascii", "replace"))
        pipe.flush()
        posix_exit(PANICKED)


RESERVE = 1 << 18
OUT_OF_MEMORY = (
    b'{"Done":{"Failed":{"kind":"Memory","message":"MemoryError","stack":[],'
    b'"hint":"work on the data in parts"}}}'
)
# Milliseconds after which a worker without a script prepares itself further.
IDLE = 4


def main():
    """Forks a worker whenever the host asks for one. `control.rs` describes the messages."""
    control = socket.socket(fileno=0)
    try:
        lockdown = prepare(json.loads(control.recv(1 << 20)))
    except BaseException as error:
        refuse(control, traceback.format_exception_only(error)[-1].strip())
    serve(control, lockdown)


def refuse(control, why):
    """Answers each request with the reason why no worker can be forked."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            posix_exit(0)
        for descriptor in descriptors:
            posix.close(descriptor)
        control.send(b"E" + why.encode("utf-8", "replace")[:2000])


def prepare(settings):
    import_all(settings["packages"])
    patch_library()
    atexit._clear()
    lockdown = Lockdown(settings["lock"])
    # Python prepares its code while it runs.
    for _ in range(20):
        rehearse(SMALL)
        rehearse(LARGE)
    libraries = share_page_tables()
    lockdown.lock_zygote()
    for number in (signal.SIGTERM, signal.SIGXCPU):
        signal.signal(number, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Workers get the pages that a script needs, and not those that the imports needed.
    forget_pages(libraries)
    rehearse(SMALL)
    rehearse(LARGE)
    # Python keeps the text of the first program.
    linecache.clearcache()
    gc.collect()
    libc.malloc_trim(0)
    keep_counts()
    gc.freeze()
    gc.disable()
    return lockdown


def serve(control, lockdown):
    # A worker has this descriptor.
    pipe = Pipe(0)
    # Given back when memory is short, so that there is some to say so.
    reserve = [bytearray(RESERVE)]
    waiting = poll()
    waiting.register(0, POLLIN)
    # Workers that the host wants to be reaped and that have not ended, by their pidfds.
    ending = {}
    while True:
        ready = waiting.poll()
        # A run that waits for its worker comes first.
        if ready[0][0] == 0:
            message, descriptors, _, _ = socket.recv_fds(control, 64, 1)
            if not message:
                posix_exit(0)
            if message == b"F":
                fork_worker(control, lockdown, pipe, descriptors[0], reserve)
            else:
                process = int.from_bytes(message[1:5], "little")
                if not reap(control, process):
                    handle = os.pidfd_open(process)
                    ending[handle] = process
                    waiting.register(handle, POLLIN)
            continue
        for handle, _ in ready:
            if reap(control, ending[handle]):
                waiting.unregister(handle)
                posix.close(handle)
                del ending[handle]


def fork_worker(control, lockdown, pipe, stream, reserve):
    process = raw_fork()
    if process == 0:
        work(lockdown, pipe, stream, reserve)
    posix.close(stream)
    if process < 0:
        control.sendmsg([b"E" + os.strerror(ctypes.get_errno()).encode()])
        return
    handle = os.pidfd_open(process)
    socket.send_fds(control, [b"S" + process.to_bytes(4, "little")], [handle])
    posix.close(handle)


def reap(control, process):
    """Reaps a worker and tells the host. Returns whether the worker had ended."""
    try:
        ended, status = posix.waitpid(process, posix.WNOHANG)
    except ChildProcessError:
        ended, status = process, 0
    if ended:
        control.sendmsg([b"X" + struct.pack("<Ii", process, status)])
    return bool(ended)


main()
