//! The failures of scripts.

use super::run;
use crate::engine::{FailureKind, ScriptPosition};

#[test]
fn uncaught_errors_have_the_lines_of_the_script() {
    let run = run(
        "import json, time\n\ndef outer(n):\n    d = {'a': 1} | {'b': 2}\n    del d['a']\n    return inner(n) % 5\n\ndef inner(n):\n    x, y = 1, '%d' % n\n    return {}[y]\n\nprint('before')\nouter(7)\n",
    );
    let failure = run.failure();
    assert_eq!(failure.message, "KeyError: 7");
    assert_eq!(failure.kind, FailureKind::Exception);
    let stack: Vec<(&str, u32, u32)> = failure
        .stack
        .iter()
        .map(|frame| (frame.function.as_str(), frame.position.line, frame.position.column))
        .collect();
    assert_eq!(stack, [("inner", 10, 12), ("outer", 6, 12), ("", 13, 1)]);
    assert_eq!(run.output, "before\n");
}

#[test]
fn line_numbers_stay_correct_after_rewritten_statements() {
    for (script, line) in [
        ("class A(Exception):\n    pass\n\nraise A('x')\n", 4),
        (
            "import asyncio\nasync def m():\n    async with asyncio.Lock() as l:\n        pass\n    1 / 0\nawait m()",
            5,
        ),
        (
            "class E(Exception): pass\ntry:\n    1\nexcept E:\n    pass\nexcept ValueError as e:\n    pass\n[][1]",
            8,
        ),
        ("f = lambda d: d['k']\ntry:\n    f({})\nfinally:\n    y = 1", 1),
        ("try:\n    for a, b in [(1, 2), (3,)]:\n        c = a\nfinally:\n    y = 1", 2),
        ("n = 2\ntry:\n    while 1 / n:\n        n -= 1\nfinally:\n    y = 1", 3),
        ("try:\n    x = await fail(1)\nexcept KeyError as e:\n    y = 1\nfinally:\n    z = 1", 2),
        (
            "import asyncio\nasync def slow():\n    await asyncio.sleep(9)\ntry:\n    await asyncio.wait_for(slow(), 1)\nfinally:\n    y = 1",
            5,
        ),
        (
            "import asyncio\nasync def bad():\n    return [][1]\nt = asyncio.create_task(bad())\ntry:\n    await t\nfinally:\n    y = 1",
            3,
        ),
        ("x = await fail(1)", 1),
        ("import asyncio\n\nawait asyncio.gather(echo(1),\n    fail(2))", 3),
        (
            "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    x: list = field(default_factory=list)\n\nA().y",
            6,
        ),
    ] {
        let run = run(script);
        let failure = run.failure();
        let place = failure.stack.first().map(|frame| frame.position.line);
        assert_eq!(place, Some(line), "{script}\n{failure:?}");
    }
}

#[test]
fn a_tool_that_fails_is_named() {
    let run = run("x = 1\nawait fail(x)");
    let failure = run.failure();
    assert_eq!(failure.message, "ToolError: fail: it broke");
    assert_eq!(failure.stack[0].position, ScriptPosition { line: 2, column: 1 });
    let run = run_one("class Mine(ValueError):\n    pass\nraise Mine('text')");
    assert_eq!(run, "Mine: text");
}

fn run_one(script: &str) -> String {
    run(script).failure().message.clone()
}

#[test]
fn what_would_look_like_a_mistake_of_the_script_is_not_caught() {
    for (script, expected) in [
        ("getattr([], 'append', None)", "not supported: getattr() of append"),
        ("hasattr([], '__odd__')", "not supported: looking for __odd__"),
        ("import re\nre.match('a', 'a').expand('x')", "not supported: expand() of a match"),
        ("import csv\ncsv.Sniffer().sniff('a;b')", "not supported: csv.Sniffer"),
        ("b'a'.decode('cp1252')", "not supported: the encoding cp1252"),
        (
            "import datetime\ndatetime.datetime(2024, 1, 2).timetuple()",
            "not supported: timetuple()",
        ),
    ] {
        let (last, before) = match script.rsplit_once('\n') {
            Some((before, last)) => (last, format!("{before}\n")),
            None => (script, String::new()),
        };
        let caught = format!("{before}try:\n    {last}\nexcept Exception:\n    pass");
        let message = run_one(&caught);
        assert!(message.starts_with(expected), "{script}: {message}");
    }
}

#[test]
fn private_names_do_not_move_positions() {
    for (script, line, column) in [
        ("class A:\n    def f(self):\n        self.__a = 1; [][1]\nA().f()", 3, 23),
        ("class A:\n    def f(self):\n        return self.__b + [][2]\nA().f()", 3, 16),
        ("class A:\n    def f(self):\n        self.__a = 1; del self.__a", 3, 27),
    ] {
        let run = run(script);
        let place = run.failure().stack[0].position;
        assert_eq!((place.line, place.column), (line, column), "{script}: {run:?}");
    }
}

#[test]
fn syntax_errors_have_a_place() {
    for (script, line, column) in [
        ("x = (1,\ny = 2", 2, 3),
        ("def f():\nx = 1", 2, 1),
        ("print('a'\n", 2, 1),
        ("for x in y\n    pass", 1, 11),
        ("a = = b", 1, 5),
    ] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Syntax, "{script}: {failure:?}");
        assert!(failure.message.starts_with("SyntaxError: "), "{}", failure.message);
        assert_eq!(
            failure.stack[0].position,
            ScriptPosition { line, column },
            "{script}: {failure:?}"
        );
    }
}

#[test]
fn missing_features_suggest_an_alternative() {
    for (script, line, hint) in [
        ("\nimport requests", 2, "call a tool"),
        ("import numpy as np", 1, "statistics"),
        ("import subprocess", 1, "call a tool"),
        ("from decimal import Decimal", 1, "cents"),
        ("import threading", 1, "asyncio.gather"),
        ("from zoneinfo import ZoneInfo", 1, "datetime.timezone"),
        ("import not_a_module_at_all", 1, "standard library"),
        ("from math import *", 1, "names that are used"),
        ("x = 1\neval('1')", 2, "json.loads"),
        ("input('?')", 1, "nobody answers"),
        ("open('/etc/passwd')", 1, "use a tool"),
        ("import os\nos.listdir('/')", 2, "use a tool"),
        ("def f():\n    x = yield 1\n    return x", 1, "collect the values in a list"),
        ("class A:\n    def __iter__(self):\n        yield 1", 2, "return iter(values)"),
        ("x = 1\nmatch x:\n    case 1:\n        pass", 2, "if and elif"),
        ("xs = [1]\nxs[0:1] = [2]", 2, "make a new list"),
        ("xs = [1]\ndel xs[:1]", 2, "make a new list"),
        ("async def f(c):\n    async for p in c:\n        pass", 2, "a plain `for`"),
        ("async def f(c):\n    return [p async for p in c]", 2, "a plain `for`"),
        ("import inspect", 1, "leave it out"),
        ("x = 1j", 1, "complex"),
        ("try:\n    pass\nexcept* ValueError:\n    pass", 1, "return_exceptions"),
        ("class A:\n    class B:\n        pass", 2, "class"),
        ("from typing import NamedTuple\nclass P(NamedTuple):\n    x: int", 2, "namedtuple"),
        ("class D(dict):\n    pass", 1, "one @dataclass"),
        ("import json\nclass E(json.JSONEncoder):\n    pass", 2, "one @dataclass"),
        (
            "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): pass",
            4,
            "plain method",
        ),
        ("sorted([1, 2], key=echo)", 1, "list comprehension"),
        ("class A: pass\nA().__dict__", 2, "name the attributes"),
        ("def f():\n    'text'\nf.__doc__", 3, "keep the text"),
        ("import re\nre.compile('a b', re.X)", 2, "without blanks"),
        ("import re\nre.compile('a b', flags=re.I | re.VERBOSE)", 2, "without blanks"),
        ("e = 1\ntry:\n    [][1]\nexcept IndexError as e:\n    pass\ne", 6, "error = e"),
        (
            "def f(e):\n    try:\n        [][1]\n    except IndexError as e:\n        pass\n    return e",
            6,
            "error = e",
        ),
        ("import asyncio\nasyncio.timeout(5)", 2, "wait_for"),
    ] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Unsupported, "{script}: {failure:?}");
        assert_eq!(
            failure.stack.first().map(|frame| frame.position.line),
            Some(line),
            "{failure:?}"
        );
        let told = format!("{} {}", failure.message, failure.hint.as_deref().unwrap_or_default());
        assert!(told.contains(hint), "{script}: {told}");
    }
}

#[test]
fn what_would_be_wrong_is_refused_while_it_runs() {
    for (script, told) in [
        (
            "import asyncio\nasync def f():\n    raise ValueError('x')\ntry:\n    async with asyncio.TaskGroup() as g:\n        g.create_task(f())\nexcept ValueError:\n    print('caught')",
            "asyncio.gather()",
        ),
        ("x = -8\nprint(x ** (1 / 3))", "abs(x)"),
        ("x = -8\nprint(pow(x, 0.5))", "abs(x)"),
        ("print('ß'.capitalize())", "write the text out"),
        ("print('ǆ ß'.title())", "write the text out"),
        ("import re\nprint(re.findall('a*?', 'aa'))", "matches the empty text first"),
        ("import re\nprint(re.sub('a??', '', 'aa'))", "matches the empty text first"),
        ("import re\nprint(re.findall(r'\\s', 'a' + chr(28)))", "name the characters"),
        (
            "import re\np = re.compile(r'\\s')\nprint(p.search('a' + chr(28)))",
            "name the characters",
        ),
    ] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Unsupported, "{script}: {failure:?}");
        let told_is =
            format!("{} {}", failure.message, failure.hint.as_deref().unwrap_or_default());
        assert!(told_is.contains(told), "{script}: {told_is}");
    }
}

#[test]
fn what_would_be_wrong_is_refused() {
    for (script, line, told) in [
        ("n = 0\nprint(any((n := x) > 1 for x in [1, 2, 3]), n)", 2, "a plain loop"),
        ("print(float('nan') in [float('nan')])", 1, "math.isnan"),
        ("import math\nprint(math.nan not in [1.0])", 2, "math.isnan"),
        (
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    pass\nprint(e)",
            5,
            "another variable",
        ),
        ("a = 'x\\x1f'\nprint(a.strip())", 2, "name the characters"),
        ("class A:\n    def __bool__(self): return False", 2, "is_empty()"),
        ("class A:\n    def __len__(self): return 0", 2, "is_empty()"),
        ("class A:\n    def __lt__(self, other): return True", 2, "sort by a key"),
        ("class A:\n    def __new__(cls): return None", 2, "a function that returns the object"),
        ("class A:\n    def __getattr__(self, name): return 1", 2, "a plain name"),
        ("class A: pass\nclass B(A): pass\nclass C(A): pass\nclass D(B, C): pass", 4, "one class"),
        ("from enum import Enum\nclass A(Enum): pass\nclass B(A):\n    X = 1", 3, "one class"),
        ("class A:\n    n = 0\nclass B(A): pass\nA.n += 1", 4, "outside of the class"),
        (
            "class A: pass\nclass B(A):\n    def f(self): return super(A, self).f()",
            3,
            "name the base",
        ),
        ("class A:\n    def f(self): return super().__repr__()", 2, "leave it out"),
        ("x = 1\ndel x", 2, "set the variable to None"),
        ("class A: pass\na = A()\ndel a.x", 3, "in a dictionary"),
        ("import traceback", 1, "print the exception"),
        ("import pprint", 1, "json.dumps"),
        ("from collections import OrderedDict", 1, "keeps its order"),
        ("import html\nhtml.unescape('&copy;')", 2, "text.replace("),
        ("import asyncio\nq = asyncio.Queue()", 2, "with a Semaphore"),
        ("import asyncio\nasyncio.Event()", 2, "what a coroutine returns"),
        ("import asyncio\nfor c in asyncio.as_completed([]):\n    await c", 2, "asyncio.gather()"),
        ("assert 1 == 2, (1, 2)", 1, "one text"),
        ("raise ValueError('a', 1)", 1, "one text"),
        ("try:\n    raise KeyError(5)\nexcept Exception:\n    pass", 2, "str(value)"),
        ("raise ConnectionError('x')", 1, "a class of your own"),
        ("import random\nrandom.seed(1)", 2, "leave it out"),
        ("import re\nre.findall(r'\\d*', 'a1')", 2, "use x+"),
        ("import re\np = re.compile('x*')\np.sub('-', 'abxd')", 3, "use x+"),
        ("'a\\x0cb'.splitlines()", 1, "split("),
        ("import copy\nclass A: pass\ncopy.copy(A())", 3, "a method that makes a new one"),
        ("import io, sys\nsys.stdout = io.StringIO()\nprint(1)", 2, "in a list"),
        (
            "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass P(Protocol): pass",
            2,
            "hasattr()",
        ),
        ("def f(x):\n    print(x)\n    return x\nany(f(x) for x in [1, 2])", 4, "a plain loop"),
        ("def f(x):\n    print(x)\n    return x\nnext(map(f, [1, 2]))", 4, "a plain loop"),
        ("log = []\ndef f(x):\n    log.append(x)\nm = map(f, [1])", 4, "a plain loop"),
        ("m = filter(lambda x: print(x), [1])\nlist(m)", 1, "a plain loop"),
        ("import asyncio\nm = (echo(x) for x in [1])\nawait asyncio.gather(*m)", 2, "a plain loop"),
        ("xs = [1]\ng = (x for x in xs)\nxs.append(2)\nlist(g)", 2, "a plain loop"),
        ("d = {1: 'a', True: 'b'}", 1, "one type"),
        ("d = {1: 'a', 2: 'b', 1.0: 'c'}", 1, "one type"),
        ("try:\n    {}[5]\nexcept KeyError as e:\n    print(e)", 2, "without `as`"),
        ("try:\n    {}[(1, 2)]\nexcept Exception as e:\n    print(e)", 2, "without `as`"),
        (
            "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    x: int = field(repr=False)",
            4,
            "a plain class",
        ),
        (
            "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass A:\n    x: list = field(default_factory=list)",
            2,
            "a plain class",
        ),
        ("try:\n\tawait fail(1)\nexcept Exception as e:\n\tprint(e)", 1, "four blanks"),
    ] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Unsupported, "{script}: {failure:?}");
        let place = failure.stack.first().map(|frame| frame.position.line);
        assert_eq!(place, Some(line), "{script}: {failure:?}");
        let all = format!("{} {}", failure.message, failure.hint.as_deref().unwrap_or_default());
        assert!(all.contains(told), "{script}: {all}");
    }
}

#[test]
fn generators_that_only_compute_work() {
    let run = run(
        "def is_odd(x):\n    return x % 2 == 1\nxs = [1, 2, 3]\ng = (x * 2 for x in xs)\n\
         print(next(g), list(g), any(is_odd(x) for x in xs), next(x for x in xs if is_odd(x)))\n\
         print(sum(map(is_odd, xs)), list(map(print, xs)), sorted(map(str, xs)), ','.join(str(x) for x in xs))\n\
         try:\n    {}[5]\nexcept KeyError:\n    print('key')\ntry:\n    {}['a']\nexcept KeyError as e:\n    print(e, e.args)",
    );
    assert_eq!(
        run.output,
        "2 [4, 6] True 1\n1\n2\n3\n2 [None, None, None] ['1', '2', '3'] 1,2,3\nkey\n'a' ('a',)\n"
    );
}

#[test]
fn a_tool_error_has_the_content_of_the_error() {
    let blocks = "[{'type': 'text', 'text': 'a'}, {'type': 'image', 'data': 'toolgate-media:1'}]";
    let run = run(&format!(
        "blocks = {blocks}\ntry:\n    await fail(content=blocks)\nexcept ToolError as e:\n    \
         print(e.content == blocks, e.tool, e.message)\n    print(e)\ntry:\n    await fail()\n\
         except ToolError as e:\n    print(e.content)\ntry:\n    await fail(content=blocks)\n\
         except Exception:\n    print('caught')\nawait fail(content=blocks)",
    ));
    assert_eq!(
        run.output,
        "True fail it broke\nfail: it broke\n[{'type': 'text', 'text': 'it broke'}]\ncaught\n"
    );
    assert_eq!(run.failure().message, "ToolError: fail: it broke");
}

#[test]
fn a_failure_on_a_result_says_what_the_result_is() {
    let result = "results of tools are data already: the last result of `echo` is";
    for (script, hint) in [
        (
            "r = await echo(items=[1], total=2)\nprint(r['content'][0]['text'])",
            Some(format!("{result} a dict with the keys 'items', 'total'")),
        ),
        (
            "print((await echo(items=[1]))['content'])",
            Some(format!("{result} a dict with the keys 'items'")),
        ),
        (
            "rows = (await echo(x=[{'id': 1}, {'id': 2}]))['x']\nfor row in rows:\n    print(row['name'])",
            Some("the last result of `echo` is a dict with the keys 'x'".to_owned()),
        ),
        (
            "r = await echo('prose')\nr['x']['items']",
            Some("the last result of `echo` is a dict with the keys 'x'".to_owned()),
        ),
        ("r = await echo(a=1)\nd = {}\nd['y']", None),
    ] {
        assert_eq!(run(script).failure().hint, hint, "{script}");
    }
}

#[test]
fn arithmetic_on_hidden_truth_values_gives_a_hint() {
    let run = run("row = {'a': True}\nrow['a'] + 1");
    let hint = run.failure().hint.as_deref();
    assert_eq!(hint, Some("make a number of the truth value: int(flag)"));
}

#[test]
fn errors_of_missing_features_can_be_caught() {
    let run = run(
        "try:\n    import numpy\nexcept ImportError:\n    print('without')\ntry:\n    open('x')\nexcept OSError as e:\n    print(e)",
    );
    assert_eq!(run.output, "without\nopen: a script has no files\n");
}

#[test]
fn a_nonzero_exit_code_is_a_failure() {
    let run = run("import sys\nprint('a')\nsys.exit('no data')");
    assert_eq!(run.failure().message, "SystemExit: no data");
    assert_eq!(run.output, "a\n");
}

#[test]
fn waiting_for_ever_ends_the_script() {
    for script in [
        "import asyncio\nlock = asyncio.Lock()\nawait lock.acquire()\nawait lock.acquire()",
        "import asyncio\ns = asyncio.Semaphore(0)\nawait asyncio.gather(s.acquire(), echo(1))",
    ] {
        let run = run(script);
        assert_eq!(run.failure().kind, FailureKind::Stalled, "{script}: {:?}", run.outcome);
    }
}
