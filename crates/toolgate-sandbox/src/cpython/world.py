# The host, as a script sees it: its clock, its random numbers and the results of its calls.
#
# This part runs before any other module is imported, because modules copy the functions of `time`
# and `os` when they are imported.
import posix
import sys
import time

real_monotonic = time.monotonic
real_gmtime = time.gmtime
real_localtime = time.localtime
real_strftime = time.strftime
real_asctime = time.asctime
real_getppid = posix.getppid

# The file name of a script and of this program, in tracebacks.
SCRIPT = "script.py"
OWN = "<toolgate>"

# After so many looks at the clock or rounds of a loop, time passes even if the script does not wait.
# The number is fixed, so that a replay does the same.
LOOKS = 10_000
SPINS = 1_000
STEP = 1_000


class World:
    """The time, the seed and the calls of a run. Times are in microseconds."""

    def __init__(self):
        self.reset(0, 0)

    def reset(self, began, seed):
        self.pipe = None
        self.began = began
        self.seed = seed
        self.now = 0
        self.looks = 0
        self.stream = None
        self.next_call = 0
        # The calls without an outcome, by their numbers.
        self.calls = {}
        self.refused = []
        self.value_bytes = 1 << 62
        self.reports_waits = False
        self.time_requested = None
        self.delivered = 0
        self.lockdown = None

    def look(self):
        self.looks += 1
        if self.looks > LOOKS:
            self.wait(self.now + STEP)

    # The functions of `time`.

    def time(self):
        self.look()
        return (self.began + self.now) / 1e6

    def time_ns(self):
        self.look()
        return (self.began + self.now) * 1000

    def monotonic(self):
        self.look()
        return self.now / 1e6

    def monotonic_ns(self):
        self.look()
        return self.now * 1000

    def clock_gettime(self, clock):
        return self.time() if clock == time.CLOCK_REALTIME else self.monotonic()

    def clock_gettime_ns(self, clock):
        return self.time_ns() if clock == time.CLOCK_REALTIME else self.monotonic_ns()

    def gmtime(self, seconds=None, /):
        return real_gmtime(self.time() if seconds is None else seconds)

    def localtime(self, seconds=None, /):
        return real_localtime(self.time() if seconds is None else seconds)

    def strftime(self, format, moment=None, /):
        return real_strftime(format, self.localtime() if moment is None else moment)

    def asctime(self, moment=None, /):
        return real_asctime(self.localtime() if moment is None else moment)

    def ctime(self, seconds=None, /):
        return real_asctime(self.localtime(seconds))

    def sleep(self, seconds, /):
        if seconds != seconds:
            raise ValueError("Invalid value NaN (not a number)")
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        # The longest wait is a day.
        until = self.now + int(min(seconds, 86_400) * 1e6 + 0.999)
        while self.now < until:
            self.wait(until)

    # The functions of `os`.

    def urandom(self, size, /):
        if size < 0:
            raise ValueError("negative argument not allowed")
        if self.stream is None:
            from _random import Random

            self.stream = Random(self.seed * 2 + 1)
        return self.stream.getrandbits(size * 8).to_bytes(size, "little") if size else b""

    def getrandom(self, size, flags=0):
        return self.urandom(size)

    def getpid(self):
        return 1

    # A process alone in its namespace, of nobody.

    def getppid(self):
        return 0

    def nobody(self):
        return 65534

    def getgroups(self):
        return []

    def getpgrp(self):
        return 1

    def times(self):
        now = self.monotonic()
        return posix.times_result((now, 0.0, 0.0, 0.0, now))

    # Memory.

    def widen(self):
        """Lets the worker use the memory for results."""
        if self.lockdown is not None:
            self.lockdown.widen()

    def narrow(self):
        """Lets the script go on with its own memory."""
        if self.lockdown is not None:
            self.lockdown.narrow()

    # Calls and waits.

    def wait(self, deadline):
        """Waits for the next delivery, at most until the deadline."""
        self.looks = 0
        if self.refused:
            refused, self.refused = self.refused, []
            for call, error in refused:
                call.settle(None, error)
            return
        if not self.calls and deadline is None:
            stalled()
        pipe = self.pipe
        if not pipe.has_frame():
            self.report_wait(deadline)
        while True:
            frame = pipe.receive()
            if frame == "ReportWaits":
                self.reports_waits = True
                self.report_wait(deadline)
                continue
            ((kind, body),) = frame.items()
            if kind == "Time":
                self.time_requested = None
                self.reach(body)
                return
            if kind != "Completed":
                pipe.lost()
            completion = body["completion"]
            call = self.calls.pop(completion["id"], None)
            self.reach(body["at"])
            if call is not None:
                outcome = completion["outcome"]
                call.settle(outcome.get("Ok"), outcome.get("Err"))
            if not body["more"]:
                return

    def reach(self, at):
        self.delivered += 1
        if at > self.now:
            self.now = at

    def report_wait(self, deadline):
        if not self.reports_waits and (deadline is None or deadline == self.time_requested):
            return
        self.time_requested = deadline
        until = "null" if deadline is None else deadline
        self.pipe.send(b'{"Waits":{"until":%b,"delivered":%d}}' % (str(until).encode(), self.delivered))


world = World()

for name in (
    "time", "time_ns", "monotonic", "monotonic_ns", "clock_gettime", "clock_gettime_ns", "gmtime",
    "localtime", "strftime", "asctime", "ctime", "sleep",
):
    setattr(time, name, getattr(world, name))
time.perf_counter = time.process_time = time.thread_time = world.monotonic
time.perf_counter_ns = time.process_time_ns = time.thread_time_ns = world.monotonic_ns
for name in ("urandom", "getrandom", "getpid", "getppid", "getgroups", "getpgrp", "times"):
    setattr(posix, name, getattr(world, name))
posix.getuid = posix.geteuid = posix.getgid = posix.getegid = world.nobody
