const statuses = ['open', 'in_progress', 'blocked', 'closed'];
const priorities = ['low', 'medium', 'high', 'urgent'];
const resolutions = ['fixed', 'wont_fix', 'duplicate', 'cannot_reproduce'];
const links = ['blocks', 'is_blocked_by', 'relates_to', 'duplicates'];
const milestone_states = ['open', 'closed'];
const comment = {
  body: text('Text of the comment.'),
  author: text('User who wrote it.', optional),
  internal: boolean('Whether only the team sees it.', optional),
  at: time('When it was written.'),
};
const status = choice(statuses, 'Only issues in this state.', optional);
const issueId = text('Id of the issue, such as ISS-101, as returned by createIssue, listIssues or searchIssues.', { example: 'ISS-103' });

server({
  name: 'ticketing',
  description: "Issues of the shop's project: create, triage, comment, plan.",
  version: '5.0.2',
  modern: false,
  annotations: true,
  tables: {
    issues: {
      singular: 'issue', idPrefix: 'ISS-', time: 'createdAt',
      columns: {
        id: text('Issue id, such as ISS-101.'),
        title: text('One-line summary.'),
        body: text('Description in Markdown.'),
        status: choice(statuses, 'State of the issue.', { default: 'open' }),
        priority: choice(priorities, 'Priority of the issue.', { default: 'medium' }),
        labels: list(text(), 'Names of its labels.'),
        assignee: text('User name of the assignee.', optional),
        milestoneId: text('Milestone that it is planned for.', optional),
        createdAt: time('When it was created.'),
        updatedAt: time('When it last changed.'),
        resolution: choice(resolutions, 'How it was resolved.', optional),
        dueDate: date('When it should be done.', optional),
        comments: list(object(comment), 'Its comments, oldest first.'),
        links: list(object({
          targetId: text('The other issue.'),
          type: choice(links, 'How the two relate.'),
          at: time('When the link was made.'),
        }), 'Its links to other issues.'),
        watchers: list(text(), 'Users who are told of changes.'),
      },
      rows: `
        ISS-101 | Checkout button does nothing on small screens  | Seen on phones in landscape.         | open        | high   | bug;frontend     | mateo   | M-2 | 2026-09-18T08:12:00Z | 2026-10-02T10:00:00Z
        ISS-102 | Export invoices as CSV                         | Finance asks for it every month.     | in_progress | medium | feature;billing  | priya   | M-2 | 2026-09-20T13:40:00Z | 2026-10-12T09:20:00Z
        ISS-103 | Search returns discontinued products           | The index is not pruned.             | open        | medium | bug;search       | hana    | M-1 | 2026-09-22T07:55:00Z | 2026-09-30T16:45:00Z
        ISS-104 | Upgrade the mail relay                         | The relay refuses old ciphers.       | blocked     | high   | chore;messaging  | zofia   | M-1 | 2026-09-23T11:05:00Z | 2026-10-09T12:00:00Z
        ISS-105 | Dark mode for the admin pages                  | Requested by support.                | open        | low    | feature;frontend |         |     | 2026-09-25T15:30:00Z | 2026-09-25T15:30:00Z
        ISS-106 | Deadlock when two orders reserve the same item | Happens under load.                  | open        | urgent | bug;inventory    | jonas   | M-1 | 2026-09-28T06:20:00Z | 2026-10-14T18:10:00Z
        ISS-107 | Document the webhook payloads                  | Partners keep asking.                | open        | low    | docs             |         | M-2 | 2026-09-29T09:45:00Z | 2026-09-29T09:45:00Z
        ISS-108 | Password reset mails arrive late               | Queue is drained only once a minute. | closed      | medium | bug;messaging    | zofia   | M-1 | 2026-09-30T10:15:00Z | 2026-10-06T08:30:00Z
        ISS-109 | Rate limit per API key                         | Today it is per address.             | in_progress | high   | feature;api      | tariq   | M-2 | 2026-10-01T14:00:00Z | 2026-10-13T15:25:00Z
        ISS-110 | Flaky test in the cart suite                   | Fails once in twenty runs.           | open        | low    | chore;tests      | beatriz |     | 2026-10-03T12:35:00Z | 2026-10-03T12:35:00Z
        ISS-111 | Totals differ by a cent on some invoices       | Rounding happens twice.              | open        | high   | bug;billing      | priya   | M-1 | 2026-10-05T07:10:00Z | 2026-10-11T09:00:00Z
        ISS-112 | Retire the legacy login page                   | Nobody has used it since June.       | closed      | low    | chore;frontend   | mateo   |     | 2026-10-07T16:20:00Z | 2026-10-10T11:40:00Z
      `,
    },
    labels: {
      singular: 'label',
      columns: {
        name: text('Name of the label.'),
        color: text('Colour as six hexadecimal digits.'),
        description: text('What the label is for.', optional),
      },
      rows: `
        bug      | d73a4a | Something is broken
        feature  | a2eeef | Something new
        chore    | cfd3d7 | Upkeep
        docs     | 0075ca | Documentation
        billing  | f9d0c4 | Invoices and payments
        frontend | bfdadc | What users see
      `,
    },
    milestones: {
      singular: 'milestone', idPrefix: 'M-',
      columns: {
        id: text('Milestone id.'),
        title: text('Name of the milestone.'),
        dueDate: date('When it is due.'),
        status: choice(milestone_states, 'Whether it is done.', { default: 'open' }),
        description: text('What it is about.', optional),
      },
      rows: `
        M-1 | Stability October | 2026-10-31 | open   | No errors in the morning report
        M-2 | Partner interface | 2026-11-30 | open   | What partners have asked for
        M-0 | Summer clean-up   | 2026-08-31 | closed |
      `,
    },
  },
  tools: {
    createIssue: {
      about: "Create a new issue in the project's tracker. Only the title is required; the priority defaults to medium and the status to open. Returns the created issue with its id.",
      input: {
        title: text('One-line summary of the problem or the request.', { example: 'Payment provider times out' }),
        body: text('Longer description in Markdown: what happens, what was expected, how to reproduce it.', optional),
        priority: choice(priorities, 'How urgent the issue is.', { default: 'medium' }),
        labels: list(text(), 'Names of labels to set, such as bug or billing.', optional),
        assignee: text('User name of the person who should work on it.', optional),
        milestoneId: text('Milestone to plan it for.', optional),
        dueDate: date('Date by which it should be done.', optional),
      },
      action: 'create', table: 'issues', output: 'row',
    },
    listIssues: {
      about: 'List issues of the project with optional filters on status, priority, assignee, labels and milestone. Issues must have all given labels. Use searchIssues to look for words.',
      input: {
        status,
        priority: choice(priorities, 'Only issues of this priority.', optional),
        assignee: text('Only issues assigned to this user.', optional),
        labels: list(text(), 'Only issues with all of these labels.', optional),
        milestoneId: text('Only issues planned for this milestone.', optional),
        since: since('Only issues created since then: a time, or a duration such as 7d.', { optional: true, example: '14d' }),
        limit: limit(100, 25),
        offset,
      },
      action: 'list', table: 'issues', page: 'issues',
    },
    searchIssues: {
      about: 'Search issues by words in their title, description, labels and comments. All words must occur.',
      input: {
        query: text('Words to look for.', { example: 'invoice' }),
        status,
        limit: limit(100, 10),
      },
      action: 'list', table: 'issues', page: 'issues',
    },
    getIssue: {
      about: 'Get an issue with its comments, links and watchers.',
      input: { issueId },
      action: 'get', table: 'issues', output: 'row',
    },
    updateIssue: {
      about: 'Change fields of an issue: its title, description, priority, status, labels, milestone or due date. Fields that are left out stay as they are; labels are replaced as a whole.',
      input: {
        issueId,
        title: text('New title.', optional),
        body: text('New description in Markdown.', optional),
        priority: choice(priorities, 'New priority.', { optional: true, example: 'high' }),
        status: choice(statuses, 'New state.', optional),
        labels: list(text(), 'New set of labels.', optional),
        milestoneId: text('New milestone.', optional),
        dueDate: date('New due date.', optional),
      },
      action: 'update', table: 'issues',
    },
    deleteIssue: {
      about: 'Delete an issue with its comments for good. Prefer closeIssue, which keeps the history.',
      input: { issueId },
      action: 'delete', table: 'issues',
    },
    assignIssue: {
      about: 'Assign an issue to a user. Replaces the current assignee.',
      input: {
        issueId,
        assignee: text('User name of the new assignee.', { example: 'hana' }),
      },
      action: 'update', table: 'issues',
    },
    closeIssue: {
      about: 'Close an issue with a resolution. A closed issue can be opened again with reopenIssue.',
      input: {
        issueId,
        resolution: choice(resolutions, 'Why it is closed.', { default: 'fixed' }),
        duplicateOf: text('Id of the original, when closed as a duplicate.', optional),
      },
      action: 'update', table: 'issues', set: { status: 'closed' },
    },
    reopenIssue: {
      about: 'Open a closed issue again, for example when a fix did not hold.',
      input: {
        issueId,
        reason: text('Why it is opened again.', optional),
      },
      action: 'update', table: 'issues', set: { status: 'open' },
    },
    addComment: {
      about: 'Add a comment to an issue. Internal comments are seen by the team only.',
      input: {
        issueId,
        body: text('Text of the comment in Markdown.', { example: 'Seen again this morning.' }),
        author: text('User name to comment as.', { default: 'demo' }),
        internal: boolean('Whether to hide it from reporters.', { default: false }),
      },
      action: 'append', table: 'issues', column: 'comments',
    },
    listComments: {
      about: 'List the comments of an issue, oldest first.',
      input: { issueId },
      action: 'compute',
      output: list(object(comment)),
      run: ({ issueId }, { issues }) => issues.find(issueId).comments,
    },
    linkIssues: {
      about: 'Link an issue to another one: it blocks it, is blocked by it, relates to it or duplicates it.',
      input: {
        issueId,
        targetId: text('Id of the other issue.', { example: 'ISS-106' }),
        type: choice(links, 'How the first relates to the second.'),
      },
      action: 'append', table: 'issues', column: 'links',
    },
    addWatcher: {
      about: 'Add a user to the watchers of an issue, who are notified of every change.',
      input: {
        issueId,
        user: text('User name of the watcher.', { example: 'priya' }),
      },
      action: 'append', table: 'issues', column: 'watchers',
    },
    addLabels: {
      about: 'Add labels to an issue, keeping those that it has.',
      input: {
        issueId,
        labels: list(text(), 'Names of the labels to add.', { example: ['bug'] }),
      },
      action: 'change',
      run({ issueId, labels }, { issues }) {
        const all = union(issues.find(issueId).labels, labels);
        require(all.length <= 500, 'There is no room for more labels');
        return issues.update(issueId, { labels: all });
      },
    },
    listLabels: {
      about: 'List the labels that issues can have, with colours and descriptions.',
      input: {},
      action: 'list', table: 'labels',
    },
    createLabel: {
      about: 'Create a label for issues.',
      input: {
        name: text('Name of the label, in lower case.', { example: 'regression' }),
        color: text('Colour as six hexadecimal digits.', { default: 'ededed' }),
        description: text('What the label is for.', optional),
      },
      action: 'create', table: 'labels',
    },
    listMilestones: {
      about: 'List milestones of the project with their due dates.',
      input: { status: choice(milestone_states, 'Only milestones in this state.', optional) },
      action: 'list', table: 'milestones',
    },
    createMilestone: {
      about: 'Create a milestone that issues can be planned for.',
      input: {
        title: text('Name of the milestone.', { example: 'Holiday season' }),
        dueDate: date('When it is due.', { example: '2026-12-01' }),
        description: text('What it is about.', optional),
      },
      action: 'create', table: 'milestones',
    },
    getProjectStats: {
      about: 'Count the issues of the project by status, priority, label or assignee.',
      input: {
        groupBy: choice(['status', 'priority', 'labels', 'assignee'], 'What to count by.', { default: 'status' }),
        filter: object({
          status,
          createdWithinDays: integer('Only issues created in the last days.', { range: [1, 365], optional: true }),
        }, 'Which issues to count; all when left out.', optional),
      },
      action: 'compute',
      output: object({
        groupBy: text('What was counted by.'),
        total: integer('Number of issues counted.'),
        counts: map(integer(), 'Number of issues a group.'),
      }),
      run({ groupBy, filter: { status, createdWithinDays = Infinity } = {} }, { issues }) {
        const earliest = parseTime(NOW) - createdWithinDays * DAY;
        const found = issues.select({ status }).rows.filter((issue) => parseTime(issue.createdAt) >= earliest);
        return { groupBy, total: found.length, counts: totals(found, (issue) => issue[groupBy]) };
      },
    },
  },
});
