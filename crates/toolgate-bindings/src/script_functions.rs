//! The declarations of the functions that scripts have besides the tools.

/// The declaration of a function in TypeScript; `None` if there is no such function.
pub fn typescript_function(name: &str) -> Option<&'static str> {
    match name {
        "extract" => Some(EXTRACT_TYPESCRIPT),
        "read_resource" => Some(READ_RESOURCE_TYPESCRIPT),
        "read_output" => Some(READ_OUTPUT_TYPESCRIPT),
        _ => None,
    }
}

/// The declaration of a function in Python; `None` if there is no such function.
pub fn python_function(name: &str) -> Option<&'static str> {
    match name {
        "extract" => Some(EXTRACT_PYTHON),
        "read_resource" => Some(READ_RESOURCE_PYTHON),
        "read_output" => Some(READ_OUTPUT_PYTHON),
        _ => None,
    }
}

const READ_RESOURCE_TYPESCRIPT: &str = "/** Reads a resource by its URI: a text, data if its type is JSON, or a list of blocks. Throws if there is none. */
declare function read_resource(uri: string): Promise<any>;
";

const READ_RESOURCE_PYTHON: &str = "async def read_resource(uri: str) -> Any:
    \"\"\"Reads a resource by its URI: a text, data if its type is JSON, or a list of blocks. Raises if there is none.\"\"\"
";

const READ_OUTPUT_TYPESCRIPT: &str = "/** Reads an output that was too long, by its id: from an offset on, or the lines that match a regular expression. Go on with offset: next. */
declare function read_output(id: string, offset?: number, pattern?: string): Promise<{ text: string; next: number | null; total: number }>;
";

const READ_OUTPUT_PYTHON: &str = "async def read_output(id: str, offset: int = 0, pattern: str | None = None) -> dict[str, Any]:
    \"\"\"Reads an output that was too long, by its id: from an offset on, or the lines that match a regular expression. Returns text, next (the offset to go on with, or None) and total.\"\"\"
";

/// `extract` in TypeScript: the type of the result follows from the schema.
const EXTRACT_TYPESCRIPT: &str = r#"/** A model turns a value, such as prose of a tool, into data that fits a JSON Schema. Throws if it cannot. */
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
const EXTRACT_PYTHON: &str = r#"T = TypeVar("T")

async def extract(value: Any, type: type[T] | dict[str, Any] | Literal["string", "number", "integer", "boolean"], hint: str | None = None) -> T:
    """A model turns a value, such as prose of a tool, into data of a class (a dataclass, a TypedDict, str, list[int], ...) or of a JSON Schema. Raises if it cannot."""
"#;
