//! The tools that a session lists, and the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    catalog::{Catalog, CatalogServer, Tool},
    cost::CostUnit,
    identity::ServerName,
};

/// The mode in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestedMode {
    /// Deferred once a threshold is passed.
    #[default]
    Auto,
    /// Every tool, prefixed.
    Direct,
    /// The meta-tools, and the tools marked as always loaded.
    Deferred,
    /// Search, details and scripts.
    Code,
}

/// How deferred tools become callable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeferredStyle {
    /// The list of tools never changes; everything goes through `call_tool`.
    #[default]
    Stable,
    /// Found tools are appended to the list, which is announced.
    Dynamic,
}

/// What a session lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureKind {
    /// Every tool that is not deferred by its own setting.
    Direct,
    /// The meta-tools, with a list that never changes.
    Stable,
    /// The meta-tools, with a list that grows.
    Dynamic,
    /// Search, details and scripts, with a list that never changes.
    Code,
}

/// The thresholds. If one is exceeded, `auto` defers the tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposureSettings {
    /// The configured mode.
    pub mode: RequestedMode,
    /// The style of deferring.
    pub deferred: DeferredStyle,
    /// The size of the model's context window, in tokens.
    pub context_window: u64,
    /// The share of it that definitions may take, in percent.
    pub threshold_percent: f64,
    /// How many characters of names, descriptions and parameters are allowed; not checked where unset.
    pub character_threshold: Option<u64>,
    /// The number of tools from which on they are deferred; not checked where unset.
    pub tool_threshold: Option<u64>,
    /// The unit of the cost.
    pub unit: CostUnit,
}

/// What toolgate's own tools cost in a session that lists all tools directly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnCost {
    /// In tokens.
    pub tokens: u64,
    /// In characters.
    pub characters: u64,
}

/// What all definitions together cost.
#[derive(Debug, Default)]
struct Totals {
    tools: u64,
    tokens: u64,
    /// Counted only if a setting requires it.
    characters: Option<u64>,
    /// What [`ExposureSettings::character_threshold`] limits, counted only if it is set.
    plain_characters: Option<u64>,
}

/// The decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposure {
    /// What the session lists.
    pub kind: ExposureKind,
    /// Whether the mode `direct` was requested. Then settings of tools do not defer them.
    forced_direct: bool,
    /// Why.
    pub reason: Reason,
}

/// Why a session lists what it lists, as a text for people.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// The mode was set.
    Requested(RequestedMode),
    /// No threshold is exceeded.
    Fits {
        /// The cost of the definitions.
        cost: u64,
        /// The allowed cost.
        allowed: u64,
        /// In what that is counted.
        unit: CostUnit,
    },
    /// The share of the context window is passed.
    ContextShare {
        /// The cost of the definitions.
        cost: u64,
        /// The allowed cost.
        allowed: u64,
        /// In what that is counted.
        unit: CostUnit,
        /// The share in percent.
        percent: f64,
        /// The window.
        window: u64,
    },
    /// There are too many characters.
    Characters {
        /// How many there are.
        characters: u64,
        /// How many are allowed.
        allowed: u64,
    },
    /// There are too many tools.
    ToolCount {
        /// How many there are.
        tools: u64,
        /// How many are allowed.
        allowed: u64,
    },
    /// Some servers have not listed their tools yet, so the cost is unknown.
    Unknown {
        /// The servers.
        servers: Vec<ServerName>,
    },
}

/// How many servers a reason names.
const SHOWN_SERVERS: usize = 3;

/// The number of characters that count as one token.
pub const CHARACTERS_A_TOKEN: u64 = 4;

impl Default for ExposureSettings {
    fn default() -> Self {
        Self {
            mode: RequestedMode::Auto,
            deferred: DeferredStyle::Stable,
            context_window: 200_000,
            threshold_percent: 5.0,
            character_threshold: None,
            tool_threshold: None,
            unit: CostUnit::Tokens,
        }
    }
}

impl ExposureSettings {
    /// The allowed cost of all definitions, in the configured unit. The context window is in
    /// tokens, and a token counts as four characters.
    pub fn allowance(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a window is far inside what a double holds exactly"
        )]
        let allowance =
            (self.context_window as f64 * self.threshold_percent / 100.0).max(0.0) as u64;
        match self.unit {
            CostUnit::Tokens => allowance,
            CostUnit::Characters => allowance.saturating_mul(CHARACTERS_A_TOKEN),
        }
    }
}

impl Totals {
    fn of<'a>(
        tools: impl IntoIterator<Item = &'a Tool>,
        own: OwnCost,
        settings: &ExposureSettings,
    ) -> Self {
        let characters = (settings.unit == CostUnit::Characters).then_some(own.characters);
        let plain_characters = settings.character_threshold.map(|_| 0);
        let mut totals = Self { tools: 0, tokens: own.tokens, characters, plain_characters };
        for tool in tools {
            totals.tools += 1;
            totals.tokens += u64::from(tool.definition.tokens());
            if let Some(sum) = &mut totals.characters {
                *sum += tool.definition.characters() as u64;
            }
            if let Some(sum) = &mut totals.plain_characters {
                *sum += tool.definition.plain_characters() as u64;
            }
        }
        totals
    }
}

/// Decides for a session that starts now. `own` is listed besides the tools of the servers.
/// `unknown_servers` have not listed their tools yet and are in no cache either.
pub fn decide(
    catalog: &Catalog,
    settings: &ExposureSettings,
    own: OwnCost,
    unknown_servers: &[ServerName],
) -> Exposure {
    let reason = match settings.mode {
        // These modes need no count.
        RequestedMode::Direct | RequestedMode::Deferred | RequestedMode::Code => {
            Reason::Requested(settings.mode)
        }
        RequestedMode::Auto => {
            let totals = Totals::of(catalog.tools(), own, settings);
            reason(&totals, settings, unknown_servers)
        }
    };
    let deferred = match settings.deferred {
        DeferredStyle::Stable => ExposureKind::Stable,
        DeferredStyle::Dynamic => ExposureKind::Dynamic,
    };
    let kind = match reason {
        Reason::Requested(RequestedMode::Direct) | Reason::Fits { .. } => ExposureKind::Direct,
        Reason::Requested(RequestedMode::Code) => ExposureKind::Code,
        _ => deferred,
    };
    let forced_direct = settings.mode == RequestedMode::Direct;
    Exposure { kind, forced_direct, reason }
}

fn reason(totals: &Totals, settings: &ExposureSettings, unknown_servers: &[ServerName]) -> Reason {
    let unit = settings.unit;
    let cost = match unit {
        CostUnit::Tokens => totals.tokens,
        CostUnit::Characters => totals.characters.unwrap_or_default(),
    };
    let allowed = settings.allowance();
    if cost > allowed {
        let (percent, window) = (settings.threshold_percent, settings.context_window);
        return Reason::ContextShare { cost, allowed, unit, percent, window };
    }
    if let (Some(characters), Some(allowed)) =
        (totals.plain_characters, settings.character_threshold)
        && characters > allowed
    {
        return Reason::Characters { characters, allowed };
    }
    if let Some(allowed) = settings.tool_threshold
        && totals.tools >= allowed
    {
        return Reason::ToolCount { tools: totals.tools, allowed };
    }
    if !unknown_servers.is_empty() {
        return Reason::Unknown { servers: unknown_servers.to_vec() };
    }
    Reason::Fits { cost, allowed, unit }
}

impl Exposure {
    /// Whether every tool is loaded, regardless of its own setting.
    pub fn loads_everything(&self) -> bool {
        self.forced_direct
    }

    /// Whether a tool's definition is in the model's context from the start.
    pub fn loads(&self, tool: &Tool, server: &CatalogServer) -> bool {
        if self.forced_direct {
            return true;
        }
        let deferred_by_default = self.kind != ExposureKind::Direct;
        !server.defers(&tool.id.tool).unwrap_or(deferred_by_default)
    }

    /// The tools that are loaded from the start, in the catalogue's order.
    pub fn loaded<'a>(&self, catalog: &'a Catalog) -> impl Iterator<Item = &'a Tool> {
        catalog.servers().flat_map(move |server| {
            catalog
                .tools_of(server.name.as_str())
                .iter()
                .filter(move |tool| self.loads(tool, server))
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested(_) => formatter.write_str("it was asked for"),
            Self::Fits { cost, allowed, unit } => write!(
                formatter,
                "{} fit into the {} allowed",
                amount(*cost, *unit),
                grouped(*allowed)
            ),
            Self::ContextShare { cost, allowed, unit, percent, window } => write!(
                formatter,
                "{} are more than {}, which is {percent} % of a context of {} tokens",
                amount(*cost, *unit),
                grouped(*allowed),
                grouped(*window)
            ),
            Self::Characters { characters, allowed } => write!(
                formatter,
                "{} characters are more than the {} of tokenThreshold",
                grouped(*characters),
                grouped(*allowed)
            ),
            Self::ToolCount { tools, allowed } => {
                write!(formatter, "there are {tools} tools, and toolThreshold is {allowed}")
            }
            Self::Unknown { servers } => {
                let shown: Vec<&str> =
                    servers.iter().take(SHOWN_SERVERS).map(ServerName::as_str).collect();
                write!(formatter, "the tools of {}", shown.join(", "))?;
                if servers.len() > SHOWN_SERVERS {
                    write!(formatter, " and {} more", servers.len() - SHOWN_SERVERS)?;
                }
                formatter
                    .write_str(" are not known yet, and what is unknown must not flood a context")
            }
        }
    }
}

impl fmt::Display for ExposureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Direct => "direct",
            Self::Stable => "stable",
            Self::Dynamic => "dynamic",
            Self::Code => "code",
        })
    }
}

fn amount(cost: u64, unit: CostUnit) -> String {
    match unit {
        CostUnit::Tokens => format!("{} tokens", grouped(cost)),
        CostUnit::Characters => format!("{} characters", grouped(cost)),
    }
}

/// `1234567` as `1,234,567`, for people.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Definition;

    fn catalog(entries: Vec<CatalogServer>, tools_each: usize) -> Catalog {
        let names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        let mut catalog = Catalog::new(entries);
        for name in names {
            let definitions = (0..tools_each)
                .map(|index| {
                    Definition::from_value(&json!({
                        "name": format!("tool_{index}"), "inputSchema": {"type": "object"},
                        "description": "Does one thing, and does it well enough for a test.",
                    }))
                    .unwrap()
                })
                .collect();
            catalog.replace_server(&name, definitions);
        }
        catalog
    }

    fn loaded(exposure: &Exposure, catalog: &Catalog) -> usize {
        exposure.loaded(catalog).count()
    }

    #[test]
    fn a_small_set_is_shown_directly() {
        let catalog = catalog(vec![CatalogServer::named("s")], 3);
        let exposure = decide(&catalog, &ExposureSettings::default(), OwnCost::default(), &[]);
        assert_eq!(exposure.kind, ExposureKind::Direct);
        assert_eq!(loaded(&exposure, &catalog), 3);
        insta::assert_snapshot!(exposure.reason, @"87 tokens fit into the 10,000 allowed");
    }

    #[test]
    fn tools_of_our_own_count() {
        let catalog = catalog(vec![CatalogServer::named("s")], 3);
        let settings = ExposureSettings { context_window: 2_000, ..Default::default() };
        let with = |own| decide(&catalog, &settings, own, &[]);
        assert_eq!(with(OwnCost { tokens: 13, characters: 0 }).kind, ExposureKind::Direct);
        let more = with(OwnCost { tokens: 14, characters: 0 });
        insta::assert_snapshot!(more.reason, @"101 tokens are more than 100, which is 5 % of a context of 2,000 tokens");
    }

    #[test]
    fn characters_are_counted_as_other_clients_do_and_tools_up_to_the_threshold() {
        let catalog = catalog(vec![CatalogServer::named("s")], 3);
        // The name, the description and `{"type":"object"}`, three times.
        let characters = 3 * (6 + 51 + 17);
        for (threshold, kind) in
            [(characters, ExposureKind::Direct), (characters - 1, ExposureKind::Stable)]
        {
            let settings =
                ExposureSettings { character_threshold: Some(threshold), ..Default::default() };
            let own = OwnCost { tokens: 0, characters: 10_000 };
            assert_eq!(decide(&catalog, &settings, own, &[]).kind, kind, "{threshold}");
        }
        for (threshold, kind) in [(4, ExposureKind::Direct), (3, ExposureKind::Stable)] {
            let settings =
                ExposureSettings { tool_threshold: Some(threshold), ..Default::default() };
            assert_eq!(
                decide(&catalog, &settings, OwnCost::default(), &[]).kind,
                kind,
                "{threshold}"
            );
        }
    }

    #[test]
    fn each_threshold_defers() {
        let catalog = catalog(vec![CatalogServer::named("s")], 20);
        let settings = ExposureSettings::default();
        let reasons: Vec<String> = [
            ExposureSettings { context_window: 1_000, ..settings.clone() },
            ExposureSettings { character_threshold: Some(100), ..settings.clone() },
            ExposureSettings { tool_threshold: Some(15), ..settings.clone() },
            ExposureSettings {
                unit: CostUnit::Characters,
                context_window: 10_000,
                ..settings.clone()
            },
            ExposureSettings { mode: RequestedMode::Deferred, ..settings.clone() },
        ]
        .iter()
        .map(|settings| {
            let exposure = decide(&catalog, settings, OwnCost::default(), &[]);
            assert_eq!(exposure.kind, ExposureKind::Stable);
            assert_eq!(loaded(&exposure, &catalog), 0);
            exposure.reason.to_string()
        })
        .collect();
        insta::assert_snapshot!(reasons.join("\n"), @"
        580 tokens are more than 50, which is 5 % of a context of 1,000 tokens
        1,490 characters are more than the 100 of tokenThreshold
        there are 20 tools, and toolThreshold is 15
        2,350 characters are more than 2,000, which is 5 % of a context of 10,000 tokens
        it was asked for
        ");
        let servers = ["a", "b", "c", "d"].map(ServerName::from);
        let unknown = decide(&catalog, &settings, OwnCost::default(), &servers);
        assert_eq!(unknown.kind, ExposureKind::Stable, "what is unknown must not flood a context");
        insta::assert_snapshot!(unknown.reason, @"the tools of a, b, c and 1 more are not known yet, and what is unknown must not flood a context");
    }

    #[test]
    fn settings_of_tools_override_servers_which_override_the_threshold() {
        let mut entry = CatalogServer::named("s");
        entry.defer_loading = Some(true);
        entry.defer_tools.insert("tool_1".into(), false);
        let catalog = catalog(vec![entry, CatalogServer::named("other")], 3);

        let small = decide(&catalog, &ExposureSettings::default(), OwnCost::default(), &[]);
        assert_eq!(small.kind, ExposureKind::Direct);
        let names: Vec<_> = small.loaded(&catalog).map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["s_tool_1", "other_tool_0", "other_tool_1", "other_tool_2"]);

        let settings = ExposureSettings { tool_threshold: Some(1), ..Default::default() };
        let large = decide(&catalog, &settings, OwnCost::default(), &[]);
        let names: Vec<_> = large.loaded(&catalog).map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["s_tool_1"]);

        let settings = ExposureSettings { mode: RequestedMode::Direct, ..settings };
        assert_eq!(loaded(&decide(&catalog, &settings, OwnCost::default(), &[]), &catalog), 6);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
