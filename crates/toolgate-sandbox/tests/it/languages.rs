//! The languages, from the script's text to its report.

use toolgate_sandbox::{CallState, CheckSeverity, RunOutcome};

use crate::support::{ending, limits, pool, python, run, typescript};

#[tokio::test]
async fn typescript_is_checked_stripped_and_run() {
    let pool = pool();
    let script = typescript(
        "interface Item { name: string }\n\
         const items: Item[] = [{ name: 'a' }, { name: 'b' }];\n\
         const results = await Promise.all(items.map((item: Item) => echo({ ...item })));\n\
         console.log('got', results.length);\n\
         emit({ type: 'text', text: 'for the reader' });\n\
         return results.map((result: any) => result.name).join() as string;",
    );
    let report = run(&pool, script, &limits()).await;
    assert_eq!(ending(&report), "value: \"a,b\"");
    assert_eq!(report.output.head, "got 2\n");
    assert_eq!(report.emitted.len(), 1);
    assert_eq!(report.calls.len(), 2);
    assert_eq!(report.calls[0].name, "echo");
    assert_eq!(report.calls[0].arguments, "{\"name\":\"a\"}");
    assert_eq!(report.calls[0].state, CallState::Completed);
}

#[tokio::test]
async fn python_is_checked_and_run() {
    let pool = pool();
    let script = python(
        "import asyncio, json\n\
         async def one(i):\n\
         \x20   return (await echo(number=i))['number']\n\
         numbers = await asyncio.gather(*[one(i) for i in range(3)])\n\
         print(json.dumps(numbers))\n\
         sum(numbers)",
    );
    let report = run(&pool, script, &limits()).await;
    assert_eq!(ending(&report), "value: 3");
    assert_eq!(report.output.head, "[0, 1, 2]\n");
    assert_eq!(report.calls.len(), 3);
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_found_before_anything_runs() {
    let pool = pool();
    let codes = ["await echo({});\nawait ecko({});", "await echo()\nawait ecko()"];
    for (script, code) in [typescript, python].into_iter().zip(codes) {
        let report = run(&pool, script(code), &limits()).await;
        let RunOutcome::Rejected(findings) = &report.outcome else { panic!("{report:?}") };
        assert_eq!((findings[0].line, findings[0].severity), (2, CheckSeverity::Error));
        assert!(findings[0].message.contains("`ecko`"), "{}", findings[0]);
        assert!(findings[0].to_string().contains("echo"), "{}", findings[0]);
        assert!(report.calls.is_empty());
    }
}

#[tokio::test]
async fn an_error_has_its_line_the_output_until_then_and_the_calls() {
    let pool = pool();
    let typescript = typescript(
        "console.log('before');\nawait echo({ a: 1 });\nfunction inner() {\n  null.x;\n}\ninner();",
    );
    let python = python("print('before')\nawait echo(a=1)\ndef inner():\n    None.x\ninner()");
    for script in [typescript, python] {
        let report = run(&pool, script, &limits()).await;
        let RunOutcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
        assert_eq!(failure.stack[0].function, "inner", "{failure:?}");
        assert_eq!(failure.stack[0].position.line, 4, "{failure:?}");
        assert_eq!(report.output.head, "before\n");
        assert_eq!(report.calls[0].state, CallState::Completed);
    }
}

#[tokio::test]
async fn a_call_that_fails_can_be_caught() {
    let pool = pool();
    let codes = [
        "try { await fail({}) } catch (error) { return error.message }",
        "try:\n    await fail()\nexcept Exception as error:\n    message = str(error)\nmessage",
    ];
    for (script, code) in [typescript, python].into_iter().zip(codes) {
        let report = run(&pool, script(code), &limits()).await;
        assert!(ending(&report).contains("it is broken"), "{}", ending(&report));
        assert_eq!(report.calls[0].state, CallState::Failed(String::from("it is broken")));
    }
}

/// Where the text that runs is not that of the script, positions are still those of the script.
#[tokio::test]
async fn positions_are_those_of_the_script_in_rewritten_lines() {
    let pool = pool();
    for (code, positions) in [
        ("function f(o: any) { return o.a.b; }\nf({});", &[(1, 29), (2, 1)][..]),
        ("async function f(o: any) {\n  return o.a.b;\n}\nawait f({});", &[(2, 10), (4, 7)]),
        ("enum E { A = 1, B } const z: any = {}; z.a.b;", &[(1, 40)]),
        ("namespace N { export const f = (o: any) => o.a.b; }\nN.f({});", &[(1, 44), (2, 3)]),
        (
            "class P { constructor(private a: number, readonly b = 2) { (null as any).x; } }\nnew P(1);",
            &[(1, 60), (2, 1)],
        ),
        ("import { createHash } from \"node:crypto\"; const z: any = {}; z.a.b;", &[(1, 62)]),
        // What toolgate adds has no place in the script.
        ("async () => {\n  const z: any = {};\n  z.a.b;\n}", &[(3, 3)]),
        ("export async function main() {\n  (null as any).x;\n}", &[(2, 3)]),
    ] {
        let report = run(&pool, typescript(code), &limits()).await;
        let RunOutcome::Failed(failure) = &report.outcome else { panic!("{}", ending(&report)) };
        let found: Vec<_> =
            failure.stack.iter().map(|it| (it.position.line, it.position.column)).collect();
        assert_eq!(found, positions, "{code}\n{failure:?}");
    }
}
