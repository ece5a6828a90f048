//! Namespaces.

use serde_json::json;

use crate::{
    fixtures::{notes, weather},
    support::{META, Workplace, entry, list, names},
};

#[tokio::test]
async fn a_namespace_has_its_own_servers_and_mode() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()), "weather": entry(&weather()) },
        "namespaces": {
            "outside": { "servers": ["weather"], "exclusive": true },
            "all": { "servers": ["notes", "weather"], "mode": "stable" },
        },
    }));
    let seen = async |arguments: &[&str]| {
        let mut gateway = workplace.connect(arguments).await;
        let listed = list(&mut gateway).await;
        names(&listed).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let default = seen(&[]).await;
    assert!(default.iter().all(|name| name.starts_with("notes_")), "{default:?}");
    assert_eq!(
        seen(&["--namespace", "outside"]).await,
        ["weather_forecast", "weather_current_conditions"]
    );
    assert_eq!(seen(&["--namespace", "all"]).await, META);

    // What is switched off in one is on in the others.
    let off = workplace.run(&["disable", "weather", "--namespace", "all"]).await;
    assert_eq!(off.code, Some(0), "{off:?}");
    assert_eq!(seen(&["--namespace", "outside"]).await.len(), 2);
    let status = workplace.run(&["status", "--namespace", "all", "--json"]).await.json();
    assert_eq!(status["servers"][1]["state"], "disabled", "{status}");
    insta::assert_snapshot!(
        workplace.run(&["status", "--namespace", "al"]).await.shown().replace(
            &workplace.path().display().to_string(), "HERE"
        ),
        @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json has no namespace `al`
      hint: it has outside, all
    "
    );
}
