//! What servers would run or contact.

use serde_json::{Value, json};
use toolgate_registry::{Plan, Registry, RegistrySettings, ServerSource};

/// The plan of a `server.json`, or why there is none.
async fn plan(server: Value) -> Result<Plan, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.json");
    let mut described = json!({ "name": "io.github.acme/crm", "version": "1.2.0" });
    described.as_object_mut().unwrap().extend(server.as_object().unwrap().clone());
    std::fs::write(&file, described.to_string()).unwrap();
    let settings = RegistrySettings {
        sources: vec![ServerSource::Path(file)],
        max_age: std::time::Duration::ZERO,
        cache: None,
    };
    let entry = Registry::new(settings).entry("io.github.acme/crm", None).await;
    let mut entry = entry.ok_or("not a server")?;
    "a file".clone_into(&mut entry.source);
    Plan::of(&entry).map_err(|reason| reason.to_string())
}

async fn shown(server: Value) -> String {
    match plan(server).await {
        Ok(plan) => plan.shown(),
        Err(reason) => format!("no plan: {reason}"),
    }
}

fn package(kind: &str, identifier: &str) -> Value {
    json!({ "registryType": kind, "identifier": identifier, "version": "1.2.0",
            "transport": { "type": "stdio" } })
}

#[tokio::test]
async fn each_kind_of_package_has_its_program() {
    let mut npm = package("npm", "@acme/crm");
    npm["packageArguments"] = json!([
        { "type": "positional", "value": "serve" },
        { "type": "named", "name": "--region", "default": "eu west" },
    ]);
    npm["environmentVariables"] = json!([
        { "name": "API_KEY", "isRequired": true, "isSecret": true },
        { "name": "MODE", "value": "fast" },
    ]);
    npm["runtimeArguments"] = json!([{ "type": "positional", "value": "-y" }]);
    insta::assert_snapshot!(shown(json!({ "description": "Customers", "packages": [npm] })).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It says of itself: Customers
    It runs, with your rights: npx -y @acme/crm@1.2.0 serve --region 'eu west'
      with MODE=fast
      it reads API_KEY (required, secret)
    ");
    insta::assert_snapshot!(shown(json!({ "packages": [package("pypi", "acme-crm")] })).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It runs, with your rights: uvx acme-crm==1.2.0
    ");
    insta::assert_snapshot!(shown(json!({ "packages": [package("nuget", "Acme.Crm")] })).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It runs, with your rights: dnx Acme.Crm@1.2.0 --yes
    ");
    let mut image = package("oci", "ghcr.io/acme/crm");
    image["environmentVariables"] = json!([{ "name": "API_KEY", "isSecret": true }]);
    insta::assert_snapshot!(shown(json!({ "packages": [image] })).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It runs, with your rights: docker run -i --rm -e API_KEY ghcr.io/acme/crm:1.2.0
      it reads API_KEY (optional, secret)
    ");
}

#[tokio::test]
async fn a_url_is_preferred_to_a_program() {
    let remote = json!({
        "type": "streamable-http", "url": "https://{host}/mcp",
        "variables": { "host": { "default": "crm.example" } },
        "headers": [{ "name": "X-Region", "value": "eu" }],
    });
    let server = json!({ "remotes": [remote], "packages": [package("npm", "@acme/crm")] });
    insta::assert_snapshot!(shown(server).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It contacts: https://crm.example/mcp
      with X-Region: eu
    ");
    let keyed = json!({ "type": "sse", "url": "https://crm.example/sse",
        "headers": [{ "name": "Authorization", "isRequired": true, "isSecret": true }] });
    insta::assert_snapshot!(shown(json!({ "remotes": [keyed] })).await, @"no plan: it needs the header `Authorization`, which only a person can give: add the server to `mcpServers`");
}

#[tokio::test]
async fn hostile_descriptions_run_nothing_and_hide_nothing() {
    for (kind, identifier) in [
        ("npm", "--call=evil"),
        ("npm", "git+ssh://evil"),
        ("npm", "../evil"),
        ("npm", "a/b"),
        ("npm", "@a/b@npm:evil"),
        ("pypi", "a b"),
        ("pypi", "-r/etc/passwd"),
        ("oci", "-v/:/host"),
        ("oci", "a\n--privileged"),
        ("nuget", ""),
    ] {
        let reason = plan(json!({ "packages": [package(kind, identifier)] })).await.unwrap_err();
        assert!(reason.contains("not valid"), "{kind} {identifier}: {reason}");
    }
    let with = |change: &dyn Fn(&mut Value)| {
        let mut npm = package("npm", "crm");
        change(&mut npm);
        shown(json!({ "packages": [npm] }))
    };
    let place = with(&|npm| npm["registryBaseUrl"] = json!("https://evil.example")).await;
    assert!(place.contains("names the package registry https://evil.example; npx uses"), "{place}");
    let version = with(&|npm| npm["version"] = json!("latest || rm -rf ~")).await;
    insta::assert_snapshot!(version, @"no plan: it offers nothing that can be used here: a package whose name or version is not valid");
    let path = json!([{ "name": "NODE_OPTIONS", "value": "--require=/tmp/evil" }]);
    insta::assert_snapshot!(with(&|npm| npm["environmentVariables"] = path.clone()).await, @"no plan: it offers nothing that can be used here: a package that sets `NODE_OPTIONS`, which changes what runs");
    let words = json!([{ "type": "positional", "value": "a\u{202e}b\n; rm -rf ~ \u{1b}[2K" }]);
    insta::assert_snapshot!(with(&|npm| npm["packageArguments"] = words.clone()).await, @r"
    Server io.github.acme/crm 1.2.0 of a file
    It runs, with your rights: npx -y crm@1.2.0 'a\u{202e}b\u{a}; rm -rf ~ \u{1b}[2K'
    ");
    let flood = json!([{ "type": "positional", "value": "x".repeat(10_000) }]);
    insta::assert_snapshot!(with(&|npm| npm["packageArguments"] = flood.clone()).await, @"no plan: its plan is too long to be shown");
    let remote = |url: &str| json!({ "remotes": [{ "type": "streamable-http", "url": url }] });
    insta::assert_snapshot!(shown(remote("file:///etc/passwd")).await, @"no plan: it offers nothing that can be used here: a remote without a valid URL");
    insta::assert_snapshot!(shown(remote("https://gіthub.com/mcp")).await, @"
    Server io.github.acme/crm 1.2.0 of a file
    It contacts: https://xn--gthub-n2e.com/mcp
    ");
    insta::assert_snapshot!(shown(json!({ "packages": [package("mcpb", "x")] })).await, @"no plan: it offers nothing that can be used here: a package of the kind `mcpb`");
    insta::assert_snapshot!(shown(json!({})).await, @"no plan: it offers nothing that can be used here: it has neither packages nor remotes");
    insta::assert_snapshot!(shown(json!({ "name": "a b" })).await, @"no plan: not a server");
}

#[tokio::test]
async fn anything_that_differs_is_another_fingerprint() {
    let base = json!({ "packages": [package("npm", "crm")] });
    let first = plan(base.clone()).await.unwrap();
    assert_eq!(first.fingerprint(), plan(base.clone()).await.unwrap().fingerprint());
    let mut prose = base.clone();
    prose["description"] = json!("Other words");
    assert_eq!(first.fingerprint(), plan(prose).await.unwrap().fingerprint(), "words run nothing");
    let mut version = base.clone();
    version["packages"][0]["version"] = json!("1.2.1");
    let mut argument = base.clone();
    argument["packages"][0]["packageArguments"] = json!([{ "type": "positional", "value": "x" }]);
    let mut variable = base.clone();
    variable["packages"][0]["environmentVariables"] = json!([{ "name": "A", "value": "b" }]);
    for changed in [version, argument, variable] {
        let changed = plan(changed).await.unwrap();
        assert_ne!(first.fingerprint(), changed.fingerprint(), "{}", changed.shown());
    }
    let kept: Plan = serde_json::from_value(serde_json::to_value(&first).unwrap()).unwrap();
    assert_eq!(kept.fingerprint(), first.fingerprint());
}

#[tokio::test]
async fn only_missing_values_are_named() {
    let mut npm = package("npm", "crm");
    npm["environmentVariables"] = json!([
        { "name": "KEY", "isRequired": true, "isSecret": true },
        { "name": "TOKEN", "isRequired": true },
        { "name": "EXTRA" },
    ]);
    let plan = plan(json!({ "packages": [npm] })).await.unwrap();
    assert_eq!(plan.missing(|name| name == "TOKEN"), ["KEY"]);
    assert!(plan.missing(|_| true).is_empty());
}
