//! Scripts of any length that are hard to analyse, in both languages.

use super::Language;

/// What a script has many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Calls one after the other, each with data of the last one.
    Calls,
    /// Loops and branches in each other, as deep as the parsers allow.
    Nesting,
    /// Functions that call the one before them twice.
    Functions,
    /// Closures that all change the same variables.
    Closures,
    /// Objects that refer to each other under many names.
    Aliases,
    /// Results that all go into one list, which every call sends.
    Mixing,
}

pub(super) const SHAPES: [Shape; 6] = [
    Shape::Calls,
    Shape::Nesting,
    Shape::Functions,
    Shape::Closures,
    Shape::Aliases,
    Shape::Mixing,
];

/// The depth of blocks; parsers allow 200 brackets.
const DEPTH: usize = 60;

/// A script of about so many lines. It calls `page` and `send`.
pub(super) fn script(shape: Shape, language: Language, lines: usize) -> String {
    let is_python = language == Language::Python;
    let line = |typescript: String, python: String| if is_python { python } else { typescript };
    let each = |make: &dyn Fn(usize) -> (String, String), count: usize| -> String {
        (0..count).map(make).map(|(one, other)| line(one, other) + "\n").collect()
    };
    let start = line(
        "let v: any = 'x'; let w: any = 'y'; const all: any[] = []; const o: any = {};\n".into(),
        "v = 'x'\nw = 'y'\nall_ = []\no = {}\n".into(),
    );
    let end = line("await send({ body: v });\n".into(), "await send(body=v)\n".into());
    let body = match shape {
        Shape::Calls => each(
            &|at| match at % 2 {
                0 => ("v = await page({ id: v });".into(), "v = await page(id=v)".into()),
                _ => ("await send({ body: v });".into(), "await send(body=v)".into()),
            },
            lines,
        ),
        Shape::Nesting => nested(is_python, lines),
        Shape::Functions => {
            each(
                &|at| {
                    let before = at.saturating_sub(1);
                    let inner = |call: String| if at == 0 { "x".to_owned() } else { call };
                    let twice = inner(format!("[f{before}(x), f{before}(x)]"));
                    (
                        format!("const f{at} = (x: any): any => {twice};"),
                        format!("f{at} = lambda x: {twice}"),
                    )
                },
                lines,
            ) + &line(
                format!("v = f{}(await page({{}}));\n", lines - 1),
                format!("v = f{}(await page())\n", lines - 1),
            )
        }
        Shape::Closures => each(
            &|at| match at % 3 {
                0 => (
                    format!(
                        "const g{at} = (x: any) => {{ const old = v; v = x; w = old; return w; }};"
                    ),
                    format!("g{at} = lambda x: (o.update(a=x), all_.append(o), v, w)"),
                ),
                1 => (
                    format!("all.push(g{}); o.a = g{}(v);", at - 1, at - 1),
                    format!("all_.append(g{}(v))", at - 1),
                ),
                _ => (
                    format!("for (const g of all) v = g(await page({{ id: {at} }}));"),
                    format!("v = [g for g in all_] + [await page(id={at})]"),
                ),
            },
            lines,
        ),
        Shape::Aliases => {
            each(
                &|at| {
                    let before = at.saturating_sub(1);
                    (
                        format!(
                            "const a{at}: any = {{ p: {}, v }}; o.n = a{at}; a{at}.q = o; v = o.n.p;",
                            if at == 0 { "o".to_owned() } else { format!("a{before}") }
                        ),
                        format!(
                            "a{at} = {{'p': {}, 'v': v}}; o['n'] = a{at}; a{at}['q'] = o; v = o['n']['p']",
                            if at == 0 { "o".to_owned() } else { format!("a{before}") }
                        ),
                    )
                },
                lines,
            ) + &line("o.p = await page({});\n".into(), "o['p'] = await page()\n".into())
        }
        Shape::Mixing => each(
            &|at| match at % 2 {
                0 => (
                    format!("all.push(await page({{ id: {at} }}));"),
                    format!("all_.append(await page(id={at}))"),
                ),
                _ => ("await send({ body: all });".into(), "await send(body=all_)".into()),
            },
            lines,
        ),
    };
    start + &body + &end
}

/// Blocks of nested loops and branches, one after the other.
fn nested(is_python: bool, lines: usize) -> String {
    let mut script = String::new();
    let mut left = lines;
    while left > 0 {
        let depth = DEPTH.min(left);
        left -= depth;
        for level in 0..depth {
            let pad = " ".repeat(level);
            let line = match (is_python, level % 2) {
                (true, 0) => format!("for x{level} in [v, w]:"),
                (true, _) => "if v != w:".to_owned(),
                (false, 0) => format!("for (const x{level} of [v, w]) {{"),
                (false, _) => "if (v !== w) {".to_owned(),
            };
            script.extend([&pad, &line, "\n"]);
        }
        let pad = " ".repeat(depth);
        if is_python {
            script.extend([&pad, "v, w = w, await page(id=v)\n"]);
        } else {
            let end = "}".repeat(depth);
            script.extend([&pad, "[v, w] = [w, await page({ id: v })];\n", &end, "\n"]);
        }
    }
    script
}
