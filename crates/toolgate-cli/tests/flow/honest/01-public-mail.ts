// What is public is sent.
const { events } = await calendar_list({});
await mail_send({ to: "team@house.example", subject: "This week", body: events.map((event) => event.title).join("\n") });
