//! Python.

use serde_json::json;

use super::fixture::{Fake, run};
use crate::check::{Language, check};

fn cases(cases: &[(&str, &[&str])]) {
    run(Language::Python, cases);
}

const BUDGET: &str = r#"import asyncio, json
team = await get_team_members("engineering")
levels = list({m["level"] for m in team})
budgets = dict(zip(levels, await asyncio.gather(*[get_budget_by_level(l) for l in levels])))
expenses = await asyncio.gather(*[get_expenses(m["id"], "Q3") for m in team])
exceeded = [{"name": m["name"], "spent": sum(e["amount"] for e in ex), "limit": budgets[m["level"]]["travel_limit"]} for m, ex in zip(team, expenses) if sum(e["amount"] for e in ex) > budgets[m["level"]]["travel_limit"]]
print(json.dumps(exceeded))
"#;

#[test]
fn correct_scripts_have_no_findings() {
    let fine: &[&str] = &[
        BUDGET,
        "issues = await github_list_issues('a', 'b')\nlen(issues)",
        "issues = await github_list_issues(owner='a', repo='b', state='open', labels=['x'], page=2)\nissues",
        "issues = await github_list_issues('a', repo='b')\nissues",
        "issues = await github_list_issues({'owner': 'a', 'repo': 'b'})\nissues",
        "args = {'owner': 'a', 'repo': 'b'}\nissues = await github_list_issues(args)\nissues",
        "import asyncio\nasync def main():\n    return await notes_list()\nasyncio.run(main())",
        "async def main():\n    return await notes_list()\nawait main()",
        "args = {'owner': 'a', 'repo': 'b'}\nawait github_list_issues(**args)",
        "args = ['a', 'b']\nawait github_list_issues(*args)",
        "import asyncio\ntasks = [notes_list(limit=i) for i in range(3)]\nawait asyncio.gather(*tasks)",
        "import asyncio\ntasks = []\nfor i in range(3):\n    tasks.append(notes_list(limit=i))\nawait asyncio.gather(*tasks)",
        "import asyncio\nt = asyncio.create_task(notes_list())\nawait t",
        "import asyncio\nr = await asyncio.wait_for(notes_list(), timeout=3)\nr",
        "import asyncio\na, b = await asyncio.gather(notes_list(), notes_list(3))\na",
        "p = notes_list()\nr = await p\nr",
        "async def f(x):\n    return await x\nawait f(notes_list())",
        "def f():\n    return notes_list()\nawait f()",
        "x = lambda q: get_team_members(q)\nawait x('a')",
        "def notes_list(a, b, c):\n    return 1\nnotes_list(1, 2, 3)",
        "from collections import Counter\nCounter([1])",
        "import datetime as dt\ndt.datetime.now()",
        "for i, x in enumerate([1]):\n    print(i, x)",
        "with_x = {k: v for k, v in [(1, 2)]}\nprint(with_x)",
        "try:\n    await notes_clear()\nexcept Exception as e:\n    print(e)",
        "match 1:\n    case int() as n:\n        print(n)\n    case {'a': a, **rest}:\n        print(a, rest)",
        "if (n := 3) > 2:\n    print(n)",
        "[y for x in [1] if (y := x)]\nprint(y)",
        "total = 0\ndef add():\n    global total, later\n    total += 1\n    later = 2\nadd()\nprint(later)",
        "class Client:\n    name = 'x'\n    async def notes_list(self):\n        return await notes_list(limit=1)\nc = Client()\nawait c.notes_list()",
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None",
        "from collections import *\nx = Counter()",
        "await get_budget_by_level({'a': 1})",
        "await shop_buy(lines=[{'sku': 'a', 'count': 1}], payment={'kind': 'cash'}, meta={'a': 1.5})",
        "await shop_buy(lines=[*[], {'sku': 'a', 'count': 1}])",
        "await github_create_issue('x', body=None)",
        "page = None\nawait github_list_issues('a', 'b', page=page)",
        "await github_list_issues('a', 'b', page=int('3'))",
        "x: list[Undefined] = []\nprint(x)",
        "def f(a: Undefined = 1) -> Other:\n    return a\nf()",
        "print(__name__)",
        "r = await search_tools('files', limit=3)\nprint(r)",
        "exec('q = 1')\nprint(q)",
        "```python\nawait notes_clear()\n```",
        "p = notes_list()\nif p is not None:\n    await p",
        "return await notes_list()",
        "x = [await notes_list(limit=i) for i in range(2)]\nprint(x)",
        "async def g():\n    async for x in y():\n        print(x)\nasync def y():\n    yield 1\nawait g()",
        "results = {}\nresults['a'] = notes_list()\nawait results['a']",
        "del_me = 1\ndel del_me",
        "text = \"\"\"\n```json\n{}\n```\n\"\"\"\nprint(text)",
        "Here it is:\n```python\nawait notes_clear()\n```\nThat's it.",
        "notes_list = lambda: 1\nnotes_list = notes_list()\nprint(notes_list)",
        "def f():\n    x = notes_list()\n    return x\nnotes_list2 = await f()\nprint(notes_list2)",
        "from datetime import *\nprint(datetime.now())",
    ];
    let cases_of: Vec<(&str, &[&str])> =
        fine.iter().map(|source| (*source, [].as_slice())).collect();
    cases(&cases_of);
}

#[test]
fn syntax() {
    cases(&[
        ("x = ", &["1 syntax error: Expected an expression"]),
        (
            "if True:\nprint(1)",
            &["2 syntax error: Expected an indented block after `if` statement"],
        ),
        ("await notes_list(", &["1 syntax error: unexpected EOF while parsing"]),
        ("f(a=1, a=2)", &["1 syntax error: Duplicate keyword argument \"a\""]),
        (
            "const x = 1;",
            &["1 syntax error: Simple statements must be separated by newlines or semicolons"],
        ),
    ]);
}

#[test]
fn tools_that_do_not_exist() {
    cases(&[
        ("await github_list_isues('a')", &["1 there is no tool `github_list_isues`"]),
        ("\nawait github.list_issues('a')", &["2 there is no `github`"]),
        ("await tools_.notes_list()", &["1 there is no `tools_`"]),
        ("def f():\n    return nope()\nf()", &["2 there is no tool `nope`"]),
        ("issues = []\nprint(isues)", &["2 `isues` is not defined"]),
        ("print(nothing_at_all)", &["1 `nothing_at_all` is not defined"]),
        ("[x for x in [1]]\nprint(x)", &["2 `x` is not defined"]),
        ("x = null", &["1 there is no `null`"]),
        ("await notes_list(limit=1) if true else None", &["1 there is no `true`"]),
        ("console.log(1)", &["1 there is no `console`"]),
        ("open('x').read()", &["1 a script has no files"]),
        ("print(json.dumps({}))", &["1 `json` is not imported"]),
        ("import requests\nrequests.get('x')", &["1 there is no module `requests`"]),
        ("import json, os", &["1 there is no module `os`"]),
        ("from subprocess import run", &["1 there is no module `subprocess`"]),
        ("from . import x", &["1 there are no modules beside the script"]),
        ("from tools import notes_list\nawait notes_list()", &["1 there is no module `tools`"]),
        ("import pandas as pd", &["1 there is no module `pandas`"]),
        (
            "class A:\n    nope_x = 1\n    def f(self):\n        return nope_x\nA().f()",
            &["4 `nope_x` is not defined"],
        ),
    ]);
}

#[test]
fn arguments_that_do_not_fit() {
    cases(&[
        ("await github_list_issues()", &["1 `github_list_issues` needs `owner` and `repo`"]),
        ("await github_list_issues('a')", &["1 `github_list_issues` needs `repo`"]),
        (
            "await github_list_issues({'owner': 'a', 'page': 'x'})",
            &["1 `github_list_issues` needs `repo`", "1 `page` takes an integer, not a string"],
        ),
        ("await notes_list(1, 2)", &["1 `notes_list` takes 1 arguments, and this is number 2"]),
        ("await notes_clear(1)", &["1 `notes_clear` takes 0 arguments, and this is number 1"]),
        ("await github_list_issues('a', 'b', owner='c')", &["1 `owner` is given twice"]),
        (
            "await github_list_issues('a', 'b', per_page=1)",
            &["1 `github_list_issues` has no parameter `per_page`"],
        ),
        (
            "await github_list_issues('a', repos='b')",
            &["1 `github_list_issues` has no parameter `repos`"],
        ),
        ("await github_list_issues('a', 1)", &["1 `repo` takes a string, not a number"]),
        (
            "await github_list_issues('a', 'b', page='2')",
            &["1 `page` takes an integer, not a string"],
        ),
        (
            "await github_list_issues('a', 'b', page=f'{1}')",
            &["1 `page` takes an integer, not a string"],
        ),
        ("await github_list_issues('a', 'b', page=1.5)", &["1 `page` takes an integer, not 1.5"]),
        ("await github_list_issues('a', 'b', page=-1)", &["1 `page` takes at least 1"]),
        (
            "await github_list_issues('a', 'b', page=True)",
            &["1 `page` takes an integer, not a boolean"],
        ),
        (
            "await github_list_issues('a', 'b', state='opened')",
            &["1 `state` is one of `\"open\"`, `\"closed\"`, `\"all\"`"],
        ),
        (
            "await github_list_issues('a', 'b', 'opened')",
            &["1 `state` is one of `\"open\"`, `\"closed\"`, `\"all\"`"],
        ),
        (
            "await github_list_issues('a', 'b', labels='x')",
            &["1 `labels` takes a list, not a string"],
        ),
        (
            "await github_list_issues('a', 'b', labels=['x', 1])",
            &["1 `labels[1]` takes a string, not a number"],
        ),
        (
            "await github_list_issues('a', 'b', labels=('x', 1))",
            &["1 `labels[1]` takes a string, not a number"],
        ),
        ("await github_list_issues('a', 'b', labels={})", &["1 `labels` takes a list, not a dict"]),
        (
            "await github_list_issues('a', 'b', archived='yes')",
            &["1 `archived` takes a boolean, not a string"],
        ),
        ("await github_create_issue('')", &["1 `title` takes at least 1 character"]),
        (
            "await github_create_issue(titel='x')",
            &["1 `github_create_issue` has no parameter `titel`"],
        ),
        (
            "await github_create_issue('x', label=['y'])",
            &["1 `github_create_issue` has no parameter `label`"],
        ),
        (
            "await github_create_issue('x', body=3)",
            &["1 `body` takes a string or None, not a number"],
        ),
        ("await shop_buy([])", &["1 `lines` takes at least 1 item"]),
        (
            "await shop_buy(\n    lines=[\n        {'sku': 'a', 'count': 'two'},\n        {'sku': None, 'count': 1},\n    ],\n)",
            &[
                "3 `lines[0].count` takes an integer, not a string",
                "4 `lines[1].sku` takes a string, not None",
            ],
        ),
        (
            "await shop_buy(lines=[{'sku': 'a', 'count': 1}], meta={'a': 'x'})",
            &["1 `meta.a` takes a number, not a string"],
        ),
        (
            "rest = len\nawait github_list_issues(**rest(), page='x')",
            &["2 `page` takes an integer, not a string"],
        ),
        ("await github_list_issues(owner=1, **len())", &["1 `owner` takes a string, not a number"]),
    ]);
}

#[test]
fn coroutines_that_are_not_awaited() {
    let dropped: &[&str] = &["1 the call of `notes_list` is never awaited"];
    let taken: &[&str] = &["1 this is the coroutine of `notes_list`, not its result"];
    cases(&[
        ("notes_list()", dropped),
        ("True and notes_list()", dropped),
        ("p = notes_list()", dropped),
        (
            "import asyncio\nasyncio.gather(notes_list())",
            &["2 the call of `asyncio.gather` is never awaited"],
        ),
        (
            "import asyncio\nfor x in asyncio.gather(notes_list()):\n    print(x)",
            &["2 this is the coroutine of `asyncio.gather`, not its result"],
        ),
        (
            "import asyncio\na, b = asyncio.gather(notes_list(), notes_list())",
            &["2 this is the coroutine of `asyncio.gather`, not its result"],
        ),
        ("import asyncio\nasyncio.sleep(1)", &["2 the call of `asyncio.sleep` is never awaited"]),
        (
            "async def main():\n    await notes_list()\nmain()",
            &["3 the call of `main` is never awaited"],
        ),
        ("def f():\n    notes_list()\nf()", &["2 the call of `notes_list` is never awaited"]),
        ("print(notes_list()['items'])", taken),
        ("notes_list().items", taken),
        ("for x in notes_list():\n    print(x)", taken),
        ("len(notes_list())", taken),
        ("print(notes_list())", taken),
        (
            "import json\njson.dumps(notes_list())",
            &["2 this is the coroutine of `notes_list`, not its result"],
        ),
        ("f'{notes_list()}'", taken),
        ("[x for x in notes_list()]", taken),
        ("[*notes_list()]", taken),
        ("a, b = notes_list()", taken),
        ("1 + notes_list()", taken),
        ("if notes_list():\n    pass", taken),
        ("await github_create_issue(title=notes_list())", taken),
        ("x = 1\nx += notes_list()", &["2 this is the coroutine of `notes_list`, not its result"]),
        (
            "p = notes_list()\nfor x in p:\n    print(x)",
            &["2 `p` is the coroutine of `notes_list`, not its result"],
        ),
        (
            "p = notes_list()\nprint(p['a'])",
            &["2 `p` is the coroutine of `notes_list`, not its result"],
        ),
        (
            "async def f():\n    p = notes_list()\n    return len(p)\nawait f()",
            &["3 `p` is the coroutine of `notes_list`, not its result"],
        ),
    ]);
}

#[test]
fn the_check_returns_the_tools_and_their_parameters() {
    let mut fake = Fake::new();
    let source = "x = list(map(get_expenses, [1]))\nawait notes_list()\nprint(x)";
    let checked = fake.check(Language::Python, source);
    let names: Vec<_> = checked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get_expenses", "notes_list"]);
    assert_eq!(checked.tools[0].parameters, ["user_id", "quarter"]);
    assert_eq!(fake.asked, [["get_expenses", "notes_list"]]);
    assert_eq!(checked.source, source.replace("notes_list()", "_0        ()"));
}

#[test]
fn variables_that_hide_a_tool() {
    let hides: &[&str] = &["1 the variable `notes_list` hides the tool of that name"];
    cases(&[
        ("notes_list = await notes_list()\nprint(notes_list)", hides),
        ("notes_list = [await notes_list(limit=i) for i in range(2)]\nprint(notes_list)", hides),
        ("notes_list: list = (await notes_list())['items']\nprint(notes_list)", hides),
        (
            "async def f():\n    notes_list = await notes_list()\n    return notes_list\nawait f()",
            &["2 the variable `notes_list` hides the tool of that name"],
        ),
        ("own = own()", &[]),
    ]);
}

#[test]
fn hints_say_what_to_write() {
    for (source, expected) in [
        ("print(datetime.now())", "write `from datetime import datetime`"),
        ("print(datetime.datetime.now())", "write `import datetime`"),
        ("print(timedelta(days=1))", "write `from datetime import timedelta`"),
        ("await tools['notes_list']()", "`await call_tool(name, arguments)`"),
        ("await getattr(tools, 'notes_list')()", "`await call_tool(name, arguments)`"),
        ("await tools.notes_list()", "the tool is a function: write `notes_list(…)`"),
        ("import decimal", "integers of cents"),
        ("from zoneinfo import ZoneInfo", "`timezone(timedelta(hours=2))`"),
        ("import inspect", "get_tool_details"),
        ("import numpy as np", "plain lists and dicts"),
        (
            "import heapq",
            "there are `json`, `re`, `datetime`, `math`, `asyncio` and `collections`; tools are",
        ),
    ] {
        let checked = Fake::new().check(Language::Python, source);
        let hint = checked.findings[0].hint.as_deref().unwrap_or_default();
        assert!(hint.contains(expected), "{source}\n{:?}", checked.findings);
    }
}

#[test]
fn functions_of_the_host_are_awaited() {
    let schema = json!({"properties": {"block": {"type": "object"}}, "required": ["block"]});
    let mut fake = Fake::with("show", schema);
    let right = fake.check(Language::Python, "await show({'type': 'text', 'text': 'x'})");
    assert!(right.findings.is_empty(), "{:?}", right.findings);
    let dropped = fake.check(Language::Python, "show({'type': 'text', 'text': 'x'})");
    assert_eq!(dropped.findings[0].hint.as_deref(), Some("write `await show(…)`"));
}

/// What one language refuses, the other refuses too.
#[test]
fn unknown_arguments_are_refused_as_in_typescript() {
    use serde_json::Value;
    let closed = json!({"type": "object", "properties": {"limit": {"type": "integer"}}, "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
    let none = json!({"type": "object", "additionalProperties": false});
    let found = |schema: &Value, language: Language, source: &str| -> Vec<String> {
        let checked = Fake::with("tool", schema.clone()).check(language, source);
        checked.findings.iter().map(|it| format!("{:?} {}", it.severity, it.message)).collect()
    };
    for schema in [&closed, &open, &none] {
        for (python, typescript) in [
            ("await tool(limit=1, foo=2)", "await tool({ limit: 1, foo: 2 });"),
            ("await tool(limit=1, limits=2)", "await tool({ limit: 1, limits: 2 });"),
            ("await tool(foo=2)", "await tool({ foo: 2 });"),
            ("await tool(limt=2)", "await tool({ limt: 2 });"),
            (
                "x = await tool(limit=1, foo=None)\nprint(x)",
                "const x = await tool({ limit: 1, foo: null }); console.log(x);",
            ),
            (
                "a = len()\nx = await tool(**a, foo=2)\nprint(x)",
                "const a: any = { limit: 1 }; const x = await tool({ ...a, foo: 2 }); console.log(x);",
            ),
        ] {
            let expected: Vec<String> = found(schema, Language::TypeScript, typescript)
                .into_iter()
                .filter(|it| !it.contains("not returned"))
                .collect();
            assert_eq!(found(schema, Language::Python, python), expected, "{schema}\n{python}");
        }
    }
    for schema in [&closed, &open] {
        let refused = found(schema, Language::Python, "await tool(limit=1, foo=2)");
        assert_eq!(refused, ["Error `tool` has no parameter `foo`"], "{schema}");
    }
    let of_python = [
        "await tool({'limit': 1, 'foo': 2})",
        "await tool(**{'limit': 1, 'foo': 2})",
        "await tool(limit=1, **{'foo': 2})",
        "a = {'limit': 1, 'foo': 2}\nawait tool(**a)",
        "a = {'limit': 1, 'foo': 2}\nawait tool(a)",
        "a = {'foo': 2}\nawait tool(**{'limit': 1, **a})",
    ];
    let of_typescript = [
        "const a = { limit: 1, foo: 2 }; await tool({ ...a });",
        "const a = { limit: 1, foo: 2 }; await tool(a);",
        "const a = { limit: 1, foo: 2 } as const; await tool({ ...a });",
        "const a = { foo: 2 }; const b = { limit: 1, ...a }; await tool({ ...b });",
        "await tool({ limit: 1, ...{ foo: 2 } });",
    ];
    let all = of_python.map(|it| (Language::Python, it)).into_iter();
    for (language, source) in all.chain(of_typescript.map(|it| (Language::TypeScript, it))) {
        let refused = found(&open, language, source);
        assert_eq!(refused, ["Error `tool` has no parameter `foo`"], "{source}");
    }
    // What is used elsewhere as well may have more for another purpose.
    for dynamic in [
        "await tool(**dict(foo=2))",
        "a = {'limit': 1, 'foo': 2}\nprint(a['foo'], await tool(**a))",
        "a = {'limit': 1, 'foo': 2}\ndel a['foo']\nawait tool(**a)",
        "a = {'limit': 1, 'foo': 2}\na = {}\nawait tool(**a)",
        "def f(a={'foo': 2}):\n    return tool(**a)\nawait f()",
    ] {
        assert_eq!(found(&open, Language::Python, dynamic), [""; 0], "{dynamic}");
    }
    for dynamic in [
        "const a = { limit: 1, foo: 2 }; console.log(a.foo, await tool(a));",
        "const a: any = { limit: 1, foo: 2 }; delete a.foo; await tool(a);",
        "let a = { limit: 1, foo: 2 }; a = { limit: 1 } as any; await tool(a);",
        "for (const a of [{ limit: 1, foo: 2 }]) await tool(a);",
    ] {
        assert_eq!(found(&open, Language::TypeScript, dynamic), [""; 0], "{dynamic}");
    }
}

#[test]
fn a_none_that_no_tool_takes_is_left_out() {
    use serde_json::json;
    let schema = json!({"type": "object", "properties": {
        "status": {"enum": ["open", "paid"]}, "limit": {"type": "integer"},
        "after": {"type": ["string", "null"]}, "any": {}, "of": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }});
    let found = |source: &str| -> Vec<(String, Option<String>)> {
        let checked = Fake::with("tool", schema.clone()).check(Language::Python, source);
        checked.findings.into_iter().map(|it| (it.message, it.hint)).collect()
    };
    let out = Some("leave it out".to_owned());
    let refused = |message: &str| vec![(message.to_owned(), out.clone())];
    assert_eq!(
        found("await tool(status=None)"),
        refused("`status` is one of `\"open\"`, `\"paid\"`")
    );
    assert_eq!(found("await tool(limit=None)"), refused("`limit` takes an integer, not None"));
    for taken in [
        "await tool(after=None, any=None, of=None)",
        "async def f(status=None):\n    return await tool(status=status)\nawait f()",
        "x = None\nawait tool(limit=x)",
    ] {
        assert!(found(taken).is_empty(), "{taken}: {:?}", found(taken));
    }
}

#[test]
fn of_several_forms_the_one_with_most_of_the_keys_is_meant() {
    use serde_json::json;
    let form = json!({"type": "object", "required": ["field", "op", "value"], "properties": {
        "field": {"type": "string"}, "op": {"enum": ["eq", "lt"]}, "value": {},
    }});
    let other =
        json!({"type": "object", "required": ["or"], "properties": {"or": {"type": "array"}}});
    for forms in [[form.clone(), other.clone()], [other, form]] {
        let schema = json!({"type": "object", "properties": {
            "filters": {"type": "array", "items": {"anyOf": forms}},
        }});
        let source = "await tool(filters=[{'field': 'a', 'op': 'gt', 'value': 1}])";
        let checked = Fake::with("tool", schema).check(Language::Python, source);
        let messages: Vec<&str> = checked.findings.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(messages, ["`filters[0].op` is one of `\"eq\"`, `\"lt\"`"]);
    }
}

/// The interpreter that has all of the language, and the object with all tools.
fn found_by_whole(schema: &serde_json::Value, source: &str) -> Vec<String> {
    let mut fake = Fake::with("zoo_get_order", schema.clone());
    let globals = ["tools", "len", "range"];
    let checked = check(Language::Python, source, &globals, &[], &mut fake);
    let hint = |hint: &Option<String>| hint.clone().unwrap_or_default();
    checked.findings.iter().map(|it| format!("{}: {}", it.message, hint(&it.hint))).collect()
}

fn order() -> serde_json::Value {
    json!({"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["id"], "additionalProperties": false})
}

#[test]
fn what_never_runs_or_is_handled_is_not_refused() {
    for source in [
        "if False:\n    await zoo_get_order(id='x')",
        "if False:\n    print(never_defined)",
        "def unused():\n    return zoo_get_order(id='x')\nprint(1)",
        "async def unused():\n    return await nope_tool(never_defined)\nprint(1)",
        "class Unused:\n    async def get(self):\n        return await nope_tool()\nprint(1)",
        "if not True:\n    print(never_defined)\nelse:\n    pass",
        "if True:\n    pass\nelse:\n    print(never_defined)",
        "while 0:\n    await zoo_get_order()",
        "x = nope_tool() if False else 1\nprint(x)",
        "print(False and never_defined)",
        "def f():\n    return 1\n    print(never_defined)\nprint(f())",
        "try:\n    print(WindowsError)\nexcept NameError:\n    print('no')",
        "try:\n    print(WindowsError)\nexcept (NameError, OSError):\n    print('no')",
        "try:\n    f = open('cache.json')\nexcept FileNotFoundError:\n    f = None",
        "try:\n    f = open('cache.json')\nexcept (OSError, ValueError):\n    f = None",
        "try:\n    f = open('cache.json')\nexcept PermissionError:\n    f = None",
        "try:\n    f = open('cache.json')\nexcept Exception:\n    f = None",
        "try:\n    name = input('name? ')\nexcept EOFError:\n    name = 'nobody'",
        "try:\n    name = input('name? ')\nexcept Exception:\n    name = 'nobody'",
        "import builtins\nbuiltins.foo = 3\nprint(foo)",
    ] {
        assert_eq!(found_by_whole(&order(), source), [""; 0], "{source}");
    }
    for source in [
        "if True:\n    await zoo_get_order(id='x')",
        "try:\n    print(1)\nexcept NameError:\n    print(never_defined)",
        "f = open('cache.json')",
        "name = input('name? ')",
        "try:\n    name = input('name? ')\nexcept ValueError:\n    name = 'nobody'",
        "try:\n    f = open('cache.json')\nexcept ValueError:\n    f = None",
        "try:\n    def f():\n        return never_defined\nexcept NameError:\n    pass",
    ] {
        assert!(!found_by_whole(&order(), source).is_empty(), "{source}");
    }
}

#[test]
fn constants_are_checked() {
    for source in [
        "args = {'ident': 5}\nprint(await zoo_get_order(**args))",
        "args = {'id': 'x'}\nprint(await zoo_get_order(**args))",
        "print(await zoo_get_order(**{'id': 'x'}))",
        "print(await zoo_get_order(id=None))",
        "number = '5'\nprint(await zoo_get_order(id=number))",
        "LIMIT = '5'\nasync def f():\n    return await zoo_get_order(id=LIMIT)\nprint(await f())",
    ] {
        assert!(!found_by_whole(&order(), source).is_empty(), "{source}");
    }
    for source in [
        "args = {'id': 5}\nprint(await zoo_get_order(**args))",
        "args = {}\nargs['id'] = 5\nprint(await zoo_get_order(**args))",
        "args = {}\nargs.update(id=5)\nprint(await zoo_get_order(**args))",
        "args = {'id': 'x'}\ndef fix(it):\n    it['id'] = 5\nfix(args)\nprint(await zoo_get_order(**args))",
        "note = None\nprint(await zoo_get_order(id=1, note=note))",
        "number = '5'\nnumber = int(number)\nprint(await zoo_get_order(id=number))",
        "number = '5'\nif isinstance(number, int):\n    print(await zoo_get_order(id=number))",
        "number = 'x'\ndef f(number):\n    return zoo_get_order(id=number)\nprint(await f(5))",
        "def f():\n    number = 'x'\n    def g():\n        nonlocal number\n        number = 5\n    g()\n    return zoo_get_order(id=number)\nprint(await f())",
        "number = 'x'\ndef f():\n    global number\n    number = 5\nf()\nprint(await zoo_get_order(id=number))",
        "for number in [1, 2]:\n    print(await zoo_get_order(id=number))",
        "number = '1'\nglobals()['number'] = 5\nprint(await zoo_get_order(id=number))",
    ] {
        assert_eq!(found_by_whole(&order(), source), [""; 0], "{source}");
    }
}

#[test]
fn tools_by_computed_names_take_one_dictionary() {
    for source in [
        "print(await tools['zoo_get_order']({'id': 5}))",
        "print(await tools.zoo_get_order({'id': 5}))",
        "print(await globals()['zoo_get_order']({'id': 5}))",
        "args = {'id': 5}\nprint(await tools['zoo_get_order'](args))",
    ] {
        assert_eq!(found_by_whole(&order(), source), [""; 0], "{source}");
    }
    let wrong = found_by_whole(&order(), "print(await tools['zoo_get_order']({'id': 'x'}))");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}

#[test]
fn advice_is_python() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["user-id", "class"],
        "properties": {"user-id": {"type": "integer"}, "class": {"type": "string"}, "n": {"type": "integer"}}});
    let many = found_by_whole(&schema, "print(await zoo_get_order(1, 'a', 2, 3))");
    let expected = "write `zoo_get_order(n=…, **{\"user-id\": …, \"class\": …})`";
    assert!(many[0].ends_with(expected), "{many:?}");
    let missing = found_by_whole(&schema, "print(await zoo_get_order())");
    let expected = "call it as `zoo_get_order(n=…, **{\"user-id\": …, \"class\": …})`";
    assert!(missing[0].ends_with(expected), "{missing:?}");
    let meant = found_by_whole(&schema, "print(await zoo_get_order(user_id=5, **{'class': 'x'}))");
    assert!(meant[0].ends_with("did you mean `**{\"user-id\": …}`?"), "{meant:?}");
    let class = "class A:\n    x = [1]\n    y = [x for _ in range(3)]\nprint(A)";
    let hint = found_by_whole(&schema, class);
    assert_eq!(hint.len(), 1);
    assert!(!hint[0].contains("did you mean"), "{hint:?}");
}

#[test]
fn an_indentation_error_is_no_typescript() {
    let hint = found_by_whole(&order(), "print(1)\n  print(2)");
    assert!(!hint[0].contains("TypeScript"), "{hint:?}");
    let other = found_by_whole(&order(), "const x = await zoo_get_order({ id: 5 });");
    assert!(other[0].contains("it reads as TypeScript"), "{other:?}");
}

/// The source that runs.
fn source(script: &str) -> String {
    let checked = Fake::new().check(Language::Python, script);
    assert!(!checked.has_errors(), "{script}\n{:#?}", checked.findings);
    checked.source
}

#[test]
fn a_script_that_only_defines_a_function_calls_it() {
    for (script, call) in [
        ("async def main():\n    return 1", "await main()"),
        ("def main():\n    return 1", "main()"),
        (
            "\"\"\"Doc.\"\"\"\nimport re\nX = re.compile('a')\nasync def main() -> int:\n    return 1\n",
            "await main()",
        ),
        (
            "N: int = 1\nclass A: pass\ndef helper(x):\n    return x\nasync def main(n=N):\n    return helper(n)",
            "await main()",
        ),
        ("async def count_notes():\n    return 1", "await count_notes()"),
        ("def run():\n    return 1\ndef other():\n    return 2", "run()"),
        ("N = 1\ndef count():\n    return helper()\ndef helper():\n    return N", "count()"),
    ] {
        assert_eq!(source(script), format!("{script}\n{call}\n"), "{script}");
    }
    for script in [
        "import asyncio\nasync def main():\n    return 1\nasyncio.run(main())",
        "import asyncio\nasync def main():\n    return 1\nif __name__ == '__main__':\n    asyncio.run(main())",
        "async def main():\n    return 1\nawait main()",
        "async def main():\n    return 1\nprint(1)",
        "def main(x):\n    return x",
        "def f():\n    return 1\ndef g():\n    return 2",
        "def main():\n    return main()",
        "def main():\n    return 1\nx = main()",
        "X = 1",
        // A value at the end is what the script is for.
        "async def cleanup():\n    return 'cleaned'\n\n'defined only'",
        "def helper():\n    return 1\n1",
        "def main():\n    return 1\n1",
        "def helper():\n    return 1\n{'a': 1}",
        "def helper():\n    return 1\nX = 5",
    ] {
        assert_eq!(source(script), script, "{script}");
    }
    let checked = check(
        Language::Python,
        "async def main(tools):\n    pass",
        &["tools"],
        &[],
        &mut Fake::new(),
    );
    assert!(checked.source.ends_with("await main(tools)\n"), "{}", checked.source);
}

#[test]
fn a_last_line_for_its_effects_has_no_value() {
    for script in [
        "x = [1]\n[print(i) for i in x]",
        "x = [1]\n{print(i) for i in x}",
        "x = [1]\nlist(map(print, x))",
        "x = [1]\nlist(map(lambda i: print(i), x))",
        "x = [1]\nlist(print(i) for i in x)",
        "x = []\n[x.append(i) for i in [1]]",
        "def show(i):\n    print(i)\n[show(i) for i in [1]]",
        "import asyncio\nasync def show(i):\n    print(i)\nawait asyncio.gather(*[show(i) for i in [1]])",
        "import asyncio\nasync def show(i):\n    return\nawait asyncio.gather(show(1), show(2))",
        "print(1), print(2)",
        "x = [1]\nx.stdout.write('a')",
    ] {
        assert_eq!(source(script), format!("{script}\nNone\n"), "{script}");
    }
    for script in [
        "print(1)",
        "x = [1]\n[i for i in x]",
        "x = [1]\n[str(i) for i in x]",
        "def f(i):\n    return i\n[f(i) for i in [1]]",
        "def f(i):\n    yield i\n[f(i) for i in [1]]",
        "x = [1]\nlist(map(str, x))",
        "x = [{}]\n[i.get('a') for i in x]",
        "[None, None]",
        "()",
    ] {
        assert_eq!(source(script), script, "{script}");
    }
}
