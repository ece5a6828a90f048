//! Random programs, whose flows are compared with what really happens when they run.
//!
//! A small machine runs each program and follows the data in each value. It moves through objects,
//! lists, aliases, functions, loops and branches. Everything that it sees, the analysis must say.

use std::{cell::RefCell, collections::BTreeSet, fmt::Write as _, rc::Rc};

use proptest::prelude::*;

use super::flow::flow_of;
use crate::check::Language;

const VARIABLES: [&str; 5] = ["a", "b", "c", "d", "e"];
const FIELDS: [&str; 3] = ["x", "y", "z"];

/// A tool, and the number of the call in the order of the text.
type Origin = (&'static str, usize);

#[derive(Debug, Clone)]
enum Value {
    Variable(usize),
    Literal,
    Secret(usize),
    Page(usize),
    Object(usize, usize),
    List(usize, usize),
    Field(usize, usize),
    Joined(usize, usize),
    /// A call of a function that returns its argument, a new object with it, or a field of it.
    Call(usize, usize),
}

#[derive(Debug, Clone)]
enum Step {
    Assign(usize, Value),
    SetField(usize, usize, usize),
    Append(usize, usize),
    /// A branch whose condition is known only to the machine.
    If(bool, Vec<Step>, Vec<Step>),
    /// A loop over the elements of a list.
    Each(usize, usize, Vec<Step>),
    Send(usize, usize),
}

fn value() -> impl Strategy<Value = Value> {
    let v = || 0..VARIABLES.len();
    prop_oneof![
        2 => v().prop_map(Value::Variable),
        2 => Just(Value::Literal),
        2 => Just(Value::Secret(0)),
        1 => Just(Value::Page(0)),
        2 => (v(), v()).prop_map(|(a, b)| Value::Object(a, b)),
        2 => (v(), v()).prop_map(|(a, b)| Value::List(a, b)),
        2 => (v(), 0..FIELDS.len()).prop_map(|(a, f)| Value::Field(a, f)),
        1 => (v(), v()).prop_map(|(a, b)| Value::Joined(a, b)),
        2 => (0..4_usize, v()).prop_map(|(f, a)| Value::Call(f, a)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let v = || 0..VARIABLES.len();
    let leaf = prop_oneof![
        5 => (v(), value()).prop_map(|(a, value)| Step::Assign(a, value)),
        2 => (v(), 0..FIELDS.len(), v()).prop_map(|(a, f, b)| Step::SetField(a, f, b)),
        2 => (v(), v()).prop_map(|(a, b)| Step::Append(a, b)),
        2 => v().prop_map(|a| Step::Send(a, 0)),
    ];
    let step = leaf.prop_recursive(3, 24, 5, move |inner| {
        let block = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            (any::<bool>(), block(), block()).prop_map(|(c, a, b)| Step::If(c, a, b)),
            (v(), v(), block()).prop_map(|(a, l, body)| Step::Each(a, l, body)),
        ]
    });
    prop::collection::vec(step, 3..20).prop_map(|mut steps| {
        number(&mut steps, &mut 0);
        steps
    })
}

/// Numbers the calls in the order of the text.
fn number(steps: &mut [Step], next: &mut usize) {
    for step in steps {
        match step {
            Step::Assign(_, Value::Secret(number) | Value::Page(number))
            | Step::Send(_, number) => {
                *number = *next;
                *next += 1;
            }
            Step::If(_, first, second) => {
                self::number(first, next);
                self::number(second, next);
            }
            Step::Each(_, _, body) => self::number(body, next),
            Step::Assign(..) | Step::SetField(..) | Step::Append(..) => {}
        }
    }
}

/// A value of the machine. Objects and lists are shared.
#[derive(Debug, Clone)]
enum Held {
    Plain(BTreeSet<Origin>),
    Object(Rc<RefCell<[Held; 3]>>),
    List(Rc<RefCell<Vec<Held>>>),
}

impl Held {
    /// Collects the data. `seen` are the objects and lists that were visited: a list may contain
    /// itself many times.
    fn data(&self, into: &mut BTreeSet<Origin>, seen: &mut BTreeSet<usize>) {
        match self {
            Self::Plain(data) => into.extend(data),
            Self::Object(fields) => {
                if seen.insert(Rc::as_ptr(fields).addr()) {
                    fields.borrow().iter().for_each(|field| field.data(into, seen));
                }
            }
            Self::List(items) => {
                if seen.insert(Rc::as_ptr(items).addr()) {
                    items.borrow().iter().for_each(|item| item.data(into, seen));
                }
            }
        }
    }

    fn all(&self) -> BTreeSet<Origin> {
        let mut data = BTreeSet::new();
        self.data(&mut data, &mut BTreeSet::new());
        data
    }
}

struct Machine {
    variables: Vec<Held>,
    /// What was sent, and by which call.
    sent: BTreeSet<(Origin, usize)>,
    /// What the functions keep: a variable that all of them share.
    kept: Held,
    fuel: usize,
}

fn none() -> Held {
    Held::Plain(BTreeSet::new())
}

impl Machine {
    fn evaluate(&mut self, value: &Value) -> Held {
        match value {
            Value::Variable(a) => self.variables[*a].clone(),
            Value::Literal => none(),
            Value::Secret(number) => Held::Plain([("secret", *number)].into()),
            Value::Page(number) => Held::Plain([("page", *number)].into()),
            Value::Object(a, b) => {
                let fields = [self.variables[*a].clone(), self.variables[*b].clone(), none()];
                Held::Object(Rc::new(RefCell::new(fields)))
            }
            Value::List(a, b) => {
                let items = vec![self.variables[*a].clone(), self.variables[*b].clone()];
                Held::List(Rc::new(RefCell::new(items)))
            }
            Value::Field(a, field) => self.field(&self.variables[*a].clone(), *field),
            Value::Joined(a, b) => {
                let mut data = self.variables[*a].all();
                data.extend(self.variables[*b].all());
                Held::Plain(data)
            }
            Value::Call(function, a) => {
                let argument = self.variables[*a].clone();
                match function {
                    0 => argument,
                    1 => Held::Object(Rc::new(RefCell::new([argument, none(), none()]))),
                    2 => self.field(&argument, 1),
                    _ => std::mem::replace(&mut self.kept, argument),
                }
            }
        }
    }

    /// A field; a part of plain data is data, and a list has no fields.
    #[expect(clippy::unused_self, reason = "like its siblings")]
    fn field(&self, held: &Held, field: usize) -> Held {
        match held {
            Held::Plain(data) => Held::Plain(data.clone()),
            Held::Object(fields) => fields.borrow()[field].clone(),
            Held::List(_) => none(),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            if self.fuel == 0 {
                return;
            }
            self.fuel -= 1;
            match step {
                Step::Assign(a, value) => self.variables[*a] = self.evaluate(value),
                Step::SetField(a, field, b) => {
                    let value = self.variables[*b].clone();
                    if let Held::Object(fields) = &self.variables[*a] {
                        fields.borrow_mut()[*field] = value;
                    }
                }
                Step::Append(a, b) => {
                    let value = self.variables[*b].clone();
                    if let Held::List(items) = &self.variables[*a] {
                        items.borrow_mut().push(value);
                    }
                }
                Step::If(condition, first, second) => {
                    self.run(if *condition { first } else { second });
                }
                Step::Each(a, list, body) => {
                    let items = match &self.variables[*list] {
                        Held::List(items) => items.borrow().clone(),
                        Held::Plain(data) => vec![Held::Plain(data.clone())],
                        Held::Object(_) => Vec::new(),
                    };
                    for item in items.into_iter().take(4) {
                        self.variables[*a] = item;
                        self.run(body);
                    }
                }
                Step::Send(a, number) => {
                    let data = self.variables[*a].all();
                    self.sent.extend(data.into_iter().map(|origin| (origin, *number)));
                }
            }
        }
    }
}

/// A text, and the lines of its calls.
#[derive(Default)]
struct Script {
    text: String,
    lines: Vec<usize>,
}

impl Script {
    fn new(start: &str) -> Self {
        Self { text: start.to_owned(), lines: Vec::new() }
    }

    /// Notes that the next line has a call.
    fn has_call(&mut self) {
        self.lines.push(self.text.matches('\n').count() + 1);
    }
}

impl std::fmt::Write for Script {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

fn typescript(steps: &[Step], into: &mut Script, indent: usize) {
    let v = |at: usize| VARIABLES[at];
    for step in steps {
        let pad = "  ".repeat(indent);
        if has_call(step) {
            into.has_call();
        }
        match step {
            Step::Assign(a, value) => {
                let value = match value {
                    Value::Variable(b) => v(*b).to_owned(),
                    Value::Literal => "'l'".to_owned(),
                    Value::Secret(_) => "await secret({})".to_owned(),
                    Value::Page(_) => "await page({})".to_owned(),
                    Value::Object(x, y) => format!("{{ x: {}, y: {} }}", v(*x), v(*y)),
                    Value::List(x, y) => format!("[{}, {}]", v(*x), v(*y)),
                    Value::Field(b, f) => format!("{}.{}", v(*b), FIELDS[*f]),
                    Value::Joined(x, y) => format!("`${{{}}}${{{}}}`", v(*x), v(*y)),
                    Value::Call(f, b) => format!("f{f}({})", v(*b)),
                };
                writeln!(into, "{pad}{} = {value};", v(*a)).unwrap();
            }
            Step::SetField(a, f, b) => {
                writeln!(into, "{pad}{}.{} = {};", v(*a), FIELDS[*f], v(*b)).unwrap();
            }
            Step::Append(a, b) => writeln!(into, "{pad}{}.push({});", v(*a), v(*b)).unwrap(),
            Step::If(_, first, second) => {
                writeln!(into, "{pad}if (Math.random() > 1) {{").unwrap();
                typescript(first, into, indent + 1);
                writeln!(into, "{pad}}} else {{").unwrap();
                typescript(second, into, indent + 1);
                writeln!(into, "{pad}}}").unwrap();
            }
            Step::Each(a, list, body) => {
                writeln!(into, "{pad}for ({} of {}) {{", v(*a), v(*list)).unwrap();
                typescript(body, into, indent + 1);
                writeln!(into, "{pad}}}").unwrap();
            }
            Step::Send(a, _) => writeln!(into, "{pad}await send({{ body: {} }});", v(*a)).unwrap(),
        }
    }
}

fn python(steps: &[Step], into: &mut Script, indent: usize) {
    let v = |at: usize| VARIABLES[at];
    let pad = "  ".repeat(indent);
    if steps.is_empty() {
        writeln!(into, "{pad}pass").unwrap();
    }
    for step in steps {
        if has_call(step) {
            into.has_call();
        }
        match step {
            Step::Assign(a, value) => {
                let value = match value {
                    Value::Variable(b) => v(*b).to_owned(),
                    Value::Literal => "'l'".to_owned(),
                    Value::Secret(_) => "await secret()".to_owned(),
                    Value::Page(_) => "await page()".to_owned(),
                    Value::Object(x, y) => format!("{{'x': {}, 'y': {}}}", v(*x), v(*y)),
                    Value::List(x, y) => format!("[{}, {}]", v(*x), v(*y)),
                    Value::Field(b, f) => format!("{}['{}']", v(*b), FIELDS[*f]),
                    Value::Joined(x, y) => format!("f'{{{}}}{{{}}}'", v(*x), v(*y)),
                    Value::Call(f, b) => format!("f{f}({})", v(*b)),
                };
                writeln!(into, "{pad}{} = {value}", v(*a)).unwrap();
            }
            Step::SetField(a, f, b) => {
                writeln!(into, "{pad}{}['{}'] = {}", v(*a), FIELDS[*f], v(*b)).unwrap();
            }
            Step::Append(a, b) => writeln!(into, "{pad}{}.append({})", v(*a), v(*b)).unwrap(),
            Step::If(_, first, second) => {
                writeln!(into, "{pad}if len('x') > 1:").unwrap();
                python(first, into, indent + 1);
                writeln!(into, "{pad}else:").unwrap();
                python(second, into, indent + 1);
            }
            Step::Each(a, list, body) => {
                writeln!(into, "{pad}for {} in {}:", v(*a), v(*list)).unwrap();
                python(body, into, indent + 1);
            }
            Step::Send(a, _) => writeln!(into, "{pad}await send(body={})", v(*a)).unwrap(),
        }
    }
}

fn has_call(step: &Step) -> bool {
    matches!(step, Step::Assign(_, Value::Secret(_) | Value::Page(_)) | Step::Send(..))
}

const TYPESCRIPT_START: &str = "
let kept: any = 'l';
const f0 = (p: any) => p;
function f1(p: any) { return { x: p, y: 'l' }; }
const f2 = (p: any) => { const { y } = p; return y; };
const f3 = (p: any) => { const old = kept; kept = p; return old; };
let a: any = 'l', b: any = 'l', c: any = 'l', d: any = 'l', e: any = 'l';
";
const PYTHON_START: &str = "
kept = 'l'
def f0(p):
  return p
def f1(p):
  return {'x': p, 'y': 'l'}
f2 = lambda p: p['y']
def f3(p):
  global kept
  old = kept
  kept = p
  return old
a = b = c = d = e = 'l'
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn what_happens_is_what_the_text_says(steps in steps()) {
        let mut machine = Machine {
            variables: vec![none(); VARIABLES.len()],
            sent: BTreeSet::new(),
            kept: none(),
            fuel: 2_000,
        };
        machine.run(&steps);
        let mut script = Script::new(TYPESCRIPT_START);
        typescript(&steps, &mut script, 0);
        let mut other = Script::new(PYTHON_START);
        python(&steps, &mut other, 0);
        for (language, script) in [(Language::TypeScript, script), (Language::Python, other)] {
            let Script { text, lines } = script;
            let Some(flow) = flow_of(language, &text) else { continue };
            // Each call is told apart from the other calls of its tool.
            let is_at = |site: u32, tool: &str, number: usize| {
                let site = &flow.calls[site as usize];
                site.tool.as_deref() == Some(tool)
                    && usize::try_from(site.line).unwrap() == lines[number]
                    && site.place.is_some()
            };
            for ((tool, number), by) in &machine.sent {
                let is_known = flow.flows.iter().any(|edge| {
                    !edge.is_choice && is_at(edge.from, tool, *number) && is_at(edge.to, "send", *by)
                });
                let line = lines[*number];
                prop_assert!(is_known, "line {line} is sent, and nothing says so:\n{text}");
            }
        }
    }
}
