//! All kinds of frames, and bytes that are no frame.

use proptest::{collection::vec, prelude::*};
use serde_json::value::RawValue;
use toolgate_bindings::check::{CheckFinding, CheckSeverity, Language, LookupResult};
use toolgate_engines::{
    Completion, EngineCall, FailureKind, ScriptFailure, ScriptPosition, StackFrame, Stream,
    ToolException,
};

use super::{
    Decoder, Done, FrameError, FromWorker, InterpreterFacts, PreparedRun, RunBounds, RunStart,
    TimedCompletion, ToWorker,
};
use crate::lockdown::{LockdownReport, MeasureKind};

const LARGEST: usize = 64 * 1024;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn completed(id: u64, outcome: Result<Box<RawValue>, ToolException>, more: bool) -> ToWorker {
    ToWorker::Completed(TimedCompletion { completion: Completion { id, outcome }, at: id, more })
}

/// All frames of a stream, given in pieces.
fn decode(stream: &[u8], pieces: usize) -> Result<Vec<FromWorker>, FrameError> {
    let mut decoder = Decoder::new(LARGEST);
    let mut frames = Vec::new();
    for piece in stream.chunks(stream.len().div_ceil(pieces.max(1)).max(1)) {
        decoder.space(piece.len()).extend_from_slice(piece);
        while let Some((kind, body)) = decoder.next_frame()? {
            frames.push(FromWorker::decode(kind, body)?);
        }
    }
    Ok(frames)
}

fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        Just(String::from("{\"__proto__\":[1e400,null]}")),
    ]
}

fn failure() -> impl Strategy<Value = ScriptFailure> {
    let kind = prop_oneof![
        Just(FailureKind::Syntax),
        Just(FailureKind::Exception),
        Just(FailureKind::Memory),
        Just(FailureKind::Stack),
    ];
    let frame =
        (any::<String>(), any::<u32>(), any::<u32>()).prop_map(|(function, line, column)| {
            StackFrame { function, position: ScriptPosition { line, column } }
        });
    (kind, any::<String>(), vec(frame, 0..4), any::<Option<String>>())
        .prop_map(|(kind, message, stack, hint)| ScriptFailure { kind, message, stack, hint })
}

fn finding() -> impl Strategy<Value = CheckFinding> {
    (any::<u32>(), any::<u32>(), any::<String>(), any::<Option<String>>()).prop_map(
        |(line, column, message, hint)| CheckFinding {
            line,
            column,
            source_line: message.clone(),
            caret: 3,
            message,
            hint,
            severity: CheckSeverity::Error,
        },
    )
}

fn from_worker() -> impl Strategy<Value = FromWorker> {
    let stream = prop_oneof![Just(Stream::Output), Just(Stream::Error)];
    prop_oneof![
        Just(()).prop_map(|()| FromWorker::Ready(LockdownReport::default())),
        vec("[a-z_]{0,64}", 0..5).prop_map(FromWorker::Describe),
        (any::<u64>(), ".{0,60}", json_text(), any::<Option<u32>>()).prop_map(
            |(id, name, value, place)| {
                let arguments = raw(&format!("{{\"a\":{value}}}"));
                FromWorker::Call(EngineCall { id, name, arguments, place })
            }
        ),
        (stream, vec(any::<u8>(), 0..100)).prop_map(|(s, text)| FromWorker::Output(s, text)),
        json_text().prop_map(|text| FromWorker::Emit(raw(&text))),
        proptest::option::of(json_text())
            .prop_map(|text| text.map_or(Done::NoValue, |text| Done::Value(raw(&text))))
            .prop_map(FromWorker::Done),
        vec(finding(), 0..4).prop_map(FromWorker::Warned),
        vec(finding(), 0..4).prop_map(|findings| FromWorker::Done(Done::Rejected(findings))),
        failure().prop_map(|failure| FromWorker::Done(Done::Failed(failure))),
        any::<u64>().prop_map(|bytes| FromWorker::Done(Done::ValueTooLarge { bytes })),
        any::<String>().prop_map(FromWorker::Panicked),
    ]
}

fn bounds(seed: u64) -> RunBounds {
    RunBounds {
        memory_bytes: seed,
        stack_bytes: 1,
        cpu_seconds: 2,
        value_bytes: 3,
        began: 4,
        seed,
        reports_waits: true,
    }
}

proptest! {
    #[test]
    fn frames_of_a_worker_arrive_however_they_are_split(
        frames in vec(from_worker(), 0..6),
        pieces in 1_usize..40,
    ) {
        let mut stream = Vec::new();
        for frame in &frames {
            frame.encode(&mut stream);
        }
        let decoded = decode(&stream, pieces).unwrap();
        // The types have no equality, so their debug texts are compared.
        prop_assert_eq!(format!("{decoded:?}"), format!("{frames:?}"));
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(
        bytes in vec(any::<u8>(), 0..400),
        pieces in 1_usize..10,
    ) {
        let _ = decode(&bytes, pieces);
    }

    #[test]
    fn any_body_is_a_frame_or_an_error(kind in 0_u8..4, body in vec(any::<u8>(), 0..200)) {
        let _ = FromWorker::decode(kind, &body);
        let _ = ToWorker::decode(kind, &body);
    }

    #[test]
    fn a_frame_that_is_damaged_does_no_harm(
        frame in from_worker(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut stream = Vec::new();
        frame.encode(&mut stream);
        let place = place.index(stream.len());
        stream[place] = byte;
        let _ = decode(&stream, 3);
        stream.truncate(place);
        let _ = decode(&stream, 3);
    }

    #[test]
    fn frames_of_the_host_arrive(
        id in any::<u64>(),
        text in any::<String>(),
        value in json_text(),
    ) {
        let thrown = ToolException { tool: text.clone(), message: text.clone(), content: Some(text.clone()) };
        let frames = [
            ToWorker::Start(RunStart {
                only_checks: false,
                code: text.clone(),
                language: Some(Language::Python),
                interpreter: Some(InterpreterFacts { packages: vec![text.clone()] }),
                bounds: bounds(id),
            }),
            ToWorker::Run(PreparedRun { script: raw(&value), bounds: bounds(id) }),
            ToWorker::Described(vec![
                LookupResult::Tool {
                    name: text.clone(),
                    input_schema: raw(&value),
                    output_schema: Some(raw(&value)),
                },
                LookupResult::Unknown { name: text.clone(), nearest: vec![text.clone()] },
            ]),
            completed(id, Ok(raw(&value)), true),
            ToWorker::Time(id),
            ToWorker::ReportWaits,
            completed(id, Err(thrown), false),
        ];
        for frame in frames {
            let mut stream = Vec::new();
            frame.encode(&mut stream);
            let mut decoder = Decoder::new(usize::MAX);
            decoder.space(stream.len()).extend_from_slice(&stream);
            let (kind, body) = decoder.next_frame().unwrap().unwrap();
            let decoded = ToWorker::decode(kind, body).unwrap();
            prop_assert_eq!(format!("{decoded:?}"), format!("{frame:?}"));
        }
    }
}

#[test]
fn lists_and_texts_are_bounded() {
    let mut report = LockdownReport::default();
    report.note(MeasureKind::Landlock, Ok::<_, String>("x".repeat(1_000)));
    let failure = ScriptFailure {
        kind: FailureKind::Exception,
        message: "ä".repeat(100_000),
        stack: vec![
            StackFrame {
                function: "f".repeat(999),
                position: ScriptPosition { line: 1, column: 1 }
            };
            1_000
        ],
        hint: Some("h".repeat(100_000)),
    };
    let mut stream = Vec::new();
    FromWorker::Done(Done::Failed(failure)).encode(&mut stream);
    let frames = decode(&stream, 1).unwrap();
    let [FromWorker::Done(Done::Failed(failure))] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(failure.message.len(), 16 * 1024);
    assert_eq!(failure.stack.len(), 64);
    assert_eq!(failure.stack[0].function.len(), 256);

    let names: Vec<String> = (0..2_001).map(|number| number.to_string()).collect();
    let mut stream = Vec::new();
    FromWorker::Describe(names).encode(&mut stream);
    assert_eq!(decode(&stream, 1).unwrap_err(), FrameError::Malformed);
}
