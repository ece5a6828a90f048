//! `docs`: the pages of a handbook. Its tools' names have dashes, and it has no annotations.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::{
    Field, Object, choice, count, flag, integer, limit, moment, object, objects, offset, since,
    text, texts,
};
use crate::spec::{Era, Spec};
use crate::store::{Read, Store};
use crate::table::{Source, Table};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const SPACES: &[&str] = &["handbook", "engineering", "support", "product"];
const STATES: &[&str] = &["draft", "published", "archived"];

const PAGES: &str = "\
PG-1  | How we deploy             | engineering | published | # Overview // Every change reaches staging first. // # Rollbacks // Roll back before you look for the cause. // # Contacts // Ask in #deployments. | deploy;runbook    | viktor  | 2026-09-30T10:00:00Z |
PG-2  | On-call runbook           | engineering | published | # First steps // Acknowledge, then look at the dashboards. // # Escalation // Call the platform lead after 20 minutes.           | runbook;incident  | zofia   | 2026-10-08T08:00:00Z | PG-1
PG-3  | Expense policy            | handbook    | published | # Travel // Book ahead and keep receipts. // # Limits // Each level has a limit for a quarter.                                   | finance;travel    | margaret| 2026-07-01T09:00:00Z |
PG-4  | Welcome                   | handbook    | published | # Your first week // Get a computer, meet your mentor. // # Tools // You get accounts for chat, mail and code.                   | onboarding        | clara   | 2026-05-12T12:00:00Z |
PG-5  | Refunds                   | support     | published | # When // Within 30 days, always. // # How // Open the order and choose refund.                                                | orders            | mei     | 2026-08-19T14:30:00Z |
PG-6  | Chargebacks               | support     | draft     | # What they are // The bank takes the money back. // # Deadlines // Answer within seven days.                                  | orders;payments   | mei     | 2026-10-11T11:15:00Z | PG-5
PG-7  | Webhooks                  | product     | published | # Events // order.created, order.paid, order.shipped. // # Signatures // Every body is signed.                                 | api;partners      | tariq   | 2026-10-02T16:45:00Z |
PG-8  | Gift cards, the idea      | product     | draft     | # Why // Customers ask for them in December. // # Open questions // Expiry and taxes.                                           | idea              | samuel  | 2026-10-13T09:20:00Z |
PG-9  | Search, how it works      | engineering | published | # Index // Rebuilt every night. // # Ranking // Sales and freshness count.                                                      | search            | hana    | 2026-06-23T07:50:00Z |
PG-10 | Office plants             | handbook    | archived  | # Watering // On Mondays.                                                                                                       | office            | clara   | 2024-03-04T10:00:00Z |
";

pub(super) fn server() -> Spec {
    Spec {
        name: "docs",
        description: "Pages of the company handbook and the engineering wiki.",
        version: "1.2.0",
        prefix: None,
        era: Era::Handshake,
        annotations: Annotations::Omitted,
        tables: vec![pages(), templates()],
        tools: reading_tools().into_iter().chain(writing_tools()).collect(),
    }
}

fn pages() -> Table {
    Table {
        name: "pages",
        singular: "page",
        columns: vec![
            text("id", "Page id."),
            text("title", "Title of the page."),
            choice("space", SPACES, "Space that it is in.").or("handbook"),
            choice("status", STATES, "Whether it is published.").or("draft"),
            text("body", "Text of the page."),
            texts("tags", "Tags of the page."),
            text("author", "Who wrote it last.").or("demo"),
            moment("updated_at", "When it last changed."),
            text("parent_id", "Page that it is below.").optional(),
            objects(
                "comments",
                vec![
                    text("text", "The comment."),
                    text("author", "Who wrote it.").optional(),
                    text("anchor", "Heading that it is about.").optional(),
                    moment("at", "When."),
                ],
                "Comments on the page.",
            ),
        ],
        id_prefix: "PG-",
        time: Some("updated_at"),
        source: Source::Lines(PAGES),
    }
}

fn templates() -> Table {
    Table {
        name: "templates",
        singular: "template",
        columns: vec![
            text("id", "Template id."),
            text("name", "Name of the template."),
            texts("sections", "Headings of the page."),
        ],
        id_prefix: "TP-",
        time: None,
        source: Source::Lines(
            "TP-1 | Runbook         | First steps;Escalation;Contacts
             TP-2 | Decision record | Context;Options;Decision;Consequences
             TP-3 | Meeting notes   | Attendees;Topics;Decisions",
        ),
    }
}

fn page_id() -> Field {
    text("page_id", "Id of the page, such as PG-2, as returned by search-pages or list-pages.")
        .example("PG-2")
}

fn reading_tools() -> Vec<Tool> {
    vec![
        tool(
            "search-pages",
            "Search the documentation by words of title, text, tags and author. All words must \
            occur. Returns whole pages, with the total number of matches.",
            vec![
                text("query", "Words to look for.").example("rollback"),
                choice("space", SPACES, "Only pages of this space.").optional(),
                choice("status", STATES, "Only pages in this state.").optional(),
                limit(10, 50),
            ],
            Action::List("pages", Shape::Page("pages")),
        ),
        tool(
            "list-pages",
            "List documentation pages, optionally of a space, with a tag, by an author or below \
            a parent page.",
            vec![
                choice("space", SPACES, "Only pages of this space.").optional(),
                text("tags", "Only pages with this tag.").optional(),
                text("author", "Only pages by this author.").optional(),
                text("parent_id", "Only pages below this page.").optional(),
                since("since", "Only pages changed since then: a time, or a duration such as 30d.")
                    .optional()
                    .example("30d"),
                limit(25, 100),
                offset(),
            ],
            Action::List("pages", Shape::Page("pages")),
        ),
        tool(
            "get-page",
            "Get a documentation page with its text and comments.",
            vec![page_id()],
            Action::Get("pages"),
        )
        .typed(),
        tool(
            "get-page-outline",
            "Get the headings of a documentation page without its text.",
            vec![page_id()],
            Action::Compute(outline),
        )
        .returns(vec![
            text("title", "Title of the page."),
            texts("headings", "Its headings, in order."),
        ]),
        tool(
            "list-spaces",
            "List the spaces of the documentation with the number of pages in each.",
            vec![],
            Action::Report(spaces),
        )
        .returns_list(vec![
            text("space", "Name of the space."),
            count("pages", "Number of pages."),
        ]),
        tool(
            "find-stale-pages",
            "Find published pages that nobody has changed for a number of days.",
            vec![
                integer("days", 1..=3_650, "Days without a change.").example(90),
                choice("space", SPACES, "Only pages of this space.").optional(),
            ],
            Action::Report(stale),
        ),
        tool(
            "list-templates",
            "List the templates that new pages can be made from.",
            vec![],
            Action::List("templates", Shape::Bare),
        ),
    ]
}

fn writing_tools() -> Vec<Tool> {
    vec![
        tool(
            "create-page",
            "Create a documentation page. It is a draft until it is published with publish-page.",
            vec![
                text("title", "Title of the page.").example("How we hire"),
                text("body", "Text of the page in Markdown.").example("# Steps"),
                choice("space", SPACES, "Space to put it in.").or("handbook"),
                text("parent_id", "Page to put it below.").optional(),
                texts("tags", "Tags of the page.").optional(),
                object(
                    "permissions",
                    vec![
                        choice(
                            "visibility",
                            &["everyone", "department", "invited"],
                            "Who may read it.",
                        ),
                        texts("editors", "User names of those who may change it.").optional(),
                        flag("allow_comments", "Whether readers may comment.").or(true),
                    ],
                    "Who may do what; those of the space when left out.",
                )
                .optional(),
            ],
            Action::Create("pages", &[("status", "draft")]),
        ),
        tool(
            "update-page",
            "Change the title, text or tags of a documentation page. Fields that are left out \
            stay as they are; the text is replaced as a whole.",
            vec![
                page_id(),
                text("title", "New title.").optional(),
                text("body", "New text in Markdown.").optional(),
                texts("tags", "New set of tags.").optional(),
                text("change_note", "What has changed, for the history.").optional(),
            ],
            Action::Update("pages", &[]),
        ),
        tool(
            "append-to-page",
            "Add a section at the end of a documentation page.",
            vec![
                page_id(),
                text("heading", "Heading of the section.").example("See also"),
                text("text", "Text of the section.").example("The deployment page."),
            ],
            Action::Change(append_section),
        ),
        tool(
            "move-page",
            "Move a documentation page to another space or below another page.",
            vec![
                page_id(),
                choice("space", SPACES, "New space.").example("support"),
                text("parent_id", "New parent page.").optional(),
            ],
            Action::Update("pages", &[]),
        ),
        tool(
            "publish-page",
            "Publish a draft so that everybody sees it.",
            vec![
                page_id(),
                flag("notify_watchers", "Whether to tell those who watch the space.").or(true),
            ],
            Action::Update("pages", &[("status", "published")]),
        ),
        tool(
            "archive-page",
            "Archive a documentation page. It is hidden from lists of readers but can be \
            published again.",
            vec![page_id()],
            Action::Destroy("pages", &[("status", "archived")]),
        ),
        tool(
            "add-page-comment",
            "Comment on a documentation page, optionally on one of its headings.",
            vec![
                page_id(),
                text("text", "The comment.").example("Is this still true?"),
                text("author", "User name to comment as.").or("demo"),
                text("anchor", "Heading that it is about.").optional(),
            ],
            Action::Append("pages", "comments"),
        ),
        tool(
            "delete-page",
            "Delete a documentation page and its comments for good. Prefer archive-page.",
            vec![page_id()],
            Action::Delete("pages"),
        ),
    ]
}

fn outline(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let page = store.find("pages", &arguments["page_id"])?;
    let lines = page.text("body").lines();
    let headings: Vec<&str> = lines
        .filter_map(|line| line.trim().strip_prefix('#'))
        .map(|line| line.trim_matches(['#', ' ']))
        .collect();
    Ok(json!({ "title": page["title"], "headings": headings }))
}

fn spaces(store: &Store, _: &Object) -> Value {
    let of = |space: &&str| {
        let pages = store.rows("pages").iter().filter(|page| page.text("space") == *space);
        json!({ "space": space, "pages": pages.count() })
    };
    SPACES.iter().map(of).collect()
}

fn stale(store: &Store, arguments: &Object) -> Value {
    let mut filter = Object::new();
    filter.insert("until".to_owned(), json!(format!("{}d", arguments.integer("days"))));
    filter.insert("status".to_owned(), json!("published"));
    if let Some(space) = arguments.get("space") {
        filter.insert("space".to_owned(), space.clone());
    }
    let table = pages();
    let old = store.rows("pages").iter().filter(|page| table.matches(page, &filter));
    let brief = |page: &Object| json!({ "id": page["id"], "title": page["title"], "author": page["author"], "updated_at": page["updated_at"] });
    old.map(brief).collect()
}

fn append_section(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    const MAX_BODY_BYTES: usize = 200_000;
    let page = store.find_mut("pages", &arguments["page_id"])?;
    let body = format!(
        "{}\n\n# {}\n\n{}",
        page.text("body"),
        arguments.text("heading"),
        arguments.text("text")
    );
    if body.len() > MAX_BODY_BYTES {
        return Err(Failure::Refused("The page has no room for more text".into()));
    }
    page.insert("body".to_owned(), json!(body));
    Ok(page.clone().into())
}
