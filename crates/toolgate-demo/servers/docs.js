const spaces = ['handbook', 'engineering', 'support', 'product'];
const states = ['draft', 'published', 'archived'];
const space = choice(spaces, 'Only pages of this space.', optional);
const page_id = text('Id of the page, such as PG-2, as returned by search-pages or list-pages.', { example: 'PG-2' });

server({
  name: 'docs',
  description: 'Pages of the company handbook and the engineering wiki.',
  version: '1.2.0',
  modern: false,
  annotations: false,
  tables: {
    pages: {
      singular: 'page', idPrefix: 'PG-', time: 'updated_at',
      columns: {
        id: text('Page id.'),
        title: text('Title of the page.'),
        space: choice(spaces, 'Space that it is in.', { default: 'handbook' }),
        status: choice(states, 'Whether it is published.', { default: 'draft' }),
        body: text('Text of the page.'),
        tags: list(text(), 'Tags of the page.'),
        author: text('Who wrote it last.', { default: 'demo' }),
        updated_at: time('When it last changed.'),
        parent_id: text('Page that it is below.', optional),
        comments: list(object({
          text: text('The comment.'),
          author: text('Who wrote it.', optional),
          anchor: text('Heading that it is about.', optional),
          at: time('When.'),
        }), 'Comments on the page.'),
      },
      rows: `
        PG-1  | How we deploy        | engineering | published | # Overview // Every change reaches staging first. // # Rollbacks // Roll back before you look for the cause. // # Contacts // Ask in #deployments. | deploy;runbook   | viktor   | 2026-09-30T10:00:00Z |
        PG-2  | On-call runbook      | engineering | published | # First steps // Acknowledge, then look at the dashboards. // # Escalation // Call the platform lead after 20 minutes. | runbook;incident | zofia    | 2026-10-08T08:00:00Z | PG-1
        PG-3  | Expense policy       | handbook    | published | # Travel // Book ahead and keep receipts. // # Limits // Each level has a limit for a quarter. | finance;travel   | margaret | 2026-07-01T09:00:00Z |
        PG-4  | Welcome              | handbook    | published | # Your first week // Get a computer, meet your mentor. // # Tools // You get accounts for chat, mail and code. | onboarding       | clara    | 2026-05-12T12:00:00Z |
        PG-5  | Refunds              | support     | published | # When // Within 30 days, always. // # How // Open the order and choose refund. | orders           | mei      | 2026-08-19T14:30:00Z |
        PG-6  | Chargebacks          | support     | draft     | # What they are // The bank takes the money back. // # Deadlines // Answer within seven days. | orders;payments  | mei      | 2026-10-11T11:15:00Z | PG-5
        PG-7  | Webhooks             | product     | published | # Events // order.created, order.paid, order.shipped. // # Signatures // Every body is signed. | api;partners     | tariq    | 2026-10-02T16:45:00Z |
        PG-8  | Gift cards, the idea | product     | draft     | # Why // Customers ask for them in December. // # Open questions // Expiry and taxes. | idea             | samuel   | 2026-10-13T09:20:00Z |
        PG-9  | Search, how it works | engineering | published | # Index // Rebuilt every night. // # Ranking // Sales and freshness count. | search           | hana     | 2026-06-23T07:50:00Z |
        PG-10 | Office plants        | handbook    | archived  | # Watering // On Mondays.                                    | office           | clara    | 2024-03-04T10:00:00Z |
      `,
    },
    templates: {
      singular: 'template', idPrefix: 'TP-',
      columns: {
        id: text('Template id.'),
        name: text('Name of the template.'),
        sections: list(text(), 'Headings of the page.'),
      },
      rows: `
        TP-1 | Runbook         | First steps;Escalation;Contacts
        TP-2 | Decision record | Context;Options;Decision;Consequences
        TP-3 | Meeting notes   | Attendees;Topics;Decisions
      `,
    },
  },
  tools: {
    'search-pages': {
      about: 'Search the documentation by words of title, text, tags and author. All words must occur. Returns whole pages, with the total number of matches.',
      input: {
        query: text('Words to look for.', { example: 'rollback' }),
        space,
        status: choice(states, 'Only pages in this state.', optional),
        limit: limit(50, 10),
      },
      action: 'list', table: 'pages', page: 'pages',
    },
    'list-pages': {
      about: 'List documentation pages, optionally of a space, with a tag, by an author or below a parent page.',
      input: {
        space,
        tags: text('Only pages with this tag.', optional),
        author: text('Only pages by this author.', optional),
        parent_id: text('Only pages below this page.', optional),
        since: since('Only pages changed since then: a time, or a duration such as 30d.', { optional: true, example: '30d' }),
        limit: limit(100, 25),
        offset,
      },
      action: 'list', table: 'pages', page: 'pages',
    },
    'get-page': {
      about: 'Get a documentation page with its text and comments.',
      input: { page_id },
      action: 'get', table: 'pages', output: 'row',
    },
    'get-page-outline': {
      about: 'Get the headings of a documentation page without its text.',
      input: { page_id },
      action: 'compute',
      output: object({
        title: text('Title of the page.'),
        headings: list(text(), 'Its headings, in order.'),
      }),
      run({ page_id }, { pages }) {
        const { title, body } = pages.find(page_id);
        const lines = body.split('\n').map((line) => line.trim());
        const headings = lines.filter((line) => line.startsWith('#')).map((line) => line.replace(/^[# ]+|[# ]+$/g, ''));
        return { title, headings };
      },
    },
    'list-spaces': {
      about: 'List the spaces of the documentation with the number of pages in each.',
      input: {},
      action: 'compute',
      output: list(object({
        space: text('Name of the space.'),
        pages: integer('Number of pages.'),
      })),
      run: (_, { pages }) => spaces.map((space) => ({ space, pages: pages.where('space', space).length })),
    },
    'find-stale-pages': {
      about: 'Find published pages that nobody has changed for a number of days.',
      input: {
        days: integer('Days without a change.', { range: [1, 3650], example: 90 }),
        space,
      },
      action: 'compute',
      run({ days, space }, { pages }) {
        const found = pages.select({ until: `${days}d`, status: 'published', space }).rows;
        return found.map(({ id, title, author, updated_at }) => ({ id, title, author, updated_at }));
      },
    },
    'list-templates': {
      about: 'List the templates that new pages can be made from.',
      input: {},
      action: 'list', table: 'templates',
    },
    'create-page': {
      about: 'Create a documentation page. It is a draft until it is published with publish-page.',
      input: {
        title: text('Title of the page.', { example: 'How we hire' }),
        body: text('Text of the page in Markdown.', { example: '# Steps' }),
        space: choice(spaces, 'Space to put it in.', { default: 'handbook' }),
        parent_id: text('Page to put it below.', optional),
        tags: list(text(), 'Tags of the page.', optional),
        permissions: object({
          visibility: choice(['everyone', 'department', 'invited'], 'Who may read it.'),
          editors: list(text(), 'User names of those who may change it.', optional),
          allow_comments: boolean('Whether readers may comment.', { default: true }),
        }, 'Who may do what; those of the space when left out.', optional),
      },
      action: 'create', table: 'pages', set: { status: 'draft' },
    },
    'update-page': {
      about: 'Change the title, text or tags of a documentation page. Fields that are left out stay as they are; the text is replaced as a whole.',
      input: {
        page_id,
        title: text('New title.', optional),
        body: text('New text in Markdown.', optional),
        tags: list(text(), 'New set of tags.', optional),
        change_note: text('What has changed, for the history.', optional),
      },
      action: 'update', table: 'pages',
    },
    'append-to-page': {
      about: 'Add a section at the end of a documentation page.',
      input: {
        page_id,
        heading: text('Heading of the section.', { example: 'See also' }),
        text: text('Text of the section.', { example: 'The deployment page.' }),
      },
      action: 'change',
      run({ page_id, heading, text }, { pages }) {
        const body = `${pages.find(page_id).body}\n\n# ${heading}\n\n${text}`;
        require(utf8(body).length <= 200_000, 'The page has no room for more text');
        return pages.update(page_id, { body });
      },
    },
    'move-page': {
      about: 'Move a documentation page to another space or below another page.',
      input: {
        page_id,
        space: choice(spaces, 'New space.', { example: 'support' }),
        parent_id: text('New parent page.', optional),
      },
      action: 'update', table: 'pages',
    },
    'publish-page': {
      about: 'Publish a draft so that everybody sees it.',
      input: {
        page_id,
        notify_watchers: boolean('Whether to tell those who watch the space.', { default: true }),
      },
      action: 'update', table: 'pages', set: { status: 'published' },
    },
    'archive-page': {
      about: 'Archive a documentation page. It is hidden from lists of readers but can be published again.',
      input: { page_id },
      action: 'destroy', table: 'pages', set: { status: 'archived' },
    },
    'add-page-comment': {
      about: 'Comment on a documentation page, optionally on one of its headings.',
      input: {
        page_id,
        text: text('The comment.', { example: 'Is this still true?' }),
        author: text('User name to comment as.', { default: 'demo' }),
        anchor: text('Heading that it is about.', optional),
      },
      action: 'append', table: 'pages', column: 'comments',
    },
    'delete-page': {
      about: 'Delete a documentation page and its comments for good. Prefer archive-page.',
      input: { page_id },
      action: 'delete', table: 'pages',
    },
  },
});
