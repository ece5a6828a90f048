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
        let start = number(&told["definitions"][way]) + number(&told["instructions"][way]);
        let total = start + number(&told["exchanges"][way]);
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

/// With `TOOLGATE_UPDATE=1` it writes the pictures.
#[tokio::test]
async fn the_pictures_show_what_the_demo_measures() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let folder = tempfile::tempdir().unwrap();
    let shown = if std::env::var_os("TOOLGATE_UPDATE").is_some() { &docs } else { folder.path() };
    let outcome = Workplace::empty().run(&["demo", "--picture", shown.to_str().unwrap()]).await;
    assert_eq!(outcome.shown(), "exit code 0\n--- stdout\n--- stderr\n");
    for name in ["effect-light.svg", "effect-dark.svg"] {
        let picture = std::fs::read_to_string(shown.join(name)).unwrap();
        let written = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
        assert!(
            picture == written,
            "docs/{name} is out of date: run this test with TOOLGATE_UPDATE=1"
        );
    }
}

#[tokio::test]
async fn the_demo_fits_on_a_few_screens() {
    let outcome = Workplace::empty().run(&["demo"]).await;
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines.len() < 60, "{} lines", lines.len());
    let wide = lines.iter().find(|line| line.chars().count() > 80);
    assert!(wide.is_none(), "{wide:?}");
}

#[tokio::test]
async fn the_whole_demo() {
    let workplace = Workplace::empty();
    let outcome = workplace.run(&["demo"]).await;
    assert_eq!(workplace.run(&["demo"]).await.shown(), outcome.shown(), "the same each time");
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
    1. Ten demo servers, each a process of its own. Without toolgate the model gets
       all of these definitions before its first word:

        server         tools  tokens  of context
        crm               18   2,548       1.3 %
        ticketing         19   2,415       1.2 %
        notifications     17   2,318       1.2 %
        7 others         102  13,034       6.5 %
        all servers      156  20,315      10.2 %

    2. Through toolgate it gets a few tools, and finds the others. Its task: open a
       ticket for the error that the services log most often.

       > search_tools({"query":"error logs of the last hours","limit":3})
         3 of 156 tools for "error logs of the last hours": (278 tokens)
       > get_tool_details({"names":["logging_getLogs"]})
         interface Result { (333 tokens)
       > call_tool({"name":"logging_getLogs","arguments":{"level":"error","since":…
         [{"id":"log-00008","timestamp":"2026-10-15T09:22:20Z","l… (6,860 tokens)
       > search_tools({"query":"open a ticket for a bug","limit":3})
         3 of 156 tools for "open a ticket for a bug": (232 tokens)
       > get_tool_details({"names":["ticketing_createIssue"]})
         interface Comment { (598 tokens)
       > call_tool({"name":"ticketing_createIssue","arguments":{"title":"Payment p…
         {"id":"ISS-1001","title":"Payment provider timeout after 3… (130 tokens)

    3. What that cost the context, in tokens of o200k:

                                  directly  with toolgate
        definitions of 156 tools    20,315            732
        instructions                   335            568
        the conversation above       6,990          8,431
        together                    27,640          9,731

       64.8 % saved. However many servers you add, their definitions stay out.

    4. For several calls the model writes a script. It runs in a sandbox, and only
       what it prints or returns comes back:

       // One ticket for each distinct error of the last hour.
       const logs = await logging_getLogs({ level: "error", since: "1h" });
       const counts = new Map<string, number>();
       for (const { message } of logs) counts.set(message, (counts.get(message) …
       const issues = await Promise.all(
         [...counts].map(([title, count]) =>
           ticketing_createIssue({ title, body: `Logged ${count} times in the la…
         )
       );
       const ids = issues.map((issue) => issue.id).sort();
       return `${logs.length} errors, ${ids.length} tickets: ${ids.join(", ")}`;
       > 12 errors, 5 tickets: ISS-1007, ISS-1008, ISS-1009, ISS-1010, ISS-1011

                                    call by call  as a script   saved
        typescript script, 6 calls         1,707          227  86.7 %
        python script, 26 calls          116,896          327  99.7 %

       Next: `toolgate tokens FILE` shows the cost of your own servers.
    --- stderr
    "#);
}

#[tokio::test]
async fn a_demo_server_of_another_name_is_refused() {
    let outcome = Workplace::empty().run(&["demo-server", "nobody"]).await;
    assert_ne!(outcome.code, Some(0));
    insta::assert_snapshot!(outcome.stderr, @"error: there is no demo server `nobody`; there are logging, ticketing, team, calendar, notifications, crm, inventory, deploy, docs, metrics");
}
