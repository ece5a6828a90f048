//! What the library of Python keeps between calls, in the interpreter that has all of it.

use super::flow::{flows, reaches};
use crate::check::Language::Python;

/// Each script reads `s`, puts a part of it into the library, and sends what the library returns.
const KEPT: &[&str] = &[
    "import logging\nlogging.addLevelName(7, s['a'])\nout = logging.getLevelName(7)",
    "import asyncio\nasyncio.current_task().set_name(s['a'])\nout = asyncio.current_task().get_name()",
    "import asyncio\nt = asyncio.create_task(asyncio.sleep(0), name=s['a'])\nout = repr(asyncio.all_tasks())",
    "import asyncio\nt = asyncio.create_task(asyncio.sleep(0), name=s['a'])\nout = t.get_name()",
    "import asyncio\nt = asyncio.create_task(asyncio.sleep(0))\nt.set_name(s['a'])\nout = t.get_name()",
    "import threading\nthreading.current_thread().name = s['a']\nout = threading.current_thread().name",
    "import asyncio\nasyncio.get_running_loop().note = s['a']\nout = asyncio.get_running_loop().note",
    "import mimetypes\nmimetypes.add_type(s['a'], '.zz')\nout = mimetypes.guess_type('a.zz')[0]",
    "import linecache\nlinecache.cache['f'] = (1, None, [s['a']], 'f')\nout = linecache.getline('f', 1)",
    "import csv\ncsv.register_dialect(s['a'])\nout = csv.list_dialects()",
    "import csv\ncsv.field_size_limit(s['n'])\nout = csv.field_size_limit()",
    "import codecs\ncodecs.register_error('x', lambda e: (s['a'], e.end))\nout = 'é'.encode('ascii', 'x').decode()",
    "import codecs\ncodecs.register_error('x', lambda e: (s['a'], e.end))\nout = bytes('é', 'ascii', 'x')",
    "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    warnings.warn(s['a'])\nout = str(w[0].message)",
    "import warnings\nwarnings.filterwarnings('ignore', message=s['a'])\nout = str(warnings.filters)",
    "import logging\nlogging.getLogger(s['a'])\nout = list(logging.root.manager.loggerDict)",
    "import logging\nlogging.getLogger('x').setLevel(s['n'])\nout = logging.getLogger('x').level",
    "import logging.config\nout = logging.config.BaseConfigurator({}).resolve('__main__.s')",
    "from logging.config import BaseConfigurator\nout = BaseConfigurator({}).resolve('__main__.s')",
    "import sys\nsys.setrecursionlimit(s['n'])\nout = sys.getrecursionlimit()",
    "import sys\nsys.setswitchinterval(s['n'])\nout = sys.getswitchinterval()",
    "import socket\nsocket.setdefaulttimeout(s['n'])\nout = socket.getdefaulttimeout()",
    "import calendar\ncalendar.setfirstweekday(s['n'])\nout = calendar.firstweekday()",
    "import calendar\ncalendar.setfirstweekday(s['n'])\nout = calendar.month(2024, 1)",
    "import decimal\ndecimal.getcontext().prec = s['n']\nout = decimal.getcontext().prec",
    "import decimal\ndecimal.getcontext().prec = s['n']\nout = str(decimal.Decimal(1) / decimal.Decimal(3))",
    "from decimal import Decimal, localcontext\nwith localcontext() as c:\n    c.prec = s['n']\n    out = str(Decimal(1) / 3)",
    "import uuid\nuuid._node = s['n']\nout = uuid.uuid1()",
    "import re\nre.compile(s['a'])\nout = str(re._cache)",
    "import re\nre.compile(s['a'])\nout = str(getattr(re, '_cac' + 'he'))",
    "from re import _cache\nimport re\nre.compile(s['a'])\nout = str(_cache)",
    "import urllib.parse\nfor i in range(s['n']):\n    urllib.parse.urlsplit(str(i))\nout = urllib.parse.urlsplit.cache_info()",
    "import random\nrandom.seed(s['n'])\nout = random.getstate()",
    "import locale\nlocale.setlocale(0, s['a'])\nout = locale.getlocale()",
    "async def f():\n    x = s['a']\n    return 1\nc = f()\nout = str(c.cr_frame.f_locals)",
    "g = (x for x in [s])\nout = str(getattr(g, 'gi_frame'))",
    "import sys\nprint(s['a'])\nout = sys.stdout.getvalue()",
    "import gc\nout = str(gc.get_objects())",
    "import statistics\nout = statistics.sys.modules['__main__'].s",
    "import sys\nout = sys._getframe().f_locals",
    "import inspect\nout = inspect.currentframe().f_locals",
    "import contextvars\nv = contextvars.ContextVar('v')\nv.set(s['a'])\nout = contextvars.copy_context().items()",
    "import json\njson.note = s['a']\nout = json.note",
    "import json.encoder\nimport json\njson.encoder.encode_basestring = lambda t: s['a']\nout = json.dumps('x')",
    "import textwrap\nsetattr(textwrap, 'note', s['a'])\nout = textwrap.note",
    "import string\nf = lambda: s\nout = string.Formatter().format('{0.__globals__}', f)",
    "f = lambda: s\nout = '{0.__globals__[s]}'.format(f)",
    "f = lambda: s\nt = '{0._' + '_globals__[s]}'\nout = t.format(f)",
    "import operator\nf = lambda: s\nout = str(operator.attrgetter('__globals__')(f))",
    "import sqlite3\nc = sqlite3.connect('file:x?mode=memory&cache=shared', uri=True)\nc.execute('insert into t values (?)', (s['a'],))\nout = sqlite3.connect('file:x?mode=memory&cache=shared', uri=True).execute('select * from t').fetchall()",
    "import os\nos.umask(s['n'])\nout = os.umask(0)",
    "import io\nio.open('f', 'w').write(s['a'])\nout = io.open('f').read()",
    "import html.entities, html\nhtml.entities.html5['x;'] = s['a']\nout = html.unescape('&x;')",
    "import html.entities, html\nhtml.entities.html5.update({'x;': s['a']})\nout = html.unescape('&x;')",
    "import html.entities, html, operator\noperator.setitem(html.entities.html5, 'x;', s['a'])\nout = html.unescape('&x;')",
    "import logging, io\nb = io.StringIO()\nlogging.getLogger().addHandler(logging.StreamHandler(b))\nlogging.warning(s['a'])\nout = b.getvalue()",
    "import logging\nlogging.basicConfig(format=s['a'])\nout = logging.root.handlers[0].formatter",
    "import xml.etree.ElementTree as ET\nET.register_namespace(s['a'], 'u')\nout = ET.tostring(ET.Element('{u}x'))",
    "import traceback\nout = traceback.StackSummary.extract(traceback.walk_stack(None), capture_locals=True)",
    "import gettext\ngettext.textdomain(s['a'])\nout = gettext.textdomain()",
    "import signal\nsignal.setitimer(signal.ITIMER_REAL, s['n'])\nout = signal.getitimer(signal.ITIMER_REAL)",
    "import tempfile\ntempfile.tempdir = s['a']\nout = tempfile.gettempdir()",
    "import email.charset\nemail.charset.add_alias('x', s['a'])\nout = email.charset.Charset('x').input_charset",
    "import readline\nreadline.add_history(s['a'])\nout = readline.get_history_item(1)",
];

/// In each script something of `s` is used in the library, and something else is sent.
const HONEST: &[&str] = &[
    "import json\nprint(json.dumps(s))\nout = json.dumps({'a': 1})",
    "import json\nd = json.loads(s['a'])\nprint(len(d))\nout = json.loads('[1]')",
    "import re\nprint(re.findall(r'\\d+', s['a']))\nout = re.sub('a', 'b', 'banana')",
    "import re\np = re.compile(r'(\\w+)@')\nm = p.search(s['a'])\nprint(m.start() if m else 0)\nout = re.compile('x').sub('y', 'xx')",
    "import math\nprint(math.floor(s['n']))\nout = math.sqrt(2)",
    "import statistics\nprint(statistics.mean(s['l']))\nout = statistics.mean([1, 2, 3])",
    "import itertools\nprint(list(itertools.islice(s['l'], 2)))\nout = list(itertools.chain([1], [2]))",
    "import collections\nprint(collections.Counter(s['l']).most_common(1))\nout = dict(collections.Counter('hello'))",
    "from collections import defaultdict\nd = defaultdict(list)\nfor x in s['l']:\n    d[x['k']].append(x)\nprint(len(d))\nout = 'done'",
    "from datetime import datetime, timedelta, timezone\nprint(datetime.fromisoformat(s['a']) - timedelta(days=1))\nout = datetime.now(timezone.utc).isoformat()",
    "from datetime import datetime\nprint(datetime.strptime(s['a'], '%Y').year)\nout = datetime(2024, 1, 2).astimezone().isoformat()",
    "import base64\nprint(base64.b64encode(s['a'].encode()))\nout = base64.b64encode(b'x').decode()",
    "import hashlib\nprint(hashlib.sha256(s['a'].encode()).hexdigest())\nout = hashlib.sha256(b'x').hexdigest()",
    "import textwrap\nprint(textwrap.shorten(s['a'], 20))\nout = textwrap.dedent('  x')",
    "import logging\nlogging.basicConfig(level=logging.INFO)\nlogging.info('got %s', s['a'])\nout = 'done'",
    "import logging\nlog = logging.getLogger(__name__)\nlog.info('order %s', s)\nlog.setLevel(logging.DEBUG)\nlog.warning('n %d', s['n'])\nout = 'ok'",
    "import logging\nimport calendar\nlogging.warning(s['a'])\nout = calendar.month_name[2]",
    "import asyncio\nr = await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))\nprint(s['a'])\nout = len(r)",
    "import asyncio\nasync def one(i):\n    return i * 2\nasync with asyncio.TaskGroup() as g:\n    ts = [g.create_task(one(i)) for i in range(3)]\nprint(s)\nout = [t.result() for t in ts]",
    "import asyncio\nsem = asyncio.Semaphore(2)\nasync def one(i):\n    async with sem:\n        return i\nout = await asyncio.gather(*[one(i) for i in range(3)])\nprint(s['a'])",
    "import functools\n@functools.lru_cache\ndef f(x):\n    return x + 1\nprint(s['n'] + 1)\nout = f(1)",
    "import functools, operator\nprint(functools.reduce(operator.add, s['l']))\nout = functools.reduce(operator.mul, [1, 2, 3])",
    "import csv, io\nb = io.StringIO()\nw = csv.writer(b)\nw.writerow([s['a'], s['n']])\nprint(b.getvalue())\nc = io.StringIO()\ncsv.writer(c).writerow([1, 2])\nout = c.getvalue()",
    "import csv, io\nrows = list(csv.DictReader(io.StringIO(s['a'])))\nprint(len(rows))\nout = 'rows read'",
    "from decimal import Decimal, ROUND_HALF_UP\nprint(Decimal(s['a']).quantize(Decimal('0.01'), rounding=ROUND_HALF_UP))\nout = str(Decimal('1.5') * 2)",
    "from fractions import Fraction\nprint(Fraction(s['n'], 3).limit_denominator(10))\nout = str(Fraction(1, 3))",
    "import random\nprint(random.choice(s['l']))\nout = random.randint(1, 6)",
    "import uuid\nprint(uuid.uuid5(uuid.NAMESPACE_DNS, s['a']))\nout = str(uuid.uuid4())",
    "import urllib.parse\nprint(urllib.parse.urlsplit(s['a']).netloc)\nout = urllib.parse.urlencode({'q': 'x'})",
    "import heapq\nprint(heapq.nlargest(2, s['l']))\nh = []\nheapq.heappush(h, 3)\nout = heapq.heappop(h)",
    "import bisect\nprint(bisect.bisect(s['l'], 3))\nout = bisect.bisect([1, 2], 2)",
    "import html, string\nprint(html.escape(s['a']))\nout = string.Template('$x').substitute(x=1) + string.ascii_letters",
    "import difflib\nprint(difflib.SequenceMatcher(None, s['a'], 'x').ratio())\nout = difflib.get_close_matches('a', ['b'])",
    "from dataclasses import dataclass, asdict\n@dataclass\nclass P:\n    a: str\n    n: int = 0\nprint(asdict(P(s['a'])))\nout = asdict(P('x', 2))",
    "import contextlib\nwith contextlib.suppress(KeyError):\n    print(s['zz'])\nout = 'ok'",
    "import sys\nsys.stdout.write(s['a'])\nsys.stdout.flush()\nout = sys.stdout.encoding",
    "import csv, sys\ncsv.writer(sys.stdout).writerow([s['a']])\nout = 'ok'",
    "import time\nt = time.time()\nprint(s['a'], time.time() - t)\nout = time.strftime('%Y')",
    "import sys\nprint(s['a'], file=sys.stderr)\nout = sys.version_info.major",
    "import xml.etree.ElementTree as ET\nprint(ET.fromstring(s['a']).findtext('x'))\nout = 'parsed'",
    "import os.path\nprint(os.path.basename(s['a']))\nout = os.path.join('a', 'b')",
    "import math\nprint(getattr(math, 'floor')(s['n']))\nfor f in ['sin', 'cos']:\n    out = getattr(math, f)(1)",
    "import copy, pprint\npprint.pprint(copy.deepcopy(s))\nout = copy.deepcopy([1])",
    "import enum\nclass C(enum.Enum):\n    A = 1\nprint(s['a'])\nout = C.A.value",
    "import struct, zlib\nprint(zlib.crc32(s['a'].encode('utf-8')))\nout = struct.pack('>I', 1).hex()",
    "import traceback\ntry:\n    print(s['a'])\nexcept Exception:\n    traceback.print_exc()\nout = 'ok'",
    "print('{} costs {:.2f}'.format(s['a'], s['n']))\nout = '{0}-{1}'.format(1, 2)",
    "import ipaddress\nprint(ipaddress.ip_address(s['a']).is_private)\nout = str(ipaddress.ip_network('10.0.0.0/8'))",
    "import warnings\nwarnings.simplefilter('ignore')\nprint(s['a'])\nout = 'ok'",
    "import logging, warnings\nif 0: warnings.warn('a')\nlogging.basicConfig(level=logging.INFO)\nprint(s['a'])\nout = 'ok'",
    "import decimal\ndecimal.getcontext().prec = 6\nprint(decimal.Decimal(s['a']) / 3)\nout = str(decimal.Decimal(1) / 3)",
];

fn script(middle: &str) -> String {
    format!("s = await secret()\nout = None\n{middle}\nawait send(body=out)\n")
}

#[test]
fn what_the_library_keeps_is_followed() {
    let missed: Vec<_> = KEPT.iter().filter(|it| !reaches(Python, &script(it))).collect();
    assert!(missed.is_empty(), "{} of {}: {missed:#?}", missed.len(), KEPT.len());
}

#[test]
fn a_choice_that_the_library_keeps_is_followed() {
    let middle = "import logging\nif s['n'] > 3:\n    logging.addLevelName(7, 'yes')\nout = logging.getLevelName(7)";
    assert_eq!(flows(Python, &script(middle)), ["secret>send.body?"]);
}

#[test]
fn honest_use_of_the_library_passes() {
    let stopped = HONEST.iter().filter(|it| reaches(Python, &script(it)));
    let stopped: Vec<_> = stopped.map(|it| (it, flows(Python, &script(it)))).collect();
    assert!(stopped.is_empty(), "{} of {}: {stopped:#?}", stopped.len(), HONEST.len());
}
