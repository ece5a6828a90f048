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
    for block in ["effect", "scripts"] {
        let (_, after) = readme.split_once(&format!("<!-- {block}:begin -->\n```text\n")).unwrap();
        let (shown, _) = after.split_once(&format!("```\n<!-- {block}:end -->")).unwrap();
        assert!(outcome.stdout.contains(shown.trim_end()), "the README is out of date:\n{shown}");
    }
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
        a session now      6     696       0.3 %

       A session is deferred (stable): 20,707 tokens are more than 10,000, which is 5 % of a context of 200,000 tokens.

    2. Through toolgate the model sees a few tools and finds the rest. Its task: open a
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
        definitions of 156 tools    20,315            696
        the conversation above       6,990          8,542
        together                    27,305          9,238

       66.2 % of the context saved. Definitions stay out of it however many servers you add.

    4. For several calls the model writes a script. It runs in a sandbox, its calls go to the
       servers, and only what it prints or returns comes back:

       // One ticket for each distinct error of the last hour.
       const logs = await logging_getLogs({ level: "error", since: "1h" });
       const counts = new Map<string, number>();
       for (const { message } of logs) counts.set(message, (counts.get(message) ?? 0) + 1);

       const issues = await Promise.all(
         [...counts].map(([title, count]) =>
           ticketing_createIssue({ title, body: `Logged ${count} times in the last hour.`, labels: ["bug"] })
         )
       );
       const ids = issues.map((issue) => issue.id).sort();
       return `${logs.length} errors, ${ids.length} tickets: ${ids.join(", ")}`;
       > 12 errors, 5 tickets: ISS-1007, ISS-1008, ISS-1009, ISS-1010, ISS-1011
       Calls completed: logging_getLogs, ticketing_createIssue ×5.

       # Who spent more than the travel budget of their level in Q3?
       team = await get_team_members("engineering")

       levels = list(set(m["level"] for m in team))
       results = await asyncio.gather(*[get_budget_by_level(level) for level in levels])
       budgets = {level: budget for level, budget in zip(levels, results)}

       expenses = await asyncio.gather(*[get_expenses(m["id"], "Q3") for m in team])

       exceeded = []
       for member, items in zip(team, expenses):
           spent = sum(item["amount"] for item in items if item["category"] == "travel")
           limit = budgets[member["level"]]["travel_limit"]
           if spent > limit:
               exceeded.append({"name": member["name"], "spent": round(spent, 2), "limit": limit})
       print(json.dumps(exceeded))
       > [{"name": "Hana Kobayashi", "spent": 9376.45, "limit": 8000}, {"name": "Lucia Moretti", "spent": 6515.46, "l… (73 more characters)
       Calls completed: get_team_members, get_budget_by_level ×5, get_expenses ×20.

                                    call by call  as a script   saved
        typescript script, 6 calls         1,707          227  86.7 %
        python script, 26 calls          116,896          327  99.7 %

       Next: toolgate tokens --config FILE shows the cost of your own servers.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_demo_server_of_another_name_is_refused() {
    let outcome = Workplace::empty().run(&["demo-server", "nobody"]).await;
    assert_ne!(outcome.code, Some(0));
    insta::assert_snapshot!(outcome.stderr, @"error: there is no demo server `nobody`; there are logging, ticketing, team, calendar, notifications, crm, inventory, deploy, docs, metrics");
}
