//! `toolgate demo`.

use serde_json::Value;

use crate::support::Workplace;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[tokio::test]
async fn the_numbers_add_up() {
    let outcome = Workplace::empty().run(&["demo", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = outcome.json();
    assert!(number(&told["servers"]) >= 5 && number(&told["tools"]) > 100, "{told}");
    let steps = told["steps"].as_array().unwrap();
    assert!(steps.len() >= 3);
    let sum = |steps: &mut dyn Iterator<Item = &Value>| -> u64 {
        steps.map(|step| number(&step["tokens"])).sum()
    };
    assert_eq!(number(&told["exchanges"]["toolgate"]), sum(&mut steps.iter()));
    let direct = sum(&mut steps.iter().filter(|step| step["alsoDirectly"] == true));
    assert_eq!(number(&told["exchanges"]["direct"]), direct);
    for way in ["direct", "toolgate"] {
        let total = number(&told["definitions"][way]) + number(&told["exchanges"][way]);
        assert_eq!(number(&told["total"][way]), total, "{way}");
    }
    assert!(number(&told["definitions"]["toolgate"]) <= 1_000);
    assert!(number(&told["total"]["toolgate"]) < number(&told["total"]["direct"]));
}

#[tokio::test]
async fn the_readme_shows_what_the_demo_prints() {
    let outcome = Workplace::empty().run(&["demo"]).await;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (_, after) = readme.split_once("<!-- effect:begin -->\n```text\n").unwrap();
    let (shown, _) = after.split_once("```\n<!-- effect:end -->").unwrap();
    assert!(outcome.stdout.contains(shown.trim_end()), "the README is out of date:\n{shown}");
}

#[tokio::test]
async fn the_whole_demo() {
    let workplace = Workplace::empty();
    let outcome = workplace.run(&["demo"]).await;
    assert_eq!(workplace.run(&["demo"]).await.shown(), outcome.shown(), "the same each time");
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
    1. Ten demo servers, each a process of its own. The ordinary way puts all of this
       into the model's context before its first word:

        server         tools  tokens  of context
        crm               18   2,548       1.3 %
        ticketing         19   2,415       1.2 %
        notifications     17   2,318       1.2 %
        logging           16   2,230       1.1 %
        deploy            18   2,190       1.1 %
        metrics           16   1,951       1.0 %
        inventory         14   1,935       1.0 %
        calendar          13   1,917       1.0 %
        docs              15   1,763       0.9 %
        team              10   1,048       0.5 %
        all servers      156  20,315      10.2 %
        a session now      3     300       0.1 %

       A session is deferred (stable): 20,315 tokens are more than 10,000, which is 5 % of a context of 200,000 tokens.

    2. Through toolgate the model sees three tools and finds the rest. Its task: open a
       ticket for the error that the services log most often.

       > search_tools({"query":"error logs of the last hours","limit":3})
         3 of 156 tools for "error logs of the last hours":

         logging (16 tools): Logs of all services: read, search, follow traces, alert rules.
         - logging_getLogStats: Count log entries by level, service or hour over a time range, without returning the en… (73 more characters)
         - logging_getLogs: Fetch log entries, newest first, optionally restricted to a level, a service and a time ran… (142 more characters)
         - logging_exportLogs: Start an export of matching log entries to a file in the archive bucket. Returns the exp… (37 more characters)

         Parameters: get_tool_details. To call: call_tool.
         (184 tokens)

       > get_tool_details({"names":["logging_getLogs"]})
         logging_getLogs (server logging)
         {"name":"getLogs","description":"Fetch log entries, newest first, optionally restricted to a level, a service … (1762 more characters)
         (438 tokens)

       > call_tool({"name":"logging_getLogs","arguments":{"level":"error","since":"6h"}})
         [{"id":"log-00008","timestamp":"2026-10-15T09:22:20Z","level":"error","service":"auth","host":"auth-us1-3","me… (20963 more characters)
         (6,860 tokens)

       > search_tools({"query":"open a ticket for a bug","limit":3})
         3 of 156 tools for "open a ticket for a bug":

         ticketing (19 tools): Issues of the shop's project: create, triage, comment, plan.
         - ticketing_reopenIssue: Open a closed issue again, for example when a fix did not hold.
         - ticketing_closeIssue: Close an issue with a resolution. A closed issue can be opened again with reopenIssue.
         - ticketing_createIssue: Create a new issue in the project's tracker. Only the title is required; the priority… (82 more characters)

         Parameters: get_tool_details. To call: call_tool.
         (150 tokens)

       > get_tool_details({"names":["ticketing_createIssue"]})
         ticketing_createIssue (server ticketing)
         {"name":"createIssue","description":"Create a new issue in the project's tracker. Only the title is required; … (3219 more characters)
         (780 tokens)

       > call_tool({"name":"ticketing_createIssue","arguments":{"title":"Payment provider timeout after 30s","body":"Th… (79 more characters)
         {"id":"ISS-1001","title":"Payment provider timeout after 30s","body":"The error that was logged most often in … (176 more characters)
         (130 tokens)

    3. What that cost the context, in tokens of o200k:

                                  directly  with toolgate
        definitions of 156 tools    20,315            300
        the conversation above       6,990          8,542
        together                    27,305          8,842

       67.6 % of the context saved. Definitions stay out of it however many servers you add.
       Next: toolgate tokens --config FILE shows the same for your own servers.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_demo_server_of_another_name_is_refused() {
    let outcome = Workplace::empty().run(&["demo-server", "nobody"]).await;
    assert_ne!(outcome.code, Some(0));
    insta::assert_snapshot!(outcome.stderr, @"error: there is no demo server `nobody`; there are logging, ticketing, team, calendar, notifications, crm, inventory, deploy, docs, metrics");
}
