//! `toolgate skills`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_registry::{Skill, Skills as SkillList};

use crate::{
    cli::{Globals, Skills, SkillsCommand},
    failure::{CommandResult, Failure},
    folders, load, print,
    table::table,
};

pub(crate) fn run(globals: &Globals, arguments: &Skills) -> CommandResult {
    let loaded = load::load(globals)?;
    let skills = &loaded.skills;
    match &arguments.command {
        Some(SkillsCommand::Show { name, output }) => {
            let skill = skills.named(name).ok_or_else(|| unknown(skills, name))?;
            if output.json {
                let mut row = row(skill);
                row["body"] = json!(skill.body);
                print::json(&row)?;
            } else {
                print::line(format!("{}: {}", skill.name, one_line(&skill.description)));
                if !skill.servers.is_empty() {
                    print::line(format!("needs: {}", one_line(&skill.servers.join(", "))));
                }
                print::line(format!("\n{}", skill.body));
            }
            return Ok(ExitCode::SUCCESS);
        }
        None if arguments.output.json => {
            let problems = skills
                .problems
                .iter()
                .map(|problem| json!({ "path": problem.path, "message": problem.message }));
            print::json(&json!({
                "skills": skills.skills.iter().map(row).collect::<Vec<_>>(),
                "problems": problems.collect::<Vec<_>>(),
            }))?;
        }
        None => list(skills),
    }
    Ok(if skills.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(skills: &SkillList) {
    if skills.skills.is_empty() {
        print::note("there are no skills: name their folders under `skills` of the configuration");
    } else {
        let columns = ["skill", "needs", "description"];
        let rows = skills.skills.iter().map(|skill| {
            let servers = one_line(&skill.servers.join(", "));
            vec![skill.name.clone(), servers, one_line(&skill.description)]
        });
        print::line(table(&columns, rows));
    }
    for problem in &skills.problems {
        print::note(format!("warning: {}: {}", folders::shown(&problem.path), problem.message));
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

fn unknown(skills: &SkillList, name: &str) -> Failure {
    let names = skills.skills.iter().map(|skill| skill.name.as_str());
    Failure::usage(format!("there is no skill `{name}`")).meaning(name, names)
}
