//! Data that is made from seeds: it is the same in every run on every machine.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::field::Object;
use crate::moment::Moment;

/// A `SplitMix64`-like generator. Good enough to scatter demo data, for nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Generator(u64);

impl Generator {
    /// The stream of numbers of `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of numbers of a text: the same text gives the same stream.
    pub(crate) fn of(text: &str) -> Self {
        let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed)
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let upper = u32::try_from(self.next() >> 32).unwrap_or(0);
        upper.checked_rem(bound).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// One of `choices`.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let bound = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        choices.get(self.below(bound) as usize)
    }

    /// Sixteen hexadecimal digits, as trace identifiers have them.
    pub(crate) fn hexadecimal(&mut self) -> String {
        format!("{:016x}", self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// How a table of log entries is made, newest first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    seed: u64,
    /// How many entries there are.
    entries: u32,
    /// Seconds from one entry to the next.
    spacing: i64,
    /// The table of messages, with level and service. Few and fixed, as the errors of a bad day are.
    pub(crate) messages: String,
}

impl LogSettings {
    /// The entries, made of these messages.
    pub(crate) fn entries(&self, messages: &[Object]) -> Vec<Object> {
        let mut generator = Generator::new(self.seed);
        (0..self.entries).filter_map(|index| self.entry(index, &mut generator, messages)).collect()
    }

    fn entry(&self, index: u32, generator: &mut Generator, messages: &[Object]) -> Option<Object> {
        let jitter = i64::from(generator.below(50));
        let age = i64::from(index) * self.spacing + jitter;
        let level = match generator.below(100) {
            0..=17 => "error",
            18..=33 => "warn",
            34..=87 => "info",
            _ => "debug",
        };
        let of_level: Vec<&Object> =
            messages.iter().filter(|message| message["level"] == level).collect();
        // Every third error is of the first kind: real incidents are not spread evenly.
        let message = if level == "error" && generator.below(3) == 0 {
            of_level.first()
        } else {
            generator.pick(&of_level)
        };
        let (service, message) = message.map(|message| (&message["service"], &message["text"]))?;
        let region = generator.pick(&["eu1", "eu2", "us1"])?;
        let row = json!({
            "id": format!("log-{index:05}"),
            "timestamp": Moment::now().plus(-age).to_string(),
            "level": level,
            "service": service,
            "host": format!("{}-{region}-{}", service.as_str()?, generator.between(1, 4)),
            "message": message,
            "traceId": generator.hexadecimal(),
            "context": {
                "requestId": format!("req-{}", generator.between(100_000, 999_999)),
                "customerId": format!("CUS-{:03}", generator.between(1, 40)),
                "durationMs": generator.between(3, 30_000).to_string(),
                "release": generator.pick(&["2026.10.1", "2026.10.2", "2026.9.7"]),
            },
        });
        row.as_object().cloned()
    }
}

/// The values of a metric of a service, oldest first: a wave around what it usually is, with a bump
/// in the last stretch for the shop, whose payments are slow since the last release.
pub(crate) fn series(typical: f64, metric: &str, service: &str, points: usize) -> Value {
    let points = u32::try_from(points).unwrap_or(0).max(1);
    let mut generator = Generator::of(&format!("\"{metric}\" {service}"));
    let scale = f64::from(generator.between(60, 140)) / 100.0;
    let bump = if service == "shop" { 2.5 } else { 1.0 };
    let value = |index: u32| {
        let noise = f64::from(generator.between(90, 110)) / 100.0;
        let recent = if index + points / 8 >= points { bump } else { 1.0 };
        (typical * scale * noise * recent * 100.0).round() / 100.0
    };
    (0..points).map(value).map(Value::from).collect()
}

/// The expenses of an employee in a quarter, by date. `share` is how much of the travel limit is
/// spent, in percent; without it, it is between the bounds of the quarter.
pub(crate) fn expenses(
    employee: &str,
    quarter: &Value,
    count: usize,
    share: Option<u64>,
    travel_limit: i64,
    goods: &[Value],
) -> Value {
    /// Of a hundred expenses, as many are travel.
    const TRAVEL_PERCENT: usize = 38;
    let setting = |name: &str| u32::try_from(quarter[name].as_u64().unwrap_or(0)).unwrap_or(0);
    let (name, days) = (quarter["name"].as_str().unwrap_or_default(), setting("days"));
    let mut generator = Generator::of(&format!("{employee} {name}"));
    let share = match share {
        Some(share) => u32::try_from(share).unwrap_or(0),
        None => generator.between(setting("low"), setting("high")),
    };
    let limit = u32::try_from(travel_limit).unwrap_or(0);
    // Dollars times percent is cents. Some odd cents, for nobody's travels cost round sums.
    let travel_cents = limit * share + generator.below(4_000);
    let other_cents = limit * share.min(75) / 6;
    let (travel, other): (Vec<&Value>, Vec<&Value>) =
        goods.iter().partition(|good| good["category"] == "travel");
    let travel_count = count * TRAVEL_PERCENT / 100;
    let mut paid = pay(&mut generator, &travel, travel_count, travel_cents);
    paid.extend(pay(&mut generator, &other, count - travel_count, other_cents));
    let mut dated: Vec<(u32, u32, &Value)> =
        paid.into_iter().map(|(cents, good)| (generator.below(days), cents, good)).collect();
    dated.sort_by_key(|(day, cents, _)| (*day, *cents));

    let first = Moment::parse(quarter["first"].as_str().unwrap_or_default());
    let first = first.unwrap_or(Moment::now());
    let expense = |(index, (day, cents, good)): (usize, (u32, u32, &Value))| {
        let paid_back = day < days.saturating_sub(20);
        json!({
            "id": format!("EXP-{employee}-{name}-{:03}", index + 1),
            "employee_id": employee,
            "date": first.plus_days(i64::from(day)).date(),
            "category": good["category"],
            "description": good["description"],
            "amount": f64::from(cents) / 100.0,
            "currency": "USD",
            "status": if paid_back { "reimbursed" } else { "approved" },
            "receipt": cents > 2_500,
        })
    };
    dated.into_iter().enumerate().map(expense).collect()
}

/// As many goods as asked for, with prices that come to exactly `total` cents.
fn pay<'a>(
    generator: &mut Generator,
    goods: &[&'a Value],
    count: usize,
    total: u32,
) -> Vec<(u32, &'a Value)> {
    let mut chosen = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(good) = generator.pick(goods) else { break };
        // Prices of the same thing differ by up to a quarter.
        let weight = good["weight"].as_u64().unwrap_or(1);
        chosen.push((weight * u64::from(generator.between(100, 125)), *good));
    }
    let weights: u64 = chosen.iter().map(|(weight, _)| weight).sum();
    let last = chosen.len().saturating_sub(1);
    let mut left = total;
    let mut price = |(index, (weight, good)): (usize, (u64, &'a Value))| {
        let share = (u64::from(total) * weight).checked_div(weights).unwrap_or(0);
        // Shares are rounded down, so that the last one takes what is left over.
        let cents = if index == last { left } else { u32::try_from(share).unwrap_or(0).min(left) };
        left -= cents;
        (cents, good)
    };
    chosen.into_iter().enumerate().map(&mut price).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_within_bounds() {
        let (mut one, mut two) = (Generator::of("seed"), Generator::of("seed"));
        for _ in 0..1_000 {
            let number = one.between(3, 9);
            assert_eq!(number, two.between(3, 9));
            assert!((3..=9).contains(&number));
        }
        assert_eq!(one.below(0), 0);
        assert_eq!(one.pick::<u8>(&[]), None);
        assert_ne!(Generator::new(1).hexadecimal(), Generator::new(2).hexadecimal());
    }
}
