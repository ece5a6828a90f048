//! Findings as they are shown.

use super::fixture::Fake;
use crate::check::Language;

fn rendered(language: Language, source: &str) -> String {
    let checked = Fake::new().check(language, source);
    let shown: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    shown.join("\n\n")
}

#[test]
fn typescript() {
    let source = r#"import { z } from "zod";
const issues = await github_list_isues({ owner: "a" });
const open = await github_list_issues({ owner: "a", repos: "b", state: "opened", page: "2" });
await shop_buy({ lines: [{ sku: "a", count: 0 }], payment: { kind: "card" } });
github_create_issue({ title: `x ${open.length}`, labels: "bug" });
const members = get_team_members("engineering");
for (const member of members) console.log(notes_list().items);
await github.create_issue({ title: "x" });
const body = await fetch("https://example.com");
return isues;
"#;
    insta::assert_snapshot!(rendered(Language::TypeScript, source), @r#"
    1:1 there is no module `zod`
      | import { z } from "zod";
      | ^
      = all tools are functions already: call them without an import; what a library would do, write yourself

    2:22 there is no tool `github_list_isues`
      | const issues = await github_list_isues({ owner: "a" });
      |                      ^
      = did you mean `github_list_issues`?

    3:53 `github_list_issues` has no parameter `repos`
      | const open = await github_list_issues({ owner: "a", repos: "b", state: "opened", page: "2" });
      |                                                     ^
      = did you mean `repo`?

    3:72 `state` is one of `"open"`, `"closed"`, `"all"`
      | const open = await github_list_issues({ owner: "a", repos: "b", state: "opened", page: "2" });
      |                                                                        ^
      = did you mean `"open"`?

    3:88 `page` takes an integer, not a string
      | const open = await github_list_issues({ owner: "a", repos: "b", state: "opened", page: "2" });
      |                                                                                        ^
      = write `2` without quotes

    4:45 `lines[0].count` takes at least 1
      | await shop_buy({ lines: [{ sku: "a", count: 0 }], payment: { kind: "card" } });
      |                                             ^

    4:60 `payment` needs `number`
      | await shop_buy({ lines: [{ sku: "a", count: 0 }], payment: { kind: "card" } });
      |                                                            ^

    5:1 the call of `github_create_issue` is never awaited
      | github_create_issue({ title: `x ${open.length}`, labels: "bug" });
      | ^
      = write `await github_create_issue(…)`

    5:58 `labels` takes an array, not a string
      | github_create_issue({ title: `x ${open.length}`, labels: "bug" });
      |                                                          ^
      = put it into brackets: `[…]`

    6:34 `get_team_members` takes one object
      | const members = get_team_members("engineering");
      |                                  ^
      = write `get_team_members({ department: … })`

    7:22 `members` is the promise of `get_team_members`, not its result
      | for (const member of members) console.log(notes_list().items);
      |                      ^
      = write `members = await get_team_members(…)`

    7:43 this is the promise of `notes_list`, not its result
      | for (const member of members) console.log(notes_list().items);
      |                                           ^
      = write `(await notes_list(…)).items`

    8:7 there is no `github`
      | await github.create_issue({ title: "x" });
      |       ^
      = the tool is a function: write `github_create_issue({ … })`

    9:20 a script has no network
      | const body = await fetch("https://example.com");
      |                    ^
      = call a tool; `await search_tools({ query })` finds one

    10:8 `isues` is not defined
      | return isues;
      |        ^
      = did you mean `issues`?
    "#);
}

#[test]
fn typescript_syntax() {
    insta::assert_snapshot!(rendered(Language::TypeScript, "const a = 1;\nconst b = (a +;\n"), @r"
    2:15 syntax error: Unexpected token
      | const b = (a +;
      |               ^
    ");
    insta::assert_snapshot!(rendered(Language::TypeScript, "issues = await github_list_issues('a', 'b')\nfor issue in issues:\n    print(issue['title'])\n"), @r#"
    2:5 syntax error: Expected `(` but found `Identifier`
      | for issue in issues:
      |     ^
      = it reads as Python: set `language` to "python"
    "#);
}

#[test]
fn python() {
    let source = r#"import requests, json
issues = await github_list_isues("a")
open_ones = await github_list_issues("a", repos="b", state="opened", page="2")
await github_list_issues({"owner": "a", "repo": "b"})
github_create_issue(title=f"x {len(open_ones)}", labels="bug")
members = get_team_members("engineering")
for member in members:
    print(notes_list()["items"])
await github.create_issue(title="x")
with open("x") as file:
    print(isues, null)
"#;
    insta::assert_snapshot!(rendered(Language::Python, source), @r#"
    1:8 there is no module `requests`
      | import requests, json
      |        ^
      = the sandbox has no network; call a tool: `await search_tools(query)` finds one

    2:16 there is no tool `github_list_isues`
      | issues = await github_list_isues("a")
      |                ^
      = did you mean `github_list_issues`?

    3:43 `github_list_issues` has no parameter `repos`
      | open_ones = await github_list_issues("a", repos="b", state="opened", page="2")
      |                                           ^
      = did you mean `repo`?

    3:60 `state` is one of `"open"`, `"closed"`, `"all"`
      | open_ones = await github_list_issues("a", repos="b", state="opened", page="2")
      |                                                            ^
      = did you mean `"open"`?

    3:75 `page` takes an integer, not a string
      | open_ones = await github_list_issues("a", repos="b", state="opened", page="2")
      |                                                                           ^
      = write `2` without quotes

    5:1 the call of `github_create_issue` is never awaited
      | github_create_issue(title=f"x {len(open_ones)}", labels="bug")
      | ^
      = write `await github_create_issue(…)`

    5:57 `labels` takes a list, not a string
      | github_create_issue(title=f"x {len(open_ones)}", labels="bug")
      |                                                         ^
      = put it into brackets: `[…]`

    7:15 `members` is the coroutine of `get_team_members`, not its result
      | for member in members:
      |               ^
      = write `members = await get_team_members(…)`

    8:11 this is the coroutine of `notes_list`, not its result
      |     print(notes_list()["items"])
      |           ^
      = write `(await notes_list(…))[…]`

    9:7 there is no `github`
      | await github.create_issue(title="x")
      |       ^
      = the tool is a function: write `github_create_issue(…)`

    10:6 a script has no files
      | with open("x") as file:
      |      ^
      = call a tool; `await search_tools(query)` finds one

    11:11 `isues` is not defined
      |     print(isues, null)
      |           ^
      = did you mean `issues`?

    11:18 there is no `null`
      |     print(isues, null)
      |                  ^
      = write `None`
    "#);
}

#[test]
fn python_syntax() {
    insta::assert_snapshot!(rendered(Language::Python, "if x\n    print(1)\n"), @r"
    1:5 syntax error: Expected `:`, found newline
      | if x
      |     ^
    ");
    insta::assert_snapshot!(rendered(Language::Python, "const x = await notes_list({});\nreturn x;\n"), @r#"
    1:7 syntax error: Simple statements must be separated by newlines or semicolons
      | const x = await notes_list({});
      |       ^
      = it reads as TypeScript: set `language` to "typescript"
    "#);
}

#[test]
fn findings_are_limited() {
    let source = "nope();\n".repeat(3) + &"notes_list({ limit: 'x' });\n".repeat(100);
    let checked = Fake::new().check(Language::TypeScript, &source);
    assert_eq!(checked.findings.len(), crate::check::MAX_FINDINGS);
    assert_eq!(checked.findings_left_out, 3 + 200 - crate::check::MAX_FINDINGS);
}
