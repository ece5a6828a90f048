//! Expense line items, made when they are asked for: the same every time.

use serde_json::{Value, json};

use crate::generator::Generator;
use crate::moment::Moment;

/// The share of the travel budget, in percent, that each of the three spent who overspent in the
/// third quarter. Everybody else stays clear of the limit, all other categories included.
const OVERSPENT: [(&str, u32); 3] = [("ENG-005", 117), ("ENG-011", 108), ("ENG-018", 131)];

/// Of a hundred line items of an engineer in the third quarter, as many are travel.
const TRAVEL_PERCENT: u32 = 38;

/// Description, and how dear it is compared with the others.
const TRAVEL: [(&str, u32); 8] = [
    ("Flight to customer site", 60),
    ("Flight to team week", 52),
    ("Hotel, two nights", 34),
    ("Hotel, one night", 18),
    ("Train ticket", 11),
    ("Rental car", 14),
    ("Taxi from airport", 5),
    ("Airport parking", 4),
];

const OTHER: [(&str, &str, u32); 12] = [
    ("meals", "Lunch with candidate", 5),
    ("meals", "Breakfast on trip", 2),
    ("meals", "Team lunch", 7),
    ("meals", "Coffee with customer", 1),
    ("software", "Diagram editor, monthly", 4),
    ("software", "Domain renewal", 3),
    ("equipment", "USB-C cable", 3),
    ("equipment", "Keyboard", 9),
    ("office", "Notebooks and pens", 2),
    ("office", "Courier", 4),
    ("training", "Technical book", 6),
    ("training", "Online course module", 8),
];

/// First month and number of days, for each quarter.
const QUARTERS: [(&str, &str, u32); 4] = [
    ("Q1", "2026-01-01", 90),
    ("Q2", "2026-04-01", 91),
    ("Q3", "2026-07-01", 92),
    // The demo's present is the middle of the first month.
    ("Q4", "2026-10-01", 14),
];

/// The line items of an employee in a quarter, by date.
pub(super) fn make(employee: &str, quarter: &str, travel_limit: i64) -> Vec<Value> {
    let Some((_, first, days)) = QUARTERS.iter().find(|(name, ..)| *name == quarter) else {
        return Vec::new();
    };
    let first = Moment::parse(first).unwrap_or(Moment::now());
    let mut generator = Generator::of(&format!("{employee} {quarter}"));
    let items: u32 = match quarter {
        "Q3" if employee.starts_with("ENG-") => 100,
        "Q4" => 8,
        _ => 30,
    };
    let over = OVERSPENT.iter().find(|(id, _)| quarter == "Q3" && *id == employee);
    // A fraction of a quarter in the fourth, since it has only begun.
    let share = match (over, quarter) {
        (Some((_, percent)), _) => *percent,
        (None, "Q4") => generator.between(5, 12),
        (None, _) => generator.between(48, 79),
    };
    let limit = u32::try_from(travel_limit).unwrap_or(0);
    // Dollars times percent is cents. Some odd cents, for nobody's travels cost round sums.
    let travel_cents = limit * share + generator.below(4_000);
    let other_cents = limit * share.min(75) / 6;

    let travel_items = items * TRAVEL_PERCENT / 100;
    let mut drafts = draft(&mut generator, travel_items, travel_cents, |generator| {
        let (description, weight) = generator.pick(&TRAVEL).copied().unwrap_or(TRAVEL[0]);
        ("travel", description, weight)
    });
    drafts.extend(draft(&mut generator, items - travel_items, other_cents, |generator| {
        generator.pick(&OTHER).copied().unwrap_or(OTHER[0])
    }));
    let mut dated: Vec<(u32, Draft)> =
        drafts.into_iter().map(|draft| (generator.below(*days), draft)).collect();
    dated.sort_by_key(|(day, draft)| (*day, draft.cents));

    let newest = days.saturating_sub(20);
    let item = |(number, (day, draft)): (usize, (u32, Draft))| {
        let status = if day < newest { "reimbursed" } else { "approved" };
        json!({
            "id": format!("EXP-{employee}-{quarter}-{:03}", number + 1),
            "employee_id": employee,
            "date": first.plus_days(i64::from(day)).date(),
            "category": draft.category,
            "description": draft.description,
            "amount": f64::from(draft.cents) / 100.0,
            "currency": "USD",
            "status": status,
            "receipt": draft.cents > 2_500,
        })
    };
    dated.into_iter().enumerate().map(item).collect()
}

/// The quarter of a date such as 2026-08-15.
pub(super) fn quarter_of(date: &str) -> &'static str {
    match date.get(5..7) {
        Some("01" | "02" | "03") => "Q1",
        Some("04" | "05" | "06") => "Q2",
        Some("07" | "08" | "09") => "Q3",
        _ => "Q4",
    }
}

/// Days of leave that an employee is entitled to in a year, and has taken.
pub(super) fn leave(employee: &str, year: i64) -> (u32, u32) {
    let mut generator = Generator::of(&format!("{employee} {year}"));
    let entitled = generator.between(25, 30);
    let taken = if year < 2026 { entitled } else { generator.between(4, 24) };
    (entitled, taken)
}

struct Draft {
    category: &'static str,
    description: &'static str,
    cents: u32,
}

/// As many items as asked for that come to exactly `total` cents.
fn draft(
    generator: &mut Generator,
    items: u32,
    total: u32,
    mut choose: impl FnMut(&mut Generator) -> (&'static str, &'static str, u32),
) -> Vec<Draft> {
    let chosen: Vec<_> = (0..items)
        .map(|_| {
            let (category, description, weight) = choose(generator);
            // Prices of the same thing differ by up to a quarter.
            (category, description, u64::from(weight * generator.between(100, 125)))
        })
        .collect();
    let weights: u64 = chosen.iter().map(|(.., weight)| weight).sum();
    let mut left = total;
    let last = chosen.len().saturating_sub(1);
    let mut drafts = Vec::with_capacity(chosen.len());
    for (index, (category, description, weight)) in chosen.into_iter().enumerate() {
        let share = (u64::from(total) * weight).checked_div(weights).unwrap_or(0);
        // Shares are rounded down, so that the last one takes what is left over.
        let cents = if index == last { left } else { u32::try_from(share).unwrap_or(0).min(left) };
        left -= cents;
        drafts.push(Draft { category, description, cents });
    }
    drafts
}
