//! Python.

use super::{
    CPU, Case, FAILED, FLOOD, MEMORY, MEMORY_OR_CPU, STACK, STACK_OR_ERROR, WALL, WRONG, contains,
    little, little_cpu, little_time,
};
use toolgate_sandbox::RunLimits;

use crate::support::{ending, python, run};

const LOOPS: &[Case] = &[
    ("while True: pass", CPU),
    (
        "while True:\n    try:\n        raise ValueError('x')\n    except ValueError:\n        pass",
        CPU,
    ),
    ("try:\n    while True: pass\nfinally:\n    while True: pass", CPU),
    ("for i in range(10**15): pass", CPU),
    ("def f():\n    while True: pass\nf()", CPU),
    ("try:\n    while True: pass\nexcept BaseException:\n    pass", CPU),
    ("while True:\n    try:\n        await echo(a=1)\n    except Exception:\n        pass", CPU),
    ("while True: print()", &[CPU[0], FLOOD[0]]),
    ("x = 0\nwhile True: x += 1", MEMORY_OR_CPU),
    ("sum(range(10**12))", CPU),
    ("sum([i for i in range(10**9)])", MEMORY_OR_CPU),
    ("sorted([3, 2, 1], key=lambda x: [y for y in range(10**12)])", MEMORY_OR_CPU),
    ("10 ** 10 ** 7", MEMORY_OR_CPU),
    ("x = 3\nwhile True: x = x * x", &[MEMORY[0], CPU[0], "failed: "]),
    ("async def f():\n    while True: pass\nawait f()", CPU),
    ("import re\nre.match(r'^(a+)+$', 'a' * 64 + 'b')", &[CPU[0], "failed: ", "done"]),
    ("import re\nre.search(r'(x+x+)+y', 'x' * 64)", &[CPU[0], "failed: ", "done"]),
    ("'a' * 100000 in 'a' * 50000 + 'b'", &["value: false", CPU[0]]),
];

#[tokio::test]
async fn loops() {
    contains(LOOPS, python, &little_cpu()).await;
}

const WAITS: &[Case] = &[
    ("await never()", WALL),
    // 100 of the calls are refused. `gather` waits for the others.
    ("import asyncio\nawait asyncio.gather(*[never() for _ in range(300)])", WALL),
];

#[tokio::test]
async fn waits() {
    contains(WAITS, python, &little_time()).await;
}

/// Less than elsewhere, since it takes a while to fill.
const LITTLE_MEMORY: &[&str] = &["stopped: the script needed more than 4 MB of memory"];

const MEMORY_BOMBS: &[Case] = &[
    ("[0] * 10**9", LITTLE_MEMORY),
    ("'a' * 10**10", LITTLE_MEMORY),
    ("b'a' * 10**10", LITTLE_MEMORY),
    ("a = []\nwhile True: a.append([1, 2, 3])", LITTLE_MEMORY),
    ("a = {}\ni = 0\nwhile True:\n    a[i] = str(i) * 10\n    i += 1", LITTLE_MEMORY),
    ("s = 'x'\nwhile True: s += s", LITTLE_MEMORY),
    ("list(range(10**9))", LITTLE_MEMORY),
    ("(0,) * 10**9", LITTLE_MEMORY),
    ("a = [1]\nwhile True: a = a + a", LITTLE_MEMORY),
    ("a = [1]\nwhile True: a = [a, a]", LITTLE_MEMORY),
    ("2 ** (2 ** 40)", &[LITTLE_MEMORY[0], "failed: "]),
    ("1 << (10**10)", &[LITTLE_MEMORY[0], "failed: "]),
    ("f'{1:>1000000000}'", &[LITTLE_MEMORY[0], "failed: "]),
    ("'a'.ljust(10**10)", &[LITTLE_MEMORY[0], "failed: "]),
    ("'a'.join(['b'] * 10**8)", LITTLE_MEMORY),
    ("'a' .replace('', 'b' * 10**9)", LITTLE_MEMORY),
    ("{i for i in range(10**9)}", LITTLE_MEMORY),
    ("set(range(10**9))", LITTLE_MEMORY),
];

#[tokio::test]
async fn memory_bombs() {
    let limits = RunLimits { memory_bytes: 4 << 20, ..little() };
    contains(MEMORY_BOMBS, python, &limits).await;
}

const DEPTHS: &[Case] = &[
    ("def f(): return f()\nf()", STACK),
    ("def f(x): return [f(y) for y in [x]]\nf(1)", STACK),
    ("f = lambda: f()\nf()", STACK),
    ("async def f(): return await f()\nawait f()", STACK),
    ("class A:\n    def __init__(self): A()\nA()", STACK),
    ("a = []\nfor i in range(100000): a = [a]\na", &["value: [[[[", "failed: "]),
    ("a = []\nfor i in range(100000): a = [a]\nprint(a)", &["failed: ", "done", STACK[0]]),
    ("a = []\nfor i in range(100000): a = [a]\nawait echo(a=a)", STACK_OR_ERROR),
    (
        "a = []\nfor i in range(100000): a = [a]\nstr(a) == str(a)",
        &["failed: ", "value: ", STACK[0]],
    ),
    ("a = []\na.append(a)\na", &["failed: ", "value: "]),
    ("import json\njson.loads('[' * 100000)", STACK_OR_ERROR),
    (
        "def f():\n    try:\n        f()\n    except RecursionError:\n        return 1\nf()",
        &["done", "value: 1"],
    ),
];

#[tokio::test]
async fn depths() {
    contains(DEPTHS, python, &little()).await;
}

const REACHING: &[Case] = &[
    ("import os\nos.system('id')", WRONG),
    ("import subprocess", WRONG),
    ("import socket", WRONG),
    ("open('/etc/passwd').read()", WRONG),
    ("__import__('os').system('id')", WRONG),
    ("eval('1 + 1')", WRONG),
    ("exec('import os')", WRONG),
    ("().__class__.__bases__[0].__subclasses__()", WRONG),
    ("(lambda: 0).__globals__", WRONG),
    ("import sys\nsys.modules['os']", WRONG),
    ("import pathlib\npathlib.Path('/etc/passwd').read_text()", WRONG),
    ("await no_such_tool(a=1)", &["rejected: "]),
    ("import asyncio\nawait asyncio.gather(*[echo(a=i) for i in range(100)])\nNone", &["done"]),
    ("while True:\n    await echo(a=1)", FAILED),
    ("await echo(a='x' * 2000000)", FAILED),
    ("await big(bytes=2000000)", FAILED),
    ("'x' * 2000000", &["stopped: the script's value has 2000002 bytes, 1 MB are allowed"]),
    ("while True: print('x' * 1000)", FLOOD),
    ("raise ValueError('x' * 2000000)", FAILED),
    ("raise KeyboardInterrupt()", WRONG),
];

#[tokio::test]
async fn reaching_out() {
    contains(REACHING, python, &little()).await;
}

#[tokio::test]
async fn sources() {
    let pool = crate::support::pool();
    let nested: String = (0..90).map(|depth| " ".repeat(depth) + "if True:\n").collect::<String>()
        + &" ".repeat(90)
        + "pass\n";
    let cases = [
        ("[".repeat(100_000), "rejected: "),
        ("(".repeat(500_000), "rejected: "),
        ("not ".repeat(100_000) + "1", ""),
        ("-".repeat(100_000) + "1", ""),
        ("1+".repeat(100_000) + "1", ""),
        ("lambda: ".repeat(50_000) + "1", ""),
        ("x = 1\n".repeat(10_000), "done"),
        ("x = 1\n".repeat(50_000), ""),
        (nested, ""),
        ("f'{".repeat(10_000), "rejected: "),
        ("x".repeat(2_000_000), "rejected: "),
        (String::from("\u{0}\u{feff}"), ""),
        (String::from("if True:\nprint(1)"), "rejected: "),
    ];
    for (code, expected) in cases {
        let ending = ending(&run(&pool, python(&code), &little()).await);
        let start: String = code.chars().take(20).collect();
        assert!(ending.starts_with(expected), "{start:?}: {ending:.300}");
        println!("{start:?}: {ending:.200}");
        crate::support::assert_unharmed(&pool).await;
    }
}
