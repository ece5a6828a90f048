const media = ['user', 'channel', 'email', 'sms', 'push', 'webhook'];
const urgencies = ['low', 'normal', 'high'];
const states = ['queued', 'scheduled', 'delivered', 'failed', 'cancelled'];
const digests = ['off', 'daily', 'weekly'];
const hours = {
  start: text('Start as HH:MM.'),
  end: text('End as HH:MM.'),
};
const quiet_hours = object(hours, 'When only urgent notifications arrive.', optional);
const message = text('Text of the notification, as plain text or simple Markdown; keep it under 500 characters.', { example: 'Release 2026.10.3 is out' });
const urgency = choice(urgencies, 'How urgent it is; high breaks through quiet hours.', { default: 'normal' });

server({
  name: 'notifications',
  description: 'Messages to people, channels and devices; templates and preferences.',
  version: '1.13.0',
  modern: false,
  annotations: true,
  tables: {
    deliveries: {
      singular: 'notification', idPrefix: 'NTF-', time: 'sent_at',
      columns: {
        id: text('Notification id.'),
        medium: choice(media, 'How it was sent.'),
        recipient: text('Who it was sent to.'),
        message: text('Text of the notification.'),
        urgency: choice(urgencies, 'How urgent it is.', { default: 'normal' }),
        status: choice(states, 'What became of it.', { default: 'queued' }),
        sent_at: time('When it was sent.'),
        subject: text('Subject line, for email.', optional),
        deliver_at: time('When it will be delivered, if scheduled.', optional),
      },
      rows: `
        NTF-1 | user    | amara            | Release 2026.10.2 is out      | normal | delivered | 2026-10-14T16:02:00Z
        NTF-2 | channel | #deployments     | Release 2026.10.2 is out      | normal | delivered | 2026-10-14T16:02:05Z
        NTF-3 | email   | ravi@example.com | Your expense report is due    | low    | delivered | 2026-10-14T17:30:00Z
        NTF-4 | sms     | +351900000001    | Checkout error rate above 5 % | high   | delivered | 2026-10-15T06:41:00Z
        NTF-5 | channel | #incidents       | Checkout error rate above 5 % | high   | delivered | 2026-10-15T06:41:02Z
        NTF-6 | push    | device-77        | Order 4412 has shipped        | normal | failed    | 2026-10-15T08:15:00Z
        NTF-7 | user    | priya            | You were assigned ISS-111     | normal | delivered | 2026-10-15T08:50:00Z
      `,
    },
    channels: {
      singular: 'channel', idPrefix: '#channel-',
      columns: {
        name: text('Name of the channel, with its #.'),
        topic: text('What it is about.'),
        members: list(text(), 'User names of its members.'),
        archived: boolean('Whether it is read-only.', { default: false }),
      },
      rows: `
        #deployments | Releases and rollbacks  | amara;jonas;zofia;viktor | false
        #incidents   | What is on fire         | amara;tariq;zofia        | false
        #lunch       | Who eats what and where | clara;mateo;samuel;ravi  | false
        #summer-2025 | The summer party        | clara;renata             | true
      `,
    },
    templates: {
      singular: 'template', idPrefix: 'TPL-',
      columns: {
        id: text('Template id.'),
        name: text('Name of the template.'),
        body: text('Text with {{placeholders}}.'),
        placeholders: list(text(), 'Names of the placeholders.'),
      },
      rows: `
        TPL-1 | Release notice | Release {{version}} is out in {{environment}}. | version;environment
        TPL-2 | Invoice due    | Dear {{name}}, invoice {{invoice}} is due.     | name;invoice
        TPL-3 | Welcome        | Welcome aboard, {{name}}!                      | name
      `,
    },
    preferences: {
      singular: 'user',
      columns: {
        user: text('User name.'),
        enabled_media: list(choice(media), 'How the user may be reached.'),
        quiet_hours,
        digest: choice(digests, 'How often minor ones are bundled.', { default: 'off' }),
      },
      rows: `
        amara | user;email;push;sms | 22:00, 07:00 | off
        priya | user;email          | 20:00, 08:00 | daily
        ravi  | email               |              | weekly
      `,
    },
  },
  tools: {
    send_user_notification: {
      about: "Send an in-app notification to a single user by user name. It appears in the user's inbox and on their devices. To reach a group, use send_channel_notification.",
      input: {
        recipient: text('User name of the recipient.', { example: 'priya' }),
        message,
        urgency,
        actions: list(object({ label: text('Text of the button.'), url: text('Where it leads.') }), 'Buttons to show below the message.', optional),
      },
      action: 'create', table: 'deliveries', set: { medium: 'user', status: 'delivered' }, output: 'row',
    },
    send_channel_notification: {
      about: 'Post a notification to a channel, where all members of the channel see it. To reach one person, use send_user_notification.',
      input: {
        recipient: text('Name of the channel, with its #.', { example: '#deployments' }),
        message,
        urgency,
        mention_everyone: boolean('Whether to alert all members, also those who are away.', { default: false }),
        thread_id: text('Notification id to reply to in a thread.', optional),
      },
      action: 'create', table: 'deliveries', set: { medium: 'channel', status: 'delivered' }, output: 'row',
    },
    send_email_notification: {
      about: 'Send a notification by email to one address. Use a template with render_template for formatted messages.',
      input: {
        recipient: text('Email address of the recipient.', { example: 'ravi@example.com' }),
        subject: text('Subject line.', { example: 'Release notes' }),
        message,
        cc: list(text(), 'Further addresses that get a copy.', optional),
        urgency,
      },
      action: 'create', table: 'deliveries', set: { medium: 'email', status: 'queued' },
    },
    send_sms_notification: {
      about: 'Send a notification as a text message to a phone number. Messages over 160 characters are split and cost more.',
      input: {
        recipient: text('Phone number in international form, such as +351900000001.', { example: '+351900000001' }),
        message,
        urgency,
      },
      action: 'create', table: 'deliveries', set: { medium: 'sms', status: 'queued' },
    },
    send_push_notification: {
      about: 'Send a push notification to a mobile device by its device id, with optional data for the app.',
      input: {
        recipient: text('Device id.', { example: 'device-77' }),
        message,
        urgency,
        data: map(text(), 'Key and value pairs that are handed to the app.', optional),
        badge: integer("Number to show on the app's icon.", { range: [0, 999], optional: true }),
      },
      action: 'create', table: 'deliveries', set: { medium: 'push', status: 'queued' },
    },
    send_webhook_notification: {
      about: 'Deliver a notification to a registered webhook endpoint by its name, as a signed JSON body.',
      input: {
        recipient: text('Name of the endpoint.', { example: 'partner-orders' }),
        message,
        headers: map(text(), 'Additional headers.', optional),
      },
      action: 'create', table: 'deliveries', set: { medium: 'webhook', status: 'queued' },
    },
    schedule_user_notification: {
      about: 'Schedule an in-app notification to a single user for a later time. Cancel it with cancel_notification before it is delivered.',
      input: {
        recipient: text('User name of the recipient.', { example: 'amara' }),
        message,
        deliver_at: time('When to deliver it.', { example: '2026-10-16T08:00:00Z' }),
        urgency,
      },
      action: 'create', table: 'deliveries', set: { medium: 'user', status: 'scheduled' },
    },
    schedule_channel_notification: {
      about: 'Schedule a notification to a channel for a later time. All members of the channel will see it.',
      input: {
        recipient: text('Name of the channel, with its #.', { example: '#lunch' }),
        message,
        deliver_at: time('When to deliver it.', { example: '2026-10-16T08:00:00Z' }),
      },
      action: 'create', table: 'deliveries', set: { medium: 'channel', status: 'scheduled' },
    },
    list_notifications: {
      about: 'List notifications that were sent or scheduled, with what became of them.',
      input: {
        medium: choice(media, 'Only notifications sent this way.', optional),
        recipient: text('Only notifications to this recipient.', optional),
        status: choice(states, 'Only notifications in this state.', optional),
        since: since('Only notifications sent since then: a time, or a duration such as 24h.', { optional: true, example: '1d' }),
        limit: limit(200, 50),
      },
      action: 'list', table: 'deliveries', page: 'notifications',
    },
    get_notification_status: {
      about: 'Get the delivery status of a notification by its id.',
      input: { notification_id: text('Id of the notification.', { example: 'NTF-4' }) },
      action: 'get', table: 'deliveries',
    },
    cancel_notification: {
      about: 'Cancel a notification that is queued or scheduled. What has been delivered cannot be taken back.',
      input: {
        notification_id: text('Id of the notification.', { example: 'NTF-4' }),
        reason: text('Why it is cancelled.', optional),
      },
      action: 'destroy', table: 'deliveries', set: { status: 'cancelled' },
    },
    list_channels: {
      about: 'List the channels that notifications can be posted to, with topic and members.',
      input: { archived: boolean('Only channels that are, or are not, archived.', optional) },
      action: 'list', table: 'channels',
    },
    create_channel: {
      about: 'Create a channel for notifications.',
      input: {
        name: text('Name of the channel, starting with #.', { example: '#release-train' }),
        topic: text('What the channel is about.', optional),
        members: list(text(), 'User names of the first members.', optional),
      },
      action: 'create', table: 'channels',
    },
    list_templates: {
      about: 'List the message templates and their placeholders.',
      input: {},
      action: 'list', table: 'templates',
    },
    render_template: {
      about: 'Fill in the placeholders of a message template and return the text, without sending it.',
      input: {
        template_id: text('Id of the template.', { example: 'TPL-1' }),
        values: map(text(), 'A value for each placeholder.', { example: { version: '2026.10.3', environment: 'production' } }),
      },
      action: 'compute',
      output: object({
        text: text('The filled-in message.'),
        missing: list(text(), 'Placeholders without a value.'),
      }),
      run({ template_id, values }, { templates }) {
        const { body, placeholders } = templates.find(template_id);
        const known = placeholders.filter((name) => Object.hasOwn(values, name));
        const fill = (text, name) => text.replaceAll(`{{${name}}}`, () => values[name]);
        return { text: known.reduce(fill, body), missing: placeholders.filter((name) => !known.includes(name)) };
      },
    },
    get_notification_preferences: {
      about: 'Get how a user wants to be notified: enabled media, quiet hours and digest.',
      input: { user: text('User name.', { example: 'priya' }) },
      action: 'get', table: 'preferences',
    },
    update_notification_preferences: {
      about: 'Change how a user wants to be notified. Fields that are left out stay as they are.',
      input: {
        user: text('User name.', { example: 'priya' }),
        enabled_media: list(choice(media), 'How the user may be reached.', optional),
        quiet_hours,
        digest: choice(digests, 'How often minor ones are bundled.', optional),
      },
      action: 'update', table: 'preferences',
    },
  },
});
