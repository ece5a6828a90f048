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
