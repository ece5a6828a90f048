//! Python's own interpreter, which offers a script everything that the language has.

use toolgate_sandbox::RunLimits;

use super::{
    CPU, Case, FAILED, FLOOD, STALLED, WALL, WRONG, contains_in, little, little_cpu, little_time,
};
use crate::{
    interpreter::{pool, run_python},
    support::{assert_unharmed, ending, python, value_of},
};

const LOOPS: &[Case] = &[
    ("while True: pass", CPU),
    ("try:\n    while True: pass\nfinally:\n    while True: pass", CPU),
    ("try:\n    while True: pass\nexcept BaseException:\n    pass", CPU),
    ("sum(range(10**12))", CPU),
    ("import re\nre.match(r'^(a+)+$', 'a' * 64 + 'b')", CPU),
    ("10 ** 10 ** 8", &[CPU[0], "stopped: the script needed more than 16 MB"]),
    ("while True: print()", &[CPU[0], FLOOD[0]]),
    ("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", CPU),
    ("import asyncio\nwhile True: await asyncio.sleep(0)", CPU),
    ("import time\nwhile True: time.time()", CPU),
    ("class A:\n    def __del__(self):\n        while True: pass\nA()\n1", CPU),
    ("import atexit\n@atexit.register\ndef f():\n    while True: pass\n1", CPU),
    (
        "class A:\n    def __repr__(self):\n        while True: pass\n[A(), b'x', float('nan')]",
        &[CPU[0], "value: "],
    ),
    (
        "class A(dict):\n    def items(self):\n        while True: pass\nA(x=1)",
        &[CPU[0], "value: "],
    ),
    (
        "import sys\nsys.setswitchinterval(1e-9)\nwhile True:\n    try:\n        await echo(a=1)\n    except Exception:\n        pass",
        CPU,
    ),
];

#[tokio::test]
async fn loops() {
    contains_in(&pool(), LOOPS, python, &little_cpu()).await;
}

const WAITS: &[Case] = &[
    ("await never()", WALL),
    ("import asyncio\nawait asyncio.gather(*[never() for _ in range(300)])", WALL),
    ("import time\ntime.sleep(10**6)", WALL),
    ("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()", FAILED),
    ("import queue\nqueue.Queue().get()", STALLED),
    ("import asyncio\nawait asyncio.Event().wait()", STALLED),
    (
        "import asyncio\nasync def main():\n    await asyncio.get_running_loop().create_future()\nasyncio.run(main())",
        STALLED,
    ),
];

#[tokio::test]
async fn waits() {
    contains_in(&pool(), WAITS, python, &little_time()).await;
}

const MEMORY: &[&str] = &["stopped: the script needed more than 16 MB of memory"];

const MEMORY_BOMBS: &[Case] = &[
    ("[0] * 10**9", MEMORY),
    ("'a' * 10**10", MEMORY),
    ("a = []\nwhile True: a.append([1, 2, 3])", MEMORY),
    ("s = 'x'\nwhile True: s += s", MEMORY),
    ("list(range(10**9))", MEMORY),
    ("a = [1]\nwhile True: a = [a, a]\n", &["stopped: "]),
    ("1 << (10**10)", MEMORY),
    ("f'{1:>1000000000}'", MEMORY),
    ("bytearray(10**9)", MEMORY),
    ("import mmap\nmmap.mmap(-1, 10**9, flags=mmap.MAP_PRIVATE)", &["failed: "]),
    ("import mmap\nmmap.mmap(-1, 10**9)", REFUSED),
    (
        "try:\n    x = [0] * 10**9\nexcept MemoryError:\n    x = 'went on'\nx",
        &["value: \"went on\""],
    ),
    (
        "import zlib\nzlib.decompress(zlib.compress(b'a' * 10**7) , bufsize=10**9)",
        &["stopped: ", "value: "],
    ),
];

#[tokio::test]
async fn memory_bombs() {
    let limits = RunLimits { memory_bytes: 16 << 20, ..little() };
    contains_in(&pool(), MEMORY_BOMBS, python, &limits).await;
}

const DEPTHS: &[Case] = &[
    ("def f(): return f()\nf()", &["failed: RecursionError: maximum recursion depth exceeded"]),
    ("a = []\nfor i in range(100000): a = [a]\na", &["failed: ", "value: "]),
    ("a = []\nfor i in range(100000): a = [a]\nprint(a)", &["failed: RecursionError"]),
    ("a = []\nfor i in range(100000): a = [a]\nawait echo(a=a)", FAILED),
    ("a = []\na.append(a)\na", &["failed: the script's value has no JSON: Circular reference"]),
    ("import json\njson.loads('[' * 100000)", FAILED),
    (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
        &["stopped: ", "crashed: ", "failed: "],
    ),
    (
        "import sys\nsys.setrecursionlimit(10**9)\na = []\nfor i in range(10**6): a = [a]\nrepr(a)",
        &["stopped: ", "crashed: ", "failed: ", "value: "],
    ),
    ("import ast\nast.literal_eval('(' * 5000 + ')' * 5000)", &["failed: ", "stopped: "]),
];

#[tokio::test]
async fn depths() {
    contains_in(&pool(), DEPTHS, python, &little()).await;
}

const REFUSED: &[&str] = &["failed: PermissionError: [Errno 13]"];

const REACHING: &[Case] = &[
    ("import os\nos.system('id')", REFUSED),
    ("import subprocess\nsubprocess.run(['id'])", REFUSED),
    ("import os\nos.fork()", REFUSED),
    ("import os\nwhile True: os.fork()", REFUSED),
    ("import os\nos.execv('/bin/sh', ['sh'])", REFUSED),
    ("import os\nos.posix_spawn('/bin/sh', ['sh'], {})", REFUSED),
    ("import os\nos.kill(1, 9)", REFUSED),
    ("import os\nos.listdir('/')", REFUSED),
    ("import os\nos.chroot('/')", REFUSED),
    ("import os\nos.setuid(0)", REFUSED),
    ("import os\nos.pipe()", REFUSED),
    ("import os\nos.dup(0)", REFUSED),
    ("import os\nos.close(0)", REFUSED),
    ("import os\nos.memfd_create('x')", REFUSED),
    ("import os\nos.nice(19)", REFUSED),
    ("import os\nos.sched_setaffinity(0, [0])", REFUSED),
    ("import os\nos.write(1, b'x')", FAILED),
    ("import io\nio.open('/etc/passwd')", REFUSED),
    ("import pathlib\npathlib.Path('/etc/passwd').read_text()", REFUSED),
    ("import io\nio.FileIO('/proc/self/mem', 'r+b')", REFUSED),
    ("import tempfile\ntempfile.TemporaryFile()", FAILED),
    ("import socket\nsocket.socket()", REFUSED),
    ("import socket\nsocket.socketpair()", REFUSED),
    ("import socket\nsocket.create_connection(('127.0.0.1', 80))", FAILED),
    ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1/')", FAILED),
    ("import asyncio\nawait asyncio.open_connection('127.0.0.1', 80)", FAILED),
    ("import asyncio\nawait asyncio.create_subprocess_exec('id')", FAILED),
    ("import threading\nthreading.Thread(target=print).start()", FAILED),
    ("import _thread\n_thread.start_new_thread(print, ())", FAILED),
    ("import multiprocessing", WRONG),
    ("import ctypes", WRONG),
    ("import _ctypes", WRONG),
    ("import mmap\nmmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)", REFUSED),
    (
        "import importlib.machinery as m\nm.ExtensionFileLoader('x', '/lib/x86_64-linux-gnu/libm.so.6').load_module()",
        FAILED,
    ),
    (
        "import _csv, importlib.util as u\ns = u.spec_from_file_location('_ctypes', _csv.__file__.replace('_csv', '_ctypes'))\nu.module_from_spec(s)",
        &["failed: ImportError: a script cannot load modules in machine code"],
    ),
    ("import resource\nresource.setrlimit(resource.RLIMIT_DATA, (-1, -1))", FAILED),
    ("import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (9, 9))", FAILED),
    ("import signal\nsignal.raise_signal(signal.SIGKILL)", FAILED),
    ("import signal\nsignal.setitimer(signal.ITIMER_REAL, 1)", FAILED),
    ("import os\nos.abort()", &["crashed: the worker was ended by "]),
    (
        "type(tools).__getitem__.__globals__['ctypes'].string_at(0)",
        &["crashed: the worker was ended by SIGSEGV"],
    ),
    ("import os\nos._exit(7)", &["failed: SystemExit: 7"]),
    ("import os\n[dict(os.environ), os.getpid()]", &["value: [{},1]"]),
    ("import sys\nsys.exit()", &["done"]),
    ("raise KeyboardInterrupt()", FAILED),
    ("raise GeneratorExit()", FAILED),
    ("await no_such_tool(a=1)", &["rejected: "]),
    ("while True:\n    await echo(a=1)", FAILED),
    ("await echo(a='x' * 2000000)", FAILED),
    ("await big(bytes=2000000)", FAILED),
    ("'x' * 2000000", &["stopped: the script's value has 2000002 bytes, 1 MB are allowed"]),
    ("while True: print('x' * 1000)", FLOOD),
    ("raise ValueError('x' * 2000000)", FAILED),
    (
        "import builtins\nbuiltins.len = None\nbuiltins.isinstance = None\n1",
        &["value: 1", "crashed: "],
    ),
    (
        "import json\njson.encoder = None\nimport sys\nsys.modules.clear()\n[1, {'a': 2.5}]",
        &["value: [1,{\"a\":2.5}]", "crashed: "],
    ),
    (
        "import gc\nfor o in gc.get_objects():\n    if isinstance(o, list): o.clear()\n1",
        &["value: 1", "done", "failed: ", "crashed: "],
    ),
    (
        "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nf.f_globals.clear()\n1",
        &["value: 1", "failed: ", "crashed: "],
    ),
    (
        "import asyncio, types\nasyncio.BaseEventLoop._run_once = None\nasync def f(): return 1\nawait f()",
        &["value: 1", "failed: ", "crashed: "],
    ),
    ("class E(Exception):\n    def __str__(self): raise E()\nraise E()", FAILED),
    (
        "class E(BaseException):\n    @property\n    def __traceback__(self): raise E()\nraise E()",
        FAILED,
    ),
];

#[tokio::test]
async fn reaching_out() {
    contains_in(&pool(), REACHING, python, &little()).await;
}

/// The variables of toolgate's own part of the process, which a script can always find.
const INSIDE: &str = "inside = type(tools).__getitem__.__globals__\n";

#[tokio::test]
async fn what_a_script_finds_inside_of_its_process_gives_it_nothing() {
    let pool = pool();
    let code = format!(
        "{INSIDE}libc, call = inside['libc'], inside['system_call']\n\
         [inside['raw_fork'](), libc.system(b'id') == 0, libc.open(b'/etc/passwd', 0), libc.socket(2, 1, 0), \
         libc.mprotect(0, 4096, 7), libc.kill(1, 0), call(101, 0, 0, 0, 0), inside['prctl'](22, 2, 0, 0, 0), libc.ptrace(16, 1, 0, 0), \
         libc.unshare(0x10000000), libc.personality(0x40000), libc.setrlimit(2, (inside['ctypes'].c_ulong * 2)(2**40, 2**40))]"
    );
    let report = run_python(&pool, &code).await;
    let expected = serde_json::json!([-1, false, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1]);
    assert_eq!(value_of(&report), expected);
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn forged_frames_break_only_their_own_run() {
    let pool = pool();
    let send = |frame: &str| {
        format!(
            "{INSIDE}pipe = inside['world'].pipe\npipe.send({frame})\npipe.flush()\nwhile True: pass"
        )
    };
    let cases = [
        (r#"b'{"Done":{"Value":7}}'"#, "value: 7"),
        (
            r#"b'{"Ready":{"measures":[]}}'"#,
            "crashed: the worker broke the protocol: ready a second time",
        ),
        (
            r#"b'{"Prepared":{}}'"#,
            "crashed: the worker broke the protocol: a script for another worker",
        ),
        (
            r#"b'{"Flow":{"calls":[],"flows":[]}}'"#,
            "crashed: the worker broke the protocol: a result of the check",
        ),
        (
            r#"b'{"Describe":["echo"]}'"#,
            "crashed: the worker broke the protocol: a result of the check",
        ),
        (r#"b'{"Warned":[]}'"#, "crashed: the worker broke the protocol: a result of the check"),
        (
            r#"b'{"Call":{"id":0,"name":"echo","arguments":[]}}'"#,
            "crashed: the worker broke the protocol: a frame with an invalid body",
        ),
        (r"b'nonsense'", "crashed: the worker broke the protocol: a frame with an invalid body"),
        (r#"b'{"Panicked":"x"}'"#, "crashed: the engine failed: x"),
    ];
    for (frame, expected) in cases {
        let report = run_python(&pool, &send(frame)).await;
        assert!(ending(&report).starts_with(expected), "{frame}: {}", ending(&report));
        assert_unharmed(&pool).await;
    }
    let raw = "import os\nos.write(0, b'\\xff' * 100)\nwhile True: pass";
    let report = run_python(&pool, raw).await;
    assert!(
        ending(&report).contains("broke the protocol: a frame of 4294967295 bytes"),
        "{}",
        ending(&report)
    );
    assert_unharmed(&pool).await;
}
