//! Captured definitions of many real servers, all at once.
//!
//! `TOOLGATE_CATALOGUE` names a folder of captures (`NAME.json`: `{"name", "initialize", "tools"}`).
//! Without it there is nothing to do, so that these tests are ignored unless asked for.

use std::{fs, path::PathBuf};

use serde_json::Value;
use toolgate_bindings::{python, typescript};
use toolgate_catalog::{Catalog, CatalogServer, Definition, TokenCounter};

use crate::compilers::{Tool, assert_valid_python, assert_valid_typescript};

/// All tools under the names that they are exposed by.
fn tools() -> Vec<Tool> {
    let folder = std::env::var_os("TOOLGATE_CATALOGUE").expect("TOOLGATE_CATALOGUE is set");
    let mut captures: Vec<PathBuf> = fs::read_dir(PathBuf::from(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    captures.sort();
    let name_of = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let entries = captures.iter().map(|path| CatalogServer::named(name_of(path).as_str()));
    let mut catalog = Catalog::new(entries);
    for path in &captures {
        let capture: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let definitions = capture["tools"].as_array().unwrap().iter();
        let definitions = definitions.map(|tool| Definition::from_value(tool).unwrap()).collect();
        catalog.replace_server(&name_of(path).as_str().into(), definitions);
    }
    let all: Vec<Tool> = catalog
        .tools()
        .map(|tool| Tool::new(tool.name.to_string(), tool.definition.to_value()))
        .collect();
    assert!(all.len() > 1_000, "{} tools are no catalogue", all.len());
    all
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn the_compiler_takes_the_declarations_of_every_real_tool() {
    assert_valid_typescript(&tools());
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn python_executes_the_stubs_of_every_real_tool() {
    assert_valid_python(&tools());
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn declarations_of_real_tools_are_complete() {
    for tool in tools() {
        let text = typescript(&[tool.api()]);
        assert!(!text.contains("Too large to show whole"), "{}", tool.name);
    }
}

#[test]
#[ignore = "needs TOOLGATE_CATALOGUE"]
fn declarations_are_shorter_than_the_json() {
    let counter = TokenCounter::shared();
    let (mut json, mut declarations, mut stubs) = (0, 0, 0);
    for tool in tools() {
        json += counter.count(&tool.definition.to_string());
        declarations += counter.count(&typescript(&[tool.api()]));
        stubs += counter.count(&python(&[tool.api()]));
    }
    assert!(declarations * 100 <= json * 65, "{declarations} of {json}");
    assert!(stubs * 100 <= json * 65, "{stubs} of {json}");
}
