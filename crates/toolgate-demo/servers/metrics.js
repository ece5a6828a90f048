const units = ['percent', 'milliseconds', 'count', 'bytes'];
const services = ['shop', 'api', 'search', 'worker'];
const monitor_states = ['ok', 'warning', 'alerting', 'muted'];
const charts = ['line', 'bar', 'gauge', 'table'];
const panel = {
  title: text('Title of the panel.'),
  metric: text('Metric that it shows.'),
  chart: choice(charts, 'How it shows it.'),
};
const condition = {
  comparison: choice(['above', 'below'], 'Which side of the threshold is bad.'),
  threshold: number("The threshold, in the metric's unit."),
  duration: text('How long it must last, such as 5m.'),
};
const metric = text('Name of the metric, such as http.error_rate; listMetrics has all of them.', { example: 'http.error_rate' });
const service = choice(services, 'Service whose values are wanted; each has its own series.');
const range = choice(['1h', '6h', '24h', '7d'], 'How far to look back from the present.', { default: '1h' });
const dashboardId = text('Id of the dashboard, as returned by listDashboards.', { example: 'DB-2' });

/**
 * The values of a metric of a service, oldest first: a wave around what it usually is, with a bump in
 * the last stretch for the shop, whose payments are slow since the last release.
 */
function series({ name, typicalValue }, service, points) {
  const random = new Random(`"${name}" ${service}`);
  const scale = random.between(60, 140) / 100;
  return Array.from({ length: points }, (_, index) => {
    const noise = random.between(90, 110) / 100;
    const isRecent = index + Math.floor(points / 8) >= points;
    return round(typicalValue * scale * noise * (isRecent && service === 'shop' ? 2.5 : 1));
  });
}

/** One value every five minutes. */
const recent = (metric, service, range) => series(metric, service, parseDuration(range) / 300);

function aggregate(how, values) {
  if (how === 'min') return round(Math.min(...values));
  if (how === 'max') return round(Math.max(...values));
  return round(how === 'sum' ? sum(values) : sum(values) / values.length);
}

server({
  name: 'metrics',
  description: 'Time series of all services, dashboards and service level objectives.',
  version: '6.3.0',
  modern: true,
  annotations: true,
  tables: {
    metrics: {
      singular: 'metric',
      columns: {
        name: text('Name of the metric.'),
        unit: choice(units, 'Unit of its values.'),
        description: text('What it measures.'),
        typicalValue: number('What it usually is.'),
      },
      rows: `
        http.requests    | count        | Requests a minute                   | 1200
        http.error_rate  | percent      | Share of requests that fail         | 2
        http.latency.p50 | milliseconds | Median time to answer               | 85
        http.latency.p99 | milliseconds | Time within which 99 % are answered | 640
        cpu.usage        | percent      | Use of the processors               | 47
        memory.usage     | bytes        | Memory in use                       | 730000000
        queue.depth      | count        | Jobs that wait                      | 35
        orders.placed    | count        | Orders a minute                     | 14
        payments.failed  | count        | Payments a minute that did not work | 1
      `,
    },
    dashboards: {
      singular: 'dashboard', idPrefix: 'DB-',
      columns: {
        id: text('Dashboard id.'),
        title: text('Title of the dashboard.'),
        tags: list(text(), 'Tags of the dashboard.'),
        panels: list(object(panel), 'Its panels, in order.'),
      },
      rows: `
        DB-1 | Shop overview | shop;business  | Orders, orders.placed, line;Errors, http.error_rate, line
        DB-2 | Platform      | infrastructure | Processors, cpu.usage, gauge;Memory, memory.usage, line
        DB-3 | Payments      | business       | Failures, payments.failed, bar
      `,
    },
    objectives: {
      singular: 'objective', idPrefix: 'SLO-',
      columns: {
        id: text('Objective id.'),
        name: text('Name of the objective.'),
        service: choice(services, 'Service that it is for.'),
        metric: text('Metric that it is measured by.'),
        targetPercent: number('Share of time in which it must be met.'),
        windowDays: integer('Days over which it is measured.'),
      },
      rows: `
        SLO-1 | Shop answers    | shop   | http.error_rate  | 99.5 | 30
        SLO-2 | Shop is fast    | shop   | http.latency.p99 | 99   | 30
        SLO-3 | Partner API     | api    | http.error_rate  | 99.9 | 30
        SLO-4 | Search is fresh | search | queue.depth      | 95   | 7
      `,
    },
    monitors: {
      singular: 'monitor', idPrefix: 'MON-',
      columns: {
        id: text('Monitor id.'),
        metric: text('Metric that it watches.'),
        service: choice(services, 'Service that it watches.', optional),
        condition: object(condition, 'When it goes off.'),
        state: choice(monitor_states, 'State of the monitor.', { default: 'ok' }),
      },
      rows: `
        MON-1 | http.error_rate  | shop   | above, 5, 5m     | alerting
        MON-2 | http.latency.p99 | api    | above, 1500, 10m | ok
        MON-3 | orders.placed    | shop   | below, 2, 15m    | ok
        MON-4 | queue.depth      | worker | above, 500, 10m  | warning
      `,
    },
  },
  tools: {
    listMetrics: {
      about: 'List the metrics that are collected, with unit and meaning.',
      input: {
        unit: choice(units, 'Only metrics of this unit.', optional),
        query: text('Only metrics with these words in name or meaning.', { optional: true, example: 'latency' }),
      },
      action: 'list', table: 'metrics', output: 'row',
    },
    queryMetric: {
      about: 'Query the time series of a metric for a service. Returns points of time and value at a regular step, oldest first.',
      input: {
        metric,
        service,
        range,
        step: text('Time between points, such as 1m or 1h.', { default: '5m' }),
        labels: map(text(), 'Only series with these label values, such as region.', optional),
      },
      action: 'compute',
      output: object({
        metric: text('The metric.'),
        service: choice(services, 'The service.'),
        unit: choice(units, 'Unit of the values.'),
        points: list(object({ time: time('When.'), value: number('The value.') }), 'The series.'),
      }),
      run({ metric, service, range, step }, { metrics }) {
        const length = parseDuration(step);
        require(length > 0, 'Invalid argument `step`: must be a duration such as 1m or 1h');
        const number = Math.max(1, Math.floor(parseDuration(range) / length));
        require(number <= 500, `Invalid argument \`step\`: gives ${number} points, more than 500; take a longer one`);
        const found = metrics.find(metric);
        const timeOf = (index) => stamp(parseTime(NOW) - (number - 1 - index) * length);
        const points = series(found, service, number).map((value, index) => ({ time: timeOf(index), value }));
        return { metric, service, unit: found.unit, points };
      },
    },
    getMetricSummary: {
      about: 'Get the average, minimum and maximum of a metric for a service over a range, without the points.',
      input: {
        metric,
        service,
        range,
      },
      action: 'compute',
      output: object({
        avg: number('The average.'),
        min: number('The lowest value.'),
        max: number('The highest value.'),
        points: integer('Number of points.'),
      }),
      run({ metric, service, range }, { metrics }) {
        const values = recent(metrics.find(metric), service, range);
        return { avg: aggregate('avg', values), min: aggregate('min', values), max: aggregate('max', values), points: values.length };
      },
    },
    compareServices: {
      about: 'Compare a metric across services over a range, highest first.',
      input: {
        metric,
        range,
        aggregation: choice(['avg', 'min', 'max', 'sum'], 'How to sum up each series.', { default: 'avg' }),
        services: list(choice(services), 'Services to compare; all when left out.', optional),
      },
      action: 'compute',
      run({ metric, range, aggregation, services: wanted = [] }, { metrics }) {
        const found = metrics.find(metric);
        const compared = services.filter((service) => wanted.length === 0 || wanted.includes(service));
        const values = compared.map((service) => ({ service, value: aggregate(aggregation, recent(found, service, range)) }));
        return values.sort((one, two) => two.value - one.value);
      },
    },
    detectAnomalies: {
      about: 'Find points of a metric that are far from its average over a range.',
      input: {
        metric,
        service,
        range,
        sensitivity: choice(['low', 'medium', 'high'], 'How small a deviation counts.', { default: 'medium' }),
      },
      action: 'compute',
      run({ metric, service, range, sensitivity }, { metrics }) {
        const values = recent(metrics.find(metric), service, range);
        const average = aggregate('avg', values);
        const factor = { low: 2.5, medium: 1.5, high: 1.05 }[sensitivity];
        const timeOf = (index) => stamp(parseTime(NOW) + (index + 1 - values.length) * 300);
        const points = values.map((value, index) => ({ time: timeOf(index), value }));
        return { average, anomalies: points.filter(({ value }) => value > average * factor) };
      },
    },
    listDashboards: {
      about: 'List dashboards with their tags.',
      input: {
        tags: text('Only dashboards with this tag.', optional),
        limit: limit(100, 20),
      },
      action: 'list', table: 'dashboards', page: 'dashboards',
    },
    getDashboard: {
      about: 'Get a dashboard with its panels.',
      input: { dashboardId },
      action: 'get', table: 'dashboards',
    },
    createDashboard: {
      about: 'Create a dashboard from panels, each of which shows a metric.',
      input: {
        title: text('Title of the dashboard.', { example: 'Search health' }),
        panels: list(object(panel), 'The panels, in order.', { example: [{ title: 'Latency', metric: 'http.latency.p99', chart: 'line' }] }),
        tags: list(text(), 'Tags to find it by.', optional),
      },
      action: 'create', table: 'dashboards',
    },
    addDashboardPanel: {
      about: 'Add a panel at the end of a dashboard.',
      input: {
        dashboardId,
        title: text('Title of the panel.', { example: 'Queue' }),
        metric: text('Metric to show.', { example: 'queue.depth' }),
        chart: choice(charts, 'How to show it.'),
      },
      action: 'append', table: 'dashboards', column: 'panels',
    },
    deleteDashboard: {
      about: 'Delete a dashboard for good. The metrics stay.',
      input: { dashboardId },
      action: 'delete', table: 'dashboards',
    },
    listObjectives: {
      about: 'List service level objectives, optionally of one service.',
      input: { service: choice(services, 'Only objectives of this service.', optional) },
      action: 'list', table: 'objectives',
    },
    getErrorBudget: {
      about: 'Get how much of the error budget of a service level objective is left in its window.',
      input: { objectiveId: text('Id of the objective.', { example: 'SLO-1' }) },
      action: 'compute',
      output: object({
        objectiveId: text('The objective.'),
        achievedPercent: number('Share of time in which it was met.'),
        budgetLeftPercent: number('Share of the error budget that is left.'),
        met: boolean('Whether the objective is met.'),
      }),
      run({ objectiveId }, { objectives }) {
        const { targetPercent } = objectives.find(objectiveId);
        const used = new Random(objectiveId).between(15, 130) / 100;
        const achievedPercent = round(100 - (100 - targetPercent) * used, 3);
        return { objectiveId, achievedPercent, budgetLeftPercent: round((1 - used) * 100, 0), met: used <= 1 };
      },
    },
    listMonitors: {
      about: 'List monitors and their states.',
      input: {
        state: choice(monitor_states, 'Only monitors in this state.', optional),
        service: choice(services, 'Only monitors of this service.', optional),
      },
      action: 'list', table: 'monitors', output: 'row',
    },
    createMonitor: {
      about: 'Create a monitor that alerts when a metric stays above or below a threshold.',
      input: {
        metric,
        condition: object(condition, 'When it goes off.', { example: { comparison: 'above', threshold: 3, duration: '5m' } }),
        service: choice(services, 'Service to watch; all when left out.', optional),
        notify: list(text(), 'User names or channels to tell.', optional),
      },
      action: 'create', table: 'monitors', set: { state: 'ok' },
    },
    muteMonitor: {
      about: 'Mute a monitor: it goes on watching but tells nobody.',
      input: {
        monitorId: text('Id of the monitor.', { example: 'MON-4' }),
        minutes: integer('For how long.', { range: [1, 10080], default: 60 }),
      },
      action: 'update', table: 'monitors', set: { state: 'muted' },
    },
    deleteMonitor: {
      about: 'Delete a monitor for good.',
      input: { monitorId: text('Id of the monitor.', { example: 'MON-3' }) },
      action: 'delete', table: 'monitors',
    },
  },
});
