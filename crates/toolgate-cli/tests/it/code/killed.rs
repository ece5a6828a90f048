//! Scripts with effects, killed at many points and resumed: each effect happens once, or is
//! reported as unknown.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::process::Child;
use toolgate_store::{RunState, Store};
use toolgate_testkit::{Builtin, Fixture};

use crate::{
    fixtures::tool,
    support::{Workplace, entry},
};

/// Effects in turn and side by side, quick and slow ones, with timers, chance and time between.
const SCRIPT: &str = r#"
const began = Date.now();
const told: string[] = [];
const lost: number[] = [];
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
async function effect(id: number, slow: boolean) {
  try {
    if (slow) await kit_sleep({ ms: id });
    else await kit_write({ id, note: `${Math.random()} ${Date.now() - began}` });
    told.push(`did ${id}`);
  } catch (error) {
    if (!error.message.includes("is unknown")) throw error;
    lost.push(id);
  }
}
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
for (const id of range(0, 8)) await effect(id, false);
await Promise.all(range(8, 20).map((id) => effect(id, false)));
await pause(5);
await Promise.all(range(20, 26).map((id) => effect(id, true)));
for (const id of range(26, 32)) { await pause(Math.random() * 3); await effect(id, id % 3 === 0); }
const read = await kit_echo({ message: "again and again" });
await Promise.race([pause(2), effect(32, true)]);
await Promise.all(range(33, 40).map(async (id) => { await pause(id - 33); await effect(id, id % 2 === 0); }));
await effect(40, false);
await pause(40);
console.log(read.message);
return { told: told.sort(), lost: lost.sort((a, b) => a - b) };
"#;
const EFFECTS: u64 = 41;

/// How often a process is killed.
const POINTS: u64 = 100;
/// Trials at once: most of the time of one is waiting.
const TOGETHER: usize = 8;

#[tokio::test]
async fn each_effect_happens_once_or_is_reported_as_unknown_at_100_points() {
    killed().await;
}

/// Where a process is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// When so many calls have reached the server.
    Calls(usize),
    /// So long after the first.
    Time(Duration),
}

/// The outcome of a killed script.
#[derive(Debug, Default)]
struct Tally {
    /// Killed while it ran, and resumed to its end.
    resumed: usize,
    /// Resumed with nothing unknown.
    whole: usize,
    /// Effects that were reported as unknown.
    unknown: usize,
    /// Of these, those that had happened.
    happened: usize,
}

async fn killed() {
    let mut chance = Chance(0x5EED);
    let plans: Vec<(Point, Option<Point>)> = (0..POINTS)
        .map(|number| {
            let mut point = |by_calls: bool| {
                if by_calls {
                    Point::Calls(usize::try_from(chance.below(EFFECTS)).unwrap())
                } else {
                    Point::Time(Duration::from_micros(chance.below(250_000)))
                }
            };
            let first = point(number % 2 == 0);
            // Some are killed again while they are resumed.
            (first, (number % 4 == 0).then(|| point(number % 8 == 0)))
        })
        .collect();
    let tallies: Vec<Tally> = stream::iter(plans)
        .map(|(first, second)| trial(first, second))
        .buffer_unordered(TOGETHER)
        .collect()
        .await;
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let resumed = sum(|tally| tally.resumed);
    let unknown = sum(|tally| tally.unknown);
    let told = format!(
        "{POINTS} kills: {resumed} resumed, {} with nothing unknown; {unknown} calls unknown, {} of them had happened",
        sum(|tally| tally.whole),
        sum(|tally| tally.happened),
    );
    // Otherwise it shows nothing.
    assert!(resumed * 2 > tallies.len() && unknown > 0, "{told}");
}

async fn trial(first: Point, second: Option<Point>) -> Tally {
    let (workplace, log) = workplace();
    let script = workplace.path().join("effects.ts").display().to_string();
    std::fs::write(&script, SCRIPT).unwrap();
    let finished =
        kill_at(workplace.command(&["run", &script]).spawn().unwrap(), &log, first).await;
    let Some((id, state)) = last_run(&workplace) else {
        assert_eq!(effects(&log), BTreeMap::new(), "effects of no run");
        return Tally::default();
    };
    let id = id.as_str();
    if state == RunState::Done {
        assert!(effects(&log).values().all(|count| *count == 1));
        return Tally::default();
    }
    assert!(!finished, "{id}: {state:?}");
    if let Some(second) = second {
        let resumed = workplace.command(&["run", "--resume", id]).spawn().unwrap();
        kill_at(resumed, &log, second).await;
        if last_run(&workplace).is_some_and(|(_, state)| state == RunState::Done) {
            assert!(effects(&log).values().all(|count| *count == 1));
            return Tally::default();
        }
    }
    let outcome = workplace.run(&["run", "--resume", id, "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{first:?} {second:?}: {outcome:?}");
    let told = outcome.json();
    let lost: BTreeSet<u64> =
        told["value"]["lost"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!(told["run"]["unknown"].as_array().unwrap().len(), lost.len(), "{told}");
    assert_eq!(told["output"], "again and again\n");
    let effects = effects(&log);
    for id in 0..EFFECTS {
        let count = effects.get(&id).copied().unwrap_or_default();
        let fits = if lost.contains(&id) { count <= 1 } else { count == 1 };
        assert!(fits, "effect {id} happened {count} times; {first:?} {second:?} {told}");
    }
    let mut did: Vec<String> =
        (0..EFFECTS).filter(|id| !lost.contains(id)).map(|id| format!("did {id}")).collect();
    did.sort();
    assert_eq!(told["value"]["told"], json!(did));
    let happened = lost.iter().filter(|id| effects.contains_key(id)).count();
    Tally { resumed: 1, whole: usize::from(lost.is_empty()), unknown: lost.len(), happened }
}

/// The only run there is, as the journal has it.
fn last_run(workplace: &Workplace) -> Option<(String, RunState)> {
    let journal = Store::new(workplace.path().join("state")).journal().unwrap();
    let run = journal.runs(1).unwrap().pop()?;
    Some((run.id, run.state))
}

/// A server that logs each call before its effect.
fn workplace() -> (Workplace, PathBuf) {
    let place = Workplace::empty();
    let log = place.path().join("effects.log");
    let number = json!({ "type": "integer" });
    let write = tool(
        "write",
        "Write a line.",
        &json!({ "id": number, "note": { "type": "string" } }),
        &["id"],
    );
    let fixture = Fixture::new("kit")
        .with_builtins([Builtin::Sleep, Builtin::Echo])
        .with_tools([write])
        .with_answer("write", json!({ "content": [{ "type": "text", "text": "written" }] }))
        .with_call_log(&log);
    place.rewrite(&json!({ "mcpServers": { "kit": entry(&fixture) } }).to_string());
    (place, log)
}

/// Kills a process at a point; whether it had ended before.
async fn kill_at(mut child: Child, log: &PathBuf, point: Point) -> bool {
    let start = lines(log).len();
    let reached = async {
        let calls = match point {
            Point::Calls(calls) => calls,
            Point::Time(_) => 1,
        };
        while lines(log).len() < start + calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Point::Time(time) = point {
            tokio::time::sleep(time).await;
        }
    };
    tokio::select! {
        _ = child.wait() => return true,
        () = reached => {}
    }
    child.kill().await.unwrap();
    false
}

/// How often each effect has happened. Reads do not count.
fn effects(log: &PathBuf) -> BTreeMap<u64, usize> {
    let mut effects = BTreeMap::new();
    for line in lines(log) {
        let arguments = &line["arguments"];
        if let Some(id) = arguments["id"].as_u64().or(arguments["ms"].as_u64()) {
            *effects.entry(id).or_default() += 1;
        }
    }
    effects
}

fn lines(log: &PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    // The last one may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Numbers without a pattern, the same on every run (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Bytes of a page of the log, with its header.
const FRAME: u64 = 4_096 + 24;

#[tokio::test]
async fn no_effect_is_repeated_if_the_end_of_the_journal_is_missing() {
    let (workplace, log) = workplace();
    let script = workplace.path().join("effects.ts").display().to_string();
    std::fs::write(&script, SCRIPT).unwrap();
    let child = workplace.command(&["run", &script]).spawn().unwrap();
    assert!(!kill_at(child, &log, Point::Calls(16)).await, "it has ended");
    let state = workplace.path().join("state");
    let kept = workplace.path().join("kept");
    copy(&state, &kept);
    // A normal end leaves no write-ahead log.
    let (id, _) = last_run(&workplace).unwrap();
    let did = std::fs::read(&log).unwrap();
    let length = std::fs::metadata(kept.join("journal.db-wal")).unwrap().len();
    assert!(length > 8 * FRAME, "{length}");
    let mut unknown = 0;
    for part in [0, 4, 6, 7] {
        std::fs::remove_dir_all(&state).unwrap();
        copy(&kept, &state);
        std::fs::write(&log, &did).unwrap();
        let cut = std::fs::File::options().write(true).open(state.join("journal.db-wal")).unwrap();
        cut.set_len(length / FRAME * part / 8 * FRAME).unwrap();
        let runs = workplace.run(&["runs", "--json"]).await.json();
        assert_eq!(runs[0]["id"], json!(id), "the run is still listed: {runs}");
        let outcome = workplace.run(&["run", "--resume", &id, "--json"]).await;
        let effects = effects(&log);
        assert!(effects.values().all(|count| *count == 1), "repeated: {effects:?} {outcome:?}");
        if part == 0 {
            assert!(outcome.stderr.contains("is damaged"), "{outcome:?}");
            assert_eq!(runs[0]["state"], "damaged", "{runs}");
            continue;
        }
        let told = outcome.json();
        let lost: Vec<u64> = serde_json::from_value(told["value"]["lost"].clone()).unwrap();
        for id in (0..EFFECTS).filter(|id| !lost.contains(id)) {
            assert!(effects.contains_key(&id), "{id} is told as done, and was not: {told}");
        }
        unknown += lost.len();
    }
    assert!(unknown > 3, "{unknown}");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
