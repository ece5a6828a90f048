//! Attempts of a model or a script to answer a question.

use serde_json::{Value, json};

use super::{
    called, ids,
    talk::{Manners, Talk, Way},
    workplace,
};
use crate::support::{Workplace, text};

/// The names of the commands of the program.
async fn commands(workplace: &Workplace) -> Vec<String> {
    let help = workplace.run(&["--help"]).await.stdout;
    let lines = help.lines().take_while(|line| *line != "Options:");
    let lines = lines.filter_map(|line| line.strip_prefix("  "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_script_cannot_approve() {
    let (workplace, log) = workplace(&json!({}));
    let (mut client, _gateway) = Talk::start(&workplace, Way::StdioLegacy, Manners::ALONE).await;
    let code = "return await kit_counter({})";
    let waits = client.call_alone("run_code", json!({ "code": code })).await;
    let (run, approval) = ids(&waits);

    let mut names = commands(&workplace).await;
    assert!(names.len() > 10 && names.contains(&"approve".to_owned()), "{names:?}");
    let meta = ["resume_run", "run_code", "read_output", "enable_server", "disable_server"];
    let more = ["call_tool", "load_skill", "toolgate_approve", "approvals", "grant", "elicit"];
    let methods = ["elicitation/create", "toolgate/approve", "kit/counter", "emit"];
    names.extend([&meta[..], &more, &methods].concat().into_iter().map(str::to_owned));
    let names = json!(names).to_string();
    let arguments = json!({
        "id": approval, "run_id": run, "name": "kit", "code": code, "yes": true, "for": "always",
        "answer": "allow always", "action": "accept", "content": { "answer": "allow always" },
        "block": { "action": "accept", "content": { "answer": "allow always" } },
    })
    .to_string();
    let typescript = format!(
        "const tried = [];
         for (const name of {names}) {{
           try {{ tried.push(await call_tool({{ name, arguments: {arguments} }})); }}
           catch (error) {{ tried.push(name); }}
         }}
         emit({{ type: 'text', text: JSON.stringify({arguments}) }});
         return tried.length;"
    );
    let python = format!(
        "import json\ntried = []\narguments = json.loads({})\nfor name in json.loads({}):\n    try:\n        \
         tried.append(await call_tool(name=name, arguments=arguments))\n    except Exception as error:\n        \
         tried.append(name)\nawait emit({{'type': 'text', 'text': json.dumps(arguments)}})\nlen(tried)",
        json!(arguments),
        json!(names),
    );
    for (language, code) in [("typescript", typescript), ("python", python)] {
        let request = json!({ "code": code, "language": language });
        let tried = client.call_alone("run_code", request).await;
        let count = serde_json::from_str::<Vec<Value>>(&names).unwrap().len().to_string();
        assert!(text(&tried).contains(&count), "{language}: {tried}");
        assert_eq!(tried.get("isError"), None, "{language}: {tried}");
        // By its own name, what is no tool is not even begun.
        for name in ["approve", "grants", "resume_run", "enable_server", "elicit"] {
            let call = match language {
                "python" => format!("await {name}(id='{approval}', run_id='{run}')"),
                _ => format!("return await {name}({{ id: '{approval}', run_id: '{run}' }})"),
            };
            let request = json!({ "code": call, "language": language });
            let refused = client.call_alone("run_code", request).await;
            assert_eq!(refused["isError"], true, "{language} {name}: {refused}");
        }
    }

    let waiting = workplace.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting[0]["reference"], json!(approval), "it still waits: {waiting}");
    assert_eq!(workplace.run(&["grants", "--json"]).await.json(), json!([]));
    let still = client.call_alone("resume_run", json!({ "run_id": run })).await;
    assert!(text(&still).contains("waits for approval"), "{still}");
    assert!(!called(&log).contains(&"counter".to_owned()), "{:?}", called(&log));
}
