//! `toolgate service`: one gateway for all clients of a user, started by the system.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolgate_config::Format;

use crate::{
    cli::{Globals, ServiceCommand},
    failure::{CommandResult, Failure},
    folders, lineage, load, print,
};

/// The name of the service, and of its task on Windows.
const NAME: &str = "toolgate";
/// The label of the service on macOS.
const LABEL: &str = "toolgate.gateway";

/// How the system starts services of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
    TaskScheduler,
}

/// What is written and run.
#[derive(Debug, PartialEq, Eq)]
struct ServicePlan {
    /// The file with its content.
    file: Option<(PathBuf, String)>,
    commands: Vec<Vec<String>>,
}

/// What the service runs.
struct Gateway {
    program: String,
    address: SocketAddr,
    config: String,
    environment: Vec<(String, String)>,
}

pub(crate) fn run(globals: &Globals, command: &ServiceCommand) -> CommandResult {
    match command {
        ServiceCommand::Install { http, dry_run, .. } => install(globals, *http, *dry_run),
        ServiceCommand::Status { output } => status(output.json),
        ServiceCommand::Remove { dry_run } => remove(*dry_run),
    }
}

/// The address at which the installed service listens, or a gateway that runs on this machine.
pub(crate) fn address() -> Result<SocketAddr, Failure> {
    recorded()?.or_else(running).ok_or_else(|| {
        Failure::usage("there is no gateway that clients could share")
            .hint("install one first: `toolgate service install`; or start it: `toolgate serve --http 127.0.0.1:8808`")
    })
}

/// The address of a running gateway that answers.
fn running() -> Option<SocketAddr> {
    let said = load::store()?.live().read();
    let addresses = said.iter().filter_map(|(_, text)| {
        let gateway: Value = serde_json::from_slice(text).ok()?;
        gateway["address"].as_str()?.parse().ok()
    });
    addresses.filter(|address: &SocketAddr| address.ip().is_loopback()).find(|it| answers(*it))
}

/// Whether clients of the gateway need a token.
pub(crate) fn needs_token(config: &Path) -> bool {
    let text = fs::read_to_string(config).unwrap_or_default();
    let root = toolgate_config::as_written(&text, Format::of_file(config), "").unwrap_or_default();
    root.get("gateway").and_then(|gateway| gateway.get("requireToken")) == Some(&Value::Bool(true))
}

fn install(globals: &Globals, address: SocketAddr, dry_run: bool) -> CommandResult {
    lineage::refuse_servers()?;
    if !address.ip().is_loopback() {
        return Err(Failure::usage(format!("{address} can be reached from other machines"))
            .hint("a service of your own listens on this machine alone, such as 127.0.0.1:8808; docs/gateway.md has more"));
    }
    let config = globals.config.clone().or_else(folders::own_configuration);
    let config =
        config.and_then(|path| std::path::absolute(path).ok()).filter(|path| path.is_file());
    let config = config.ok_or_else(|| {
        Failure::usage("there is no configuration for the service")
            .hint("`toolgate setup` makes one; or name yours: --config FILE")
    })?;
    let program = env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let set = |name: &str| env::var(name).ok().map(|value| (name.to_owned(), value));
    let gateway = Gateway {
        program: program.display().to_string(),
        address,
        config: config.display().to_string(),
        environment: ["PATH", "TOOLGATE_HOME", "TOOLGATE_VAULT"]
            .into_iter()
            .filter_map(set)
            .collect(),
    };
    let plan = installation(Manager::here(), &home()?, &gateway);
    if dry_run {
        show(&plan);
        return Ok(ExitCode::SUCCESS);
    }
    let before = plan.file.as_ref().map(|(path, _)| Before::of(path));
    if let Err(failure) = carry_out(&plan) {
        if let Some(before) = before {
            before.restore();
        }
        let serve = format!("toolgate serve --http {address} --config {}", folders::shown(&config));
        return Err(failure.hint(format!(
            "nothing was installed; start the gateway yourself: `{serve}`, and then \
             `toolgate setup --transport http` lets your clients share it"
        )));
    }
    let record = json!({ "address": address.to_string() }).to_string();
    write(&record_file()?, &record)?;
    print::line(format!(
        "The service listens on http://{address}/mcp, with {}.",
        folders::shown(&config)
    ));
    print::line("`toolgate setup --transport http` lets your clients share it.");
    Ok(ExitCode::SUCCESS)
}

fn carry_out(plan: &ServicePlan) -> Result<(), Failure> {
    if let Some((path, text)) = &plan.file {
        write(path, text)?;
    }
    plan.commands.iter().try_for_each(|command| execute(command))
}

/// What was at the place of a file before it was written.
struct Before {
    path: PathBuf,
    content: Option<Vec<u8>>,
    /// The folders that are not there, the innermost first.
    missing: Vec<PathBuf>,
}

impl Before {
    fn of(path: &Path) -> Self {
        let folders = path.ancestors().skip(1);
        let missing = folders.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        Self { path: path.to_owned(), content: fs::read(path).ok(), missing }
    }

    /// Puts it back. What cannot be put back is named.
    fn restore(self) {
        let restored = match self.content {
            Some(content) => fs::write(&self.path, content),
            None => fs::remove_file(&self.path),
        };
        match restored {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                print::note(format!("warning: {} stays: {error}", folders::shown(&self.path)));
            }
            _ => {}
        }
        for folder in self.missing {
            // Somebody else may have written there meanwhile.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn status(as_json: bool) -> CommandResult {
    let address = recorded()?;
    let file = installation_file(Manager::here(), &home()?);
    let is_installed = address.is_some() && file.as_ref().is_none_or(|path| path.is_file());
    let answers = address.is_some_and(answers);
    if as_json {
        let file = file.map(|path| folders::shown(&path));
        let address = address.map(|address| address.to_string());
        print::json(
            &json!({ "installed": is_installed, "address": address, "answers": answers, "file": file }),
        )?;
    } else {
        print::line(match (address.filter(|_| is_installed), answers) {
            (None, _) => {
                "The service is not installed: `toolgate service install` installs it.".to_owned()
            }
            (Some(address), true) => {
                format!("The service is installed, and answers at http://{address}/mcp.")
            }
            (Some(address), false) => format!(
                "The service is installed, and does not answer at http://{address}/mcp: {}.",
                logs(Manager::here())
            ),
        });
    }
    Ok(if is_installed && answers { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn remove(dry_run: bool) -> CommandResult {
    lineage::refuse_servers()?;
    let manager = Manager::here();
    let plan = removal(manager);
    let file = installation_file(manager, &home()?);
    if dry_run {
        show(&plan);
        if let Some(path) = file {
            print::line(format!("remove {}", path.display()));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if recorded()?.is_none() {
        return Err(Failure::usage("the service is not installed"));
    }
    for command in &plan.commands {
        // A service that does not run any more is as good as stopped.
        if let Err(failure) = execute(command) {
            print::note(format!("warning: {}", failure.first_line()));
        }
    }
    for path in file.into_iter().chain([record_file()?]) {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("cannot remove {}: {error}", path.display())));
            }
            _ => {}
        }
    }
    print::line(
        "The service is removed. Clients that used it: `toolgate setup` lets them start toolgate themselves.",
    );
    Ok(ExitCode::SUCCESS)
}

impl Manager {
    fn here() -> Self {
        match () {
            () if cfg!(windows) => Self::TaskScheduler,
            () if cfg!(target_os = "macos") => Self::Launchd,
            () => Self::Systemd,
        }
    }
}

fn home() -> Result<PathBuf, Failure> {
    let home = env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from);
    home.filter(|home| home.is_absolute())
        .ok_or_else(|| Failure::usage("the home folder is not known"))
}

fn installation_file(manager: Manager, home: &Path) -> Option<PathBuf> {
    match manager {
        Manager::Systemd => {
            let config =
                env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
            Some(
                config
                    .unwrap_or_else(|| home.join(".config"))
                    .join("systemd/user")
                    .join(format!("{NAME}.service")),
            )
        }
        Manager::Launchd => Some(home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"))),
        Manager::TaskScheduler => None,
    }
}

fn installation(manager: Manager, home: &Path, gateway: &Gateway) -> ServicePlan {
    let address = gateway.address.to_string();
    let arguments = ["serve", "--http", &address, "--config", &gateway.config];
    let file = installation_file(manager, home);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    match manager {
        Manager::Systemd => {
            let line: Vec<String> =
                std::iter::once(gateway.program.as_str()).chain(arguments).map(unit_word).collect();
            let mut environment = String::new();
            for (name, value) in &gateway.environment {
                let _ =
                    writeln!(environment, "Environment={}", unit_word(&format!("{name}={value}")));
            }
            let text = format!(
                "[Unit]\nDescription=toolgate: one MCP gateway for all clients\n\n[Service]\nExecStart={}\n{environment}Restart=on-failure\n\n\
                 [Install]\nWantedBy=default.target\n",
                line.join(" ")
            );
            let commands = vec![
                words("systemctl --user daemon-reload"),
                words("systemctl --user enable --now toolgate.service"),
            ];
            ServicePlan { file: file.map(|path| (path, text)), commands }
        }
        Manager::Launchd => {
            let string = |text: &str| format!("    <string>{}</string>\n", xml(text));
            let line: String =
                std::iter::once(gateway.program.as_str()).chain(arguments).map(string).collect();
            let mut environment = String::new();
            for (name, value) in &gateway.environment {
                let _ = write!(
                    environment,
                    "    <key>{}</key>
{}",
                    xml(name),
                    string(value)
                );
            }
            let text = format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
                 \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  \
                 <string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n{line}  </array>\n  <key>EnvironmentVariables</key>\n  \
                 <dict>\n{environment}  </dict>\n  <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <true/>\n</dict>\n</plist>\n"
            );
            let path = file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            let commands =
                vec![vec!["launchctl".to_owned(), "load".to_owned(), "-w".to_owned(), path]];
            ServicePlan { file: file.map(|path| (path, text)), commands }
        }
        Manager::TaskScheduler => {
            let line: Vec<String> = std::iter::once(gateway.program.as_str())
                .chain(arguments)
                .map(|word| format!("\"{word}\""))
                .collect();
            let mut create = words("schtasks /Create /F /SC ONLOGON /TN toolgate /TR");
            create.push(line.join(" "));
            ServicePlan { file: None, commands: vec![create, words("schtasks /Run /TN toolgate")] }
        }
    }
}

fn removal(manager: Manager) -> ServicePlan {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let commands = match manager {
        Manager::Systemd => vec![words("systemctl --user disable --now toolgate.service")],
        Manager::Launchd => vec![words("launchctl remove toolgate.gateway")],
        Manager::TaskScheduler => {
            vec![words("schtasks /End /TN toolgate"), words("schtasks /Delete /F /TN toolgate")]
        }
    };
    ServicePlan { file: None, commands }
}

fn logs(manager: Manager) -> &'static str {
    match manager {
        Manager::Systemd => "`journalctl --user -u toolgate` says why",
        Manager::Launchd => "`launchctl list toolgate.gateway` says why",
        Manager::TaskScheduler => "`schtasks /Query /TN toolgate /V` says why",
    }
}

/// A word of a line of a unit. `%` and `$` mean something there.
fn unit_word(word: &str) -> String {
    let escaped =
        word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn show(plan: &ServicePlan) {
    if let Some((path, text)) = &plan.file {
        print::line(format!("write {}:\n{text}", path.display()));
    }
    for command in &plan.commands {
        print::line(format!("run {}", command.join(" ")));
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

fn execute(command: &[String]) -> Result<(), Failure> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let shown = command.join(" ");
    let output = output.map_err(|error| Failure::new(format!("cannot run `{shown}`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("`{shown}` failed: {}", said.lines().next().unwrap_or_default())))
}

fn record_file() -> Result<PathBuf, Failure> {
    Ok(folders::state()
        .ok_or_else(|| Failure::new("there is no state folder"))?
        .join("service.json"))
}

fn recorded() -> Result<Option<SocketAddr>, Failure> {
    let Ok(text) = fs::read_to_string(record_file()?) else { return Ok(None) };
    let record: Value = serde_json::from_str(&text).unwrap_or_default();
    Ok(record["address"].as_str().and_then(|address| address.parse().ok()))
}

/// Whether an HTTP server answers at an address.
pub(crate) fn answers(address: SocketAddr) -> bool {
    const PATIENCE: Duration = Duration::from_secs(2);
    let asked = TcpStream::connect_timeout(&address, PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut start = [0; 5];
        stream.read_exact(&mut start)?;
        Ok(start)
    });
    asked.is_ok_and(|start| start == *b"HTTP/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway() -> Gateway {
        Gateway {
            program: "/opt/my programs/toolgate".to_owned(),
            address: "127.0.0.1:8808".parse().unwrap(),
            config: "/home/ada/100%/toolgate.json".to_owned(),
            environment: vec![("PATH".to_owned(), "/bin:/a&b".to_owned())],
        }
    }

    fn shown(plan: &ServicePlan) -> String {
        let text = plan.file.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default();
        let commands: Vec<String> =
            plan.commands.iter().map(|command| format!("$ {}", command.join(" "))).collect();
        format!("{text}{}", commands.join("\n"))
    }

    #[test]
    fn a_unit_of_systemd() {
        insta::assert_snapshot!(shown(&installation(Manager::Systemd, Path::new("/home/ada"), &gateway())), @r#"
        [Unit]
        Description=toolgate: one MCP gateway for all clients

        [Service]
        ExecStart="/opt/my programs/toolgate" "serve" "--http" "127.0.0.1:8808" "--config" "/home/ada/100%%/toolgate.json"
        Environment="PATH=/bin:/a&b"
        Restart=on-failure

        [Install]
        WantedBy=default.target
        $ systemctl --user daemon-reload
        $ systemctl --user enable --now toolgate.service
        "#);
    }

    #[test]
    fn an_agent_of_launchd_and_a_task_of_windows() {
        insta::assert_snapshot!(shown(&installation(
            Manager::Launchd,
            Path::new("/Users/ada"),
            &gateway()
        )));
        insta::assert_snapshot!(shown(&installation(Manager::TaskScheduler, Path::new("/"), &gateway())), @r#"
        $ schtasks /Create /F /SC ONLOGON /TN toolgate /TR "/opt/my programs/toolgate" "serve" "--http" "127.0.0.1:8808" "--config" "/home/ada/100%/toolgate.json"
        $ schtasks /Run /TN toolgate
        "#);
        assert_eq!(shown(&removal(Manager::Launchd)), "$ launchctl remove toolgate.gateway");
    }
}
