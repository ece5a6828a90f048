//! The value of formulas: names, operators, and the functions that the servers' files use.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::action::select;
use crate::error::DemoError;
use crate::field::Object;
use crate::formula::{Expression, Formula};
use crate::generator::{self, Generator};
use crate::moment::{Moment, NOW, parse_duration};
use crate::store::Store;

/// Evaluates formulas one after the other; the value of the last is the result.
pub(crate) fn run(
    formulas: &[Formula],
    store: &mut Store,
    arguments: Object,
) -> Result<Value, DemoError> {
    let mut names = arguments.clone();
    names.insert("args".to_owned(), arguments.into());
    names.insert("now".to_owned(), json!(NOW));
    let mut scope = Scope { store, names, items: Vec::new() };
    let mut result = Value::Null;
    for formula in formulas {
        result = scope.value(&formula.expression)?;
        if let Some(name) = &formula.name {
            scope.names.insert(name.clone(), result.clone());
        }
    }
    Ok(result)
}

struct Scope<'a> {
    store: &'a mut Store,
    /// The arguments, and the values of earlier formulas, which may hide them.
    names: Object,
    /// The items that functions look at, the innermost last, with their numbers.
    items: Vec<(usize, Value)>,
}

impl Scope<'_> {
    fn value(&mut self, expression: &Expression) -> Result<Value, DemoError> {
        Ok(match expression {
            Expression::Literal(value) => value.clone(),
            Expression::Name(name) if name == "index" => {
                json!(self.items.last().map_or(0, |(index, _)| *index))
            }
            Expression::Name(name) => match self.known(expression) {
                Some(value) => value.clone(),
                // Arguments that were left out are null, as tables without rows are empty.
                None if self.store.table(name).is_none() => Value::Null,
                None => self.store.rows(name).iter().cloned().map(Value::from).collect(),
            },
            Expression::Field(of, name) => match self.known(expression) {
                Some(value) => value.clone(),
                None => self.value(of)?.get_mut(name).map(Value::take).unwrap_or_default(),
            },
            Expression::List(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Expression::Object(fields) => {
                let mut object = Object::new();
                for (name, field) in fields {
                    object.insert(name.clone(), self.value(field)?);
                }
                object.into()
            }
            Expression::Operation("and", left, right) => {
                json!(truth(&self.value(left)?) && truth(&self.value(right)?))
            }
            Expression::Operation("or", left, right) => {
                json!(truth(&self.value(left)?) || truth(&self.value(right)?))
            }
            Expression::Operation(operator, left, right) => {
                operation(operator, &self.value(left)?, &self.value(right)?)
            }
            Expression::Call(function, arguments) => self.call(function, arguments)?,
        })
    }

    /// What a name or a field of it is, without a copy of what it is a field of.
    fn known(&self, expression: &Expression) -> Option<&Value> {
        match expression {
            Expression::Name(name) if name == "it" => self.items.last().map(|(_, item)| item),
            Expression::Name(name) => self.names.get(name),
            Expression::Field(of, name) => self.known(of)?.get(name),
            _ => None,
        }
    }

    fn call(&mut self, function: &str, arguments: &[Expression]) -> Result<Value, DemoError> {
        match (function, arguments) {
            // Conditions and values in turn, and the value where no condition holds.
            ("if", _) => {
                for pair in arguments.chunks(2) {
                    match pair {
                        [condition, value] if truth(&self.value(condition)?) => {
                            return self.value(value);
                        }
                        [otherwise] => return self.value(otherwise),
                        _ => {}
                    }
                }
                Ok(Value::Null)
            }
            ("require", [condition, message]) => {
                if truth(&self.value(condition)?) {
                    return Ok(Value::Null);
                }
                Err(DemoError::Refused(text(&self.value(message)?)))
            }
            (
                "find" | "lookup" | "select" | "insert" | "put" | "update" | "follow",
                [Expression::Name(table), rest @ ..],
            ) => {
                let rest: Vec<Value> =
                    rest.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?;
                self.table_function(function, table, &rest)
            }
            (
                "filter" | "map" | "any" | "sort" | "sum" | "count_by" | "sum_by",
                [list, rest @ ..],
            ) => {
                let items = into_items(self.value(list)?);
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    self.items.push((index, item));
                    let results: Result<Vec<_>, _> =
                        rest.iter().map(|value| self.value(value)).collect();
                    values.extend(self.items.pop().map(|(_, item)| (item, results)));
                }
                let values = values.into_iter().map(|(item, results)| Ok((item, results?)));
                Ok(list_function(function, values.collect::<Result<_, DemoError>>()?))
            }
            _ => {
                let arguments: Vec<Value> =
                    arguments.iter().map(|value| self.value(value)).collect::<Result<_, _>>()?;
                plain_function(function, &arguments)
            }
        }
    }

    /// Functions whose first argument is a table's name.
    fn table_function(
        &mut self,
        function: &str,
        table: &str,
        arguments: &[Value],
    ) -> Result<Value, DemoError> {
        // What was left out of the arguments neither filters nor fills a column.
        let given = |value: &Value| {
            let mut object = value.as_object().cloned().unwrap_or_default();
            object.retain(|_, value| !value.is_null());
            object
        };
        match (function, arguments) {
            ("find", [id]) => Ok(self.store.find(table, id)?.clone().into()),
            // The same, or null.
            ("lookup", [id]) => {
                Ok(self.store.find(table, id).cloned().map(Value::from).unwrap_or_default())
            }
            // The rows that match by the rules of lists.
            ("select", [filter]) => {
                let (rows, total) = select(self.store, table, &given(filter))?;
                Ok(json!({ "rows": rows, "total": total }))
            }
            ("insert", [row]) => Ok(self.store.insert(table, &given(row))?.into()),
            ("update", [id, values]) => self.store.update(table, id, given(values)),
            // Updates the row with the identifier of this one, or inserts it.
            ("put", [row]) => {
                let id = self.store.table(table).and_then(|table| row.get(table.id()));
                let id = id.cloned().unwrap_or_default();
                match self.store.find(table, &id) {
                    Ok(_) => self.store.update(table, &id, given(row)),
                    Err(_) => Ok(self.store.insert(table, &given(row))?.into()),
                }
            }
            // The rows that a row leads to by a column with an identifier, one after the other.
            ("follow", [id, Value::String(column)]) => {
                let mut row = self.store.find(table, id)?;
                let mut rows: Vec<Value> = Vec::new();
                while let Some(next) = row.get(column)
                    && rows.len() < self.store.rows(table).len()
                {
                    row = self.store.find(table, next)?;
                    rows.push(row.clone().into());
                }
                Ok(rows.into())
            }
            _ => Err(unknown(function)),
        }
    }
}

/// Functions of a list, of whose items further arguments are computed.
fn list_function(function: &str, items: Vec<(Value, Vec<Value>)>) -> Value {
    let first = |values: &[Value]| values.first().cloned().unwrap_or_default();
    let mut items = items;
    match function {
        "filter" => {
            items.into_iter().filter(|(_, it)| truth(&first(it))).map(|(item, _)| item).collect()
        }
        "map" => items.iter().map(|(_, it)| first(it)).collect(),
        "any" => json!(items.iter().any(|(_, it)| truth(&first(it)))),
        "sort" => {
            items.sort_by(|(_, one), (_, two)| compare(&first(one), &first(two)));
            items.into_iter().map(|(item, _)| item).collect()
        }
        "sum" => json!(items.iter().map(|(_, it)| number(&first(it))).fold(0.0, |a, b| a + b)),
        // An object of the number of items, or of the sum of a value, for each key. A key that is
        // a list counts for each of its items.
        _ => {
            let mut totals = Object::new();
            for (_, values) in items {
                for key in into_items(first(&values)).iter().filter(|key| key.is_string()) {
                    let total = totals.entry(text(key)).or_insert(Value::Null);
                    *total = match values.get(1) {
                        Some(value) => json!(number(total) + number(value)),
                        None => operation("+", total, &json!(1)),
                    };
                }
            }
            totals.into()
        }
    }
}

/// Functions of values alone.
fn plain_function(function: &str, arguments: &[Value]) -> Result<Value, DemoError> {
    let items = |value: &Value| into_items(value.clone());
    Ok(match (function, arguments) {
        ("not", [value]) => json!(!truth(value)),
        ("count", [Value::String(text)]) => json!(text.len()),
        ("count", [list]) => json!(items(list).len()),
        ("first", [list]) => list.get(0).cloned().unwrap_or_default(),
        // The item with a number; behind the last one comes the first again.
        ("at", [list, index]) => {
            items(list).iter().cycle().nth(count(index)).cloned().unwrap_or_default()
        }
        ("get", [object, name]) => object.get(text(name)).cloned().unwrap_or_default(),
        ("where", [rows, column, wanted]) => {
            items(rows).into_iter().filter(|row| row.get(text(column)) == Some(wanted)).collect()
        }
        ("contains", [list, item]) => json!(items(list).contains(item)),
        ("reverse", [list]) => items(list).into_iter().rev().collect(),
        ("flatten", [list]) => items(list).into_iter().flat_map(into_items).collect(),
        ("concat", [one, two]) => items(one).into_iter().chain(items(two)).collect(),
        ("union", [one, two]) => items(two)
            .into_iter()
            .fold(items(one), |mut all, item| {
                if !all.contains(&item) {
                    all.push(item);
                }
                all
            })
            .into(),
        ("range", [from, to]) => {
            (integer(from)..=integer(to)).map(|number| json!(number)).collect()
        }
        ("max", [one, two]) => json!(integer(one).max(integer(two))),
        ("div", [one, two]) => json!(integer(one).checked_div(integer(two)).unwrap_or(0)),
        ("round", [value, digits]) => {
            let scale = 10_f64.powi(i32::try_from(integer(digits)).unwrap_or(0));
            json!((number(value) * scale).round() / scale)
        }
        ("aggregate", [how, list]) => json!(aggregate(&text(how), &items(list))),
        // Whether a text starts with another, or with one of several.
        ("starts_with", [whole, starts]) => {
            json!(items(starts).iter().any(|start| text(whole).starts_with(&text(start))))
        }
        ("prefix", [whole, length]) => {
            json!(text(whole).chars().take(count(length)).collect::<String>())
        }
        ("pad", [value, width]) => json!(format!("{:>1$}", text(value), count(width))),
        ("lines", [whole]) => text(whole).lines().map(|line| json!(line.trim())).collect(),
        ("trim", [whole, characters]) => {
            json!(text(whole).trim_matches(|it| text(characters).contains(it)))
        }
        // A template with the values of its placeholders, as far as there are any.
        ("fill", [template, names, values]) => {
            json!(items(names).iter().map(text).fold(text(template), |filled, name| {
                let value = values.get(&name).and_then(Value::as_str);
                value.map_or(filled.clone(), |value| {
                    filled.replace(&format!("{{{{{name}}}}}"), value)
                })
            }))
        }
        // A time as seconds, and back; a duration as seconds; the date in some days.
        ("time", [value]) => json!(Moment::parse(&text(value)).map(Moment::seconds)),
        ("moment", [seconds]) => json!(Moment::from_seconds(integer(seconds)).to_string()),
        ("seconds", [duration]) => json!(parse_duration(&text(duration))),
        ("date_after", [days]) => json!(Moment::now().plus_days(integer(days)).date()),
        // The number at a position of the stream of a seed, between two others.
        ("random", [seed, position, low, high]) => {
            let mut generator = Generator::of(&text(seed));
            for _ in 0..integer(position) {
                generator.next();
            }
            let bound = |value: &Value| u32::try_from(integer(value)).unwrap_or(0);
            json!(generator.between(bound(low), bound(high)))
        }
        ("series", [typical, metric, service, points]) => {
            generator::series(number(typical), &text(metric), &text(service), count(points))
        }
        ("expenses", [employee, quarter, number, share, limit, goods]) => {
            let (share, limit) = (share.as_u64(), integer(limit));
            generator::expenses(
                &text(employee),
                quarter,
                count(number),
                share,
                limit,
                &items(goods),
            )
        }
        ("free_slots", [busy, from, to, minutes, limit]) => {
            free_slots(&items(busy), &text(from), &text(to), integer(minutes) * 60, count(limit))
        }
        _ => return Err(unknown(function)),
    })
}

fn unknown(function: &str) -> DemoError {
    DemoError::Refused(format!("There is no function `{function}` of these arguments"))
}

fn operation(operator: &str, left: &Value, right: &Value) -> Value {
    let order = || compare(left, right);
    match operator {
        "==" => json!(left == right),
        "!=" => json!(left != right),
        "<" => json!(order() == Ordering::Less),
        "<=" => json!(order() != Ordering::Greater),
        ">" => json!(order() == Ordering::Greater),
        ">=" => json!(order() != Ordering::Less),
        "+" if left.is_string() || right.is_string() => json!(text(left) + &text(right)),
        "/" => json!(number(left) / number(right)),
        _ => {
            let whole = |value: &Value| value.as_i64().or(value.is_null().then_some(0));
            let exact = whole(left).zip(whole(right)).and_then(|(left, right)| match operator {
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                _ => left.checked_mul(right),
            });
            match (exact, operator) {
                (Some(exact), _) => json!(exact),
                (None, "+") => json!(number(left) + number(right)),
                (None, "-") => json!(number(left) - number(right)),
                (None, _) => json!(number(left) * number(right)),
            }
        }
    }
}

/// Numbers by size, texts by their characters; null is before all others.
fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(_), Value::Number(_)) => number(left).total_cmp(&number(right)),
        _ => left.is_null().cmp(&right.is_null()).reverse(),
    }
}

fn aggregate(how: &str, values: &[Value]) -> f64 {
    let numbers = values.iter().map(number);
    let value = match how {
        "min" => numbers.fold(f64::MAX, f64::min),
        "max" => numbers.fold(f64::MIN, f64::max),
        "sum" => numbers.sum(),
        _ => numbers.sum::<f64>() / number(&json!(values.len().max(1))),
    };
    (value * 100.0).round() / 100.0
}

/// Times of a length within working hours at which nothing is going on, in steps of 15 minutes.
fn free_slots(busy: &[Value], from: &str, to: &str, length: i64, limit: usize) -> Value {
    const QUARTER_HOUR: i64 = 900;
    const MAX_STEPS: u32 = 14 * 96;
    let now = Moment::now();
    let mut start = Moment::parse(from).unwrap_or(now).max(now);
    let latest = Moment::parse(to).unwrap_or(now);
    let time_of = |event: &Value, name| event.get(name).map(text).and_then(|it| Moment::parse(&it));
    let mut slots = Vec::new();
    for _ in 0..MAX_STEPS {
        let end = start.plus(length);
        if end > latest || slots.len() >= limit {
            break;
        }
        let midnight = Moment::parse(&start.date()).unwrap_or(now).seconds();
        let working =
            start.seconds() - midnight >= 8 * 3_600 && end.seconds() - midnight <= 17 * 3_600;
        let clash = |event: &Value| {
            time_of(event, "start") < Some(end) && time_of(event, "end") > Some(start)
        };
        if working && !busy.iter().any(clash) {
            slots.push(json!({ "start": start.to_string(), "end": end.to_string() }));
            start = end;
        } else {
            start = start.plus(QUARTER_HOUR);
        }
    }
    slots.into()
}

fn truth(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn count(value: &Value) -> usize {
    usize::try_from(integer(value)).unwrap_or(0)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The items of a list; null has none, and anything else is one item.
fn into_items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    }
}
