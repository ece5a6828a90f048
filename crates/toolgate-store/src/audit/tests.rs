use super::*;

fn record(tool: &str) -> AuditRecord {
    AuditRecord {
        kind: "call".into(),
        tool: tool.into(),
        argument_bytes: 7,
        ..AuditRecord::default()
    }
}

fn seen(log: &AuditLog) -> (Vec<String>, Vec<AuditProblem>) {
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    log.read(&mut |line| match line {
        Ok((_, record)) => tools.push(record.tool),
        Err(problem) => problems.push(problem),
    })
    .unwrap();
    (tools, problems)
}

fn log_of(tools: &[&str]) -> (tempfile::TempDir, AuditLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::new(folder.path().join("audit").join("audit.jsonl"));
    for tool in tools {
        log.append(&record(tool)).unwrap();
    }
    (folder, log)
}

#[test]
fn what_was_appended_is_read_and_in_order() {
    let (_folder, log) = log_of(&["a", "b", "c"]);
    // Another process, which knows nothing of the first.
    AuditLog::new(log.path().to_owned()).append(&record("d")).unwrap();
    log.append(&record("e")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!(tools, ["a", "b", "c", "d", "e"]);
    assert_eq!(problems, []);
}

#[test]
fn whatever_is_done_to_a_line_shows() {
    let change = |edit: &dyn Fn(&mut Vec<String>)| {
        let (_folder, log) = log_of(&["a", "b", "c", "d"]);
        let text = fs::read_to_string(log.path()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(log.path(), lines.join("\n") + "\n").unwrap();
        seen(&log).1
    };
    assert_eq!(change(&|lines| drop(lines.remove(1))), [AuditProblem::Broken { line: 2 }]);
    assert_eq!(change(&|lines| drop(lines.pop())), [AuditProblem::Cut { found: 3, expected: 4 }]);
    assert_eq!(change(&|lines| lines.swap(1, 2)).len(), 3);
    let changed = change(&|lines| lines[2] = lines[2].replace("\"c\"", "\"x\""));
    assert_eq!(changed, [AuditProblem::Changed { line: 3 }]);
    assert_eq!(change(&|lines| lines[0] = "{".into())[0], AuditProblem::Unreadable { line: 1 });
    let repeated = change(&|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(repeated[0], AuditProblem::Broken { line: 2 });
}

#[test]
fn writing_on_does_not_hide_what_was_cut_off() {
    let (_folder, log) = log_of(&["a", "b", "c"]);
    let text = fs::read_to_string(log.path()).unwrap();
    let shorter: Vec<&str> = text.lines().take(2).collect();
    fs::write(log.path(), shorter.join("\n") + "\n").unwrap();
    AuditLog::new(log.path().to_owned()).append(&record("d")).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Broken { line: 3 }]);
}

#[test]
fn half_a_line_of_a_killed_process_is_told_and_harms_nothing_else() {
    let (_folder, log) = log_of(&["a"]);
    let mut file = files::private_options().append(true).open(log.path()).unwrap();
    file.write_all(b"{\"number\":2,\"ti").unwrap();
    AuditLog::new(log.path().to_owned()).append(&record("b")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!(tools, ["a", "b"]);
    assert_eq!(problems[0], AuditProblem::Unreadable { line: 2 });
}

#[test]
fn many_writers_make_one_chain() {
    let (_folder, log) = log_of(&[]);
    let path = log.path().to_owned();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let log = AuditLog::new(path.clone());
            std::thread::spawn(move || (0..50).for_each(|_| log.append(&record("t")).unwrap()))
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let (tools, problems) = seen(&log);
    assert_eq!((tools.len(), problems), (200, Vec::new()));
}
