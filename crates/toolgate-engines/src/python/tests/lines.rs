//! The line of an error, in generated scripts: one statement fails, inside of blocks that its
//! exception leaves.

use std::{
    fmt::Write,
    io::Write as _,
    process::{Command, Stdio},
};

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use super::run;

/// What every script begins with. `helper` handles an exception of its own.
const HEAD: &str = "import asyncio
class Own(Exception):
    pass
class Guard:
    def __enter__(self):
        return helper(1)
    def __exit__(self, kind, error, trace):
        n = helper(2)
        return False
    async def __aenter__(self):
        return await later(1)
    async def __aexit__(self, kind, error, trace):
        n = await later(2)
        return False
def helper(n):
    try:
        return {}[n]
    except KeyError:
        return n
async def later(n):
    await asyncio.sleep(0)
    return helper(n)
";

/// Statements that fail, and how many lines below their first one. None of the blocks handles what
/// they raise.
const FAILING: &[(&str, u32)] = &[
    ("{}['missing']", 0),
    ("n = [][helper(1)]", 0),
    ("raise Own('own')", 0),
    ("assert helper(0), 'not true'", 0),
    ("return helper(1) / 0", 0),
    ("n = {\n    'a': helper(1),\n    'b': {}['no' + 'pe'],\n    'c': helper(3),\n}", 2),
    ("n = {\n    'a': [helper(1)],\n    'b': {'c': [\n        [][helper(2)],\n    ]},\n}", 3),
    ("n = (\n    [helper(1)]\n    .copy()\n    .index(helper(5))\n)", 3),
    ("return [\n    helper(n)\n    / 0\n    for n in range(2)\n]", 1),
    ("n = helper(\n    helper(1) + helper(\n        2) / 0\n)", 1),
];

/// Statements that do not fail.
const HARMLESS: &[&str] = &["n = 1", "helper(7)", "n = [helper(n) for n in range(2)]"];

/// Blocks around an inner block, which replaces `@`. A line of `async` blocks is only used where
/// `await` is allowed; then the next block is used.
const BLOCKS: &[&str] = &[
    "async with Guard() as g:\n    @",
    "async def f():\n    @\nawait f()",
    "async def f():\n    await later(1)\n    @\nawait asyncio.gather(later(1), f(), later(2))",
    "try:\n    @\nfinally:\n    helper(3)",
    "try:\n    @\nexcept NameError:\n    helper(3)\nelse:\n    n = 2",
    "try:\n    @\nexcept (NameError, OSError) as e:\n    helper(3)\nfinally:\n    n = helper(4)",
    "try:\n    @\nexcept Exception as e:\n    helper(3)\n    raise",
    "try:\n    @\nexcept Exception as e:\n    n = helper(3)\n    raise e",
    "try:\n    int('x')\nexcept ValueError:\n    @",
    "try:\n    n = 1\nexcept ValueError:\n    n = 2\nelse:\n    @\nfinally:\n    n = 3",
    "try:\n    n = 1\nfinally:\n    @",
    "with Guard() as g:\n    @",
    "with Guard(), Guard():\n    @\n    n = 3",
    "def f():\n    @\nhelper(5)\nn = f()",
    "class C:\n    def method(self):\n        @\nC().method()",
    "for n in range(2):\n    if n == 0:\n        continue\n    @",
    "while True:\n    helper(6)\n    @\n    break",
    "if helper(0):\n    n = 2\nelif helper(1):\n    @\nelse:\n    n = 3",
];

#[derive(Debug, Clone)]
enum Block {
    Failing(usize),
    Around { block: usize, before: usize, after: usize, inner: Box<Block> },
}

fn block() -> impl Strategy<Value = Block> {
    (0..FAILING.len()).prop_map(Block::Failing).prop_recursive(7, 7, 1, |inner| {
        (0..BLOCKS.len(), 0..=HARMLESS.len(), 0..=HARMLESS.len(), inner).prop_map(
            |(block, before, after, inner)| Block::Around {
                block,
                before,
                after,
                inner: Box::new(inner),
            },
        )
    })
}

#[derive(Default)]
struct Script {
    text: String,
    lines: u32,
    failing: u32,
}

impl Script {
    fn line(&mut self, indentation: usize, line: &str) {
        writeln!(self.text, "{:indentation$}{line}", "").expect("a string takes everything");
        self.lines += 1;
    }

    fn block(&mut self, block: &Block, indentation: usize, waits: bool) {
        match block {
            Block::Failing(which) => {
                let (statement, below) = FAILING[*which];
                self.failing = self.lines + 1 + below;
                for line in statement.lines() {
                    self.line(indentation, line);
                }
            }
            Block::Around { block, before, after, inner } => {
                let may_be_used =
                    |text: &&&str| waits || !text.contains("await") && !text.contains("async");
                let text =
                    BLOCKS[*block..].iter().find(may_be_used).expect("the last one is plain");
                let waits = waits && !text.starts_with("def") && !text.starts_with("class");
                if let Some(harmless) = HARMLESS.get(*before) {
                    self.line(indentation, harmless);
                }
                for line in text.lines() {
                    let code = line.trim_start();
                    let deeper = indentation + line.len() - code.len();
                    if code == "@" {
                        self.block(inner, deeper, waits);
                    } else {
                        self.line(deeper, code);
                    }
                }
                if let Some(harmless) = HARMLESS.get(*after) {
                    self.line(indentation, harmless);
                }
            }
        }
    }

    /// The script of a block. Without an exception of its own it is rewritten in another way.
    fn of(block: &Block, is_own: bool) -> Self {
        let mut script = Self::default();
        let other = HEAD.replace("class Own(Exception):\n    pass", "Own = ArithmeticError\npass");
        for line in if is_own { HEAD } else { &other }.lines() {
            script.line(0, line);
        }
        script.line(0, "async def main():");
        script.line(4, "n = 0");
        script.block(block, 4, true);
        script.line(0, "asyncio.run(main())");
        script
    }
}

proptest! {
    #![proptest_config(Config { cases: 100, failure_persistence: None, ..Config::default() })]
    #[test]
    fn an_error_has_the_line_of_the_statement_that_raised_it(block in block(), is_own: bool) {
        let script = Script::of(&block, is_own);
        let run = run(&script.text);
        let failure = run.failure();
        let shown = failure.stack.first().map(|frame| frame.position.line);
        prop_assert_eq!(shown, Some(script.failing), "{}\n{:?}", script.text, failure);
    }
}

/// Prints the line of the innermost frame of each script, which are separated by NUL.
const IN_CPYTHON: &str = "
import sys, traceback
for text in sys.stdin.read().split('\\0'):
    try:
        exec(compile(text, 'script', 'exec'), {'__name__': '__main__'})
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == 'script']
        frames = [f for f in frames if f.name not in ('helper', 'later')] or frames
        print(frames[-1].lineno)
";

#[test]
fn cpython_names_the_same_lines() {
    let mut runner = TestRunner::deterministic();
    let scripts: Vec<Script> = (0..300)
        .map(|n| Script::of(&block().new_tree(&mut runner).expect("a block").current(), n % 2 == 0))
        .collect();
    let texts: Vec<&str> = scripts.iter().map(|script| script.text.as_str()).collect();
    let program = Command::new("python3")
        .args(["-I", "-c", IN_CPYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut program = program.expect("the tests need Python");
    let mut input = program.stdin.take().expect("it has an input");
    input.write_all(texts.join("\0").as_bytes()).expect("it reads the scripts");
    drop(input);
    let output = program.wait_with_output().expect("it ends");
    let shown: Vec<u32> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.parse().expect("a line number"))
        .collect();
    let expected: Vec<u32> = scripts.iter().map(|script| script.failing).collect();
    assert_eq!(shown, expected);
}
