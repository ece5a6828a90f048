//! A host, to see what becomes of its workers when it is killed.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallResponse, EngineCall, Language, LookupResult, Pool, PoolSettings, RunLimits,
    SandboxScript, Tools,
};

/// Says what confines its workers, runs one script that spins, says so, and waits to be killed.
#[allow(clippy::print_stdout, reason = "the test reads it")]
pub(crate) fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let pool = Pool::new(PoolSettings::this_program([""; 0]).unwrap());
        let code = String::from("# broken\n# call running\n# spin\n");
        let script = SandboxScript::new(code, Language::Python);
        let report = pool.probe(Language::Python).await.unwrap();
        println!("{}", serde_json::to_string(&report).unwrap());
        while pool.waiting() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let limits = RunLimits::default();
        let run = pool.run(script, &limits, Arc::new(Announce), CancellationToken::new());
        tokio::pin!(run);
        loop {
            tokio::select! {
                _ = &mut run => return ExitCode::FAILURE,
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            // The one that runs was replaced.
            if pool.waiting() == 2 && RUNNING.swap(false, Ordering::Relaxed) {
                println!("running");
            }
        }
    })
}

struct Announce;

static RUNNING: AtomicBool = AtomicBool::new(false);

impl Tools for Announce {
    fn describe(&self, _names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        Box::pin(async { Vec::new() })
    }

    fn call(
        &self,
        _call: EngineCall,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        Box::pin(async {
            RUNNING.store(true, Ordering::Relaxed);
            std::future::pending().await
        })
    }
}
