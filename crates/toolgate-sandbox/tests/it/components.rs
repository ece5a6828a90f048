//! Components in real worker processes.

use std::{sync::atomic::Ordering, time::Duration};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    CallState, ComponentProgram, JournalEvent, JournaledCall, Pool, RunJournalRecord, RunLimits,
    RunOutcome, RunReport, RunSeed, SandboxScript, compile_component, lockdown::MeasureKind,
};

use crate::support::{TestTools, ending, limits, pool, raw, run, typescript};

const LANGUAGE: &str = include_str!("../../../../components/test/language.wat");

/// A compiled component in a file.
struct Compiled {
    _folder: TempDir,
    program: ComponentProgram,
}

impl Compiled {
    fn new(text: &str) -> Self {
        let code = compile_component(text.as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("code");
        std::fs::write(&file, &code).unwrap();
        let hash = blake3::hash(&code).to_hex().to_string();
        let program = ComponentProgram { language: String::from("tiny"), file, hash };
        Self { _folder: folder, program }
    }

    fn script(&self, code: &str) -> SandboxScript {
        SandboxScript::new(code, self.program.clone())
    }
}

async fn run_tiny(pool: &Pool, tiny: &Compiled, code: &str) -> RunReport {
    run(pool, tiny.script(code), &limits()).await
}

#[tokio::test]
async fn a_component_prints_calls_tools_and_returns_a_value() {
    let (pool, tiny) = (pool(), Compiled::new(LANGUAGE));
    assert_eq!(ending(&run_tiny(&pool, &tiny, "v{\"a\": 1}").await), "value: {\"a\": 1}");
    let report = run_tiny(&pool, &tiny, "phello\n").await;
    assert_eq!((ending(&report).as_str(), report.output.head.as_str()), ("done", "hello\n"));
    // The text mentions the tool, so the component gets it.
    let report = run_tiny(&pool, &tiny, "c{\"echo\":2}").await;
    assert_eq!(ending(&report), "value: {\"echo\":2}");
    assert_eq!(report.calls[0].state, CallState::Completed);
    let report = run_tiny(&pool, &tiny, "c{\"fail\":2}").await;
    assert_eq!(ending(&report), "failed: it is broken");
    let report = run_tiny(&pool, &tiny, "fSyntaxError: what?").await;
    assert_eq!(ending(&report), "failed: SyntaxError: what?");
    // Languages that are built in are not affected.
    assert_eq!(ending(&run(&pool, typescript("return 1"), &limits()).await), "value: 1");
}

#[tokio::test]
async fn two_calls_of_a_component_run_at_once() {
    let (pool, tiny, tools) = (pool(), Compiled::new(LANGUAGE), TestTools::meeting(2));
    let cancel = CancellationToken::new();
    // Each waits until the other one was made, too.
    let report = pool.run(tiny.script("2{\"meet\":1}"), &limits(), tools.clone(), cancel).await;
    assert_eq!(ending(&report), "value: \"met\"");
    assert_eq!(tools.calls.load(Ordering::Relaxed), 2);
    assert!(tools.flows.lock().is_empty(), "every result may reach every argument");
}

#[tokio::test]
async fn limits_end_a_component_as_they_end_other_engines() {
    let (pool, tiny) = (pool(), Compiled::new(LANGUAGE));
    let short = RunLimits { cpu: Duration::from_millis(50), ..limits() };
    let report = run(&pool, tiny.script("l"), &short).await;
    let words = "stopped: the script computed for more than 0.05 s; codeMode.cpuSeconds";
    assert!(ending(&report).starts_with(words), "{}", ending(&report));
    let small = RunLimits { memory_bytes: 8 << 20, ..limits() };
    let report = run(&pool, tiny.script("m"), &small).await;
    let words = "stopped: the script needed more than 8 MB of memory";
    assert!(ending(&report).starts_with(words), "{}", ending(&report));
    let report = run_tiny(&pool, &tiny, "d").await;
    let words = "stopped: the script calls itself too deeply";
    assert!(ending(&report).starts_with(words), "{}", ending(&report));
    let report = run_tiny(&pool, &tiny, "s").await;
    let words = "stopped: the script waits for something that can no longer happen";
    assert_eq!(ending(&report), words);
    for trap in ["t", "o"] {
        let report = run_tiny(&pool, &tiny, trap).await;
        let RunOutcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
        assert!(failure.message.starts_with("the component failed: "), "{failure:?}");
    }
    assert_eq!(ending(&run_tiny(&pool, &tiny, "v7").await), "value: 7");
}

#[tokio::test]
async fn a_component_is_confined_like_every_worker() {
    let (pool, tiny) = (pool(), Compiled::new(LANGUAGE));
    let report = pool.probe(tiny.program.clone()).await.unwrap();
    assert_eq!(report.lacking(), None);
    assert!(report.has(MeasureKind::Descriptors), "{report:?}");
    assert_eq!(report.has(MeasureKind::SystemCalls), cfg!(target_os = "linux"), "{report:?}");
}

#[tokio::test]
async fn a_file_that_has_changed_does_not_run() {
    let (pool, tiny) = (pool(), Compiled::new(LANGUAGE));
    let mut code = std::fs::read(&tiny.program.file).unwrap();
    *code.last_mut().unwrap() ^= 1;
    std::fs::write(&tiny.program.file, code).unwrap();
    let report = run_tiny(&pool, &tiny, "v1").await;
    let words = "its file is not the one that was added";
    assert!(ending(&report).contains(words), "{}", ending(&report));
    std::fs::remove_file(&tiny.program.file).unwrap();
    let report = run_tiny(&crate::support::pool(), &tiny, "v1").await;
    assert!(ending(&report).contains("cannot read it"), "{}", ending(&report));
}

#[tokio::test]
async fn a_component_that_fails_when_it_starts_says_so() {
    let start = "    (func $fail (unreachable))\n    (start $fail)\n    ;; What `run` returns";
    let broken = Compiled::new(&LANGUAGE.replace("    ;; What `run` returns", start));
    let report = run_tiny(&pool(), &broken, "v1").await;
    assert!(ending(&report).contains("it does not start: "), "{}", ending(&report));
}

#[tokio::test]
async fn a_run_of_a_component_resumes_with_the_recorded_results() {
    let (pool, tiny, tools) = (pool(), Compiled::new(LANGUAGE), TestTools::new());
    let at = Duration::from_millis(5);
    let journal = RunJournalRecord {
        beginning: RunSeed { unix: Duration::from_secs(1_700_000_000), seed: 7 },
        calls: vec![JournaledCall {
            id: 0,
            name: String::from("echo"),
            arguments: raw("{\"echo\":1}"),
            outcome: Some(Ok(raw("\"recorded\""))),
            binds: true,
        }],
        events: vec![JournalEvent::Completed { id: 0, at }],
    };
    let script = SandboxScript { journal: Some(journal), ..tiny.script("2{\"echo\":1}") };
    let report = pool.run(script, &limits(), tools.clone(), CancellationToken::new()).await;
    // The first call comes from the journal, and the second one is made.
    assert_eq!(ending(&report), "value: {\"echo\":1}");
    assert_eq!(tools.calls.load(Ordering::Relaxed), 1);
}
