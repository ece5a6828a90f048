//! The person at a terminal, with a real pseudo-terminal.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
    process::Stdio,
    time::Duration,
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use serde_json::json;
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};
use toolgate_testkit::{deadline, scaled};

use super::{called, workplace};
use crate::support::{Outcome, Workplace, signal};

/// A command at a terminal of its own: stdin and stderr are the terminal, stdout is not.
struct Typist {
    child: Child,
    keyboard: File,
    heard: mpsc::UnboundedReceiver<String>,
    screen: String,
    /// How much was on the screen when something was typed last.
    seen: usize,
}

impl Typist {
    fn start(workplace: &Workplace, arguments: &[&str]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let no_owner = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(no_owner)
            .open(OsStr::from_bytes(name.as_bytes()))
            .unwrap();
        let mut command: Command = workplace.command(arguments);
        let child = command
            .stdin(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stderr(Stdio::from(OwnedFd::from(terminal)))
            .spawn()
            .unwrap();
        // The command holds the terminal too, and has to let go of it.
        drop(command);
        let keyboard = File::from(keyboard);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
            }
        });
        Self { child, keyboard, heard, screen: String::new(), seen: 0 }
    }

    /// Waits until the screen ends with this, after what was typed last.
    async fn sees(&mut self, text: &str) -> &mut Self {
        while !self.screen[self.seen..].ends_with(text) {
            let more = tokio::time::timeout(deadline(), self.heard.recv()).await;
            let Ok(Some(more)) = more else { panic!("never {text:?}: {:?}", self.screen) };
            self.screen.push_str(&more);
        }
        self
    }

    fn types(&mut self, text: &str) -> &mut Self {
        self.seen = self.screen.len();
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Waits for the end; what is on the screen is what went to stderr.
    async fn end(mut self) -> Outcome {
        let ended = tokio::time::timeout(deadline(), self.child.wait_with_output()).await;
        let output = ended.unwrap_or_else(|_| panic!("hangs: {:?}", self.screen)).unwrap();
        while let Ok(Some(more)) = tokio::time::timeout(deadline(), self.heard.recv()).await {
            self.screen.push_str(&more);
        }
        let stdout = String::from_utf8(output.stdout).unwrap();
        Outcome { stdout, stderr: plain(&self.screen), code: output.status.code() }
    }
}

/// A screen without what a sign of life has drawn and wiped away.
fn plain(screen: &str) -> String {
    let lines = screen.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit("\u{1b}[2K").next().unwrap_or_default();
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

const PROMPT: &str = "Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? ";
const EXTENT: &str = "or only where (such as path=src/*)? ";
const CALL: [&str; 3] = ["call", "kit_counter", "{}"];

#[tokio::test]
async fn a_yes_at_the_terminal_makes_the_call_and_a_no_does_not() {
    let (workplace, log) = workplace(&json!({}));
    let mut typist = Typist::start(&workplace, &CALL);
    typist.sees(PROMPT).await.types("perhaps\n").sees(PROMPT).await.types("yes\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.code, called(&log).len()), (Some(0), 1), "{outcome:?}");
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
    {"count":1}
    --- stderr
    shell wants to call kit_counter of the server kit
    with {}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? perhaps
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? yes
    "#);
    for no in ["no\n", "\n", "\u{4}"] {
        let mut typist = Typist::start(&workplace, &CALL);
        typist.sees(PROMPT).await.types(no);
        let outcome = typist.end().await;
        assert_eq!(outcome.code, Some(1), "{no:?}: {outcome:?}");
        assert!(outcome.stderr.contains("a person said no"), "{no:?}: {outcome:?}");
    }
    assert_eq!(called(&log).len(), 1, "once is once");
    let waiting = workplace.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting, json!([]), "who has answered is not asked again");
}

#[tokio::test]
async fn always_at_the_terminal_holds_as_far_as_it_was_said() {
    let (workplace, log) = workplace(&json!({}));
    let call = |tag: &str| json!({ "tag": tag }).to_string();
    let mut typist = Typist::start(&workplace, &["call", "kit_counter", &call("a-1")]);
    typist.sees(PROMPT).await.types("always\n");
    typist.sees(EXTENT).await.types("tag=b*\n").sees(EXTENT).await.types("tag prefix b-\n");
    typist.sees(EXTENT).await.types("tag prefix a-\n");
    let outcome = typist.end().await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    insta::assert_snapshot!(outcome.stderr, @r#"
    shell wants to call kit_counter of the server kit
    with {"tag":"a-1"}
    Asked because of `mcpServers.kit.tools.counter.approval` (toolgate.json:1:16)
    Allow [o]nce, [s]ession, [a]lways (for shell), or [N]o? always
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag=b*
    in `tag=b*` the `*` stands where it has no meaning; write FOLDER/*, or NAME matches REGEX, or NAME host HOST
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag prefix b-
    the call itself does not meet this condition
    With [T]hese arguments, [a]ny, or only where (such as path=src/*)? tag prefix a-
    "#);
    let covered = workplace.run(&["call", "kit_counter", &call("a-2")]).await;
    assert_eq!(covered.code, Some(0), "{covered:?}");
    let other = workplace.run(&["call", "kit_counter", &call("b-1")]).await;
    assert!(other.stderr.contains("waiting for approval"), "nobody is at a terminal: {other:?}");
    assert_eq!(called(&log).len(), 2);
    let mut typist = Typist::start(&workplace, &["call", "kit_counter", &call("c")]);
    typist.sees(PROMPT).await.types("a\n").sees(EXTENT).await.types("\n");
    assert_eq!(typist.end().await.code, Some(0));
    let grants = workplace.run(&["grants"]).await.stdout;
    let told: Vec<&str> =
        grants.lines().filter_map(|line| line.split_once("  ")).map(|it| it.1).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    kit/counter for shell: always, only where tag begins with "a-" (by shell)
    kit/counter for shell: always, the arguments that were shown (by shell)
    "#);
}

#[tokio::test]
async fn interrupted_at_the_terminal_nothing_is_called() {
    let (workplace, log) = workplace(&json!({}));
    let mut typist = Typist::start(&workplace, &CALL);
    typist.sees(PROMPT).await;
    // What Ctrl-C does.
    signal("INT", typist.pid());
    let outcome = typist.end().await;
    assert!(outcome.stderr.ends_with("error: the call was cancelled\n"), "{outcome:?}");
    assert_eq!((outcome.code, called(&log).len()), (Some(130), 0), "{outcome:?}");
    let waiting = workplace.run(&["approve", "--json"]).await.json();
    assert_eq!(waiting, json!([]), "nobody waits for it");
}

#[tokio::test]
async fn a_script_at_the_terminal_asks_and_waits() {
    let limit = scaled(Duration::from_secs(3));
    let (workplace, log) = workplace(&json!({ "timeoutSeconds": limit.as_secs_f64() }));
    let code = "const all = await Promise.all([1, 2].map((n) => kit_counter({ n })));
        return all.length";
    std::fs::write(workplace.path().join("count.ts"), code).unwrap();
    let prompt = "Allow [o]nce, [r]un, [s]ession, [a]lways (for shell), or [N]o? ";
    let mut typist = Typist::start(&workplace, &["run", "count.ts"]);
    typist.sees(prompt).await;
    // Longer than the script may take.
    tokio::time::sleep(limit + Duration::from_millis(500)).await;
    // Two calls at once are two questions, one after the other.
    typist.types("o\n").sees(prompt).await.types("o\n");
    let outcome = typist.end().await;
    assert_eq!((outcome.stdout.as_str(), outcome.code), ("2\n", Some(0)), "{outcome:?}");
    assert_eq!(called(&log).len(), 2);
}
