//! The tables of `metrics` and what is in them at the start.

use super::{SERVICES, UNITS, condition_fields, panel_fields};
use crate::field::{choice, count, number, object, objects, text, texts};
use crate::table::{Source, Table};

/// Name, unit, what it measures, and about how high it is.
const METRICS: &str = "\
http.requests     | count        | Requests a minute                     | 1200
http.error_rate   | percent      | Share of requests that fail           | 2
http.latency.p50  | milliseconds | Median time to answer                 | 85
http.latency.p99  | milliseconds | Time within which 99 % are answered   | 640
cpu.usage         | percent      | Use of the processors                 | 47
memory.usage      | bytes        | Memory in use                         | 730000000
queue.depth       | count        | Jobs that wait                        | 35
orders.placed     | count        | Orders a minute                       | 14
payments.failed   | count        | Payments a minute that did not work   | 1
";

const OBJECTIVES: &str = "\
SLO-1 | Shop answers    | shop   | http.error_rate  | 99.5 | 30
SLO-2 | Shop is fast    | shop   | http.latency.p99 | 99   | 30
SLO-3 | Partner API     | api    | http.error_rate  | 99.9 | 30
SLO-4 | Search is fresh | search | queue.depth      | 95   | 7
";

pub(super) fn metrics() -> Table {
    Table {
        name: "metrics",
        singular: "metric",
        columns: vec![
            text("name", "Name of the metric."),
            choice("unit", UNITS, "Unit of its values."),
            text("description", "What it measures."),
            number("typicalValue", "What it usually is."),
        ],
        id_prefix: "",
        time: None,
        source: Source::Lines(METRICS),
    }
}

pub(super) fn dashboards() -> Table {
    Table {
        name: "dashboards",
        singular: "dashboard",
        columns: vec![
            text("id", "Dashboard id."),
            text("title", "Title of the dashboard."),
            texts("tags", "Tags of the dashboard."),
            objects("panels", panel_fields(), "Its panels, in order."),
        ],
        id_prefix: "DB-",
        time: None,
        source: Source::Lines(
            "DB-1 | Shop overview | shop;business   | Orders, orders.placed, line;Errors, http.error_rate, line
             DB-2 | Platform      | infrastructure  | Processors, cpu.usage, gauge;Memory, memory.usage, line
             DB-3 | Payments      | business        | Failures, payments.failed, bar",
        ),
    }
}

pub(super) fn objectives() -> Table {
    Table {
        name: "objectives",
        singular: "objective",
        columns: vec![
            text("id", "Objective id."),
            text("name", "Name of the objective."),
            choice("service", SERVICES, "Service that it is for."),
            text("metric", "Metric that it is measured by."),
            number("targetPercent", "Share of time in which it must be met."),
            count("windowDays", "Days over which it is measured."),
        ],
        id_prefix: "SLO-",
        time: None,
        source: Source::Lines(OBJECTIVES),
    }
}

pub(super) fn monitors() -> Table {
    Table {
        name: "monitors",
        singular: "monitor",
        columns: vec![
            text("id", "Monitor id."),
            text("metric", "Metric that it watches."),
            choice("service", SERVICES, "Service that it watches.").optional(),
            object("condition", condition_fields(), "When it goes off."),
            choice("state", &["ok", "warning", "alerting", "muted"], "State of the monitor.")
                .or("ok"),
        ],
        id_prefix: "MON-",
        time: None,
        source: Source::Lines(
            "MON-1 | http.error_rate  | shop   | above, 5, 5m     | alerting
             MON-2 | http.latency.p99 | api    | above, 1500, 10m | ok
             MON-3 | orders.placed    | shop   | below, 2, 15m    | ok
             MON-4 | queue.depth      | worker | above, 500, 10m  | warning",
        ),
    }
}
