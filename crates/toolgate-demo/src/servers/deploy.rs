//! `deploy`: releases, environments, rollbacks and feature flags.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, choice, flag, integer, limit, map, object, objects, since, text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const ENVIRONMENTS: &[&str] = &["development", "staging", "production"];
const STATES: &[&str] = &["pending", "running", "succeeded", "failed", "rolled_back", "cancelled"];
const STRATEGIES: &[&str] = &["rolling", "blue_green", "canary"];

pub(super) fn server() -> Spec {
    Spec {
        name: "deploy",
        description: "Releases, deployments to environments, rollbacks and feature flags.",
        version: "2.0.0",
        prefix: None,
        era: Era::HandshakeAndDiscover,
        annotations: Annotations::Given,
        tables: vec![
            tables::releases(),
            tables::deployments(),
            tables::environments(),
            tables::flags(),
        ],
        tools: release_tools()
            .into_iter()
            .chain(deployment_tools())
            .chain(environment_tools())
            .chain(flag_tools())
            .collect(),
    }
}

fn rule_fields() -> Vec<Field> {
    vec![
        text("attribute", "Attribute of the user, such as country."),
        choice("operator", &["equals", "not_equals", "in", "starts_with"], "How to compare."),
        texts("values", "Values to compare with."),
    ]
}

fn environment() -> Field {
    choice(
        "environment",
        ENVIRONMENTS,
        "Target environment; production is protected and needs an approval.",
    )
    .example("staging")
}

fn service() -> Field {
    text("service", "Name of the service, such as shop or api.").example("shop")
}

fn release_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_releases",
            "List releases that were built, with their changes, optionally of one service.",
            vec![
                text("service", "Only releases of this service.").optional(),
                since(
                    "since",
                    "Only releases built since then: a time, or a duration such as 14d.",
                )
                .optional()
                .example("14d"),
                limit(20, 100),
            ],
            Action::List("releases", Shape::Bare),
        )
        .typed(),
        tool(
            "get_release",
            "Get a release by its version, with its commit and changes.",
            vec![text("version", "Version of the release.").example("2026.10.2")],
            Action::Get("releases"),
        ),
        tool(
            "create_release",
            "Create a release of a service from a commit. It is built and can then be deployed \
            with trigger_deployment.",
            vec![
                text("version", "Version of the release; must be new.").example("2026.10.3"),
                service(),
                text("commit", "Commit to build from.").example("d94f0aa"),
                texts("changes", "What has changed, a line each.").optional(),
                text("author", "Who made it.").optional(),
            ],
            Action::Create("releases", &[]),
        ),
        tool(
            "compare_releases",
            "Compare two releases of a service: lists the changes of all releases after the \
            first, up to and including the second.",
            vec![
                text("base_version", "The older release.").example("2026.9.7"),
                text("head_version", "The newer release.").example("2026.10.2"),
            ],
            Action::Compute(answers::compare),
        ),
    ]
}

fn deployment_tools() -> Vec<Tool> {
    let deployment = || {
        text(
            "deployment_id",
            "Id of the deployment, as returned by trigger_deployment or list_deployments.",
        )
        .example("DPL-508")
    };
    vec![
        tool(
            "list_deployments",
            "List deployments, optionally of a service, to an environment or in a state.",
            vec![
                text("service", "Only deployments of this service.").optional(),
                choice("environment", ENVIRONMENTS, "Only deployments to this environment.")
                    .optional(),
                choice("status", STATES, "Only deployments in this state.").optional(),
                since(
                    "since",
                    "Only deployments started since then: a time, or a duration such as 24h.",
                )
                .optional()
                .example("7d"),
                limit(20, 100),
            ],
            Action::List("deployments", Shape::Bare),
        )
        .typed(),
        tool(
            "get_deployment",
            "Get a deployment and its state.",
            vec![deployment()],
            Action::Get("deployments"),
        )
        .typed(),
        tool(
            "trigger_deployment",
            "Deploy a release of a service to an environment. Refused while the environment is \
            locked. Returns the deployment, which runs in the background.",
            vec![
                service(),
                text("version", "Release to deploy.").example("2026.10.2"),
                environment(),
                choice("strategy", STRATEGIES, "How to roll it out.").or("rolling"),
                object(
                    "canary",
                    vec![
                        integer("percent", 1..=50, "Share of traffic for the new release."),
                        integer("minutes", 1..=1_440, "How long to watch it."),
                        texts("abort_on", "Names of alerts that end it.").optional(),
                    ],
                    "Settings of the strategy canary.",
                )
                .optional(),
                flag("dry_run", "Only check whether it could be deployed.").or(false),
            ],
            Action::Change(answers::trigger),
        ),
        tool(
            "rollback_deployment",
            "Roll an environment back to the release of a service that was deployed there before \
            the current one.",
            vec![
                environment(),
                service(),
                text("reason", "Why it is rolled back.").example("Payment timeouts"),
            ],
            Action::Change(answers::rollback),
        ),
        tool(
            "cancel_deployment",
            "Cancel a deployment that is pending or running.",
            vec![deployment()],
            Action::Destroy("deployments", &[("status", "cancelled")]),
        ),
        tool(
            "get_deployment_logs",
            "Get the last lines that a deployment has written.",
            vec![deployment(), integer("lines", 1..=200, "Number of lines.").or(20)],
            Action::Compute(answers::logs),
        ),
    ]
}

fn environment_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_environments",
            "List environments with address, region and whether they are protected or locked.",
            vec![],
            Action::List("environments", Shape::Bare),
        ),
        tool(
            "lock_environment",
            "Hold back all deployments to an environment, for example during an incident.",
            vec![
                environment(),
                text("lock_reason", "Why it is locked.").example("Incident review"),
            ],
            Action::Update("environments", &[("locked", "true")]),
        ),
        tool(
            "unlock_environment",
            "Allow deployments to a locked environment again.",
            vec![environment()],
            Action::Update("environments", &[("locked", "false")]),
        ),
    ]
}

fn flag_tools() -> Vec<Tool> {
    let key = || {
        text("key", "Key of the feature flag, as returned by list_feature_flags.")
            .example("new-checkout")
    };
    let percent = || integer("rollout_percent", 0..=100, "Share of users who get the feature.");
    vec![
        tool(
            "list_feature_flags",
            "List feature flags with their state and rollout, optionally of one environment.",
            vec![
                flag("enabled", "Only flags that are on, or off.").optional(),
                choice("environments", ENVIRONMENTS, "Only flags that apply to this environment.")
                    .optional(),
            ],
            Action::List("flags", Shape::Bare),
        )
        .typed(),
        tool(
            "create_feature_flag",
            "Create a feature flag. It is off until it is turned on with toggle_feature_flag.",
            vec![
                text("key", "Key of the flag, in lower case with dashes.")
                    .example("express-shipping"),
                text("description", "What it turns on.").example("Offer express shipping"),
                texts("environments", "Environments that it applies to.")
                    .example(json!(["staging"])),
                percent().or(0),
            ],
            Action::Create("flags", &[("enabled", "false")]),
        ),
        tool(
            "toggle_feature_flag",
            "Turn a feature flag on or off.",
            vec![key(), flag("enabled", "Whether it should be on.").example(true)],
            Action::Update("flags", &[]),
        ),
        tool(
            "set_feature_flag_rollout",
            "Set the share of users who get a feature, and the rules for who gets it first.",
            vec![
                key(),
                percent().example(50),
                objects("rules", rule_fields(), "Who gets it whatever the share.").optional(),
            ],
            Action::Update("flags", &[]),
        ),
        tool(
            "evaluate_feature_flag",
            "Find out whether a user gets a feature. The same user always gets the same answer \
            for the same rollout.",
            vec![
                key(),
                text("user_id", "The user.").example("user-42"),
                map("attributes", Kind::Text, "Attributes of the user for the rules.").optional(),
            ],
            Action::Compute(answers::evaluate),
        )
        .returns(vec![
            text("key", "Key of the flag."),
            flag("enabled", "Whether the user gets the feature."),
            text("reason", "Why."),
        ]),
    ]
}
