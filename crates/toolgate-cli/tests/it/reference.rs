//! `docs/cli.md` is what `--help` says.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::support::Workplace;

/// Every command that a person sees.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["setup"],
    &["add"],
    &["remove"],
    &["list"],
    &["service"],
    &["service", "install"],
    &["service", "status"],
    &["service", "remove"],
    &["secret"],
    &["secret", "set"],
    &["secret", "list"],
    &["secret", "remove"],
    &["serve"],
    &["web"],
    &["status"],
    &["tokens"],
    &["token"],
    &["token", "create"],
    &["token", "list"],
    &["token", "revoke"],
    &["fleet"],
    &["fleet", "status"],
    &["fleet", "migrate"],
    &["fleet", "import"],
    &["fleet", "restored"],
    &["search"],
    &["inspect"],
    &["call"],
    &["run"],
    &["runs"],
    &["runs", "show"],
    &["runs", "repeat"],
    &["chat"],
    &["login"],
    &["logout"],
    &["logins"],
    &["logins", "revoke"],
    &["enable"],
    &["disable"],
    &["trust"],
    &["approve"],
    &["skills"],
    &["skills", "show"],
    &["policy"],
    &["policy", "what-if"],
    &["policy", "save"],
    &["policy", "export"],
    &["policy", "remove"],
    &["policy", "check"],
    &["policy", "suggest"],
    &["grants"],
    &["grants", "revoke"],
    &["definitions"],
    &["definitions", "diff"],
    &["definitions", "approve"],
    &["audit"],
    &["logs"],
    &["usage"],
    &["usage", "erase"],
    &["config"],
    &["config", "check"],
    &["config", "schema"],
    &["doctor"],
    &["engines"],
    &["engines", "add"],
    &["engines", "remove"],
    &["eval"],
    &["demo"],
    &["completions"],
    &["man"],
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

async fn help(command: &[&str]) -> String {
    let outcome = Workplace::empty().run(&[command, &["--help"]].concat()).await;
    assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
    let lines: Vec<&str> = outcome.stdout.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[tokio::test]
async fn the_reference_is_what_help_says() {
    let mut text = String::from(
        "# The command line\n\nThe output of `--help` for every command. A test writes this page: \
         `TOOLGATE_UPDATE=1 cargo test -p toolgate-cli --test it reference`.\n",
    );
    for command in COMMANDS {
        let name = [&["toolgate"], *command].concat().join(" ");
        let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", help(command).await);
    }
    let path = repository().join("docs/cli.md");
    if std::env::var_os("TOOLGATE_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/cli.md is out of date; run this test with TOOLGATE_UPDATE=1 and look at the change"
    );
}

#[tokio::test]
async fn every_command_is_in_the_reference() {
    let listed = |help: &str| -> Vec<String> {
        help.lines()
            .skip_while(|line| !line.starts_with("Usage:"))
            .take_while(|line| *line != "Options:")
            // A line that begins further in goes on with the one before it.
            .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help" && name.starts_with(|first: char| first.is_lowercase()))
            .map(str::to_owned)
            .collect()
    };
    let parents = [
        "config",
        "usage",
        "skills",
        "policy",
        "grants",
        "definitions",
        "token",
        "runs",
        "engines",
        "service",
        "fleet",
        "secret",
    ];
    for parent in [&[][..]].into_iter().chain(parents.iter().map(std::slice::from_ref)) {
        let names = listed(&help(parent).await);
        assert!(!names.is_empty(), "{parent:?}");
        for name in names {
            let command = [parent, &[name.as_str()]].concat();
            assert!(COMMANDS.contains(&command.as_slice()), "{command:?} is missing in COMMANDS");
        }
    }
}

#[tokio::test]
async fn completions_and_manual_pages_are_printed() {
    let workplace = Workplace::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let outcome = workplace.run(&["completions", shell]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("definitions"), "{shell}: {}", outcome.stdout);
    }
    let page = workplace.run(&["man"]).await.stdout;
    assert!(page.contains(".TH toolgate 1") && page.contains("toolgate\\-serve"), "{page}");

    let folder = tempfile::tempdir().unwrap();
    let outcome = workplace.run(&["man", "--folder", folder.path().to_str().unwrap()]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for page in ["toolgate.1", "toolgate-serve.1", "toolgate-token-create.1"] {
        assert!(folder.path().join(page).is_file(), "{page}");
    }
}
