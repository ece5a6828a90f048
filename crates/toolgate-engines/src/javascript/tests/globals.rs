//! What scripts find, and what they look for in vain.

use std::collections::BTreeSet;

use super::{assert_failures, assert_values, failure, run, value};
use crate::{
    FailureKind,
    javascript::{ABSENT, Form, GLOBALS},
};

#[test]
fn the_list_of_globals_is_complete() {
    let json = value(
        "return Object.getOwnPropertyNames(globalThis).filter((name) => !Object.keys(tools).includes(name))",
    );
    let names: BTreeSet<String> = serde_json::from_str(&json).expect("names");
    let listed = GLOBALS.iter().copied();
    let standing_in =
        ABSENT.iter().filter(|absent| absent.form != Form::Undefined).map(|absent| absent.name);
    let expected: BTreeSet<String> = listed.chain(standing_in).map(str::to_owned).collect();
    assert_eq!(names, expected);
    assert_eq!(GLOBALS.len() + 13, names.len(), "no name is listed twice");
}

#[test]
fn missing_globals_suggest_an_alternative() {
    for absent in ABSENT {
        let source = match absent.form {
            Form::Function => format!("{}('x')", absent.name),
            Form::Object => format!("{}.some.thing", absent.name),
            Form::Undefined => absent.name.to_owned(),
        };
        let failure = failure(&source);
        assert_eq!(failure.kind, FailureKind::Unsupported, "{source}");
        let told = failure.hint.unwrap_or(failure.message);
        assert!(told.contains(absent.advice), "{source}: {told}");
    }
    assert_failures(&[
        ("await import('fs')", FailureKind::Unsupported, "no modules"),
        ("new XMLHttpRequest()", FailureKind::Unsupported, "no network"),
        (
            "await crypto.subtle.digest('SHA-256', new Uint8Array())",
            FailureKind::Unsupported,
            "cryptography",
        ),
    ]);
    assert_values(&[
        ("return [typeof window, typeof fetch]", r#"["undefined","undefined"]"#),
        ("return [typeof Temporal, typeof require]", r#"["undefined","undefined"]"#),
        ("const fetch = async () => 'own'; return await fetch()", r#""own""#),
        ("const process = { env: { A: 1 } }; return process.env.A", "1"),
    ]);
}

#[test]
fn urls_are_taken_apart_and_put_together() {
    assert_values(&[
        (
            "const u = new URL('https://User:pw@Example.com:8080/a/../b c?x=1&y=é#top'); return [u.href, u.origin, u.host, u.pathname, u.search, u.hash, u.username]",
            r##"["https://User:pw@example.com:8080/b%20c?x=1&y=%C3%A9#top","https://example.com:8080","example.com:8080","/b%20c","?x=1&y=%C3%A9","#top","User"]"##,
        ),
        (
            "return ['x', './x', '../x', '/x', '?q', '#f', '//h/x', 'http://o/'].map((r) => new URL(r, 'https://a.b/c/d/e?z').href)",
            r#"["https://a.b/c/d/x","https://a.b/c/d/x","https://a.b/c/x","https://a.b/x","https://a.b/c/d/e?q","https://a.b/c/d/e?z#f","https://h/x","http://o/"]"#,
        ),
        (
            "return ['https://a.b:443', 'http://a.b:80/', 'ftp://h/x'].map((u) => String(new URL(u)))",
            r#"["https://a.b/","http://a.b/","ftp://h/x"]"#,
        ),
        (
            "const u = new URL('https://a.b'); u.searchParams.set('q', 'a b&c'); u.pathname = 'p q'; u.hash = 'h'; u.port = '81'; return u",
            r#""https://a.b:81/p%20q?q=a+b%26c#h""#,
        ),
        (
            "return [URL.canParse('x'), URL.canParse('a:b'), URL.parse('//'), new URL('mailto:a@b').pathname]",
            r#"[false,true,null,"a@b"]"#,
        ),
        (
            "const p = new URLSearchParams('?a=1&b=2&a=3&c'); return [p.get('a'), p.getAll('a'), p.has('b', '3'), p.size, [...p.keys()], p.get('z')]",
            r#"["1",["1","3"],false,4,["a","b","a","c"],null]"#,
        ),
        (
            "const p = new URLSearchParams({ b: '2', a: 'x y' }); p.append('c', '+'); p.sort(); p.delete('b'); return String(p)",
            r#""a=x+y&c=%2B""#,
        ),
        ("return String(new URLSearchParams([['k', 'é'], ['e', '']]))", r#""k=%C3%A9&e=""#),
        ("return new URLSearchParams('a=%zz+b').get('a')", r#""%zz b""#),
        ("return new URL('file:///tmp/a b').href", r#""file:///tmp/a%20b""#),
        ("return new URL('http://[::1]:3000/x').hostname", r#""[::1]""#),
    ]);
    assert_failures(&[
        ("new URL('nonsense')", FailureKind::Exception, "Invalid URL: nonsense"),
        ("new URL('http://a b/')", FailureKind::Exception, "Invalid URL"),
        ("new URL('https://')", FailureKind::Exception, "Invalid URL"),
        ("new URL('http://a:99999')", FailureKind::Exception, "Invalid URL"),
    ]);
}

#[test]
fn texts_become_bytes_and_back() {
    assert_values(&[
        ("return [...new TextEncoder().encode('é€😀')]", "[195,169,226,130,172,240,159,152,128]"),
        (
            "return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 195, 169, 240, 159, 152, 128]))",
            r#""é😀""#,
        ),
        (
            "return new TextDecoder().decode(new Uint8Array([255, 65, 0xe2, 0x82]))",
            "\"\u{fffd}A\u{fffd}\"",
        ),
        (
            "const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + d.decode(new Uint8Array([0xac]))",
            r#""€""#,
        ),
        (
            "try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return e.name }",
            r#""TypeError""#,
        ),
        (
            "return new TextEncoder().encodeInto('é€', new Uint8Array(4))",
            r#"{"read":1,"written":2}"#,
        ),
        ("return [btoa('hi'), atob('aGk=')]", r#"["aGk=","hi"]"#),
        ("return [...new TextEncoder().encode('\\ud800')]", "[239,191,189]"),
        (
            "return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            "true",
        ),
        ("return crypto.getRandomValues(new Uint32Array(8)).some((n) => n > 255)", "true"),
        ("return typeof performance.now()", r#""number""#),
    ]);
}

#[test]
fn structures_are_cloned() {
    assert_values(&[
        (
            "const o = { d: new Date(0), m: new Map([[1, { x: 1 }]]), s: new Set([2]), r: /a/g, n: [1n] }; const c = structuredClone(o); return [c.d !== o.d, c.m.get(1).x, c.s.has(2), c.r.source, c.n[0] === 1n, c.m !== o.m]",
            r#"[true,1,true,"a",true,true]"#,
        ),
        (
            "const a = {}; a.a = a; const c = structuredClone(a); return [c.a === c, c !== a]",
            "[true,true]",
        ),
        ("return structuredClone(new TypeError('x')) instanceof TypeError", "true"),
        ("return [...structuredClone(new Uint8Array([1, 2]))]", "[1,2]"),
        ("try { structuredClone(() => 1) } catch (e) { return e.name }", r#""DataCloneError""#),
        ("return structuredClone(JSON.parse('{\"__proto__\": 1}'))", r#"{"__proto__":1}"#),
    ]);
}

#[test]
fn signals_and_events_work() {
    assert_values(&[
        (
            "const c = new AbortController(); let n = 0; c.signal.addEventListener('abort', () => n++, { once: true }); c.signal.onabort = () => n++; c.abort(); c.abort(); return [n, c.signal.aborted, c.signal.reason.name]",
            r#"[2,true,"AbortError"]"#,
        ),
        ("try { AbortSignal.abort('why').throwIfAborted() } catch (e) { return e }", r#""why""#),
        (
            "const c = new AbortController(); const s = AbortSignal.any([c.signal, new AbortController().signal]); c.abort(1); return s.reason",
            "1",
        ),
        (
            "const t = new EventTarget(); const seen = []; const f = (e) => seen.push(e.type); t.addEventListener('a', f); t.addEventListener('a', f); t.dispatchEvent(new Event('a')); t.removeEventListener('a', f); t.dispatchEvent(new Event('a')); return seen",
            r#"["a"]"#,
        ),
    ]);
}

#[test]
fn small_things_of_node_work() {
    assert_values(&[
        (
            "const b = Buffer.alloc(8); b.writeUInt16BE(258, 0); b.writeInt32LE(-2, 2); b.writeUInt8(9, 6);
             return [b.toString('hex'), b.readUInt16BE(), b.readUint16LE(0), b.readInt32LE(2), b.readUInt8(6)]",
            r#"["0102feffffff0900",258,513,-2,9]"#,
        ),
        (
            "const b = Buffer.alloc(16); b.writeDoubleBE(1.5); b.writeFloatLE(-0.25, 8);
             return [b.readDoubleBE(), b.readFloatLE(8), b.subarray(8).readFloatLE(0), b.readBigUInt64BE(0) > 0n]",
            "[1.5,-0.25,-0.25,true]",
        ),
        (
            "const seen = []; for (const f of [() => Buffer.alloc(1).readUInt16LE(0), () => Buffer.alloc(1).writeUInt8(256)])
               try { f() } catch (e) { seen.push(e.name) }
             return seen",
            r#"["RangeError","RangeError"]"#,
        ),
        ("return new WeakRef({ a: 1 }).deref()", r#"{"a":1}"#),
        (
            "const seen = []; process.nextTick((x) => seen.push(x), 1); seen.push(0); await null; return seen",
            "[0,1]",
        ),
        ("if (process.stdout) return typeof process.stdout?.write", r#""function""#),
    ]);
    assert_eq!(run("process.stdout.write('a'); process.stdout.write('b\\n')").output, "ab\n");
}

#[test]
fn an_error_of_all_promises_has_a_message() {
    assert_values(&[
        (
            "try { await Promise.any([Promise.reject(new Error('e1'))]) } catch (e) { return [e.message, e.errors.length, e instanceof AggregateError] }",
            r#"["All promises were rejected",1,true]"#,
        ),
        ("return await Promise.any([Promise.reject(1), 2])", "2"),
        (
            "return [Promise.any.name, Promise.any.length, new AggregateError([]).message]",
            r#"["any",1,""]"#,
        ),
    ]);
}
