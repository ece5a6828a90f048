//! `logging`: what the services of a shop have written in a day.

mod answers;
mod entries;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, amount, choice, choices, count, flag, integer, limit, map, moment, object, offset,
    since, text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
const SEVERITIES: &[&str] = &["info", "warning", "critical"];

pub(super) fn server() -> Spec {
    Spec {
        name: "logging",
        description: "Logs of all services: read, search, follow traces, alert rules.",
        version: "3.2.0",
        prefix: None,
        era: Era::HandshakeAndDiscover,
        annotations: Annotations::Given,
        tables: vec![tables::entries_table(), tables::rules_table(), tables::queries_table()],
        tools: reading_tools().into_iter().chain(rule_tools()).chain(query_tools()).collect(),
    }
}

fn filter_fields() -> Vec<Field> {
    vec![
        choice("level", LEVELS, "Only entries of this level.").optional(),
        text("service", "Only entries of this service.").optional(),
        text("query", "Only entries with all of these words.").optional(),
        since("since", "Only entries from then on.").optional(),
    ]
}

fn since_field() -> Field {
    since(
        "since",
        "Only entries from then on: an ISO 8601 time, or a duration back from now such as 90m, \
        6h or 2d.",
    )
    .optional()
    .example("6h")
}

fn reading_tools() -> Vec<Tool> {
    let service = || {
        text("service", "Only entries of this service, as listServices names it.")
            .optional()
            .example("checkout")
    };
    vec![
        tool(
            "getLogs",
            "Fetch log entries, newest first, optionally restricted to a level, a service and a \
            time range. Returns whole entries with their context; narrow the range or set a \
            limit for busy services. Use searchLogs to look for words in messages.",
            vec![
                choice("level", LEVELS, "Only entries of exactly this level.").optional(),
                since_field(),
                service(),
                limit(500, 2_000),
            ],
            Action::List("entries", Shape::Bare),
        )
        .typed(),
        tool(
            "searchLogs",
            "Full-text search over log messages, hosts and context values. Every word of the \
            query must occur in an entry; case does not matter. Returns matching entries, newest \
            first, with the total number of matches.",
            vec![
                text("query", "Words to look for, for example `timeout payment`.")
                    .example("timeout"),
                choices("level", LEVELS, "Only entries of one of these levels.").optional(),
                text("service", "Only entries of this service.").optional(),
                since_field(),
                since("until", "Only entries before this time; same forms as since.").optional(),
                limit(50, 500),
                offset(),
            ],
            Action::List("entries", Shape::Page("entries")),
        )
        .typed(),
        tool(
            "getLogEntry",
            "Get a single log entry by its identifier, with its full context.",
            vec![
                text("entryId", "Identifier of the entry, such as log-00042.").example("log-00042"),
            ],
            Action::Get("entries"),
        )
        .typed(),
        tool(
            "getTrace",
            "List all log entries that share a trace identifier, across services, to follow one \
            request through the system.",
            vec![
                text("traceId", "Trace identifier as found in a log entry: 16 hexadecimal digits.")
                    .example("00f1a2b3c4d5e6f7"),
                limit(100, 500),
            ],
            Action::List("entries", Shape::Page("entries")),
        ),
        tool(
            "listServices",
            "List the services that write logs, with the team that owns each, the number of \
            stored entries and the time of the latest one.",
            vec![],
            Action::Report(answers::list_services),
        )
        .returns_list(vec![
            text("name", "Name to pass as `service` elsewhere."),
            text("owner", "Team that owns the service."),
            count("entries", "Number of stored entries."),
            moment("lastSeen", "Time of the latest entry."),
        ]),
        tool(
            "getLogStats",
            "Count log entries by level, service or hour over a time range, without returning \
            the entries themselves. Use it to see where the volume is before fetching logs.",
            vec![
                choice("groupBy", &["level", "service", "hour", "host"], "What to count by.")
                    .or("level"),
                since_field(),
                service(),
                choice("level", LEVELS, "Only entries of this level.").optional(),
            ],
            Action::Compute(answers::stats),
        )
        .returns(vec![
            text("groupBy", "What was counted by."),
            count("total", "Number of entries counted."),
            map("counts", Kind::Integer(None), "Number of entries a group."),
        ]),
    ]
}

fn rule_tools() -> Vec<Tool> {
    let rule = || text("ruleId", "Identifier of the alert rule.").example("rule-2");
    vec![
        tool(
            "listAlertRules",
            "List the alert rules that watch the logs, with their thresholds and whether they \
            are muted.",
            vec![
                text("service", "Only rules that watch this service.").optional(),
                choice("severity", SEVERITIES, "Only rules of this severity.").optional(),
                flag("enabled", "Only rules that are, or are not, evaluated.").optional(),
            ],
            Action::List("rules", Shape::Bare),
        ),
        tool(
            "createAlertRule",
            "Create an alert rule that fires when a service writes more than a number of entries \
            of a level within a time window.",
            vec![
                text("name", "Short name shown in the alert.").example("Search errors"),
                choice("level", LEVELS, "Lowest level that counts.").example("error"),
                integer("threshold", 1..=100_000, "Number of entries that sets the rule off.")
                    .example(20),
                text("window", "Length of the sliding window, such as 5m or 1h.").example("10m"),
                text("service", "Service to watch; all services when left out.").optional(),
                choice("severity", SEVERITIES, "Severity of the alert that it raises.")
                    .or("warning"),
            ],
            Action::Create("rules", &[("enabled", "true")]),
        ),
        tool(
            "updateAlertRule",
            "Change the threshold, window, severity or state of an alert rule. Fields that are \
            left out stay as they are.",
            vec![
                rule(),
                integer("threshold", 1..=100_000, "New threshold.").optional(),
                text("window", "New window, such as 5m or 1h.").optional(),
                choice("severity", SEVERITIES, "New severity.").optional(),
                flag("enabled", "Whether the rule is evaluated.").optional(),
            ],
            Action::Update("rules", &[]),
        ),
        tool(
            "muteAlertRule",
            "Silence an alert rule until a point in time. The rule is still evaluated but raises \
            no alerts.",
            vec![
                rule(),
                moment("mutedUntil", "When alerts resume.").example("2026-10-15T12:00:00Z"),
            ],
            Action::Update("rules", &[]),
        ),
        tool(
            "deleteAlertRule",
            "Delete an alert rule for good. Mute it instead to silence it for a while.",
            vec![rule()],
            Action::Delete("rules"),
        ),
    ]
}

fn query_tools() -> Vec<Tool> {
    vec![
        tool(
            "exportLogs",
            "Start an export of matching log entries to a file in the archive bucket. Returns \
            the export's location; it is not downloaded.",
            vec![
                choice("format", &["jsonl", "csv", "parquet"], "File format of the export."),
                object(
                    "filter",
                    filter_fields(),
                    "Which entries to export; everything when left out.",
                )
                .optional(),
                flag("compress", "Whether to compress the file with gzip.").or(true),
            ],
            Action::Compute(answers::export),
        ),
        tool(
            "listSavedQueries",
            "List the saved log queries of the workspace and what each one filters by.",
            vec![],
            Action::List("queries", Shape::Bare),
        ),
        tool(
            "saveQuery",
            "Save a log filter under a name so that it can be run again with runSavedQuery.",
            vec![
                text("name", "Name of the saved query.").example("Worker warnings"),
                object("filter", filter_fields(), "What to filter by.")
                    .example(json!({ "level": "warn", "service": "worker" })),
                texts("tags", "Tags to group saved queries by.").optional(),
            ],
            Action::Create("queries", &[]),
        ),
        tool(
            "runSavedQuery",
            "Run a saved log query and return the matching entries, newest first.",
            vec![
                text("queryId", "Identifier of the saved query.").example("query-1"),
                limit(100, 1_000),
            ],
            Action::Compute(answers::run_saved),
        ),
        tool(
            "estimateStorageCost",
            "Estimate the monthly storage cost of the logs for a retention period, at the \
            current volume.",
            vec![
                integer("retentionDays", 1..=730, "Days to keep entries for.").example(30),
                amount("pricePerGigabyte", "Storage price in USD a gigabyte and month.").or(0.03),
            ],
            Action::Report(answers::storage_cost),
        ),
    ]
}
