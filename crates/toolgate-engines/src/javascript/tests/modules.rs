//! The modules of Node that need nothing from outside. What is expected is what Node gives.

use super::{assert_failures, assert_values, value};
use crate::{FailureKind, javascript::MODULES};

/// A script with a module of Node.
fn with(module: &str, script: &str) -> String {
    format!("const it = process.getBuiltinModule('{module}'); {script}")
}

#[test]
fn every_listed_module_exists_under_both_names() {
    for name in MODULES {
        let source = format!(
            "const m = process.getBuiltinModule('{name}'); return m === process.getBuiltinModule('node:{name}') && m.default === m"
        );
        assert_eq!(value(&source), "true", "{name}");
    }
    assert_eq!(value("return [process.getBuiltinModule('fs')]"), "[null]");
}

#[test]
fn digests_are_those_of_node() {
    for (script, expected) in [
        (
            "return it.createHash('sha256').update('abc').digest('hex')",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            "return it.createHash('SHA1').update('a').update('bc').digest('base64')",
            "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=",
        ),
        (
            "return it.createHash('md5').update(Buffer.from('abc')).digest('hex')",
            "900150983cd24fb0d6963f7d28e17f72",
        ),
        (
            "return it.createHash('md5').update('é').digest().toString('hex')",
            "66ddcd97cfdeabb2f6fb8a999b4bc76f",
        ),
        (
            "return it.createHash('sha256').update('616263', 'hex').digest('base64url')",
            "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0",
        ),
        (
            "return it.createHmac('sha256', 'k').update('a').update('bc').digest('hex')",
            "342e519ce0ad6c03a36b98eeb3f1d130db4813b9df4d1160eda488d712dc78ee",
        ),
        (
            "return it.createHmac('SHA512', Buffer.from('x'.repeat(200))).update('é').digest('hex').slice(0, 32)",
            "bcb38658adf5dec4f2b0dd923e3c4271",
        ),
        (
            "return it.createHmac('md5', '').update('').digest('hex')",
            "74e6f7298a9c2d168935f58c001bad88",
        ),
        (
            "return String(['ab', 'ac'].map((b) => it.timingSafeEqual(Buffer.from('ab'), Buffer.from(b))))",
            "true,false",
        ),
        ("return it.hash('sha1', 'abc')", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "return it.createHash('sha512').update('').digest('hex').slice(0, 16)",
            "cf83e1357eefb8bd",
        ),
    ] {
        assert_values(&[(&with("crypto", script), &format!("\"{expected}\""))]);
    }
    assert_failures(&[
        (
            &with("crypto", "it.createHash('whirlpool')"),
            FailureKind::Exception,
            "there are md5, sha1",
        ),
        (
            &with("crypto", "it.createCipheriv('aes-256-cbc', '', '')"),
            FailureKind::Unsupported,
            "crypto.createCipheriv is not available here",
        ),
        (
            &with("crypto", "const h = it.createHash('md5'); h.digest(); h.digest()"),
            FailureKind::Exception,
            "Digest already called",
        ),
    ]);
}

#[test]
fn paths_are_those_of_node() {
    assert_values(&[
        (
            &with(
                "path",
                "return [it.join('a', '..', '/b', './c/'), it.normalize('/a/../../b//c/.'), it.normalize(''), it.resolve('a', '/b', '../c')]",
            ),
            r#"["b/c/","/b/c",".","/c"]"#,
        ),
        (
            &with(
                "path",
                "return [it.dirname('/a/b/'), it.dirname('a'), it.basename('/a/b.txt/', '.txt'), it.extname('.bashrc'), it.extname('a.tar.gz'), it.extname('a.')]",
            ),
            r#"["/a",".","b","",".gz","."]"#,
        ),
        (
            &with(
                "path",
                "return [it.relative('/a/b/c', '/a/d'), it.relative('/a', '/a'), it.isAbsolute('/x'), it.format({ dir: '/a', name: 'b', ext: 'c' })]",
            ),
            r#"["../../d","",true,"/a/b.c"]"#,
        ),
        (
            &with("node:path", "return it.parse('/home/u/file.txt')"),
            r#"{"root":"/","dir":"/home/u","base":"file.txt","ext":".txt","name":"file"}"#,
        ),
    ]);
    assert_failures(&[(
        &with("path", "it.join('a', 1)"),
        FailureKind::Exception,
        "must be of type string",
    )]);
}

#[test]
fn assertions_and_utilities_are_those_of_node() {
    assert_values(&[
        (
            &with(
                "util",
                "return [it.format('%s is %d', 'a', 3, { b: 1 }), it.inspect({ a: [1, { b: 2 }] }), it.isDeepStrictEqual({ a: [1] }, { a: [1] }), it.isDeepStrictEqual([1], ['1'])]",
            ),
            r#"["a is 3 { b: 1 }","{ a: [ 1, { b: 2 } ] }",true,false]"#,
        ),
        (
            &with(
                "util",
                "const f = it.promisify((a, done) => done(null, a + 1)); return [await f(1), it.types.isPromise(f(1)), it.types.isDate(new Date(0))]",
            ),
            "[2,true,true]",
        ),
        (
            &with(
                "assert",
                "it(true); it.ok(1); it.equal(1, '1'); it.strictEqual(NaN, NaN); it.deepStrictEqual(new Map([[{ a: 1 }, new Set([1])]]), new Map([[{ a: 1 }, new Set([1])]])); it.throws(() => { throw new TypeError('no') }, TypeError); it.throws(() => { throw new Error('no') }, /no/); await it.rejects(Promise.reject(new Error('x')), { message: 'x' }); return 'all'",
            ),
            r#""all""#,
        ),
        (
            &with(
                "assert/strict",
                "try { it.equal(1, '1') } catch (error) { return [error.name, error.code, error instanceof it.AssertionError, error.operator] }",
            ),
            r#"["AssertionError","ERR_ASSERTION",true,"strictEqual"]"#,
        ),
    ]);
    assert_failures(&[
        (
            &with("assert", "it.deepEqual({ a: 1 }, { a: 2 })"),
            FailureKind::Exception,
            "loosely deep-equal",
        ),
        (&with("assert", "it(0, 'too few')"), FailureKind::Exception, "too few"),
        (
            &with("util", "it.parseArgs()"),
            FailureKind::Unsupported,
            "util.parseArgs is not available here",
        ),
    ]);
}

#[test]
fn random_bytes_come_from_the_seed_of_the_run() {
    let source = with(
        "crypto",
        "return [it.randomBytes(8).toString('hex'), it.randomUUID(), it.randomInt(10), it.randomInt(5, 6)]",
    );
    let first = value(&source);
    assert_eq!(first, value(&source));
    let values: (String, String, u8, u8) = serde_json::from_str(&first).expect("four values");
    assert_eq!((values.0.len(), values.1.len(), values.3), (16, 36, 5));
    assert!(values.2 < 10);
}

#[test]
fn timers_as_promises_take_time() {
    assert_values(&[
        (
            &with(
                "timers/promises",
                "const t = Date.now(); const v = await it.setTimeout(250, 'x'); return [v, Date.now() - t]",
            ),
            r#"["x",250]"#,
        ),
        (&with("timers/promises", "return await it.setImmediate(7)"), "7"),
        (
            &with(
                "node:timers/promises",
                "const t = Date.now(); await it.scheduler.wait(40); return Date.now() - t",
            ),
            "40",
        ),
        (&with("timers", "return it.setTimeout === setTimeout"), "true"),
    ]);
}

#[test]
fn buffers_are_texts_as_bytes() {
    for (expression, expected) in [
        ("Buffer.from('héllo').toString('base64')", r#""aMOpbGxv""#),
        ("Buffer.from('aMOpbGxv', 'base64').toString()", r#""héllo""#),
        ("Buffer.from('aM Op\\nbGxv==', 'base64').toString('utf8')", r#""héllo""#),
        ("Buffer.from('_-8', 'base64').toString('hex')", r#""ffef""#),
        ("Buffer.from('ffef', 'hex').toString('base64url')", r#""_-8""#),
        ("Buffer.from('abxz12', 'hex').length", "1"),
        ("Buffer.from('é', 'latin1').toString('hex')", r#""e9""#),
        ("Buffer.from([104, 105]).toString('ascii')", r#""hi""#),
        ("Buffer.from('hi', 'utf16le').toString('hex')", r#""68006900""#),
        ("Buffer.from('68006900', 'hex').toString('ucs2')", r#""hi""#),
        ("Buffer.from('hello').toString('utf8', 1, 3)", r#""el""#),
        ("Buffer.from('hello').subarray(1, 3).toString()", r#""el""#),
        ("Buffer.from('hello').slice(-2).toString()", r#""lo""#),
        (
            "Buffer.concat([Buffer.from('a'), Buffer.from('bc'), new Uint8Array([100])]).toString()",
            r#""abcd""#,
        ),
        ("Buffer.concat([Buffer.from('abc')], 2).toString()", r#""ab""#),
        (
            "[Buffer.byteLength('é€'), Buffer.byteLength('YWI=', 'base64'), Buffer.from('é').length]",
            "[5,2,2]",
        ),
        ("Buffer.from('hi')", r#"{"type":"Buffer","data":[104,105]}"#),
        ("Buffer.from({ type: 'Buffer', data: [104, 105] }).toString()", r#""hi""#),
        (
            "[Buffer.isBuffer(Buffer.alloc(1)), Buffer.isBuffer(new Uint8Array(1)), Buffer.from('a') instanceof Uint8Array]",
            "[true,false,true]",
        ),
        (
            "[Buffer.alloc(3, 'ab').toString(), Buffer.alloc(2, 1)[1], Buffer.alloc(2)[0]]",
            r#"["aba",1,0]"#,
        ),
        (
            "[Buffer.from('a').equals(Buffer.from('a')), Buffer.compare(Buffer.from('a'), Buffer.from('b'))]",
            "[true,-1]",
        ),
        (
            "[Buffer.from('hello').indexOf('l'), Buffer.from('hello').includes('xo'), Buffer.from('hello').indexOf(111)]",
            "[2,false,4]",
        ),
        ("Buffer.from([0xff, 0x41]).toString()", "\"\u{fffd}A\""),
        ("`${Buffer.from('x')}`", r#""x""#),
        ("new TextDecoder().decode(Buffer.from('€'))", r#""€""#),
        ("process.getBuiltinModule('buffer').Buffer === Buffer", "true"),
    ] {
        assert_values(&[(&format!("return {expression}"), expected)]);
    }
    assert_failures(&[
        ("Buffer.from('a', 'klingon')", FailureKind::Exception, "Unknown encoding: klingon"),
        ("Buffer.from(5)", FailureKind::Exception, "not of number"),
        ("Buffer.from(null)", FailureKind::Exception, "not of null"),
    ]);
}
