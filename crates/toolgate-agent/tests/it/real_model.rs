//! Turns with a real, small model over three wires. `scripts/real-model` installs it and runs this.

use std::{env, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};
use toolgate_agent::{Conversation, EndReason, ModelSettings, ToolDiscovery, WireApi};
use toolgate_testkit::within;

use crate::lab::{TestTools, read, settings};

const WIRES: [WireApi; 3] = [WireApi::Anthropic, WireApi::Responses, WireApi::Completions];
/// The model is slow, and says nothing that matters.
const ANSWER_TOKENS: u32 = 8;

#[tokio::test]
#[ignore = "it needs the packages that scripts/real-model installs"]
async fn a_real_model_answers_over_three_wires() {
    let python = env::var("TOOLGATE_REAL_MODEL").expect("run scripts/real-model");
    let mut process = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_model.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let url = within("the URL of the model", lines.next_line()).await.unwrap().unwrap();
    for api in WIRES {
        let base = if api == WireApi::Anthropic { url.clone() } else { format!("{url}/v1") };
        for (stream, discovery) in [(true, ToolDiscovery::Stable), (false, ToolDiscovery::Code)] {
            let mut model = ModelSettings::new(api, &base, "m");
            (model.stream, model.discovery) = (stream, Some(discovery));
            model.max_output_tokens = Some(ANSWER_TOKENS);
            let tools = TestTools::new();
            let provider = model.provider().unwrap();
            let mut conversation = Conversation::new(provider, tools, settings()).unwrap();
            // The second question sends the first answer back.
            for question in ["Say hello.", "And again."] {
                let (events, end) = read(conversation.ask(question)).await;
                let end =
                    end.unwrap_or_else(|error| panic!("{api:?} {stream}: {error}; {events:?}"));
                println!("{api:?}, stream {stream}: {:?} {:?}", end.reason, end.text);
                assert!(
                    matches!(end.reason, EndReason::Answered | EndReason::MaxTokens),
                    "{end:?}"
                );
                assert!(!end.text.is_empty(), "{end:?}");
                assert!(
                    end.tokens.output > 0 && end.tokens.output <= u64::from(ANSWER_TOKENS),
                    "{end:?}"
                );
            }
        }
    }
}
