//! `toolgate skills`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_registry::{Skill, Skills as SkillList};

use crate::{
    cli::{Globals, Skills, SkillsCommand},
    failure::Failure,
    folders, load,
    printer::Printer,
    table::{Column, table},
};

pub(crate) fn run(
    globals: &Globals,
    arguments: &Skills,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let loaded = load::load(globals)?;
    let skills = &loaded.skills;
    match &arguments.command {
        Some(SkillsCommand::Show { name, output }) => {
            let skill = skills.named(name).ok_or_else(|| unknown(skills, name))?;
            if output.json {
                let mut row = row(skill);
                row["body"] = json!(skill.body);
                printer.json(&row)?;
            } else {
                printer.line(format!("{}: {}", skill.name, one_line(&skill.description)));
                if !skill.servers.is_empty() {
                    printer.line(format!("needs: {}", one_line(&skill.servers.join(", "))));
                }
                printer.line(format!("\n{}", harmless(&skill.body)));
            }
            return Ok(ExitCode::SUCCESS);
        }
        None if arguments.output.json => {
            let problems = skills
                .problems
                .iter()
                .map(|problem| json!({ "path": problem.path, "message": problem.message }));
            printer.json(&json!({
                "skills": skills.skills.iter().map(row).collect::<Vec<_>>(),
                "problems": problems.collect::<Vec<_>>(),
            }))?;
        }
        None => list(skills, printer),
    }
    Ok(if skills.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(skills: &SkillList, printer: &mut Printer) {
    if skills.skills.is_empty() {
        printer.note("there are no skills: name their folders under `skills` of the configuration");
    } else {
        let columns = [Column::Text("skill"), Column::Text("needs"), Column::Text("description")];
        let rows = skills.skills.iter().map(|skill| {
            let servers = one_line(&skill.servers.join(", "));
            vec![skill.name.clone(), servers, one_line(&skill.description)]
        });
        printer.line(table(&columns, rows.collect()));
    }
    for problem in &skills.problems {
        printer.note(format!("warning: {}: {}", folders::shown(&problem.path), problem.message));
    }
}

fn row(skill: &Skill) -> Value {
    json!({
        "name": skill.name, "description": skill.description, "servers": skill.servers,
        "path": skill.path,
    })
}

fn one_line(text: &str) -> String {
    toolgate_host::one_line(text, 200)
}

/// A text of several lines without control characters.
fn harmless(text: &str) -> String {
    let lines = text.lines().map(|line| {
        line.chars().filter(|character| !character.is_control() || *character == '\t').collect()
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn unknown(skills: &SkillList, name: &str) -> Failure {
    let names = skills.skills.iter().map(|skill| skill.name.as_str());
    Failure::usage(format!("there is no skill `{name}`")).meaning(name, names)
}
