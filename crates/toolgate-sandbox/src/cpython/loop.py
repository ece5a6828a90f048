# The event loop of a script, which waits for the host.
import concurrent.futures.thread
import _thread
import heapq
import queue
import threading

from asyncio import base_events, events, futures, runners, tasks as task_module
from math import ceil


class ScriptLoop(base_events.BaseEventLoop):
    """A loop whose time and whose events come from the host."""

    # Whether the script has used a loop.
    has_run = False

    def __init__(self):
        super().__init__()
        ScriptLoop.has_run = True
        self._clock_resolution = 1e-6
        self._spins = 0

    def time(self):
        return world.monotonic()

    def create_task(self, coro, *, name=None, context=None, **named):
        self._check_closed()
        if self._task_factory is not None:
            return super().create_task(coro, name=name, context=context, **named)
        if name is None:
            name = f"Task-{next(Task.names)}"
        return Task(coro, loop=self, name=name, context=context, **named)

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    def _run_once(self):
        # As in the base class. But one run may be inside of another, so that the list of what is ready
        # can become shorter at any time.
        scheduled, ready = self._scheduled, self._ready
        cancelled = self._timer_cancelled_count
        if cancelled > 100 and cancelled / len(scheduled) > 0.5:
            kept = []
            for handle in scheduled:
                if handle._cancelled:
                    handle._scheduled = False
                else:
                    kept.append(handle)
            heapq.heapify(kept)
            self._scheduled = scheduled = kept
            self._timer_cancelled_count = 0
        else:
            while scheduled and scheduled[0]._cancelled:
                self._timer_cancelled_count -= 1
                heapq.heappop(scheduled)._scheduled = False
        if not ready and not self._stopping:
            self._spins = 0
            self._wait(scheduled)
        else:
            self._spins += 1
            if self._spins > SPINS:
                self._spins = 0
                soon = world.now + STEP
                world.wait(min(soon, due(scheduled)) if scheduled else soon)
        if scheduled:
            end = world.now / 1e6 + 1e-6
            while scheduled and scheduled[0]._when < end:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                ready.append(handle)
        for _ in range(len(ready)):
            if not ready:
                break
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _wait(self, scheduled):
        flush_console()
        if not scheduled:
            world.wait(None)
            return
        until = due(scheduled)
        if until > world.now:
            world.wait(until)

    def run_until_complete(self, future):
        if not self.is_running():
            return super().run_until_complete(future)
        return self.run_within(future)

    def run_within(self, future):
        """Runs something to its end while the caller, which this loop runs, does not go on."""
        is_new = not futures.isfuture(future)
        future = task_module.ensure_future(future, loop=self)
        if is_new:
            future._log_destroy_pending = False
        task = without_task(self)
        try:
            while not future.done():
                self._run_once()
        finally:
            with_task(self, task)
        return future.result()

    def run_in_executor(self, executor, func, *args):
        # There are no threads, so it runs at once.
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            future.set_exception(error)
        return future

    async def shutdown_default_executor(self, timeout=None):
        pass

    async def getaddrinfo(self, host, port, *, family=0, type=0, proto=0, flags=0):
        raise PermissionError(13, "a script has no network: call a tool", host)

    async def subprocess_exec(self, *arguments, **named):
        raise PermissionError(13, "a script has no processes: call a tool")

    subprocess_shell = subprocess_exec


class Task(asyncio.Task):
    """A task. Sets of tasks have the same order in every run, because their hashes are numbers."""

    made = itertools.count()
    names = itertools.count(1)

    def __new__(cls, *arguments, **named):
        task = super().__new__(cls)
        task._number = next(cls.made)
        return task

    def __hash__(self):
        return self._number

    def __eq__(self, other):
        return self is other


Task.__qualname__ = "Task"
Task.__module__ = asyncio.Task.__module__


def due(scheduled):
    """When the first timer goes off, in whole microseconds."""
    return ceil(scheduled[0]._when * 1e6 - 0.01)


if hasattr(task_module, "_swap_current_task"):

    def without_task(loop):
        return task_module._swap_current_task(loop, None)

    def with_task(loop, task):
        task_module._swap_current_task(loop, task)

else:

    def without_task(loop):
        task = task_module.current_task(loop)
        if task is not None:
            task_module._leave_task(loop, task)
        return task

    def with_task(loop, task):
        if task is not None:
            task_module._enter_task(loop, task)


real_run = runners.run


def run(main, **named):
    loop = events._get_running_loop()
    if loop is None:
        return real_run(main, **named)
    before = task_module.all_tasks(loop)
    try:
        return loop.run_within(main)
    finally:
        cancel(loop, task_module.all_tasks(loop) - before)


run.__doc__ = real_run.__doc__


def cancel(loop, left):
    """Cancels what is left of a run, as `asyncio.run` does."""
    if not left:
        return
    for task in left:
        task.cancel()
    loop.run_until_complete(task_module.gather(*left, return_exceptions=True))
    for task in left:
        if not task.cancelled() and task.exception() is not None:
            loop.call_exception_handler({
                "message": "unhandled exception during asyncio.run() shutdown",
                "exception": task.exception(),
                "task": task,
            })


class Lock:
    """`threading.Lock`. Nothing else can release it while its only thread waits for it."""

    __slots__ = ("_is_locked", "__weakref__")

    def __init__(self):
        self._is_locked = False

    def acquire(self, blocking=True, timeout=-1):
        if not blocking and timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != -1:
            raise ValueError("timeout value must be a non-negative number")
        if not self._is_locked:
            self._is_locked = True
            return True
        if not blocking:
            return False
        if timeout == -1:
            raise RuntimeError(
                "this lock is acquired already and can never be released: a script has one thread, which "
                "would wait here; release the lock first, or use threading.RLock()"
            )
        world.sleep(timeout)
        return False

    __enter__ = acquire_lock = acquire

    def release(self):
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        self._is_locked = False

    release_lock = release

    def __exit__(self, kind, error, trace):
        self.release()

    def locked(self):
        return self._is_locked

    locked_lock = locked

    def __repr__(self):
        state = "locked" if self._is_locked else "unlocked"
        return f"<{state} _thread.lock object at {id(self):#x}>"


Lock.__name__ = Lock.__qualname__ = "lock"
Lock.__module__ = "_thread"


def start_no_thread(self):
    raise RuntimeError("a script has no threads: use asyncio.gather() to make calls in parallel")


def wait_alone(self, timeout=None):
    """`Condition.wait`: nobody else can notify, because there are no threads."""
    if not self._is_owned():
        raise RuntimeError("cannot wait on un-acquired lock")
    if timeout is None:
        stalled()
    world.sleep(max(timeout, 0))
    return False


def submit_at_once(self, fn, /, *args, **kwargs):
    if self._shutdown:
        raise RuntimeError("cannot schedule new futures after shutdown")
    future = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    try:
        future.set_result(fn(*args, **kwargs))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        future.set_exception(error)
    return future


def install_loop():
    policies = [
        kind for name, kind in vars(asyncio.unix_events).items() if name.endswith("DefaultEventLoopPolicy")
    ]
    for policy in policies:
        policy._loop_factory = ScriptLoop
    for name in ("SelectorEventLoop", "EventLoop"):
        if hasattr(asyncio, name):
            setattr(asyncio, name, ScriptLoop)
    asyncio.run = runners.run = run
    threading.Thread.start = start_no_thread
    threading.Condition.wait = wait_alone
    threading.Lock = threading._allocate_lock = Lock
    _thread.allocate_lock = _thread.allocate = Lock
    # The other one waits in machine code.
    queue.SimpleQueue = queue._PySimpleQueue
    concurrent.futures.thread.ThreadPoolExecutor.submit = submit_at_once
