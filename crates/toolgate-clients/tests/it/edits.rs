use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_clients::{Edit, EditError, edited};
use toolgate_config::Format;

fn entry() -> Map<String, Value> {
    let entry =
        json!({ "command": "/opt/tool gate", "args": ["serve", "--stdio"], "env": { "A": "1" } });
    entry.as_object().unwrap().clone()
}

fn set(container: &str, name: &str) -> Edit {
    Edit::Set { container: vec![container.to_owned()], name: name.to_owned(), entry: entry() }
}

fn switch(container: &str, name: &str, key: &str, value: bool) -> Edit {
    let (container, name) = (vec![container.to_owned()], name.to_owned());
    Edit::Switch { container, name, key: key.to_owned(), value }
}

fn remove(container: &str, name: &str) -> Edit {
    Edit::Remove { container: vec![container.to_owned()], name: name.to_owned() }
}

#[test]
fn json_keeps_comments_order_and_line_ends() {
    let text = "\u{feff}// mine\r\n{\r\n\t\"theme\" : \"dark\", // why\r\n\t\"mcpServers\": {\r\n\t\t/* files */ \"files\": { \"command\":\"x\" },\r\n\t\t\"crm\": {\"url\": \"https://crm.example\"}, // last\r\n\t},\r\n}\r\n";
    let edits = [
        remove("mcpServers", "crm"),
        switch("mcpServers", "files", "disabled", true),
        set("mcpServers", "toolgate"),
    ];
    let new = edited(text, Format::Jsonc, &edits).unwrap();
    assert!(
        new.starts_with(
            "\u{feff}// mine\r\n{\r\n\t\"theme\" : \"dark\", // why\r\n\t\"mcpServers\": {"
        ),
        "{new:?}"
    );
    assert!(new.ends_with("\r\n\t},\r\n}\r\n"), "{new:?}");
    assert!(
        new.contains("/* files */ \"files\": {") && new.contains("\"disabled\": true"),
        "{new}"
    );
    assert!(!new.replace("\r\n", "").contains('\n'), "{new:?}");
}

#[test]
fn toml_keeps_comments_and_order() {
    let text = "model = \"o9\" # mine\n\n[mcp_servers.files] # files\ncommand = \"x\"\nargs = [ \"a\",\n  \"b\" ] # odd\n\n[mcp_servers.files.env]\nA = \"1\"\n\n[tui]\nx = 1\n";
    let edits = [switch("mcp_servers", "files", "enabled", false), set("mcp_servers", "toolgate")];
    insta::assert_snapshot!(edited(text, Format::Toml, &edits).unwrap(), @r#"
    model = "o9" # mine

    [mcp_servers.files] # files
    command = "x"
    args = [ "a",
      "b" ] # odd
    enabled = false

    [mcp_servers.files.env]
    A = "1"

    [mcp_servers.toolgate]
    command = "/opt/tool gate"
    args = ["serve", "--stdio"]

    [mcp_servers.toolgate.env]
    A = "1"

    [tui]
    x = 1
    "#);
    assert_eq!(
        edited(&text.replace('\n', "\r\n"), Format::Toml, &edits).unwrap(),
        edited(text, Format::Toml, &edits).unwrap().replace('\n', "\r\n")
    );
}

#[test]
fn yaml_keeps_comments_and_order() {
    let text = "# mine\nGOOSE_MODE: auto\nextensions:\n  # built in\n  developer:\n    enabled: true\n    type: builtin\n  files: # files\n    args:\n    - -y\n    - files\n    enabled: true # on\n    name: files\n    cmd: npx\n    type: stdio\n\n  # after\nlast: 1\n";
    let edits = [switch("extensions", "files", "enabled", false), set("extensions", "toolgate")];
    insta::assert_snapshot!(edited(text, Format::Yaml, &edits).unwrap(), @r#"
    # mine
    GOOSE_MODE: auto
    extensions:
      # built in
      developer:
        enabled: true
        type: builtin
      files: # files
        args:
        - -y
        - files
        enabled: false # on
        name: files
        cmd: npx
        type: stdio
      toolgate:
        command: "/opt/tool gate"
        args:
          - serve
          - "--stdio"
        env:
          A: "1"

      # after
    last: 1
    "#);
    let new = edited("a: 1", Format::Yaml, &[set("extensions", "toolgate")]).unwrap();
    assert!(new.starts_with("a: 1\nextensions:\n  toolgate:\n    command:"), "{new}");
    let removed = edited(text, Format::Yaml, &[remove("extensions", "files")]).unwrap();
    assert!(
        !removed.contains("npx") && removed.contains("# built in") && removed.contains("  # after"),
        "{removed}"
    );
    for odd in ["extensions: {}\n", "extensions: { a: { enabled: true } }\n", "extensions: [1]\n"] {
        assert_eq!(
            edited(odd, Format::Yaml, &[set("extensions", "x")]),
            Err(EditError::Unsupported),
            "{odd}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_not_changed() {
    for (text, format) in [
        ("{", Format::Jsonc),
        ("[]", Format::Jsonc),
        ("a = ", Format::Toml),
        ("a: [", Format::Yaml),
        ("{\"mcpServers\": []}", Format::Jsonc),
    ] {
        assert!(edited(text, format, &[set("mcpServers", "toolgate")]).is_err(), "{text}");
    }
    let empty = edited("", Format::Jsonc, &[set("mcpServers", "toolgate")]).unwrap();
    assert!(serde_json::from_str::<Value>(&empty).is_ok(), "{empty}");
}

/// White space and comments, as people leave them.
fn gap() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            Just(" "),
            Just("\n"),
            Just("\t"),
            Just("/* é */"),
            Just("// , } \"\n"),
            Just("")
        ],
        0..4,
    )
    .prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just("1".to_owned()),
        Just("\"// no comment } \\\" é\"".to_owned()),
        gap().prop_map(|gap| format!("{{{gap}\"command\"{gap}:{gap}\"x\"{gap}}}")),
        gap().prop_map(|gap| format!("[{gap}1,{gap}{{}}{gap}]")),
    ]
}

/// The members of an object.
fn members(prefix: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec((gap(), value(), gap()), 0..4).prop_map(move |all| {
        let one = |(index, (before, value, after)): (usize, (String, String, String))| {
            format!("{before}\"{prefix}{index}\":{value}{after}")
        };
        all.into_iter().enumerate().map(one).collect::<Vec<_>>().join(",")
    })
}

proptest! {
    #[test]
    fn everything_outside_of_the_entries_stays(
        before in members("b"), inside in members("s"), after in members("a"), gaps in [gap(), gap(), gap()], which in 0..3_usize,
    ) {
        let comma = |text: &str| if text.contains("\":") { "," } else { "" };
        let head = format!("{}{{{before}{}{}\"mcpServers\":{{", gaps[0], comma(&before), gaps[1]);
        let tail = format!("}}{}{}{after}}}{}", comma(&after), gaps[2], gaps[0]);
        let text = format!("{head}{inside}{tail}");
        let edit = match which {
            0 => set("mcpServers", "toolgate"),
            1 => switch("mcpServers", "s0", "disabled", true),
            _ => remove("mcpServers", "s0"),
        };
        // A switch of something that is no object is refused: the result would not be what was asked for.
        if let Ok(new) = edited(&text, Format::Jsonc, std::slice::from_ref(&edit)) {
            prop_assert!(new.starts_with(&head), "{text}\n---\n{new}");
            prop_assert!(new.ends_with(&tail), "{text}\n---\n{new}");
            let again = edited(&new, Format::Jsonc, &[edit]).unwrap();
            prop_assert_eq!(again, new);
        } else {
            prop_assert!(toolgate_config::as_written(&text, Format::Jsonc, "").is_err(), "{}", text);
        }
    }

    #[test]
    fn lines_of_yaml_outside_of_the_entries_stay(
        entries in prop::collection::vec((0..3_usize, any::<bool>()), 1..5), comments in prop::collection::vec(any::<bool>(), 5), which in 0..3_usize,
    ) {
        let mut inside = String::new();
        for (index, ((kind, is_on), has_comment)) in entries.iter().zip(&comments).enumerate() {
            if *has_comment {
                inside.push_str("  # é\n");
            }
            let entry = match kind {
                0 => format!("  s{index}:\n    cmd: x\n    enabled: {is_on}\n"),
                1 => format!("  s{index}:\n    args: [a,\n      b]\n    enabled: {is_on} # on\n    text: |\n      a\n\n      b\n"),
                _ => format!("  's{index}':\n    list:\n    - a: 1\n      b: 2\n    - c\n"),
            };
            inside.push_str(&entry);
        }
        let (head, tail) = ("a: 1 # x\nextensions:\n", "# end\nz:\n  - 1\n");
        let text = format!("{head}{inside}{tail}");
        let edit = match which {
            0 => set("extensions", "toolgate"),
            1 => switch("extensions", "s0", "enabled", false),
            _ => remove("extensions", "s0"),
        };
        match edited(&text, Format::Yaml, std::slice::from_ref(&edit)) {
            Ok(new) => {
                prop_assert!(new.starts_with(head) && new.ends_with(tail), "{text}\n---\n{new}");
                let again = edited(&new, Format::Yaml, &[edit]).unwrap();
                prop_assert_eq!(again, new);
            }
            Err(_) => prop_assert!(which == 2 && entries.len() == 1, "{}", text),
        }
    }

    #[test]
    fn tables_of_toml_outside_of_the_entries_stay(
        entries in prop::collection::vec((0..4_usize, any::<bool>()), 1..5), windows in any::<bool>(), which in 0..3_usize,
    ) {
        let mut inside = String::new();
        for (index, (kind, has_comment)) in entries.iter().enumerate() {
            if *has_comment {
                inside.push_str("# é [x]\n");
            }
            let entry = match kind {
                0 => format!("[mcp_servers.s{index}]\ncommand = 'x' # é\nargs = [\n  \"a\", # b\n]\n\n"),
                1 => format!("[mcp_servers.\"s{index}\"]\ncommand = \"\"\"a\nb\"\"\"\n[mcp_servers.\"s{index}\".env]\nK = \"[v]\"\n"),
                2 => format!("[ mcp_servers . s{index} ]\nenv = {{ K = \"v\", N = 1 }}\nenabled = true # on\n"),
                _ => format!("[mcp_servers.s{index}.env]\nK = 1_000\n"),
            };
            inside.push_str(&entry);
        }
        let (head, tail) = ("model = \"o9\" # mine\nlist = [1,\n 2]\n\n", "[tui] # last\nat = 1979-05-27T07:32:00Z\n[[hooks]]\na = 1\n");
        let ends = |text: &str| if windows { text.replace('\n', "\r\n") } else { text.to_owned() };
        let (head, tail) = (ends(head), ends(tail));
        let text = format!("{head}{}{tail}", ends(&inside));
        let edit = match which {
            0 => set("mcp_servers", "toolgate"),
            1 => switch("mcp_servers", "s0", "enabled", false),
            _ => remove("mcp_servers", "s0"),
        };
        let new = edited(&text, Format::Toml, std::slice::from_ref(&edit)).unwrap();
        // A blank line before a table belongs to the table.
        prop_assert!(new.starts_with(head.trim_end()), "{text}\n---\n{new}");
        // A new table is put behind the others of its kind, or at the end.
        prop_assert!(new.contains(&tail), "{text}\n---\n{new}");
        let again = edited(&new, Format::Toml, &[edit]).unwrap();
        prop_assert_eq!(again, new);
    }
}
