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
    ), @r#"
    interface Base { id: number }
    interface Ticket extends Base { title: string; level?: "low" | "high"; tags: readonly string[]; by: Person | null }
    type Person = { name: string; "birth-day"?: string };
    const a = await extract<Ticket>(letter, {"type":"object","properties":{"id":{"type":"number"},"title":{"type":"string"},"level":{"enum":["low","high"]},"tags":{"type":"array","items":{"type":"string"}},"by":{"anyOf":[{"type":"object","properties":{"name":{"type":"string"},"birth-day":{"type":"string"}},"required":["name"]},{"type":"null"}]}},"required":["id","title","tags","by"]});
    const b = await extract(letter, {"type":"object","properties":{"name":{"type":"string"},"birth-day":{"type":"string"}},"required":["name"]}, "who");
    const c = await extract<Person[]>(letter, {"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"birth-day":{"type":"string"}},"required":["name"]}}, `who wrote ${1}`);
    const d = await extract<Record<string, boolean>>(letter, {"type":"object","additionalProperties":{"type":"boolean"}});
    "#);
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
    ), @r#"
    from dataclasses import dataclass
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
    a = Ticket(**(await extract(letter, {"type": "object", "properties": {"title": {"type": "string"}, "by": {"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}}, "required": ["name"]}, "level": {"enum": ["low", "high"]}, "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}, "required": ["title", "by"], "additionalProperties": False}, hint="a ticket")))
    b = await extract(letter, type={"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}}, "required": ["name"]})
    c = await asyncio.gather(extract(letter, {"type": "object", "properties": {"title": {"type": "string"}, "by": {"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": "integer"}}, "required": ["name"]}, "level": {"enum": ["low", "high"]}, "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}, "required": ["title", "by"], "additionalProperties": False}), extract(letter, {"anyOf": [{"type": "integer"}, {"type": "null"}]}))
    d = await extract(letter, {"type": "object", "additionalProperties": {"type": "number"}})
    "#);
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
