use std::fmt::Write as _;

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Skill, SkillError> {
    skill(text, Path::new("x/SKILL.md")).map(|(skill, _)| skill)
}

#[test]
fn common_front_matter_is_read() {
    let skill = read(concat!(
        "---\nname: quarterly-report  # short\ndescription: >\n  Write the report\n  of a quarter.\n",
        "license: MIT\nmetadata:\n  a: b\n  c:\n    - d\nmcp-servers:\n  - crm\n  - \"io.github.acme/sheets\"\n",
        "---\n\n# Steps\n---\nOne.\n"
    ));
    let skill = skill.unwrap();
    assert_eq!(skill.name, "quarterly-report");
    assert_eq!(skill.description, "Write the report of a quarter.");
    assert_eq!(skill.servers, ["crm", "io.github.acme/sheets"]);
    assert_eq!(skill.body, "# Steps\n---\nOne.");
    let other =
        "---\r\nname: 'it'\r\ndescription: It's: plain\r\nmcp-servers: [a, 'b']\r\n---\r\nx";
    let skill = read(other).unwrap();
    assert_eq!((skill.name.as_str(), skill.description.as_str()), ("it", "It's: plain"));
    assert_eq!(skill.servers, ["a", "b"]);
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = |text: &str| read(text).unwrap_err().to_string();
    insta::assert_snapshot!(wrong("# No head"), @"it does not begin with `---`");
    insta::assert_snapshot!(wrong("---\nname: x\n"), @"its front matter has no end (`---`)");
    insta::assert_snapshot!(wrong("---\nname: x\n---\n"), @"its front matter has no `description`");
    insta::assert_snapshot!(wrong("---\nname: [x]\n---\n"), @"`name` is a list and not a text");
    let odd = "---\nname: ../../etc\ndescription: x\n---\n";
    insta::assert_snapshot!(wrong(odd), @"its `name` must have 1 to 64 letters, digits, `-` and `_`");
    let nested = "---\nname: x\ndescription: y\nmcp-servers:\n  crm:\n    command: sh\n---\n";
    let (_, remarks) = skill(nested, Path::new("x")).unwrap();
    assert_eq!(remarks, ["`mcp-servers` is neither a text nor a list of texts"]);
    assert!(read(nested).unwrap().servers.is_empty());
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_folder_is_read() {
    use std::os::unix::fs::symlink;

    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("skills");
    let head = "---\nname: NAME\ndescription: d\n---\nbody";
    for name in ["one", "twin", "huge", "linked"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("one/SKILL.md"), head.replace("NAME", "one")).unwrap();
    fs::write(folder.join("twin/SKILL.md"), head.replace("NAME", "one")).unwrap();
    fs::write(folder.join("huge/SKILL.md"), "x".repeat(MAX_SKILL_BYTES + 1)).unwrap();
    fs::write(place.path().join("secret"), head.replace("NAME", "secret")).unwrap();
    symlink(place.path().join("secret"), folder.join("linked/SKILL.md")).unwrap();
    let outside = place.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("SKILL.md"), head.replace("NAME", "outside")).unwrap();
    symlink(&outside, folder.join("elsewhere")).unwrap();

    let found = read_skills(&[folder, place.path().join("absent")]);
    let names: Vec<&str> = found.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["one"]);
    let problems: Vec<&str> = found.problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        problems[..4],
        [
            "it is left out: it leads out of the folder",
            "it is left out: it is too large",
            "it is left out: it leads out of the folder",
            "it is left out: there is a `one` already",
        ]
    );
    assert!(problems[4].starts_with("the folder cannot be read"), "{problems:?}");
}

#[test]
fn hostile_yaml_is_bounded() {
    // Each level doubles: expanded, these would be 2^60 items.
    let mut bomb = "---\nname: x\ndescription: y\na0: &a0 [z]\n".to_owned();
    for level in 1..60 {
        let before = level - 1;
        writeln!(bomb, "a{level}: &a{level} [*a{before}, *a{before}]").unwrap();
    }
    assert_eq!(read(&(bomb + "---\n")).unwrap().name, "x");
    let servers = "---\nname: x\ndescription: y\nb: &b [z]\nmcp-servers: *b\n---\n";
    assert!(read(servers).unwrap().servers.is_empty());
    let deep =
        |open: &str| format!("---\nname: x\ndescription: y\nz: {}\n---\n", open.repeat(50_000));
    for open in ["[", "{a: ", "- ", "!a ", "&a "] {
        let _ = read(&deep(open));
    }
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in "(---\n)?([ -~é\n:#'\"|>\\[\\]]{0,80}\n?){0,8}(---\n)?.*") {
        let _ = read(&text);
    }
}
