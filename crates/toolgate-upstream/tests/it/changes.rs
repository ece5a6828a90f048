//! A changed list is fetched again, that of this server alone.

use serde_json::json;
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra};

use crate::support::{Gate, NAME, Over, serve, stdio};

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
