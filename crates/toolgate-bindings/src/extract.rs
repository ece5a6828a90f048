//! The declaration of `extract`, a function that scripts have besides the tools.

/// `extract` in TypeScript: the type of the result follows from the schema.
pub const EXTRACT_TYPESCRIPT: &str = r#"/** A model turns a value, such as prose of a tool, into data that fits a JSON Schema. Throws if it cannot. */
declare function extract<const S>(value: unknown, type: S, hint?: string): Promise<FromSchema<S>>;
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

/// `extract` in Python: the type of the result is the one that the script gives to its variable.
pub const EXTRACT_PYTHON: &str = r#"T = TypeVar("T")

async def extract(value: Any, type: dict[str, Any] | Literal["string", "number", "integer", "boolean"], hint: str | None = None) -> T:
    """A model turns a value, such as prose of a tool, into data that fits a JSON Schema. Raises if it cannot."""
"#;
