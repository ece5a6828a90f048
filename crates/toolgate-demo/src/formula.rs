//! Formulas: how a tool says what it computes, in the manner of a spreadsheet.
//!
//! A formula is an expression, or `name = expression`, which later formulas of the tool can use:
//!
//! ```text
//! low = filter(products, it.quantity < it.reorder_point)
//! map(low, {sku: it.sku, missing: it.reorder_point - it.quantity})
//! ```
//!
//! A name is that of an earlier formula, an argument (`args` is all of them), or a table, which is
//! the list of its rows. `it` is the item of a list that a function looks at, and `index` its
//! number. Texts are in single quotes. `evaluate.rs` has the functions.

use std::iter::Peekable;
use std::vec::IntoIter;

use serde::Deserialize;
use serde_json::{Value, json};

/// A line of a tool.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Formula {
    /// What its value is called.
    pub(crate) name: Option<String>,
    pub(crate) expression: Expression,
}

/// What is computed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Literal(Value),
    Name(String),
    /// A field of an object.
    Field(Box<Expression>, String),
    List(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    Call(String, Vec<Expression>),
    /// Two values with an operator between.
    Operation(&'static str, Box<Expression>, Box<Expression>),
}

/// The operators, by how tightly they bind; the last ones most.
const OPERATORS: [&[&str]; 5] =
    [&["or"], &["and"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/"]];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Literal(Value),
    Name(String),
    Symbol(&'static str),
}

impl TryFrom<String> for Formula {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let in_formula = |problem: String| format!("{problem} in the formula `{text}`");
        let mut tokens = tokens(&text).map_err(in_formula)?;
        let name = match &tokens[..] {
            [Token::Name(name), Token::Symbol("="), ..] => Some(name.clone()),
            _ => None,
        };
        tokens.drain(..if name.is_some() { 2 } else { 0 });
        let mut parser = Parser { tokens: tokens.into_iter().peekable() };
        let expression = parser.operation(0).map_err(in_formula)?;
        match parser.tokens.next() {
            None => Ok(Self { name, expression }),
            Some(token) => Err(in_formula(format!("unexpected {token:?}"))),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    const SYMBOLS: [&str; 20] = [
        "==", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}",
        ",", ":", ".",
    ];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find('\'').ok_or("a text without an end")?;
            tokens.push(Token::Literal(json!(quoted[..end])));
            length = end + 2;
        } else if first.is_ascii_digit() {
            let is_part = |character: char| character.is_ascii_digit() || character == '.';
            length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
            let number = serde_json::from_str(&rest[..length]);
            tokens.push(Token::Literal(number.map_err(|error| error.to_string())?));
        } else if first.is_ascii_alphabetic() {
            let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
            length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
            tokens.push(match &rest[..length] {
                "and" => Token::Symbol("and"),
                "or" => Token::Symbol("or"),
                "true" => Token::Literal(json!(true)),
                "false" => Token::Literal(json!(false)),
                "null" => Token::Literal(Value::Null),
                name => Token::Name(name.to_owned()),
            });
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| format!("unexpected `{first}`"))?;
            tokens.push(Token::Symbol(symbol));
            length = symbol.len();
        }
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
}

impl Parser {
    fn operation(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = OPERATORS.get(level) else { return self.value() };
        let mut left = self.operation(level + 1)?;
        while let Some(Token::Symbol(symbol)) = self.tokens.peek()
            && operators.contains(symbol)
        {
            let symbol = *symbol;
            self.tokens.next();
            let right = self.operation(level + 1)?;
            left = Expression::Operation(symbol, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn value(&mut self) -> Result<Expression, String> {
        let mut value = match self.tokens.next() {
            Some(Token::Literal(value)) => Expression::Literal(value),
            Some(Token::Name(name)) if name == "not" => Expression::Call(name, vec![self.value()?]),
            Some(Token::Name(name)) if self.skip("(") => {
                Expression::Call(name, self.until(")", |parser| parser.operation(0))?)
            }
            Some(Token::Name(name)) => Expression::Name(name),
            Some(Token::Symbol("(")) => {
                let inner = self.operation(0)?;
                self.expect(")")?;
                inner
            }
            Some(Token::Symbol("[")) => {
                Expression::List(self.until("]", |parser| parser.operation(0))?)
            }
            Some(Token::Symbol("{")) => Expression::Object(self.until("}", |parser| {
                let name = parser.name()?;
                parser.expect(":")?;
                Ok((name, parser.operation(0)?))
            })?),
            other => return Err(format!("unexpected {other:?}")),
        };
        while self.skip(".") {
            value = Expression::Field(Box::new(value), self.name()?);
        }
        Ok(value)
    }

    /// What stands between commas, up to a closing symbol.
    fn until<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        while !self.skip(end) {
            items.push(item(self)?);
            if !self.skip(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(items)
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(name),
            other => Err(format!("a name is missing before {other:?}")),
        }
    }

    fn skip(&mut self, symbol: &str) -> bool {
        self.tokens.next_if(|token| matches!(token, Token::Symbol(it) if *it == symbol)).is_some()
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.skip(symbol) { Ok(()) } else { Err(format!("`{symbol}` is missing")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Formula, String> {
        Formula::try_from(text.to_owned())
    }

    #[test]
    fn operators_bind_as_usual() {
        let both = ["1 + 2 * it.x == 3 and not a or b", "(((1 + (2 * it.x)) == 3) and not a) or b"];
        let [one, two] = both.map(|text| read(text).unwrap().expression);
        assert_eq!(one, two);
    }

    #[test]
    fn a_formula_may_have_a_name() {
        assert_eq!(read("low = count([1, 'a = b'])").unwrap().name.as_deref(), Some("low"));
        assert_eq!(read("low == 1").unwrap().name, None);
    }

    #[test]
    fn broken_formulas_are_errors() {
        for text in ["", "1 +", "'open", "f(1", "{a: }", "1 2", "a..b", "§", "1.2.3"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
