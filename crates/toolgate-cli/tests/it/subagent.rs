//! A model that chooses tools, or does not.

use serde_json::{Value, json};
use toolgate_testkit::{ModelEndpoint, ModelScript};

use crate::{
    fixtures::{notes, weather},
    support::{Outcome, Workplace, call, entry, text},
};

const KEY: &str = "s3cr3t-k3y";

fn workplace(subagent: &Value) -> Workplace {
    Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()), "weather": entry(&weather()) },
        "toolSearch": { "enabled": true, "strategy": "subagent", "subagent": subagent },
    }))
}

fn say(text: &str) -> ModelScript {
    ModelScript::Say(text.to_owned())
}

async fn search(workplace: &Workplace) -> Outcome {
    workplace.run(&["search", "note about the weather", "--limit", "2", "--detail", "name"]).await
}

#[tokio::test]
async fn a_model_chooses_and_invented_names_are_dropped() {
    let answer = r#"["weather_current_conditions", "weather_invented", "notes_delete_note"]"#;
    for provider in ["openai", "anthropic"] {
        let model = ModelEndpoint::start(say(answer), Some(KEY)).await.unwrap();
        let workplace = workplace(&json!({
            "provider": provider, "endpoint": model.url(), "model": "small", "apiKey": KEY,
        }));
        let outcome = search(&workplace).await;
        assert_eq!(
            outcome.shown(),
            "exit code 0\n--- stdout\n2 of 6 tools for \"note about the weather\":\n\n\
             weather (2 tools)\n- weather_current_conditions\n\n\
             notes (4 tools)\n- notes_delete_note\n\n\
             To call: call_tool. What parameters mean: get_tool_details.\n--- stderr\n",
            "{provider}"
        );
        let asked = model.questions()[0].to_string();
        assert!(asked.contains("weather_forecast(place: string): Weather of the next days"));
    }
}

#[tokio::test]
async fn if_the_model_fails_hybrid_ranks_and_the_result_says_so() {
    let model = ModelEndpoint::start(say("[]"), Some(KEY)).await.unwrap();
    let settings = |key: &str, seconds: f64| json!({ "endpoint": model.url(), "model": "small", "apiKey": key, "timeoutSeconds": seconds });
    let (patient, hasty) = (workplace(&settings(KEY, 60.0)), workplace(&settings(KEY, 0.2)));
    let strange = workplace(&settings("wr0ng-k3y", 60.0));
    let by_hybrid = ["search", "note about the weather", "--limit", "2", "--detail", "name"];
    let plain = patient.run(&[&by_hybrid[..], &["--strategy", "hybrid"]].concat()).await.stdout;
    let mut told = Vec::new();
    for (script, workplace) in [
        (say("[]"), &patient),
        (say(r#"["weather_invented"]"#), &patient),
        (say("notes_find_notes, I think"), &patient),
        (ModelScript::Body("{".into()), &patient),
        (ModelScript::Status(500), &patient),
        (ModelScript::Flood(5_000_000), &patient),
        (ModelScript::Never, &hasty),
        (say("[]"), &strange),
    ] {
        model.script(script);
        let outcome = search(workplace).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let note = outcome.stdout.lines().find(|line| line.contains("ranked by")).unwrap();
        assert_eq!(outcome.stdout.replace(&format!("{note}\n"), ""), plain, "but for the note");
        assert!(!outcome.shown().contains("k3y"), "{outcome:?}");
        told.push(note.to_owned());
    }
    insta::assert_snapshot!(told.join("\n"), @r"
    The model that ranks named none of the candidates: ranked by hybrid.
    The model that ranks named none of the candidates: ranked by hybrid.
    The model that ranks failed (its answer is not a list of names): ranked by hybrid.
    The model that ranks failed (the answer of the model cannot be read): ranked by hybrid.
    The model that ranks failed (the endpoint of the model answered with HTTP 500): ranked by hybrid.
    The model that ranks failed (the answer of the model is too large): ranked by hybrid.
    The model that ranks did not answer in 0.2 s: ranked by hybrid.
    The model that ranks failed (the endpoint of the model does not accept the key, HTTP 401): ranked by hybrid.
    ");
}

#[tokio::test]
async fn a_session_gets_it_too() {
    let model = ModelEndpoint::start(say(r#"["notes_delete_note"]"#), None).await.unwrap();
    let workplace = workplace(&json!({ "endpoint": model.url(), "model": "small" }));
    let mut client = workplace.connect(&[]).await;
    let arguments = json!({ "query": "weather", "limit": 1, "detail": "name" });
    // The model cannot add candidates.
    let result = call(&mut client, "search_tools", arguments.clone()).await;
    assert!(text(&result).contains("- weather_"), "{}", text(&result));
    model.script(say(r#"["weather_forecast", "weather_forecast"]"#));
    let result = call(&mut client, "search_tools", arguments).await;
    assert!(text(&result).contains("- weather_forecast\n"), "{}", text(&result));
    assert_eq!(result["structuredContent"]["found"], 1);
}

#[tokio::test]
async fn without_a_model_there_is_an_error_with_a_hint() {
    let config = json!({
        "mcpServers": { "notes": entry(&notes()) }, "toolSearch": { "strategy": "subagent" },
    });
    let workplace = Workplace::with_text(&config.to_string());
    let outcome = workplace.run(&["config", "check"]).await;
    assert_eq!(outcome.code, Some(1));
    let problem = outcome.stderr.split_once("`toolSearch").unwrap().1;
    insta::assert_snapshot!(problem, @r#"
    .strategy` is `subagent`, but there is no model to ask
      hint: write `"subagent": { "endpoint": "http://localhost:11434/v1", "model": "…" }` in `toolSearch`, or choose another strategy
    "#);
    let outcome = search(&workplace).await;
    assert!(outcome.stdout.contains("No model is set up to rank tools: ranked by hybrid."));

    let plain = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let outcome = plain.run(&["search", "note", "--strategy", "subagent"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 2
    --- stdout
    --- stderr
    error: there is no model to ask, which the strategy `subagent` needs
      hint: name one in the configuration: "toolSearch": { "subagent": { "endpoint": "http://localhost:11434/v1", "model": "…" } }; docs/search.md has more
    "#);
    let outcome = plain.run(&["eval", "x.json", "--strategy", "subagent"]).await;
    insta::assert_snapshot!(outcome.shown(), @r"
    exit code 2
    --- stdout
    --- stderr
    error: `subagent` cannot be measured: it asks a model for every query
      hint: what it chooses from is measured by --strategy hybrid, at R@10
    ");
}
