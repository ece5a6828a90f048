//! An engine that does what it is told.

use serde_json::value::RawValue;
use toolgate_engines::{EngineCall, EngineOutcome, FailureKind, ScriptFailure, Stream, World};

use crate::attacks;

/// Runs the commands, one a line: `# print hello`, `# open /etc/passwd`, `# fork`.
pub(crate) fn run(source: &str, world: &mut dyn World) -> EngineOutcome {
    let mut next_call = 0;
    for line in source.lines().skip(1) {
        let line = line.trim_start_matches('#').trim();
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match command {
            "print" => world.write(Stream::Output, &format!("{rest}\n")),
            "complain" => world.write(Stream::Error, &format!("{rest}\n")),
            "emit" => world.emit(raw(rest)),
            "value" => return EngineOutcome::Value(Some(raw(rest))),
            "long-value" => return EngineOutcome::Value(Some(long(rest))),
            "throw" => return failed(FailureKind::Exception, rest),
            "stall" => return failed(FailureKind::Stalled, rest),
            "call" => {
                let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                submit(world, &mut next_call, name, raw(arguments));
            }
            "long-call" => {
                let arguments = format!("{{\"a\":{}}}", long(rest).get());
                submit(world, &mut next_call, "echo", raw(&arguments));
            }
            "call-often" => {
                let (times, bytes) = rest.split_once(' ').unwrap_or((rest, "0"));
                let arguments = format!("{{\"a\":{}}}", long(bytes).get());
                for _ in 0..times.parse().unwrap() {
                    submit(world, &mut next_call, "echo", raw(&arguments));
                }
            }
            "wait" => match world.wait(None) {
                Ok(Some(completion)) => {
                    let text = match completion.outcome {
                        Ok(value) => value.get().to_owned(),
                        Err(thrown) => format!("{}: {}", thrown.tool, thrown.message),
                    };
                    world.write(Stream::Output, &format!("{} {text}\n", completion.id));
                }
                Ok(None) => {}
                Err(_) => return failed(FailureKind::Abandoned, "closed"),
            },
            "wait-for-all" => {
                let mut good = 0;
                for _ in 0..next_call {
                    match world.wait(None) {
                        Ok(Some(completion)) => good += usize::from(completion.outcome.is_ok()),
                        _ => return failed(FailureKind::Abandoned, "closed"),
                    }
                }
                world.write(Stream::Output, &format!("{good} of {next_call}\n"));
            }
            "spin" => loop {
                std::hint::black_box(0);
            },
            "sleep" => world.wait(Some(DAY)).map(drop).unwrap(),
            "flood" => loop {
                world.write(Stream::Output, rest);
            },
            "flood-emit" => loop {
                world.emit(raw(rest));
            },
            "flood-calls" => loop {
                submit(world, &mut next_call, "echo", raw(rest));
            },
            "panic" => panic!("{rest}"),
            other => {
                let text = attacks::attack(other, rest);
                world.write(Stream::Output, &format!("{other}: {text}\n"));
            }
        }
    }
    EngineOutcome::Value(None)
}

const DAY: std::time::Duration = std::time::Duration::from_hours(24);

fn submit(world: &mut dyn World, next_call: &mut u64, name: &str, arguments: Box<RawValue>) {
    let _ =
        world.submit(EngineCall { id: *next_call, name: name.to_owned(), arguments, place: None });
    *next_call += 1;
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn long(bytes: &str) -> Box<RawValue> {
    raw(&format!("\"{}\"", "x".repeat(bytes.parse().unwrap())))
}

fn failed(kind: FailureKind, message: &str) -> EngineOutcome {
    let (message, stack) = (message.to_owned(), Vec::new());
    EngineOutcome::Failed(ScriptFailure { kind, message, stack, hint: None })
}
