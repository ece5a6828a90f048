//! What a model sees of a tool, in both languages.

use serde_json::{Value, json};
use toolgate_bindings::{DeclaredNames, Output, ToolApi, python, typescript, typescript_beside};

use crate::compilers::Tool;

/// Both declarations of some tools.
fn declared(tools: &[(&str, Value)]) -> String {
    let tools: Vec<Tool> =
        tools.iter().map(|(name, definition)| Tool::new(*name, definition.clone())).collect();
    let apis: Vec<_> = tools.iter().map(Tool::api).collect();
    format!("{}\n{}", typescript(&apis), python(&apis))
}

#[test]
fn a_common_tool() {
    let definition = json!({
        "description": "Open an issue in a repository.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "owner": { "type": "string", "description": "Who the repository belongs to" },
                "repo": { "type": "string" },
                "title": { "type": "string", "maxLength": 256 },
                "labels": { "type": "array", "items": { "type": "string" }, "description": "Names of labels" },
                "priority": { "type": "integer", "minimum": 1, "maximum": 5, "default": 3 },
                "state": { "enum": ["open", "draft"], "default": "open", "description": "How to open it" },
                "due": { "type": ["string", "null"], "format": "date" },
            },
            "required": ["owner", "repo", "title"],
        },
        "outputSchema": {
            "type": "object",
            "properties": { "number": { "type": "integer" }, "url": { "type": "string", "format": "uri" } },
            "required": ["number"],
        },
    });
    insta::assert_snapshot!(declared(&[("tracker_create_issue", definition)]), @r#"
    /** Open an issue in a repository. */
    declare function tracker_create_issue(args: {
      /** Who the repository belongs to */
      owner: string;
      repo: string;
      title: string; // <= 256 characters
      /** Names of labels */
      labels?: string[];
      priority?: number; // 1..5, default 3
      /** How to open it (default "open") */
      state?: "open" | "draft";
      due?: string | null; // date
    }): Promise<{
      number: number;
      url?: string; // uri
    }>;

    class TrackerCreateIssueResult(TypedDict):
        number: int
        url: NotRequired[str]  # uri
    async def tracker_create_issue(
        owner: str,  # Who the repository belongs to
        repo: str,
        title: str,  # <= 256 characters
        labels: list[str] = ...,  # Names of labels
        priority: int = 3,  # 1..5
        state: Literal["open", "draft"] = "open",  # How to open it
        due: str | None = None,  # date
    ) -> TrackerCreateIssueResult:
        """Open an issue in a repository."""
    "#);
}

#[test]
fn no_parameters() {
    let definition = json!({ "description": "Who am I?", "inputSchema": { "type": "object" } });
    insta::assert_snapshot!(declared(&[("tracker_me", definition)]), @r#"
    /** Who am I? */
    declare function tracker_me(args?: {}): Promise<unknown>;

    async def tracker_me() -> Any:
        """Who am I?"""
    "#);
}

#[test]
fn all_optional_and_short() {
    let definition = json!({ "inputSchema": {
        "properties": { "page": { "type": "integer" }, "size": { "type": "integer", "default": 20 } },
    } });
    insta::assert_snapshot!(declared(&[("tracker_list", definition)]), @r"
    declare function tracker_list(args?: {
      page?: number;
      size?: number; // default 20
    }): Promise<unknown>;

    async def tracker_list(page: int = ..., size: int = 20) -> Any: ...
    ");
}

#[test]
fn required_after_optional() {
    let definition = json!({ "inputSchema": {
        "properties": {
            "limit": { "type": "integer", "default": 10 },
            "query": { "type": "string" },
            "after": { "type": "string" },
        },
        "required": ["query"],
    } });
    insta::assert_snapshot!(declared(&[("tracker_search", definition)]), @r"
    declare function tracker_search(args: {
      limit?: number; // default 10
      query: string;
      after?: string;
    }): Promise<unknown>;

    async def tracker_search(limit: int = 10, *, query: str, after: str = ...) -> Any: ...
    ");
}

#[test]
fn names_that_are_no_identifiers() {
    let definition = json!({ "inputSchema": {
        "properties": {
            "path": { "type": "string" },
            "from": { "type": "string", "description": "Where it is now" },
            "user-id": { "type": "integer" },
            "to": { "type": "string" },
        },
        "required": ["path", "from"],
    } });
    insta::assert_snapshot!(declared(&[("files_move", definition)]), @r#"
    declare function files_move(args: {
      path: string;
      /** Where it is now */
      from: string;
      "user-id"?: number;
      to?: string;
    }): Promise<unknown>;

    async def files_move(
        path: str,
        *,
        to: str = ...,
        # pass as **{"from": ...}:
        # "from": str  # Where it is now
        # "user-id": int = ...
        **others: Any,
    ) -> Any: ...
    "#);
}

#[test]
fn nested_objects() {
    let definition = json!({ "inputSchema": {
        "properties": {
            "filter": {
                "type": "object",
                "description": "Which ones",
                "properties": {
                    "author": { "type": "string", "description": "Name of the author" },
                    "range": { "type": "object", "properties": {
                        "from": { "type": "string", "format": "date-time" },
                        "to": { "type": "string", "format": "date-time" },
                    } },
                },
                "required": ["author"],
            },
            "fields": { "type": "object", "additionalProperties": { "type": ["string", "number"] } },
        },
    } });
    insta::assert_snapshot!(declared(&[("notes_find", definition)]), @r#"
    interface Filter {
      /** Name of the author */
      author: string;
      range?: {
        from?: string; // date-time
        to?: string; // date-time
      };
    }
    declare function notes_find(args?: {
      /** Which ones */
      filter?: Filter;
      fields?: { [key: string]: string | number };
    }): Promise<unknown>;

    class Filter(TypedDict):
        author: str  # Name of the author
        range: NotRequired[Range]
    Range = TypedDict("Range", {
        "from": "str",  # date-time
        "to": "str",  # date-time
    }, total=False)
    async def notes_find(
        filter: Filter = ...,  # Which ones
        fields: dict[str, str | float] = ...,
    ) -> Any: ...
    "#);
}

#[test]
fn shared_and_recursive_types() {
    let address = json!({ "type": "object", "description": "A place on earth", "properties": {
        "street": { "type": "string", "description": "With the number of the house" },
        "city": { "type": "string" },
    }, "required": ["city"] });
    let group = json!({ "type": "object", "properties": {
        "name": { "type": "string" },
        "groups": { "type": "array", "items": { "$ref": "#/$defs/Group" } },
    }, "required": ["name"] });
    let definition = json!({
        "inputSchema": {
            "properties": {
                "from": { "$ref": "#/$defs/Address" },
                "via": { "type": "array", "items": { "$ref": "#/$defs/Address" } },
                "group": { "$ref": "#/$defs/Group", "description": "Whom to tell" },
            },
            "required": ["from"],
            "$defs": { "Address": address, "Group": group },
        },
        "outputSchema": { "type": "object", "properties": {
            "carrier": { "type": "string" }, "to": { "$ref": "#/$defs/Address" },
        }, "$defs": { "Address": address } },
    });
    insta::assert_snapshot!(declared(&[("parcel_send", definition)]), @r#"
    interface Group { name: string; groups?: Group[] }
    /** A place on earth */
    interface Address {
      /** With the number of the house */
      street?: string;
      city: string;
    }
    declare function parcel_send(args: {
      from: Address;
      via?: Address[];
      /** Whom to tell */
      group?: Group;
    }): Promise<{ carrier?: string; to?: Address }>;

    class Group(TypedDict):
        name: str
        groups: NotRequired[list[Group]]
    class Address(TypedDict):
        """A place on earth"""
        street: NotRequired[str]  # With the number of the house
        city: str
    class ParcelSendResult(TypedDict, total=False):
        carrier: str
        to: Address
    async def parcel_send(
        *,
        via: list[Address] = ...,
        group: Group = ...,  # Whom to tell
        # pass as **{"from": ...}:
        # "from": Address
        **others: Any,
    ) -> ParcelSendResult: ...
    "#);
}

#[test]
fn alternatives() {
    let definition = json!({ "inputSchema": {
        "properties": { "shape": { "description": "What to draw", "oneOf": [
            { "type": "object", "description": "Round", "properties": {
                "kind": { "const": "circle" }, "radius": { "type": "number", "exclusiveMinimum": 0 },
            }, "required": ["kind", "radius"] },
            { "type": "object", "properties": {
                "kind": { "const": "polygon" },
                "points": { "type": "array", "items": { "type": "array", "prefixItems": [{ "type": "number" }, { "type": "number" }], "items": false } },
            }, "required": ["kind", "points"] },
            { "type": "string" },
            { "type": "null" },
        ] } },
        "required": ["shape"],
    } });
    insta::assert_snapshot!(declared(&[("canvas_draw", definition)]), @r#"
    interface Polygon { kind: "polygon"; points: [number, number][] }
    declare function canvas_draw(args: {
      /** What to draw */
      shape: /* Round */ {
        kind: "circle";
        radius: number; // > 0
      } | Polygon | string | null;
    }): Promise<unknown>;

    class Circle(TypedDict):
        """Round"""
        kind: Literal["circle"]
        radius: float  # > 0
    class Polygon(TypedDict):
        kind: Literal["polygon"]
        points: list[tuple[float, float]]
    async def canvas_draw(
        shape: Circle | Polygon | str | None,  # What to draw
    ) -> Any: ...
    "#);
}

#[test]
fn parts_and_alternatives_at_the_root() {
    let definition = json!({ "inputSchema": {
        "type": "object",
        "properties": { "dry_run": { "type": "boolean" } },
        "oneOf": [
            { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
            { "properties": { "name": { "type": "string" } }, "required": ["name"] },
        ],
    } });
    insta::assert_snapshot!(declared(&[("queue_drop", definition)]), @r"
    declare function queue_drop(args: { dry_run?: boolean } & ({ id: number } | { name: string })): Promise<unknown>;

    async def queue_drop(dry_run: bool = ..., id: int = ..., name: str = ...) -> Any: ...
    ");
}

#[test]
fn documented_values_and_lines() {
    let definition = json!({
        "description": "\n    Sorts it.\n\n    Args:\n        order: which way\n    ",
        "inputSchema": { "properties": {
            "order": { "description": "The order", "oneOf": [
                { "const": "asc", "description": "Oldest first" },
                { "const": "desc", "description": "Newest first" },
            ] },
            "tags": { "type": "array", "description": "All of them", "maxItems": 5,
                "items": { "type": "string", "description": "lower case" } },
        } },
    });
    insta::assert_snapshot!(declared(&[("notes_sort", definition)]), @r#"
    /** Sorts it.

    Args:
        order: which way */
    declare function notes_sort(args?: {
      /** The order
      "asc": Oldest first
      "desc": Newest first */
      order?: "asc" | "desc";
      /** All of them
      Items: lower case (<= 5 items) */
      tags?: string[];
    }): Promise<unknown>;

    async def notes_sort(
        # The order
        # "asc": Oldest first
        # "desc": Newest first
        order: Literal["asc", "desc"] = ...,
        # All of them
        # Items: lower case (<= 5 items)
        tags: list[str] = ...,
    ) -> Any:
        """Sorts it.

        Args:
            order: which way"""
    "#);
}

#[test]
fn texts_cannot_break_out_of_comments_and_literals() {
    let definition = json!({
        "description": "Ends */ here, or \"\"\" there \\",
        "inputSchema": { "properties": {
            "a": { "enum": ["*/", "\"", "\u{202e}"], "description": "one */ two\u{200b}\u{7}" },
            "*/": { "type": "string" },
        } },
    });
    insta::assert_snapshot!(declared(&[("evil_tool", definition)]), @r#"
    /** Ends *\/ here, or """ there \ */
    declare function evil_tool(args?: {
      /** one *\/ two */
      a?: "*/" | "\"" | "\u202e";
      "*/"?: string;
    }): Promise<unknown>;

    async def evil_tool(
        a: Literal["*/", "\"", "\u202e"] = ...,  # one */ two
        # pass as **{"*/": ...}:
        # "*/": str = ...
        **others: Any,
    ) -> Any:
        """Ends */ here, or \"\"\" there \\"""
    "#);
}

#[test]
fn tools_that_share_a_type() {
    let ticket = json!({ "type": "object", "properties": {
        "id": { "type": "integer" },
        "title": { "type": "string" },
        "assignee": { "type": ["string", "null"] },
    }, "required": ["id", "title"] });
    let get = json!({
        "inputSchema": { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
        "outputSchema": ticket,
    });
    let list = json!({
        "inputSchema": { "type": "object" },
        "outputSchema": { "type": "object", "properties": {
            "tickets": { "type": "array", "items": ticket }, "next": { "type": "string" },
        }, "required": ["tickets"], "additionalProperties": true },
    });
    insta::assert_snapshot!(declared(&[("desk_get", get), ("desk_list", list)]), @r"
    interface DeskGetResult { id: number; title: string; assignee?: string | null }
    declare function desk_get(args: { id: number }): Promise<DeskGetResult>;
    declare function desk_list(args?: {}): Promise<{ tickets: DeskGetResult[]; next?: string }>;

    class DeskGetResult(TypedDict):
        id: int
        title: str
        assignee: NotRequired[str | None]
    class DeskListResult(TypedDict):
        tickets: list[DeskGetResult]
        next: NotRequired[str]
    async def desk_get(id: int) -> DeskGetResult: ...
    async def desk_list() -> DeskListResult: ...
    ");
}

/// The name of each declared type in TypeScript, and those of Python.
fn type_names(declared: &str) -> (Vec<&str>, Vec<&str>) {
    let name = |line: &'_ str, before: &str| -> Option<usize> {
        line.starts_with(before).then_some(before.len())
    };
    let mut names = (Vec::new(), Vec::new());
    for line in declared.lines() {
        let word = |from: usize| {
            line[from..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
        };
        if let Some(from) = name(line, "interface ") {
            names.0.push(word(from));
        } else if let Some(from) = name(line, "class ") {
            names.1.push(word(from));
        }
    }
    names
}

#[test]
fn shapes_have_the_same_names_in_both_languages() {
    let entry = json!({
        "type": "object",
        "properties": {
            "ts": { "type": "string" }, "level": { "enum": ["info", "error"] },
            "message": { "type": "string" },
            "host": { "type": "object", "properties": { "name": { "type": "string" } } },
            "caller": { "type": "object", "properties": {
                "file": { "type": "string" }, "line": { "type": "integer" }, "function": { "type": "string" },
            } },
        },
        "required": ["ts", "message"],
    });
    // A definition has the name that the schema gives it, and any other shape that of its property.
    let named = json!({
        "inputSchema": { "type": "object" },
        "outputSchema": {
            "type": "object",
            "properties": { "entries": { "type": "array", "items": { "$ref": "#/$defs/LogEntry" } } },
            "required": ["entries"],
            "$defs": { "LogEntry": entry },
        },
    });
    let nameless = json!({
        "inputSchema": { "type": "object" },
        "outputSchema": {
            "type": "object",
            "properties": { "log_entries": { "type": "array", "items": entry } },
            "required": ["log_entries"],
        },
    });
    let alone = declared(&[("logs_query", nameless.clone())]);
    insta::assert_snapshot!(alone, @r#"
    interface LogEntry { ts: string; level?: "info" | "error"; message: string; host?: { name?: string }; caller?: Caller }
    interface Caller { file?: string; line?: number; function?: string }
    declare function logs_query(args?: {}): Promise<{ log_entries: LogEntry[] }>;

    class LogsQueryResult(TypedDict):
        log_entries: list[LogEntry]
    class LogEntry(TypedDict, total=False):
        ts: Required[str]
        level: Literal["info", "error"]
        message: Required[str]
        host: Host
        caller: Caller
    class Host(TypedDict, total=False):
        name: str
    class Caller(TypedDict, total=False):
        file: str
        line: int
        function: str
    async def logs_query() -> LogsQueryResult: ...
    "#);
    let (typescript, python) = type_names(&alone);
    assert!(
        typescript.contains(&"LogEntry") && typescript.iter().all(|name| python.contains(name))
    );
    let both = declared(&[("logs_query", nameless), ("logs_tail", named)]);
    let (typescript, python) = type_names(&both);
    assert_eq!(typescript.iter().filter(|name| name.contains("Entry")).count(), 1, "{both}");
    assert!(typescript.iter().all(|name| python.contains(name)), "{both}");
}

#[test]
fn declarations_beside_each_other_have_different_names() {
    let schema = |kind: &str| {
        json!({ "type": "object", "required": ["item"], "properties": { "item": {
            "type": "object", "required": ["id", "title", "author"], "properties": {
                "id": { "type": kind }, "title": { "type": "string" }, "author": { "type": "string" },
            },
        } } })
    };
    let mut used = DeclaredNames::default();
    let mut declare = |name: &str, kind: &str| {
        let input_schema = schema(kind);
        let tool = ToolApi {
            name,
            description: None,
            input_schema: &input_schema,
            output: Output::Unknown,
        };
        typescript_beside(&[tool], &mut used)
    };
    let (one, other) = (declare("a_make", "string"), declare("b_make", "number"));
    assert!(one.starts_with("interface Item { id: string;"), "{one}");
    assert!(other.starts_with("interface BMakeItem { id: number;"), "{other}");
}
