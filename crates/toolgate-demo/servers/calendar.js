const answers = ['accepted', 'declined', 'tentative'];
const equipment = ['screen', 'whiteboard', 'video', 'phone'];
const event_id = text('Id of the event, as returned by list_events or create_event.', { example: 'EVT-2' });

server({
  name: 'calendar',
  description: 'Meetings, meeting rooms and availability.',
  version: '2.4.1',
  modern: false,
  annotations: true,
  tables: {
    events: {
      singular: 'event', idPrefix: 'EVT-', time: 'start',
      columns: {
        id: text('Event id.'),
        title: text('Title of the event.'),
        start: time('When it starts.'),
        end: time('When it ends.'),
        calendar_id: text('Calendar that it is in.', { default: 'work' }),
        attendees: list(text(), 'User names of those invited.'),
        room_id: text('Room that is booked.', optional),
        description: text('Notes of the event.', optional),
        status: choice(['confirmed', 'tentative', 'cancelled'], 'State of the event.', { default: 'confirmed' }),
        responses: list(object({
          attendee: text('Who answered.'),
          response: choice(answers, 'The answer.'),
          comment: text('A remark.', optional),
          at: time('When.'),
        }), 'Answers to the invitation.'),
      },
      rows: `
        EVT-1 | Platform stand-up   | 2026-10-15T10:00:00Z | 2026-10-15T10:15:00Z | work     | amara;jonas;zofia       | R-2 |                      | confirmed
        EVT-2 | Design review: cart | 2026-10-15T13:00:00Z | 2026-10-15T14:00:00Z | work     | clara;mateo;samuel      | R-1 | Bring the prototypes | confirmed
        EVT-3 | One-to-one Priya    | 2026-10-15T15:30:00Z | 2026-10-15T16:00:00Z | work     | amara;priya             |     |                      | confirmed
        EVT-4 | Incident review     | 2026-10-16T09:00:00Z | 2026-10-16T10:00:00Z | work     | amara;jonas;tariq;zofia | R-1 | The mail relay       | confirmed
        EVT-5 | Supplier call       | 2026-10-16T11:00:00Z | 2026-10-16T11:45:00Z | work     | renata;ravi             |     |                      | tentative
        EVT-6 | Dentist             | 2026-10-16T14:00:00Z | 2026-10-16T15:00:00Z | personal | amara                   |     |                      | confirmed
        EVT-7 | Sprint planning     | 2026-10-19T09:00:00Z | 2026-10-19T11:00:00Z | work     | amara;jonas;priya;hana  | R-3 |                      | confirmed
        EVT-8 | Quarter closing     | 2026-10-20T13:00:00Z | 2026-10-20T14:30:00Z | work     | margaret;ravi           | R-2 |                      | confirmed
        EVT-9 | All hands           | 2026-10-22T15:00:00Z | 2026-10-22T16:00:00Z | work     | amara;margaret;renata   | R-3 |                      | confirmed
      `,
    },
    rooms: {
      singular: 'room', idPrefix: 'R-',
      columns: {
        id: text('Room id.'),
        name: text('Name of the room.'),
        capacity: integer('Number of seats.'),
        building: text('Building that it is in.'),
        equipment: list(choice(equipment), 'What it has.'),
      },
      rows: `
        R-1 | Harbour | 8  | North | screen;whiteboard
        R-2 | Lantern | 4  | North | screen
        R-3 | Meadow  | 20 | South | screen;whiteboard;video;phone
        R-4 | Pebble  | 2  | South | phone
      `,
    },
  },
  tools: {
    list_events: {
      about: 'List calendar events that start within a time range, optionally of one calendar or with one attendee.',
      input: {
        from: time('Start of the range, inclusive.', { optional: true, example: '2026-10-15T00:00:00Z' }),
        to: time('End of the range, exclusive.', optional),
        calendar_id: text('Only events of this calendar, such as work or personal.', optional),
        attendees: text('Only events that this user attends.', optional),
        limit: limit(250, 50),
      },
      action: 'list', table: 'events', output: 'row',
    },
    get_event: {
      about: 'Get a calendar event with its attendees and their answers.',
      input: { event_id },
      action: 'get', table: 'events', output: 'row',
    },
    search_events: {
      about: 'Find calendar events by words of their title, notes or attendees.',
      input: {
        query: text('Words to look for.', { example: 'review' }),
        limit: limit(100, 20),
      },
      action: 'list', table: 'events',
    },
    create_event: {
      about: 'Create a calendar event and invite people to it. Times are ISO 8601 with a time zone. Check free times with find_free_slots first.',
      input: {
        title: text('Title of the event.', { example: 'Release check' }),
        start: time('When it starts.', { example: '2026-10-19T13:00:00Z' }),
        end: time('When it ends; after the start.', { example: '2026-10-19T13:30:00Z' }),
        attendees: list(text(), 'User names of the people to invite.', optional),
        room_id: text('Room to book, from list_rooms.', optional),
        description: text('Notes for the invitation.', optional),
        calendar_id: text('Calendar to put it in.', { default: 'work' }),
        recurrence: object({
          frequency: choice(['daily', 'weekly', 'monthly'], 'How often it repeats.'),
          interval: integer('Every so many days, weeks or months.', { range: [1, 52], default: 1 }),
          weekdays: list(choice(['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU']), 'Days of the week, for weekly events.', optional),
          count: integer('Number of occurrences.', { range: [1, 200], optional: true }),
        }, 'How the event repeats; once when left out.', optional),
        visibility: choice(['default', 'public', 'private'], 'Who sees the details.', { default: 'default' }),
      },
      action: 'change',
      run(args, { events }) {
        require(parseTime(args.end) > parseTime(args.start), 'Invalid argument `end`: must be after the start');
        return events.insert(args);
      },
    },
    update_event: {
      about: 'Change the title, time, room or notes of a calendar event. Fields that are left out stay as they are.',
      input: {
        event_id,
        title: text('New title.', optional),
        start: time('New start.', optional),
        end: time('New end.', optional),
        room_id: text('New room.', optional),
        description: text('New notes.', optional),
        notify_attendees: boolean('Whether to tell the attendees of the change.', { default: true }),
      },
      action: 'update', table: 'events',
    },
    cancel_event: {
      about: 'Cancel a calendar event and tell its attendees. The event stays in the calendar as cancelled.',
      input: {
        event_id,
        message: text('Message to the attendees.', optional),
      },
      action: 'destroy', table: 'events', set: { status: 'cancelled' },
    },
    respond_to_event: {
      about: 'Answer the invitation to a calendar event on behalf of an attendee.',
      input: {
        event_id,
        attendee: text('Who answers.', { example: 'mateo' }),
        response: choice(answers, 'The answer.'),
        comment: text('A remark for the organiser.', optional),
      },
      action: 'append', table: 'events', column: 'responses',
    },
    add_attendees: {
      about: 'Invite more people to a calendar event.',
      input: {
        event_id,
        attendees: list(text(), 'User names of the people to add.', { example: ['hana'] }),
      },
      action: 'change',
      run({ event_id, attendees }, { events }) {
        const all = union(events.find(event_id).attendees, attendees);
        require(all.length <= 500, 'There is no room for more attendees');
        return events.update(event_id, { attendees: all });
      },
    },
    find_free_slots: {
      about: 'Find times at which all given people are free, within working hours (08:00 to 17:00 UTC) of the days of a range. Returns up to the limit of slots of the wanted length, earliest first.',
      input: {
        attendees: list(text(), 'User names of everybody who must be free.', { example: ['amara', 'jonas'] }),
        duration_minutes: integer('Length of the meeting.', { range: [15, 480], example: 30 }),
        from: time('Earliest start.', { example: '2026-10-15T08:00:00Z' }),
        to: time('Latest end.', { example: '2026-10-16T17:00:00Z' }),
        limit: limit(20, 5),
      },
      action: 'compute',
      output: list(object({
        start: time('Start of the slot.'),
        end: time('End of the slot.'),
      })),
      run({ attendees, duration_minutes, from, to, limit }, { events }) {
        const busy = events.rows.filter((event) => event.status !== 'cancelled' && event.attendees.some((one) => attendees.includes(one)));
        const slots = [];
        let start = Math.max(parseTime(from), parseTime(NOW));
        // In steps of a quarter of an hour, two weeks at most.
        for (let step = 0; step < 14 * 96 && slots.length < limit; step += 1) {
          const end = start + duration_minutes * 60;
          if (end > parseTime(to)) break;
          const midnight = start - (start % DAY);
          const isWorking = start - midnight >= 8 * 3600 && end - midnight <= 17 * 3600;
          if (isWorking && !busy.some((event) => parseTime(event.start) < end && parseTime(event.end) > start)) {
            slots.push({ start: stamp(start), end: stamp(end) });
            start = end;
          } else {
            start += 900;
          }
        }
        return slots;
      },
    },
    check_availability: {
      about: 'Check whether one person is free in a time range, and what they attend if not.',
      input: {
        user: text('User name of the person.', { example: 'amara' }),
        start: time('Start of the range.', { example: '2026-10-16T09:30:00Z' }),
        end: time('End of the range.', { example: '2026-10-16T10:30:00Z' }),
      },
      action: 'compute',
      output: object({
        available: boolean('Whether the person is free.'),
        conflicts: list(text(), 'Titles of what they attend.'),
      }),
      run({ user, start, end }, { events }) {
        const isDuring = (event) => parseTime(event.start) < parseTime(end) && parseTime(event.end) > parseTime(start);
        const conflicts = events.rows.filter((event) => event.status !== 'cancelled' && event.attendees.includes(user) && isDuring(event));
        return { available: conflicts.length === 0, conflicts: conflicts.map((event) => event.title) };
      },
    },
    list_rooms: {
      about: 'List meeting rooms, optionally those with enough seats, in a building or with certain equipment.',
      input: {
        min_capacity: integer('Only rooms with at least so many seats.', { range: [1, 100], optional: true }),
        building: text('Only rooms in this building.', optional),
        equipment: list(choice(equipment), 'Only rooms with all of this.', optional),
      },
      action: 'list', table: 'rooms',
    },
    book_room: {
      about: 'Book a meeting room for an existing calendar event. Replaces a room that was booked before.',
      input: {
        event_id,
        room_id: text('Id of the room.', { example: 'R-3' }),
      },
      action: 'update', table: 'events',
    },
    get_working_hours: {
      about: 'Get the working hours and time zone of a user.',
      input: { user: text('User name of the person.', { example: 'hana' }) },
      action: 'compute',
      run({ user }) {
        const zones = { hana: 'Asia/Tokyo', wei: 'Asia/Tokyo', mei: 'Asia/Tokyo', renata: 'America/Bogota', samuel: 'America/Bogota' };
        const timeZone = Object.hasOwn(zones, user) ? zones[user] : 'Europe/Lisbon';
        return { user, timeZone, start: '09:00', end: '17:30', weekdays: ['MO', 'TU', 'WE', 'TH', 'FR'] };
      },
    },
  },
});
