//! A day of log entries, made from a seed.

use serde_json::{Value, json};

use crate::field::Object;
use crate::generator::Generator;
use crate::moment::Moment;

/// The services and the teams that own them.
pub(super) const SERVICES: [(&str, &str); 8] = [
    ("api-gateway", "platform"),
    ("auth", "identity"),
    ("billing", "payments"),
    ("checkout", "storefront"),
    ("inventory", "supply"),
    ("notifications", "messaging"),
    ("search", "discovery"),
    ("worker", "platform"),
];

const ENTRIES: u32 = 1_600;
/// One entry every 54 seconds: a day of them.
const SPACING: i64 = 54;

/// Service, message. Few and fixed, as the errors of a bad day are.
const ERRORS: [(&str, &str); 7] = [
    ("checkout", "Payment provider timeout after 30s"),
    ("billing", "Invoice total does not match line items"),
    ("auth", "Token signature verification failed"),
    ("inventory", "Deadlock detected while reserving stock"),
    ("search", "Index shard unavailable"),
    ("notifications", "SMTP connection refused by relay"),
    ("worker", "Job exceeded maximum retry count"),
];

const WARNINGS: [(&str, &str); 6] = [
    ("auth", "Login attempt with unknown account"),
    ("search", "Query took longer than 2s"),
    ("billing", "Retrying card authorisation"),
    ("api-gateway", "Rate limit reached for client"),
    ("worker", "Queue depth above threshold"),
    ("checkout", "Cart contains a discontinued item"),
];

const NOTICES: [(&str, &str); 9] = [
    ("api-gateway", "Request completed"),
    ("auth", "Session created"),
    ("billing", "Invoice issued"),
    ("checkout", "Order placed"),
    ("checkout", "Payment captured"),
    ("inventory", "Stock level synchronised"),
    ("notifications", "Message delivered"),
    ("search", "Index refreshed"),
    ("worker", "Job finished"),
];

const DETAILS: [(&str, &str); 3] =
    [("api-gateway", "Route matched"), ("search", "Cache lookup"), ("worker", "Heartbeat")];

/// The entries, newest first.
pub(super) fn make() -> Vec<Object> {
    let mut generator = Generator::new(20_261_015);
    (0..ENTRIES).map(|index| entry(index, &mut generator)).collect()
}

fn entry(index: u32, generator: &mut Generator) -> Object {
    let jitter = i64::from(generator.below(50));
    let age = i64::from(index) * SPACING + jitter;
    let (level, choices) = match generator.below(100) {
        0..=17 => ("error", &ERRORS[..]),
        18..=33 => ("warn", &WARNINGS[..]),
        34..=87 => ("info", &NOTICES[..]),
        _ => ("debug", &DETAILS[..]),
    };
    // Every third error is of the first kind: real incidents are not spread evenly.
    let (service, message) = if level == "error" && generator.below(3) == 0 {
        ERRORS[0]
    } else {
        generator.pick(choices).copied().unwrap_or(NOTICES[0])
    };
    let region = generator.pick(&["eu1", "eu2", "us1"]).copied().unwrap_or("eu1");
    let row = json!({
        "id": format!("log-{index:05}"),
        "timestamp": Moment::now().plus(-age).to_string(),
        "level": level,
        "service": service,
        "host": format!("{service}-{region}-{}", generator.between(1, 4)),
        "message": message,
        "traceId": generator.hexadecimal(),
        "context": {
            "requestId": format!("req-{}", generator.between(100_000, 999_999)),
            "customerId": format!("CUS-{:03}", generator.between(1, 40)),
            "durationMs": generator.between(3, 30_000).to_string(),
            "release": generator.pick(&["2026.10.1", "2026.10.2", "2026.9.7"]),
        },
    });
    match row {
        Value::Object(row) => row,
        _ => Object::new(),
    }
}
