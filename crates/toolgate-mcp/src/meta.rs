//! Keys of `_meta`.

/// The protocol version of a request, in the modern era.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `Implementation` of the client, in the modern era.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The capabilities of the client, in the modern era.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log message that the client wants, in the modern era.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `Implementation` of the server, in the modern era.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The id of the `subscriptions/listen` request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token that notifications of progress repeat.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The task that a message of a legacy server is about: an object with `taskId`.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Who makes a call, as toolgate tells a server that is to know it.
pub const CALLER: &str = "toolgate/caller";

/// The server that a request of an extension is for, as a client tells toolgate.
pub const SERVER: &str = "toolgate/server";

/// In the capability `logging` of a server that another node runs: log messages outside of calls come with a
/// `subscriptions/listen` whose filter has the same key, with a level or `true`.
pub const LISTENED_LOGS: &str = "toolgate/logMessages";

/// How many characters of a result were no Unicode and were replaced.
pub const REPLACED: &str = "toolgate/replaced";

/// The error of a server, where its caller gets a text: an object with `code` and `data`.
pub const ERROR: &str = "toolgate/error";
