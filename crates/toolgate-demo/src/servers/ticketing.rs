//! `ticketing`: the issues of a project.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, choice, count, date, flag, integer, limit, map, moment, object, offset, since,
    text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const PRIORITIES: &[&str] = &["low", "medium", "high", "urgent"];
const STATUSES: &[&str] = &["open", "in_progress", "blocked", "closed"];
const RESOLUTIONS: &[&str] = &["fixed", "wont_fix", "duplicate", "cannot_reproduce"];
const LINKS: &[&str] = &["blocks", "is_blocked_by", "relates_to", "duplicates"];

pub(super) fn server() -> Spec {
    Spec {
        name: "ticketing",
        description: "Issues of the shop's project: create, triage, comment, plan.",
        version: "5.0.2",
        prefix: None,
        era: Era::Handshake,
        annotations: Annotations::Given,
        tables: vec![tables::issues(), tables::labels(), tables::milestones()],
        tools: issue_tools().into_iter().chain(state_tools()).chain(planning_tools()).collect(),
    }
}

fn comment_fields() -> Vec<Field> {
    vec![
        text("body", "Text of the comment."),
        text("author", "User who wrote it.").optional(),
        flag("internal", "Whether only the team sees it.").optional(),
        moment("at", "When it was written."),
    ]
}

fn link_fields() -> Vec<Field> {
    vec![
        text("targetId", "The other issue."),
        choice("type", LINKS, "How the two relate."),
        moment("at", "When the link was made."),
    ]
}

fn issue_id() -> Field {
    text(
        "issueId",
        "Id of the issue, such as ISS-101, as returned by createIssue, listIssues or searchIssues.",
    )
    .example("ISS-103")
}

fn issue_tools() -> Vec<Tool> {
    vec![
        tool(
            "createIssue",
            "Create a new issue in the project's tracker. Only the title is required; the \
            priority defaults to medium and the status to open. Returns the created issue with \
            its id.",
            vec![
                text("title", "One-line summary of the problem or the request.")
                    .example("Payment provider times out"),
                text(
                    "body",
                    "Longer description in Markdown: what happens, what was expected, how to \
                    reproduce it.",
                )
                .optional(),
                choice("priority", PRIORITIES, "How urgent the issue is.").or("medium"),
                texts("labels", "Names of labels to set, such as bug or billing.").optional(),
                text("assignee", "User name of the person who should work on it.").optional(),
                text("milestoneId", "Milestone to plan it for.").optional(),
                date("dueDate", "Date by which it should be done.").optional(),
            ],
            Action::Create("issues", &[]),
        )
        .typed(),
        tool(
            "listIssues",
            "List issues of the project with optional filters on status, priority, assignee, \
            labels and milestone. Issues must have all given labels. Use searchIssues to look \
            for words.",
            vec![
                choice("status", STATUSES, "Only issues in this state.").optional(),
                choice("priority", PRIORITIES, "Only issues of this priority.").optional(),
                text("assignee", "Only issues assigned to this user.").optional(),
                texts("labels", "Only issues with all of these labels.").optional(),
                text("milestoneId", "Only issues planned for this milestone.").optional(),
                since("since", "Only issues created since then: a time, or a duration such as 7d.")
                    .optional()
                    .example("14d"),
                limit(25, 100),
                offset(),
            ],
            Action::List("issues", Shape::Page("issues")),
        ),
        tool(
            "searchIssues",
            "Search issues by words in their title, description, labels and comments. All words \
            must occur.",
            vec![
                text("query", "Words to look for.").example("invoice"),
                choice("status", STATUSES, "Only issues in this state.").optional(),
                limit(10, 100),
            ],
            Action::List("issues", Shape::Page("issues")),
        ),
        tool(
            "getIssue",
            "Get an issue with its comments, links and watchers.",
            vec![issue_id()],
            Action::Get("issues"),
        )
        .typed(),
        tool(
            "updateIssue",
            "Change fields of an issue: its title, description, priority, status, labels, \
            milestone or due date. Fields that are left out stay as they are; labels are \
            replaced as a whole.",
            vec![
                issue_id(),
                text("title", "New title.").optional(),
                text("body", "New description in Markdown.").optional(),
                choice("priority", PRIORITIES, "New priority.").optional().example("high"),
                choice("status", STATUSES, "New state.").optional(),
                texts("labels", "New set of labels.").optional(),
                text("milestoneId", "New milestone.").optional(),
                date("dueDate", "New due date.").optional(),
            ],
            Action::Update("issues", &[]),
        ),
        tool(
            "deleteIssue",
            "Delete an issue with its comments for good. Prefer closeIssue, which keeps the \
            history.",
            vec![issue_id()],
            Action::Delete("issues"),
        ),
    ]
}

fn state_tools() -> Vec<Tool> {
    vec![
        tool(
            "assignIssue",
            "Assign an issue to a user. Replaces the current assignee.",
            vec![issue_id(), text("assignee", "User name of the new assignee.").example("hana")],
            Action::Update("issues", &[]),
        ),
        tool(
            "closeIssue",
            "Close an issue with a resolution. A closed issue can be opened again with \
            reopenIssue.",
            vec![
                issue_id(),
                choice("resolution", RESOLUTIONS, "Why it is closed.").or("fixed"),
                text("duplicateOf", "Id of the original, when closed as a duplicate.").optional(),
            ],
            Action::Update("issues", &[("status", "closed")]),
        ),
        tool(
            "reopenIssue",
            "Open a closed issue again, for example when a fix did not hold.",
            vec![issue_id(), text("reason", "Why it is opened again.").optional()],
            Action::Update("issues", &[("status", "open")]),
        ),
        tool(
            "addComment",
            "Add a comment to an issue. Internal comments are seen by the team only.",
            vec![
                issue_id(),
                text("body", "Text of the comment in Markdown.")
                    .example("Seen again this morning."),
                text("author", "User name to comment as.").or("demo"),
                flag("internal", "Whether to hide it from reporters.").or(false),
            ],
            Action::Append("issues", "comments"),
        ),
        tool(
            "listComments",
            "List the comments of an issue, oldest first.",
            vec![issue_id()],
            Action::Compute(answers::comments),
        )
        .returns_list(comment_fields()),
        tool(
            "linkIssues",
            "Link an issue to another one: it blocks it, is blocked by it, relates to it or \
            duplicates it.",
            vec![
                issue_id(),
                text("targetId", "Id of the other issue.").example("ISS-106"),
                choice("type", LINKS, "How the first relates to the second."),
            ],
            Action::Append("issues", "links"),
        ),
        tool(
            "addWatcher",
            "Add a user to the watchers of an issue, who are notified of every change.",
            vec![issue_id(), text("user", "User name of the watcher.").example("priya")],
            Action::Append("issues", "watchers"),
        ),
        tool(
            "addLabels",
            "Add labels to an issue, keeping those that it has.",
            vec![
                issue_id(),
                texts("labels", "Names of the labels to add.").example(json!(["bug"])),
            ],
            Action::Change(answers::add_labels),
        ),
    ]
}

fn planning_tools() -> Vec<Tool> {
    vec![
        tool(
            "listLabels",
            "List the labels that issues can have, with colours and descriptions.",
            vec![],
            Action::List("labels", Shape::Bare),
        ),
        tool(
            "createLabel",
            "Create a label for issues.",
            vec![
                text("name", "Name of the label, in lower case.").example("regression"),
                text("color", "Colour as six hexadecimal digits.").or("ededed"),
                text("description", "What the label is for.").optional(),
            ],
            Action::Create("labels", &[]),
        ),
        tool(
            "listMilestones",
            "List milestones of the project with their due dates.",
            vec![
                choice("status", &["open", "closed"], "Only milestones in this state.").optional(),
            ],
            Action::List("milestones", Shape::Bare),
        ),
        tool(
            "createMilestone",
            "Create a milestone that issues can be planned for.",
            vec![
                text("title", "Name of the milestone.").example("Holiday season"),
                date("dueDate", "When it is due.").example("2026-12-01"),
                text("description", "What it is about.").optional(),
            ],
            Action::Create("milestones", &[]),
        ),
        tool(
            "getProjectStats",
            "Count the issues of the project by status, priority, label or assignee.",
            vec![
                choice(
                    "groupBy",
                    &["status", "priority", "labels", "assignee"],
                    "What to count by.",
                )
                .or("status"),
                object(
                    "filter",
                    vec![
                        choice("status", STATUSES, "Only issues in this state.").optional(),
                        integer(
                            "createdWithinDays",
                            1..=365,
                            "Only issues created in the last days.",
                        )
                        .optional(),
                    ],
                    "Which issues to count; all when left out.",
                )
                .optional(),
            ],
            Action::Report(answers::stats),
        )
        .returns(vec![
            text("groupBy", "What was counted by."),
            count("total", "Number of issues counted."),
            map("counts", Kind::Integer(None), "Number of issues a group."),
        ]),
    ]
}
