//! A changed list is fetched again, that of this server alone.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra};
use toolgate_upstream::{CallError, CallOptions, SendCheck};

use crate::support::{Gate, NAME, Over, command, lines, millis, serve, stdio, with_limits};

#[tokio::test]
async fn a_change_is_noticed_in_both_eras_over_every_transport() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let fixture =
                Fixture::new("changing").with_builtins([Builtin::ChangeTools]).with_era(era);
            let (spec, _running) = serve(fixture, over).await;
            let mut other = stdio(&Fixture::new("other").with_builtins([Builtin::Echo]));
            other.name = "other".into();
            let gate = Gate::start(vec![spec, other]);
            gate.settled_ready(NAME).await;
            gate.settled_ready("other").await;

            // A modern server announces only to those whose subscription has come in.
            let noticed = |gate: &Gate| gate.told.tools_of(NAME).contains(&"later".to_owned());
            while !noticed(&gate) {
                gate.structured("change_tools", json!({ "remove": "later" })).await;
                gate.structured("change_tools", json!({ "add": "later" })).await;
                let listing = gate.until("the new list", noticed);
                let _ = tokio::time::timeout(crate::support::millis(2000), listing).await;
            }
            assert_eq!(gate.told.listings_of("other"), 1, "{era:?} over {over:?}");
            gate.call("later", json!({})).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_change_during_calls_is_noticed() {
    let faults = Faults { list_changed_after_calls: Some(2), ..Faults::default() };
    let fixture = Fixture::new("growing").with_builtins([Builtin::Echo]).with_faults(faults);
    let gate = Gate::ready(stdio(&fixture)).await;
    gate.call("echo", json!({})).await.unwrap();
    assert_eq!(gate.told.tools_of(NAME), ["echo"]);
    gate.call("echo", json!({})).await.unwrap();
    gate.until("the new list", |gate| gate.told.tools_of(NAME) == ["echo", "appeared"]).await;
}

/// A server for the tests below. Its first argument is a folder. The tool `change` announces a new
/// list. Each call of `act` is a line in the file `calls`. The files `silent`, `broken` and `endless`
/// decide about later lists: no response, an error, or another announcement after each list.
const ANNOUNCER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
announce() { echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; }
while read -r line; do
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case "$line" in
    *'"initialize"'*)
      reply '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"a","version":"1"}}' ;;
    *'"tools/list"'*)
      if [ -e "$0/silent" ]; then continue; fi
      if [ -e "$0/broken" ]; then
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no list"}}\n' "$id"; continue
      fi
      reply '{"tools":[{"name":"act","inputSchema":{"type":"object"}},{"name":"change","inputSchema":{"type":"object"}}]}'
      if [ -e "$0/endless" ]; then announce; fi ;;
    *'"change"'*) announce; reply '{"content":[]}' ;;
    *'"act"'*) echo act >> "$0/calls"; reply '{"content":[]}' ;;
  esac
done
"#;

/// Starts the announcer; a call of it has a short time.
async fn announcer(folder: &Path) -> Gate {
    let spec = command("/bin/sh", &["-c", ANNOUNCER, folder.to_str().unwrap()]);
    let mut spec = with_limits(spec, |limits| limits.idle = millis(2000));
    spec.remembered_era = Some(toolgate_mcp::Era::Legacy);
    Gate::ready(spec).await
}

/// Calls `act` as the broker does: with a check, which the definition that is known passes.
async fn act(gate: &Gate) -> Result<Value, CallError> {
    let send_check = Some(SendCheck::new(|| true));
    gate.call_with("act", json!({}), CallOptions { send_check, ..CallOptions::default() }).await
}

#[tokio::test]
async fn a_call_is_not_sent_before_an_announced_list_has_come() {
    for (fault, said) in [("silent", "did not come within"), ("broken", "could not be fetched")] {
        let folder = tempfile::tempdir().unwrap();
        let gate = announcer(folder.path()).await;
        act(&gate).await.unwrap();
        std::fs::write(folder.path().join(fault), "").unwrap();
        gate.call("change", json!({})).await.unwrap();
        for _ in 0..2 {
            let refused = act(&gate).await.unwrap_err();
            assert!(matches!(refused, CallError::DefinitionUnknown { .. }), "{refused}");
            let refused = refused.to_string();
            assert!(refused.contains(said) && refused.contains("nothing was sent"), "{refused}");
        }
        assert_eq!(lines(&folder.path().join("calls")).len(), 1, "{fault}");
        if fault == "broken" {
            std::fs::remove_file(folder.path().join(fault)).unwrap();
            act(&gate).await.unwrap();
            assert_eq!(gate.told.listings_of(NAME), 2);
        }
    }
}

#[tokio::test]
async fn a_server_that_announces_without_end_is_still_called() {
    let folder = tempfile::tempdir().unwrap();
    let gate = announcer(folder.path()).await;
    std::fs::write(folder.path().join("endless"), "").unwrap();
    gate.call("change", json!({})).await.unwrap();
    for _ in 0..3 {
        act(&gate).await.unwrap();
    }
    assert!(gate.told.listings_of(NAME) > 1, "it was listed again");
}
