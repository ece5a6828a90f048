const environments = ['development', 'staging', 'production'];
const states = ['pending', 'running', 'succeeded', 'failed', 'rolled_back', 'cancelled'];
const strategies = ['rolling', 'blue_green', 'canary'];
const rule = {
  attribute: text('Attribute of the user, such as country.'),
  operator: choice(['equals', 'not_equals', 'in', 'starts_with'], 'How to compare.'),
  values: list(text(), 'Values to compare with.'),
};
const deployment_id = text('Id of the deployment, as returned by trigger_deployment or list_deployments.', { example: 'DPL-508' });
const environment = choice(environments, 'Target environment; production is protected and needs an approval.', { example: 'staging' });
const key = text('Key of the feature flag, as returned by list_feature_flags.', { example: 'new-checkout' });

server({
  name: 'deploy',
  description: 'Releases, deployments to environments, rollbacks and feature flags.',
  version: '2.0.0',
  modern: true,
  annotations: true,
  tables: {
    releases: {
      singular: 'release', idPrefix: '0.0.', time: 'created_at',
      columns: {
        version: text('Version of the release.'),
        service: text('Service that it is of.'),
        commit: text('Commit that it was built from.'),
        changes: list(text(), 'What has changed.'),
        created_at: time('When it was built.'),
        author: text('Who made it.'),
      },
      rows: `
        2026.9.6  | shop | 4f21c9a | Faster product pages;Fix typo in footer   | 2026-09-22T09:00:00Z | viktor
        2026.9.7  | shop | 90b3e77 | New stock reservation                     | 2026-09-29T09:00:00Z | viktor
        2026.10.1 | shop | c81d204 | Payment retries;Admin search              | 2026-10-06T09:00:00Z | zofia
        2026.10.2 | shop | 7ae5f13 | Upgrade payment client;Rate limits by key | 2026-10-14T15:10:00Z | viktor
        1.40.0    | api  | 11c0de5 | Webhook signatures                        | 2026-10-01T12:00:00Z | tariq
        1.41.0    | api  | 5b7a9e0 | Pagination for orders                     | 2026-10-13T08:30:00Z | tariq
      `,
    },
    deployments: {
      singular: 'deployment', idPrefix: 'DPL-', time: 'started_at',
      columns: {
        id: text('Deployment id.'),
        service: text('Service that was deployed.'),
        version: text('Release that was deployed.'),
        environment: choice(environments, 'Where to.'),
        status: choice(states, 'State of the deployment.', { default: 'pending' }),
        strategy: choice(strategies, 'How it was rolled out.', { default: 'rolling' }),
        started_at: time('When it started.'),
        triggered_by: text('Who started it.', { default: 'demo' }),
      },
      rows: `
        DPL-501 | shop | 2026.9.7  | production | succeeded | rolling    | 2026-09-30T07:00:00Z | viktor
        DPL-502 | api  | 1.40.0    | production | succeeded | rolling    | 2026-10-02T07:00:00Z | tariq
        DPL-503 | shop | 2026.10.1 | staging    | succeeded | rolling    | 2026-10-06T09:30:00Z | zofia
        DPL-504 | shop | 2026.10.1 | production | succeeded | canary     | 2026-10-07T07:00:00Z | zofia
        DPL-505 | api  | 1.41.0    | staging    | failed    | rolling    | 2026-10-13T09:00:00Z | tariq
        DPL-506 | shop | 2026.10.2 | staging    | succeeded | rolling    | 2026-10-14T15:20:00Z | viktor
        DPL-507 | shop | 2026.10.2 | production | succeeded | blue_green | 2026-10-14T16:00:00Z | viktor
        DPL-508 | api  | 1.41.0    | staging    | running   | rolling    | 2026-10-15T09:25:00Z | tariq
      `,
    },
    environments: {
      singular: 'environment',
      columns: {
        name: text('Name of the environment.'),
        url: text('Where it answers.'),
        region: text('Where it runs.'),
        protected: boolean('Whether deployments need an approval.'),
        locked: boolean('Whether deployments are held back.', { default: false }),
        replicas: integer('Instances of each service.'),
        lock_reason: text('Why it is locked.', optional),
      },
      rows: `
        development | https://dev.shop.example     | eu-west    | false | false | 1
        staging     | https://staging.shop.example | eu-west    | false | false | 2
        production  | https://shop.example         | eu-central | true  | false | 6
      `,
    },
    flags: {
      singular: 'feature flag', idPrefix: 'flag-',
      columns: {
        key: text('Key of the flag.'),
        description: text('What it turns on.'),
        enabled: boolean('Whether it is on.', { default: false }),
        rollout_percent: integer('Share of users who get it.'),
        environments: list(text(), 'Environments that it applies to.'),
        rules: list(object(rule), 'Who gets it first.'),
      },
      rows: `
        new-checkout    | The new checkout page     | true  | 25  | staging;production
        dark-mode       | Dark colours in the admin | false | 0   | staging
        api-rate-limits | Limits for each API key   | true  | 100 | production
        gift-cards      | Sell gift cards           | true  | 10  | production
      `,
    },
  },
  tools: {
    list_releases: {
      about: 'List releases that were built, with their changes, optionally of one service.',
      input: {
        service: text('Only releases of this service.', optional),
        since: since('Only releases built since then: a time, or a duration such as 14d.', { optional: true, example: '14d' }),
        limit: limit(100, 20),
      },
      action: 'list', table: 'releases', output: 'row',
    },
    get_release: {
      about: 'Get a release by its version, with its commit and changes.',
      input: { version: text('Version of the release.', { example: '2026.10.2' }) },
      action: 'get', table: 'releases',
    },
    create_release: {
      about: 'Create a release of a service from a commit. It is built and can then be deployed with trigger_deployment.',
      input: {
        version: text('Version of the release; must be new.', { example: '2026.10.3' }),
        service: text('Name of the service, such as shop or api.', { example: 'shop' }),
        commit: text('Commit to build from.', { example: 'd94f0aa' }),
        changes: list(text(), 'What has changed, a line each.', optional),
        author: text('Who made it.', optional),
      },
      action: 'create', table: 'releases',
    },
    compare_releases: {
      about: 'Compare two releases of a service: lists the changes of all releases after the first, up to and including the second.',
      input: {
        base_version: text('The older release.', { example: '2026.9.7' }),
        head_version: text('The newer release.', { example: '2026.10.2' }),
      },
      action: 'compute',
      run({ base_version, head_version }, { releases }) {
        const base = releases.find(base_version);
        const head = releases.find(head_version);
        require(base.service === head.service, 'The releases are of different services');
        const isBetween = ({ created_at }) => created_at > base.created_at && created_at <= head.created_at;
        const changes = releases.where('service', base.service).filter(isBetween).flatMap((release) => release.changes);
        return { service: base.service, base: base.commit, head: head.commit, changes };
      },
    },
    list_deployments: {
      about: 'List deployments, optionally of a service, to an environment or in a state.',
      input: {
        service: text('Only deployments of this service.', optional),
        environment: choice(environments, 'Only deployments to this environment.', optional),
        status: choice(states, 'Only deployments in this state.', optional),
        since: since('Only deployments started since then: a time, or a duration such as 24h.', { optional: true, example: '7d' }),
        limit: limit(100, 20),
      },
      action: 'list', table: 'deployments', output: 'row',
    },
    get_deployment: {
      about: 'Get a deployment and its state.',
      input: { deployment_id },
      action: 'get', table: 'deployments', output: 'row',
    },
    trigger_deployment: {
      about: 'Deploy a release of a service to an environment. Refused while the environment is locked. Returns the deployment, which runs in the background.',
      input: {
        service: text('Name of the service, such as shop or api.', { example: 'shop' }),
        version: text('Release to deploy.', { example: '2026.10.2' }),
        environment,
        strategy: choice(strategies, 'How to roll it out.', { default: 'rolling' }),
        canary: object({
          percent: integer('Share of traffic for the new release.', { range: [1, 50] }),
          minutes: integer('How long to watch it.', { range: [1, 1440] }),
          abort_on: list(text(), 'Names of alerts that end it.', optional),
        }, 'Settings of the strategy canary.', optional),
        dry_run: boolean('Only check whether it could be deployed.', { default: false }),
      },
      action: 'change',
      run({ service, version, environment, strategy, dry_run }, { releases, environments, deployments }) {
        const release = releases.find(version);
        require(release.service === service, `"${version}" is a release of "${release.service}"`);
        const target = environments.find(environment);
        require(!target.locked, `The environment is locked: ${target.lock_reason}`);
        if (dry_run) return { possible: true, needs_approval: target.protected };
        return deployments.insert({ service, version, environment, strategy, status: 'running' });
      },
    },
    rollback_deployment: {
      about: 'Roll an environment back to the release of a service that was deployed there before the current one.',
      input: {
        environment,
        service: text('Name of the service, such as shop or api.', { example: 'shop' }),
        reason: text('Why it is rolled back.', { example: 'Payment timeouts' }),
      },
      action: 'change',
      run({ environment, service }, { deployments }) {
        const isDone = (row) => row.service === service && row.environment === environment && row.status === 'succeeded';
        const [current, previous] = deployments.rows.filter(isDone).reverse();
        require(previous, 'There is no earlier deployment to go back to');
        deployments.update(current.id, { status: 'rolled_back' });
        const { version, status, strategy } = previous;
        return deployments.insert({ service, version, environment, status, strategy });
      },
    },
    cancel_deployment: {
      about: 'Cancel a deployment that is pending or running.',
      input: { deployment_id },
      action: 'destroy', table: 'deployments', set: { status: 'cancelled' },
    },
    get_deployment_logs: {
      about: 'Get the last lines that a deployment has written.',
      input: {
        deployment_id,
        lines: integer('Number of lines.', { range: [1, 200], default: 20 }),
      },
      action: 'compute',
      run({ deployment_id, lines }, { deployments }) {
        const { status, service, version } = deployments.find(deployment_id);
        const steps = ['Pulling image', 'Running migrations', 'Starting instance', 'Health check passed', 'Shifting traffic'];
        const line = (index) => `[${String(index * 3 + 3).padStart(4)}s] ${service} ${version}: ${steps[index % steps.length]}`;
        return { status, lines: Array.from({ length: lines }, (_, index) => line(index)) };
      },
    },
    list_environments: {
      about: 'List environments with address, region and whether they are protected or locked.',
      input: {},
      action: 'list', table: 'environments',
    },
    lock_environment: {
      about: 'Hold back all deployments to an environment, for example during an incident.',
      input: {
        environment,
        lock_reason: text('Why it is locked.', { example: 'Incident review' }),
      },
      action: 'update', table: 'environments', set: { locked: true },
    },
    unlock_environment: {
      about: 'Allow deployments to a locked environment again.',
      input: { environment },
      action: 'update', table: 'environments', set: { locked: false },
    },
    list_feature_flags: {
      about: 'List feature flags with their state and rollout, optionally of one environment.',
      input: {
        enabled: boolean('Only flags that are on, or off.', optional),
        environments: choice(environments, 'Only flags that apply to this environment.', optional),
      },
      action: 'list', table: 'flags', output: 'row',
    },
    create_feature_flag: {
      about: 'Create a feature flag. It is off until it is turned on with toggle_feature_flag.',
      input: {
        key: text('Key of the flag, in lower case with dashes.', { example: 'express-shipping' }),
        description: text('What it turns on.', { example: 'Offer express shipping' }),
        environments: list(text(), 'Environments that it applies to.', { example: ['staging'] }),
        rollout_percent: integer('Share of users who get the feature.', { range: [0, 100], default: 0 }),
      },
      action: 'create', table: 'flags', set: { enabled: false },
    },
    toggle_feature_flag: {
      about: 'Turn a feature flag on or off.',
      input: {
        key,
        enabled: boolean('Whether it should be on.', { example: true }),
      },
      action: 'update', table: 'flags',
    },
    set_feature_flag_rollout: {
      about: 'Set the share of users who get a feature, and the rules for who gets it first.',
      input: {
        key,
        rollout_percent: integer('Share of users who get the feature.', { range: [0, 100], example: 50 }),
        rules: list(object(rule), 'Who gets it whatever the share.', optional),
      },
      action: 'update', table: 'flags',
    },
    evaluate_feature_flag: {
      about: 'Find out whether a user gets a feature. The same user always gets the same answer for the same rollout.',
      input: {
        key,
        user_id: text('The user.', { example: 'user-42' }),
        attributes: map(text(), 'Attributes of the user for the rules.', optional),
      },
      action: 'compute',
      output: object({
        key: text('Key of the flag.'),
        enabled: boolean('Whether the user gets the feature.'),
        reason: text('Why.'),
      }),
      run({ key, user_id, attributes = {} }, { flags }) {
        const flag = flags.find(key);
        const isRuled = ({ attribute, operator, values }) => {
          if (!Object.hasOwn(attributes, attribute)) return false;
          const value = attributes[attribute];
          if (operator === 'starts_with') return values.some((start) => value.startsWith(start));
          return values.includes(value) === (operator !== 'not_equals');
        };
        const ruled = flag.rules.some(isRuled);
        const sampled = new Random(`${key} ${user_id}`).below(100) < flag.rollout_percent;
        const reason = ruled ? 'a rule matches' : sampled ? 'within the rollout' : 'outside the rollout';
        return { key, enabled: flag.enabled && (ruled || sampled), reason: flag.enabled ? reason : 'the flag is off' };
      },
    },
  },
});
