import asyncio as _tg_native_asyncio, collections as _tg_native_collections


def _tg_make_asyncio(native, deque, isinstance=isinstance, list=list, len=len, type=type, iter=iter, set=set, hasattr=hasattr, range=range):
    unstarted = []
    futures = [0]

    def new_future():
        number = futures[0]
        futures[0] = number + 1
        return number, _tg_host_future()

    def came_from(at):
        global _tg_at
        _tg_at = at

    class Task:
        def __init__(self, awaitable, name=None):
            self._awaitable = awaitable
            self._name = name
            self._started = False
            self._finished = False
            self._cancelled = False
            self._value = None
            self._error = None
            self._waiters = []
            unstarted.append(self)

        async def _run(self):
            self._started = True
            if not self._cancelled:
                try:
                    self._value = _tg_check(await awaited(self._awaitable))
                except Exception as error:
                    self._error = error
                    self._at = _tg_at
            self._finished = True
            for number in self._waiters:
                _tg_host_settle(number)

        async def _join(self):
            if not self._started:
                await start()
            if not self._finished:
                number, future = new_future()
                self._waiters.append(number)
                await future
            return self.result()

        def done(self):
            return self._finished

        def cancelled(self):
            return self._cancelled

        def cancel(self, msg=None):
            if self._finished or self._started:
                return False
            self._cancelled = True
            return True

        def result(self):
            if self._cancelled:
                raise RuntimeError("the task was cancelled")
            if not self._finished:
                raise RuntimeError("Result is not set.")
            if self._error is not None:
                came_from(self._at)
                raise self._error
            return self._value

        def exception(self):
            return None if self._error is None else _tg_kept(self._error)

        def add_done_callback(self, callback):
            self._awaitable = called_back(self._awaitable, callback, self)

        def get_name(self):
            return self._name

    async def called_back(awaitable, callback, task):
        value = _tg_check(await awaited(awaitable))
        task._value = value
        task._finished = True
        callback(task)
        return value

    async def start():
        batch = [task for task in unstarted if not task._started]
        while unstarted:
            unstarted.pop()
        for task in batch:
            task._started = True
        await native.gather(*[task._run() for task in batch])

    def awaited(value):
        if isinstance(value, Task):
            return value._join()
        if unstarted:
            return beside(value)
        return value

    async def beside(value):
        # Tasks begin when their maker waits for something, as they do in CPython.
        batch = [task for task in unstarted if not task._started]
        while unstarted:
            unstarted.pop()
        for task in batch:
            task._started = True
        results = await native.gather(value, *[task._run() for task in batch])
        return results[0]

    async def keep(awaitable):
        try:
            return _tg_check(await awaitable)
        except Exception as error:
            return _tg_kept(error)

    def gather(*awaitables, return_exceptions=False):
        return gathered(awaitables, return_exceptions)

    async def gathered(awaitables, kept):
        if unstarted:
            await start()
        made = [item._join() if isinstance(item, Task) else item for item in awaitables]
        if kept:
            return await native.gather(*[keep(item) for item in made])
        return _tg_check_all(await native.gather(*made))

    def run(awaitable, debug=None):
        return _tg_check(native.run(awaited(awaitable)))

    def make_task(awaitable, name=None, context=None):
        if isinstance(awaitable, Task):
            return awaitable
        return Task(awaitable, name)

    async def sleep(seconds, result=None):
        await _tg_host_timer(seconds)
        return result

    async def wait_for(awaitable, timeout=None):
        if timeout is None:
            return await awaited(awaitable)
        began = _tg_at
        outcome = []

        async def finish():
            outcome.append(_tg_check(await awaited(awaitable)))
            # One failure ends a gathering at once, and with it the clock.
            raise RuntimeError("finished")

        async def expire():
            await _tg_host_timer(timeout)
            came_from(began)
            raise TimeoutError("")

        try:
            await native.gather(finish(), expire())
        except RuntimeError:
            if outcome:
                return outcome[0]
            raise

    async def wait_all(awaitables, timeout=None, return_when="ALL_COMPLETED"):
        if timeout is not None or return_when != "ALL_COMPLETED":
            _tg_refuse("asyncio.wait() waits for all of them here: use asyncio.gather(), or asyncio.wait_for() for a limit of time")
        tasks = [item if isinstance(item, Task) else Task(item) for item in awaitables]
        await start()
        for task in tasks:
            await keep(task._join())
        return tasks, []

    async def to_thread(function, *arguments, **named):
        value = function(*arguments, **named)
        if type(value).__name__ == "coroutine":
            value = await value
        return value

    def shield(awaitable):
        return awaitable

    class Semaphore:
        def __init__(self, value=1):
            self._free = value
            self._waiters = deque()

        async def acquire(self):
            while self._free <= 0:
                number, future = new_future()
                self._waiters.append(number)
                await future
            self._free -= 1
            return True

        def release(self):
            self._free += 1
            if self._waiters:
                _tg_host_settle(self._waiters.popleft())

        def locked(self):
            return self._free <= 0

        async def __aenter__(self):
            await self.acquire()

        async def __aexit__(self, kind, error, trace):
            self.release()

    class TaskGroup:
        def __init__(self):
            self._tasks = []

        def create_task(self, awaitable, name=None, context=None):
            task = Task(awaitable, name)
            self._tasks.append(task)
            return task

        async def __aenter__(self):
            return self

        async def __aexit__(self, kind, error, trace):
            done = 0
            while done < len(self._tasks):
                try:
                    await self._tasks[done]._join()
                except Exception as failed:
                    _tg_refuse(f"a task of a TaskGroup failed ({failed}), and exception groups are not available here: catch errors in the task, or use asyncio.gather()")
                done += 1

    def absent(name, instead):
        def refuse(*arguments, **named):
            _tg_refuse(f"asyncio.{name}() is not available here: use {instead}")

        return refuse

    class Loop:
        def run_until_complete(self, awaitable):
            return run(awaitable)

        def create_task(self, awaitable):
            return make_task(awaitable)

        def time(self):
            return _tg_host_monotonic()

        def close(self):
            pass

        def is_running(self):
            return True

    loop = Loop()

    def get_event_loop():
        return loop

    def iscoroutine(value):
        return type(value).__name__ == "coroutine"

    return _tg_module("asyncio", {
        "_await": awaited, "gather": gather, "run": run, "create_task": make_task, "ensure_future": make_task,
        "sleep": sleep, "wait_for": wait_for, "wait": wait_all,
        "as_completed": absent("as_completed", "asyncio.gather()"),
        "to_thread": to_thread, "shield": shield, "Semaphore": Semaphore, "BoundedSemaphore": Semaphore,
        "Lock": Semaphore, "TaskGroup": TaskGroup, "timeout": absent("timeout", "asyncio.wait_for(awaitable, seconds)"),
        "Event": absent("Event", "what a coroutine returns"), "Queue": absent("Queue", "a list, and asyncio.gather() with a Semaphore"),
        "get_event_loop": get_event_loop, "get_running_loop": get_event_loop, "new_event_loop": get_event_loop,
        "set_event_loop": shield, "iscoroutine": iscoroutine, "isfuture": iscoroutine, "Task": Task, "Future": Task,
        "TimeoutError": TimeoutError, "CancelledError": KeyboardInterrupt,
        "ALL_COMPLETED": "ALL_COMPLETED", "FIRST_COMPLETED": "FIRST_COMPLETED", "FIRST_EXCEPTION": "FIRST_EXCEPTION",
    })


_tg_asyncio = _tg_make_asyncio(_tg_native_asyncio, _tg_native_collections.deque)
