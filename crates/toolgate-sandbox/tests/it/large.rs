//! The largest result that a script may get can be worked with.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallResponse, EngineCall, LookupResult, Pool, RunLimits, SandboxScript, Tools,
};
use toolgate_testkit::deadline;

use crate::support::{ending, limits, pool, python, raw, typescript};

/// Tools: `records` answers with a list of records, as large as a result may be.
#[derive(Debug)]
struct Records(Box<RawValue>);

impl Records {
    fn of(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap();
        let record = |number: usize| {
            format!(
                r#"{{"id":{number},"name":"record {number}","price":12.5,"tags":["red","green"],"#
            ) + r#""owner":{"name":"Ada","active":true},"text":"What a record is about."}"#
        };
        let mut text = String::from("[");
        for number in 0.. {
            let record = record(number);
            if text.len() + record.len() + 1 > bytes {
                break;
            }
            text += &record;
            text.push(',');
        }
        text.pop();
        text.push(']');
        Self(raw(&text))
    }
}

impl Tools for Records {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let found = |name| LookupResult::Tool {
            name,
            input_schema: raw("{\"type\":\"object\"}"),
            output_schema: None,
        };
        let found = names.into_iter().map(found).collect();
        Box::pin(std::future::ready(found))
    }

    fn call(
        &self,
        _call: EngineCall,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        Box::pin(std::future::ready(CallResponse::Ended(Ok(self.0.clone()))))
    }
}

/// Builds the text of the result, prints it, and parses it.
const TYPESCRIPT: &str = "\
    const records = await list({});
    const text = JSON.stringify(records);
    console.log(text);
    const again = JSON.parse(text);
    return records.length === again.length;";
const PYTHON: &str = "\
import json
records = await list_records()
text = json.dumps(records)
print(text)
again = json.loads(text)
len(records) == len(again)";

async fn assert_workable(script: SandboxScript) {
    assert_workable_in(&pool(), script).await;
}

async fn assert_workable_in(pool: &Pool, script: SandboxScript) {
    // The memory that a script has by default.
    let limits = RunLimits { cpu: deadline(), ..limits() };
    let tools = Arc::new(Records::of(limits.result_bytes));
    let report = pool.run(script, &limits, tools, CancellationToken::new()).await;
    assert_eq!(ending(&report), "value: true");
}

#[tokio::test]
async fn typescript_builds_prints_and_parses_the_largest_result() {
    assert_workable(typescript(TYPESCRIPT)).await;
}

#[tokio::test]
async fn python_builds_prints_and_parses_the_largest_result() {
    assert_workable(python(PYTHON)).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_interpreter_builds_prints_and_parses_the_largest_result() {
    assert_workable_in(&crate::interpreter::pool(), python(PYTHON)).await;
}
