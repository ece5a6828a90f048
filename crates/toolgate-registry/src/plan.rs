//! Plans: what a server of a registry would run or contact.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

use crate::{
    entry::{Input, Package, RegistryEntry, RemoteEndpoint, is_version},
    error::NoPlan,
    fill::{self, MissingValue},
    show::{summary, visible, word},
};

/// Exactly what a server would run or contact. It is stored as JSON once a person has consented to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The server's name in the registry.
    pub server: String,
    /// Its version.
    pub version: String,
    /// The prefix of its tools' names.
    pub prefix: String,
    /// Its description in the registry.
    pub description: String,
    /// The registry.
    pub source: String,
    /// What is run or contacted.
    pub target: PlanTarget,
}

/// What is run or contacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum PlanTarget {
    /// A program.
    #[serde(rename_all = "camelCase")]
    Run {
        /// Its name, looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are set for it.
        env: BTreeMap<String, String>,
        /// Variables that it takes from the environment of toolgate.
        variables: Vec<PlanVariable>,
        /// The package registry that the entry names. The command may be configured to use another.
        #[serde(default, skip_serializing_if = "Option::is_none", rename = "place")]
        package_registry: Option<String>,
    },
    /// A URL.
    #[serde(rename_all = "camelCase")]
    Contact {
        /// The URL.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// A variable that a person sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanVariable {
    /// Its name.
    pub name: String,
    /// Whether the server needs it.
    pub required: bool,
    /// Whether its value is a secret.
    pub secret: bool,
}

/// Longer plans are refused, because nobody would read them.
const MAX_SHOWN_CHARACTERS: usize = 8_000;

impl Plan {
    /// Makes the plan of a server. A URL is preferred to a program, because it has less power.
    pub fn of(entry: &RegistryEntry) -> Result<Self, NoPlan> {
        let mut reasons: Vec<String> = Vec::new();
        let mut needed: Option<MissingValue> = None;
        let remotes = entry.remotes.iter().map(contact);
        for target in remotes.chain(entry.packages.iter().map(|package| run(package, entry))) {
            match target {
                Ok(target) => return Self { target, ..Self::empty(entry) }.bounded(),
                Err(NoPlan::NothingUsable(reason)) => reasons.push(reason),
                Err(NoPlan::NeedsValues(values)) => needed = needed.or(Some(values)),
                Err(NoPlan::TooLong) => return Err(NoPlan::TooLong),
            }
        }
        if let Some(values) = needed {
            return Err(NoPlan::NeedsValues(values));
        }
        if reasons.is_empty() {
            reasons.push("it has neither packages nor remotes".to_owned());
        }
        reasons.truncate(3);
        Err(NoPlan::NothingUsable(reasons.join("; ")))
    }

    fn empty(entry: &RegistryEntry) -> Self {
        Self {
            server: entry.name.clone(),
            version: entry.version.clone(),
            prefix: entry.prefix().to_owned(),
            description: summary(&entry.description, 300),
            source: entry.source.clone(),
            target: PlanTarget::Contact { url: String::new(), headers: BTreeMap::new() },
        }
    }

    fn bounded(self) -> Result<Self, NoPlan> {
        if self.shown().len() <= MAX_SHOWN_CHARACTERS { Ok(self) } else { Err(NoPlan::TooLong) }
    }

    /// A hash of everything that is run or contacted. A consent is for one fingerprint.
    pub fn fingerprint(&self) -> String {
        let (name, version, target) = (&self.server, &self.version, &self.target);
        // Maps are ordered, so that the same content is the same text.
        let text = serde_json::to_string(&(name, version, target)).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// The required variables for which `is_set` is false.
    pub fn missing(&self, is_set: impl Fn(&str) -> bool) -> Vec<&str> {
        let PlanTarget::Run { variables, .. } = &self.target else { return Vec::new() };
        let missing = variables.iter().filter(|variable| variable.required);
        missing.map(|variable| variable.name.as_str()).filter(|name| !is_set(name)).collect()
    }

    /// The whole plan as text, for the person who decides.
    pub fn shown(&self) -> String {
        let mut text = format!(
            "Server {} {} of {}\n",
            visible(&self.server),
            visible(&self.version),
            visible(&self.source)
        );
        if !self.description.is_empty() {
            let _ = writeln!(text, "It says of itself: {}", self.description);
        }
        match &self.target {
            PlanTarget::Run { command, args, env, variables, package_registry } => {
                let words: Vec<String> =
                    std::iter::once(command).chain(args).map(|text| word(text)).collect();
                let _ = writeln!(text, "It runs, with your rights: {}", words.join(" "));
                if let Some(url) = package_registry {
                    let _ = writeln!(
                        text,
                        "  the entry names the package registry {}; {command} uses the one that it \
                         is configured for",
                        visible(url)
                    );
                }
                for (name, value) in env {
                    let _ = writeln!(text, "  with {}={}", visible(name), word(value));
                }
                for PlanVariable { name, required, secret } in variables {
                    let need = if *required { "required" } else { "optional" };
                    let kind = if *secret { ", secret" } else { "" };
                    let _ = writeln!(text, "  it reads {} ({need}{kind})", visible(name));
                }
            }
            PlanTarget::Contact { url, headers } => {
                let _ = writeln!(text, "It contacts: {}", visible(url));
                for (name, value) in headers {
                    let _ = writeln!(text, "  with {}: {}", visible(name), visible(value));
                }
            }
        }
        text
    }
}

fn contact(remote: &RemoteEndpoint) -> Result<PlanTarget, NoPlan> {
    if !matches!(remote.r#type.as_str(), "streamable-http" | "streamable" | "http" | "sse") {
        let kind = summary(&remote.r#type, 40);
        return Err(NoPlan::NothingUsable(format!("a remote of the kind `{kind}`")));
    }
    let url = fill::template_of(&remote.url, &remote.variables)?;
    let parsed = url::Url::parse(&url).ok().filter(url::Url::has_host);
    let Some(parsed) = parsed.filter(|url| matches!(url.scheme(), "http" | "https")) else {
        return Err(NoPlan::NothingUsable("a remote without a valid URL".to_owned()));
    };
    let mut headers = BTreeMap::new();
    for header in &remote.headers {
        match fill::value(header)? {
            Some(value) if fits_header(&header.name, &value) => {
                headers.insert(header.name.clone(), value);
            }
            Some(_) => {
                return Err(NoPlan::NothingUsable("a remote with an invalid header".to_owned()));
            }
            None if header.is_required => {
                let name = summary(&header.name, 60);
                return Err(MissingValue::Header(name).into());
            }
            None => {}
        }
    }
    // The parsed form has the host in ASCII, as it is contacted.
    Ok(PlanTarget::Contact { url: parsed.to_string(), headers })
}

fn fits_header(name: &str, value: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty()
        && name.bytes().all(token)
        && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn run(package: &Package, entry: &RegistryEntry) -> Result<PlanTarget, NoPlan> {
    let unusable = |reason: String| Err(NoPlan::NothingUsable(reason));
    let kind = package.registry_type.as_str();
    if package.transport.as_ref().is_some_and(|it| it.r#type != "stdio" && !it.r#type.is_empty()) {
        return unusable(format!("a package of {} that does not speak stdio", summary(kind, 20)));
    }
    let version = package.version.as_deref().unwrap_or(&entry.version);
    if !matches!(kind, "npm" | "pypi" | "nuget" | "oci") {
        return unusable(format!("a package of the kind `{}`", summary(kind, 20)));
    }
    // The name of an image includes its registry.
    let package_registry = package.registry_base_url.clone().filter(|_| kind != "oci");
    if !is_identifier(kind, &package.identifier) || version.is_empty() || !is_version(version) {
        return unusable("a package whose name or version is not valid".to_owned());
    }
    let options = fill::arguments(&package.runtime_arguments)?;
    let arguments = fill::arguments(&package.own_arguments)?;
    let (env, variables) = environment(&package.environment_variables)?;
    let (command, mut args) = match kind {
        "npm" => ("npx", vec!["-y".to_owned()]),
        "pypi" => ("uvx", Vec::new()),
        "nuget" => ("dnx", Vec::new()),
        _ => ("docker", ["run", "-i", "--rm"].map(str::to_owned).to_vec()),
    };
    for option in options {
        if !args.contains(&option) {
            args.push(option);
        }
    }
    let name = &package.identifier;
    match kind {
        "npm" => args.push(format!("{name}@{version}")),
        "pypi" => args.push(format!("{name}=={version}")),
        "nuget" => args.extend([format!("{name}@{version}"), "--yes".to_owned()]),
        _ => {
            let names = env.keys().chain(variables.iter().map(|variable| &variable.name));
            args.extend(names.flat_map(|name| ["-e".to_owned(), name.clone()]));
            let last = name.rsplit('/').next().unwrap_or(name);
            let is_exact = last.contains(':') || last.contains('@');
            args.push(if is_exact { name.clone() } else { format!("{name}:{version}") });
        }
    }
    args.extend(arguments);
    Ok(PlanTarget::Run { command: command.to_owned(), args, env, variables, package_registry })
}

/// Whether a package's name is only a name: not an option, a path or a URL.
fn is_identifier(kind: &str, name: &str) -> bool {
    let signs = match kind {
        "npm" => "@/._-~",
        "oci" => "/._-:@",
        _ => "._-",
    };
    let sound = |character: char| character.is_ascii_alphanumeric() || signs.contains(character);
    let begins =
        |character: char| character.is_ascii_alphanumeric() || (kind == "npm" && character == '@');
    let slashes = name.matches('/').count();
    let scoped = kind != "npm" || slashes == usize::from(name.starts_with('@'));
    let once = kind != "npm" || name.matches('@').count() == usize::from(name.starts_with('@'));
    !name.is_empty()
        && name.len() <= 214
        && name.starts_with(begins)
        && name.chars().all(sound)
        && scoped
        && once
        && !name.contains("..")
}

fn environment(
    described: &[Input],
) -> Result<(BTreeMap<String, String>, Vec<PlanVariable>), NoPlan> {
    let mut env = BTreeMap::new();
    let mut variables = Vec::new();
    for input in described {
        let sound = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if input.name.is_empty() || input.name.len() > 100 || !input.name.chars().all(sound) {
            let reason = "a package with an invalid environment variable".to_owned();
            return Err(NoPlan::NothingUsable(reason));
        }
        if changes_programs(&input.name) {
            let reason = format!("a package that sets `{}`, which changes what runs", input.name);
            return Err(NoPlan::NothingUsable(reason));
        }
        match fill::value(input) {
            Ok(Some(value)) if !input.is_secret && !value.contains('\0') => {
                env.insert(input.name.clone(), value);
            }
            _ => variables.push(PlanVariable {
                name: input.name.clone(),
                required: input.is_required,
                secret: input.is_secret,
            }),
        }
    }
    Ok((env, variables))
}

/// Variables that would make the shown command run another program.
fn changes_programs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let exact =
        ["PATH", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV"];
    let families = ["LD_", "DYLD_", "NPM_CONFIG_", "UV_", "PIP_", "DOCKER_", "DOTNET_", "GIT_"];
    exact.contains(&name.as_str()) || families.iter().any(|family| name.starts_with(family))
}
