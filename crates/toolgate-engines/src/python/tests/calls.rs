//! Calls of tools: arguments, order, parallelism, the value at the end.

use serde_json::json;

use super::{LIMITS, Order, run, run_with};
use crate::{engine::FailureKind, python::Python};

const BUDGET: &str = r#"import asyncio, json
team = await get_team_members("engineering")
levels = list({m["level"] for m in team})
budgets = dict(zip(levels, await asyncio.gather(*[get_budget_by_level(l) for l in levels])))
expenses = await asyncio.gather(*[get_expenses(m["id"], "Q3") for m in team])
exceeded = [{"name": m["name"], "spent": sum(e["amount"] for e in ex), "limit": budgets[m["level"]]["travel_limit"]} for m, ex in zip(team, expenses) if sum(e["amount"] for e in ex) > budgets[m["level"]]["travel_limit"]]
print(json.dumps(exceeded))
"#;

const EXCEEDED: &str = r#"[{"name": "Person 3", "spent": 5100, "limit": 5000}, {"name": "Person 8", "spent": 9000, "limit": 8000}]"#;

#[test]
fn the_budget_example_runs_as_written() {
    for order in [Order::First, Order::Last] {
        let run = run_with(BUDGET, LIMITS, order);
        assert_eq!(run.output.trim_end(), EXCEEDED, "{:?}", run.outcome);
        assert_eq!(run.outcome, Ok(None));
        assert_eq!(run.calls.len(), 1 + 2 + 20);
        assert_eq!(run.most_open, 20, "calls inside of gather are made at once");
        assert_eq!(run.calls[3].1, json!({"user_id": "u0", "quarter": "Q3"}));
    }
}

#[test]
fn the_budget_example_runs_inside_of_a_function() {
    let body: String =
        BUDGET.lines().skip(1).fold(String::new(), |all, line| all + "    " + line + "\n");
    for end in [
        "await main()",
        "asyncio.run(main())",
        "if __name__ == '__main__':\n    asyncio.run(main())",
    ] {
        let run = run(&format!("import asyncio, json\nasync def main():\n{body}\n{end}\n"));
        assert_eq!(run.output.trim_end(), EXCEEDED, "{end}: {:?}", run.outcome);
        assert_eq!(run.most_open, 20);
    }
}

#[test]
fn arguments_become_one_object() {
    for (call, expected) in [
        ("echo(1)", json!({"x": 1})),
        ("echo(1, 2)", json!({"x": 1, "y": 2})),
        ("echo(y=1)", json!({"y": 1})),
        ("echo(1, y='a')", json!({"x": 1, "y": "a"})),
        ("echo(other=None, x=[1, (2, 3)])", json!({"other": null, "x": [1, [2, 3]]})),
        ("echo(*[1], **{'odd name': True})", json!({"x": 1, "odd name": true})),
        (
            "echo({'a': {1: 2, None: 3, 1.5: 5}})",
            json!({"x": {"a": {"1": 2, "null": 3, "1.5": 5}}}),
        ),
        ("echo({7})", json!({"x": [7]})),
        ("echo(dates.date(2024, 1, 2))", json!({"x": "2024-01-02"})),
    ] {
        let script = format!("import datetime as dates\nr = await {call}\n");
        let run = run(&script);
        assert_eq!(
            run.calls.first().map(|call| &call.1),
            Some(&expected),
            "{call}: {:?}",
            run.outcome
        );
    }
}

#[test]
fn arguments_that_do_not_fit_are_type_errors() {
    for (call, expected) in [
        (
            "echo(1, 2, 3)",
            "TypeError: echo() takes from 0 to 2 positional arguments but 3 were given",
        ),
        ("fail(1, 2)", "TypeError: fail() takes 1 positional argument but 2 were given"),
        ("silent(1)", "TypeError: silent() takes 0 positional arguments but 1 was given"),
        ("echo(1, x=2)", "TypeError: echo() got multiple values for argument 'x'"),
        (
            "echo(float('nan'))",
            "TypeError: echo() argument 'x': Out of range float values are not JSON compliant",
        ),
        (
            "echo(b'a')",
            "TypeError: echo() argument 'x': Object of type bytes is not JSON serializable",
        ),
        (
            "echo(len)",
            "TypeError: echo() argument 'x': Object of type function is not JSON serializable",
        ),
        (
            "echo({(1, 2): 3})",
            "TypeError: echo() argument 'x': keys must be str, int, float, bool or None, not tuple",
        ),
        (
            "echo(echo(1))",
            "TypeError: echo() argument 'x': a coroutine was never awaited: write `await` before the call that makes it",
        ),
    ] {
        let run = run(&format!("await {call}"));
        assert_eq!(run.failure().message, expected);
        assert_eq!(run.failure().kind, FailureKind::Exception);
    }
    let caught =
        run("try:\n    await echo(1, 2, 3)\nexcept TypeError as e:\n    print('caught', e)");
    assert!(caught.output.starts_with("caught echo() takes"), "{:?}", caught.outcome);
}

#[test]
fn one_dictionary_has_all_arguments_unless_the_first_parameter_may_be_one() {
    for (script, expected) in [
        ("await silent({'a': 1})", json!({"a": 1})),
        ("args = {'user_id': 1}\nawait get_expenses(args)", json!({"user_id": 1})),
        (
            "await get_expenses({'user_id': 1}, 'Q3')",
            json!({"user_id": {"user_id": 1}, "quarter": "Q3"}),
        ),
        ("await get_expenses({}, quarter='Q3')", json!({"user_id": {}, "quarter": "Q3"})),
        ("await echo({'a': 1})", json!({"x": {"a": 1}})),
    ] {
        assert_eq!(run(script).calls[0].1, expected, "{script}");
    }
}

#[test]
fn a_call_that_is_not_awaited_says_so() {
    for script in ["x = echo(1)\nprint(x['x'])", "for a in echo(1): pass", "echo(1).get('x')"] {
        let run = run(script);
        let failure = run.failure();
        assert_eq!(failure.kind, FailureKind::Exception, "{failure:?}");
        assert_eq!(
            failure.hint.as_deref(),
            Some("the call was not awaited: write `await` before it"),
            "{script}: {}",
            failure.message
        );
    }
    let run = run("async def main():\n    return 1\nmain()");
    assert!(run.failure().hint.as_ref().is_some_and(|hint| hint.contains("await")));
}

#[test]
fn a_call_that_is_never_awaited_is_reported() {
    let run = run("echo(1)\necho(2)\nprint('end')");
    assert_eq!(run.calls.len(), 2);
    assert_eq!(run.errors, "RuntimeWarning: 2 call(s) were made and never awaited: echo\n");
}

#[test]
fn a_call_that_wait_for_gave_up_counts_as_awaited() {
    let run = run(
        "import asyncio\ntry:\n    await asyncio.wait_for(silent(), 0.01)\nexcept asyncio.TimeoutError:\n    print('late')",
    );
    assert_eq!((run.output.as_str(), run.errors.as_str()), ("late\n", ""));
    assert_eq!(run.calls.len(), 1);
}

#[test]
fn members_of_enumerations_are_their_values() {
    let run = run(
        "from enum import Enum\nclass Level(str, Enum):\n    LOW = 'low'\nclass Size(Enum):\n    BIG = 3\nr = await echo({'a': Level.LOW, Level.LOW: [Size.BIG]})\n[r['x'], Size.BIG]",
    );
    assert_eq!(run.value(), serde_json::json!([{"a": "low", "low": [3]}, 3]));
}

#[test]
fn calls_are_made_when_they_are_written() {
    let run = run("a = echo(1)\nb = echo(2)\nprint('made')\nprint((await b)['x'], (await a)['x'])");
    assert_eq!(run.output, "made\n2 1\n");
    assert_eq!(run.most_open, 2);
}

#[test]
fn the_value_is_the_last_expression() {
    for (script, expected) in [
        ("1 + 1", json!(2)),
        ("x = 5\nx", json!(5)),
        ("await echo(3)", json!({"x": 3})),
        ("return {'a': (1, 2)}", json!({"a": [1, 2]})),
        ("import asyncio\nasync def main():\n    return [1]\nasyncio.run(main())", json!([1])),
        ("{'s': {4}, 'n': float('nan'), 'b': b'ab'}", json!({"s": [4], "n": "NaN", "b": "ab"})),
        (
            "import datetime\n[datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc), datetime.timedelta(minutes=1), datetime.time(1, 2)]",
            json!(["2024-01-02", "2024-01-02T03:04:05.000006+00:00", 60.0, "01:02:00"]),
        ),
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n[P(1)]",
            json!([{"x": 1}]),
        ),
        (
            "from collections import namedtuple\nnamedtuple('P', 'x y')(1, 2)",
            json!({"x": 1, "y": 2}),
        ),
        ("from collections import Counter\nCounter('aab')", json!({"a": 2, "b": 1})),
        (
            "[ValueError('x'), len, {(1, 2): 3}]",
            json!(["ValueError('x')", "<built-in function len>", {"(1, 2)": 3}]),
        ),
    ] {
        let run = run(script);
        assert_eq!(run.outcome, Ok(Some(expected)), "{script}");
    }
    for script in
        ["", "x = 1", "None", "print('a')", "import sys\nsys.exit(0)", "exit()", "# nothing"]
    {
        assert_eq!(run(script).outcome, Ok(None), "{script}");
    }
}

#[test]
fn output_and_errors_are_apart() {
    let run = run(
        "import sys, logging\nprint('a', end='')\nprint('b', file=sys.stderr)\nsys.stderr.write('c\\n')\nlogging.warning('d')\nprint('e')",
    );
    assert_eq!((run.output.as_str(), run.errors.as_str()), ("ae\n", "b\nc\nWARNING:root:d\n"));
}

#[test]
fn completions_in_any_order_reach_their_callers() {
    let script = "import asyncio\nasync def f(i):\n    a = await echo(i)\n    b = await echo(a['x'] * 2)\n    return b['x']\nawait asyncio.gather(*[f(i) for i in range(50)])";
    for order in [Order::First, Order::Last] {
        let run = run_with(script, LIMITS, order);
        assert_eq!(run.value(), (0..50).map(|i| i * 2).collect::<serde_json::Value>());
    }
}

#[test]
fn a_prepared_interpreter_does_the_same() {
    let script = "import asyncio, statistics, json\nclass Odd(Exception): pass\nasync def f(i):\n    if i == 1: raise Odd('odd')\n    return (await echo(i))['x']\nr = await asyncio.gather(*[asyncio.create_task(f(i)) for i in range(3)], return_exceptions=True)\nprint([type(x).__name__ for x in r], statistics.mean([1, 2]), '%d' % 5)\nx = {}['k']";
    let plain = run(script);
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let prepared = thread
        .spawn(move || super::run_on(Python::prepared(), script, LIMITS, Order::First))
        .expect("a thread starts")
        .join()
        .expect("an engine never panics");
    assert_eq!(plain.output, "['int', 'Odd', 'int'] 1.5 5\n", "{:?}", plain.outcome);
    assert_eq!(prepared.output, plain.output);
    assert_eq!(prepared.outcome, plain.outcome);
    assert_eq!(plain.failure().stack[0].position.line, 8);
}

#[test]
fn a_lost_pipe_to_the_host_ends_the_script() {
    let run = run("try:\n    await silent()\nexcept BaseException:\n    print('caught')");
    assert_eq!(run.failure().kind, FailureKind::Abandoned);
    assert_eq!(run.output, "");
}

#[test]
fn a_call_reports_the_place_that_made_it() {
    let (first, second) = (Some(0), Some(1));
    for (source, expected) in [
        ("await _place_1(1)\nawait _place_0(x=1)\nawait echo(1)", vec![second, first, None]),
        ("for n in range(2):\n    await _place_0(n)", vec![first; 2]),
        (
            "import asyncio\nawait asyncio.gather(*[_place_0   (n) for n in range(2)], echo(1))",
            vec![first, first, None],
        ),
        ("f = echo\nawait f(1)\nprint(f'{await _place_1(2)}')", vec![None, second]),
        ("async def f(t):\n    return await t(1)\nawait f(echo)", vec![None]),
    ] {
        assert_eq!(run(source).places, expected, "{source}");
    }
    let run = run("await _place_0(1, 2, 3)");
    assert!(run.failure().message.contains("echo() takes from 0 to 2"), "{:?}", run.failure());
}
