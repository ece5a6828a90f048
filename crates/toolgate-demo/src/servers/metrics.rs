//! `metrics`: time series, dashboards and objectives.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, choice, choices, count, flag, integer, limit, map, moment, number, object,
    objects, text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const UNITS: &[&str] = &["percent", "milliseconds", "count", "bytes"];
const RANGES: &[&str] = &["1h", "6h", "24h", "7d"];
const AGGREGATIONS: &[&str] = &["avg", "min", "max", "sum"];
const SERVICES: &[&str] = &["shop", "api", "search", "worker"];
const MAX_POINTS: u32 = 500;

pub(super) fn server() -> Spec {
    Spec {
        name: "metrics",
        description: "Time series of all services, dashboards and service level objectives.",
        version: "6.3.0",
        prefix: None,
        era: Era::HandshakeAndDiscover,
        annotations: Annotations::Given,
        tables: vec![
            tables::metrics(),
            tables::dashboards(),
            tables::objectives(),
            tables::monitors(),
        ],
        tools: series_tools().into_iter().chain(board_tools()).chain(monitor_tools()).collect(),
    }
}

fn panel_fields() -> Vec<Field> {
    vec![
        text("title", "Title of the panel."),
        text("metric", "Metric that it shows."),
        choice("chart", &["line", "bar", "gauge", "table"], "How it shows it."),
    ]
}

fn condition_fields() -> Vec<Field> {
    vec![
        choice("comparison", &["above", "below"], "Which side of the threshold is bad."),
        number("threshold", "The threshold, in the metric's unit."),
        text("duration", "How long it must last, such as 5m."),
    ]
}

fn metric() -> Field {
    text("metric", "Name of the metric, such as http.error_rate; listMetrics has all of them.")
        .example("http.error_rate")
}

fn service() -> Field {
    choice("service", SERVICES, "Service whose values are wanted; each has its own series.")
}

fn range() -> Field {
    choice("range", RANGES, "How far to look back from the present.").or("1h")
}

fn series_tools() -> Vec<Tool> {
    vec![
        tool(
            "listMetrics",
            "List the metrics that are collected, with unit and meaning.",
            vec![
                choice("unit", UNITS, "Only metrics of this unit.").optional(),
                text("query", "Only metrics with these words in name or meaning.")
                    .optional()
                    .example("latency"),
            ],
            Action::List("metrics", Shape::Bare),
        )
        .typed(),
        tool(
            "queryMetric",
            "Query the time series of a metric for a service. Returns points of time and value \
            at a regular step, oldest first.",
            vec![
                metric(),
                service(),
                range(),
                text("step", "Time between points, such as 1m or 1h.").or("5m"),
                map("labels", Kind::Text, "Only series with these label values, such as region.")
                    .optional(),
            ],
            Action::Compute(answers::query),
        )
        .returns(vec![
            text("metric", "The metric."),
            choice("service", SERVICES, "The service."),
            choice("unit", UNITS, "Unit of the values."),
            objects(
                "points",
                vec![moment("time", "When."), number("value", "The value.")],
                "The series.",
            ),
        ]),
        tool(
            "getMetricSummary",
            "Get the average, minimum and maximum of a metric for a service over a range, \
            without the points.",
            vec![metric(), service(), range()],
            Action::Compute(answers::summary),
        )
        .returns(vec![
            number("avg", "The average."),
            number("min", "The lowest value."),
            number("max", "The highest value."),
            count("points", "Number of points."),
        ]),
        tool(
            "compareServices",
            "Compare a metric across services over a range, highest first.",
            vec![
                metric(),
                range(),
                choice("aggregation", AGGREGATIONS, "How to sum up each series.").or("avg"),
                choices("services", SERVICES, "Services to compare; all when left out.").optional(),
            ],
            Action::Compute(answers::compare),
        ),
        tool(
            "detectAnomalies",
            "Find points of a metric that are far from its average over a range.",
            vec![
                metric(),
                service(),
                range(),
                choice("sensitivity", &["low", "medium", "high"], "How small a deviation counts.")
                    .or("medium"),
            ],
            Action::Compute(answers::anomalies),
        ),
    ]
}

fn board_tools() -> Vec<Tool> {
    let board = || {
        text("dashboardId", "Id of the dashboard, as returned by listDashboards.").example("DB-2")
    };
    vec![
        tool(
            "listDashboards",
            "List dashboards with their tags.",
            vec![text("tags", "Only dashboards with this tag.").optional(), limit(20, 100)],
            Action::List("dashboards", Shape::Page("dashboards")),
        ),
        tool(
            "getDashboard",
            "Get a dashboard with its panels.",
            vec![board()],
            Action::Get("dashboards"),
        ),
        tool(
            "createDashboard",
            "Create a dashboard from panels, each of which shows a metric.",
            vec![
                text("title", "Title of the dashboard.").example("Search health"),
                objects("panels", panel_fields(), "The panels, in order.").example(
                    json!([{ "title": "Latency", "metric": "http.latency.p99", "chart": "line" }]),
                ),
                texts("tags", "Tags to find it by.").optional(),
            ],
            Action::Create("dashboards", &[]),
        ),
        tool(
            "addDashboardPanel",
            "Add a panel at the end of a dashboard.",
            vec![
                board(),
                text("title", "Title of the panel.").example("Queue"),
                text("metric", "Metric to show.").example("queue.depth"),
                choice("chart", &["line", "bar", "gauge", "table"], "How to show it."),
            ],
            Action::Append("dashboards", "panels"),
        ),
        tool(
            "deleteDashboard",
            "Delete a dashboard for good. The metrics stay.",
            vec![board()],
            Action::Delete("dashboards"),
        ),
    ]
}

fn monitor_tools() -> Vec<Tool> {
    vec![
        tool(
            "listObjectives",
            "List service level objectives, optionally of one service.",
            vec![choice("service", SERVICES, "Only objectives of this service.").optional()],
            Action::List("objectives", Shape::Bare),
        ),
        tool(
            "getErrorBudget",
            "Get how much of the error budget of a service level objective is left in its window.",
            vec![text("objectiveId", "Id of the objective.").example("SLO-1")],
            Action::Compute(answers::error_budget),
        )
        .returns(vec![
            text("objectiveId", "The objective."),
            number("achievedPercent", "Share of time in which it was met."),
            number("budgetLeftPercent", "Share of the error budget that is left."),
            flag("met", "Whether the objective is met."),
        ]),
        tool(
            "listMonitors",
            "List monitors and their states.",
            vec![
                choice(
                    "state",
                    &["ok", "warning", "alerting", "muted"],
                    "Only monitors in this state.",
                )
                .optional(),
                choice("service", SERVICES, "Only monitors of this service.").optional(),
            ],
            Action::List("monitors", Shape::Bare),
        )
        .typed(),
        tool(
            "createMonitor",
            "Create a monitor that alerts when a metric stays above or below a threshold.",
            vec![
                metric(),
                object("condition", condition_fields(), "When it goes off.")
                    .example(json!({ "comparison": "above", "threshold": 3, "duration": "5m" })),
                choice("service", SERVICES, "Service to watch; all when left out.").optional(),
                texts("notify", "User names or channels to tell.").optional(),
            ],
            Action::Create("monitors", &[("state", "ok")]),
        ),
        tool(
            "muteMonitor",
            "Mute a monitor: it goes on watching but tells nobody.",
            vec![
                text("monitorId", "Id of the monitor.").example("MON-4"),
                integer("minutes", 1..=10_080, "For how long.").or(60),
            ],
            Action::Update("monitors", &[("state", "muted")]),
        ),
        tool(
            "deleteMonitor",
            "Delete a monitor for good.",
            vec![text("monitorId", "Id of the monitor.").example("MON-3")],
            Action::Delete("monitors"),
        ),
    ]
}
