//! What comes back.

use serde_json::{Value, json};

use super::{durable::shown, python, run, workplace};
use crate::support::{call, text};

#[tokio::test]
async fn a_script_calls_tools_and_only_its_value_is_returned() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "const sums = await Promise.all([1, 2, 3].map((n: number) => kit_add({ a: n, b: 1 })));\n\
         return sums.map((each) => each.sum);",
    )
    .await;
    assert_eq!(answer.get("isError"), None, "{answer}");
    insta::assert_snapshot!(text(&answer), @r"
    [2,3,4]
    Calls completed: kit_add ×3.
    ");
    let answer = python(
        &mut client,
        "sums = await asyncio.gather(*[kit_add(n, 1) for n in [1, 2, 3]])\n\
         print([each['sum'] for each in sums])",
    )
    .await;
    insta::assert_snapshot!(text(&answer), @r"
    [2, 3, 4]
    Calls completed: kit_add ×3.
    ");
}

#[tokio::test]
async fn one_run_searches_and_calls() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "const found = await search_tools({ query: 'add two numbers', limit: 1 });\n\
         const name = found.servers[0].tools[0].name;\n\
         const details = await get_tool_details({ names: [name], format: 'typescript' });\n\
         console.log(details.tools[0].declaration);\n\
         return await tools[name]({ a: 40, b: 2 });",
    )
    .await;
    insta::assert_snapshot!(text(&answer), @r#"
    /** Add two numbers. */
    declare function kit_add(args: { a: number; b: number }): Promise<{ sum: number }>;

    Returned: {"sum":42}
    Calls completed: search_tools, get_tool_details, kit_add.
    "#);
}

#[tokio::test]
async fn a_tool_that_was_just_found_can_be_called_in_both_languages() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = python(
        &mut client,
        "found = await search_tools(query='add two numbers', limit=1)\n\
         name = found['servers'][0]['tools'][0]['name']\n\
         await call_tool(name, {'a': 40, 'b': 2})",
    )
    .await;
    assert!(text(&answer).starts_with(r#"{"sum":42"#), "{answer}");
    let answer =
        run(&mut client, "return await call_tool({ name: 'kit_add', arguments: { a: 1, b: 2 } })")
            .await;
    assert!(text(&answer).starts_with(r#"{"sum":3"#), "{answer}");
    let unknown = run(&mut client, "return await call_tool({ name: 'kit_ad' })").await;
    assert!(text(&unknown).contains("kit_add"), "{unknown}");
}

#[tokio::test]
async fn python_gives_images_to_the_client() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let code = "blocks = await kit_media()\n\
                for block in blocks:\n    if block['type'] == 'image':\n        await emit(block)\nprint('done')";
    let answer = python(&mut client, code).await;
    let content = answer["content"].as_array().unwrap();
    let images = content.iter().filter(|block| block["type"] == "image").count();
    assert_eq!(images, 1, "{answer}");
}

#[tokio::test]
async fn a_failed_call_is_an_exception_that_can_be_caught() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "try { await kit_fail({ message: 'no luck' }); } catch (error) {\n\
         return `${error.name}: ${error.message} [${error.tool}]`; }",
    )
    .await;
    insta::assert_snapshot!(text(&answer), @r"
    ToolError: no luck [kit_fail]
    Failed: kit_fail.
    ");
    let answer = python(
        &mut client,
        "try:\n    await kit_fail(message='no luck')\nexcept Exception as error:\n    print('caught', error)",
    )
    .await;
    insta::assert_snapshot!(text(&answer), @r"
    caught kit_fail: no luck
    Failed: kit_fail.
    ");
}

#[tokio::test]
async fn a_script_gets_the_code_and_data_of_an_error() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "const error = JSON.parse('{\"code\": -32050, \"message\": \"boom\", \"data\": {\"k\": [1, null]}}');\n\
         try { await kit_rpc_error(error); } catch (error) {\n\
         return [error.message, error.content[0]._meta['toolgate/error']]; }",
    )
    .await;
    let told = text(&answer);
    assert!(told.contains("boom") && told.contains("-32050") && told.contains("\"k\""), "{told}");
}

#[tokio::test]
async fn an_uncaught_error_shows_its_line_and_the_calls_made() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "const first = await kit_add({ a: 1, b: 2 });\n\
         console.log('first', first.sum);\n\
         const slow = kit_sleep({ ms: 60000 });\n\
         await kit_fail({ message: 'no luck' });\n\
         await slow;",
    )
    .await;
    assert_eq!(answer["isError"], true);
    insta::assert_snapshot!(shown(&answer), @r#"
    first 3
    ToolError: no luck
      at line 4, column 7: await kit_fail({ message: 'no luck' });
    Calls completed: kit_add.
    Failed: kit_fail.
      kit_fail({"message":"no luck"}): no luck
    In flight at the end, effect unknown: kit_sleep.
      kit_sleep({"ms":60000})
    resume_run(run_id: "ID", code?) goes on, with corrected code if need be; what completed is not repeated.
    "#);
    let answer = python(
        &mut client,
        "first = await kit_add(1, 2)\nprint('first', first['sum'])\nawait kit_fail(message='no luck')\n",
    )
    .await;
    assert_eq!(answer["isError"], true);
    insta::assert_snapshot!(shown(&answer), @r#"
    first 3
    ToolError: kit_fail: no luck
      at line 3, column 1: await kit_fail(message='no luck')
    Calls completed: kit_add.
    Failed: kit_fail.
      kit_fail({"message":"no luck"}): no luck
    resume_run(run_id: "ID", code?) goes on, with corrected code if need be; what completed is not repeated.
    "#);
}

#[tokio::test]
async fn mistakes_are_found_before_anything_runs() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "await kit_counter({});\nkit_add({ a: 1 });\nawait kit_sleeep({ ms: 'long' });\nawait kit_add({ a: 'x', b: 2 });",
    )
    .await;
    assert_eq!(answer["isError"], true);
    insta::assert_snapshot!(text(&answer), @"
    The script did not run:
    2:1 `kit_add` needs `b`
      | kit_add({ a: 1 });
      | ^
      = call it as `kit_add({ a, b })`
    2:1 the call of `kit_add` is never awaited
      | kit_add({ a: 1 });
      | ^
      = write `await kit_add(…)`
    3:7 there is no tool `kit_sleeep`
      | await kit_sleeep({ ms: 'long' });
      |       ^
      = the nearest are `kit_sleep`, `kit_client` and `kit_stderr`
    4:20 `a` takes a number, not a string
      | await kit_add({ a: 'x', b: 2 });
      |                    ^
    ");
    let answer =
        python(&mut client, "await kit_counter()\nx = await kit_add(1, c=2)\nimport requests\n")
            .await;
    insta::assert_snapshot!(text(&answer), @r"
    The script did not run:
    2:11 `kit_add` needs `b`
      | x = await kit_add(1, c=2)
      |           ^
      = call it as `kit_add(a, b)`
    2:22 `kit_add` has no parameter `c`
      | x = await kit_add(1, c=2)
      |                      ^
      = it takes `a` and `b`
    3:8 there is no module `requests`
      | import requests
      |        ^
      = the sandbox has no network; call a tool: `await search_tools(query)` finds one
    ");
    let answer = run(&mut client, "const x = ;").await;
    insta::assert_snapshot!(text(&answer), @r"
    The script did not run:
    1:11 syntax error: Unexpected token
      | const x = ;
      |           ^
    ");
    let counted = run(&mut client, "return (await kit_counter({})).count").await;
    assert!(text(&counted).starts_with('1'), "nothing ran before: {counted}");
}

#[tokio::test]
async fn long_output_is_cut_and_can_be_read() {
    let mut client = workplace(&json!({ "maxOutputTokens": 200 })).connect(&[]).await;
    let code = "for (let n = 0; n < 5000; n++) console.log(`line ${n}${n === 4321 ? ' NEEDLE' : ''}`);\n\
                return 'the end';";
    let answer = run(&mut client, code).await;
    let shown = text(&answer).to_owned();
    assert!(shown.starts_with("line 0\n") && shown.contains("Returned: the end"), "{shown}");
    assert!(shown.contains("the script ran to the end; "), "{shown}");
    let id = shown.split("id: \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let found = call(&mut client, "read_output", json!({ "id": id, "pattern": "NEEDLE" })).await;
    assert!(text(&found).contains("line 4321 NEEDLE"), "{found}");
    let (mut all, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let page = call(&mut client, "read_output", json!({ "id": id, "offset": from })).await;
        let (part, note) = text(&page).rsplit_once('[').unwrap();
        offset =
            note.split("offset: ").nth(1).and_then(|next| next.trim_end_matches(']').parse().ok());
        all.push_str(if part.ends_with('\n') && offset.is_some() { part } else { part.trim_end() });
        assert!(all.len() < 200_000);
    }
    assert!(all.contains("line 0\n") && all.contains("line 2500") && all.ends_with("the end"));
    let unknown = call(&mut client, "read_output", json!({ "id": "out_0" })).await;
    assert_eq!(unknown["isError"], true);
    insta::assert_snapshot!(text(&unknown), @"There is no output `out_0`: only the latest outputs are kept. Repeat the call or the script with less output.");
}

#[tokio::test]
async fn images_pass_through_to_the_client_and_to_other_tools() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let answer = run(
        &mut client,
        "const blocks = await kit_media({});\n\
         const image = blocks.find((block) => block.type === 'image');\n\
         console.log(Object.keys(image).sort().join(' '), image.data.length < 30);\n\
         const sent = Object.fromEntries([['picture', image.data]]); const echoed = await kit_echo(sent);\n\
         emit(image);\n\
         return { sent: echoed.picture.length < 30 || echoed.picture.length, image };",
    )
    .await;
    let content = answer["content"].as_array().unwrap();
    let images: Vec<&Value> = content.iter().filter(|block| block["type"] == "image").collect();
    assert_eq!(images.len(), 2, "emitted and returned: {answer}");
    let data = images[0]["data"].as_str().unwrap();
    assert!(data.len() > 20 && !data.contains("toolgate-media"), "{data}");
    assert!(!text(&answer).contains(data), "{answer}");
}

#[tokio::test]
async fn the_return_type_is_learned() {
    let mut client = workplace(&json!({})).connect(&[]).await;
    let details = json!({ "names": ["kit_counter"], "format": "typescript" });
    let before = call(&mut client, "get_tool_details", details.clone()).await;
    insta::assert_snapshot!(text(&before), @r"
    /** Increment a counter and return it. */
    declare function kit_counter(args?: {}): Promise<unknown>;
    ");
    run(&mut client, "return await kit_counter({})").await;
    let after = call(&mut client, "get_tool_details", details).await;
    insta::assert_snapshot!(text(&after), @r"
    /** Increment a counter and return it. */
    declare function kit_counter(args?: {}): Promise</* inferred */ { count: number }>;
    ");
    let python = json!({ "names": ["kit_counter", "kit_add"], "format": "python" });
    insta::assert_snapshot!(text(&call(&mut client, "get_tool_details", python).await), @r#"
    class KitCounterResult(TypedDict):
        count: int
    async def kit_counter() -> KitCounterResult:  # inferred
        """Increment a counter and return it."""

    class KitAddResult(TypedDict):
        sum: float
    async def kit_add(a: float, b: float) -> KitAddResult:
        """Add two numbers."""
    "#);
}
