//! The tables of `deploy` and what is in them at the start.

use super::{ENVIRONMENTS, STATES, STRATEGIES, rule_fields};
use crate::field::{choice, count, flag, moment, objects, text, texts};
use crate::table::{Source, Table};

const RELEASES: &str = "\
2026.9.6  | shop | 4f21c9a | Faster product pages;Fix typo in footer       | 2026-09-22T09:00:00Z | viktor
2026.9.7  | shop | 90b3e77 | New stock reservation                         | 2026-09-29T09:00:00Z | viktor
2026.10.1 | shop | c81d204 | Payment retries;Admin search                  | 2026-10-06T09:00:00Z | zofia
2026.10.2 | shop | 7ae5f13 | Upgrade payment client;Rate limits by key     | 2026-10-14T15:10:00Z | viktor
1.40.0    | api  | 11c0de5 | Webhook signatures                            | 2026-10-01T12:00:00Z | tariq
1.41.0    | api  | 5b7a9e0 | Pagination for orders                         | 2026-10-13T08:30:00Z | tariq
";

const DEPLOYMENTS: &str = "\
DPL-501 | shop | 2026.9.7  | production | succeeded   | rolling    | 2026-09-30T07:00:00Z | viktor
DPL-502 | api  | 1.40.0    | production | succeeded   | rolling    | 2026-10-02T07:00:00Z | tariq
DPL-503 | shop | 2026.10.1 | staging    | succeeded   | rolling    | 2026-10-06T09:30:00Z | zofia
DPL-504 | shop | 2026.10.1 | production | succeeded   | canary     | 2026-10-07T07:00:00Z | zofia
DPL-505 | api  | 1.41.0    | staging    | failed      | rolling    | 2026-10-13T09:00:00Z | tariq
DPL-506 | shop | 2026.10.2 | staging    | succeeded   | rolling    | 2026-10-14T15:20:00Z | viktor
DPL-507 | shop | 2026.10.2 | production | succeeded   | blue_green | 2026-10-14T16:00:00Z | viktor
DPL-508 | api  | 1.41.0    | staging    | running     | rolling    | 2026-10-15T09:25:00Z | tariq
";

pub(super) fn releases() -> Table {
    Table {
        name: "releases",
        singular: "release",
        columns: vec![
            text("version", "Version of the release."),
            text("service", "Service that it is of."),
            text("commit", "Commit that it was built from."),
            texts("changes", "What has changed."),
            moment("created_at", "When it was built."),
            text("author", "Who made it."),
        ],
        id_prefix: "0.0.",
        time: Some("created_at"),
        source: Source::Lines(RELEASES),
    }
}

pub(super) fn deployments() -> Table {
    Table {
        name: "deployments",
        singular: "deployment",
        columns: vec![
            text("id", "Deployment id."),
            text("service", "Service that was deployed."),
            text("version", "Release that was deployed."),
            choice("environment", ENVIRONMENTS, "Where to."),
            choice("status", STATES, "State of the deployment.").or("pending"),
            choice("strategy", STRATEGIES, "How it was rolled out.").or("rolling"),
            moment("started_at", "When it started."),
            text("triggered_by", "Who started it.").or("demo"),
        ],
        id_prefix: "DPL-",
        time: Some("started_at"),
        source: Source::Lines(DEPLOYMENTS),
    }
}

pub(super) fn environments() -> Table {
    Table {
        name: "environments",
        singular: "environment",
        columns: vec![
            text("name", "Name of the environment."),
            text("url", "Where it answers."),
            text("region", "Where it runs."),
            flag("protected", "Whether deployments need an approval."),
            flag("locked", "Whether deployments are held back.").or(false),
            count("replicas", "Instances of each service."),
            text("lock_reason", "Why it is locked.").optional(),
        ],
        id_prefix: "",
        time: None,
        source: Source::Lines(
            "development | https://dev.shop.example     | eu-west    | false | false | 1
             staging     | https://staging.shop.example | eu-west    | false | false | 2
             production  | https://shop.example         | eu-central | true  | false | 6",
        ),
    }
}

pub(super) fn flags() -> Table {
    Table {
        name: "flags",
        singular: "feature flag",
        columns: vec![
            text("key", "Key of the flag."),
            text("description", "What it turns on."),
            flag("enabled", "Whether it is on.").or(false),
            count("rollout_percent", "Share of users who get it."),
            texts("environments", "Environments that it applies to."),
            objects("rules", rule_fields(), "Who gets it first."),
        ],
        id_prefix: "flag-",
        time: None,
        source: Source::Lines(
            "new-checkout    | The new checkout page        | true  | 25  | staging;production
             dark-mode       | Dark colours in the admin    | false | 0   | staging
             api-rate-limits | Limits for each API key      | true  | 100 | production
             gift-cards      | Sell gift cards              | true  | 10  | production",
        ),
    }
}
