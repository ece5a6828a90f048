# The pipe to the host: frames in both directions, as `frame/mod.rs` describes them.
import io
import signal

from json.decoder import JSONDecoder
from select import POLLIN, POLLOUT, poll

# The reasons for which a worker exits, as `system/stop.rs` lists them.
ASKED, CPU, MEMORY, LOCKDOWN, LOST, PANICKED = 90, 91, 92, 93, 94, 95

READ_BYTES = 1 << 16
LARGE_READ_BYTES = 1 << 20
LARGE_FRAME_BYTES = 1 << 18
FULL_BYTES = 1 << 15
# The first outputs are sent at once, so that they are not lost if the script is killed. After so many
# of them, output is sent when it is this old (in seconds).
PROMPT_WRITES = 100
STALE = 0.02

# The part of the decoder in machine code. Frames have no blanks around them.
scan = JSONDecoder().scan_once


class Pipe:
    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.poll = poll()
        self.poll.register(descriptor, POLLIN)
        # Received bytes, of which those before `start` are used up.
        self.inbox = b""
        self.start = 0
        self.outbox = bytearray()
        # The position of the last frame in the outbox, if it is output of the stream `kind` and can
        # still grow.
        self.open = -1
        self.kind = 0
        self.writes = 0
        self.flushed = 0.0
        # A signal must not interrupt a change of the outbox.
        self.is_busy = False
        self.stop_code = None

    def has_frame(self):
        return self.start < len(self.inbox)

    def receive(self):
        """The next frame. Sends everything before it waits."""
        size = int.from_bytes(self.take(4), "little")
        if size < LARGE_FRAME_BYTES:
            return decoded(self.take(size))
        # It exists several times while it is read. Only its value counts as memory of the script.
        world.widen()
        try:
            return decoded(self.take(size))
        finally:
            world.narrow()

    def take(self, size):
        inbox, start = self.inbox, self.start
        end = start + size
        if len(inbox) >= end:
            self.start = end
            return inbox[start:end]
        parts = [inbox[start:]]
        missing = end - len(inbox)
        self.inbox, self.start = b"", 0
        while missing > 0:
            if self.outbox:
                self.flush()
            if self.has_frame():
                # Flushing has read something.
                part, self.inbox = self.inbox, b""
            else:
                part = self.read(min(max(missing, READ_BYTES), LARGE_READ_BYTES))
            parts.append(part)
            missing -= len(part)
        inbox = b"".join(parts)
        self.inbox, self.start = inbox, size
        return inbox[:size]

    def read(self, size):
        while True:
            self.poll.poll()
            try:
                part = posix.read(self.descriptor, size)
            except BlockingIOError:
                continue
            except OSError:
                self.lost()
            if not part:
                self.lost()
            return part

    def send(self, body):
        """Appends a frame with JSON."""
        self.is_busy = True
        self.open = -1
        self.outbox += (len(body) + 1).to_bytes(4, "little") + b"\0" + body
        self.is_busy = False
        if self.stop_code is not None:
            self.leave(self.stop_code)

    def write(self, kind, text):
        """Appends output of the script."""
        outbox = self.outbox
        for at in range(0, len(text), FULL_BYTES):
            piece = text[at : at + FULL_BYTES]
            self.is_busy = True
            if self.open >= 0 and self.kind == kind:
                outbox += piece
                start = self.open
                outbox[start : start + 4] = (len(outbox) - start - 4).to_bytes(4, "little")
            else:
                self.open = len(outbox)
                self.kind = kind
                outbox += (len(piece) + 1).to_bytes(4, "little") + bytes((kind,)) + piece
            self.is_busy = False
            if len(outbox) >= FULL_BYTES:
                self.flush()
        self.writes += 1
        if self.stop_code is not None:
            self.leave(self.stop_code)
        if self.writes <= PROMPT_WRITES or real_monotonic() - self.flushed > STALE:
            self.flush()

    def flush(self):
        """Sends everything. Reads meanwhile, so that host and worker never wait for each other."""
        self.is_busy = True
        self.open = -1
        while self.outbox:
            try:
                sent = posix.write(self.descriptor, self.outbox)
                del self.outbox[:sent]
            except BlockingIOError:
                self.poll.modify(self.descriptor, POLLIN | POLLOUT)
                ready = self.poll.poll()
                self.poll.modify(self.descriptor, POLLIN)
                if ready[0][1] & POLLIN:
                    self.inbox = self.inbox[self.start :] + self.read(READ_BYTES)
                    self.start = 0
            except OSError:
                self.lost()
        self.flushed = real_monotonic()
        self.is_busy = False
        if self.stop_code is not None:
            self.leave(self.stop_code)

    def leave(self, code):
        self.stop_code = None
        if not self.is_busy:
            self.flush()
        posix_exit(code)

    def lost(self):
        """The host is gone, or sent what is not a frame."""
        posix_exit(LOST)


posix_exit = posix._exit


def decoded(body):
    """The message of a frame. The first byte is its kind, and the rest is JSON."""
    text = str(memoryview(body)[1:], "utf-8", "surrogatepass")
    del body
    try:
        return scan(text, 0)[0]
    except RecursionError:
        return deep_completion(text)


def deep_completion(text):
    """A completion whose result is nested more deeply than Python reads."""
    number = text.partition('"id":')[2].partition(",")[0]
    at = text.rpartition('"at":')[2].partition(",")[0]
    error = {"tool": "", "message": "the result is nested too deeply"}
    completion = {"id": int(number), "outcome": {"Err": error}}
    return {"Completed": {"completion": completion, "at": int(at), "more": text.endswith("true}}")}}


class Console(io.RawIOBase):
    """The output of a script. `kind` is that of its frames."""

    def __init__(self, kind, name):
        self.kind = kind
        self.name = name

    def writable(self):
        return True

    def write(self, data):
        data = bytes(data)
        world.pipe.write(self.kind, data)
        return len(data)


class Buffered(Console):
    """Hides that nothing is buffered here, from code that expects `sys.stdout.buffer`."""

    @property
    def raw(self):
        return self


def stop(number, frame):
    """The host asks the worker to end, or its CPU time is used up."""
    pipe = world.pipe
    code = CPU if number == signal.SIGXCPU else ASKED
    if pipe is None:
        posix_exit(code)
    if pipe.is_busy:
        pipe.stop_code = code
    else:
        pipe.leave(code)
