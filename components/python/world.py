# The host, as a script sees it. The clock and the random numbers of the system are the host's already.
#
# This file, the parts of `crates/toolgate-sandbox/src/cpython` that `scripts/build-components` names, and
# `language.py` are one module. They share their variables.
import io
import sys
import time

from componentize_py_types import Err, Ok
from wit_world.imports import host

# The file name of a script and of this module, in tracebacks.
SCRIPT = "script.py"
OWN = sys._getframe().f_code.co_filename

# After so many rounds of a loop without waiting, time passes, in microseconds.
SPINS = 1_000
STEP = 1_000


class World:
    """The time and the calls of a run. Times are in microseconds since 1970."""

    value_bytes = 1 << 62
    reports_waits = False
    began = seed = 0

    def __init__(self):
        # The calls without an outcome, by their numbers.
        self.calls = {}

    @property
    def now(self):
        return host.now() // 1000

    def monotonic(self):
        return host.now() / 1e9

    def sleep(self, seconds):
        time.sleep(seconds)

    def widen(self):
        """Does nothing: the host has memory of its own for results."""

    def wait(self, deadline):
        """Waits for the next call that ends, at most until the deadline."""
        ended = host.wait(None if deadline is None else deadline * 1000)
        if ended is None:
            return
        number, outcome = ended
        call = self.calls.pop(number, None)
        if call is None:
            return
        if isinstance(outcome, Ok):
            call.settle(json.loads(outcome.value), None)
        else:
            call.settle(None, {"tool": call.name, "message": outcome.value})


world = World()


class Buffered(io.RawIOBase):
    """The output of a script."""

    def __init__(self, number, name):
        self.name = name

    def writable(self):
        return True

    def write(self, data):
        host.print(bytes(data).decode("utf-8", "replace"))
        return len(data)
