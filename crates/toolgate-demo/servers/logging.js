const levels = ['debug', 'info', 'warn', 'error'];
const severities = ['info', 'warning', 'critical'];
const level = choice(levels, 'Only entries of this level.', optional);
const filter = {
  level,
  service: text('Only entries of this service.', optional),
  query: text('Only entries with all of these words.', optional),
  since: since('Only entries from then on.', optional),
};
const sinceThen = since('Only entries from then on: an ISO 8601 time, or a duration back from now such as 90m, 6h or 2d.', { optional: true, example: '6h' });
const service = text('Only entries of this service, as listServices names it.', { optional: true, example: 'checkout' });

/** 1600 entries, newest first, made of a few messages, as the errors of a bad day are. */
function logEntries(messages) {
  const random = new Random(20261015);
  return Array.from({ length: 1600 }, (_, index) => {
    const timestamp = stamp(parseTime(NOW) - index * 54 - random.below(50));
    const percent = random.below(100);
    const level = percent < 18 ? 'error' : percent < 34 ? 'warn' : percent < 88 ? 'info' : 'debug';
    const choices = messages.filter((message) => message.level === level);
    // Every third error is of the first kind: real incidents are not spread evenly.
    const isFirst = level === 'error' && random.below(3) === 0;
    const { service, text: message } = isFirst ? choices[0] : random.pick(choices);
    return {
      id: `log-${String(index).padStart(5, '0')}`,
      timestamp,
      level,
      service,
      host: `${service}-${random.pick(['eu1', 'eu2', 'us1'])}-${random.between(1, 4)}`,
      message,
      traceId: random.next().toString(16).padStart(16, '0'),
      context: {
        requestId: `req-${random.between(100_000, 999_999)}`,
        customerId: `CUS-${String(random.between(1, 40)).padStart(3, '0')}`,
        durationMs: String(random.between(3, 30_000)),
        release: random.pick(['2026.10.1', '2026.10.2', '2026.9.7']),
      },
    };
  });
}

server({
  name: 'logging',
  description: 'Logs of all services: read, search, follow traces, alert rules.',
  version: '3.2.0',
  modern: true,
  annotations: true,
  tables: {
    entries: {
      singular: 'log entry', idPrefix: 'log-', time: 'timestamp',
      columns: {
        id: text('Identifier of the entry.'),
        timestamp: time('When the entry was written.'),
        level: choice(levels, 'Severity of the entry.'),
        service: text('Service that wrote the entry.'),
        host: text('Host the service ran on.'),
        message: text('The message, without variable parts.'),
        traceId: text('Trace that the entry belongs to.'),
        context: map(text(), 'Variable parts of the message.'),
      },
      rows: ({ messages }) => logEntries(messages.rows),
    },
    rules: {
      singular: 'alert rule', idPrefix: 'rule-',
      columns: {
        id: text('Identifier of the rule.'),
        name: text('Name of the rule.'),
        service: text('Service that it watches.', optional),
        level: choice(levels, 'Lowest level that counts.'),
        threshold: integer('Entries within the window that set it off.'),
        window: text('Length of the window, such as 5m.'),
        severity: choice(severities, 'Severity of the alert.', { default: 'warning' }),
        mutedUntil: text('Until when it is silent.', optional),
        enabled: boolean('Whether it is evaluated.', { default: true }),
      },
      rows: `
        rule-1 | Checkout errors | checkout | error | 10 | 5m  | critical |                      | true
        rule-2 | Login failures  | auth     | warn  | 50 | 10m | warning  |                      | true
        rule-3 | Any error burst |          | error | 80 | 15m | critical |                      | true
        rule-4 | Slow search     | search   | warn  | 40 | 30m | info     | 2026-10-16T00:00:00Z | true
        rule-5 | Billing retries | billing  | warn  | 25 | 30m | warning  |                      | false
      `,
    },
    queries: {
      singular: 'saved query', idPrefix: 'query-',
      columns: {
        id: text('Identifier of the saved query.'),
        name: text('Name of the saved query.'),
        filter: object(filter, 'What the query asks for.'),
      },
      rows: `
        query-1 | Payment errors | error, billing
        query-2 | Auth warnings  | warn, auth
        query-3 | Search errors  | error, search
      `,
    },
    services: {
      singular: 'service',
      columns: {
        name: text('Service that writes logs.'),
        owner: text('Team that owns it.'),
      },
      rows: `
        api-gateway   | platform
        auth          | identity
        billing       | payments
        checkout      | storefront
        inventory     | supply
        notifications | messaging
        search        | discovery
        worker        | platform
      `,
    },
    messages: {
      singular: 'message',
      columns: {
        id: text('Number of the message.'),
        level: text('Level at which it is written.'),
        service: text('Service that writes it.'),
        text: text('The message.'),
      },
      rows: `
        1  | error | checkout      | Payment provider timeout after 30s
        2  | error | billing       | Invoice total does not match line items
        3  | error | auth          | Token signature verification failed
        4  | error | inventory     | Deadlock detected while reserving stock
        5  | error | search        | Index shard unavailable
        6  | error | notifications | SMTP connection refused by relay
        7  | error | worker        | Job exceeded maximum retry count
        8  | warn  | auth          | Login attempt with unknown account
        9  | warn  | search        | Query took longer than 2s
        10 | warn  | billing       | Retrying card authorisation
        11 | warn  | api-gateway   | Rate limit reached for client
        12 | warn  | worker        | Queue depth above threshold
        13 | warn  | checkout      | Cart contains a discontinued item
        14 | info  | api-gateway   | Request completed
        15 | info  | auth          | Session created
        16 | info  | billing       | Invoice issued
        17 | info  | checkout      | Order placed
        18 | info  | checkout      | Payment captured
        19 | info  | inventory     | Stock level synchronised
        20 | info  | notifications | Message delivered
        21 | info  | search        | Index refreshed
        22 | info  | worker        | Job finished
        23 | debug | api-gateway   | Route matched
        24 | debug | search        | Cache lookup
        25 | debug | worker        | Heartbeat
      `,
    },
  },
  tools: {
    getLogs: {
      about: 'Fetch log entries, newest first, optionally restricted to a level, a service and a time range. Returns whole entries with their context; narrow the range or set a limit for busy services. Use searchLogs to look for words in messages.',
      input: {
        level: choice(levels, 'Only entries of exactly this level.', optional),
        since: sinceThen,
        service,
        limit: limit(2000, 500),
      },
      action: 'list', table: 'entries', output: 'row',
    },
    searchLogs: {
      about: 'Full-text search over log messages, hosts and context values. Every word of the query must occur in an entry; case does not matter. Returns matching entries, newest first, with the total number of matches.',
      input: {
        query: text('Words to look for, for example `timeout payment`.', { example: 'timeout' }),
        level: list(choice(levels), 'Only entries of one of these levels.', optional),
        service: text('Only entries of this service.', optional),
        since: sinceThen,
        until: since('Only entries before this time; same forms as since.', optional),
        limit: limit(500, 50),
        offset,
      },
      action: 'list', table: 'entries', page: 'entries', output: 'row',
    },
    getLogEntry: {
      about: 'Get a single log entry by its identifier, with its full context.',
      input: { entryId: text('Identifier of the entry, such as log-00042.', { example: 'log-00042' }) },
      action: 'get', table: 'entries', output: 'row',
    },
    getTrace: {
      about: 'List all log entries that share a trace identifier, across services, to follow one request through the system.',
      input: {
        traceId: text('Trace identifier as found in a log entry: 16 hexadecimal digits.', { example: '00f1a2b3c4d5e6f7' }),
        limit: limit(500, 100),
      },
      action: 'list', table: 'entries', page: 'entries',
    },
    listServices: {
      about: 'List the services that write logs, with the team that owns each, the number of stored entries and the time of the latest one.',
      input: {},
      action: 'compute',
      output: list(object({
        name: text('Name to pass as `service` elsewhere.'),
        owner: text('Team that owns the service.'),
        entries: integer('Number of stored entries.'),
        lastSeen: time('Time of the latest entry.'),
      })),
      run: (_, { services, entries }) =>
        services.rows.map(({ name, owner }) => {
          const written = entries.where('service', name);
          return { name, owner, entries: written.length, lastSeen: written[0].timestamp };
        }),
    },
    getLogStats: {
      about: 'Count log entries by level, service or hour over a time range, without returning the entries themselves. Use it to see where the volume is before fetching logs.',
      input: {
        groupBy: choice(['level', 'service', 'hour', 'host'], 'What to count by.', { default: 'level' }),
        since: sinceThen,
        service,
        level,
      },
      action: 'compute',
      output: object({
        groupBy: text('What was counted by.'),
        total: integer('Number of entries counted.'),
        counts: map(integer(), 'Number of entries a group.'),
      }),
      run(args, { entries }) {
        const { groupBy } = args;
        const found = entries.select(args).rows;
        const key = (entry) => (groupBy === 'hour' ? entry.timestamp.slice(0, 13) : entry[groupBy]);
        return { groupBy, total: found.length, counts: totals(found, key) };
      },
    },
    listAlertRules: {
      about: 'List the alert rules that watch the logs, with their thresholds and whether they are muted.',
      input: {
        service: text('Only rules that watch this service.', optional),
        severity: choice(severities, 'Only rules of this severity.', optional),
        enabled: boolean('Only rules that are, or are not, evaluated.', optional),
      },
      action: 'list', table: 'rules',
    },
    createAlertRule: {
      about: 'Create an alert rule that fires when a service writes more than a number of entries of a level within a time window.',
      input: {
        name: text('Short name shown in the alert.', { example: 'Search errors' }),
        level: choice(levels, 'Lowest level that counts.', { example: 'error' }),
        threshold: integer('Number of entries that sets the rule off.', { range: [1, 100000], example: 20 }),
        window: text('Length of the sliding window, such as 5m or 1h.', { example: '10m' }),
        service: text('Service to watch; all services when left out.', optional),
        severity: choice(severities, 'Severity of the alert that it raises.', { default: 'warning' }),
      },
      action: 'create', table: 'rules', set: { enabled: true },
    },
    updateAlertRule: {
      about: 'Change the threshold, window, severity or state of an alert rule. Fields that are left out stay as they are.',
      input: {
        ruleId: text('Identifier of the alert rule.', { example: 'rule-2' }),
        threshold: integer('New threshold.', { range: [1, 100000], optional: true }),
        window: text('New window, such as 5m or 1h.', optional),
        severity: choice(severities, 'New severity.', optional),
        enabled: boolean('Whether the rule is evaluated.', optional),
      },
      action: 'update', table: 'rules',
    },
    muteAlertRule: {
      about: 'Silence an alert rule until a point in time. The rule is still evaluated but raises no alerts.',
      input: {
        ruleId: text('Identifier of the alert rule.', { example: 'rule-2' }),
        mutedUntil: time('When alerts resume.', { example: '2026-10-15T12:00:00Z' }),
      },
      action: 'update', table: 'rules',
    },
    deleteAlertRule: {
      about: 'Delete an alert rule for good. Mute it instead to silence it for a while.',
      input: { ruleId: text('Identifier of the alert rule.', { example: 'rule-2' }) },
      action: 'delete', table: 'rules',
    },
    exportLogs: {
      about: "Start an export of matching log entries to a file in the archive bucket. Returns the export's location; it is not downloaded.",
      input: {
        format: choice(['jsonl', 'csv', 'parquet'], 'File format of the export.'),
        filter: object(filter, 'Which entries to export; everything when left out.', optional),
        compress: boolean('Whether to compress the file with gzip.', { default: true }),
      },
      action: 'compute',
      run: ({ format, filter, compress }, { entries }) => ({
        status: 'started',
        entries: entries.select(filter).total,
        location: `archive://logs/export-0001.${format}${compress ? '.gz' : ''}`,
      }),
    },
    listSavedQueries: {
      about: 'List the saved log queries of the workspace and what each one filters by.',
      input: {},
      action: 'list', table: 'queries',
    },
    saveQuery: {
      about: 'Save a log filter under a name so that it can be run again with runSavedQuery.',
      input: {
        name: text('Name of the saved query.', { example: 'Worker warnings' }),
        filter: object(filter, 'What to filter by.', { example: { level: 'warn', service: 'worker' } }),
        tags: list(text(), 'Tags to group saved queries by.', optional),
      },
      action: 'create', table: 'queries',
    },
    runSavedQuery: {
      about: 'Run a saved log query and return the matching entries, newest first.',
      input: {
        queryId: text('Identifier of the saved query.', { example: 'query-1' }),
        limit: limit(1000, 100),
      },
      action: 'compute',
      run({ queryId, limit }, { queries, entries }) {
        const { rows, total } = entries.select({ ...queries.find(queryId).filter, limit });
        return { entries: rows, total };
      },
    },
    estimateStorageCost: {
      about: 'Estimate the monthly storage cost of the logs for a retention period, at the current volume.',
      input: {
        retentionDays: integer('Days to keep entries for.', { range: [1, 730], example: 30 }),
        pricePerGigabyte: amount('Storage price in USD a gigabyte and month.', { default: 0.03 }),
      },
      action: 'compute',
      run({ retentionDays, pricePerGigabyte }, { entries }) {
        const daily = (entries.rows.length * 1000 * 400) / 1e9;
        return { dailyGigabytes: float(daily), monthlyCost: round(daily * retentionDays * pricePerGigabyte), currency: 'USD' };
      },
    },
  },
});
