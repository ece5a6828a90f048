//! JavaScript.

use super::{
    CPU, Case, FAILED, FLOOD, MEMORY, MEMORY_OR_CPU, MEMORY_OR_ERROR, STACK, STACK_OR_ERROR,
    STALLED, WALL, WRONG, contains, little, little_cpu, little_time,
};
use crate::support::{ending, run, typescript};

const LOOPS: &[Case] = &[
    ("while (true) {}", CPU),
    ("for (;;) ;", CPU),
    ("outer: for (;;) { for (;;) continue outer; }", CPU),
    ("try { for (;;) ; } finally { for (;;) ; }", CPU),
    ("for (;;) { try { while (true) throw 1 } catch {} }", CPU),
    ("while (true) await null;", CPU),
    ("const f = () => { Promise.resolve().then(f) }; f(); await new Promise(() => {});", CPU),
    // Each promise waits for the next one, so all of them are kept.
    ("const f = () => Promise.resolve().then(f); await f();", MEMORY_OR_CPU),
    ("const f = () => queueMicrotask(f); f(); await new Promise(() => {});", CPU),
    ("new Function('while (true) {}')();", CPU),
    ("eval('for (;;) ;');", CPU),
    ("[3, 2, 1].sort(() => { while (true) {} });", CPU),
    ("({ get a() { while (true) {} } }).a;", CPU),
    ("`${{ toString() { while (true) {} } }}`;", CPU),
    ("+{ [Symbol.toPrimitive]() { while (true) {} } };", CPU),
    ("'a'.replace(/a/, () => { while (true) {} });", CPU),
    ("for (const x of (function* () { while (true) yield 1 })()) ;", CPU),
    ("for await (const x of (async function* () { while (true) yield 1 })()) ;", CPU),
    ("new Proxy({}, { get() { while (true) {} } }).a;", CPU),
    ("console.log(new Proxy({}, { ownKeys() { while (true) {} } }));", CPU),
    ("for (;;) try { await echo({}) } catch {}", CPU),
    ("for (;;) console.log('');", &[CPU[0], FLOOD[0]]),
    ("for (;;) console.error('x');", &[CPU[0], FLOOD[0]]),
    ("const p = never({}); for (;;) ; await p;", CPU),
    ("return { toJSON() { while (true) {} } };", CPU),
    ("class E extends Error { get message() { while (true) {} } } throw new E();", CPU),
    ("await echo({ get a() { while (true) {} } });", CPU),
    ("try { while (true) {} } catch { return 'caught' }", CPU),
];

#[tokio::test]
async fn loops() {
    contains(LOOPS, typescript, &little_cpu()).await;
}

const WAITS: &[Case] = &[
    ("await never({});", WALL),
    ("await Promise.allSettled(Array.from({ length: 300 }, () => never({})));", WALL),
    ("const f = () => setTimeout(f, 0); f();", WALL),
    ("setInterval(() => {}, 100);", WALL),
    ("setTimeout(() => {}, 2 ** 31 - 1);", WALL),
];

#[tokio::test]
async fn waits() {
    contains(WAITS, typescript, &little_time()).await;
}

/// What QuickJS itself cannot interrupt.
const NATIVE_LOOPS: &[Case] = &[
    ("'a'.repeat(4e5).indexOf('a'.repeat(2e5) + 'b');", CPU),
    ("Array.prototype.reverse.call({ length: 2 ** 50 });", CPU),
    ("Array.prototype.indexOf.call({ length: 2 ** 50 }, 1);", CPU),
    ("Array.prototype.fill.call({ length: 2 ** 50 }, 1);", MEMORY_OR_CPU),
    ("for (;;) (3n ** 600000n).toString();", CPU),
    // QuickJS has a largest number.
    ("let x = 3n; for (;;) x = x * x;", &[MEMORY[0], CPU[0], "failed: "]),
    (
        "await Promise.all({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) });",
        MEMORY_OR_CPU,
    ),
    ("/^(a+)+$/.test('a'.repeat(64) + 'b');", CPU),
    ("/(x+x+)+y/.exec('x'.repeat(64));", CPU),
    ("/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(64));", CPU),
    ("'a'.repeat(40).match(/(.*)*(.*)*(.*)*(.*)*$b/);", CPU),
    ("'a'.repeat(64).split(/(a|aa)+$b/);", CPU),
    ("JSON.parse('[' + '0,'.repeat(2e6) + '0]').sort();", MEMORY_OR_CPU),
];

#[tokio::test]
async fn loops_inside_the_engine() {
    contains(NATIVE_LOOPS, typescript, &little_cpu()).await;
}

const MEMORY_BOMBS: &[Case] = &[
    ("const a = []; for (;;) a.push(new Array(1000).fill(1));", MEMORY),
    ("const a = []; for (;;) a.push({ a: 1, b: [2], c: 'x' + a.length });", MEMORY),
    ("let s = 'x'; for (;;) s += s;", MEMORY_OR_ERROR),
    ("return 'x'.repeat(2 ** 29).length;", MEMORY_OR_ERROR),
    ("return 'x'.padEnd(2 ** 29).length;", MEMORY_OR_ERROR),
    ("return new Uint8Array(2 ** 31).length;", MEMORY_OR_ERROR),
    ("return new ArrayBuffer(2 ** 40).byteLength;", MEMORY_OR_ERROR),
    ("return new Array(2 ** 32 - 1).fill(0).length;", MEMORY),
    ("return Array.from({ length: 2 ** 40 }).length;", MEMORY_OR_ERROR),
    ("return [...(function* () { while (true) yield 1 })()];", MEMORY),
    ("const m = new Map(); for (let i = 0; ; i++) m.set(i, m.size + 'x');", MEMORY),
    ("const a = []; for (;;) a.push(() => a);", MEMORY),
    ("const a = []; for (;;) a.push(new Promise(() => {}));", MEMORY),
    ("const a = []; for (;;) a.push(Symbol());", MEMORY),
    (
        "try { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length) } catch {} return 1;",
        &["value: 1", MEMORY[0]],
    ),
    (
        "return JSON.stringify(Array(2e6).fill('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'));",
        MEMORY_OR_ERROR,
    ),
    ("let o = {}; for (;;) o = { o };", MEMORY),
];

#[tokio::test]
async fn memory_bombs() {
    contains(MEMORY_BOMBS, typescript, &little()).await;
}

const DEPTHS: &[Case] = &[
    ("function f() { return f() + 1 } f();", STACK),
    ("const f = () => [1].map(f); f();", STACK),
    ("const o = { get a() { return this.a } }; o.a;", STACK),
    ("const o = { toString() { return '' + this } }; '' + o;", STACK),
    ("class A { constructor() { new A() } } new A();", STACK),
    ("let p = {}; for (let i = 0; i < 2e4; i++) p = new Proxy(p, {}); p.a;", STACK),
    ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;", STACK_OR_ERROR),
    ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; console.log(a);", &["done"]),
    ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; await echo({ a });", STACK_OR_ERROR),
    ("JSON.parse('['.repeat(1e6));", STACK_OR_ERROR),
    ("eval('('.repeat(1e5));", STACK_OR_ERROR),
    ("new RegExp('('.repeat(1e5));", STACK_OR_ERROR),
    ("try { (function f() { f() })() } catch (e) { return 'caught' }", &["value: \"caught\""]),
    ("const f = async () => { await f() }; await f();", &[STACK[0], MEMORY[0]]),
];

#[tokio::test]
async fn depths() {
    contains(DEPTHS, typescript, &little()).await;
}

const TAMPERING: &[Case] = &[
    (
        "Array.prototype.map = null; Array.prototype.push = null; return await echo({ a: [1] });",
        &["value: {\"a\":[1]}"],
    ),
    (
        "Promise.prototype.then = () => { throw 1 }; return await echo({ a: 1 });",
        &["value: {\"a\":1}"],
    ),
    (
        "Object.prototype.toJSON = () => 'forged'; return await echo({ a: 1 });",
        &["value: ", "failed: "],
    ),
    (
        "Object.defineProperty(Object.prototype, 'a', { get() { return 'forged' } }); return (await echo({ b: 1 })).b;",
        &["value: 1"],
    ),
    ("globalThis.JSON = null; return await echo({ a: 1 });", &["value: {\"a\":1}"]),
    ("globalThis.Promise = null; return await echo({ a: 1 });", &["value: {\"a\":1}"]),
    ("JSON.stringify = () => 'forged'; return await echo({ a: 1 });", &["value: {\"a\":1}"]),
    (
        "String.prototype.toString = null; Error.prototype.toString = null; throw new Error('still named');",
        &["failed: Error: still named"],
    ),
    (
        "Error.prepareStackTrace = () => { while (true) {} }; throw new Error('x');",
        &["failed: Error: x"],
    ),
    ("Object.freeze(globalThis); return await echo({ a: 1 });", &["value: {\"a\":1}"]),
    (
        "for (const name of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[name] } catch {} return 1;",
        &["value: 1"],
    ),
    (
        "globalThis.echo = () => 'forged'; return await echo({ a: 1 });",
        &["value: \"forged\"", "rejected: "],
    ),
    (
        "return await echo({ ['__proto__']: 1, constructor: 2 });",
        &["value: {\"__proto__\":1,\"constructor\":2}"],
    ),
    ("await tools['no such tool']({});", WRONG),
    ("await tools.__proto__({});", WRONG),
    ("return (0, eval)('this').process.env;", &["value: {}"]),
    ("(function () {}).constructor('return process')().exit();", &["done"]),
    ("await import('fs');", WRONG),
    ("const m = 'fs'; await import(m);", WRONG),
    ("require('child_process').exec('id');", WRONG),
    ("await fetch('http://127.0.0.1/');", WRONG),
    ("new WebAssembly.Module(new Uint8Array(8));", WRONG),
    ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);", FAILED),
];

#[tokio::test]
async fn tampering() {
    contains(TAMPERING, typescript, &little()).await;
}

const FLOODS: &[Case] = &[
    ("for (;;) console.log('x'.repeat(1000));", FLOOD),
    ("console.log('x'.repeat(5e5)); return 1;", &["value: 1"]),
    ("for (let i = 0; i < 20000; i++) console.log(i); return 1;", &["value: 1"]),
    (
        "return 'x'.repeat(2e6);",
        &["stopped: the script's value has 2000002 bytes, 1 MB are allowed"],
    ),
    ("await echo({ a: 'x'.repeat(2e6) });", FAILED),
    ("await big({ bytes: 2e6 });", FAILED),
    (
        "for (;;) emit({ type: 'text', text: 'x'.repeat(1000) });",
        &["stopped: the script emitted more than 1 MB of content"],
    ),
    ("emit({ type: 'text', text: 'x'.repeat(2e6) }); return 1;", &["value: 1"]),
    ("for (;;) await echo({});", FAILED),
    ("await Promise.all(Array.from({ length: 5000 }, () => never({})));", FAILED),
    ("await Promise.race(Array.from({ length: 1e4 }, () => new Promise(() => {})));", STALLED),
    ("await new Promise(() => {});", STALLED),
    ("const a = {}; a.a = a; return a;", FAILED),
    ("const a = {}; a.a = a; await echo(a);", FAILED),
    ("throw null;", FAILED),
    ("throw undefined;", FAILED),
    ("throw Symbol('x');", FAILED),
    ("throw { get message() { throw 1 }, toString() { throw 2 } };", FAILED),
    ("throw new Error('x'.repeat(2e6));", &["failed: Error: xxx"]),
    ("Promise.reject(new Error('unheard'));", &["failed: Error: unheard"]),
    ("return '\\ud800'.repeat(10) + '\\u0000\\u001b[31m';", &["value: "]),
];

#[tokio::test]
async fn floods_and_ends() {
    contains(FLOODS, typescript, &little()).await;
}

#[tokio::test]
async fn sources() {
    let pool = crate::support::pool();
    let cases = [
        ("[".repeat(100_000), "rejected: "),
        ("(".repeat(500_000), "rejected: "),
        ("a.".repeat(200_000), ""),
        ("!".repeat(200_000) + "1", "stopped: the script calls itself too deeply"),
        ("if(1)".repeat(50_000) + ";", ""),
        ("x=>".repeat(50_000) + "1", ""),
        ("`${".repeat(50_000), "rejected: "),
        ("/*".repeat(200_000), "rejected: "),
        ("1+".repeat(200_000) + "1", ""),
        ("f(".repeat(300) + &")".repeat(300), ""),
        ("console.log(1);".repeat(20_000), "done"),
        ("x".repeat(2_000_000), "rejected: "),
        (String::from("\u{0}\u{feff}\u{2028}"), ""),
        (String::from("```ts\nreturn 1\n```"), ""),
    ];
    for (code, expected) in cases {
        let ending = ending(&run(&pool, typescript(&code), &little()).await);
        let start: String = code.chars().take(20).collect();
        assert!(ending.starts_with(expected), "{start:?}: {ending:.300}");
        println!("{start:?}: {ending:.200}");
        crate::support::assert_unharmed(&pool).await;
    }
}
