//! TypeScript becomes JavaScript whose lines are the script's.

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

use super::fixture::Fake;
use crate::check::Language;

/// The JavaScript of a script, which has to be JavaScript and to have its lines.
fn stripped(source: &str) -> String {
    let checked = Fake::new().check(Language::TypeScript, source);
    assert!(!checked.has_errors(), "{source}\n{:#?}", checked.findings);
    let lines = |text: &str| text.matches('\n').count();
    assert_eq!(lines(source), lines(&checked.source), "{}", checked.source);
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed =
        Parser::new(&allocator, &checked.source, SourceType::mjs()).with_options(options).parse();
    assert!(parsed.diagnostics.is_empty(), "{}\n{:?}", checked.source, parsed.diagnostics);
    checked.source
}

/// As [`stripped`], without what would be invisible.
fn shown(source: &str) -> String {
    let lines: Vec<String> =
        stripped(source).lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

#[test]
fn types_become_spaces() {
    for (source, expected) in [
        ("const a: number = 1;", "const a         = 1;"),
        ("let b!: string;", "let b         ;"),
        (
            "let f = (a: string, b?: number): void => {};",
            "let f = (a        , b         )       => {};",
        ),
        (
            "function g<T extends object>(x: T): x is T { return true; }",
            "function g                  (x   )         { return true; }",
        ),
        ("let x = JSON.parse('1') as number;", "let x = JSON.parse('1')          ;"),
        ("let x = { a: 1 } satisfies object;", "let x = { a: 1 }                 ;"),
        ("let x = ({} as any)!.y!;", "let x = ({}       ) .y ;"),
        ("let x = <string>'a';", "let x =         'a';"),
        ("type A = { a: number };", ";                      "),
        ("interface A { a: number }\nreturn 1;", ";                        \nreturn 1;"),
        ("const m = new Map<string, number[]>();", "const m = new Map                  ();"),
        (
            "function f(this: Date, a: number) { return a; }",
            "function f(            a        ) { return a; }",
        ),
        ("try { } catch (e: unknown) { }", "try { } catch (e         ) { }"),
        ("export const a: number = 1;", "       const a         = 1;"),
        ("declare const z: number;\nreturn 1;", ";                       \nreturn 1;"),
        ("import type { A } from 'a';\nreturn 1;", ";                          \nreturn 1;"),
        (
            "function o(a: string): string;\nfunction o(a: any) { return a; }",
            ";                             \nfunction o(a     ) { return a; }",
        ),
        (
            "const [a, b]: [number, string] = [1, 'x'];",
            "const [a, b]                   = [1, 'x'];",
        ),
        ("const { a }: { a: 'ü' } = { a: 'ü' };", "const { a }             = { a: 'ü' };"),
        ("for (const k of [] as string[]) { }", "for (const k of []            ) { }"),
        ("const plain = 1;", "const plain = 1;"),
    ] {
        assert_eq!(stripped(source), expected, "{source}");
    }
}

#[test]
fn classes_keep_what_runs() {
    let source = "abstract class A<T> extends Array<T> implements X, Y {\n  private readonly a: number = 1;\n  public static b?: string;\n  declare c: number;\n  [key: string]: any;\n  abstract d(): void;\n  e(): void;\n  e(x?: number): void {}\n  protected async *f(): AsyncGenerator<number> {}\n  override get g(): number { return 1; }\n  h!: number;\n}\ninterface X {}\ninterface Y {}";
    insta::assert_snapshot!(shown(source), @r"
             class A    extends Array                    {
                       a         = 1;
             static b         ;
      ;
      ;
      ;
      ;
      e(x         )       {}
                async *f()                         {}
               get g()         { return 1; }
      h         ;
    }
    ;
    ;
    ");
    for (script, expected) in [
        (
            "class E extends Error { constructor(public code: number) { super('x' + code) } }",
            "class E extends Error { constructor(       code        ) { super('x' + code); this.code = code; } }",
        ),
        (
            "class E extends Error {\n  constructor(public code: number) {\n    super('x')\n    this.name = 'E'\n  }\n}",
            "class E extends Error {\n  constructor(       code        ) {\n    super('x'); this.code = code;\n    this.name = 'E'\n  }\n}",
        ),
    ] {
        assert_eq!(shown(script), expected);
    }
    insta::assert_snapshot!(shown("class P {\n  constructor(private a: number, public b = 2, c?: string) { console.log(a); }\n}\nclass Q extends P {\n  constructor(readonly d: number) {\n    super(d);\n  }\n}"), @r"
    class P {
      constructor(        a        ,        b = 2, c         ) { this.a = a; this.b = b; console.log(a); }
    }
    class Q extends P {
      constructor(         d        ) {
        super(d); this.d = d;
      }
    }
    ");
}

#[test]
fn statements_stay_separate_when_types_are_removed() {
    for source in [
        "const a = 1\ntype X = number\n;(a as any)\n[1].map(x => x)",
        "let a = [1] as number[]\n(console).log(a)",
        "const f = (a: number): {\n  b: number;\n} => ({ b: a });\nreturn f(1);",
        "const f = async <\n  T,\n>(a: T): Promise<{\n  b: T\n}> => ({ b: a });",
        "const f = (\n  a: number, // one\n  b?: { c: string }, /* two */\n): void => {};",
    ] {
        stripped(source);
    }
    insta::assert_snapshot!(shown("let a = [1] as number[]\n(console).log(a)"), @r"
    let a = [1]            ;
    (console).log(a)
    ");
    insta::assert_snapshot!(shown("const f = async <\n  T,\n>(a: T): Promise<{\n  b: T\n}> => ({ b: a });"), @r"
    const f = async (

      a

     ) => ({ b: a });
    ");
}

#[test]
fn the_last_statement_of_a_namespace_ends() {
    for source in [
        "namespace N { export const z = 1 } console.log(N.z)",
        "export namespace N { export const z = 1 } console.log(N.z)",
        "namespace N.M { export let z = f() } function f() { return 1 } console.log(N.M.z)",
    ] {
        let stripped = shown(source);
        let allocator = oxc_allocator::Allocator::default();
        let kind = oxc_span::SourceType::mjs();
        let parsed = oxc_parser::Parser::new(&allocator, &stripped, kind).parse();
        assert!(parsed.diagnostics.is_empty(), "{stripped}\n{:?}", parsed.diagnostics);
    }
}

#[test]
fn enums_and_namespaces_become_objects() {
    insta::assert_snapshot!(shown("enum Color {\n  Red, // first\n  Green = 'g',\n  'dark blue' = 1 << 3,\n  Last,\n  Both = Red | Last,\n}\nconst enum E { A }\nreturn Color.Red;"), @r#"
    var Color = ((Color, $set) => {
      const Red = $set(Color, "Red", 0);  // first
      const Green = $set(Color, "Green", 'g');
      $set(Color, "dark blue", 1 << 3);
      const Last = $set(Color, "Last", Color["dark blue"] + 1);
      const Both = $set(Color, "Both", Red | Last);
     return Color; })(Color || {}, (e, k, v) => (e[k] = v, typeof v === "number" && (e[v] = k), v));
    var E = ((E, $set) => { const A = $set(E, "A", 0);  return E; })(E || {}, (e, k, v) => (e[k] = v, typeof v === "number" && (e[v] = k), v));
    return Color.Red;
    "#);
    insta::assert_snapshot!(shown("namespace N.M {\n  export type T = number;\n  export let a: T = 1, { b } = { b: 2 };\n  export function f(): T { return a; }\n  export enum E { X }\n  const hidden = 1;\n}\nnamespace Types { export interface A {} }\nreturn N.M.f();"), @r#"
    var N = ((N) => { N.M = ((M) => { Object.defineProperty(M, "a", { get: () => a, set: (value) => { a = value; }, enumerable: true, configurable: true }); Object.defineProperty(M, "b", { get: () => b, set: (value) => { b = value; }, enumerable: true, configurable: true }); Object.defineProperty(M, "f", { get: () => f, enumerable: true, configurable: true }); Object.defineProperty(M, "E", { get: () => E, enumerable: true, configurable: true });
             ;
             let a    = 1, { b } = { b: 2 };
             function f()    { return a; }
             var E = ((E, $set) => { const X = $set(E, "X", 0);  return E; })(E || {}, (e, k, v) => (e[k] = v, typeof v === "number" && (e[v] = k), v));
      const hidden = 1;
    ; return M; })(N.M || {}); return N; })(N || {});
    ;
    return N.M.f();
    "#);
}
