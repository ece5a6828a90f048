# ---- gather, order and exceptions
import asyncio
async def work(n, delay):
    await asyncio.sleep(delay)
    if n == 2: raise ValueError(f"job {n}")
    return n * 10
async def main():
    print(await asyncio.gather(work(1, 0.03), work(3, 0.01), work(4, 0)))
    results = await asyncio.gather(work(1, 0), work(2, 0), return_exceptions=True)
    print([r if not isinstance(r, Exception) else repr(r) for r in results])
    order = []
    async def note(n, d): await asyncio.sleep(d); order.append(n)
    await asyncio.gather(note("slow", 0.05), note("fast", 0.01), note("now", 0))
    print(order)
    try: await asyncio.gather(work(1, 0.01), work(2, 0))
    except ValueError as e: print("caught", e)
    return "returned"
print(asyncio.run(main()))
asyncio.run(work(2, 0))

# ---- tasks, cancellation and shielding
import asyncio
async def ticker(log):
    try:
        log.append("began")
        while True: await asyncio.sleep(60)
    except asyncio.CancelledError:
        log.append("cancelled"); raise
    finally: log.append("cleanup")
async def main():
    log = []
    task = asyncio.create_task(ticker(log), name="tick")
    await asyncio.sleep(0); task.cancel("enough")
    try: await task
    except asyncio.CancelledError as e: print("task was cancelled", e.args)
    print(log, task.cancelled(), task.done(), task.get_name())
    gate = asyncio.Event()
    async def slow(): await gate.wait(); return "kept"
    inner = asyncio.ensure_future(slow())
    try: await asyncio.wait_for(asyncio.shield(inner), 0.001)
    except TimeoutError: print("timeout", inner.done())
    gate.set(); print(await inner)
    t = asyncio.create_task(slow()); t.add_done_callback(lambda t: print("callback", t.result())); await t; await asyncio.sleep(0)
    never = asyncio.create_task(slow()); never.cancel(); await asyncio.sleep(0); print(never.cancelled(), len(asyncio.all_tasks()))
    print(asyncio.current_task().get_coro().__name__)
asyncio.run(main())

# ---- asyncio.timeout and wait_for
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(0.02) as cm:
            print("before"); await asyncio.sleep(10)
    except TimeoutError: print("timed out", cm.expired())
    async with asyncio.timeout(10) as cm: await asyncio.sleep(0)
    print(cm.expired(), cm.when() > loop.time())
    async with asyncio.timeout(None) as cm:
        cm.reschedule(loop.time() + 5)
    print(await asyncio.wait_for(asyncio.sleep(0.001, "value"), 1))
    async def stubborn():
        try: await asyncio.sleep(5)
        except asyncio.CancelledError: print("asked to stop"); raise
    try: await asyncio.wait_for(stubborn(), timeout=0.01)
    except asyncio.TimeoutError as e: print(type(e).__name__)
    try:
        async with asyncio.timeout(0.01):
            try: await asyncio.sleep(1)
            finally: print("finally")
    except TimeoutError: print("outer")
    start = loop.time(); await asyncio.sleep(2); print(round(loop.time() - start))
    async with asyncio.timeout_at(loop.time() + 0.01): await asyncio.sleep(1)
asyncio.run(main())

# ---- task groups
import asyncio
async def job(n, fail=False):
    try:
        await asyncio.sleep(n / 100)
        if fail: raise RuntimeError(f"job {n} failed")
        print("done", n); return n
    except asyncio.CancelledError: print("cancelled", n); raise
async def main():
    async with asyncio.TaskGroup() as tg:
        tasks = [tg.create_task(job(i)) for i in (3, 1, 2)]
    print([t.result() for t in tasks])
    try:
        async with asyncio.TaskGroup() as tg:
            tg.create_task(job(500)); tg.create_task(job(1, True))
    except* RuntimeError as g: print([str(e) for e in g.exceptions])
    async with asyncio.TaskGroup() as tg:
        tg.create_task(job(1)); tg.create_task(job(9, True))
asyncio.run(main())

# ---- locks, events, conditions, semaphores
import asyncio
async def main():
    lock, sem, event, cond, log = asyncio.Lock(), asyncio.Semaphore(2), asyncio.Event(), asyncio.Condition(), []
    async def critical(n):
        async with lock: log.append(f"in {n}"); await asyncio.sleep(0.001); log.append(f"out {n}")
    await asyncio.gather(*(critical(i) for i in range(3))); print(log, lock.locked())
    active = peak = 0
    async def limited():
        nonlocal active, peak
        async with sem: active += 1; peak = max(peak, active); await asyncio.sleep(0.001); active -= 1
    await asyncio.gather(*(limited() for _ in range(6))); print("peak", peak)
    async def waiter(n): await event.wait(); return n
    w = [asyncio.create_task(waiter(i)) for i in range(2)]; await asyncio.sleep(0); event.set(); print(await asyncio.gather(*w), event.is_set())
    items = []
    async def consumer():
        async with cond: await cond.wait_for(lambda: len(items) >= 2); return list(items)
    c = asyncio.create_task(consumer())
    for i in range(2):
        async with cond: items.append(i); cond.notify_all()
        await asyncio.sleep(0)
    print(await c)
    b = asyncio.BoundedSemaphore(1); await b.acquire(); b.release()
    barrier = asyncio.Barrier(2); print(sorted(await asyncio.gather(barrier.wait(), barrier.wait())))
    b.release()
asyncio.run(main())

# ---- queues and workers
import asyncio
async def main():
    q, done = asyncio.Queue(maxsize=2), []
    async def producer():
        for i in range(5): await q.put(i)
        for _ in range(2): await q.put(None)
    async def worker(name):
        while (item := await q.get()) is not None:
            await asyncio.sleep(0.001 * item); done.append((name, item)); q.task_done()
        q.task_done()
    await asyncio.gather(producer(), worker("a"), worker("b")); await q.join()
    print(sorted(i for _, i in done), q.empty(), q.qsize())
    p = asyncio.PriorityQueue(); [p.put_nowait(x) for x in (3, 1, 2)]; print([p.get_nowait() for _ in range(3)])
    l = asyncio.LifoQueue(); l.put_nowait(1); l.put_nowait(2); print(l.get_nowait())
    try: q.get_nowait()
    except asyncio.QueueEmpty: print("empty")
    q.put_nowait(1); q.put_nowait(2); q.put_nowait(3)
asyncio.run(main())

# ---- wait, as_completed and eager results
import asyncio
gates = {n: asyncio.Event() for n in range(9)}
async def job(n):
    # Each opens the gate of the next, so that the order does not depend on the clock.
    await gates[n].wait(); gates[n + 1].set(); return n
async def main():
    tasks = {asyncio.create_task(job(n)) for n in (3, 1, 2)}
    done, pending = await asyncio.wait(tasks, timeout=0.001); print(len(done), len(pending))
    gates[1].set()
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    print(sorted(t.result() for t in done)[0], len(done) + len(pending))
    done, _ = await asyncio.wait(tasks); print(sorted(t.result() for t in done))
    for gate in gates.values(): gate.clear()
    gates[1].set()
    print([await c for c in asyncio.as_completed([job(3), job(1), job(2)])])
    try:
        for c in asyncio.as_completed([job(7)], timeout=0.01): await c
    except TimeoutError: print("too slow")
    loop = asyncio.get_running_loop(); f = loop.create_future(); loop.call_later(0.01, f.set_result, "later"); loop.call_soon(print, "soon"); print(await f)
    h = loop.call_later(1, print, "never"); h.cancel(); print(h.cancelled())
    print(await asyncio.to_thread(lambda a: a * 2, 21), await loop.run_in_executor(None, len, "abc"))
    f = loop.create_future(); f.set_exception(KeyError("future")); await f
asyncio.run(main())

# ---- async generators, iterators, comprehensions and context managers
import asyncio
from contextlib import asynccontextmanager, AsyncExitStack, aclosing
async def agen(n):
    try:
        for i in range(n): await asyncio.sleep(0); yield i
    finally: print("agen closed")
class Pages:
    def __init__(self, n): self.n, self.i = n, 0
    def __aiter__(self): return self
    async def __anext__(self):
        if self.i >= self.n: raise StopAsyncIteration
        self.i += 1; await asyncio.sleep(0); return f"page {self.i}"
class Conn:
    async def __aenter__(self): print("open"); return self
    async def __aexit__(self, *a): print("close", a[0] and a[0].__name__); return a[0] is ValueError
@asynccontextmanager
async def tx(name):
    print("begin", name)
    try: yield name
    except KeyError: print("rollback"); raise
    else: print("commit")
async def main():
    print([x async for x in agen(3)], {p async for p in Pages(1)}, {k: v async for k, v in zipper()}, [y async for y in agen(5) if y % 2])
    async with aclosing(agen(5)) as g:
        async for x in g:
            if x == 1: break
    async with Conn() as c, tx("t"): pass
    async with Conn(): raise ValueError
    async with AsyncExitStack() as s: await s.enter_async_context(Conn()); s.push_async_callback(asyncio.sleep, 0)
    print(await anext(aiter(Pages(2))), [await asyncio.sleep(0, i) for i in range(2)])
    async with tx("bad"): {}["gone"]
async def zipper():
    for i in range(2): yield i, i * i
asyncio.run(main())

# ---- context variables and nested functions
import asyncio, contextvars
request = contextvars.ContextVar("request", default="none")
async def handle(n):
    token = request.set(f"req{n}"); await asyncio.sleep(0.001 * (3 - n)); seen = request.get()
    if n == 1: request.reset(token); seen += "/" + request.get()
    return seen
async def main():
    print(await asyncio.gather(*(handle(i) for i in range(3))), request.get())
    ctx = contextvars.copy_context(); ctx.run(request.set, "inner"); print(ctx[request], request.get())
asyncio.run(main())
async def forgot(): return 1
async def bad():
    start = forgot
    return start() + 1
import warnings; warnings.simplefilter("ignore")
asyncio.run(bad())

# ---- an error deep inside tasks has the right line
import asyncio
async def level3(x):
    await asyncio.sleep(0)
    return 10 / x
async def level2(x):
    async with asyncio.timeout(5):
        try:
            return await level3(x)
        finally:
            await asyncio.sleep(0)
async def main():
    print(await level2(5))
    t = asyncio.create_task(level2(0))
    await t
asyncio.run(main())

# ---- runners and loops by hand
import asyncio
async def f(x): await asyncio.sleep(0.01); return x
with asyncio.Runner() as runner:
    print(runner.run(f(1)), runner.run(f(2)))
loop = asyncio.new_event_loop()
try:
    print(loop.run_until_complete(f(3)), loop.is_running(), loop.is_closed())
    loop.call_later(0.02, loop.stop); loop.call_soon(lambda: print("in loop")); loop.run_forever()
finally: loop.close()
print(loop.is_closed(), asyncio.iscoroutinefunction(f))
try: asyncio.get_running_loop()
except RuntimeError as e: print(e)
c = f(4)
try: asyncio.run(5)
except (ValueError, TypeError) as e: print("a coroutine was expected" in str(e) or "required" in str(e))
c.close()
loop.run_until_complete(f(5)) if False else loop.call_soon(print)

# ---- streams of work with backpressure and retries
import asyncio, random
random.seed(1)
class Flaky(Exception): pass
attempts = {}
async def fetch(i):
    attempts[i] = attempts.get(i, 0) + 1
    await asyncio.sleep(random.random() / 100)
    if attempts[i] < 2 and i % 3 == 0: raise Flaky(i)
    return {"id": i, "size": i * 7 % 5}
async def retrying(i, times=3):
    for n in range(times):
        try: return await fetch(i)
        except Flaky:
            if n == times - 1: raise
            await asyncio.sleep(0.001 * 2 ** n)
async def main():
    sem = asyncio.Semaphore(3)
    async def one(i):
        async with sem: return await retrying(i)
    rows = await asyncio.gather(*(one(i) for i in range(10)))
    print(sum(r["size"] for r in rows), [r["id"] for r in rows], sum(attempts.values()))
    await retrying(99, 1)
asyncio.run(main())
