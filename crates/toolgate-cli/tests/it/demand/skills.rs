//! Skills.

use serde_json::json;

use crate::{
    fixtures::notes,
    support::{META, Workplace, call, entry_with, list, names, text},
};

fn workplace() -> Workplace {
    let lazy = json!({ "lazy": true, "description": "Notes" });
    let workplace = Workplace::new(&json!({
        "mcpServers": { "notes": entry_with(&notes(), lazy) },
        "skills": ["./skills"], "toolSearch": { "enabled": true },
    }));
    write(
        &workplace,
        "minutes",
        "---\nname: minutes\ndescription: Write the minutes of a meeting\nmcp-servers: [notes, missing]\n\
         ---\n# Minutes\n\nWrite down who was there.\n",
    );
    workplace
}

fn write(workplace: &Workplace, name: &str, content: &str) {
    let folder = workplace.path().join("skills").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), content).unwrap();
}

#[tokio::test]
async fn a_skill_is_found_and_loading_it_connects_what_it_needs() {
    let workplace = workplace();
    let mut gateway = workplace.connect(&[]).await;
    let offered = ["search_available_servers", "enable_server", "disable_server", "load_skill"];
    assert_eq!(names(&list(&mut gateway).await), [&META[..], &offered].concat());
    let query = json!({ "query": "minutes of a meeting" });
    let found = call(&mut gateway, "search_tools", query.clone()).await;
    insta::assert_snapshot!(text(&found), @r#"
    No tool matches "minutes of a meeting". The servers:
    - notes (not connected): Notes

    Skills: minutes (Write the minutes of a meeting). To use one: load_skill.
    "#);
    let found = call(&mut gateway, "search_available_servers", query).await;
    insta::assert_snapshot!(text(&found), @r#"
    For "minutes of a meeting":
    - minutes (skill): Write the minutes of a meeting
    To use a skill: load_skill.
    "#);
    let loaded = call(&mut gateway, "load_skill", json!({ "name": "minutes" })).await;
    insta::assert_snapshot!(text(&loaded), @"
    Skill minutes

    # Minutes

    Write down who was there.

    Server notes is connected: 4 tools (notes_create_note, notes_find_notes, notes_delete_note, notes_shareNoteWithTeam). search_tools finds them.

    There is no server `missing`; search_available_servers finds those there are.
    ");
    let unknown = call(&mut gateway, "load_skill", json!({ "name": "minute" })).await;
    insta::assert_snapshot!(text(&unknown), @"There is no skill `minute`. Nearest: minutes.");
}

#[tokio::test]
async fn a_long_skill_is_read_in_parts() {
    let workplace = workplace();
    let lines: Vec<String> = (0..5_000).map(|number| format!("Step {number}.")).collect();
    let lines = lines.join("\n");
    write(&workplace, "long", &format!("---\nname: long\ndescription: Long\n---\n{lines}"));
    let mut gateway = workplace.connect(&[]).await;
    let loaded = call(&mut gateway, "load_skill", json!({ "name": "long" })).await;
    let shown = text(&loaded);
    assert!(shown.len() < 25_000 && !shown.contains("Step 4999."), "{}", shown.len());
    let id = shown.split("id: ").nth(1).unwrap().split(',').next().unwrap();
    let rest = call(&mut gateway, "read_output", json!({ "id": id, "pattern": "Step 4999" })).await;
    assert!(text(&rest).contains("Step 4999."), "{rest}");
}

#[tokio::test]
async fn people_see_their_skills_and_what_is_wrong_with_them() {
    let workplace = workplace();
    write(&workplace, "broken", "no head");
    let shell = async |arguments: &[&str]| {
        let shown = workplace.run(arguments).await.shown();
        shown.replace(&workplace.path().display().to_string(), "HERE")
    };
    insta::assert_snapshot!(shell(&["skills"]).await, @"
    exit code 1
    --- stdout
     skill    needs           description
     minutes  notes, missing  Write the minutes of a meeting
    --- stderr
    warning: skills/broken/SKILL.md: it is left out: it does not begin with `---`
    ");
    insta::assert_snapshot!(shell(&["skills", "show", "minutes"]).await, @"
    exit code 0
    --- stdout
    minutes: Write the minutes of a meeting
    needs: notes, missing

    # Minutes

    Write down who was there.
    --- stderr
    ");
    insta::assert_snapshot!(shell(&["skills", "show", "minute"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no skill `minute`
      hint: did you mean minutes?
    ");
    let json = workplace.run(&["skills", "--json"]).await.json();
    assert_eq!(json["skills"][0]["servers"], json!(["notes", "missing"]));
    assert_eq!(json["problems"].as_array().unwrap().len(), 1);
}
