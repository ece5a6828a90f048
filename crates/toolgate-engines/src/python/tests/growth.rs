//! Work grows with the input, not faster. What is measured is the time that the thread of a script
//! spends on a processor, as a ratio. Other load does not count, and the speed of the machine
//! cancels out.

use std::thread;

use super::{LIMITS, Order, run_on};
use crate::{engine::EngineLimits, python::Python};

/// How much larger the second input is.
const TIMES: u64 = 8;

/// How many times the work may grow. Quadratic work would grow by the square of [`TIMES`].
const AT_MOST: u64 = 24;

/// Scripts whose work should be in proportion to `n`, with an `n` for which it takes longer
/// than the preparation.
const LINEAR: &[(u64, &str)] = &[
    (4_000, "import csv, io\nlen(list(csv.reader(io.StringIO('a,b,c\\n' * n))))"),
    (300, "import csv, io\nlen(list(csv.DictReader(io.StringIO('a,b\\n' + '1,\"x,y\"\\n' * n))))"),
    (600, "import csv, io\nlen(list(csv.reader(io.StringIO('\"' + 'long, text\\n' * n + '\"'))))"),
    (
        250,
        "import csv, io\no = io.StringIO()\nw = csv.writer(o)\nfor i in range(n):\n    w.writerow([i, 'a,b', 'c'])\nlen(o.getvalue())",
    ),
    (
        600,
        "import io\no = io.StringIO()\nfor i in range(n):\n    o.write('some text\\n')\nlen(o.getvalue())",
    ),
    (500, "import io\ns = io.StringIO('a line\\n' * n)\nwhile s.readline(): pass"),
    (3_000, "import io\ns = io.StringIO('a line\\n' * n)\nsum([len(line) for line in s])"),
    (1_000, "import re\nlen(re.sub('a', lambda m: m.group() + 'x', 'ab' * n))"),
    (1_000, "import re\nlen(re.compile('a(b)').sub(lambda m: m[1], 'ab' * n))"),
    (600, "import re\nlen(re.split('(,)', 'ab,' * n)) + len(re.compile(',').split('ab,' * n))"),
    (4_000, "import re\nre.subn('a', 'b', 'ab' * n)[1]"),
    (200, "text = '%s-%d ' * n\ntext % (*[1, 2] * n,)"),
    (1_800, "text = 'a%%b' * n\ntext % ()"),
    (300, "import html\nlen(html.escape('<a>' * n))"),
    (
        200,
        "from urllib.parse import quote, unquote, parse_qsl\nlen(parse_qsl('a=1%20&' * n)) + len(unquote(quote('a b' * n)))",
    ),
    (
        1_000,
        "import hashlib\nh = hashlib.md5()\nfor i in range(n):\n    h.update(b'some bytes')\nh.hexdigest()",
    ),
    (
        300,
        "import textwrap\nlen(textwrap.dedent('  a\\n' * n)) + len(textwrap.indent('a\\n' * n, ' '))",
    ),
    (
        150,
        "import heapq\nh = []\nfor i in range(n):\n    heapq.heappush(h, -i)\nlen([heapq.heappop(h) for _ in range(n)])",
    ),
    (
        300,
        "import statistics\nstatistics.stdev([i / 7 for i in range(n)]) + statistics.median([i / 7 for i in range(n)])",
    ),
    (
        250,
        "import random\nlen(random.choices(range(n), weights=[1] * n, k=n)) + len(random.sample(range(n), n))",
    ),
    (100, "import copy\nlen(copy.deepcopy([{'a': [i]} for i in range(n)]))"),
    (300, "import json\nlen(json.dumps([{'a': i} for i in range(n)], default=str))"),
    (
        400,
        "from itertools import groupby, product\nlen(list(groupby(range(n)))) + len(list(product(range(n), [1, 2])))",
    ),
    (
        700,
        "'Ab\\u00e9' .casefold() and len(('Ab\\u00e9' * n).casefold()) + len(('ab' * n).translate({97: 'x'}))",
    ),
    (
        200,
        "class E(Exception): pass\nk = 0\nfor i in range(n):\n    try:\n        raise E('x')\n    except E as e:\n        k += 1",
    ),
    (
        120,
        "import asyncio\ns = asyncio.Semaphore(3)\nasync def f(i):\n    async with s:\n        return (await echo(i))['x']\nlen(await asyncio.gather(*[f(i) for i in range(n)]))",
    ),
    (
        200,
        "import asyncio\nts = [asyncio.create_task(echo(i)) for i in range(n)]\nlen(await asyncio.gather(*ts))",
    ),
    (100, "for i in range(n):\n    await echo(i)"),
    (
        200,
        "import asyncio\nasync def f(i):\n    await asyncio.sleep(i / 1000)\nlen(await asyncio.gather(*[f(i) for i in range(n)]))",
    ),
    (
        600,
        "import asyncio\nlen(await asyncio.gather(*[fail(i) for i in range(n)], return_exceptions=True))",
    ),
    (80, "import logging\nfor i in range(n):\n    logging.warning('%s and %d', 'a', i)"),
];

#[test]
fn eight_times_the_input_is_less_than_quadratic_work() {
    let mut slow = Vec::new();
    for (n, script) in LINEAR {
        let work = |n: u64| work_of(&format!("n = {n}\n{script}"));
        let (once, many) = (work(*n), work(*n * TIMES));
        if many > once * AT_MOST {
            slow.push(format!("{} times the work: {script}", many / once));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

/// The time of this thread on a processor, in nanoseconds.
fn on_processor() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// The work of a script.
fn work_of(source: &str) -> u64 {
    let source = source.to_owned();
    let limits = EngineLimits { memory_bytes: 1 << 30, ..LIMITS };
    let thread = thread::Builder::new().stack_size(256 << 20);
    let worker = thread.spawn(move || {
        let python = Python::new();
        let before = on_processor();
        let run = run_on(python, &source, limits, Order::First);
        assert!(run.outcome.is_ok(), "{source}: {:?}", run.outcome);
        on_processor() - before
    });
    worker.expect("a thread starts").join().expect("the script ends well")
}
