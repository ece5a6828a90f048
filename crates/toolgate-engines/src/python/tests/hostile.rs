//! Scripts that want too much.

use super::{LIMITS, MEMORY, Order, run, run_with};
use crate::engine::{EngineLimits, FailureKind};

#[test]
fn recursion_ends_with_the_stack() {
    for script in [
        "def f(n):\n    return f(n + 1)\nf(0)",
        "class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())",
        "def f(x):\n    return sorted([1], key=f)\nf(1)",
        "async def f():\n    await f()\nawait f()",
        "x, y = [], []\nfor i in range(100000):\n    x, y = [x], [y]\nx == y",
        "f = lambda: f()\nf()",
    ] {
        let run = run(script);
        assert_eq!(run.failure().kind, FailureKind::Stack, "{script}: {:?}", run.outcome);
        assert!(run.failure().stack.len() <= 32);
    }
    let caught =
        run("def f():\n    f()\ntry:\n    f()\nexcept RecursionError:\n    print('caught')");
    assert_eq!(caught.output, "caught\n");
}

#[test]
fn memory_bombs_are_refused() {
    for script in [
        "[0] * 10**9",
        "'a' * 10**10",
        "b'a' * 10**10",
        "(1, 2) * 10**9",
        "s = 'a'\nwhile True:\n    s = s + s",
        "'x'.ljust(10**10)",
        "2 ** (10**10)",
        "1 << 10**11",
        "f'{1:10000000000}'",
    ] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Memory, "{script}: {failure:?}");
    }
    let run = run("try:\n    [0] * 10**9\nexcept BaseException:\n    print('caught')");
    assert_eq!(run.failure().kind, FailureKind::Memory, "it cannot be caught");
}

#[test]
fn memory_that_grows_is_noticed() {
    let _alone = MEMORY.write();
    let limits = EngineLimits { memory_bytes: 12 << 20, ..LIMITS };
    for script in [
        "xs = []\nwhile True:\n    xs.append('x' * 1000 + str(len(xs)))",
        "d = {}\nn = 0\nwhile True:\n    d[n] = [n]\n    n += 1",
        "import asyncio\nasync def f():\n    await asyncio.gather(f(), f())\nawait f()",
        "a = []\nwhile True:\n    a = [a, a]",
    ] {
        let run = run_with(script, limits, Order::First);
        let kind = run.failure().kind;
        assert_eq!(kind, FailureKind::Memory, "{script}: {:?}", run.outcome);
    }
}

#[test]
fn texts_that_are_nested_deeply_are_refused() {
    let n = 5_000;
    for script in [
        format!("x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("x = {}1", "1+".repeat(n)),
        format!("x = a{}", ".b".repeat(n)),
        format!("x = a{}", "()".repeat(n)),
        format!("x = {}1", "not ".repeat(n)),
        format!("x = {}1", "-".repeat(n)),
        format!("def f():\n    return {}1", "1+".repeat(n)),
        format!("x = {}1", "lambda: ".repeat(n)),
        (0..500).map(|d| " ".repeat(d) + "if x:\n").collect::<String>(),
    ] {
        let run = run(&script);
        assert_eq!(run.failure().kind, FailureKind::Syntax, "{:?}", run.failure());
    }
    let run = run(&"x = 1\n".repeat(50_000));
    assert_eq!(run.failure().kind, FailureKind::Syntax);
}

#[test]
fn values_that_are_nested_deeply_are_refused() {
    let deep = "x = []\nfor i in range(100000):\n    x = [x]\n";
    let run_value = run(&format!("{deep}x"));
    assert!(run_value.failure().message.contains("nested more than"), "{:?}", run_value.failure());
    let run_argument = run(&format!("{deep}await echo(x)"));
    assert!(run_argument.failure().message.contains("nested more than"));
    let run_result = run("await deep(100000)");
    assert!(
        run_result.failure().message.starts_with("ToolError: deep: "),
        "{:?}",
        run_result.failure()
    );
    let fine = run("x = await deep(150)\nn = 0\nwhile x:\n    x = x[0]\n    n += 1\nn");
    assert_eq!(fine.value(), 149);
    let circle = run("a = []\na.append(a)\na");
    assert!(circle.failure().message.contains("Circular"));
}

#[test]
fn scripts_may_use_internal_names_of_the_engine() {
    for script in [
        "_tg_host_settle(5)",
        "_tg_host_nonsense(1)",
        "_tg_host_timer('x')",
        "_tg_host_digest('sha256', 'text')",
        "_tg_host_write(1, 2)",
        "_tg_check = None\nawait echo(1)",
        "import asyncio\n_tg_asyncio = 5\nasyncio.create_task(echo(1))",
        "raise RuntimeError('\\x00999\\x00A\\x00b')",
        "class E(Exception): pass\ntry:\n    raise ValueError('\\x00999\\x00')\nexcept E:\n    pass",
        "_tg_host_sleep(float('nan'))",
    ] {
        let _ = run(script);
    }
}

#[test]
fn many_calls_at_once_work() {
    let run = run("import asyncio\nlen(await asyncio.gather(*[echo(i) for i in range(3000)]))");
    assert_eq!(run.value(), 3000);
    assert_eq!(run.most_open, 3000);
}
