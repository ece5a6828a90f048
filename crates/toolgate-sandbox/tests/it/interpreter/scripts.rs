//! What a script sees of toolgate.

use std::sync::{Arc, atomic::Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    CallState, FailureKind, Language, LimitReached, PythonChoice, PythonEngine, PythonSettings,
    RunLimits, RunOutcome, RunReport, ScriptFailure,
};

use super::{interpreter, pool, run_python, with};
use crate::{
    processes::{below, kill, until, workers_of},
    support::{TestTools, assert_unharmed, ending, limits, python, run, text_of, value_of},
};

fn failure(report: &RunReport) -> &ScriptFailure {
    let RunOutcome::Failed(failure) = &report.outcome else { panic!("{:?}", report.outcome) };
    failure
}

#[tokio::test]
async fn tools_are_asynchronous_functions() {
    let pool = pool();
    let cases = [
        ("await echo(a=1)", json!({"a": 1})),
        ("r = await echo(a=1)\nr['a']", json!(1)),
        (
            "import asyncio\n[r['n'] for r in await asyncio.gather(*(echo(n=i) for i in range(3)))]",
            json!([0, 1, 2]),
        ),
        ("import asyncio\nt = asyncio.create_task(echo(n=1))\n(await t)['n']", json!(1)),
        (
            "import asyncio\nasync with asyncio.TaskGroup() as g:\n    a = g.create_task(echo(n=1))\na.result()",
            json!({"n": 1}),
        ),
        ("import asyncio\nawait asyncio.wait_for(echo(n=1), 60)", json!({"n": 1})),
        (
            "import asyncio\nasync with asyncio.timeout(60):\n    r = await echo(n=1)\nr",
            json!({"n": 1}),
        ),
        ("import asyncio\n[(await c)['n'] for c in asyncio.as_completed([echo(n=1)])]", json!([1])),
        (
            "import asyncio\nasync def main():\n    return await echo(n=2)\nasyncio.run(main())",
            json!({"n": 2}),
        ),
        (
            "async def main():\n    return await echo(n=3)\nx = await echo(n=1)\nasyncio.run(main())",
            json!({"n": 3}),
        ),
        ("import asyncio\nasyncio.run(echo(n=4))", json!({"n": 4})),
        (
            "async def main():\n    return 5\nif __name__ == '__main__':\n    x = asyncio.run(main())\nx",
            json!(5),
        ),
        (
            "from __future__ import annotations\nimport dataclasses, pickle, sys, typing\n@dataclasses.dataclass\nclass A:\n    k: typing.ClassVar[int] = 1\n    x: A | None = None\nsetattr(sys.modules[__name__], 'y', 4)\n['A' in globals(), str(A()), str(pickle.loads(pickle.dumps(A()))), len(typing.get_type_hints(A)), y]",
            json!([true, "A(x=None)", "A(x=None)", 2, 4]),
        ),
        (
            "import inspect\nother = 'no' + 'pe'\nasync def own(): pass\ndef plain(): pass\n[f(t) for f in (inspect.iscoroutinefunction, asyncio.iscoroutinefunction) for t in (echo, tools['echo'], tools[other], own, plain)]",
            json!([true, true, true, true, false, true, true, true, true, false]),
        ),
        (
            "import inspect\nasync def call(fn, **kw):\n    return await fn(**kw) if inspect.iscoroutinefunction(fn) else fn(**kw)\nawait call(echo, a=1)",
            json!({"a": 1}),
        ),
        (
            "try:\n    name = input('name? ')\nexcept EOFError:\n    name = 'nobody'\nname",
            json!("nobody"),
        ),
        ("await tools['echo'](a=1)", json!({"a": 1})),
        ("name = 'ec' + 'ho'\nawait tools[name](a=1)", json!({"a": 1})),
        ("await tools.echo(a=2)", json!({"a": 2})),
        // One dict has all arguments.
        ("await tools['echo']({'a': 1})", json!({"a": 1})),
        ("name = 'ec' + 'ho'\nawait tools[name]({'a': 1})", json!({"a": 1})),
        ("await tools.echo({'a': {'b': 2}})", json!({"a": {"b": 2}})),
        ("\u{feff}await echo(a=1)", json!({"a": 1})),
        (
            "import asyncio\nasync def main():\n    return await echo(n=2)\n\
             loop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\n\
             asyncio.get_event_loop().run_until_complete(main())",
            json!({"n": 2}),
        ),
        ("await globals()['echo'](a=3)", json!({"a": 3})),
        (
            "import inspect\n[inspect.iscoroutine(c := echo()), (await c), asyncio.iscoroutinefunction(echo), echo.__name__]",
            json!([true, {}, true, "echo"]),
        ),
        ("for i in range(3):\n    if i == 2:\n        return i", json!(2)),
        ("def f():\n    return 1\nreturn [f(), (await echo(a=f()))]", json!([1, {"a": 1}])),
        (
            "import asyncio\n[await asyncio.to_thread(lambda: 1), await asyncio.get_running_loop().run_in_executor(None, len, 'ab')]",
            json!([1, 2]),
        ),
    ];
    for (code, expected) in cases {
        let report = run_python(&pool, code).await;
        assert_eq!(ending(&report), format!("value: {expected}"), "{code}");
        assert_eq!(text_of(&report), "", "{code}");
    }
}

#[tokio::test]
async fn waiting_for_other_threads_ends_with_its_time_or_at_once() {
    let pool = pool();
    for (code, expected) in [
        (
            "import queue\ntry:\n    queue.Queue().get(timeout=0.1)\nexcept queue.Empty:\n    x = 'empty'\nx",
            "value: \"empty\"",
        ),
        (
            "import queue\ntry:\n    queue.SimpleQueue().get(timeout=0.1)\nexcept queue.Empty:\n    x = 'empty'\nx",
            "value: \"empty\"",
        ),
        ("import threading\nthreading.Semaphore(0).acquire(timeout=0.1)", "value: false"),
        ("import threading\nthreading.Event().wait(0.1)", "value: false"),
        ("import threading\ne = threading.Event()\ne.set()\ne.wait()", "value: true"),
        ("import queue\nq = queue.Queue()\nq.put(1)\nq.get()", "value: 1"),
        (
            "import threading\nthreading.Event().wait()",
            "stopped: the script waits for something that can no longer happen",
        ),
        (
            "import queue\nqueue.Queue().get()",
            "stopped: the script waits for something that can no longer happen",
        ),
    ] {
        let report = run_python(&pool, code).await;
        assert_eq!(ending(&report), expected, "{code}");
    }
}

#[tokio::test]
async fn a_failed_call_is_a_tool_error_by_name() {
    let pool = pool();
    let code = "try:\n    await fail(a=1)\nexcept ToolError as e:\n    caught = e\n\
                [str(caught), caught.tool, caught.message, caught.content, type(caught).__name__, isinstance(caught, RuntimeError)]";
    let expected = json!([
        "fail: it is broken", "fail", "it is broken",
        [{"type": "text", "text": "it is broken"}], "ToolError", true
    ]);
    assert_eq!(value_of(&run_python(&pool, code).await), expected);
    let blocks = "[{'type': 'text', 'text': 'a'}, {'type': 'image', 'data': 'h'}]";
    let code = format!(
        "blocks = {blocks}\ntry:\n    await fail(content=blocks)\nexcept ToolError as e:\n    caught = e\n\
         [caught.content == blocks, caught.message]"
    );
    let report = run_python(&pool, &code).await;
    assert_eq!(value_of(&report), json!([true, "it is broken"]));
    let report = run_python(&pool, "x = 1\nawait fail()").await;
    assert_eq!(failure(&report).message, "ToolError: fail: it is broken");
    assert_eq!(failure(&report).stack[0].position.line, 2);
}

#[tokio::test]
async fn results_that_are_data_need_no_parsing_and_say_what_they_are() {
    let pool = pool();
    let report = run_python(&pool, "import json\njson.loads(await echo(a=[1]))['a']").await;
    assert_eq!(value_of(&report), json!([1]));
    let cases = [
        (
            "r = await echo(items=[1], total=2)\nr.content[0].text",
            "results of tools are data already: `r` is a dict with the keys 'items', 'total'",
        ),
        (
            "r = await echo(items=[1])\nr['content'][0]['text']",
            "results of tools are data already: `r` is a dict with the keys 'items'",
        ),
        (
            "r = await echo(items=[{'id': 1}])\nprint(r['items'][0]['name'])",
            "`r['items'][0]` is a dict with the keys 'id'",
        ),
        (
            "r = await echo(items=[1, 2])\nr['items']['x']",
            "`r['items']` is a list of 2, the first is the number 1",
        ),
        (
            "(await echo(items=[1], total=2))['content'][0]",
            "results of tools are data already: the last result of `echo` is a dict with the keys 'items', 'total'",
        ),
        (
            "n = 1\nx = (await tools.echo(items=[n])).rows",
            "the last result of `echo` is a dict with the keys 'items'",
        ),
        (
            "r = await echo(items=[1])\nr.items[0]",
            "`r.items` is a method of the dict `r`: write `r[\"items\"]`",
        ),
        (
            "r = await echo(a={'b': 1})\nprint(len(r['a'].values))",
            "`r['a'].values` is a method of the dict `r['a']`: a dict with the keys 'b'",
        ),
        ("c = echo(a=1)\nx = [c]\nx[0]['a']", "the call was not awaited: write `await` before it"),
    ];
    for (code, hint) in cases {
        let report = run_python(&pool, code).await;
        assert_eq!(failure(&report).hint.as_deref(), Some(hint), "{code}");
    }
}

#[tokio::test]
async fn errors_have_their_place_and_a_hint() {
    let pool = pool();
    let report = run_python(
        &pool,
        "import asyncio\nasync def f(x):\n    with open_nothing():\n        pass\n\
         class open_nothing:\n    def __enter__(self): return self\n    def __exit__(self, *a): return False\n\
         async def g():\n    try:\n        await f(1)\n        größe = {'ä': 1}; größe['ö']\n    finally:\n        x = 1\n\
         await g()",
    )
    .await;
    let found = failure(&report);
    assert_eq!((found.kind, found.message.as_str()), (FailureKind::Exception, "KeyError: 'ö'"));
    let frames: Vec<_> = found
        .stack
        .iter()
        .map(|frame| (frame.function.as_str(), frame.position.line, frame.position.column))
        .collect();
    assert_eq!(frames, [("g", 11, 27), ("", 14, 1)]);
    let cases = [
        ("import pandas", "rejected: there is no module `pandas`"),
        ("open('x')", "rejected: a script has no files"),
        (
            "x = 1\nimport os\nos.listdir('.')",
            "failed: PermissionError: [Errno 13] Permission denied: '.'",
        ),
        (
            "import asyncio\nasync with asyncio.TaskGroup() as g:\n    g.create_task(fail())",
            "failed: ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  ToolError: fail: it is broken",
        ),
        ("f'{1'", "rejected: "),
        ("type('x', (), {})", "value: \"<class '__main__.x'>\""),
        (
            "async def f(): return 1\nx = [f()]\nx",
            "failed: the script's value has no JSON: a coroutine was never awaited",
        ),
        (
            "await echo(a=float('nan'))",
            "failed: TypeError: echo() argument 'a': Out of range float values are not JSON compliant",
        ),
        (
            "f = [echo][0]\nawait f({'a': 1}, 2)",
            "failed: TypeError: echo() takes 0 positional arguments but 2 were given",
        ),
        ("import sys\nsys.exit(2)", "failed: SystemExit: 2"),
    ];
    for (code, expected) in cases {
        let report = run_python(&pool, code).await;
        assert!(ending(&report).starts_with(expected), "{code}: {}", ending(&report));
    }
}

#[tokio::test]
async fn the_process_of_a_script_is_nobodys() {
    let pool = pool();
    let code = "import os\nt = os.times()\n\
                [os.getpid(), os.getppid(), os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), os.getpgrp(), \
                t.user == t.elapsed, t.system]";
    let expected = json!([1, 0, 65534, 65534, 65534, [], 1, true, 0.0]);
    assert_eq!(value_of(&run_python(&pool, code).await), expected);
}

#[tokio::test]
async fn values_become_json() {
    let pool = pool();
    let code = "import datetime, decimal, uuid, dataclasses, enum, collections, fractions, pathlib\n\
                @dataclasses.dataclass\nclass P:\n    x: int\n\
                class E(enum.Enum):\n    A = 1\n\
                class Plain:\n    def __init__(self): self.a, self._b = 1, [2]\n\
                N = collections.namedtuple('N', 'q w')\n\
                [datetime.date(2024, 1, 2), datetime.timedelta(hours=1), decimal.Decimal('1.50'), P(1), E.A, N(1, 2), {3}, b'ab', \
                float('nan'), (1,), {datetime.date(2024, 1, 1): 1, (1, 2): 3, E.A: 4}, uuid.UUID(int=1), range(3), Plain(), 3 + 4j, \
                ValueError('x'), 10**30, pathlib.PurePath('a/b'), fractions.Fraction(1, 3), iter([1]), {'a': 1}.keys(), '\\ud800', None]";
    let expected = json!([
        "2024-01-02", 3600.0, 1.5, {"x": 1}, 1, {"q": 1, "w": 2}, [3], "ab", "NaN", [1],
        {"2024-01-01": 1, "(1, 2)": 3, "1": 4}, "00000000-0000-0000-0000-000000000001", [0, 1, 2],
        {"a": 1, "_b": [2]}, "(3+4j)", "ValueError('x')", 1e30, "a/b", "1/3", [1], ["a"], "\u{fffd}", null
    ]);
    let value = value_of(&run_python(&pool, code).await);
    for (value, expected) in value.as_array().unwrap().iter().zip(expected.as_array().unwrap()) {
        assert_eq!(value, expected);
    }
    // What a tool gets must be what the script means.
    let code = "import datetime, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: set\n\
                await echo(a=P({1}), d=datetime.date(2024, 1, 2), t=(1, 2))";
    let expected = json!({"a": {"x": [1]}, "d": "2024-01-02", "t": [1, 2]});
    assert_eq!(value_of(&run_python(&pool, code).await), expected);
}

#[tokio::test]
async fn calls_say_where_they_were_made() {
    let pool = pool();
    interpreter(&pool).await;
    let tools = TestTools::new();
    let code = "a = await echo(n=1)\nf = echo\nb = await f(n=a['n'])\nprint(f\"{await echo(n=2)=}\")\nawait echo(n=b)";
    let report = pool.run(python(code), &limits(), tools.clone(), CancellationToken::new()).await;
    assert_eq!(ending(&report), "value: {\"n\":{\"n\":1}}");
    // The text of the third is shown, so it keeps its name.
    assert_eq!(text_of(&report), "await echo(n=2)={'n': 2}\n");
    assert_eq!(*tools.places.lock(), [Some(0), None, None, Some(1)]);
    let flows = tools.flows.lock();
    assert!(flows[0].calls.len() >= 4 && !flows[0].flows.is_empty(), "{flows:?}");
}

#[tokio::test]
async fn what_is_not_awaited_is_said() {
    let pool = pool();
    let report = run_python(&pool, "x = [echo(a=1), echo(a=2)]\n1").await;
    assert_eq!(text_of(&report), "RuntimeWarning: 2 call(s) were made and never awaited: echo\n");
    // They do not depend on when the script ends.
    let report = run_python(&pool, "x = [echo(a=n) for n in range(40)]\n1").await;
    let completed = report.calls.iter().filter(|call| call.state == CallState::Completed);
    assert_eq!(completed.count(), 40, "{:?}", report.calls);
    let code = "import asyncio\nasync def f():\n    raise ValueError('lost')\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)\n1";
    let report = run_python(&pool, code).await;
    assert_eq!(text_of(&report), "Task exception was never retrieved: ValueError: lost\n");
}

#[tokio::test]
async fn coroutines_that_are_not_awaited_are_counted() {
    let pool = pool();
    let code = "async def load(n):\n    return n\nx = [load(n) for n in range(5)]\ndel x\nfor n in range(3):\n    y = load(n)\ndel y\n1";
    let report = run_python(&pool, code).await;
    let expected = "RuntimeWarning: 8 coroutine(s) were never awaited and did not run: load\n";
    assert_eq!(text_of(&report), expected);
}

#[tokio::test]
async fn a_lock_that_nothing_can_release_is_an_error() {
    let pool = pool();
    let never = "failed: RuntimeError: this lock is acquired already and can never be released: a script has one thread";
    for code in [
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import threading\nlock = threading.Lock()\nwith lock:\n    with lock:\n        pass",
        "import _thread\nlock = _thread.allocate_lock()\nlock.acquire()\nlock.acquire()",
        "import threading\nlock = threading.Lock()\nasync def f():\n    with lock:\n        await asyncio.sleep(0)\nawait asyncio.gather(f(), f())",
    ] {
        let report = run_python(&pool, code).await;
        assert!(ending(&report).starts_with(never), "{code}: {}", ending(&report));
        assert_eq!(failure(&report).hint, None, "{code}");
    }
    let code = "import threading, queue, time\nlock = threading.Lock()\nbefore = time.monotonic()\n\
        a = [lock.acquire(), lock.acquire(False), lock.acquire(timeout=0.5), lock.locked()]\n\
        lock.release()\nwith lock: pass\nwith threading.RLock() as r, threading.Condition(), threading.Semaphore(): pass\n\
        q = queue.Queue()\nq.put(1)\nthreading.Event().set()\n\
        a + [lock.locked(), q.get(), time.monotonic() - before >= 0.5, str(lock)[:13]]";
    let report = run_python(&pool, code).await;
    assert_eq!(ending(&report), "value: [true,false,false,true,false,1,true,\"<unlocked _th\"]");
}

#[tokio::test]
async fn what_a_script_cannot_start_says_what_to_use_instead() {
    let pool = pool();
    for (call, said) in [
        ("os.system('id')", "os.system(): a script has no other processes: call a tool instead"),
        ("os.popen('id')", "os.popen(): a script has no other processes"),
        ("os.fork()", "os.fork(): a script has no other processes"),
        ("os.execv('/bin/id', ['id'])", "os.execv(): a script has no other processes"),
        ("os.posix_spawn('/bin/id', ['id'], {})", "os.posix_spawn(): a script has no other"),
        ("subprocess.run(['id'])", "subprocess: a script has no other processes"),
        ("subprocess.check_output('id', shell=True)", "subprocess: a script has no other"),
        ("subprocess.getoutput('id')", "subprocess: a script has no other processes"),
        ("signal.alarm(1)", "signal.alarm(): a script gets no signals: use asyncio.timeout()"),
        ("signal.setitimer(signal.ITIMER_REAL, 1)", "signal.setitimer(): a script gets no signals"),
        ("signal.pause()", "signal.pause(): a script gets no signals"),
    ] {
        let code = format!("import os, signal, subprocess\n{call}");
        let report = run_python(&pool, &code).await;
        let expected = format!("failed: PermissionError: [Errno 13] {said}");
        assert!(ending(&report).starts_with(&expected), "{call}: {}", ending(&report));
        assert_eq!(failure(&report).hint, None, "{call}");
    }
}

#[tokio::test]
async fn help_writes_documentation() {
    let pool = pool();
    for (code, said) in [
        ("help(len)", "Help on built-in function len in module builtins:\n\nlen("),
        ("help(str.split)", "Help on method_descriptor"),
        ("help('json.dumps')", "Help on function dumps in json:"),
        ("def f(a, b=2):\n    'What f does.'\nhelp(f)", "Help on function f in"),
        ("help('nothing.at.all')", "No Python documentation found for 'nothing.at.all'."),
        ("help(echo)", "echo()\n    A tool. `await get_tool_details([\"echo\"], \"python\")`"),
    ] {
        let report = run_python(&pool, code).await;
        assert_eq!(ending(&report), "done", "{code}: {}", text_of(&report));
        assert!(text_of(&report).starts_with(said), "{code}: {}", text_of(&report));
    }
    let report = run_python(&pool, "help()").await;
    assert!(ending(&report).starts_with("failed: TypeError: help() takes what it is about"));
}

/// The number of megabytes that a script can hold.
#[tokio::test]
async fn the_limit_of_memory_counts_what_a_script_holds() {
    let pool = pool();
    interpreter(&pool).await;
    for (limit, make) in [
        (128, "bytes(1 << 20)"),
        (128, "'a' * (1 << 20)"),
        (128, "list(range(10**6 + i, 10**6 + i + 26000))"),
        (64, "bytes(1 << 20)"),
        (512, "bytes(1 << 20)"),
    ] {
        let code = format!(
            "held = []\ntry:\n    for i in range(10**6): held.append({make})\nexcept MemoryError:\n    count = len(held)\n    held = None\ncount"
        );
        let few = RunLimits { memory_bytes: limit << 20, ..limits() };
        let report = run(&pool, python(&code), &few).await;
        let held = value_of(&report).as_u64().unwrap();
        let (least, most) = (limit * 9 / 10, limit + 12);
        assert!((least..=most).contains(&held), "{make}: {held} MB of {limit}");
    }
}

#[tokio::test]
async fn output_keeps_its_order_and_is_not_lost() {
    let pool = pool();
    let code = "import sys\nprint('a', end='')\nsys.stderr.write('b\\n')\nprint('c')\nsys.stdout.buffer.write(b'd\\n')\nprint('\\ud800é')";
    let report = run_python(&pool, code).await;
    assert_eq!(text_of(&report), "b\nac\nd\n\\ud800é\n");
    let report = run_python(&pool, "import sys\nprint('a')\nsys.stdout.close()\n'END'").await;
    assert_eq!((text_of(&report).as_str(), value_of(&report)), ("a\n", json!("END")));
    // It has nothing left to send when it is stopped.
    let few = RunLimits { cpu: std::time::Duration::from_millis(300), ..limits() };
    for code in ["print('before')\nsum(range(10**12))", "print('before')\nwhile True: pass"] {
        let report = run(&pool, python(code), &few).await;
        assert!(
            matches!(report.outcome, RunOutcome::Stopped(LimitReached::Cpu { .. })),
            "{:?}",
            report.outcome
        );
        assert_eq!(text_of(&report), "before\n", "{code}");
    }
}

#[tokio::test]
async fn every_module_that_the_check_allows_is_there() {
    let pool = pool();
    // The list of the check is that of `cpython/names.rs`.
    let names = include_str!("../../../src/cpython/names.rs");
    let list = names.split_once("MODULES").unwrap().1.split_once("= &[").unwrap().1;
    let list: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    assert!(list.len() > 150, "{list:?}");
    let code = format!(
        "import importlib\nmissing = []\nfor name in {list:?}:\n    try:\n        importlib.import_module(name)\n    \
         except Exception as error:\n        missing.append(f'{{name}}: {{error}}')\nmissing"
    );
    assert_eq!(value_of(&run_python(&pool, &code).await), json!([]));
}

#[tokio::test]
async fn a_worker_that_is_killed_and_a_zygote_that_is_killed_are_replaced() {
    let pool = Arc::new(pool());
    interpreter(&pool).await;
    let before = below(std::process::id());
    let tools = TestTools::new();
    let (its_pool, its_tools) = (Arc::clone(&pool), tools.clone());
    let waiting = tokio::spawn(async move {
        its_pool.run(python("await never()"), &limits(), its_tools, CancellationToken::new()).await
    });
    until(|| tools.calls.load(Ordering::Relaxed) == 1).await;
    // Those of both zygotes; the one that runs the script among them.
    for worker in workers_of(std::process::id()).into_keys() {
        kill(worker);
    }
    let ending = ending(&waiting.await.unwrap());
    assert!(ending.starts_with("crashed: the worker was ended by SIGKILL"), "{ending}");
    assert_unharmed(&pool).await;
    for process in before.keys().filter(|process| below(std::process::id()).contains_key(process)) {
        kill(*process);
    }
    assert_unharmed(&pool).await;
    drop(pool);
    until(|| below(std::process::id()).is_empty()).await;
}

#[tokio::test]
async fn an_interpreter_that_cannot_run_scripts_is_named() {
    let named = |name: &str| PythonSettings {
        choice: PythonChoice::Named(name.into()),
        packages: Vec::new(),
    };
    let pool = with(named("/no/such/python"));
    let report = run(&pool, python("1"), &limits()).await;
    assert!(
        ending(&report).starts_with("crashed: the Python of codeMode.python cannot run scripts: `/no/such/python` cannot be started"),
        "{}", ending(&report)
    );
    // The other language does not need it.
    let typescript = run(&pool, crate::support::typescript("return 1"), &limits()).await;
    assert_eq!(ending(&typescript), "value: 1");
    let pool = with(named("python3"));
    assert!(matches!(pool.python().await, PythonEngine::Machine(_)));
}

/// A virtual environment with a package in it, which has a part that its import leaves out.
async fn environment(folder: &std::path::Path) -> std::path::PathBuf {
    let made = tokio::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(folder.join("environment"))
        .status()
        .await
        .unwrap();
    assert!(made.success());
    let library = folder.join("environment/lib");
    let library = std::fs::read_dir(library).unwrap().next().unwrap().unwrap().path();
    let package = library.join("site-packages/apples");
    std::fs::create_dir_all(package.join("tests")).unwrap();
    std::fs::write(package.join("__init__.py"), "import os\nCOUNT = len(os.listdir('/'))\n")
        .unwrap();
    std::fs::write(package.join("pears.py"), "def weigh(): return 1 / 0\n").unwrap();
    let broken = library.join("site-packages/plums.py");
    std::fs::write(broken, "raise ValueError('no stones')\n").unwrap();
    folder.join("environment")
}

#[tokio::test]
async fn packages_of_a_virtual_environment_are_there_if_they_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(folder.path()).await;
    let settings = |packages: &[&str]| PythonSettings {
        choice: PythonChoice::Named(environment.clone()),
        packages: packages.iter().copied().map(str::to_owned).collect(),
    };
    let pool = with(settings(&["apples", "no_such_package", "plums"]));
    let found = interpreter(&pool).await;
    assert!(found.program.starts_with(&environment), "{found:?}");
    assert_eq!(found.packages[0].version.as_deref(), Some(""), "{found:?}");
    assert_eq!(found.packages[1].version, None, "{found:?}");
    // It was imported when there were files, and its other part comes when the script asks.
    let code = "import apples, apples.pears\n[apples.COUNT > 0, apples.pears.__name__]";
    let report = run(&pool, python(code), &limits()).await;
    assert_eq!(ending(&report), "value: [true,\"apples.pears\"]");
    let report = run(&pool, python("import apples.pears as p\np.weigh()"), &limits()).await;
    assert_eq!(failure(&report).stack[0].position.line, 2, "the line of the script");
    let report = run(&pool, python("import no_such_package"), &limits()).await;
    let rejected = "rejected: there is no module `no_such_package`";
    assert!(ending(&report).starts_with(rejected), "{}", ending(&report));
    // One that cannot be imported says why, to the script and to a person.
    let report = run(&pool, python("import plums"), &limits()).await;
    let why = "`plums` could not be loaded: ValueError: no stones";
    assert_eq!(failure(&report).message, format!("ImportError: {why}"));
    let lockdown = pool.probe(Language::Python).await.unwrap();
    assert_eq!(lockdown.packages["plums"], "ValueError: no stones");
    let pool = with(settings(&[]));
    let report = run(&pool, python("import apples"), &limits()).await;
    assert!(
        ending(&report).starts_with("rejected: there is no module `apples`"),
        "{}",
        ending(&report)
    );
}

/// Version managers install several versions beside each other. Each of them runs scripts.
#[tokio::test]
async fn other_versions_of_python_run_scripts_too() {
    let first = interpreter(&pool()).await.program.canonicalize().unwrap();
    let installed = first.ancestors().nth(3).and_then(|folder| std::fs::read_dir(folder).ok());
    let programs =
        installed.into_iter().flatten().flatten().map(|it| it.path().join("bin/python3"));
    for program in std::iter::once(first.clone()).chain(programs) {
        let is_new = "import sys; sys.exit(sys.version_info < (3, 11))";
        let asked = tokio::process::Command::new(&program).args(["-c", is_new]).status().await;
        if !asked.is_ok_and(|status| status.success()) {
            continue;
        }
        let choice = PythonChoice::Named(program.clone());
        let pool = with(PythonSettings { choice, packages: Vec::new() });
        let code = "import inspect\nname = 'ec' + 'ho'\n\
                    r = await asyncio.gather(echo(a=1), tools[name](a=2))\n\
                    [r, inspect.iscoroutinefunction(echo), inspect.iscoroutinefunction(tools[name])]";
        let report = run_python(&pool, code).await;
        assert_eq!(ending(&report), r#"value: [[{"a":1},{"a":2}],true,true]"#, "{program:?}");
    }
}
