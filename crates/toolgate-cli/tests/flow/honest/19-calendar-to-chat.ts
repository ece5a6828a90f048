// Public data to a public place.
const { events } = await calendar_list({});
await chat_post({ channel: "general", message: { events } });
