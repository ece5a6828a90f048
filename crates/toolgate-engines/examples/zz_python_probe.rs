#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::print_stdout)]
use toolgate_engines::*; use std::time::Instant; use std::collections::VecDeque;
struct W(VecDeque<Completion>);
impl World for W {
  fn submit(&mut self, c: Call) -> Result<(), Closed> {
    println!("[submit {} {} {}]", c.id, c.name, c.arguments.get());
    let outcome = if c.name == "tool_fail" { Err(Thrown{tool: c.name, message: "it broke".into()}) } else { Ok(c.arguments) };
    self.0.push_back(Completion{ id: c.id, outcome }); Ok(()) }
  fn wait(&mut self, d: Option<Instant>) -> Result<Option<Completion>, Closed> {
    if let Some(c) = self.0.pop_front() { return Ok(Some(c)); }
    if let Some(d) = d { let n = Instant::now(); if d > n { std::thread::sleep(d-n); } return Ok(None); }
    Err(Closed) }
  fn write(&mut self, s: Stream, t: &str) { print!("{}{t}", if s==Stream::Error {"[err] "} else {""}); }
  fn emit(&mut self, _: Box<serde_json::value::RawValue>) {}
}
fn main(){
  let all = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
  let only = std::env::args().nth(2);
  for case in all.split("\n###") {
    let (name, src) = case.trim_start_matches('#').split_once('\n').unwrap_or((case,""));
    if let Some(o) = &only { if !name.contains(o.as_str()) { continue } }
    println!("## {name}");
    let fs: Vec<Function> = ["tool_a","tool_b","tool_fail"].iter().map(|n| Function{name:n.to_string(), parameters: vec!["x".into(),"y".into()]}).collect();
    let t = Instant::now();
    let o = Box::new(python::Python::new()).run(&Script{source: src, functions:&fs}, &Limits{memory_bytes: 64<<20, stack_bytes: 4<<20}, &mut W(VecDeque::new()));
    match o { Outcome::Value(v) => println!("=> {:?}", v.map(|v| v.get().to_owned())), Outcome::Failed(f) => println!("FAILED {:?} {} | {:?} | hint {:?}", f.kind, f.message, f.stack.iter().map(|s| format!("{}@{}:{}", s.function, s.position.line, s.position.column)).collect::<Vec<_>>(), f.hint) }
    let _ = t;
  }
}
