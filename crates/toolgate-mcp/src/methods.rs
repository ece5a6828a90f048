//! Methods of requests and notifications.

/// Opens a connection of the legacy era.
pub const INITIALIZE: &str = "initialize";
/// Asks a modern server for its versions and capabilities.
pub const DISCOVER: &str = "server/discover";
/// Checks that the other side responds.
pub const PING: &str = "ping";
/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Gets a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists templates of resources.
pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to a resource, in the legacy era.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends such a subscription.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Lists skills (extension).
pub const SKILLS_LIST: &str = "skills/list";
/// Gets a skill (extension).
pub const SKILLS_GET: &str = "skills/get";
/// Lists groups (extension).
pub const GROUPS_LIST: &str = "groups/list";
/// Gets a group (extension).
pub const GROUPS_GET: &str = "groups/get";
/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";
/// Sets the least severe log message, in the legacy era.
pub const SET_LOG_LEVEL: &str = "logging/setLevel";
/// Subscribes to notifications, in the modern era. It is answered when it ends.
pub const LISTEN: &str = "subscriptions/listen";
/// Gets the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Gets the result of a task, in the legacy era. It is answered when the task has ended.
pub const TASKS_RESULT: &str = "tasks/result";
/// Answers the input requests of a task, in the modern era.
pub const TASKS_UPDATE: &str = "tasks/update";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Asks the person for input.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// A server tells that what it asked for at a URL is done.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
/// Asks the model of the client.
pub const SAMPLING_CREATE: &str = "sampling/createMessage";
/// Asks for the folders of the client.
pub const ROOTS_LIST: &str = "roots/list";

/// Ends the handshake of the legacy era.
pub const INITIALIZED: &str = "notifications/initialized";
/// Cancels an open request.
pub const CANCELLED: &str = "notifications/cancelled";
/// Reports progress of a request.
pub const PROGRESS: &str = "notifications/progress";
/// Carries a log message.
pub const LOG_MESSAGE: &str = "notifications/message";
/// Says that the list of tools changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// Says that the groups changed (extension).
pub const GROUPS_CHANGED: &str = "notifications/groups/list_changed";
/// Says that the list of prompts changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// Says that the list of resources changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// Says that a resource changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// Says that the roots of the client changed.
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// Says that the state of a task changed, in the modern era.
pub const TASK_CHANGED: &str = "notifications/tasks";
/// Confirms `subscriptions/listen`.
pub const LISTEN_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The parameter that the header `Mcp-Name` of a request repeats.
pub fn name_parameter(method: &str) -> Option<&'static str> {
    match method {
        TOOLS_CALL | PROMPTS_GET => Some("name"),
        RESOURCES_READ | RESOURCES_SUBSCRIBE | RESOURCES_UNSUBSCRIBE => Some("uri"),
        TASKS_GET | TASKS_UPDATE | TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// The longest method that is passed on without being known.
const MAX_UNKNOWN_BYTES: usize = 128;
/// The first parts of the names of methods that belong to the protocol itself, or to extensions that toolgate knows.
const KNOWN: [&str; 15] = [
    "completion",
    "elicitation",
    "groups",
    "initialize",
    "logging",
    "ping",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "server",
    "skills",
    "subscriptions",
    "tasks",
    "tools",
];
/// The same of notifications, without `notifications/`.
const KNOWN_NOTIFICATIONS: [&str; 4] = ["cancelled", "initialized", "message", "progress"];

/// The first part of a method's name, without `notifications/`.
pub fn first_part(method: &str) -> &str {
    let name = method.strip_prefix("notifications/").unwrap_or(method);
    name.split('/').next().unwrap_or_default()
}

/// Whether a server lists what it has. It asks nobody for that.
pub fn is_list(method: &str) -> bool {
    matches!(method, TOOLS_LIST | PROMPTS_LIST | RESOURCES_LIST | RESOURCE_TEMPLATES_LIST)
}

/// Whether the method is of no extension that toolgate knows, and not of the protocol itself.
pub fn is_of_unknown_extension(method: &str) -> bool {
    let first = first_part(method);
    let is_known_notification =
        method.starts_with("notifications/") && KNOWN_NOTIFICATIONS.contains(&first);
    let is_known = KNOWN.contains(&first) || is_known_notification;
    method.len() <= MAX_UNKNOWN_BYTES && !first.is_empty() && !is_known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_the_protocol_belong_to_no_extension() {
        for known in [
            "tools/call",
            "tasks/get",
            "notifications/progress",
            "notifications/tools/list_changed",
            "",
        ] {
            assert!(!is_of_unknown_extension(known), "{known}");
        }
        assert!(!is_of_unknown_extension(&"x".repeat(MAX_UNKNOWN_BYTES + 1)));
        assert!(is_of_unknown_extension("events/list"));
        assert!(is_of_unknown_extension("notifications/events/occurred"));
    }
}
