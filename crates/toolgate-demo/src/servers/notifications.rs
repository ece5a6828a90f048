//! `notifications`: many ways to say something to somebody, all nearly alike.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, choice, choices, flag, integer, limit, map, moment, object, objects, since, text,
    texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const URGENCIES: &[&str] = &["low", "normal", "high"];
const MEDIA: &[&str] = &["user", "channel", "email", "sms", "push", "webhook"];
const STATES: &[&str] = &["queued", "scheduled", "delivered", "failed", "cancelled"];

pub(super) fn server() -> Spec {
    Spec {
        name: "notifications",
        description: "Messages to people, channels and devices; templates and preferences.",
        version: "1.13.0",
        prefix: None,
        era: Era::Handshake,
        annotations: Annotations::Given,
        tables: vec![
            tables::deliveries(),
            tables::channels(),
            tables::templates(),
            tables::preferences(),
        ],
        tools: sending_tools().into_iter().chain(delivery_tools()).chain(setting_tools()).collect(),
    }
}

fn quiet_hours() -> Vec<Field> {
    vec![text("start", "Start as HH:MM."), text("end", "End as HH:MM.")]
}

fn message() -> Field {
    text(
        "message",
        "Text of the notification, as plain text or simple Markdown; keep it under 500 characters.",
    )
    .example("Release 2026.10.3 is out")
}

fn urgency() -> Field {
    choice("urgency", URGENCIES, "How urgent it is; high breaks through quiet hours.").or("normal")
}

fn recipient(about: &'static str, example: &'static str) -> Field {
    text("recipient", about).example(example)
}

fn actions() -> Field {
    objects(
        "actions",
        vec![text("label", "Text of the button."), text("url", "Where it leads.")],
        "Buttons to show below the message.",
    )
    .optional()
}

fn sending_tools() -> Vec<Tool> {
    vec![
        tool(
            "send_user_notification",
            "Send an in-app notification to a single user by user name. It appears in the user's \
            inbox and on their devices. To reach a group, use send_channel_notification.",
            vec![
                recipient("User name of the recipient.", "priya"),
                message(),
                urgency(),
                actions(),
            ],
            Action::Create("deliveries", &[("medium", "user"), ("status", "delivered")]),
        )
        .typed(),
        tool(
            "send_channel_notification",
            "Post a notification to a channel, where all members of the channel see it. To reach \
            one person, use send_user_notification.",
            vec![
                recipient("Name of the channel, with its #.", "#deployments"),
                message(),
                urgency(),
                flag("mention_everyone", "Whether to alert all members, also those who are away.")
                    .or(false),
                text("thread_id", "Notification id to reply to in a thread.").optional(),
            ],
            Action::Create("deliveries", &[("medium", "channel"), ("status", "delivered")]),
        )
        .typed(),
        tool(
            "send_email_notification",
            "Send a notification by email to one address. Use a template with render_template \
            for formatted messages.",
            vec![
                recipient("Email address of the recipient.", "ravi@example.com"),
                text("subject", "Subject line.").example("Release notes"),
                message(),
                texts("cc", "Further addresses that get a copy.").optional(),
                urgency(),
            ],
            Action::Create("deliveries", &[("medium", "email"), ("status", "queued")]),
        ),
        tool(
            "send_sms_notification",
            "Send a notification as a text message to a phone number. Messages over 160 \
            characters are split and cost more.",
            vec![
                recipient(
                    "Phone number in international form, such as +351900000001.",
                    "+351900000001",
                ),
                message(),
                urgency(),
            ],
            Action::Create("deliveries", &[("medium", "sms"), ("status", "queued")]),
        ),
        tool(
            "send_push_notification",
            "Send a push notification to a mobile device by its device id, with optional data \
            for the app.",
            vec![
                recipient("Device id.", "device-77"),
                message(),
                urgency(),
                map("data", Kind::Text, "Key and value pairs that are handed to the app.")
                    .optional(),
                integer("badge", 0..=999, "Number to show on the app's icon.").optional(),
            ],
            Action::Create("deliveries", &[("medium", "push"), ("status", "queued")]),
        ),
        tool(
            "send_webhook_notification",
            "Deliver a notification to a registered webhook endpoint by its name, as a signed \
            JSON body.",
            vec![
                recipient("Name of the endpoint.", "partner-orders"),
                message(),
                map("headers", Kind::Text, "Additional headers.").optional(),
            ],
            Action::Create("deliveries", &[("medium", "webhook"), ("status", "queued")]),
        ),
    ]
}

fn delivery_tools() -> Vec<Tool> {
    let id = || text("notification_id", "Id of the notification.").example("NTF-4");
    vec![
        tool(
            "schedule_user_notification",
            "Schedule an in-app notification to a single user for a later time. Cancel it with \
            cancel_notification before it is delivered.",
            vec![
                recipient("User name of the recipient.", "amara"),
                message(),
                moment("deliver_at", "When to deliver it.").example("2026-10-16T08:00:00Z"),
                urgency(),
            ],
            Action::Create("deliveries", &[("medium", "user"), ("status", "scheduled")]),
        ),
        tool(
            "schedule_channel_notification",
            "Schedule a notification to a channel for a later time. All members of the channel \
            will see it.",
            vec![
                recipient("Name of the channel, with its #.", "#lunch"),
                message(),
                moment("deliver_at", "When to deliver it.").example("2026-10-16T08:00:00Z"),
            ],
            Action::Create("deliveries", &[("medium", "channel"), ("status", "scheduled")]),
        ),
        tool(
            "list_notifications",
            "List notifications that were sent or scheduled, with what became of them.",
            vec![
                choice("medium", MEDIA, "Only notifications sent this way.").optional(),
                text("recipient", "Only notifications to this recipient.").optional(),
                choice("status", STATES, "Only notifications in this state.").optional(),
                since(
                    "since",
                    "Only notifications sent since then: a time, or a duration such as 24h.",
                )
                .optional()
                .example("1d"),
                limit(50, 200),
            ],
            Action::List("deliveries", Shape::Page("notifications")),
        ),
        tool(
            "get_notification_status",
            "Get the delivery status of a notification by its id.",
            vec![id()],
            Action::Get("deliveries"),
        ),
        tool(
            "cancel_notification",
            "Cancel a notification that is queued or scheduled. What has been delivered cannot \
            be taken back.",
            vec![id(), text("reason", "Why it is cancelled.").optional()],
            Action::Destroy("deliveries", &[("status", "cancelled")]),
        ),
    ]
}

fn setting_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_channels",
            "List the channels that notifications can be posted to, with topic and members.",
            vec![flag("archived", "Only channels that are, or are not, archived.").optional()],
            Action::List("channels", Shape::Bare),
        ),
        tool(
            "create_channel",
            "Create a channel for notifications.",
            vec![
                text("name", "Name of the channel, starting with #.").example("#release-train"),
                text("topic", "What the channel is about.").optional(),
                texts("members", "User names of the first members.").optional(),
            ],
            Action::Create("channels", &[]),
        ),
        tool(
            "list_templates",
            "List the message templates and their placeholders.",
            vec![],
            Action::List("templates", Shape::Bare),
        ),
        tool(
            "render_template",
            "Fill in the placeholders of a message template and return the text, without sending \
            it.",
            vec![
                text("template_id", "Id of the template.").example("TPL-1"),
                map("values", Kind::Text, "A value for each placeholder.")
                    .example(json!({ "version": "2026.10.3", "environment": "production" })),
            ],
            Action::Compute(answers::render),
        )
        .returns(vec![
            text("text", "The filled-in message."),
            texts("missing", "Placeholders without a value."),
        ]),
        tool(
            "get_notification_preferences",
            "Get how a user wants to be notified: enabled media, quiet hours and digest.",
            vec![text("user", "User name.").example("priya")],
            Action::Get("preferences"),
        ),
        tool(
            "update_notification_preferences",
            "Change how a user wants to be notified. Fields that are left out stay as they are.",
            vec![
                text("user", "User name.").example("priya"),
                choices("enabled_media", MEDIA, "How the user may be reached.").optional(),
                object("quiet_hours", quiet_hours(), "When only urgent notifications arrive.")
                    .optional(),
                choice("digest", &["off", "daily", "weekly"], "How often minor ones are bundled.")
                    .optional(),
            ],
            Action::Update("preferences", &[]),
        ),
    ]
}
