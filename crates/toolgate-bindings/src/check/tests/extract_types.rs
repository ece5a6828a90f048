//! Types in calls of `extract`.

use crate::check::{Language, extract_types::expand};

fn typescript(text: &str) -> String {
    expand(Language::TypeScript, text).unwrap_or_else(|| "unchanged".to_owned())
}

fn python(text: &str) -> String {
    expand(Language::Python, text).unwrap_or_else(|| "unchanged".to_owned())
}

#[test]
fn an_interface_becomes_a_schema() {
    insta::assert_snapshot!(typescript(
        r#"interface Base { id: number }
interface Ticket extends Base { title: string; level?: "low" | "high"; tags: readonly string[]; by: Person | null }
type Person = { name: string; "birth-day"?: string };
const a = await extract<Ticket>(letter);
const b = await extract(letter, "Person", "who");
const c = await extract<Person[]>(letter, `who wrote ${1}`);
const d = await extract<Record<string, boolean>>(letter);"#
    ), @r"");
}

#[test]
fn a_class_becomes_a_schema() {
    insta::assert_snapshot!(python(
        r#"from dataclasses import dataclass
from typing import Literal, NotRequired, Optional, TypedDict
class Person(TypedDict):
    name: str
    born: NotRequired[int]
@dataclass
class Ticket:
    title: str
    by: Person
    level: Literal["low", "high"] = "low"
    tags: list[str] | None = None
a = await extract(letter, Ticket, hint="a ticket")
b = await extract(letter, type=Person)
c = await asyncio.gather(extract(letter, Ticket), extract(letter, Optional[int]))
d = await extract(letter, dict[str, float])"#
    ), @r"");
}

#[test]
fn what_is_no_type_stays() {
    for text in [
        "await extract(letter, { type: 'string' })",
        "await extract(letter, 'string')",
        "await extract(letter, schema, 'Ticket')",
        "await extract<() => void>(letter)",
        "interface Endless { inner: Endless } await extract<Endless>(letter)",
        "const extract = (x: unknown) => x; interface T { a: string } extract<T>(1)",
        "interface Ticket { a: string",
        "await extract<Unknown>(letter)",
    ] {
        assert_eq!(typescript(text), "unchanged", "{text}");
    }
    for text in [
        "await extract(letter, {'type': 'string'})",
        "await extract(letter, 'string')",
        "await extract(letter, schema)",
        "class A:\n    inner: 'A'\nawait extract(letter, A)",
        "def extract(a, b): return b\nextract(1, str)",
        "await extract(letter, Unknown)",
        "await extract(letter",
    ] {
        assert_eq!(python(text), "unchanged", "{text}");
    }
}
