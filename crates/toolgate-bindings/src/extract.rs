//! The declaration of `extract`, a function that scripts have besides the tools.

/// `extract` in TypeScript: the type of the result follows from the schema.
pub const EXTRACT_TYPESCRIPT: &str = r#"/** A model turns a value, such as prose of a tool, into data that fits a JSON Schema. Throws if it cannot. */
declare function extract<const S>(value: unknown, type: S, hint?: string): Promise<FromSchema<S>>;
/** The same with a type of the script: `extract<Ticket>(text)`. */
declare function extract<T>(value: unknown, hint?: string): Promise<T>;
type FromSchema<S> = S extends { enum: readonly (infer E)[] } ? E
  : S extends "string" | { type: "string" } ? string
  : S extends "number" | "integer" | { type: "number" | "integer" } ? number
  : S extends "boolean" | { type: "boolean" } ? boolean
  : S extends { type: "null" } ? null
  : S extends { type: "array"; items: infer I } ? FromSchema<I>[]
  : S extends { type: "object"; properties: infer P } ? FromProperties<P, S extends { required: readonly (infer R)[] } ? R : never>
  : unknown;
type FromProperties<P, R> = { -readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> }
  & { -readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]> };
"#;

/// `extract` in Python: the type of the result is the class that is given, or what the script says of its variable.
pub const EXTRACT_PYTHON: &str = r#"T = TypeVar("T")

async def extract(value: Any, type: type[T] | dict[str, Any] | Literal["string", "number", "integer", "boolean"], hint: str | None = None) -> T:
    """A model turns a value, such as prose of a tool, into data of a class (a dataclass, a TypedDict, str, list[int], ...) or of a JSON Schema. Raises if it cannot."""
"#;
